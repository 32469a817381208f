"""Trivial predictors: what a model that composes nothing would say.

Each maps what is asked to predictions (B, ...). The first three are those of any task (`BASELINES`,
the default of `Task.baselines`), whose errors stand in a run's summary. `FROM_CODES` are kernel
regressions on what one seed was shown, and stand beside them. `GRID_PREDICTORS` know the ID cells
of a grid alone. The last two kinds are NumPy. Their mean squared error over the hole, as a multiple
of a blank image's, for true bumps, N = 28, donut 6 to 22, sigma = 1 (no brightest pixel is right,
for rank one 6%): constant .98, nearest seen 1.47, line mean 1.20, rank one .91.
"""

import math
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


class Asked(NamedTuple):
    """What a model is asked at B points, and what is known of them.

    points (B, F); inputs: leaves (B, ...); truths (B, ...); nearest (B, ...): the truths that the
    same questions would have at the nearest ID points; held_out (B,) bool; same_labels (B, ...):
    as `nearest`, at the nearest ID points whose labels are the same; grid: of cells of a grid,
    its `sizes`, and which factors are `ordered`, with which `periods`, as `task.geometry` gives
    them.
    """

    points: Any
    inputs: Any
    truths: Any
    nearest: Any
    held_out: Any
    same_labels: Any = None
    grid: dict | None = None


def best_constant(asked: Asked):
    """One number for all entries: the mean truth, of ID and of held-out points apart, so that it
    is fitted to the region that it is scored on, as strong as can be."""
    means_B = jnp.mean(asked.truths, axis=tuple(range(1, asked.truths.ndim)))

    def level(mask_B):
        return jnp.sum(jnp.where(mask_B, means_B, 0.0)) / jnp.sum(mask_B)

    levels_B = jnp.where(asked.held_out, level(asked.held_out), level(~asked.held_out))
    shape = (-1,) + (1,) * (asked.truths.ndim - 1)
    return jnp.broadcast_to(levels_B.reshape(shape), asked.truths.shape)


def nearest_seen(asked: Asked):
    """What is true at the nearest ID point."""
    return asked.nearest


def nearest_same_labels(asked: Asked):
    """What is true at the nearest ID point whose labels are those asked for, so that only ordered
    factors move. Where there is none, what is true at the nearest ID point."""
    return asked.same_labels


BASELINES = {of.__name__: of for of in (best_constant, nearest_seen, nearest_same_labels)}


def knows_id(name: str) -> bool:
    """Whether a predictor is right where training showed the answer: none of ID points."""
    return name.startswith("nearest_") or name in FROM_CODES


# --- from the codes that one seed was shown; NumPy, float64 -------------------------------------


def interpolate(codes_SxE, truths_Sx, codes_BxE):
    """(B, ...): the interpolator, kernel ridge regression from codes to outputs, fitted to S
    points.

    The kernel is Gaussian, exp(-|a - b|^2 / (2 length^2)). Its length is the one of `LENGTHS` with
    the least squared error on points left out, each alone; of equal errors, the shortest. For the
    rest, and errors, see `_regression`.
    """
    return _regression(_gaussian, codes_SxE, truths_Sx, codes_BxE)


def wide_network(codes_SxE, truths_Sx, codes_BxE):
    """(B, ...): what an infinitely wide ReLU network predicts that is trained on S points until it
    fits them: kernel ridge regression with its neural tangent kernel (see `tangent_kernel`).

    Such a network learns no features, because its kernel is fixed by the code: this predictor says
    what can be composed without learning any. Lippl and Stachenfeld (2024, arXiv:2405.16391) show
    what that is for codes such as one-hot. Such a kernel can only add up values that it gives to
    each factor's value and to each combination of them that was seen. For the rest, and errors, see
    `_regression`.
    """
    return _regression(_tangent, codes_SxE, truths_Sx, codes_BxE)


FROM_CODES = {"interpolator": interpolate, "wide_network": wide_network}


