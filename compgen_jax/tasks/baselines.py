"""Trivial predictors: what a model that composes nothing would say.

Each maps a `Query` to predictions (B, ...). `BASELINES` are those of any task. `FROM_CODES` are
kernel regressions on what one seed was shown. `GRID_PREDICTORS` know the ID cells of a grid alone.
The last two kinds are NumPy.
"""

import math
import operator
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from compgen_jax import grids

SWEEPS = 50  # on bumps, within 1% of the amplitude of what 500 give
NOISE = 0.01  # of rank-one completion: the share of the largest signal that counts as none
PAIRS_AT_ONCE = 2**23  # of held-out and ID cells: bounds memory

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
    grid: of the cells of a grid, its sizes, ordered and periods (`task.geometry`)
    """

    points: Any
    inputs: Any
    truths: Any
    nearest: Any
    held_out: Any
    same_labels: Any = None
    grid: dict | None = None


def best_constant(query: Query):
    """The mean truth, fitted to the region that it is scored on."""
    means_B = jnp.mean(query.truths, axis=tuple(range(1, query.truths.ndim)))
    levels = [
        jnp.sum(jnp.where(mask_B, means_B, 0.0)) / jnp.sum(mask_B)
        for mask_B in (query.held_out, ~query.held_out)
    ]
    levels_B = jnp.where(query.held_out, *levels)
    shape = (-1,) + (1,) * (query.truths.ndim - 1)
    return jnp.broadcast_to(levels_B.reshape(shape), query.truths.shape)


nearest_seen = operator.attrgetter("nearest")
BASELINES = {
    "best_constant": best_constant,
    "nearest_seen": nearest_seen,
    "nearest_same_labels": operator.attrgetter("same_labels"),
}


def knows_id(name: str) -> bool:
    return name.startswith("nearest_") or name in FROM_CODES


# --- from the codes that one seed was shown; NumPy, float64 -------------------------------------


def _regression(fit, codes_SxE, truths_Sx, codes_BxE):
    """What `fit(codes (S, E), outputs (S, P), queries (B, E))` predicts of what is left after the
    mean output; beyond `MOST_POINTS` codes, from the `NEAREST_POINTS` nearest to each query.
    ValueError for arrays that do not match or are not finite."""
    codes, truths, queries = (np.asarray(a, np.float64) for a in (codes_SxE, truths_Sx, codes_BxE))
    if codes.ndim != 2 or queries.ndim != 2 or codes.shape[1] != queries.shape[1]:
        raise ValueError(f"codes must be (S, E) and (B, E), not {codes.shape} and {queries.shape}")
    if truths.ndim < 1 or len(truths) != len(codes):
        raise ValueError(f"truths must be ({len(codes)}, ...), not {truths.shape}")
    if not all(np.isfinite(array).all() for array in (codes, truths, queries)):
        raise ValueError("codes or truths: NaN or infinite values")
    shape = len(queries), *truths.shape[1:]
    if not len(codes):
        return np.zeros(shape)
    codes, row_S, count = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    flat_SxP = np.zeros((len(codes), math.prod(truths.shape[1:])))
    np.add.at(flat_SxP, row_S.reshape(-1), truths.reshape(len(truths), -1))
    flat_SxP /= count[:, None]

    def after_mean(codes_SxE, flat_SxP, queries_BxE):
        mean = flat_SxP.mean(axis=0, keepdims=True)
        if len(codes_SxE) == 1:
            return np.repeat(mean, len(queries_BxE), axis=0)
        return mean + fit(codes_SxE, flat_SxP - mean, queries_BxE)

    if len(codes) <= MOST_POINTS:
        return after_mean(codes, flat_SxP, queries).reshape(shape)
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
            predicted.append(after_mean(codes[near], flat_SxP[near], query[None]))
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
    """What an infinitely wide ReLU network predicts that is trained until it fits the points (Lippl
    and Stachenfeld 2024, arXiv:2405.16391). Beside every code stands a constant."""
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
    infinitely wide layers without biases: the recursion of Cho and Saul (2009). Weights are drawn
    from N(0, 1); W units multiply their inputs' sum by sqrt(2 / W) (by 1 for the code).
    """
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


# --- on a grid, from ID cells alone; NumPy, float64 ---------------------------------------------


def query_on_grid(truths_Bx, held_out_B, sizes, ordered=None, periods=None) -> Query:
    """The query of all cells of a grid. ValueError if no cell is ID, or for truths that do not
    match or are not finite."""
    truths, held_out = np.asarray(truths_Bx, np.float64), grids.checked_mask(held_out_B, sizes)
    if truths.ndim < 1 or len(truths) != len(held_out):
        raise ValueError(f"truths must be ({len(held_out)}, ...), not {truths.shape}")
    if not np.isfinite(truths).all():
        raise ValueError("truths: NaN or infinite values")
    nearest = truths[grids.nearest_seen(held_out, sizes, ordered, periods)[0]]
    grid = {"sizes": tuple(sizes), "ordered": ordered, "periods": periods}
    return Query(grids.indices(sizes), None, truths, nearest, held_out, grid=grid)


