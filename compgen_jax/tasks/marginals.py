"""Marginal images: what a factor's value shows by itself (the paper's section 4.2).

Of a marginal's code all other factors are missing. Its image is one of three:

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
    """Which marginal images training shows, as what `share` of its examples; taken `over` ID cells
    alone or over all."""

    kind: str = choice("none", "none", "mean", "union", "slice")
    over: str = choice("seen", "seen", "all")
    share: float = number(0.5, above=0, high=1)


def points(factors):
    """(M, F) float32: every value of every factor by itself, factor by factor; the others NaN."""
    owner_M = np.repeat(np.arange(len(factors)), tasks.counts(factors))
    rows = np.full((len(owner_M), len(factors)), np.nan, np.float32)
    rows[np.arange(len(owner_M)), owner_M] = np.concatenate([factor.values for factor in factors])
    return rows


def images(kind: str, picture, factors, support_B):
    """(images (M, ...), exist (M,) bool) of `points`, float32 NumPy, from the cells `support_B`;
    blank where no such cell has the value. ValueError if there is no such cell."""
    sizes = tasks.counts(factors)
    support_B = grids.checked_mask(support_B, sizes)
    if not support_B.any():
        raise ValueError("marginals need a cell that is shown")
    cells, indices = tasks.cells(factors), grids.indices(sizes)
    rows_BxF = indices + np.cumsum((0, *sizes[:-1]))
    takes_BxF = np.repeat(support_B[:, None], len(sizes), axis=1)
    if kind == "slice":
        # on the lines through the cell of the support that is nearest to the grid's middle
        apart = np.square(indices - (np.array(sizes) - 1) / 2).sum(axis=1)
        differs_BxF = indices != indices[np.argmin(np.where(support_B, apart, np.inf))]
        takes_BxF &= differs_BxF.sum(axis=1, keepdims=True) == differs_BxF
    count = np.bincount(rows_BxF[takes_BxF], minlength=sum(sizes))
    collect, start = (np.maximum, -np.inf) if kind == "union" else (np.add, 0.0)
    collected = np.full((len(count), *jax.eval_shape(picture, cells[0]).shape), start)
    used = takes_BxF.any(axis=1)
    rows_BxF, takes_BxF = rows_BxF[used], takes_BxF[used]
    for some, pictures in _batches(picture, cells[used]):
        for rows, takes in zip(rows_BxF[some].T, takes_BxF[some].T, strict=True):
            collect.at(collected, rows[takes], pictures[takes])
    column = count.reshape((-1,) + (1,) * (collected.ndim - 1))
    if kind != "union":
        collected /= np.maximum(column, 1)
    return np.where(column > 0, collected, 0.0).astype(np.float32), count > 0


def _batches(picture, points):
    """(which points, their pictures), float64, `AT_ONCE` at a time by one program."""
    draw = jax.jit(jax.vmap(picture))
    for start in range(0, len(points), AT_ONCE):
        some = points[start : start + AT_ONCE]
        filled = jnp.asarray(np.resize(some, (AT_ONCE, some.shape[1])))
        pictures = np.asarray(draw(filled)[: len(some)], np.float64)
        yield slice(start, start + AT_ONCE), pictures


def main_effects_shares(picture, factors, varied: int) -> dict[tuple, float]:
    """{names of `varied` factors: Sum_f Var(mean picture given f) / Var, summed over pixels}, if
    only these vary, over at most `MOST` cells: 1 for a sum of one image per factor, NaN if all
    pictures are alike."""
    index, sizes = grids.subgrid(tasks.counts(factors), max(MOST, 2 ** len(factors)))
    cells = tasks.cells(factors)[index]
    pictures = np.concatenate([pictures for _, pictures in _batches(picture, cells)])
    pictures, shares = grids.over_grid(pictures.reshape(len(cells), -1), sizes), {}
    for chosen in itertools.combinations(range(len(factors)), varied):
        axes = {len(factors) - 1 - index for index in chosen}
        centred = pictures - pictures.mean(axis=tuple(axes), keepdims=True)
        effects = [centred.mean(axis=tuple(axes - {axis})) for axis in sorted(axes)]
        total = np.mean(np.square(centred))
        explained = sum(np.mean(np.square(effect)) for effect in effects)
        share = float(explained / total) if total else np.nan
        shares[tuple(factors[index].name for index in chosen)] = share
    return shares
