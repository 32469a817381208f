"""Marginal images: what a factor's value shows by itself (the paper's section 4.2).

A marginal's code has this one factor, all others are missing. Its image is one of three:

    mean   the average picture over the other factors
    union  the largest value of each pixel over the other factors (for bumps, the paper's stripe)
    slice  the picture itself, with the others at a reference combination (Wiedemer et al. 2023)
"""

import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.settings import choice, number
from compgen_jax.tasks import task as tasks

AT_ONCE, MOST = 256, 2000  # pictures that are drawn, and cells whose pictures are kept


@dataclass(frozen=True)
class MarginalsConfig:
    """Which marginal images training shows beside pictures, and as what `share` of its examples.

    They are taken `over` ID cells alone or over all.
    """

    kind: str = choice("none", "none", "mean", "union", "slice")
    over: str = choice("seen", "seen", "all")
    share: float = number(0.5, above=0, high=1)


def points(factors):
    """(M, F) float32: every value of every factor by itself, factor by factor; the others NaN."""
    rows = np.full((sum(tasks.counts(factors)), len(factors)), np.nan)
    start = 0
    for index, factor in enumerate(factors):
        rows[start : start + len(factor.values), index] = factor.values
        start += len(factor.values)
    return rows.astype(np.float32)


def images(kind: str, picture, factors, support_B):
    """(images (M, ...), exist (M,) bool) of `points`, float32 NumPy, from the cells `support_B`. A
    value that no such cell has has a blank image, and does not exist. ValueError if there is no
    such cell."""
    sizes = tasks.counts(factors)
    support_B = grids.checked_mask(support_B, sizes)
    if not support_B.any():
        raise ValueError("marginals need a cell that is shown")
    draw = jax.jit(jax.vmap(picture))
    cells, indices = tasks.cells(factors), grids.indices(sizes)
    if kind == "slice":
        # on the lines through the cell of the support that is nearest to the grid's middle
        apart = np.square(indices - (np.array(sizes) - 1) / 2).sum(axis=1)
        middle = indices[np.argmin(np.where(support_B, apart, np.inf))]
        lines = [np.tile(middle, (size, 1)) for size in sizes]
        for factor, line in enumerate(lines):
            line[:, factor] = np.arange(len(line))
        index = np.concatenate(lines) @ np.cumprod([1, *sizes[:-1]])
        collected = np.concatenate([pictures for _, pictures in _batches(draw, cells[index])])
        exist = support_B[index]
    else:
        rows_BxF = (indices + np.cumsum((0, *sizes[:-1])))[support_B]
        collected, count = None, np.bincount(rows_BxF.ravel(), minlength=sum(sizes))
        collect, start = (np.add, 0.0) if kind == "mean" else (np.maximum, -np.inf)
        for some, pictures in _batches(draw, cells[support_B]):
            if collected is None:
                collected = np.full((len(count), *pictures.shape[1:]), start)
            for rows in rows_BxF[some].T:
                collect.at(collected, rows, pictures)
        if kind == "mean":
            collected /= np.maximum(count, 1).reshape((-1,) + (1,) * (collected.ndim - 1))
        exist = count > 0
    exists = exist.reshape((-1,) + (1,) * (collected.ndim - 1))
    return np.where(exists, collected, 0.0).astype(np.float32), exist


def _batches(draw, points):
    """(which points, their pictures), float64, `AT_ONCE` at a time by one program."""
    for start in range(0, len(points), AT_ONCE):
        some = points[start : start + AT_ONCE]
        filled = np.concatenate([some, np.tile(some[-1:], (AT_ONCE - len(some), 1))])
        pictures = np.asarray(draw(jnp.asarray(filled))[: len(some)], np.float64)
        yield slice(start, start + AT_ONCE), pictures


def main_effects_share(picture, factors) -> float:
    """Sum_f Var(mean picture given factor f) / Var, summed over pixels, over at most `MOST` cells.

    1 means that a sum of one image per factor draws every picture; NaN that all are alike.
    """
    pictures = _over_subgrid(picture, factors)
    return _main_effects(pictures, tuple(range(len(factors))))


def main_effects_of_pairs(picture, factors) -> dict[tuple[str, str], float]:
    """{names of two factors: `main_effects_share` if only these two vary}."""
    pictures, last = _over_subgrid(picture, factors), len(factors) - 1
    return {
        (factors[i].name, factors[j].name): _main_effects(pictures, (last - i, last - j))
        for i, j in itertools.combinations(range(len(factors)), 2)
    }


def _over_subgrid(picture, factors):
    """(V_F, ..., V_1, P): pictures at a grid of at most `MOST` cells."""
    index, sizes = grids.subgrid(tasks.counts(factors), max(MOST, 2 ** len(factors)))
    cells = tasks.cells(factors)[index]
    batches = _batches(jax.jit(jax.vmap(picture)), cells)
    pictures = np.concatenate([pictures for _, pictures in batches])
    return grids.over_grid(pictures.reshape(len(cells), -1), sizes)


def _main_effects(pictures, axes) -> float:
    centred = pictures - pictures.mean(axis=axes, keepdims=True)
    total = np.mean(np.square(centred))
    if not total:
        return np.nan
    effects = 0
    for axis in axes:
        others = tuple(other for other in axes if other != axis)
        effects += np.mean(np.square(centred.mean(axis=others)))
    return float(effects / total)
