"""docs/league.md: the table, and what it shows in sentences that are made of its numbers.

All of it comes from summaries and from the claim's row, as they are committed.
"""

from pathlib import Path

from compgen_jax.metrics import text
from compgen_jax.papers.league.runs import HOLDOUTS, TASKS
from figures.league import table

PAGE = Path(__file__).parents[2] / "docs" / "league.md"
MARKS = "<!-- league: python -m figures.results -->", "<!-- end of league -->"
TITLES = {"bumps": "two factors (x, y)", "sizes": "three factors (x, y, size)",
          "rotation": "turned digits"}  # fmt: skip
# what helps whom, and what is built in: of players, in a sentence each
REMEDIES = {"conv": ("conv, stripes shown", "stripes"),
            "low rank": ("low rank, penalties", "penalties")}  # fmt: skip
BY_PIXEL = {"MLP": "an MLP", "multiplicative": "a sum of products of one image per factor",
            "additive": "a sum of one image per factor"}  # fmt: skip
SHARED = {"pixelwise": "one MLP for all pixels", "transformer": "one transformer"}
BLOCK = "bumps", "block"


def lines(studies, claims: list[dict]) -> list[str]:
    """The table and the sentences; [] where nothing was played."""
    if not studies:
        return []
    cells, columns = table.cells(studies), table.columns(studies)
    sentences = [sentence for sentence in _sentences(studies, cells, columns, claims) if sentence]
    numbered = [f"{index}. {sentence}" for index, sentence in enumerate(sentences, start=1)]
    return [*_rows(studies, cells, columns), "", *numbered]


def with_league(page: str, studies, claims: list[dict]) -> str:
    return text.between(page, MARKS, lines(studies, claims))


def _rows(studies, cells, columns):
    titles = [f"{TASKS[task]}; {HOLDOUTS[holdout]}" for task, holdout in columns]
    counts, steps = table.parameters(studies), _steps(studies)
    yield f"| model | parameters | steps | {' | '.join(titles)} |"
    yield "|---" * (3 + len(titles)) + "|"
    for player, of_player in cells.items():
        shown = [_shown(of_player[column]) if column in of_player else "" for column in columns]
        yield f"| {player} | {counts[player]:,} | {steps[player]} | {' | '.join(shown)} |"
    best = [
        f"{number:.2f} ({name.replace('_', ' ')})"
        for name, number in (
            max(column.trivial.items(), key=lambda item: item[1]) for column in columns.values()
        )
    ]
    yield f"| *best trivial predictor* | | | {' | '.join(best)} |"


def _steps(studies) -> dict[str, str]:
    """Of every player, its optimiser steps, of each task where they differ."""
    found = {}
    for study in studies:
        found.setdefault(study.role.player, {})[study.role.task] = study.config.training.steps
    return {player: " / ".join(map(str, dict.fromkeys(own.values()))) for player, own in
            found.items()}  # fmt: skip


def _shown(cell) -> str:
    bold = "**" if cell.composes else ""
    seen = table.floor(cell.seen["value"])
    return f"{bold}{text.with_interval(cell.ood, 2)}{bold} / {seen}"


def _sentences(studies, cells, columns, claims):
    seeds = len(studies[0].config.training.seeds)
    shares = {task: column.seen / (column.seen + column.held_out)
              for (task, _), column in columns.items()}  # fmt: skip
    yield (
        f"{len(cells)} players have {len(studies)} matches of {seeds} networks each: shown are "
        + ", ".join(f"{share:.0%} of the combinations of {TITLES[task]}"
                    for task, share in shares.items()) + ", and the others asked for."
    )  # fmt: skip
    for task, holdout in columns:
        played = {p: own[task, holdout] for p, own in cells.items() if (task, holdout) in own}
        yield _of_column(TITLES[task], HOLDOUTS[holdout], played)
    yield _remedies(cells)
    yield _built_in(cells)
    yield _prediction(claims)


def _of_column(task: str, holdout: str, played: dict) -> str:
    """Who is surely right on more than half, and the best of the others; who did not learn."""
    ranked = sorted(played, key=lambda player: -played[player].ood["value"])
    composing = [player for player in ranked if played[player].composes]
    others = [player for player in ranked if played[player].learnt and player not in composing]
    failing = [player for player in ranked if not played[player].learnt]
    where = "combinations at random" if holdout == "at random" else f"a {holdout}"
    accuracy = lambda player: f"`{player}` {text.number(played[player].ood['value'], 2)}"
    found = ", ".join(map(accuracy, composing)) if composing else "nobody"
    parts = [f"{task.capitalize()}, {where} held out: surely right on more than half: {found}"]
    if others:
        parts.append(f"the best of the others that learnt is {accuracy(others[0])}")
    if failing:
        seen = [f"`{player}` ({table.floor(played[player].seen['value'])})" for player in failing]
        parts.append(f"not learnt by {', '.join(seen)}")
    return "; ".join(parts) + "."


def _remedies(cells) -> str:
    """What the paper's two remedies change, with a block held out."""
    parts = [
        f"`{plain}` has {_accuracy(cells, plain)}, with {remedy} {_accuracy(cells, helped)}"
        for plain, (helped, remedy) in REMEDIES.items()
        if _plays(cells, plain) and _plays(cells, helped)
    ]
    block = "The paper's remedies, with a block of two factors held out"
    return f"{block}: {'; '.join(parts)}." if parts else ""


def _built_in(cells) -> str:
    """What adding, multiplying, and one function for all pixels buy, with a block held out."""
    parts = [
        ", ".join(f"{what} has {_accuracy(cells, player)}" for player, what in group.items()
                  if _plays(cells, player))
        for group in (BY_PIXEL, SHARED)
    ]  # fmt: skip
    if not all(parts):
        return ""
    return (
        f"With parameters of each pixel's own, the same block held out, {parts[0]}; with a "
        f"function that all pixels share, {parts[1]}."
    )


def _plays(cells, player: str) -> bool:
    return BLOCK in cells.get(player, {})


def _accuracy(cells, player: str) -> str:
    cell = cells[player][BLOCK]
    seen = "" if cell.learnt else f" (seen {table.floor(cell.seen['value'])}: not learnt)"
    return text.with_interval(cell.ood, 2) + seen


def _prediction(claims) -> str:
    for row in claims:
        if row["claim"] == "L1":
            counts = {name: round(row["details"][name]["value"] or 0)
                      for name in ("networks", "families", "dropped")}  # fmt: skip
            readings = [_reading(row[name], name) for name in ("as_stated", "stricter")]
            without = text.with_interval(row["details"]["without volume"], 2)
            return (
                "Does the last hidden layer, measured on what was shown alone, tell who composes? "
                f"Of {counts['networks']} matches of {counts['families']} families "
                f"({counts['dropped']} more have no volume), the family that is predicted left out "
                f"of the fit: {'; '.join(readings)}. Without the volume, of all: {without}."
            )
    return ""


def _reading(reading: dict, name: str) -> str:
    numbers = [f"{condition} {text.with_interval(number, 2)}"
               for condition, number in reading["conditions"].items()]  # fmt: skip
    why = f" ({reading['reason']})" if reading["reason"] else ""
    return f"{name.replace('_', ' ')}, {' and '.join(numbers)}: {reading['verdict']}{why}"
