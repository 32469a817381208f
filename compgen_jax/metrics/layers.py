"""What is measured of a layer at every cell of a grid: from its activations and metric tensors."""

from functools import cached_property
from itertools import combinations

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import anova, decomposition, geometry, kernels, probes, spectra, tuning
from compgen_jax.metrics.circle import turning_ratio
from compgen_jax.metrics.registry import Arrays, layer_metric

REGIONS = ("id", "ood")
AGREEMENTS = tuple(f"{across}{name}" for across in ("", "cross_")
                   for name in ("binary", "true", "partial"))  # fmt: skip
SCORES = ("id_r2", "ood_r2", "id_accuracy", "ood_accuracy")
PROBE_SCORES = (*SCORES, *(f"shuffled.{name}" for name in SCORES), "in_sample_r2")
BORDER = 2  # cells: where the grid's end cuts what a task draws
VOLUME_NUMBERS = tuple(f"volume.{name}" for name in (
    "log10_ratio", "effect", "inner_log10_ratio", "inner_effect", "ood_spread"))  # fmt: skip
FACTORIZATIONS = tuple(
    f"factorization.{name}" for name in ("ratio_of_means", "mean_of_ratios", "cosine")
)


class GridLayer(Arrays):
    """One layer at the B cells of a grid, in the order of `grids`.

    features: (B, D).  factors: (B, F).  sizes: of the grid. Gram matrices of all its cells are
    made: see `grids.subgrid`.  held_out, border: (B,) bool.
    tensors: (B, R, R) metric tensors of the R real factors, or None.
    true_kernel: (B, B) the cosine similarity of the true outputs, or None.
    untrained: (B, D) the features before training, or None.
    real, periods: of each factor, whether it is probed as a number or as an angle
      (`probes.probe`); None: all as numbers.
    factor_names: of factors that have probe scores of their own; () for none.
    tangent_names: of the real factors whose pairs' angles are measured; () for none.

    Gram matrix, kernel, Schmidt values and probe scores are None for constant features.
    """

    untrained = true_kernel = tensors = None
    factor_names = tangent_names = ()

    periods = None

    def __init__(self, real=None, **arrays):
        super().__init__(**arrays)
        self.real = probes.checked_real(real, np.shape(self.factors)[1])
        self.varies = np.ptp(self.features, axis=0).max() > 0

    @cached_property
    def gram(self):
        return kernels.gram(self.features) if self.varies else None

    @cached_property
    def kernel(self):
        return kernels.cosine(self.gram) if self.varies else None

    @cached_property
    def schmidt(self):
        """Singular values, for each factor against the others."""
        if not self.varies:
            return None
        factors = decomposition.distinct_factors(self.sizes)
        return [decomposition.operator_schmidt(self.gram, self.sizes, f) for f in factors]

    @cached_property
    def probe_scores(self):
        if not self.varies:
            return None
        return probes.probe(
            self.features, self.factors, self.held_out, real=self.real, periods=self.periods
        )


@layer_metric("schmidt.rank", "schmidt.exp_entropy", "explained.schmidt")
def schmidt_numbers(schmidt) -> dict:
    """Those of the worst factor."""
    return {
        "schmidt.rank": max(decomposition.rank(values) for values in schmidt),
        "schmidt.exp_entropy": max(np.exp(decomposition.entropy(values)) for values in schmidt),
        "explained.schmidt": min(values[0] ** 2 / np.sum(values**2) for values in schmidt),
    }


layer_metric("explained.hoeffding")(decomposition.hoeffding_share)


@layer_metric("spectrum.numerical_rank", "spectrum.energy_rank", "spectrum.participation_ratio")
def spectrum(features_BxD, varies) -> dict | None:
    """Effective dimensions of the features; see `spectra.Spectrum`."""
    if not varies:
        return None
    ranks = spectra.spectrum(features_BxD)._asdict()
    return {f"spectrum.{name}": value for name, value in ranks.items() if name != "eigenvalues"}


@layer_metric("anova.interaction")
def interaction(gram_BxB, sizes) -> float:
    """Share of the features' variance over a grid of cells that is in no factor alone; NaN for
    features that are dead there."""
    if not np.any(gram_BxB):
        return np.nan
    _, main, interactions = anova.kernel_anova(gram_BxB, sizes)
    varying = main.sum() + interactions
    return interactions / varying if varying > 1e-12 else np.nan


@layer_metric("anova.interaction_ood")
def interaction_over_hole(gram_BxB, held_out_B, sizes) -> float:
    """The same over the held-out cells, where it separates composition from lookup; NaN if they
    are no grid of at least two values of two factors."""
    box = grids.box_sizes(held_out_B, sizes)
    if box is None or sum(size > 1 for size in box) < 2:
        return np.nan
    return interaction(gram_BxB[np.ix_(held_out_B, held_out_B)], box)


@layer_metric(*(f"probe.{score}" for score in PROBE_SCORES))
def mean_probe(probe_scores, real) -> dict:
    """Means over the factors."""
    means = probes.mean_over_factors(probe_scores, real)
    return {f"probe.{score}": mean for score, mean in means.items()}


