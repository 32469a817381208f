"""docs/findings/league.md: the table, and sentences that are made of its numbers.

All of it comes from the committed summaries and from the claim's row.
"""

from compgen_jax.metrics import text
from compgen_jax.papers.league.runs import HOLDOUTS, TASKS, entry_of

from . import tables

TITLES = {"bumps": "two factors (x, y)", "sizes": "three factors (x, y, size)",
          "rotation": "turned digits"}  # fmt: skip
# By model, in one sentence each: what helps, and what is built in.
REMEDIES = {"conv": ("conv, stripes shown", "stripes"),
            "low rank": ("low rank, penalties", "penalties")}  # fmt: skip
BY_PIXEL = {"MLP": "an MLP", "multiplicative": "a sum of products of one image per factor",
            "additive": "a sum of one image per factor"}  # fmt: skip
SHARED = {"pixelwise": "one MLP for all pixels", "transformer": "one transformer"}
BLOCK = "bumps", "block"


def lines(runs: dict, claims: list[dict]) -> list[str]:
    """The table and the sentences; [] if there are no runs of the league."""
    runs = [run for run in runs.values() if run.config.name.startswith("league_")]
    if not runs:
        return []
    cells, columns = tables.cells(runs), tables.columns(runs)
    sentences = [sentence for sentence in _sentences(runs, cells, columns, claims) if sentence]
    numbered = [f"{index}. {sentence}" for index, sentence in enumerate(sentences, start=1)]
    return [*_rows(runs, cells, columns), "", *numbered]


def _rows(runs, cells, columns):
    titles = [f"{TASKS[task]}; {HOLDOUTS[holdout]}" for task, holdout in columns]
    counts, steps = tables.parameters(runs), _steps(runs)
    yield f"| model | parameters | steps | {' | '.join(titles)} |"
    yield "|---" * (3 + len(titles)) + "|"
    for model, of_model in cells.items():
        shown = [_shown(of_model[column]) if column in of_model else "" for column in columns]
        yield f"| {model} | {counts[model]:,} | {steps[model]} | {' | '.join(shown)} |"
    best = [
        f"{number:.2f} ({name.replace('_', ' ')})"
        for name, number in (
            max(column.trivial.items(), key=lambda item: item[1]) for column in columns.values()
        )
    ]
    yield f"| *best trivial predictor* | | | {' | '.join(best)} |"


def _steps(runs) -> dict[str, str]:
    """{model: its optimiser steps}, by task if they differ."""
    steps = {}
    for run in runs:
        model, _, task, _ = entry_of(run.config)
        steps.setdefault(model, {})[task] = run.config.training.steps
    return {model: " / ".join(map(str, dict.fromkeys(own.values()))) for model, own in
            steps.items()}  # fmt: skip


def _shown(cell) -> str:
    bold = "**" if cell.composes else ""
    seen = tables.floor(cell.seen["value"])
    interpolated = text.number(cell.interpolated, 2)
    return f"{bold}{text.with_interval(cell.ood, 2)}{bold} / {interpolated} / {seen}"


def _sentences(runs, cells, columns, claims):
    seeds = len(runs[0].config.training.seeds)
    shares = {task: column.seen / (column.seen + column.held_out)
              for (task, _), column in columns.items()}  # fmt: skip
    yield (
        f"{len(cells)} models have {len(runs)} runs of {seeds} seeds each: shown are "
        + ", ".join(f"{share:.0%} of the combinations of {TITLES[task]}"
                    for task, share in shares.items()) + ", and the others asked for."
    )  # fmt: skip
    for task, holdout in columns:
        of_models = {m: own[task, holdout] for m, own in cells.items() if (task, holdout) in own}
        yield _of_column(TITLES[task], HOLDOUTS[holdout], of_models)
    yield _remedies(cells)
    yield _built_in(cells)
    yield _prediction(claims)


def _of_column(task: str, holdout: str, cells: dict) -> str:
    """Who surely composes more than half, the best of the others, and who did not learn; '' where
    no share is known."""
    known = [model for model, cell in cells.items() if cell.ood["value"] == cell.ood["value"]]
    ranked = sorted(known, key=lambda model: -cells[model].ood["value"])
    if not ranked:
        return ""
    composing = [model for model in ranked if cells[model].composes]
    others = [model for model in ranked if cells[model].learnt and model not in composing]
    failing = [model for model in ranked if not cells[model].learnt]
    where = "combinations at random" if holdout == "at random" else f"a {holdout}"
    share = lambda model: f"`{model}` {text.number(cells[model].ood['value'], 2)}"
    right = ", ".join(map(share, composing)) if composing else "no model"
    parts = [
        f"{task.capitalize()}, {where} held out: surely more than half composed, and more than by "
        f"any trivial predictor: {right}"
    ]
    if others:
        parts.append(f"the best of the others that learnt is {share(others[0])}")
    if failing:
        seen = [f"`{model}` ({tables.floor(cells[model].seen['value'])})" for model in failing]
        parts.append(f"not learnt by {', '.join(seen)}")
    return "; ".join(parts) + "."


def _remedies(cells) -> str:
    """What the paper's two remedies change, with a block held out."""
    parts = [
        f"`{plain}` has {_composed(cells, plain)}, with {remedy} {_composed(cells, helped)}"
        for plain, (helped, remedy) in REMEDIES.items()
        if _has_run(cells, plain) and _has_run(cells, helped)
    ]
    block = "The paper's remedies, with a block of two factors held out"
    return f"{block}: {'; '.join(parts)}." if parts else ""


def _built_in(cells) -> str:
    """What adding, multiplying, and one function for all pixels buy, with a block held out."""
    parts = [
        ", ".join(f"{what} has {_composed(cells, model)}" for model, what in group.items()
                  if _has_run(cells, model))
        for group in (BY_PIXEL, SHARED)
    ]  # fmt: skip
    if not all(parts):
        return ""
    return (
        f"With parameters of each pixel's own, the same block held out, {parts[0]}; with a "
        f"function that all pixels share, {parts[1]}."
    )


def _has_run(cells, model: str) -> bool:
    return BLOCK in cells.get(model, {})


def _composed(cells, model: str) -> str:
    cell = cells[model][BLOCK]
    seen = "" if cell.learnt else f" (seen {tables.floor(cell.seen['value'])}: not learnt)"
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
                f"Of {counts['networks']} runs of {counts['families']} families "
                f"({counts['dropped']} more have no volume), the family that is predicted left out "
                f"of the fit: {'; '.join(readings)}. Without the volume, of all: {without}."
            )
    return ""


def _reading(reading: dict, name: str) -> str:
    numbers = [f"{condition} {text.with_interval(number, 2)}"
               for condition, number in reading["conditions"].items()]  # fmt: skip
    why = f" ({reading['reason']})" if reading["reason"] else ""
    return f"{name.replace('_', ' ')}, {' and '.join(numbers)}: {reading['verdict']}{why}"
