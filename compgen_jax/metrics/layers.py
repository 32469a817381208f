"""One layer of a network, and what is measured of it at every cell of a grid."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import (
    anova,
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
RANK_TOLERANCE = 1e-5  # of the largest singular value; float32 features carry 1e-7 of rounding


@dataclass(eq=False)
class Layer:
    """One layer of one network at B points: all that a metric is given.

    features: (B, D).  held_out: (B,) bool.
    factors: (B, F). At points, an angle is its cosine and sine, a label one-hot.

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
      contrasts: (B,) compositional contrasts, see `geometry.tensors_and_contrasts`.
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
    def contrasts(self):
        return self.costly("contrasts")

    @cached_property
    def grams(self):
        """(B, B) Gram matrices of the features and of centred ones."""
        return kernels.grams(self.features)

    @cached_property
    def gram(self):
        """(B, B) Gram matrix; None for constant features."""
        return self.grams[0] if np.ptp(self.features, axis=0).max() > 0 else None

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
        "contrasts": np.zeros(len(cells)),
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


@layer_metric("rank", "exp_entropy", prefix="schmidt.")
def kernel_terms(layer: Layer) -> dict | None:
    """How many products of functions of single factors make up the Gram matrix, at worst: singular
    values of K from pairs of values of one factor to those of the others (Eq 1, 16, 30, 31). Of
    inverted bumps the constant makes rank 4."""
    if layer.gram is None:
        return None
    kernel, count = layer.gram.reshape(layer.sizes[::-1] * 2), len(layer.sizes)
    terms = []
    for axis in [1] if count == 2 else range(count):  # of two factors, either is as good
        pairs = np.moveaxis(kernel, (axis, count + axis), (0, 1))
        terms.append(spectra.singular_values_of_pairs(pairs))
    return {
        "rank": max(np.sum(values > RANK_TOLERANCE * values[0]) for values in terms),
        "exp_entropy": max(map(spectra.exp_entropy, terms)),
    }


@layer_metric("numerical_rank", "energy_rank", "participation_ratio", prefix="spectrum.")
def spectrum(layer: Layer) -> dict | None:
    """Effective dimensions of the features."""
    return None if layer.gram is None else spectra.spectrum(layer.grams[1])


@layer_metric("interaction", "interaction_ood", prefix="anova.")
def interaction_shares(layer: Layer) -> dict | None:
    """Over all cells, and over the held-out ones; NaN if these are no grid of two factors."""
    if layer.gram is None:
        return None
    ood, held_out = np.nan, layer.held_out
    places = grids.indices(layer.sizes)[held_out]
    box = tuple(len(np.unique(column)) for column in places.T)
    if np.prod(box) == held_out.sum() and sum(size > 1 for size in box) >= 2:
        ood = anova.interaction(layer.gram[np.ix_(held_out, held_out)], box)
    return {"interaction": anova.interaction(layer.gram, layer.sizes), "interaction_ood": ood}


@layer_metric(*anova.ANGLES, prefix="subspaces.")
def subspaces(layer: Layer) -> dict | None:
    """How orthogonal the factors' main effects are, and of how many dimensions, over all cells."""
    return None if layer.gram is None else anova.subspaces(layer.grams[1], layer.sizes)


@layer_metric(*probes.SCORES, prefix="probe.")
def probe(layer: Layer) -> dict:
    """Means over the factors and, of those that are named, each factor's own scores."""
    factor_count = layer.factors.shape[1]
    if layer.gram is None:
        scores = dict.fromkeys(probes.SCORES, np.full(factor_count, np.nan))
    else:
        how = {"real": layer.real, "periods": layer.periods, "centred_BxB": layer.grams[1]}
        scores = probes.probe(layer.features, layer.factors, layer.held_out, **how)
    means = {}
    for score, values in scores.items():
        if score.endswith("r2") and layer.real is not None:
            values = values[np.asarray(layer.real)]
        means[score] = np.mean(values) if values.size else np.nan
    return means | {
        f"{name}.{score}": values[index]
        for index, name in enumerate(layer.factor_names)
        for score, values in scores.items()
    }


@layer_metric(*AGREEMENTS, prefix="output.cosine.", of_output=True)
@layer_metric(*AGREEMENTS, prefix="cosine.")
def agreements(layer: Layer) -> dict | None:
    """Correlations of the kernel with the binary one, with that of the true outputs, and with the
    binary one beyond it: over pairs of held-out cells, and (`cross_`) of a held-out and an ID cell.
    NaN for fewer than three held-out cells."""
    held_out = layer.held_out
    if layer.kernel is None or layer.true_kernel is None or held_out.sum() < 3:
        return None
    correlations = dict.fromkeys(AGREEMENTS, np.nan)
    matrices = layer.kernel, np.asarray(layer.true_kernel), kernels.binary(layer.factors)
    upper = np.triu_indices(held_out.sum(), k=1)
    pairs = {"": [matrix[np.ix_(held_out, held_out)][upper] for matrix in matrices]}
    if not held_out.all():
        block = np.ix_(held_out, ~held_out)
        pairs["cross_"] = [matrix[block].ravel() for matrix in matrices]
    for across, (kernel, true, binary) in pairs.items():
        correlations[f"{across}binary"] = kernels.correlation(kernel, binary)
        correlations[f"{across}true"] = kernels.correlation(kernel, true)
        correlations[f"{across}partial"] = kernels.partial_correlation(kernel, binary, true)
    return correlations