def id_constant(query: Query):
    return np.full(query.truths.shape, query.truths[~query.held_out].mean())


def line_mean(query: Query):
    """Mean over the factors of the nearest ID outputs that differ in that factor alone; an ID cell
    has its own.

    Outputs at the same distance are averaged first; a line of cells without an ID cell is left out.
    ValueError if all lines of a held-out cell are.
    """
    held_out, truths = query.held_out, np.array(query.truths)
    indices, tables = grids.indices(query.grid["sizes"]), grids.offsets(**query.grid)
    hidden_HxF, seen_SxF = indices[held_out], indices[~held_out]
    step = max(1, PAIRS_AT_ONCE // len(seen_SxF))
    means = [np.zeros((0, *truths.shape[1:]))]
    for start in range(0, len(hidden_HxF), step):
        cells_QxF = hidden_HxF[start : start + step]
        same_QxSxF = cells_QxF[:, None] == seen_SxF[None]
        weights_QxS, lines_Q = 0.0, 0
        for f, apart_VxV in enumerate(tables):
            on_line_QxS = np.delete(same_QxSxF, f, axis=2).all(axis=2)
            distance_QxS = apart_VxV[cells_QxF[:, [f]], seen_SxF[None, :, f]]
            apart_QxS = np.where(on_line_QxS, distance_QxS, np.inf)
            nearest_Qx1 = apart_QxS.min(axis=1, keepdims=True)
            tied_QxS = (apart_QxS == nearest_Qx1) & np.isfinite(apart_QxS)
            count_Qx1 = tied_QxS.sum(axis=1, keepdims=True)
            weights_QxS = weights_QxS + tied_QxS / np.maximum(count_Qx1, 1)
            lines_Q = lines_Q + tied_QxS.any(axis=1)
        if not np.all(lines_Q):
            alone = cells_QxF[lines_Q == 0][:8].tolist()
            raise ValueError(f"cells {alone} differ from every ID cell in more than one factor")
        means.append(np.tensordot(weights_QxS / lines_Q[:, None], truths[~held_out], axes=1))
    truths[held_out] = np.concatenate(means)
    return truths


def rank_one(query: Query):
    """Each entry's values completed as a product a(x) b(y) ... by alternating least squares.

    `NOISE`, as a share of the largest ID signal, counts as none: true bumps have rank one (Eq 13 to
    16), and their tails would complete them.
    """
    flat_BxP = query.truths.reshape(len(query.truths), -1)
    lit = lit_pixels(flat_BxP[~query.held_out], NOISE)
    completed_BxP = np.zeros(flat_BxP.shape)
    if not lit.any():
        return completed_BxP.reshape(query.truths.shape)
    seen = grids.over_grid(~query.held_out, query.grid["sizes"])
    values_PxG = flat_BxP[:, lit].T.reshape(-1, *seen.shape) * seen
    pixels = len(values_PxG)
    # a cell with signal: the line with the most, axis after axis
    cell, within = [], values_PxG
    for axis in range(seen.ndim, 0, -1):
        others = tuple(a for a in range(1, within.ndim) if a != axis)
        index_P = np.argmax(np.sum(within**2, axis=others), axis=1)
        index_Px1 = index_P.reshape(-1, *(1,) * (within.ndim - 1))
        within = np.take_along_axis(within, index_Px1, axis=axis)[..., 0]
        cell.insert(0, index_P)
    functions = grids.lines_through(values_PxG, cell)
    for _ in range(SWEEPS):
        for axis in reversed(range(seen.ndim)):
            others = [function for a, function in enumerate(functions) if a != axis]
            rows_PxR = _unit(grids.products(others, pixels))
            shape = rows_PxR.shape[1], seen.shape[axis]
            values_PxRxV = np.moveaxis(values_PxG, axis + 1, -1).reshape(-1, *shape)
            seen_RxV = np.moveaxis(seen, axis, -1).reshape(shape)
            fitted_PxV = np.einsum("pnm,pn->pm", values_PxRxV, rows_PxR)
            functions[axis] = fitted_PxV / (rows_PxR**2 @ seen_RxV + NOISE**2)
    functions[1:] = map(_unit, functions[1:])
    completed_BxP[:, lit] = grids.products(functions, pixels).T
    return completed_BxP.reshape(query.truths.shape)


def _unit(vectors_PxN):
    return vectors_PxN / np.linalg.norm(vectors_PxN, axis=1, keepdims=True)


def blank(query: Query):
    return np.zeros(query.truths.shape)


GRID_PREDICTORS = {
    "blank": blank,
    "id_constant": id_constant,
    "nearest_seen": nearest_seen,
    "line_mean": line_mean,
    "rank_one": rank_one,
}


def lit_pixels(targets_seen_Bx, threshold: float = 0.01):
    """Bool, of the shape of one target: pixels whose signal exceeds `threshold` of the largest in
    some seen image."""
    size = np.abs(np.asarray(targets_seen_Bx)).max(axis=0)
    return size > threshold * size.max()
