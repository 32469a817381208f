"""Numbers of a network's layers on the cells that it was shown, and on no other: what could say
beforehand whether it will compose.

The seen cells are no grid: a block, a corner or cells at random are missing, so the analysis of
variance becomes least squares on the factors' values.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.metrics import geometry, kernels, layers, probes

MOST_CELLS = 400  # of a set of seen cells that is measured
FOLDS = 5
ROUNDING = 1e-9  # a smaller share of float32 features' variance is rounding
NUMBERS = ("interaction", "probe", "log10_volume_mean", "log10_volume_excess",
           "log10_volume_spread", "orthogonality")  # fmt: skip


def measure(
    activations_of: Callable,
    points_SxF,
    real=None,
    differentiable: bool = True,
    true: Callable | None = None,
    periods=None,
    most: int = MOST_CELLS,
) -> dict[str, dict]:
    """{layer: {number: value}}, `NUMBERS`, of a network at seen points; see `seen_numbers`.

    Args:
      activations_of: point (F,) float32 -> pytree of arrays of any shape, each a layer, named by
        its place in it, as in `function.measure`; its parameters are closed over.
      points: (S, F), no cell twice; of more than `most` so many, `choose_cells`.
      real: of each factor, whether there is a derivative along it; None: all are.
      differentiable: in these, forward mode; if not, numbers of geometry are NaN.
      true: point (F,) -> the output that it should have, for `log10_volume_excess`.
      periods: of each factor, inf where it does not repeat; None: none does.

    Compiles anew at every call: of many networks of one shape, `seen_numbers` takes arrays.
    Raises ValueError as `seen_numbers` and `choose_cells` do.
    """
    points = np.asarray(points_SxF, np.float32)
    points = jnp.asarray(points[choose_cells(points, most)])
    real = probes.checked_real(real, points.shape[1])

    named = layers.named(activations_of)
    features = jax.device_get(jax.lax.map(named, points, batch_size=128))
    metrics, of_true = dict.fromkeys(features), None
    if differentiable and real.any():
        metrics = _metrics(named, points, real)
        of_true = None if true is None else _metrics(true, points, real)
    return {
        name: seen_numbers(layer, points, metrics[name], of_true, real, periods)
        for name, layer in features.items()
    }


def seen_numbers(
    features_SxD,
    factors_SxF,
    metrics_SxRxR=None,
    true_metrics_SxRxR=None,
    real=None,
    periods=None,
    seed: int = 0,
) -> dict:
    """Numbers of one layer from its activations at S seen cells, any part of a grid; all NaN of
    features that are constant there.

    Args:
      features: (S, D), any D.  factors: (S, F), no cell twice.
      metrics: (S, R, R), of the layer, the tangents those of the R real factors. None: it has no
        derivative, or no factor is real, and numbers of geometry are NaN.
      true_metrics: the same of the true output.
      real: of each factor, whether it is probed as a number; None: all are.
      periods: of each factor, inf where it does not repeat: the probe of one that does reads cos
        and sin. None: none does.
      seed: of the folds of the probe.

    Returns
      interaction: see `interaction`.
      probe: R^2 of a ridge of each real factor, cross-validated over the cells in 5 random folds,
        `probes.probe`'s id_r2 of a factor without a period; the mean over them, NaN of none.
      log10_volume_mean, log10_volume_spread: mean and standard deviation over the cells of
        log10 sqrt det g, with the floor of `geometry.log_volume`; NaN of a layer without volume.
      log10_volume_excess: that mean less the true output's, which no longer depends on the
        factors' units; NaN without `true_metrics`.
      orthogonality: the mean |cosine| of the angle between two real factors' tangents, 0 where
        they are orthogonal and 1 where parallel; NaN of fewer than two.

    Raises ValueError for shapes that do not match, values that are not finite, a cell given twice,
    and fewer cells than twice the folds.
    """
    features, factors = np.asarray(features_SxD), _checked_cells(factors_SxF)
    if features.ndim != 2 or len(features) != len(factors):
        raise ValueError(f"features must be ({len(factors)}, D), not {features.shape}")
    if len(factors) < 2 * FOLDS:
        raise ValueError(f"{len(factors)} cells: {FOLDS} folds need at least {2 * FOLDS}")
    real = probes.checked_real(real, factors.shape[1])
    periods = _checked_periods(periods, factors.shape[1])
    kernels.check_finite("features", features)
    if _is_constant(features):
        return dict.fromkeys(NUMBERS, np.nan)
    centred = probes.compact(features)
    targets = [_targets(factors[:, f], periods[f]) for f in np.flatnonzero(real)]
    return {
        "interaction": _interaction(centred, factors),
        "probe": _probe(centred, targets, seed) if targets else np.nan,
        **_geometry(metrics_SxRxR, true_metrics_SxRxR, len(factors), int(real.sum())),
    }


def interaction(features_SxD, factors_SxF) -> float:
    """Share, 0 to 1, of the features' variance over the cells that is in no factor alone: what is
    left of it after a least-squares fit of one effect for each value of each factor.

    Over a complete grid it is `layers.interaction`. The fit of r free effects takes its part of
    anything: noise has (S - r) / (S - 1), so compare networks over the same cells. NaN of constant
    features, and where the effects fit anything, r = S. Errors as in `seen_numbers`.
    """
    features, factors = np.asarray(features_SxD), _checked_cells(factors_SxF)
    if features.ndim != 2 or len(features) != len(factors):
        raise ValueError(f"features must be ({len(factors)}, D), not {features.shape}")
    kernels.check_finite("features", features)
    return np.nan if _is_constant(features) else _interaction(probes.compact(features), factors)


def choose_cells(factors_SxF, most: int = MOST_CELLS, seed: int = 0):
    """(S',) int, ascending: which of the cells are measured, at most `most`; all where they are
    no more, else at random, by a rule that loses no value and no link between values.

    In a random order, cells are first taken that add to the rank of the additive design, until it
    is that of all, then any. So every effect, and every difference of effects, that all cells
    determine is still determined. The same seed gives the same cells.

    ValueError for a cell given twice, and where `most` is below the rank.
    """
    factors = _checked_cells(factors_SxF)
    order = np.random.default_rng(seed).permutation(len(factors))
    if len(factors) <= most:
        return np.sort(order)
    design = _design(factors)
    basis, first = np.zeros((0, design.shape[1])), []
    for cell in order:
        left = design[cell]
        for _ in range(2):  # the second makes up for the rounding of the first
            left = left - (basis @ left) @ basis
        if np.linalg.norm(left) > 1e-8:
            basis = np.concatenate([basis, left[None] / np.linalg.norm(left)])
            first.append(cell)
    if len(first) > most:
        raise ValueError(f"most must be at least {len(first)}, the rank of the design, not {most}")
    others = order[~np.isin(order, first)]
    return np.sort(np.concatenate([first, others[: most - len(first)]]).astype(int))


def _metrics(activations_of, points, real):
    """As `geometry.metric_tensors`, of the real factors alone."""
    along = np.flatnonzero(real)

    def at(point):
        of_real = lambda values: activations_of(point.at[along].set(values))
        return geometry.metric_tensor(of_real, point[along])

    found = jax.lax.map(at, points, batch_size=geometry.POINTS_AT_ONCE)
    return jax.device_get(found)


def _is_constant(features) -> bool:
    """Whether it varies by less than rounding, as `anova.anova_shares` has it of a unit."""
    features = features.astype(np.float64)
    variance = np.sum((features - features.mean(axis=0, keepdims=True)) ** 2)
    return bool(variance <= 1e-14 * np.sum(features**2))


def _design(factors):
    """(S, V_1 + ... + V_F): 1 where a cell has that value of that factor."""
    columns = []
    for values in factors.T:
        _, label = np.unique(values, return_inverse=True)
        columns.append(np.eye(label.max() + 1)[label.ravel()])
    return np.concatenate(columns, axis=1)


def _interaction(centred, factors) -> float:
    left, scales, _ = np.linalg.svd(_design(factors), full_matrices=False)
    effects = left[:, scales > 1e-10 * scales[0]]
    if effects.shape[1] == len(factors):
        return np.nan
    residual = centred - effects @ (effects.T @ centred)
    share = float(np.sum(residual**2) / np.sum(centred**2))
    return share if share > ROUNDING else 0.0  # units of one factor each tie


def _targets(values, period):
    """(S, 1) the values, or of an angle (S, 2), cos and sin."""
    if not np.isfinite(period):
        return values[:, None]
    angle = 2 * np.pi * values / period
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _probe(centred, targets, seed) -> float:
    fold = np.random.default_rng(seed).permutation(len(centred)) % FOLDS
    predicted = [np.empty_like(each) for each in targets]
    for k in range(FOLDS):
        design = probes.decompose(centred[fold != k])
        for each, found in zip(targets, predicted, strict=True):
            found[fold == k] = probes.ridge(design, each[fold != k])(centred[fold == k])
    r2 = []
    for each, found in zip(targets, predicted, strict=True):
        total = np.sum((each - each.mean(axis=0, keepdims=True)) ** 2)
        r2.append(1 - np.sum((each - found) ** 2) / total if total > 0 else np.nan)
    return float(np.mean(r2))


def _geometry(metrics, true_metrics, cells: int, real: int) -> dict:
    found = dict.fromkeys(NUMBERS[2:], np.nan)
    if metrics is None or real == 0:
        return found
    logs = _log_volume("metrics", metrics, cells, real)
    found["log10_volume_mean"] = float(logs.mean())
    found["log10_volume_spread"] = float(logs.std())
    if true_metrics is not None:
        of_true = _log_volume("true_metrics", true_metrics, cells, real)
        found["log10_volume_excess"] = float(logs.mean() - of_true.mean())
    if real > 1:
        pairs = np.triu_indices(real, k=1)
        cosines = np.abs(np.asarray(geometry.cosines(jnp.asarray(metrics)), np.float64))
        found["orthogonality"] = float(cosines[:, *pairs].mean())
    return found


def _log_volume(name, metrics, cells: int, real: int):
    metrics = np.asarray(metrics)
    if metrics.shape != (cells, real, real):
        raise ValueError(f"{name} must be {(cells, real, real)}, not {metrics.shape}")
    kernels.check_finite(name, metrics)
    volume = np.asarray(geometry.volume_element(jnp.asarray(metrics)), np.float64)
    return geometry.log_volume(volume) if volume.any() else np.full(cells, np.nan)


def _checked_cells(factors_SxF):
    factors = np.asarray(factors_SxF, np.float64)
    if factors.ndim != 2 or 0 in factors.shape:
        raise ValueError(f"factors must be (S, F), not {factors.shape}")
    kernels.check_finite("factors", factors)
    if len(np.unique(factors, axis=0)) < len(factors):
        raise ValueError("factors: a cell is given twice")
    return factors


def _checked_periods(periods, factors: int):
    found = np.full(factors, np.inf) if periods is None else np.asarray(periods, np.float64)
    if found.shape != (factors,) or not (found > 0).all():
        raise ValueError(f"periods {periods} for {factors} factors: one above 0 each")
    return found
