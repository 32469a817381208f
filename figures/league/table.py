"""The league as a table: a row for each player, a column for each task and hold-out."""

from typing import NamedTuple

import jax
import numpy as np

from compgen_jax.analysis.prediction import Networks
from compgen_jax.claims.league import GEOMETRY, LEARNT
from compgen_jax.claims.verdicts import TRAINED
from compgen_jax.training import loop
from figures.league.networks import HOLDOUTS, TASKS

LAST_HIDDEN = -2  # of the layers that are recorded, the output last


class Cell(NamedTuple):
    """One match: accuracy on held-out and on seen combinations, {'value', 'ci95'}, and the error
    OOD over that of the best trivial predictor."""

    ood: dict
    seen: dict
    over_trivial: float

    @property
    def learnt(self) -> bool:
        return self.seen["value"] >= TRAINED


def columns(studies) -> list[tuple]:
    """(task, hold-out) of every column that was played, in order.

    Of `studies` no more is asked, here and in `cells`, than role, config and summary."""
    played = {(study.role.task, study.role.holdout) for study in studies}
    return [(task, holdout) for task in TASKS for holdout in HOLDOUTS if (task, holdout) in played]


def cells(studies) -> dict:
    """{player: {(task, hold-out): Cell}}, players in the order in which they first play."""
    found = {}
    for study in studies:
        match = study.role
        found.setdefault(match.player, {})[match.task, match.holdout] = _cell(study)
    return found


def _cell(study) -> Cell:
    mean, task = study.summary["mean"], study.config.task.make()
    ood, seen = (mean[f"{region}.{task.accuracy}"] for region in ("ood", "id"))
    trivial = [mean[f"ood.{name}_{task.error}"]["value"] for name in task.baselines]
    return Cell(ood, seen, mean[f"ood.{task.error}"]["value"] / min(trivial))


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
    found = [_cell(study) for study in studies]
    predictors = {
        name: np.array([study.seen.numbers[name][:, LAST_HIDDEN].mean() for study in studies])
        for name in GEOMETRY
    }
    return Networks(
        np.array([study.role.family for study in studies]),
        np.array([f"{study.role.task}, {study.role.holdout}" for study in studies]),
        np.array([cell.ood["value"] for cell in found]),
        predictors | {LEARNT: np.array([cell.seen["value"] for cell in found])},
    )