@layer_metric(lambda layer: [f"probe.{f}.{s}" for f in layer.factor_names for s in PROBE_SCORES])
def probe_of_each_factor(probe_scores, factor_names) -> dict:
    return {
        f"probe.{factor}.{score}": values[f]
        for f, factor in enumerate(factor_names)
        for score, values in probe_scores.items()
    }


@layer_metric(*(f"cosine.{name}" for name in AGREEMENTS))
def cosine_agreements(kernel_BxB, factors_BxF, held_out_B, true_kernel_BxB) -> dict:
    correlations = agreements(kernel_BxB, factors_BxF, held_out_B, true_kernel_BxB)
    return {f"cosine.{name}": value for name, value in correlations.items()}


def agreements(kernel_BxB, factors_BxF, held_out_B, true_kernel_BxB) -> dict:
    """Correlations of a kernel with the binary kernel, with the kernel of the true outputs, and
    with the binary one beyond that of the true outputs: over pairs of held-out cells, and
    (`cross_`) over pairs of a held-out and an ID cell, the "top left section" of Figure 8 in the
    authors' order of cells.

    All kernels are of the cells, (B, B). That of the true outputs is the same similarity of them
    as `kernel` is of a layer; of two bumps of width sigma the cosine is a Gaussian of lengths
    sqrt(2) sigma. NaN for fewer than three held-out cells; the latter also without an ID cell.
    """
    correlations = dict.fromkeys(AGREEMENTS, np.nan)
    if held_out_B.sum() < 3:
        return correlations
    matrices = kernel_BxB, np.asarray(true_kernel_BxB), kernels.binary(factors_BxF)
    upper = np.triu_indices(held_out_B.sum(), k=1)
    pairs = {"": [each[np.ix_(held_out_B, held_out_B)][upper] for each in matrices]}
    if not held_out_B.all():
        pairs["cross_"] = [each[np.ix_(held_out_B, ~held_out_B)].ravel() for each in matrices]
    for across, (kernel, true, binary) in pairs.items():
        correlations[f"{across}binary"] = kernels.correlation(kernel, binary)
        correlations[f"{across}true"] = kernels.correlation(kernel, true)
        correlations[f"{across}partial"] = kernels.partial_correlation(kernel, binary, true)
    return correlations


@layer_metric(*FACTORIZATIONS, *VOLUME_NUMBERS)
def geometry_numbers(tensors_BxRxR, held_out_B, border_B) -> dict:
    """Factorization in three ways, and how the volume of the held-out cells compares with that of
    the ID cells.

    `volume.log10_ratio` is the difference of mean log10 volumes, `volume.effect` that difference
    over the pooled standard deviation (Cohen's d); `inner_` leaves out the cells at the `border`.
    `volume.ood_spread` is the standard deviation of log10 volume over the held-out cells. NaN for
    a region without cells.
    """
    volume = np.asarray(geometry.volume_element(tensors_BxRxR), np.float64)
    log_volume = geometry.log_volume(volume)
    every = _difference(log_volume[held_out_B], log_volume[~held_out_B])
    inner = _difference(log_volume[held_out_B & ~border_B], log_volume[~held_out_B & ~border_B])
    spread = log_volume[held_out_B].std() if held_out_B.any() else np.nan
    scores = geometry.factorization(tensors_BxRxR)
    return {f"factorization.{name}": float(score) for name, score in scores.items()} | dict(
        zip(VOLUME_NUMBERS, (*every, *inner, spread), strict=True)
    )


def _difference(ood, seen) -> tuple:
    """The difference of the means, and that over the pooled standard deviation."""
    if not ood.size or not seen.size:
        return np.nan, np.nan
    difference, pooled = ood.mean() - seen.mean(), np.sqrt((ood.var() + seen.var()) / 2)
    return difference, difference / pooled if pooled > 0 else np.nan


layer_metric("curve.turning_ratio")(turning_ratio)


@layer_metric(lambda layer: [f"angle.{a}-{b}.{region}" for region in REGIONS
                             for a, b in combinations(layer.tangent_names, 2)])  # fmt: skip
def angles(tensors_BxRxR, held_out_B, tangent_names) -> dict:
    """Mean |cosine| of the angle between the tangents of each two real factors, over ID and over
    held-out cells; NaN for a region without cells."""
    cosines = np.abs(np.asarray(geometry.cosines(tensors_BxRxR), np.float64))
    by_pair = {}
    for (i, a), (j, b) in combinations(enumerate(tangent_names), 2):
        for region, mask in zip(REGIONS, (~held_out_B, held_out_B), strict=True):
            values = cosines[mask, i, j]
            by_pair[f"angle.{a}-{b}.{region}"] = values.mean() if values.size else np.nan
    return by_pair


layer_metric(*tuning.TUNING_NUMBERS)(tuning.layer_tuning)


@layer_metric(*(f"untrained.{name}" for name in tuning.TUNING_NUMBERS))
def untrained_tuning(untrained_BxD, sizes) -> dict:
    numbers = tuning.layer_tuning(untrained_BxD, sizes)
    return {f"untrained.{name}": value for name, value in numbers.items()}
