"""The table of docs/findings/league.md, from the committed summaries: the picture in numbers."""

import numpy as np

from compgen_jax.metrics import text
from compgen_jax.studies.benchmark.benchmark_presets import HOLDOUTS, TASKS

from . import benchmark_tables as tables


def lines(runs: dict) -> list[str]:
    """A row for each model, a column for each task and hold-out; [] without runs of the league."""
    runs = [run for run in runs.values() if run.config.name.startswith("league_")]
    if not runs:
        return []
    cells, columns = tables.cells(runs), tables.columns(runs)
    titles = [f"{TASKS[task]}; {HOLDOUTS[holdout]}" for task, holdout in columns]
    rows = [
        [model, *(_shown(of_model[place]) if place in of_model else "" for place in columns)]
        for model, of_model in cells.items()
    ]
    best = [_two(max(column.trivial.values())) for column in columns.values()]
    rows += [["*best trivial predictor*", *best]]
    for title, name in (("interpolation", "interpolated"), ("wide network", "wide_network")):
        shares = [
            [getattr(of_model[place], name) for of_model in cells.values() if place in of_model]
            for place in columns
        ]
        if not np.isnan(sum(shares, [])).all():  # summaries of older runs lack the wide network
            rows += [[f"*{title}, best code*", *(_two(np.fmax.reduce(each)) for each in shares)]]
    return [
        f"| model | {' | '.join(titles)} |",
        "|---" * (1 + len(titles)) + "|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _shown(cell) -> str:
    share = _two(cell.ood["value"])
    if not cell.learnt:
        return f"{share} †"
    return f"**{share}**" if cell.composes else share


def _two(share: float) -> str:
    return text.number(share, 2)
