"""What the held-out outputs would be without any learned composition: trivial predictors.

Each gives outputs (Q, ...) for the held-out cells of a grid, in their order (see `grids`), from
those of the seen cells alone. Mean squared error over the hole, as a multiple of a blank image's,
for true bumps, N = 28, donut 6 to 22, sigma = 1 (no brightest pixel is right, of rank one 6%):
best constant .98, nearest seen 1.47, line mean 1.20, rank one .91; the plus 30.9, the product of
stripes 0.

All but the stripes take targets (B, ...) of every cell, images (as signals) or vectors, and
raise ValueError unless they are finite and held_out is (B,) bool with some cell seen. `ordered`
and `periods` of the factors are those of `grids.offsets`.
"""

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics.kernels import check_finite

SWEEPS = 50  # on bumps, within 1% of the amplitude of what 500 give
PAIRS_AT_ONCE = 2**23  # of held-out and seen cells: bounds memory


def blank(targets_Bx, held_out_B, sizes):
    """A blank signal, 0, for every held-out cell; (Q, ...)."""
    targets, held_out = _checked(targets_Bx, held_out_B, sizes)
    return np.zeros((held_out.sum(), *targets.shape[1:]))


def best_constant(targets_Bx, held_out_B, sizes):
    """The constant nearest to the seen outputs, their mean over cells and pixels; (Q, ...).

    Knows less than the baseline of a run's summary, which is fitted to the held-out outputs.
    """
    targets, held_out = _checked(targets_Bx, held_out_B, sizes)
    return np.full((held_out.sum(), *targets.shape[1:]), targets[~held_out].mean())


def nearest_seen(targets_Bx, held_out_B, sizes, ordered=None, periods=None):
    """The output of the nearest seen cell, the first of several; (Q, ...)."""
    targets, held_out = _checked(targets_Bx, held_out_B, sizes)
    return targets[grids.nearest_seen(held_out, sizes, ordered, periods)[held_out]]


def line_mean(targets_Bx, held_out_B, sizes, ordered=None, periods=None):
    """Mean over the factors of the nearest seen outputs that differ in that factor alone, which
    lie on a line of cells (of two factors, a row and a column); (Q, ...).

    Outputs at the same distance on a line are averaged first; a line without a seen cell is left
    out. ValueError if all lines of a held-out cell are.
    """
    targets, held_out = _checked(targets_Bx, held_out_B, sizes)
    places, tables = grids.indices(sizes), grids.offsets(sizes, ordered, periods)
    hidden_QxF, seen_SxF = places[held_out], places[~held_out]
    step = max(1, PAIRS_AT_ONCE // len(seen_SxF))
    means = [np.zeros((0, *targets.shape[1:]))]
    for start in range(0, len(hidden_QxF), step):
        cells = hidden_QxF[start : start + step]
        weights_QxS, lines_Q = _line_weights(cells, seen_SxF, tables)
        if not np.all(lines_Q):
            alone = cells[lines_Q == 0][:8].tolist()
            raise ValueError(f"cells {alone} differ from every seen cell in more than one factor")
        means.append(np.tensordot(weights_QxS / lines_Q[:, None], targets[~held_out], axes=1))
    return np.concatenate(means)


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


def rank_one(targets_Bx, held_out_B, sizes, noise: float = 0.01):
    """Each pixel's values over the grid completed as a product a(x) b(y) ... of one function for
    each factor; (Q, ...).

    Alternating least squares on the seen cells, each pixel for itself, from the lines of cells
    through one with signal. `noise`, of the largest seen signal, counts as none: a pixel never
    above it is 0 (see `lit_pixels`), and so, by a ridge, is nearly a value of a factor where the
    product of the others is below it in every seen cell. That decides the outcome, since true
    bumps have rank one (Eq 13 to 16): at 1e-9 exact targets are completed over the whole donut
    10 to 18 of N = 28, from tails that no decoder could learn. ValueError unless `noise` is above
    0.
    """
    if not noise > 0:
        raise ValueError(f"noise must be above 0, not {noise}")
    targets, held_out = _checked(targets_Bx, held_out_B, sizes)
    flat_BxP = targets.reshape(len(targets), -1)
    lit = lit_pixels(flat_BxP[~held_out], noise)
    if not lit.any():
        return blank(targets, held_out, sizes)
    seen = grids.over_grid(~held_out, sizes)
    values_PxG = flat_BxP[:, lit].T.reshape(-1, *seen.shape) * seen
    functions, axes = _lines_with_signal(values_PxG), range(seen.ndim)
    for _ in range(SWEEPS):
        for axis in reversed(axes):
            others = [function for a, function in enumerate(functions) if a != axis]
            rows_PxR = _product(others, len(values_PxG))
            shape = rows_PxR.shape[1], seen.shape[axis]
            values_PxRxV = np.moveaxis(values_PxG, axis + 1, -1).reshape(-1, *shape)
            seen_RxV = np.moveaxis(seen, axis, -1).reshape(shape)
            functions[axis] = _fit(values_PxRxV, rows_PxR, seen_RxV, noise)
    functions[1:] = [function / _norm(function) for function in functions[1:]]
    completed_BxP = np.zeros(flat_BxP.shape)
    completed_BxP[:, lit] = _product(functions, len(values_PxG)).T
    return completed_BxP[held_out].reshape(held_out.sum(), *targets.shape[1:])


def _lines_with_signal(values_PxG):
    """For each axis of the grid the values (P, V) along it, through a cell with signal."""
    places, within = [], values_PxG
    for axis in range(values_PxG.ndim - 1, 0, -1):
        others = tuple(a for a in range(1, within.ndim) if a != axis)
        place_P = np.argmax(np.sum(within**2, axis=others), axis=1)
        place_Px1 = place_P.reshape(-1, *(1,) * (within.ndim - 1))
        within = np.take_along_axis(within, place_Px1, axis=axis)[..., 0]
        places.insert(0, place_P)
    pixels = np.arange(len(values_PxG))[:, None]
    lines = []
    for axis, size in enumerate(values_PxG.shape[1:]):
        place = [place_P[:, None] for place_P in places]
        place[axis] = np.arange(size)[None, :]
        lines.append(values_PxG[pixels, *place])
    return lines


def _product(functions, count):
    """(P, R) products of functions (P, V) over all cells of their axes; 1 of none."""
    found_PxR = np.ones((count, 1)) if not functions else functions[0]
    for function in functions[1:]:
        found_PxR = (found_PxR[:, :, None] * function[:, None, :]).reshape(count, -1)
    return found_PxR


def _fit(values_PxNxM, rows_PxN, seen_NxM, noise):
    """Least-squares columns (P, M) given the rows, of norm 1, with a ridge of noise^2."""
    rows = rows_PxN / _norm(rows_PxN)
    return np.einsum("pnm,pn->pm", values_PxNxM, rows) / (rows**2 @ seen_NxM + noise**2)


def _norm(vectors_PxN):
    return np.linalg.norm(vectors_PxN, axis=1, keepdims=True)


PREDICTORS = {
    "blank": blank,
    "best_constant": best_constant,
    "nearest_seen": nearest_seen,
    "line_mean": line_mean,
    "rank_one": rank_one,
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


def _checked(targets_Bx, held_out_B, sizes):
    targets, held_out = np.asarray(targets_Bx, np.float64), grids.checked_mask(held_out_B, sizes)
    if targets.ndim < 1 or len(targets) != len(held_out):
        raise ValueError(f"targets must be ({len(held_out)}, ...), not {targets.shape}")
    if held_out.all():
        raise ValueError("held_out must leave some cell seen")
    check_finite("targets", targets)
    return targets, held_out
