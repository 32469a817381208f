"""The signal of one seed: its similarities, superpositions, kernels on the factors, and ranks."""

from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import decomposition, kernels, layers, superposition
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

EXAMPLES = 4


class Cells(NamedTuple):
    """The grid that is measured: its points (B, F), truths (B, ...), inputs, held-out cells and
    their distance to the seen ones, and the cells at the grid's border."""

    sizes: tuple
    points: np.ndarray
    inputs: object
    truths: np.ndarray
    held_out: np.ndarray
    distance: np.ndarray
    border: np.ndarray

    def over_grid(self, values_B):
        return grids.over_grid(values_B, self.sizes)


def similarities(signals_Bx, truths_Bx) -> dict:
    """The three similarities of Figure 8, of signals on the truths' scale."""
    flat = np.asarray(signals_Bx).reshape(len(signals_Bx), -1)
    gram = kernels.gram(flat)
    largest = float(truths_Bx.max())
    return {
        "cosine": kernels.cosine(gram),
        "l2": kernels.l2(gram),
        "overlap": kernels.overlap(flat[:, None], amplitude=largest if largest > 0 else 1.0),
    }


def measure(program, params, seed: int, signals_BxD, cells: Cells, true: dict):
    """Numbers of the signal of one seed, and its maps: similarities, and the superpositions of a
    few held-out cells."""
    task, held_out = program.task, cells.held_out
    signals = np.asarray(signals_BxD, np.float64)
    found_similarities = similarities(signals_BxD, cells.truths)
    numbers = {}
    for name, kernel in found_similarities.items():
        found = layers.agreements(kernel, cells.points, held_out, true[name])
        numbers |= {f"output.{name}.{key}": value for key, value in found.items()}
    dataset = loop.dataset_of(task, jax.random.key(seed))
    numbers |= _ranks(signals_BxD, dataset, task, cells)
    parts = _superpositions(program, params, dataset, signals_BxD, cells)
    where = cells.points[held_out], cells.distance[held_out]
    for name, part in parts.items():
        found = superposition.scores(signals[held_out], part, *where)
        numbers |= {f"output.superposition.{name}.{key}": value for key, value in found.items()}
    numbers |= _regression_numbers(task, signals_BxD, cells)
    shape = cells.truths.shape[1:]
    # well inside the hole, where nothing near has been seen
    distance = cells.distance[held_out]
    inside = np.flatnonzero(distance >= 0.6 * distance.max())
    chosen = inside[np.linspace(0, len(inside) - 1, EXAMPLES + 2).round().astype(int)[1:-1]]
    examples = {
        f"superposition.{name}": part[chosen].reshape(EXAMPLES, -1, *shape)
        for name, part in parts.items()
        if part is not None
    }
    examples["superposition.output"] = signals[held_out][chosen].reshape(EXAMPLES, *shape)
    examples["superposition.points"] = cells.points[held_out][chosen]
    examples |= {f"similarity.{name}": kernel for name, kernel in found_similarities.items()}
    return numbers, {name: value.astype(np.float32) for name, value in examples.items()}


def _superpositions(program, params, dataset, signals_BxD, cells: Cells) -> dict:
    """Signals (Q, F, D) of the held-out cells' parts, in the paper's two constructions; None where
    one cannot be made."""
    task, held_out = program.task, cells.held_out
    found = {"mean_code": None, "sums": None}
    if task.parts and isinstance(dataset, sampling.Table):
        training = tasks.examples_at(task, jax.random.key(0), dataset.points[: int(dataset.count)])
        mean_code = training.input.mean(axis=0)
        of_code = partial(superposition.mean_code_superpositions, lengths=task.parts)
        alone = jax.vmap(of_code, (0, None))(cells.inputs[held_out], mean_code)
        found["mean_code"] = np.stack(
            [program.predictions(params, codes) for codes in alone], axis=1
        )
    seen = cells.points[~held_out]
    with_every_value = all(np.isin(c, s).all() for c, s in zip(cells.points[held_out].T, seen.T,
                                                               strict=True))  # fmt: skip
    if with_every_value:
        found["sums"] = superposition.matching_sums(
            signals_BxD[~held_out], seen, cells.points[held_out]
        )
    return found


def _regression_numbers(task, signals_BxD, cells: Cells) -> dict:
    """Kernels on the factors, in cells; errors over a blank signal's. NaN where cells are no
    distance: of a factor that is periodic or has no order."""
    names = ("factorized", "isotropic")
    if any(np.isfinite(factor.period) or not factor.real for factor in task.factors):
        return {f"output.kernel_regression.{name}_error": np.nan for name in names}
    held_out, numbers = cells.held_out, {}
    index = tasks.nearest_values(task, cells.points).astype(np.float32)
    points, outputs = index[held_out], np.asarray(signals_BxD, np.float64)[held_out]
    blank = np.mean(cells.truths[held_out] ** 2)
    for name in names:
        fit = kernels.kernel_regression(
            index[~held_out], signals_BxD[~held_out], points, isotropic=name == "isotropic"
        )
        error = np.mean((fit.prediction - outputs) ** 2)
        numbers[f"output.kernel_regression.{name}_error"] = error / blank
    return numbers


def _ranks(signals_BxD, dataset, task, cells: Cells) -> dict:
    """Ranks of the signals over the factors (Eq 13 to 17), the largest of any entry, and how far
    the law of the training draw is from a mixture of one, and of two, products (Eq 18-20); the
    largest of one factor against the others."""
    numbers = {"output.target_rank": 0.0, "output.epsilon_rank": 0.0}
    for factor in decomposition.distinct_factors(cells.sizes):
        found = decomposition.target_rank(signals_BxD, cells.sizes, factor)
        for name in ("rank", "epsilon_rank"):
            key = f"output.{name if name != 'rank' else 'target_rank'}"
            numbers[key] = max(numbers[key], float(getattr(found, name).max()))
    return numbers | _law_ranks(dataset, task)


def _law_ranks(dataset, task) -> dict:
    """Of the points alone: a stripe is no point. NaN where there is none, as in a stream."""
    names, sizes = [f"output.training_law_kl_rank_{k}" for k in (1, 2)], tasks.sizes(task)
    points = np.zeros((0, len(sizes)))
    if isinstance(dataset, sampling.Table) and task.examples:
        points = np.asarray(dataset.points)[: int(dataset.count)]
        points = points[~np.isnan(points).any(axis=1)]
    if not len(points):
        return dict.fromkeys(names, np.nan)
    law = np.zeros(sizes[::-1])
    np.add.at(law, tuple(tasks.nearest_values(task, points).T[::-1]), 1 / len(points))
    found = [
        decomposition.distribution_rank(grids.unfold(law.ravel(), sizes, f), max_rank=2).kl
        for f in decomposition.distinct_factors(sizes)
    ]
    return {name: float(kl) for name, kl in zip(names, np.max(found, axis=0), strict=True)}
