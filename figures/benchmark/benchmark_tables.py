"""The table of the benchmark: of a run only the config and the summary are needed."""

import functools
from itertools import product

import jax
import numpy as np

from compgen_jax.claims import TRAINED
from compgen_jax.config import Config
from compgen_jax.metrics import text
from compgen_jax.statistics import LEAST_CELLS
from compgen_jax.studies.benchmark.benchmark_presets import ENTRIES, HOLDOUTS, TASKS, entry_of
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

from ..tables import errors_of_images, table

COMPOSES = 0.5  # of held-out combinations, on the whole interval
KERNELS = "interpolator", "wide_network"
BASELINES = {
    "trivial": "best trivial predictor",
    "interpolator": "interpolation, best code",
    "wide_network": "wide network, best code",
}


@functools.cache
def held_out(config: Config) -> tuple[int, float]:
    """How many combinations a task holds out, and the largest share of them that a trivial
    predictor gets right which does not depend on the code."""
    task = config.task.make()
    ood = tasks.regions(task)["ood"]
    key = loop.stream(jax.random.key(0), "test")
    scores = jax.device_get(jax.jit(lambda: tasks.trivial_scores(task, key))())
    of_predictors = [np.mean(values[score_of(config)], where=ood) for values in scores.values()]
    return int(ood.sum()), float(max(of_predictors))


def score_of(config: Config) -> str:
    """The score that says whether a combination is composed: of bumps and sprites whether the image
    is rendered, of digits the task's accuracy."""
    return "exact_accuracy" if entry_of(config).task == "rotation" else "rendered"


def cell(run, count: int, trivial: float) -> dict:
    """Of one run, and what `held_out` says of its column: the share of held-out combinations that
    are right, whether it learnt and whether it composes, so that the interval lies above one half
    and above every trivial predictor, and the shares of these. The interval is no narrower than
    `LEAST_CELLS` combinations."""
    mean, score = run.summary["mean"], score_of(run.config)
    share, low = mean[f"ood.{score}"]["value"], mean[f"ood.{score}"]["ci95"][0]
    kernels = {
        name: mean.get(f"ood.{name}_{score}", {"value": np.nan})["value"] for name in KERNELS
    }
    best = np.nanmax([COMPOSES, trivial, *kernels.values()])
    low = min(share if low is None else low, share - LEAST_CELLS / count)
    learnt = mean[f"id.{run.config.task.make().accuracy}"]["value"] >= TRAINED
    composes = learnt and low > best
    return {"share": share, "learnt": learnt, "composes": composes, "trivial": trivial} | kernels


def lines(runs: dict) -> list[str]:
    """A row for each model, a column for each task and hold-out; [] without runs of the
    benchmark."""
    runs = {ENTRIES[name]: run for name, run in runs.items() if name in ENTRIES}
    if not runs:
        return []
    configs = {entry[1:]: run.config for entry, run in reversed(runs.items())}
    columns = [place for place in product(TASKS, HOLDOUTS) if place in configs]
    of_columns = {place: held_out(configs[place]) for place in columns}
    cells = {entry: cell(run, *of_columns[entry[1:]]) for entry, run in runs.items()}
    rows = []
    for model in dict.fromkeys(entry.model for entry in cells):
        row = [model]
        for place in columns:
            of_model = cells.get((model, *place))
            share = "" if of_model is None else text.number(of_model["share"], 2)
            if of_model and of_model["composes"]:
                share = f"**{share}**"
            row.append(share if not of_model or of_model["learnt"] else f"{share} †")
        rows.append(row)
    for name, title in BASELINES.items():
        shares = [
            np.fmax.reduce([values[name] for entry, values in cells.items() if entry[1:] == place])
            for place in columns
        ]
        if not np.isnan(shares).all():
            rows.append([f"*{title}*", *(text.number(share, 2) for share in shares)])
    titles = [f"{TASKS[task]}; {HOLDOUTS[holdout]}" for task, holdout in columns]
    return table(["model", *titles], rows)


def with_errors(runs: dict) -> list[str]:
    """The table, and one of all scores with their intervals."""
    errors = errors_of_images({run.config.name: run.summary for run in runs.values()})
    return [*lines(runs), "", *errors]
