"""What the held-out images would be without any learned composition: trivial predictors.

Each gives signals (Q, H, W) for the held-out cells, in row-major order, from those of the seen
cells alone. Mean squared error over the hole, as a multiple of a blank image's, for true bumps,
N = 28, donut 6 to 22, sigma = 1 (no brightest pixel is right, of rank one 6%): best constant
.98, nearest seen 1.47, row and column 1.20, rank one .91; the plus 30.9, the product of stripes 0.

All but the stripes raise ValueError unless targets are finite over all cells of a square grid,
(N*N, H, W), and held_out is (N*N,) bool with some cell seen.
"""

from math import isqrt

import numpy as np

from compgen_jax.analysis import evaluation
from compgen_jax.analysis.kernels import check_finite

SWEEPS = 50  # on bumps, within 1% of the amplitude of what 500 give


def blank(targets_BxHxW, held_out_B):
    """A blank signal, 0, for every held-out cell; (Q, H, W)."""
    targets, held_out = _checked(targets_BxHxW, held_out_B)
    return np.zeros((held_out.sum(), *targets.shape[1:]))


def best_constant(targets_BxHxW, held_out_B):
    """The constant image nearest to the seen ones, their mean over cells and pixels; (Q, H, W).

    Knows less than `evaluation.summarize`'s, which is fitted to the held-out images themselves.
    """
    targets, held_out = _checked(targets_BxHxW, held_out_B)
    return np.full((held_out.sum(), *targets.shape[1:]), targets[~held_out].mean())


def nearest_seen(targets_BxHxW, held_out_B):
    """The image of the nearest seen cell, the first of several; (Q, H, W)."""
    targets, held_out = _checked(targets_BxHxW, held_out_B)
    grid = isqrt(len(held_out))
    return targets[evaluation.nearest_seen(held_out.reshape(grid, grid))[held_out]]


def row_column_mean(targets_BxHxW, held_out_B):
    """Mean of the nearest seen images on the same row and on the same column; (Q, H, W).

    Images at the same distance on a line are averaged first; a line without a seen cell is left
    out. ValueError if both lines of a held-out cell are.
    """
    targets, held_out = _checked(targets_BxHxW, held_out_B)
    places_Bx2 = np.stack(np.divmod(np.arange(len(held_out)), isqrt(len(held_out))), axis=1)
    offsets_QxSx2 = np.abs(places_Bx2[held_out][:, None] - places_Bx2[~held_out][None])
    weights_QxS, lines_Q = 0.0, 0
    for same, along in ((0, 1), (1, 0)):
        apart_QxS = np.where(offsets_QxSx2[..., same] == 0, offsets_QxSx2[..., along], np.inf)
        nearest_Qx1 = apart_QxS.min(axis=1, keepdims=True)
        tied_QxS = (apart_QxS == nearest_Qx1) & np.isfinite(apart_QxS)
        weights_QxS = weights_QxS + tied_QxS / np.maximum(tied_QxS.sum(axis=1, keepdims=True), 1)
        lines_Q = lines_Q + tied_QxS.any(axis=1)
    if not np.all(lines_Q):
        alone = places_Bx2[held_out][lines_Q == 0][:8, ::-1].tolist()
        raise ValueError(f"cells {alone} (x, y) have no seen cell on their row or column")
    return np.tensordot(weights_QxS / lines_Q[:, None], targets[~held_out], axes=1)


