"""One layer of one network, and what is measured of it at every cell of a grid."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import (
    anova,
    circle,
    decomposition,
    geometry,
    kernels,
    probes,
    spectra,
    superposition,
    tuning,
)
from compgen_jax.metrics.registry import layer_metric

AGREEMENTS = ("binary", "true", "partial", "cross_binary", "cross_true", "cross_partial")
BORDER = 2  # cells: where the grid's end cuts what a task draws
VOLUME_NUMBERS = tuple(
    f"volume.{name}" for name in ("log10_ratio", "inner_log10_ratio", "inner_effect", "ood_spread")
)
FACTORIZATIONS = "factorization.ratio_of_means", "factorization.mean_of_ratios"
CONSTRUCTIONS = ("mean_code", "sums")


@dataclass(eq=False)
class Layer:
    """One layer of one network at B points: all that a metric is given.

    features: (B, D).  held_out: (B,) bool.
    factors: (B, F). At points, an angle is its cosine and sine, a label one column for each value.

    At a grid, whose B cells are in the order of `grids`:

    sizes: (V_1, ..., V_F).
    border: (B,) bool, the cells near the grid's end.  distance: (B,) cells to the nearest ID cell.
    true_kernel: (B, B) cosine similarity of the true outputs, or None.
    real, periods: of each factor, as in `probes.probe`.
    factor_names: of factors that have probe scores of their own.

    At points:

    groups: (B,) int, equal for rows of the same factors.  rows_per_point: how many.

    costly: the name of an array below -> that array, or None:
      untrained: (B, D) the features before training.
      tensors: (B, R, R) metric tensors of the R real factors.
      code_parts: (Q, F, D) predictions for each part of a held-out code beside the others' mean.
    """

    features: np.ndarray
    factors: np.ndarray
    held_out: np.ndarray
    sizes: tuple = ()
    border: np.ndarray | None = None
    distance: np.ndarray | None = None
    true_kernel: np.ndarray | None = None
    real: tuple | None = None
    periods: tuple | None = None
    factor_names: tuple = ()
    groups: np.ndarray | None = None
    rows_per_point: int = 1
    costly: Callable = {}.get

    @cached_property
    def untrained(self):
        return self.costly("untrained")

    @cached_property
    def tensors(self):
        return self.costly("tensors")

    @cached_property
    def gram(self):
        """(B, B) Gram matrix; None for constant features."""
        varies = np.ptp(self.features, axis=0).max() > 0
        return kernels.gram(self.features) if varies else None

    @cached_property
    def kernel(self):
        """(B, B) cosine similarity; None for constant features."""
        return None if self.gram is None else kernels.cosine(self.gram)


def example(domain: str) -> Layer:
    """A small random layer of two factors, on which a user's metric is tried."""
    cells, rng = grids.indices((6, 6)), np.random.default_rng(0)
    features = rng.normal(size=(len(cells), 5))
    arrays = {
        "untrained": features,
        "tensors": rng.uniform(1, 2, (len(cells), 1, 1)) * np.eye(2)[None],
        "code_parts": None,
    }
    layer = Layer(features, cells.astype(np.float64), (cells > 3).all(axis=1), costly=arrays.get)
    if domain == "points":
        layer.groups = np.arange(len(cells))
        return layer
    layer.sizes, layer.real, layer.periods = (6, 6), (True, True), (np.inf, np.inf)
    layer.border = grids.border(BORDER, layer.sizes)
    layer.distance = layer.held_out.astype(np.float64)
    layer.true_kernel = kernels.cosine(kernels.gram(rng.normal(size=(len(cells), 9))))
    return layer


@layer_metric("schmidt.rank", "schmidt.exp_entropy", "explained.schmidt", "explained.hoeffding")
def kernel_terms(layer: Layer) -> dict | None:
    """How many products of functions of single factors make up the Gram matrix, at worst."""
    if layer.gram is None:
        return None
    factors = range(1 if len(layer.sizes) == 2 else len(layer.sizes))  # of two, either is as good
    terms = [decomposition.operator_schmidt(layer.gram, layer.sizes, f) for f in factors]
    return {
        "schmidt.rank": max(map(decomposition.rank, terms)),
        "schmidt.exp_entropy": max(np.exp(decomposition.entropy(values)) for values in terms),
        "explained.schmidt": min(values[0] ** 2 / np.sum(values**2) for values in terms),
        "explained.hoeffding": decomposition.hoeffding_share(layer.gram, layer.sizes),
    }


@layer_metric("spectrum.numerical_rank", "spectrum.energy_rank", "spectrum.participation_ratio")
def spectrum(layer: Layer) -> dict | None:
    """Effective dimensions of the features."""
    if layer.gram is None:
        return None
    ranks = spectra.spectrum(layer.features)._asdict()
    return {f"spectrum.{name}": value for name, value in ranks.items() if name != "eigenvalues"}


@layer_metric("anova.interaction", "anova.interaction_ood")
def interaction_shares(layer: Layer) -> dict | None:
    """Over all cells, and over the held-out ones; NaN if these are no grid of two factors."""
    if layer.gram is None:
        return None
    ood, held_out = np.nan, layer.held_out
    box = grids.box_sizes(held_out, layer.sizes)
    if box is not None and sum(size > 1 for size in box) >= 2:
        ood = anova.interaction(layer.gram[np.ix_(held_out, held_out)], box)
    whole = anova.interaction(layer.gram, layer.sizes)
    return {"anova.interaction": whole, "anova.interaction_ood": ood}


