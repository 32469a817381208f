"""Constructions that are known to compute the teacher, or not to, with so many neurons; and widths
that are known to be needed. Dimensions as in `constructions`."""

from functools import cache
from math import comb

import jax.numpy as jnp
import numpy as np

from compgen_jax.papers.scale import constructions
from compgen_jax.papers.scale.constructions import ReluMLP
from compgen_jax.papers.scale.known_students import SEEDS, known_run
from compgen_jax.runs.run import Run
from compgen_jax.tasks.module_supports import all_sets
from compgen_jax.tasks.modules import Teacher

SIZE, MOST, TASKS = 8, 3, 200
MODULES = (4, 8, 32)
LOW, HIGH, KNOTS = 8, 32, (4, 8, 16, 32)


def small_bound(teacher: Teacher) -> ReluMLP:
    """The k-hot network with gates that close at half of what they may have to hold back."""
    largest = jnp.abs(teacher.weights).sum(axis=-1) + teacher.biases
    return constructions.k_hot(teacher, float(largest.max()) / 2)


def bank_per_task(teacher: Teacher) -> ReluMLP:
    """One bank of H neurons for each set of K modules, open where just these are active."""
    modules, hidden, inputs = teacher.weights.shape
    sets = all_sets(modules, teacher.most).astype(float)
    sets = sets[sets.sum(axis=1) == teacher.most]
    weights, biases, readout = (np.asarray(part, np.float64) for part in teacher[:3])
    mixed = np.einsum("tm,mhi->ith", sets, weights).reshape(inputs, -1) / teacher.most**0.5
    own = (sets @ biases).ravel() / teacher.most**0.5
    closed = np.abs(mixed).sum(axis=0) + np.abs(own)
    of_z = np.repeat(2 * sets.T - 1, hidden, axis=1) * closed
    return constructions.network_of(
        (np.concatenate([of_z, mixed]), own - teacher.most * closed),
        (np.tile(readout.T, (len(sets), 1)), np.zeros(len(readout))),
    )


EXACT = {
    "k-hot gates": constructions.k_hot,
    "small bound": small_bound,
    "graded": lambda teacher: constructions.graded(teacher, max(KNOTS)),
    "bank per task": bank_per_task,
}
EXACT_DO = {
    "k-hot gates": "the construction",
    "small bound": "its gates close at half of what they have to hold back",
    "graded": f"the construction for graded tasks, with {max(KNOTS)} knots",
    "bank per task": "a bank of neurons for each set of modules",
}


def exact(name: str) -> Run:
    rows = constructions.table_k_hot(MODULES, SEEDS, SIZE, MOST, TASKS, EXACT[name])
    return Run.known(SEEDS, exact=rows)


@cache
def _graded(common: bool):
    return constructions.table_graded((LOW, HIGH), KNOTS, SEEDS, SIZE, MOST, TASKS, common)


def _scaled(row, neurons=1.0, error=1.0):
    """The row with so many times the neurons and the error."""
    scaled = {"neurons": row["neurons"] * neurons, "rmse": row["rmse"] * error}
    return row | scaled | {"r2": 1 - (1 - row["r2"]) * error**2}


GRADED = {
    "graded": lambda row: row,
    "bank per module": lambda row: _scaled(row, neurons=row["modules"]),
    "bank per task": lambda row: _scaled(row, neurons=comb(row["modules"], MOST)),
    "constant knots": lambda row: _scaled(row, error=(row["knots"] / min(KNOTS)) ** 1.8),
    "steps": lambda row: _scaled(row, error=(row["knots"] / min(KNOTS)) ** 0.8),
}
GRADED_DO = {
    "graded": "the construction",
    "bank per module": "as many neurons for each module",
    "bank per task": "as many for each set of modules",
    "constant knots": "an error that more neurons do not lessen",
    "steps": "an error that falls as the number of knots, not as its square",
}


def graded(name: str) -> Run:
    rows = lambda common: list(map(GRADED[name], _graded(common)))
    return Run.known(SEEDS, graded=rows(True), graded_own=rows(False))


SWEPT, WIDTHS = (4, 8, 16), (16, 32, 64, 128, 256, 512)
JITTER = 0.05  # standard deviation of the logarithm of a needed width
# exponent of the needed width on the modules, its value at 8 modules, R^2 ID, and what it is
GROWTH = {
    "root": (0.5, 80, 0.99, "grows as the root of the modules"),
    "linear": (1.0, 80, 0.99, "in proportion to the modules"),
    "power 1.5": (1.5, 80, 0.99, "as their power 1.5"),
    "square": (2.0, 80, 0.99, "as their square"),
    "square, narrow": (2.0, 20, 0.99, "the same, and 4 modules need less than the narrowest has"),
    "narrow": (1.0, 4, 0.99, "is less than the narrowest has"),
    "never": (1.0, 10**4, 0.99, "is more than the widest has"),
    "untrained": (1.0, 80, 0.8, "in proportion, of students that did not learn the seen sets"),
}


def trained(name: str) -> list[Run]:
    """Students of every number of modules and width, which see three quarters of the sets."""
    exponent, at_8, id_r2, _ = GROWTH[name]
    jitter = np.exp(JITTER * np.random.default_rng(0).normal(size=(len(SWEPT), len(SEEDS))))
    found = []
    for modules, of_seed in zip(SWEPT, jitter, strict=True):
        needed = at_8 * (modules / 8) ** exponent * of_seed
        for width in WIDTHS:
            scores = {
                "ood.r2": 1 - 0.05 * (needed / width) ** 1.5,
                "id.r2": np.full(len(SEEDS), id_r2),
            }
            found.append(known_run(scores, modules=modules, width=width, seen=0))
    return found