def rank_one(targets_BxHxW, held_out_B, noise: float = 0.01):
    """Each pixel's values over the grid completed as a(x) b(y); (Q, H, W).

    Alternating least squares on the seen cells, each pixel for itself. `noise`, of the largest
    seen signal, counts as none: a pixel never above it is 0 (see `lit_pixels`), and so, by a
    ridge, is nearly a line of cells where the other factor is below it in every seen cell. That
    decides the outcome, since true bumps have rank one (Eq 13 to 16): at 1e-9 exact targets are
    completed over the whole donut 10 to 18 of N = 28, from tails that no decoder could learn.
    ValueError unless `noise` is above 0.
    """
    if not noise > 0:
        raise ValueError(f"noise must be above 0, not {noise}")
    targets, held_out = _checked(targets_BxHxW, held_out_B)
    grid, shape = isqrt(len(held_out)), targets.shape[1:]
    seen = ~held_out.reshape(grid, grid)
    lit = lit_pixels(targets[~held_out], noise)
    values_PxNxN = targets[:, lit].T.reshape(-1, grid, grid) * seen
    column_P = np.argmax(np.sum(values_PxNxN**2, axis=1), axis=1)  # with signal
    of_y_PxN = np.take_along_axis(values_PxNxN, column_P[:, None, None], axis=2)[..., 0]
    for _ in range(SWEEPS):
        of_x_PxN = _fit(values_PxNxN, of_y_PxN, seen, noise)
        of_y_PxN = _fit(values_PxNxN.transpose(0, 2, 1), of_x_PxN, seen.T, noise)
    of_x_PxN = of_x_PxN / _norm(of_x_PxN)
    completed = np.zeros((len(held_out), *shape))
    completed[:, lit] = (of_y_PxN[:, :, None] * of_x_PxN[:, None, :]).reshape(-1, grid**2).T
    return completed[held_out]


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
    "row_column_mean": row_column_mean,
    "rank_one": rank_one,
}


def stripes_product(stripes_2NxHxW, held_out_B, amplitude: float = 1.0):
    """Product of each held-out cell's two stripes over the amplitude: the true bump; (Q, H, W).

    `stripes` are N vertical ones, x = 0..N-1, and then N horizontal ones (Figure 7a). ValueError
    for other shapes.
    """
    vertical, horizontal = _stripes_of(stripes_2NxHxW, held_out_B)
    return vertical * horizontal / amplitude


def stripes_sum(stripes_2NxHxW, held_out_B):
    """Sum of each held-out cell's two stripes: the plus; (Q, H, W). As `stripes_product`."""
    vertical, horizontal = _stripes_of(stripes_2NxHxW, held_out_B)
    return vertical + horizontal


def stripes_union(stripes_2NxHxW, held_out_B):
    """The brighter of each held-out cell's two stripes, pixel by pixel. As `stripes_product`."""
    vertical, horizontal = _stripes_of(stripes_2NxHxW, held_out_B)
    return np.maximum(vertical, horizontal)


def lit_pixels(targets_seen_BxHxW, threshold: float = 0.01):
    """(H, W) bool: pixels whose signal exceeds `threshold` of the largest in some seen image.

    The others a decoder whose pixels share no weights cannot learn. Under the donut 6 to 22 of
    N = 28, sigma = 1, they are 121 of 784 at 1% and 169 at 10%; 10 to 18, 9 at 1%; under the
    corner 12 of N = 32, sigma = 1.5, 256 of 1024 at 1%.
    """
    size_HxW = np.abs(np.asarray(targets_seen_BxHxW)).max(axis=0)
    return size_HxW > threshold * size_HxW.max()


def _stripes_of(stripes_2NxHxW, held_out_B):
    stripes, held_out, grid = _checked_shapes("stripes", stripes_2NxHxW, held_out_B)
    if len(stripes) != 2 * grid:
        raise ValueError(f"stripes must be ({2 * grid}, H, W), not {stripes.shape}")
    y, x = np.divmod(np.flatnonzero(held_out), grid)
    return stripes[x], stripes[grid + y]


def _checked(targets_BxHxW, held_out_B):
    targets, held_out, grid = _checked_shapes("targets", targets_BxHxW, held_out_B)
    if len(targets) != grid**2:
        raise ValueError(f"targets must be ({grid**2}, H, W), not {targets.shape}")
    if held_out.all():
        raise ValueError("held_out must leave some cell seen")
    check_finite("targets", targets)
    return targets, held_out


def _checked_shapes(name, signals, held_out_B):
    signals, held_out = np.asarray(signals, np.float64), np.asarray(held_out_B)
    grid = isqrt(held_out.size)
    if held_out.dtype != bool or held_out.shape != (grid**2,) or signals.ndim != 3:
        raise ValueError(
            f"{name} (B, H, W) and held_out (N*N,) bool needed, not "
            f"{signals.shape} and {held_out.shape} {held_out.dtype}"
        )
    return signals, held_out, grid
