"""The league as a table: a row for each model, a column for each task and hold-out.

Of a run only the config and the summary are needed.
"""

import functools
from typing import NamedTuple

import jax
import numpy as np

from compgen_jax.claims import TRAINED
from compgen_jax.config import Config
from compgen_jax.statistics import LEAST_CELLS
from compgen_jax.studies.benchmark.benchmark_presets import HOLDOUTS, TASKS, entry_of
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

from ..tables import errors_of_images

COMPOSES = 0.5  # of held-out combinations, on the whole interval
UNKNOWN = {"value": np.nan, "ci95": [np.nan, np.nan]}


class Cell(NamedTuple):
    """One run: the share of held-out combinations that it composes (`Entry.score`) and its accuracy
    on seen ones, {'value', 'ci95'}; the share OOD of the interpolator of its codes, of the wide
    network, and of the best trivial predictor, those two included. Intervals lie between 0 and 1
    and are no narrower than `LEAST_CELLS` combinations. What a summary lacks is NaN."""

    ood: dict
    seen: dict
    interpolated: float
    wide_network: float
    trivial: float

    @property
    def learnt(self) -> bool:
        return self.seen["value"] >= TRAINED

    @property
    def composes(self) -> bool:
        return self.learnt and self.ood["ci95"][0] > max(COMPOSES, self.trivial)


class Column(NamedTuple):
    """What all runs of a task and a hold-out share: how many combinations are held out and how many
    are seen, and the share OOD of every trivial predictor that does not depend on their code."""

    held_out: int
    seen: int
    trivial: dict


def columns(runs) -> dict:
    """{(task, hold-out): Column} of the runs, in order."""
    by_place = {}
    for run in runs:
        _, _, *place = entry_of(run.config)
        if tuple(place) not in by_place:
            by_place[tuple(place)] = _column(run.config)
    order = [(task, holdout) for task in TASKS for holdout in HOLDOUTS]
    return {place: by_place[place] for place in order if place in by_place}


@functools.cache
def _column(config: Config) -> Column:
    task = config.task.make()
    score, masks = entry_of(config).score(task.accuracy), tasks.regions(task)
    scores = jax.jit(lambda key: tasks.trivial_scores(task, loop.stream(key, "test")))(
        jax.random.key(0)
    )
    trivial = {
        name: float(np.mean(own[score], where=masks["ood"]))
        for name, own in jax.device_get(scores).items()
    }
    return Column(int(masks["ood"].sum()), int(masks["id"].sum()), trivial)


def cells(runs) -> dict:
    """{model: {(task, hold-out): Cell}}, models in the order of their first runs."""
    of_columns, by_model = columns(runs), {}
    for run in runs:
        model, _, *place = entry_of(run.config)
        cell = _cell(run, of_columns[tuple(place)])
        by_model.setdefault(model, {})[tuple(place)] = cell
    return by_model


def _cell(run, column: Column) -> Cell:
    mean, accuracy = run.summary["mean"], run.config.task.make().accuracy
    score = entry_of(run.config).score(accuracy)
    ood = _share(mean.get(f"ood.{score}", UNKNOWN), column.held_out)
    seen = _share(mean[f"id.{accuracy}"], column.seen)
    kernels = [
        mean.get(f"ood.{name}_{score}", UNKNOWN)["value"]
        for name in ("interpolator", "wide_network")
    ]
    return Cell(ood, seen, *kernels, float(np.nanmax([*column.trivial.values(), *kernels])))


def _share(number: dict, count: int) -> dict:
    value, least = number["value"], LEAST_CELLS / count
    low, high = (value if end is None else end for end in number["ci95"])
    ends = [max(0.0, min(low, value - least)), min(1.0, max(high, value + least))]
    return {"value": value, "ci95": ends if value == value else UNKNOWN["ci95"]}


def parameters(runs) -> dict[str, int]:
    """{model: how many parameters it trains on its first task}"""
    counts = {}
    for run in runs:
        model = entry_of(run.config).model
        if model not in counts:
            trained = jax.tree.leaves(loop.template(run.config).params["params"])
            seeds = len(run.config.training.seeds)
            counts[model] = sum(leaf.size for leaf in trained) // seeds
    return counts


def table(runs: dict) -> list[str]:
    """Lines of RESULTS.md on what every run scores."""
    return errors_of_images({run.config.name: run.summary for run in runs.values()})
