"""Trivial predictors: what a model that composes nothing would say.

`BASELINES` map a `Query` to predictions (B, ...). `FROM_CODES` are kernel regressions on what one
seed was shown, `grid_predictions` know the ID cells of a grid alone; both are NumPy.
"""

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids

SWEEPS = 50  # on bumps, within 1% of the amplitude of what 500 give
NOISE = 0.01  # of rank-one completion: the share of the largest signal that counts as none
PAIRS_AT_ONCE = 2**23  # of codes: bounds memory
RANK = 1e-6  # of the largest singular value: less counts as none

# kernel regressions from codes
LENGTHS = (0.5, 0.75, 1, 1.5, 2, 3, 5, 8)  # in median nearest-neighbour distances of the codes
KERNEL_RIDGE = 1e-6  # of the kernel's mean diagonal
HIDDEN_LAYERS = 3  # of the wide network
MOST_POINTS, NEAREST_POINTS = 2000, 64  # beyond the first, a fit to the nearest for each query
TIED = 1e-9  # relative: errors that rounding alone may tell apart


class Query(NamedTuple):
    """B points of a task with their right answers, for a baseline that predicts without training.

    points (B, F); inputs: leaves (B, ...); truths (B, ...); held_out (B,) bool
    nearest (B, ...): the truths at the nearest ID points
    same_labels (B, ...): those at the nearest ID points with the same labels
    truths_at: other points (B, F) -> their truths (B, ...)
    """

    points: Any
    inputs: Any
    truths: Any
    nearest: Any
    held_out: Any
    same_labels: Any = None
    truths_at: Callable | None = None


def mean_answer(query: Query):
    """The mean truth, entry by entry, of seen and of held-out points apart."""
    held_out = jnp.asarray(query.held_out).reshape(-1, *(1,) * (query.truths.ndim - 1))
    means = [
        jnp.mean(query.truths, axis=0, where=mask, keepdims=True) for mask in (held_out, ~held_out)
    ]
    return jnp.where(held_out, *means)


def best_constant(query: Query):
    """One number, the mean truth, fitted to the region that it is scored on."""
    means_B = jnp.mean(query.truths, axis=tuple(range(1, query.truths.ndim)))
    return jax.vmap(jnp.full_like)(query.truths, mean_answer(query._replace(truths=means_B)))


nearest_seen = operator.attrgetter("nearest")
BASELINES = {
    "best_constant": best_constant,
    "nearest_seen": nearest_seen,
    "nearest_same_labels": operator.attrgetter("same_labels"),
}


def additive(query: Query, indices_BxF):
    """The sum of an image for each factor's value, fitted to ID points by least squares. A value
    that none of them has counts as the mean of its factor's values."""
    seen_B = ~np.asarray(query.held_out)
    columns = [index_B[:, None] == np.unique(index_B) for index_B in np.transpose(indices_BxF)]
    design_BxV = np.concatenate(columns, axis=1, dtype=np.float64)
    # of all images that fit, those of the least norm: the means of factors stay in the mean image
    design_BxV -= design_BxV[seen_B].mean(axis=0)
    inverse_VxS = jnp.asarray(np.linalg.pinv(design_BxV[seen_B], RANK), jnp.float32)
    images_Vx = jnp.tensordot(inverse_VxS, query.truths[seen_B], axes=1)
    mean = query.truths[seen_B].mean(axis=0, keepdims=True)
    return mean + jnp.tensordot(jnp.asarray(design_BxV, jnp.float32), images_Vx, axes=1)


def nearest_shifted(query: Query, nearest_BxF, moves_F):
    """The images of some nearest ID points, rolled by as many whole pixels as the factors that move
    (F,) ask for, after a straight line through the centres of mass of ID images, in which the
    median pixel is background."""
    seen_B, size_2 = ~np.asarray(query.held_out), query.truths.shape[1:3]
    pixels_HxWx2 = np.stack(np.indices(size_2), axis=2, dtype=np.float32)
    background = jnp.median(query.truths[seen_B], axis=(0, 1, 2), keepdims=True)
    mass_BxHxW = jnp.abs(query.truths - background).reshape(len(seen_B), *size_2, -1).sum(axis=3)
    mass_BxHxW /= jnp.maximum(mass_BxHxW.sum(axis=(1, 2), keepdims=True), 1e-9)
    centres_Bx2 = jnp.tensordot(mass_BxHxW, pixels_HxWx2, 2)
    points_BxM, nearest_BxM = (np.asarray(p)[:, moves_F] for p in (query.points, nearest_BxF))
    inverse_MxS = np.linalg.pinv(points_BxM[seen_B] - points_BxM[seen_B].mean(axis=0), RANK)
    steps_Bx2 = (points_BxM - nearest_BxM) @ (jnp.asarray(inverse_MxS) @ centres_Bx2[seen_B])
    roll = jax.vmap(partial(jnp.roll, axis=(0, 1)))
    return roll(query.truths_at(nearest_BxF), jnp.round(steps_Bx2).astype(int))


