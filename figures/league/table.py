"""The league as a table: a row for each player, a column for each task and hold-out."""

import functools
from typing import NamedTuple

import jax
import numpy as np

from compgen_jax.config import Config
from compgen_jax.metrics import text
from compgen_jax.metrics.prediction import Networks
from compgen_jax.old_claims import LEAST_CELLS, TRAINED
from compgen_jax.papers.league.claims import GEOMETRY, LEARNT
from compgen_jax.papers.league.runs import HOLDOUTS, TASKS
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

LAST_HIDDEN = -2  # of the layers that are recorded, the output last
COMPOSES = 0.5  # of held-out combinations right, on the whole interval


class Cell(NamedTuple):
    """One match: accuracy on held-out and on seen combinations, {'value', 'ci95'}, of shares no
    narrower than `LEAST_CELLS` held-out combinations and between 0 and 1; and the accuracy OOD of
    the best trivial predictor."""

    ood: dict
    seen: dict
    trivial: float

    @property
    def learnt(self) -> bool:
        return self.seen["value"] >= TRAINED

    @property
    def composes(self) -> bool:
        return self.learnt and self.ood["ci95"][0] > max(COMPOSES, self.trivial)


class Column(NamedTuple):
    """What all matches of a task and a hold-out share: how many combinations are held out and how
    many are seen, and the accuracy OOD of every trivial predictor."""

    held_out: int
    seen: int
    trivial: dict


def columns(studies) -> dict:
    """{(task, hold-out): Column} of what was played, in order.

    Of `studies` no more is asked, here and in `cells`, than role, config and summary."""
    found = {}
    for study in studies:
        match = study.role.task, study.role.holdout
        if match not in found:
            found[match] = _column(study.config)
    order = [(task, holdout) for task in TASKS for holdout in HOLDOUTS]
    return {match: found[match] for match in order if match in found}


@functools.cache
def _column(config: Config) -> Column:
    task = config.task.make()
    masks = tasks.regions(task)
    scores = jax.jit(lambda key: tasks.trivial_scores(task, loop.stream(key, "test")))(
        jax.random.key(0)
    )
    trivial = {
        name: float(np.mean(own[task.accuracy], where=masks["ood"]))
        for name, own in jax.device_get(scores).items()
    }
    return Column(int(masks["ood"].sum()), int(masks["id"].sum()), trivial)


def cells(studies) -> dict:
    """{player: {(task, hold-out): Cell}}, players in the order in which they first play."""
    of_columns, found = columns(studies), {}
    for study in studies:
        match = study.role.task, study.role.holdout
        cell = _cell(study, of_columns[match])
        found.setdefault(study.role.player, {})[match] = cell
    return found


def _cell(study, column: Column) -> Cell:
    mean, accuracy = study.summary["mean"], study.config.task.make().accuracy
    ood, seen = (
        _share(mean[f"{region}.{accuracy}"], count)
        for region, count in (("ood", column.held_out), ("id", column.seen))
    )
    return Cell(ood, seen, max(column.trivial.values()))


def _share(number: dict, count: int) -> dict:
    value, least = number["value"], LEAST_CELLS / count
    low, high = (value if end is None else end for end in number["ci95"])
    ends = [max(0.0, min(low, value - least)), min(1.0, max(high, value + least))]
    return {"value": value, "ci95": ends}


def parameters(studies) -> dict[str, int]:
    """How many parameters a player trains on the first task that it plays."""
    found = {}
    for study in studies:
        if study.role.player not in found:
            trained = jax.tree.leaves(loop.template(study.config).params["params"])
            seeds = len(study.config.training.seeds)
            found[study.role.player] = sum(leaf.size for leaf in trained) // seeds
    return found


def networks(studies) -> Networks:
    """What the geometry of the last hidden layer, on seen combinations, has to predict: every
    match's OOD accuracy; means over seeds."""
    of_columns = columns(studies)
    found = [_cell(study, of_columns[study.role.task, study.role.holdout]) for study in studies]
    geometry = {
        name: np.array(
            [study.run.layers(f"id_cells.{name}")[:, LAST_HIDDEN].mean() for study in studies]
        )
        for name in GEOMETRY
    }
    return Networks(
        np.array([study.role.family for study in studies]),
        np.array([study.role.group for study in studies]),
        np.array([cell.ood["value"] for cell in found]),
        geometry | {LEARNT: np.array([cell.seen["value"] for cell in found])},
    )


def floor(share: float) -> str:
    """Two digits, rounded down: .9499 has not reached .95."""
    return text.number(int(share * 100 + 1e-9) / 100, 2)