def _regression(fit, codes_SxE, truths_Sx, codes_BxE):
    """(B, ...): what `fit(codes (S, E), outputs (S, P), queries (B, E))`, a kernel regression,
    predicts.

    It acts on what is left after the mean output, with a ridge of `KERNEL_RIDGE`. Points with the
    same code count once, with their mean output. Beyond `MOST_POINTS` of them each query has a fit
    of its own to the `NEAREST_POINTS` nearest. Without a point the prediction is 0, with one its
    output.

    ValueError for arrays that do not match or are not finite.
    """
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
    codes, of_code, count = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    flat_SxP = np.zeros((len(codes), math.prod(truths.shape[1:])))
    np.add.at(flat_SxP, of_code.reshape(-1), truths.reshape(len(truths), -1))
    flat_SxP /= count[:, None]

    def after_mean(codes_SxE, flat_SxP, queries_BxE):
        mean = flat_SxP.mean(axis=0, keepdims=True)
        if len(codes_SxE) == 1:
            return np.repeat(mean, len(queries_BxE), axis=0)
        return mean + fit(codes_SxE, flat_SxP - mean, queries_BxE)

    if len(codes) <= MOST_POINTS:
        return after_mean(codes, flat_SxP, queries).reshape(shape)
    of_query = []
    for start in range(0, len(queries), step := max(1, PAIRS_AT_ONCE // len(codes))):
        some = queries[start : start + step]
        # float32 makes ties of distances that differ by rounding
        apart_QxS = _squared_distances(some, codes).astype(np.float32)
        limit_Q = np.partition(apart_QxS, NEAREST_POINTS, axis=1)[:, NEAREST_POINTS]
        for query, apart_S, limit in zip(some, apart_QxS, limit_Q, strict=True):
            near = np.flatnonzero(apart_S <= limit)
            near = near[np.argsort(apart_S[near], kind="stable")[:NEAREST_POINTS]]
            of_query.append(after_mean(codes[near], flat_SxP[near], query[None]))
    return np.concatenate(of_query).reshape(shape)


def _gaussian(codes_SxE, left_SxP, queries_BxE):
    """(B, P) what the length with the least error on left-out points predicts."""
    squares_SxS = _squared_distances(codes_SxE, codes_SxE)
    apart = squares_SxS + np.diag(np.full(len(codes_SxE), np.inf))
    neighbour = np.median(np.sqrt(apart.min(axis=1)))
    fits = []
    for length in LENGTHS:
        scale = 2 * (length * neighbour) ** 2
        error, _, weights_SxP = kernel_ridge(np.exp(-squares_SxS / scale), left_SxP, centred=True)
        fits.append((error, scale, weights_SxP))
    least = min(error for error, *_ in fits)
    spread = np.mean(left_SxP**2)
    _, scale, weights_SxP = next(fit for fit in fits if fit[0] <= least + TIED * spread)
    return np.exp(-_squared_distances(queries_BxE, codes_SxE) / scale) @ weights_SxP


def _tangent(codes_SxE, left_SxP, queries_BxE):
    """(B, P). The constant beside every code is the root mean square length of the S codes."""
    constant = np.sqrt(np.mean(np.sum(codes_SxE**2, axis=1)))
    biased = lambda codes: np.pad(codes, ((0, 0), (0, 1)), constant_values=constant)
    kernel_SxS = tangent_kernel(biased(codes_SxE), biased(codes_SxE))
    ridge = KERNEL_RIDGE * np.trace(kernel_SxS) / len(kernel_SxS)
    weights_SxP = np.linalg.solve(kernel_SxS + ridge * np.eye(len(kernel_SxS)), left_SxP)
    return tangent_kernel(biased(queries_BxE), biased(codes_SxE)) @ weights_SxP


def tangent_kernel(a_AxE, b_BxE):
    """(A, B): the neural tangent kernel (Jacot et al. 2018) of a ReLU network with `HIDDEN_LAYERS`
    infinitely wide layers, in closed form: the arc-cosine recursion of Cho and Saul (2009).

    In this parametrization weights are drawn from N(0, 1), and a layer of W units multiplies its
    inputs' sum by sqrt(2 / W) (by 1 for the code), so that a vector keeps its mean square length.
    No layer has a bias. Its kernel alone would be homogeneous: the prediction for a code twice as
    long would be twice as far from the mean output, and that for a code of zeros the mean output,
    whatever was seen there. The networks of this package have biases, so `wide_network` appends one
    constant to every code, as long as the codes seen are on average: weights and bias of the first
    layer matter equally, and the scale of the code does not matter. This is the choice without a
    setting; it was not compared with others on any data.
    """
    norms_AxB = np.sqrt(np.outer(np.sum(a_AxE**2, axis=1), np.sum(b_BxE**2, axis=1)))
    covariance = tangent = a_AxE @ b_BxE.T
    for _ in range(HIDDEN_LAYERS):
        cosine = np.clip(covariance / np.where(norms_AxB > 0, norms_AxB, 1), -1, 1)
        angle = np.arccos(cosine)
        covariance = norms_AxB * (np.sin(angle) + (np.pi - angle) * cosine) / np.pi
        tangent = covariance + tangent * (np.pi - angle) / np.pi
    return tangent


def kernel_ridge(kernel_SxS, outputs_SxP, ridge: float = KERNEL_RIDGE, centred: bool = False):
    """Ridge regression with a kernel between S points: the mean squared error on points left out,
    each alone; A = (kernel + ridge I)^-1; and the weights A outputs, (S, P).

    Errors come from the one fit to all points: (A outputs)_i / A_ii. `centred`: of outputs less
    their mean, which is fitted too; without a point it moves away by output / (S - 1).
    """
    inverse = np.linalg.inv(kernel_SxS + ridge * np.eye(len(kernel_SxS)))
    weights_SxP = left_SxP = inverse @ outputs_SxP
    if centred:
        moved_SxP = inverse.sum(axis=1, keepdims=True) * outputs_SxP / (len(outputs_SxP) - 1)
        left_SxP = weights_SxP + moved_SxP
    return np.mean((left_SxP / np.diag(inverse)[:, None]) ** 2), inverse, weights_SxP


def _squared_distances(a_AxE, b_BxE):
    """(A, B)."""
    from scipy.spatial.distance import cdist  # takes a fifth of a second to import

    return cdist(a_AxE, b_BxE, "sqeuclidean")


# --- on a grid, from ID cells alone; NumPy, float64 ---------------------------------------------


def asked_on_grid(truths_Bx, held_out_B, sizes, ordered=None, periods=None) -> Asked:
    """The question of all cells of a grid. ValueError if no cell is ID, or for truths that do not
    match or are not finite."""
    truths, held_out = np.asarray(truths_Bx, np.float64), grids.checked_mask(held_out_B, sizes)
    if truths.ndim < 1 or len(truths) != len(held_out):
        raise ValueError(f"truths must be ({len(held_out)}, ...), not {truths.shape}")
    if not np.isfinite(truths).all():
        raise ValueError("truths: NaN or infinite values")
    nearest = truths[grids.nearest_seen(held_out, sizes, ordered, periods)]
    grid = {"sizes": tuple(sizes), "ordered": ordered, "periods": periods}
    return Asked(grids.indices(sizes), None, truths, nearest, held_out, grid=grid)


def id_constant(asked: Asked):
    """The constant nearest to the ID outputs, their mean over cells and entries. It knows less than
    `best_constant`."""
    return np.full(asked.truths.shape, asked.truths[~asked.held_out].mean())


def line_mean(asked: Asked):
    """Mean over the factors of the nearest ID outputs that differ in that factor alone, which lie
    on a line of cells (for two factors, a row and a column); an ID cell has its own.

    Outputs at the same distance on a line are averaged first; a line without an ID cell is left
    out. ValueError if all lines of a held-out cell are.
    """
    held_out, truths = asked.held_out, np.array(asked.truths)
    places, tables = grids.indices(asked.grid["sizes"]), grids.offsets(**asked.grid)
    hidden_QxF, seen_SxF = places[held_out], places[~held_out]
    step = max(1, PAIRS_AT_ONCE // len(seen_SxF))
    means = [np.zeros((0, *truths.shape[1:]))]
    for start in range(0, len(hidden_QxF), step):
        cells = hidden_QxF[start : start + step]
        weights_QxS, lines_Q = _line_weights(cells, seen_SxF, tables)
        if not np.all(lines_Q):
            alone = cells[lines_Q == 0][:8].tolist()
            raise ValueError(f"cells {alone} differ from every ID cell in more than one factor")
        means.append(np.tensordot(weights_QxS / lines_Q[:, None], truths[~held_out], axes=1))
    truths[held_out] = np.concatenate(means)
    return truths


def _line_weights(cells_QxF, seen_SxF, tables):
    """Sums over the lines of the weights of each line's nearest seen cells; lines that have any."""
    same_FxQxS = [a[:, None] == b[None, :] for a, b in zip(cells_QxF.T, seen_SxF.T, strict=True)]
    differing_QxS = len(tables) - np.sum(same_FxQxS, axis=0)
    weights_QxS, lines_Q = 0.0, 0
    for f, apart_VxV in enumerate(tables):
        on_line_QxS = differing_QxS - ~same_FxQxS[f] == 0
        distance_QxS = apart_VxV[cells_QxF[:, [f]], seen_SxF[None, :, f]]
        apart_QxS = np.where(on_line_QxS, distance_QxS, np.inf)
        nearest_Qx1 = apart_QxS.min(axis=1, keepdims=True)
        tied_QxS = (apart_QxS == nearest_Qx1) & np.isfinite(apart_QxS)
        weights_QxS = weights_QxS + tied_QxS / np.maximum(tied_QxS.sum(axis=1, keepdims=True), 1)
        lines_Q = lines_Q + tied_QxS.any(axis=1)
    return weights_QxS, lines_Q


def rank_one(asked: Asked):
    """Each entry's values over the grid completed as a product a(x) b(y) ... of one function for
    each factor.

    Alternating least squares on the ID cells, each entry (a pixel) for itself, from the lines of
    cells through one with signal. `NOISE`, as a share of the largest ID signal, counts as none: a
    pixel never above it is 0 (see `lit_pixels`), and so, by a ridge, is nearly a value of a factor
    where the product of the others is below it in every ID cell. That decides the outcome, since
    true bumps have rank one (Eq 13 to 16): at 1e-9 exact targets are completed over the whole donut
    10 to 18 of N = 28, from tails that no decoder could learn.
    """
    flat_BxP = asked.truths.reshape(len(asked.truths), -1)
    lit = lit_pixels(flat_BxP[~asked.held_out], NOISE)
    completed_BxP = np.zeros(flat_BxP.shape)
    if not lit.any():
        return completed_BxP.reshape(asked.truths.shape)
    seen = grids.over_grid(~asked.held_out, asked.grid["sizes"])
    values_PxG = flat_BxP[:, lit].T.reshape(-1, *seen.shape) * seen
    functions, axes = _lines_with_signal(values_PxG), range(seen.ndim)
    for _ in range(SWEEPS):
        for axis in reversed(axes):
            others = [function for a, function in enumerate(functions) if a != axis]
            rows_PxR = grids.products(others, len(values_PxG))
            shape = rows_PxR.shape[1], seen.shape[axis]
            values_PxRxV = np.moveaxis(values_PxG, axis + 1, -1).reshape(-1, *shape)
            seen_RxV = np.moveaxis(seen, axis, -1).reshape(shape)
            functions[axis] = _fit(values_PxRxV, rows_PxR, seen_RxV)
    functions[1:] = [function / _norm(function) for function in functions[1:]]
    completed_BxP[:, lit] = grids.products(functions, len(values_PxG)).T
    return completed_BxP.reshape(asked.truths.shape)


def _lines_with_signal(values_PxG):
    """For each axis of the grid the values (P, V) along it, through a cell with signal."""
    places, within = [], values_PxG
    for axis in range(values_PxG.ndim - 1, 0, -1):
        others = tuple(a for a in range(1, within.ndim) if a != axis)
        place_P = np.argmax(np.sum(within**2, axis=others), axis=1)
        place_Px1 = place_P.reshape(-1, *(1,) * (within.ndim - 1))
        within = np.take_along_axis(within, place_Px1, axis=axis)[..., 0]
        places.insert(0, place_P)
    return grids.lines_through(values_PxG, places)


def _fit(values_PxNxM, rows_PxN, seen_NxM):
    """Least-squares columns (P, M) given the rows, of norm 1, with a ridge of `NOISE`^2."""
    rows = rows_PxN / _norm(rows_PxN)
    return np.einsum("pnm,pn->pm", values_PxNxM, rows) / (rows**2 @ seen_NxM + NOISE**2)


def _norm(vectors_PxN):
    return np.linalg.norm(vectors_PxN, axis=1, keepdims=True)


def blank(asked: Asked):
    """Nothing."""
    return np.zeros(asked.truths.shape)


GRID_PREDICTORS = {
    of.__name__: of for of in (blank, id_constant, nearest_seen, line_mean, rank_one)
}


def lit_pixels(targets_seen_Bx, threshold: float = 0.01):
    """Bool, of the shape of one target: pixels whose signal exceeds `threshold` of the largest in
    some seen image.

    The others a decoder whose pixels share no weights cannot learn. Under the donut 6 to 22 of
    N = 28, sigma = 1, they are 121 of 784 at 1% and 169 at 10%; 10 to 18, 9 at 1%; under the
    corner 12 of N = 32, sigma = 1.5, 256 of 1024 at 1%.
    """
    size = np.abs(np.asarray(targets_seen_Bx)).max(axis=0)
    return size > threshold * size.max()