@layer_metric(*(f"probe.{score}" for score in probes.SCORES))
def probe(layer: Layer) -> dict:
    """Means over the factors and, of those that are named, each factor's own scores."""
    factor_count = layer.factors.shape[1]
    if layer.gram is None:
        scores = dict.fromkeys(probes.SCORES, np.full(factor_count, np.nan))
    else:
        scores = probes.probe(
            layer.features, layer.factors, layer.held_out, real=layer.real, periods=layer.periods
        )
    means = probes.mean_over_factors(scores, layer.real)
    return {f"probe.{score}": mean for score, mean in means.items()} | {
        f"probe.{name}.{score}": values[index]
        for index, name in enumerate(layer.factor_names)
        for score, values in scores.items()
    }


@layer_metric(*(f"cosine.{name}" for name in AGREEMENTS))
def cosine_agreements(layer: Layer) -> dict | None:
    if layer.kernel is None or layer.true_kernel is None:
        return None
    correlations = agreements(layer.kernel, layer.factors, layer.held_out, layer.true_kernel)
    return {f"cosine.{name}": value for name, value in correlations.items()}


@layer_metric(*(f"output.cosine.{name}" for name in AGREEMENTS), of_output=True)
def output_agreements(layer: Layer) -> dict | None:
    numbers = cosine_agreements(layer)
    return numbers and {f"output.{name}": value for name, value in numbers.items()}


def agreements(kernel_BxB, factors_BxF, held_out_B, true_kernel_BxB) -> dict:
    """Correlations of a kernel with the binary one, with that of the true outputs, and with the
    binary one beyond it: over pairs of held-out cells, and (`cross_`) of a held-out and an ID cell.
    NaN for fewer than three held-out cells; `cross_` also without an ID cell."""
    correlations = dict.fromkeys(AGREEMENTS, np.nan)
    if held_out_B.sum() < 3:
        return correlations
    matrices = kernel_BxB, np.asarray(true_kernel_BxB), kernels.binary(factors_BxF)
    upper = np.triu_indices(held_out_B.sum(), k=1)
    pairs = {"": [matrix[np.ix_(held_out_B, held_out_B)][upper] for matrix in matrices]}
    if not held_out_B.all():
        block = np.ix_(held_out_B, ~held_out_B)
        pairs["cross_"] = [matrix[block].ravel() for matrix in matrices]
    for across, (kernel, true, binary) in pairs.items():
        correlations[f"{across}binary"] = kernels.correlation(kernel, binary)
        correlations[f"{across}true"] = kernels.correlation(kernel, true)
        correlations[f"{across}partial"] = kernels.partial_correlation(kernel, binary, true)
    return correlations


@layer_metric(*FACTORIZATIONS, *VOLUME_NUMBERS)
def geometry_numbers(layer: Layer) -> dict | None:
    """Factorization in two ways, and log10 volume of the held-out cells: its mean less that of ID
    cells (`inner_`: without the border), Cohen's d, and its spread; NaN without cells."""
    if layer.tensors is None:
        return None
    volume = np.asarray(geometry.volume_element(layer.tensors), np.float64)
    log_volume, held_out = geometry.log_volume(volume), layer.held_out
    ratio, _ = _difference(log_volume[held_out], log_volume[~held_out])
    inner = ~layer.border
    inner_ratio, effect = _difference(log_volume[held_out & inner], log_volume[~held_out & inner])
    spread = log_volume[held_out].std() if held_out.any() else np.nan
    scores = map(float, geometry.factorization(layer.tensors))
    return dict(
        zip(
            (*FACTORIZATIONS, *VOLUME_NUMBERS),
            (*scores, ratio, inner_ratio, effect, spread),
            strict=True,
        )
    )


def _difference(ood, seen) -> tuple:
    """The difference of the means, and that over the pooled standard deviation."""
    if not ood.size or not seen.size:
        return np.nan, np.nan
    difference, pooled = ood.mean() - seen.mean(), np.sqrt((ood.var() + seen.var()) / 2)
    return difference, difference / pooled if pooled > 0 else np.nan


@layer_metric("curve.turning_ratio")
def turning_ratio(layer: Layer) -> float | None:
    if layer.periods is None:
        return None
    return circle.turning_ratio(layer.features, layer.factors, layer.held_out, layer.periods)


@layer_metric(*tuning.TUNING_NUMBERS)
def unit_tuning(layer: Layer) -> dict:
    return tuning.layer_tuning(layer.features, layer.sizes)


@layer_metric(*(f"untrained.{name}" for name in tuning.TUNING_NUMBERS))
def untrained_tuning(layer: Layer) -> dict | None:
    if layer.untrained is None:
        return None
    numbers = tuning.layer_tuning(layer.untrained, layer.sizes)
    return {f"untrained.{name}": value for name, value in numbers.items()}


def superpositions(layer: Layer) -> dict:
    """(Q, F, D) signals for each factor of a held-out cell by construction: predictions for its
    code's parts, and sums of predictions at ID cells; None if one cannot be made."""
    id_cells, ood_cells = layer.factors[~layer.held_out], layer.factors[layer.held_out]
    columns = zip(ood_cells.T, id_cells.T, strict=True)
    sums = None
    if all(np.isin(of_ood, of_id).all() for of_ood, of_id in columns):
        sums = superposition.matching_sums(layer.features[~layer.held_out], id_cells, ood_cells)
    return {"mean_code": layer.costly("code_parts"), "sums": sums}


@layer_metric(
    *(f"output.superposition.{c}.{s}" for c in CONSTRUCTIONS for s in superposition.SCORES),
    of_output=True,
)
def superposition_scores(layer: Layer) -> dict:
    held_out = layer.held_out
    outputs = np.asarray(layer.features, np.float64)[held_out]
    return {
        f"output.superposition.{construction}.{name}": value
        for construction, parts in superpositions(layer).items()
        for name, value in superposition.scores(
            outputs, parts, layer.factors[held_out], layer.distance[held_out]
        ).items()
    }
