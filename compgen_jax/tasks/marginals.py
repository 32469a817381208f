"""Marginal images: what a factor's value shows by itself, for any picture of any factors.

The remedy of the paper's section 4.2 for any factors. A marginal's code has this one factor, all
others are missing. Its image is one of three:

    mean   the average picture over the other factors
    union  the largest value of each pixel over the other factors: of upright bumps, the paper's
           stripe (Figure 4a), which `tasks.bump` draws in closed form
    slice  the picture itself, with the others at a reference combination: a real image, and no
           marginal (Wiedemer et al. 2023 show such slices)

Averages over ID cells alone show nothing of the held-out ones; those over all cells do.
"""

import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.settings import choice, number

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
    rows = []
    for index, factor in enumerate(factors):
        of_factor = np.full((len(factor.values), len(factors)), np.nan, np.float32)
        of_factor[:, index] = factor.values
        rows.append(of_factor)
    return np.concatenate(rows)


def images(kind: str, picture, factors, shown_B):
    """(images (M, ...), exist (M,) bool) of `points`, float32 NumPy, from the cells `shown_B`.

    A value that no such cell has, or whose slice is not such a cell, has a blank image, and does
    not exist. ValueError if no cell is shown.
    """
    sizes = tuple(len(factor.values) for factor in factors)
    shown = np.flatnonzero(grids.checked_mask(shown_B, sizes))
    if not len(shown):
        raise ValueError("marginals need a cell that is shown")
    draw = jax.jit(jax.vmap(picture))
    cells, places = grids.points([factor.values for factor in factors]), grids.indices(sizes)
    starts = np.cumsum((0, *sizes[:-1]))
    if kind == "slice":
        found, exist = _slices(draw, cells, places, np.asarray(shown_B), sizes)
    else:
        found, exist = _collected(kind, draw, cells, places + starts, shown, sum(sizes))
    return found.astype(np.float32), exist


def _collected(kind, draw, cells, rows_BxF, shown, count):
    """The mean or the union over the cells that share a value."""
    totals, number_of = None, np.bincount(rows_BxF[shown].ravel(), minlength=count)
    for some, pictures in _batches(draw, cells[shown]):
        if totals is None:
            empty = 0.0 if kind == "mean" else -np.inf
            totals = np.full((count, *pictures.shape[1:]), empty)
        collect = np.add if kind == "mean" else np.maximum
        for of_factor in rows_BxF[shown[some]].T:
            collect.at(totals, of_factor, pictures)
    exist, shape = number_of > 0, (-1,) + (1,) * (totals.ndim - 1)
    if kind == "mean":
        totals = totals / np.maximum(number_of, 1).reshape(shape)
    return np.where(exist.reshape(shape), totals, 0.0), exist


def _slices(draw, cells, places, shown_B, sizes):
    """Pictures on the lines through the shown cell that is nearest to the grid's middle."""
    middle = (np.array(sizes) - 1) / 2
    apart = np.where(shown_B, np.square(places - middle).sum(axis=1), np.inf)
    reference = places[np.argmin(apart)]
    lines = [np.tile(reference, (size, 1)) for size in sizes]
    for factor, line in enumerate(lines):
        line[:, factor] = np.arange(len(line))
    index = np.concatenate(lines) @ np.cumprod([1, *sizes[:-1]])
    found = np.concatenate([pictures for _, pictures in _batches(draw, cells[index])])
    exist = shown_B[index]
    return np.where(exist.reshape((-1,) + (1,) * (found.ndim - 1)), found, 0.0), exist


def _batches(draw, points):
    """(which points, their pictures), `AT_ONCE` at a time, by one program; NumPy, float64."""
    for start in range(0, len(points), AT_ONCE):
        some = points[start : start + AT_ONCE]
        filled = np.concatenate([some, np.tile(some[-1:], (AT_ONCE - len(some), 1))])
        pictures = np.asarray(draw(jnp.asarray(filled))[: len(some)], np.float64)
        yield slice(start, start + AT_ONCE), pictures


def main_effects_share(picture, factors) -> float:
    """The share of the pixels' variance in what each factor does by itself, from 0 to 1.

    It is Sum_f Var(mean picture given factor f) / Var, summed over pixels, over at most `MOST` of
    the cells (`grids.subgrid`). A product of two binary profiles of duty m has 2m / (1 + m).
    1 means that a sum of one image per factor draws every picture; NaN that all are alike.
    """
    return _main_effects(_over_subgrid(picture, factors), range(len(factors)))


def main_effects_of_pairs(picture, factors) -> dict[tuple[str, str], float]:
    """{names of two factors: `main_effects_share` if only these two vary}: both variances are means
    over the values of the other factors."""
    over, axes = _over_subgrid(picture, factors), range(len(factors))[::-1]
    pairs = itertools.combinations(zip(factors, axes, strict=True), 2)
    return {(f.name, g.name): _main_effects(over, (a, b)) for (f, a), (g, b) in pairs}


def _over_subgrid(picture, factors):
    """(V_F, ..., V_1, P): pictures at a grid of at most `MOST` cells."""
    sizes = tuple(len(factor.values) for factor in factors)
    index, kept = grids.subgrid(sizes, max(MOST, 2 ** len(sizes)))
    cells = grids.points([factor.values for factor in factors])[index]
    drawn = np.concatenate([each for _, each in _batches(jax.jit(jax.vmap(picture)), cells)])
    return grids.over_grid(drawn.reshape(len(cells), -1), kept)


def _main_effects(over, axes) -> float:
    """The share of the variance over these axes that is the sum of each alone."""
    over = over - over.mean(axis=tuple(axes), keepdims=True)
    total = np.mean(np.square(over))
    if not total:
        return np.nan
    means = (over.mean(axis=tuple(other for other in axes if other != axis)) for axis in axes)
    return float(sum(np.mean(np.square(each)) for each in means) / total)
