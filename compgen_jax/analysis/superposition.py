"""Is an output a superposition of seen ones? (section 3.3, Figure 1d, Eq 3 and 4)

The paper builds the superpositions in two ways: the decoder's outputs for codes whose other
half is the mean over the training set (E6), and the sums of its outputs at the seen cells that
share x or y (E7). Either gives two signals per held-out point; how much of the output they
explain is compared with the superpositions of other coordinates.

R^2 over the hole on the sums of matching outputs, mean and control, for maps that draw true
bumps elsewhere; N = 28, donut 6 to 22: plus .40 (.04), lookup .34 (.03), true bump .014 (.001),
iid noise .003 (.002). So it separates superposition from composition and from noise.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from compgen_jax.analysis.kernels import check_finite


def mean_code_superpositions(code_E, mean_code_E):
    """Codes [g(x); mean g(y)] and [mean g(x); g(y)] of a point; two JAX arrays (E,).

    `code_E` is [g(x); g(y)], halves of equal length; `mean_code_E` its mean over the training
    set, every training point counted as often as it was drawn. ValueError for other shapes.
    """
    if jnp.ndim(code_E) != 1 or jnp.shape(code_E) != jnp.shape(mean_code_E) or len(code_E) % 2:
        raise ValueError(
            "code and mean code must be (E,) with E even, "
            f"not {jnp.shape(code_E)} and {jnp.shape(mean_code_E)}"
        )
    (code_x, code_y), (mean_x, mean_y) = jnp.split(code_E, 2), jnp.split(mean_code_E, 2)
    return jnp.concatenate([code_x, mean_y]), jnp.concatenate([mean_x, code_y])


class MatchingSums(NamedTuple):
    """sums, means (Q, 2, D): over the outputs that share x, then y; counts (Q, 2)."""

    sums: np.ndarray
    means: np.ndarray
    counts: np.ndarray


def matching_sums(outputs_BxD, factors_Bx2, points_Qx2) -> MatchingSums:
    """Sums and means of the seen outputs with the x, and with the y, of each point.

    Args: outputs and factors of the seen cells, every cell once; points that are held out, so
    that no cell matches both. ValueError if a point shares x or y with no seen cell.
    """
    outputs, factors = np.asarray(outputs_BxD, np.float64), np.asarray(factors_Bx2)
    points = np.asarray(points_Qx2)
    if outputs.ndim != 2 or factors.shape != (len(outputs), 2) or points.shape[1:] != (2,):
        raise ValueError(
            "outputs (B, D), factors (B, 2) and points (Q, 2) needed, not "
            f"{outputs.shape}, {factors.shape} and {points.shape}"
        )
    check_finite("outputs", outputs)
    matches_Qx2xB = (points[:, :, None] == factors.T[None]).astype(np.float64)
    counts_Qx2 = matches_Qx2xB.sum(axis=2)
    if not counts_Qx2.all():
        alone = points[~counts_Qx2.all(axis=1)]
        raise ValueError(f"points {alone[:8].tolist()} share x or y with no seen cell")
    sums_Qx2xD = matches_Qx2xB @ outputs
    return MatchingSums(sums_Qx2xD, sums_Qx2xD / counts_Qx2[:, :, None], counts_Qx2)


class SuperpositionFit(NamedTuple):
    """r2, centred_r2 (Q,), 0 to 1; weights (Q, K) of the parts and residual (Q, D) of the former.

    `r2` is against a blank signal, 0; `centred_r2` after subtracting each signal's mean over
    its pixels, output and parts alike. NaN where an output is blank or constant.
    """

    r2: np.ndarray
    centred_r2: np.ndarray
    weights: np.ndarray
    residual: np.ndarray


def superposition_r2(outputs_QxD, parts_QxKxD) -> SuperpositionFit:
    """Least-squares fit of every output on its own K superposed signals, weights of any sign.

    ValueError for shapes that do not match or values that are not finite.
    """
    outputs, parts = np.asarray(outputs_QxD, np.float64), np.asarray(parts_QxKxD, np.float64)
    if outputs.ndim != 2 or parts.ndim != 3 or parts.shape[::2] != outputs.shape:
        raise ValueError(
            f"outputs (Q, D) and parts (Q, K, D) needed, not {outputs.shape} and {parts.shape}"
        )
    check_finite("outputs", outputs)
    check_finite("parts", parts)
    weights, residual = _least_squares(outputs, parts)
    centred = outputs - outputs.mean(axis=-1, keepdims=True)
    _, centred_residual = _least_squares(centred, parts - parts.mean(axis=-1, keepdims=True))
    return SuperpositionFit(
        _explained(residual, outputs), _explained(centred_residual, centred), weights, residual
    )


def shuffled_r2(outputs_QxD, parts_QxKxD, indices_RxQ):
    """Control: `r2` and `centred_r2` (R, Q) of the outputs on other points' superpositions.

    Row r gives output q the parts of point `indices_RxQ[r, q]`; see `other_coordinates`.
    """
    fits = [superposition_r2(outputs_QxD, np.asarray(parts_QxKxD)[row]) for row in indices_RxQ]
    return np.stack([fit.r2 for fit in fits]), np.stack([fit.centred_r2 for fit in fits])


def other_coordinates(points_Qx2, repeats: int, seed: int = 0):
    """(repeats, Q) int: for every point, random points that share neither its x nor its y.

    A plain permutation would leave some points a part of their own. ValueError if a point has
    no such other.
    """
    points = np.asarray(points_Qx2)
    rng = np.random.default_rng(seed)
    columns = []
    for point in points:
        others = np.flatnonzero((points != point[None]).all(axis=1))
        if not others.size:
            raise ValueError(f"point {point.tolist()}: every other point shares its x or y")
        columns.append(rng.choice(others, repeats))
    return np.stack(columns, axis=1)


def _least_squares(outputs_QxD, parts_QxKxD):
    weights_QxK = np.einsum("qd,qdk->qk", outputs_QxD, np.linalg.pinv(parts_QxKxD, rcond=1e-10))
    return weights_QxK, outputs_QxD - np.einsum("qk,qkd->qd", weights_QxK, parts_QxKxD)


def _explained(residual_QxD, outputs_QxD):
    total_Q = np.sum(outputs_QxD**2, axis=-1)
    share_Q = np.full(len(total_Q), np.nan)
    np.divide(np.sum(residual_QxD**2, axis=-1), total_Q, out=share_Q, where=total_Q > 0)
    return 1 - share_Q