def knows_id(name: str) -> bool:
    return name.startswith("nearest_") or name in FROM_CODES


# --- from the codes that one seed was shown; NumPy, float64 -------------------------------------


def _regression(fit, codes_SxE, truths_Sx, codes_BxE):
    """What `fit(codes (S, E), outputs (S, P), queries (B, E))` predicts of what is left after the
    mean output; beyond `MOST_POINTS` codes, from the `NEAREST_POINTS` nearest to each query.
    ValueError for NaN or infinite values."""
    codes, truths, queries = (np.asarray(a, np.float64) for a in (codes_SxE, truths_Sx, codes_BxE))
    if not all(np.isfinite(array).all() for array in (codes, truths, queries)):
        raise ValueError("codes or truths: NaN or infinite values")
    shape = len(queries), *truths.shape[1:]
    if not len(codes):
        return np.zeros(shape)
    codes, row_S, count = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    flat_SxP = np.zeros((len(codes), math.prod(truths.shape[1:])))
    np.add.at(flat_SxP, row_S.reshape(-1), truths.reshape(len(truths), -1))
    flat_SxP /= count[:, None]

    def fitted(rows, queries_BxE):
        mean = flat_SxP[rows].mean(axis=0, keepdims=True)
        if len(codes[rows]) == 1:
            return np.repeat(mean, len(queries_BxE), axis=0)
        return mean + fit(codes[rows], flat_SxP[rows] - mean, queries_BxE)

    if len(codes) <= MOST_POINTS:
        return fitted(slice(None), queries).reshape(shape)
    predicted = []
    step = max(1, PAIRS_AT_ONCE // len(codes))
    for start in range(0, len(queries), step):
        some = queries[start : start + step]
        # float32 makes ties of distances that differ by rounding
        apart_QxS = _squared_distances(some, codes).astype(np.float32)
        limit_Q = np.partition(apart_QxS, NEAREST_POINTS, axis=1)[:, NEAREST_POINTS]
        for query, apart_S, limit in zip(some, apart_QxS, limit_Q, strict=True):
            near = np.flatnonzero(apart_S <= limit)
            near = near[np.argsort(apart_S[near], kind="stable")[:NEAREST_POINTS]]
            predicted.append(fitted(near, query[None]))
    return np.concatenate(predicted).reshape(shape)


def _gaussian(codes_SxE, centred_SxP, queries_BxE):
    """Gaussian kernel ridge regression. Its length is the one of `LENGTHS` with the least
    leave-one-out error."""
    squares_SxS = _squared_distances(codes_SxE, codes_SxE)
    apart = squares_SxS + np.diag(np.full(len(codes_SxE), np.inf))
    neighbour = np.median(np.sqrt(apart.min(axis=1)))
    fits = []
    for length in LENGTHS:
        scale = 2 * (length * neighbour) ** 2
        kernel_SxS = np.exp(-squares_SxS / scale)
        inverse_SxS = np.linalg.inv(kernel_SxS + KERNEL_RIDGE * np.eye(len(kernel_SxS)))
        weights_SxP = inverse_SxS @ centred_SxP
        # without a point the mean, which is fitted too, moves away by output / (S - 1)
        moved_SxP = inverse_SxS.sum(axis=1, keepdims=True) * centred_SxP / (len(codes_SxE) - 1)
        missed_SxP = (weights_SxP + moved_SxP) / np.diag(inverse_SxS)[:, None]
        fits.append((np.mean(missed_SxP**2), scale, weights_SxP))
    limit = min(error for error, *_ in fits) + TIED * np.mean(centred_SxP**2)
    _, scale, weights_SxP = next(fit for fit in fits if fit[0] <= limit)
    return np.exp(-_squared_distances(queries_BxE, codes_SxE) / scale) @ weights_SxP


def _tangent(codes_SxE, centred_SxP, queries_BxE):
    """What an infinitely wide ReLU network that fits the points predicts (Lippl and Stachenfeld
    2024, arXiv:2405.16391). Beside every code stands a constant."""
    constant = np.sqrt(np.mean(np.sum(codes_SxE**2, axis=1)))
    # The codes are padded twice on purpose: of one array, NumPy computes A A^T by another BLAS
    # routine, whose last bits differ.
    codes_SxE, same_SxE, queries_BxE = (
        np.pad(codes, ((0, 0), (0, 1)), constant_values=constant)
        for codes in (codes_SxE, codes_SxE, queries_BxE)
    )
    kernel_SxS = tangent_kernel(codes_SxE, same_SxE)
    ridge = KERNEL_RIDGE * np.trace(kernel_SxS) / len(kernel_SxS)
    weights_SxP = np.linalg.solve(kernel_SxS + ridge * np.eye(len(kernel_SxS)), centred_SxP)
    return tangent_kernel(queries_BxE, codes_SxE) @ weights_SxP


def tangent_kernel(a_AxE, b_BxE):
    """(A, B): the neural tangent kernel (Jacot et al. 2018) of a ReLU network with `HIDDEN_LAYERS`
    infinitely wide layers without biases: the recursion of Cho and Saul (2009)."""
    norms_AxB = np.sqrt(np.outer(np.sum(a_AxE**2, axis=1), np.sum(b_BxE**2, axis=1)))
    covariance = tangent = a_AxE @ b_BxE.T
    for _ in range(HIDDEN_LAYERS):
        cosine = np.clip(covariance / np.where(norms_AxB > 0, norms_AxB, 1), -1, 1)
        angle = np.arccos(cosine)
        covariance = norms_AxB * (np.sin(angle) + (np.pi - angle) * cosine) / np.pi
        tangent = covariance + tangent * (np.pi - angle) / np.pi
    return tangent


def _squared_distances(a_AxE, b_BxE):
    from scipy.spatial.distance import cdist  # takes a fifth of a second to import

    return cdist(a_AxE, b_BxE, "sqeuclidean")


# (codes (S, E), truths (S, ...), codes (B, E)) -> (B, ...)
interpolate, wide_network = (partial(_regression, fit) for fit in (_gaussian, _tangent))
FROM_CODES = {"interpolator": interpolate, "wide_network": wide_network}


# --- of two factors, from ID cells alone; NumPy, float64 -----------------------------------------


def grid_predictions(truths_Bx, held_out_B, sizes) -> dict:
    """{predictor: (B, ...)} at all cells of a grid of two factors. ValueError if no cell is ID."""
    truths, held_out = np.asarray(truths_Bx, np.float64), np.asarray(held_out_B)
    seen_YxX = grids.over_grid(~held_out, sizes)
    truths_YxXxP = grids.over_grid(truths.reshape(len(truths), -1), sizes)
    predictions = {
        "blank": np.zeros(truths.shape),
        "id_constant": np.full(truths.shape, truths[~held_out].mean()),
        "nearest_seen": truths[grids.nearest_seen(held_out, sizes)[0]],
        "line_mean": line_mean(truths_YxXxP, seen_YxX),
        "rank_one": rank_one(truths_YxXxP, seen_YxX),
    }
    return {name: values.reshape(truths.shape) for name, values in predictions.items()}


def line_mean(truths_YxXxP, seen_YxX):
    """Mean over row and column of the nearest ID outputs there. ValueError if a cell has none."""
    total, lines = 0.0, 0
    for axis, size in enumerate(seen_YxX.shape):
        steps_VxV = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        seen_LxV, truths_LxVxP = (np.moveaxis(a, axis, 1) for a in (seen_YxX, truths_YxXxP))
        apart_LxVxV = np.where(seen_LxV[:, None], steps_VxV, np.inf)
        nearest_LxVx1 = apart_LxVxV.min(axis=2, keepdims=True)
        tied_LxVxV = np.isfinite(apart_LxVxV) & (apart_LxVxV == nearest_LxVx1)
        weights_LxVxV = tied_LxVxV / np.maximum(tied_LxVxV.sum(axis=2, keepdims=True), 1)
        total = total + np.moveaxis(weights_LxVxV @ truths_LxVxP, 1, axis)
        lines = lines + np.moveaxis(tied_LxVxV.any(axis=2), 1, axis)
    if not lines.all():
        raise ValueError("some cell differs from every ID cell in more than one factor")
    return total / lines[..., None]


def rank_one(truths_YxXxP, seen_YxX):
    """Each entry's values completed as a product a(x) b(y) by alternating least squares.

    `NOISE`, as a share of the largest ID signal, counts as none: true bumps have rank one (Eq 13 to
    16), and their tails would complete them.
    """
    lit_P = lit_pixels(truths_YxXxP[seen_YxX], NOISE)
    values_PxYxX = np.moveaxis(truths_YxXxP[..., lit_P] * seen_YxX[..., None], 2, 0)
    brightest_P = np.argmax(np.sum(values_PxYxX**2, axis=1), axis=1)
    b_PxY = np.take_along_axis(values_PxYxX, brightest_P[:, None, None], axis=2)[..., 0]
    for _ in range(SWEEPS):
        unit_PxY = b_PxY / np.linalg.norm(b_PxY, axis=1, keepdims=True)
        a_PxX = np.einsum("pyx,py->px", values_PxYxX, unit_PxY)
        a_PxX /= unit_PxY**2 @ seen_YxX + NOISE**2
        unit_PxX = a_PxX / np.linalg.norm(a_PxX, axis=1, keepdims=True)
        b_PxY = np.einsum("pyx,px->py", values_PxYxX, unit_PxX)
        b_PxY /= unit_PxX**2 @ seen_YxX.T + NOISE**2
    completed_YxXxP = np.zeros(truths_YxXxP.shape)
    completed_YxXxP[..., lit_P] = np.einsum("py,px->yxp", b_PxY, unit_PxX)
    return completed_YxXxP


def lit_pixels(targets_seen_Bx, threshold: float = 0.01):
    """Bool, of the shape of one target: pixels whose signal exceeds `threshold` of the largest in
    some seen image."""
    size = np.abs(np.asarray(targets_seen_Bx)).max(axis=0)
    return size > threshold * size.max()
