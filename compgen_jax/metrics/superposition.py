"""Is an output a superposition of seen ones? (section 3.3, Figure 1d, Eq 3, 4, E6, E7)"""

import numpy as np

from compgen_jax.statistics import mean_of_known


def matching_sums(outputs_BxD, factors_BxF, points_QxF):
    """(Q, F, D): sums of the seen outputs that share a held-out point's value of each factor.
    ValueError for a value that no seen cell has."""
    outputs, factors = np.asarray(outputs_BxD, np.float64), np.asarray(factors_BxF)
    points = np.asarray(points_QxF)
    sums_QxFxD = np.empty((*points.shape, outputs.shape[1]))
    matched_QxF = np.empty(points.shape, bool)
    for f, values_Q in enumerate(points.T):
        # points share few values, and pairs of points and cells would fill the memory
        values_V, index_Q = np.unique(values_Q, return_inverse=True)
        matches_VxB = (values_V[:, None] == factors[None, :, f]).astype(np.float64)
        sums_QxFxD[:, f] = (matches_VxB @ outputs)[index_Q]
        matched_QxF[:, f] = matches_VxB.any(axis=1)[index_Q]
    if not matched_QxF.all():
        unmatched = points[~matched_QxF.all(axis=1)]
        raise ValueError(f"points {unmatched[:8].tolist()} have a value that no seen cell has")
    return sums_QxFxD


def superposition_r2(outputs_QxD, parts_QxKxD):
    """(Q,) R^2 of every output's least-squares fit on its own K superposed signals, against a blank
    signal; NaN where an output is blank."""
    outputs, parts = np.asarray(outputs_QxD, np.float64), np.asarray(parts_QxKxD, np.float64)
    weights_QxK = np.einsum("qd,qdk->qk", outputs, np.linalg.pinv(parts, rcond=1e-10))
    residual_QxD = outputs - np.einsum("qk,qkd->qd", weights_QxK, parts)
    total_Q = np.sum(outputs**2, axis=-1)
    return 1 - np.sum(residual_QxD**2, axis=-1) / np.where(total_Q > 0, total_Q, np.nan)


SCORES = ("r2", "shuffled_r2", "inner_r2", "inner_shuffled_r2")
SHUFFLES = 20


def scores(outputs_QxD, parts_QxKxD, points_QxF, distance_Q) -> dict:
    """Means of `superposition_r2` and of its control over held-out points, and over the inner ones,
    at least half as far from the seen cells as the farthest; NaN without `parts_QxKxD`."""
    means = dict.fromkeys(SCORES, np.nan)
    if parts_QxKxD is None:
        return means
    parts, distance_Q = np.asarray(parts_QxKxD), np.asarray(distance_Q)
    inner_Q = distance_Q >= distance_Q.max() / 2
    values = {"r2": superposition_r2(outputs_QxD, parts)}
    others_RxQ = other_coordinates(points_QxF, SHUFFLES)
    if others_RxQ is not None:
        of_others = [superposition_r2(outputs_QxD, parts[others_Q]) for others_Q in others_RxQ]
        values["shuffled_r2"] = np.stack(of_others)
    for name, values_xQ in values.items():  # blank outputs have no R^2
        means[name] = float(mean_of_known(values_xQ.ravel(order="K")))
        means[f"inner_{name}"] = float(mean_of_known(values_xQ[..., inner_Q].ravel(order="K")))
    return means


def other_coordinates(points_QxF, repeats: int):
    """(repeats, Q) int: random points that share no coordinate with each; None if there is none."""
    points, rng = np.asarray(points_QxF), np.random.default_rng(0)
    others = [np.flatnonzero((points != point[None]).all(axis=1)) for point in points]
    if not all(map(len, others)):
        return None
    return np.stack([rng.choice(of_point, repeats) for of_point in others], axis=1)
