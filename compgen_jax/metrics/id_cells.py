"""What is measured of a layer at ID cells alone: what could say beforehand whether a network will
compose.

The ID cells are no grid: a block, a corner or cells at random are missing, so the analysis of
variance becomes least squares on the factors' values.
"""

from functools import cached_property

import jax.numpy as jnp
import numpy as np

from compgen_jax.metrics import geometry, kernels, probes, readout
from compgen_jax.metrics.registry import Arrays, layer_metric

MOST_CELLS = 400  # of a set of ID cells that is measured
FOLDS = 5
ROUNDING = 1e-9  # a smaller share of float32 features' variance is rounding
GEOMETRY_NUMBERS = tuple(f"id_cells.{name}" for name in (
    "log10_volume_mean", "log10_volume_spread", "orthogonality"))  # fmt: skip


class IdLayer(Arrays):
    """One layer at S ID cells, any part of a grid.

    features: (S, D).  factors: (S, F), no cell twice.
    tensors: (S, R, R) metric tensors of the R real factors, or None.
    true_tensors: the same of the true output, or None.
    real: of each factor, whether it is probed as a number; None: all are.
    periods: of each factor, inf where it does not repeat: the probe of one that does reads cos and
      sin. None: none does.

    `centred` features and `layer_tensors` are None for features that are constant.

    Raises ValueError for shapes that do not match, values that are not finite, a cell given twice,
    and fewer cells than twice the folds.
    """

    def __init__(self, features, factors, tensors=None, true_tensors=None, real=None, periods=None):
        factors, features = checked_cells(factors), np.asarray(features)
        kernels.check_finite("features", features)
        if features.ndim != 2 or len(features) != len(factors):
            raise ValueError(f"features must be ({len(factors)}, D), not {features.shape}")
        if len(factors) < 2 * FOLDS:
            raise ValueError(f"{len(factors)} cells: {FOLDS} folds need at least {2 * FOLDS}")
        real = probes.checked_real(real, factors.shape[1])
        shape = len(factors), int(real.sum()), int(real.sum())
        for name, metric in (("tensors", tensors), ("true_tensors", true_tensors)):
            if metric is not None:
                if np.shape(metric) != shape:
                    raise ValueError(f"{name} must be {shape}, not {np.shape(metric)}")
                kernels.check_finite(name, np.asarray(metric))
        super().__init__(
            features=features, factors=factors, tensors=tensors, true_tensors=true_tensors,
            real=real, periods=probes.checked_periods(periods, factors.shape[1]),
        )  # fmt: skip

    @cached_property
    def centred(self):
        features = self.features.astype(np.float64)
        variance = np.sum((features - features.mean(axis=0, keepdims=True)) ** 2)
        # less is rounding, as for a unit of `anova.anova_shares`
        varies = variance > 1e-14 * np.sum(features**2)
        return readout.compact(self.features) if varies else None

    @cached_property
    def layer_tensors(self):
        return None if self.centred is None else self.tensors


@layer_metric("id_cells.interaction", at="id_cells")
def interaction(centred_SxD, factors_SxF) -> float:
    """Share, 0 to 1, of the features' variance over the cells that is in no factor alone: what is
    left of it after a least-squares fit of one effect for each value of each factor.

    Over a complete grid it is `layers.interaction`. The fit of r free effects takes its part of
    anything: noise has (S - r) / (S - 1), so compare networks over the same cells. NaN if the
    effects fit anything, r = S.
    """
    left, scales, _ = np.linalg.svd(_design(factors_SxF), full_matrices=False)
    effects = left[:, scales > 1e-10 * scales[0]]
    if effects.shape[1] == len(factors_SxF):
        return np.nan
    residual = centred_SxD - effects @ (effects.T @ centred_SxD)
    share = float(np.sum(residual**2) / np.sum(centred_SxD**2))
    return share if share > ROUNDING else 0.0  # units of one factor each tie


@layer_metric("id_cells.probe", at="id_cells")
def probe(centred_SxD, factors_SxF, real, periods, seed: int = 0) -> float:
    """R^2 of a ridge of each real factor, cross-validated over the cells in 5 random folds; the
    mean over them, NaN without any. It is `probes.probe`'s id_r2."""
    targets = [probes.targets_of(factors_SxF[:, f], periods[f]) for f in np.flatnonzero(real)]
    cells, shown = np.arange(len(centred_SxD)), np.zeros(len(centred_SxD), bool)
    fold_S = readout.folds_of(cells, shown, FOLDS, np.random.default_rng(seed))
    predicted = readout.cross_fitted(centred_SxD, targets, fold_S, FOLDS)
    scores = [readout.r2(*pair) for pair in zip(targets, predicted, strict=True)]
    return float(np.mean(scores)) if scores else np.nan


@layer_metric(*GEOMETRY_NUMBERS, at="id_cells")
def geometry_numbers(layer_tensors_SxRxR) -> dict | None:
    """Mean and standard deviation over the cells of log10 sqrt det g, with the floor of
    `geometry.log_volume` (NaN for a layer without volume); and the mean |cosine| of the angle
    between two real factors' tangents, 0 if they are orthogonal and 1 if parallel (NaN for fewer
    than two)."""
    real = np.shape(layer_tensors_SxRxR)[1]
    if real == 0:
        return None
    logs = _log_volume(layer_tensors_SxRxR)
    cosines = np.abs(np.asarray(geometry.cosines(jnp.asarray(layer_tensors_SxRxR)), np.float64))
    orthogonality = cosines[:, *np.triu_indices(real, k=1)].mean() if real > 1 else np.nan
    return dict(zip(GEOMETRY_NUMBERS, (logs.mean(), logs.std(), orthogonality), strict=True))


@layer_metric("id_cells.log10_volume_excess", at="id_cells")
def volume_excess(layer_tensors_SxRxR, true_tensors_SxRxR) -> float:
    """The mean log10 volume less the true output's, which no longer depends on the factors'
    units."""
    if np.shape(layer_tensors_SxRxR)[1] == 0:
        return np.nan
    return _log_volume(layer_tensors_SxRxR).mean() - _log_volume(true_tensors_SxRxR).mean()


def _log_volume(tensors_SxRxR):
    volume = np.asarray(geometry.volume_element(jnp.asarray(tensors_SxRxR)), np.float64)
    return geometry.log_volume(volume) if volume.any() else np.full(len(volume), np.nan)


def choose_cells(factors_SxF, most: int = MOST_CELLS, seed: int = 0):
    """(S',) int, ascending: which of the cells are measured, at most `most`; all where they are
    no more, else at random, by a rule that loses no value and no link between values.

    In a random order, cells are first taken that add to the rank of the additive design, until it
    is that of all, then any. So every effect, and every difference of effects, that all cells
    determine is still determined. The same seed gives the same cells.

    ValueError for a cell given twice, and where `most` is below the rank.
    """
    factors = checked_cells(factors_SxF)
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


def _design(factors):
    """(S, V_1 + ... + V_F): 1 where a cell has that value of that factor."""
    columns = [values[:, None] == np.unique(values)[None] for values in factors.T]
    return np.concatenate(columns, axis=1).astype(np.float64)


def checked_cells(factors_SxF):
    factors = kernels.finite("factors", factors_SxF, 2)
    if len(np.unique(factors, axis=0)) < len(factors):
        raise ValueError("factors: a cell is given twice")
    return factors