@layer_metric("normalized", "published", prefix="contrast.")
def contrast(layer: Layer) -> dict | None:
    """Means over cells of the compositional contrast and, from 0 to 1, of its
    share in the most that (R - 1) / 2 tr g allows, where factors have like units; NaN for one."""
    if layer.contrasts is None or layer.tensors.shape[-1] < 2:
        return None
    contrast_B = np.asarray(layer.contrasts, np.float64)
    most_B = np.einsum("brr->b", np.asarray(layer.tensors, np.float64))
    most_B *= (layer.tensors.shape[-1] - 1) / 2
    shares = contrast_B[most_B > 0] / most_B[most_B > 0]
    normalized = shares.mean() if shares.size else np.nan
    return {"normalized": normalized, "published": contrast_B.mean()}


@layer_metric(*FACTORIZATIONS, *VOLUME_NUMBERS)
def geometry_numbers(layer: Layer) -> dict | None:
    """log10 volume of the held-out cells: its mean less that of ID cells (`inner_`: without the
    border), Cohen's d, and its spread; NaN without cells."""
    if layer.tensors is None:
        return None
    volume = np.asarray(geometry.volume_element(layer.tensors), np.float64)
    log_volume, held_out = geometry.log_volume(volume), layer.held_out
    everywhere, ratios = np.ones(len(held_out), bool), []
    inner = ~everywhere if layer.border is None else ~layer.border
    for counted in (everywhere, inner):
        ood, seen = log_volume[held_out & counted], log_volume[~held_out & counted]
        ratio = effect = np.nan
        if ood.size and seen.size:
            ratio, pooled = ood.mean() - seen.mean(), np.sqrt((ood.var() + seen.var()) / 2)
            effect = ratio / pooled if pooled > 0 else np.nan
        ratios.append(ratio)
    spread = log_volume[held_out].std() if held_out.any() else np.nan
    values = *map(float, geometry.factorization(layer.tensors)), *ratios, effect, spread
    return dict(zip((*FACTORIZATIONS, *VOLUME_NUMBERS), values, strict=True))


@layer_metric("curve.turning_ratio")
def turning_ratio(layer: Layer) -> float | None:
    """Mean turning angle of the layer's curve over the first factor, across what is held out, over
    that elsewhere: 1 of a circle. None if the factor is no angle."""
    period = layer.periods[0] if layer.periods else np.inf
    if np.isinf(period) or not np.ptp(layer.features, axis=0).any():
        return None
    factors, features = (np.asarray(x, np.float64) for x in (layer.factors, layer.features))
    turns_B, near_B = np.full(len(factors), np.nan), np.zeros(len(factors), bool)
    for label in np.unique(factors[layer.held_out, 1:], axis=0):
        cells = np.flatnonzero((factors[:, 1:] == label[None]).all(axis=1))
        cells = cells[np.argsort(factors[cells, 0] % period)]
        steps = np.roll(features[cells], -1, axis=0) - features[cells]
        lengths, hidden = np.linalg.norm(steps, axis=1), layer.held_out[cells]
        steps /= np.where(lengths > 0, lengths, 1)[:, None]
        cosines = np.sum(steps * np.roll(steps, 1, axis=0), axis=1)
        turns_B[cells] = np.arccos(np.clip(cosines, -1, 1))
        near_B[cells] = hidden | np.roll(hidden, 1) | np.roll(hidden, -1)
    elsewhere = turns_B[~near_B & np.isfinite(turns_B)]
    return float(turns_B[near_B].mean() / elsewhere.mean()) if elsewhere.size else np.nan


for _array, _prefix in (("features", ""), ("untrained", "untrained.")):

    @layer_metric(*tuning.TUNING_NUMBERS, prefix=_prefix)
    def unit_tuning(layer: Layer, array=_array) -> dict | None:
        features = getattr(layer, array)
        return None if features is None else tuning.layer_tuning(features, layer.sizes)


def superpositions(layer: Layer) -> dict:
    """(Q, F, D) signals for each factor of a held-out cell: predictions for its code's parts, and
    sums of predictions at ID cells; None if one cannot be made."""
    id_cells, ood_cells = layer.factors[~layer.held_out], layer.factors[layer.held_out]
    columns = zip(ood_cells.T, id_cells.T, strict=True)
    sums = None
    if all(np.isin(of_ood, of_id).all() for of_ood, of_id in columns):
        sums = superposition.matching_sums(layer.features[~layer.held_out], id_cells, ood_cells)
    return {"mean_code": layer.costly("code_parts"), "sums": sums}


@layer_metric(
    *(f"{name}.{score}" for name in CONSTRUCTIONS for score in superposition.SCORES),
    prefix="output.superposition.",
    of_output=True,
)
def superposition_scores(layer: Layer) -> dict:
    held_out = layer.held_out
    outputs = np.asarray(layer.features, np.float64)[held_out]
    return {
        f"{construction}.{name}": value
        for construction, parts in superpositions(layer).items()
        for name, value in superposition.scores(
            outputs, parts, layer.factors[held_out], layer.distance[held_out]
        ).items()
    }
