"""The table of the benchmark: of a run only the config and the summary are needed."""

from itertools import product

import numpy as np
import pandas as pd

from compgen_jax.claims import TRAINED
from compgen_jax.config import Config
from compgen_jax.metrics import text
from compgen_jax.statistics import LEAST_CELLS
from compgen_jax.studies.benchmark.benchmark_presets import ENTRIES, HOLDOUTS, TASKS
from compgen_jax.studies.real_factors.real_factors_claims import trivial_shares
from compgen_jax.tasks import task as tasks

from ..tables import errors_of_images, table

COMPOSES = 0.5  # of held-out combinations, on the whole interval
BASELINES = {
    "trivial": "best trivial predictor",
    "interpolator": "interpolation, best code",
    "wide_network": "wide network, best code",
}


def score_of(config: Config) -> str:
    """The score that says whether a combination is composed: of bumps and sprites whether the image
    is rendered, of digits the task's accuracy."""
    return "exact_accuracy" if config.task.name == "rotation" else "rendered"


def cell(run, count: int, trivial: float) -> dict:
    """Of one run, and `count` held-out combinations: the share of them that are right, whether it
    learnt and whether it composes, so that the interval lies above one half and above every trivial
    predictor, and the shares of these. The interval is no narrower than `LEAST_CELLS`
    combinations."""
    mean, score = run.summary["mean"], score_of(run.config)
    share, low = mean[f"ood.{score}"]["value"], mean[f"ood.{score}"]["ci95"][0]
    kernels = {
        name: mean.get(f"ood.{name}_{score}", {"value": np.nan})["value"]
        for name in ("interpolator", "wide_network")
    }
    best = np.nanmax([COMPOSES, trivial, *kernels.values()])
    low = min(share if low is None else low, share - LEAST_CELLS / count)
    learnt = mean[f"id.{run.config.task.make().accuracy}"]["value"] >= TRAINED
    composes = learnt and low > best
    return {"share": share, "learnt": learnt, "composes": composes, "trivial": trivial} | kernels


def lines(runs: dict) -> list[str]:
    """A row for each model, a column for each task and hold-out; [] without runs of the
    benchmark."""
    of_columns, cells = {}, []
    for entry, run in ((ENTRIES[name], run) for name, run in runs.items() if name in ENTRIES):
        column = f"{TASKS[entry.task]}; {HOLDOUTS[entry.holdout]}"
        if column not in of_columns:
            # how many combinations it holds out, and the largest share of them that a trivial
            # predictor gets right which does not depend on the code
            ood = tasks.regions(run.config.task.make())["ood"]
            trivial = trivial_shares(run.config.task, score_of(run.config))
            of_columns[column] = int(ood.sum()), max(trivial.values())
        numbers = cell(run, *of_columns[column])
        words = text.number(numbers["share"], 2)
        words = f"**{words}**" if numbers["composes"] else words
        words = words if numbers["learnt"] else f"{words} †"
        cells.append({"model": entry.model, "column": column, "words": words} | numbers)
    if not cells:
        return []
    columns = [f"{task}; {holdout}" for task, holdout in product(TASKS.values(), HOLDOUTS.values())]
    columns, cells = [title for title in columns if title in of_columns], pd.DataFrame(cells)
    words = cells.pivot(index="model", columns="column", values="words")
    words = words.reindex(index=cells.model.unique(), columns=columns).fillna("")
    best = cells.groupby("column")[list(BASELINES)].max().reindex(columns)
    rows = words.reset_index().to_numpy().tolist()
    for name, title in BASELINES.items():
        if best[name].notna().any():
            rows.append([f"*{title}*", *(text.number(share, 2) for share in best[name])])
    return table(["model", *columns], rows)


def with_errors(runs: dict) -> list[str]:
    """The table, and one of all scores with their intervals."""
    errors = errors_of_images({run.config.name: run.summary for run in runs.values()})
    return [*lines(runs), "", *errors]
