"""The league as a table: a row for each player, a column for each task and hold-out."""

from typing import NamedTuple

import jax
import numpy as np

from compgen_jax.analysis.prediction import Networks
from compgen_jax.analysis.statistics import mean_with_interval
from compgen_jax.claims.league import GEOMETRY, LEARNT
from compgen_jax.claims.verdicts import TRAINED
from figures.league.networks import HOLDOUTS, TASKS


class Cell(NamedTuple):
    """One match: accuracy on held-out and on seen combinations, {'value', 'ci95'}; the error OOD
    over that of the best trivial predictor; and how many parameters were trained."""

    ood: dict
    seen: dict
    over_trivial: float
    parameters: int

    @property
    def learnt(self) -> bool:
        return self.seen["value"] >= TRAINED


def columns(studies) -> list[tuple]:
    """(task, hold-out) of every column that was played, in order."""
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
    mean, task = study.summary["mean"], study.run.task
    ood, seen = (mean[f"{region}.{task.accuracy}"] for region in ("ood", "id"))
    trivial = [mean[f"ood.{name}_{task.error}"]["value"] for name in task.baselines]
    trained = jax.tree.leaves(study.run.params["params"])
    count = sum(leaf.size for leaf in trained) // len(study.run.seeds)
    return Cell(ood, seen, mean[f"ood.{task.error}"]["value"] / min(trivial), count)


def networks(studies) -> Networks:
    """What the geometry of the last hidden layer, on seen combinations, has to predict: every
    match's OOD accuracy; means over seeds."""
    rows = [(study.role, _cell(study), _predictors(study)) for study in studies]
    predictors = {name: np.array([own[name] for *_, own in rows]) for name in (*GEOMETRY, LEARNT)}
    return Networks(
        np.array([match.family for match, *_ in rows]),
        np.array([f"{match.task}, {match.holdout}" for match, *_ in rows]),
        np.array([cell.ood["value"] for _, cell, _ in rows]),
        predictors,
    )


def _predictors(study) -> dict:
    numbers = study.seen.numbers
    found = {name: float(np.mean(numbers[name][:, -2])) for name in GEOMETRY}
    return found | {LEARNT: _cell(study).seen["value"]}


def mean_accuracy(of_player: dict) -> dict:
    """Of a player's cells, the mean accuracy OOD over its matches with an interval over them."""
    return mean_with_interval([cell.ood["value"] for cell in of_player.values()])
