"""docs/league.md: the table, and what it shows in sentences that are made of its numbers.

All of it comes from summaries and from the claim's row, as they are committed.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from compgen_jax.analysis import text
from compgen_jax.tasks import task as tasks
from figures.league import networks, table
from figures.league.networks import HOLDOUTS, TASKS

PAGE = Path(__file__).parents[2] / "docs" / "league.md"
MARKS = "<!-- league: python -m figures.results -->", "<!-- end of league -->"
MOST = 0.5  # of held-out combinations right: a player composes
TITLES = {"bumps": "two factors (x, y)", "sizes": "three factors (x, y, size)",
          "rotation": "turned digits"}  # fmt: skip


def committed(folder: Path, scale: str) -> list:
    """What `table` asks of a study, of every match whose summary is in the folder."""
    return [
        SimpleNamespace(role=network.role, config=network.config,
                        summary=json.loads((folder / f"{network.name}.json").read_text()))
        for network in networks.networks(scale)
        if (folder / f"{network.name}.json").exists()
    ]  # fmt: skip


def lines(studies, claims: list[dict]) -> list[str]:
    """The table and the sentences; [] where nothing was played."""
    if not studies:
        return []
    cells, columns = table.cells(studies), table.columns(studies)
    return [*_rows(studies, cells, columns), "", *_numbered(_sentences(studies, cells, claims))]


def with_league(page: str, studies, claims: list[dict]) -> str:
    return text.between(page, MARKS, lines(studies, claims))


def _rows(studies, cells, columns):
    titles = [f"{TASKS[task]}; {HOLDOUTS[holdout]}" for task, holdout in columns]
    counts = table.parameters(studies)
    yield f"| model | parameters | {' | '.join(titles)} |"
    yield "|---" * (2 + len(titles)) + "|"
    for player, of_player in cells.items():
        shown = [_cell(of_player[column]) if column in of_player else "" for column in columns]
        yield f"| {player} | {counts[player]:,} | {' | '.join(shown)} |"


def _cell(cell) -> str:
    starred = "\\*" if cell.over_trivial >= 1 else ""
    return f"{text.with_interval(cell.ood, 2)}{starred}; seen {text.number(cell.seen['value'], 3)}"


def _numbered(sentences):
    return [f"{index}. {sentence}" for index, sentence in enumerate(sentences, start=1)]


def _sentences(studies, cells, claims):
    seen = {task: _share_seen(studies, task) for task in TASKS}
    yield (
        f"{len(studies)} matches of {len(cells)} players, "
        f"{len(studies[0].config.training.seeds)} networks each: "
        + ", ".join(f"{share:.0%} of the combinations of {TITLES[task]}" for task, share in
                    seen.items() if share) + " are shown, and the others asked for."
    )  # fmt: skip
    for task in TASKS:
        for holdout in HOLDOUTS:
            played = {p: own[task, holdout] for p, own in cells.items() if (task, holdout) in own}
            if played:
                yield _of_column(TITLES[task], HOLDOUTS[holdout], played)
    yield _remedies(cells)
    yield _built_in(cells)
    yield from _prediction(claims)


def _share_seen(studies, task: str) -> float:
    """Of the combinations of a task, as its first match has it; 0 where there is none."""
    for study in studies:
        if study.role.task == task:
            made = study.config.task.make()
            return 1 - float(np.mean(np.asarray(made.held_out(tasks.points(made)))))
    return 0.0


def _of_column(task: str, holdout: str, played: dict) -> str:
    """Who composes, among those that learnt what they were shown."""
    learnt = {player: cell for player, cell in played.items() if cell.learnt}
    ranked = sorted(learnt, key=lambda player: -learnt[player].ood["value"])
    composing = [player for player in ranked if learnt[player].ood["value"] > MOST]
    named = ", ".join(f"{player} {text.number(learnt[player].ood['value'], 2)}"
                      for player in composing)  # fmt: skip
    found = f": {named}" if composing else ""
    where = "combinations held out at random" if holdout == "at random" else f"a {holdout} held out"
    sentence = f"{task.capitalize()}, {where}: of {len(learnt)} players that learnt what they "
    sentence += f"were shown, {len(composing)} draw most of the rest right{found}"
    others = [player for player in ranked if player not in composing]
    if others:
        best = learnt[others[0]].ood["value"]
        sentence += f"; of the others none is above {text.number(best, 2)}"
    return sentence + "."


def _remedies(cells) -> str:
    """What the paper's two remedies change, with a block held out."""
    pairs = [("conv", "conv, stripes shown", "stripes"),
             ("low rank", "low rank, penalties", "penalties on embeddings")]  # fmt: skip
    parts = [
        f"{remedy} raise {plain} from {_accuracy(cells, plain)} to {_accuracy(cells, helped)}"
        for plain, helped, remedy in pairs
        if plain in cells and helped in cells
    ]
    return f"The paper's remedies, with a block of two factors held out: {' and '.join(parts)}."


def _built_in(cells) -> str:
    """What adding, multiplying, and one function for all pixels buy, with a block held out."""
    shown = [f"{player} {_accuracy(cells, player)} (seen {_seen(cells, player)})"
             for player in ("additive", "multiplicative", "MLP", "pixelwise", "transformer")
             if player in cells]  # fmt: skip
    return (
        "A sum or a product of one image per factor, with parameters of each pixel's own, or one "
        f"function that all pixels share, with a block of two factors held out: {', '.join(shown)}."
    )


def _accuracy(cells, player: str) -> str:
    return text.with_interval(cells[player]["bumps", "block"].ood, 2)


def _seen(cells, player: str) -> str:
    return text.number(cells[player]["bumps", "block"].seen["value"], 2)


def _prediction(claims):
    for row in claims:
        if row["claim"] == "L1":
            alone = [f"{name} {text.with_interval(number, 2)}"
                     for name, number in row["details"].items() if name != "networks"]  # fmt: skip
            number = {"value": row["as_stated"]["measured"], "ci95": row["as_stated"]["ci95"]}
            yield (
                "Does the last hidden layer, measured on what was shown alone, tell who composes? "
                "Ranks inside a task and a hold-out, the family predicted left out of the fit: "
                f"correlation {text.with_interval(number, 2)}, {row['as_stated']['verdict']} as "
                f"stated, {row['stricter']['verdict']} in the stricter reading."
            )
            yield f"Each number on its own, inside a task and a hold-out: {'; '.join(alone)}."
