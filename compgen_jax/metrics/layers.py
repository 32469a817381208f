"""The numbers of one layer of one seed: from its activations and its metric tensors."""

from collections.abc import Callable
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import anova, decomposition, geometry, kernels, probes, spectra


def named(activations_of: Callable) -> Callable:
    """point -> {layer: (D,)}: of a function that gives activations as a pytree of arrays of any
    shape; layers are named by their places in it ('Dense_0.__call__.0')."""

    def by_name(point):
        leaves = jax.tree_util.tree_leaves_with_path(activations_of(point))
        name = lambda path: jax.tree_util.keystr(path, simple=True, separator=".")
        return {name(path): jnp.ravel(leaf) for path, leaf in leaves}

    return by_name


def layer_numbers(
    features_BxD, factors_BxF, held_out_B, sizes, true_kernel_BxB, real=None, names=()
) -> dict:
    """Numbers of one layer of one seed from its activations at every cell of a grid; NaN where a
    layer is constant, or where the held-out cells are no grid of their own.

    Args:
      features: (B, D).  factors: (B, F).  held_out: (B,) bool, cells in the order of `grids`.
      sizes: of the grid. Gram matrices of all its cells are made: see `grids.subgrid`.
      true_kernel: (B, B), the similarity of the true outputs, as `agreements` compares with it.
      real: of each factor, whether it is probed as a number, see `probes.probe`.
      names: of the factors, to add the scores of each, `probe.NAME.ood_r2` and so on.

    Returns `LAYER_NUMBERS`. Scores of probes are means over the factors; Schmidt numbers are the
    largest of a factor against the others.
    """
    features = np.asarray(features_BxD)
    if np.ptp(features, axis=0).max() == 0:
        per_factor = (f"probe.{factor}.{score}" for factor in names for score in PROBE_SCORES)
        return dict.fromkeys((*LAYER_NUMBERS, *per_factor), np.nan)
    gram = kernels.gram(features)
    factors = decomposition.distinct_factors(sizes)
    schmidt = [decomposition.operator_schmidt(gram, sizes, factor) for factor in factors]
    spectrum = spectra.spectrum(features)
    probe = probes.probe(features, factors_BxF, held_out_B, real=real)
    mean_probe = probes.mean_over_factors(probe, real)
    found = agreements(kernels.cosine(gram), factors_BxF, held_out_B, true_kernel_BxB)
    return {
        "schmidt.rank": max(decomposition.rank(values) for values in schmidt),
        "schmidt.exp_entropy": max(np.exp(decomposition.entropy(values)) for values in schmidt),
        "explained.hoeffding": decomposition.explained_fraction(gram, "hoeffding", sizes),
        "explained.schmidt": min(map(decomposition.first_share, schmidt)),
        "anova.interaction": interaction(gram, sizes),
        "anova.interaction_ood": interaction_over_hole(gram, held_out_B, sizes),
        "spectrum.numerical_rank": spectrum.numerical_rank,
        "spectrum.energy_rank": spectrum.energy_rank,
        "spectrum.participation_ratio": spectrum.participation_ratio,
        **{f"probe.{name}": value for name, value in mean_probe.items()},
        **{f"cosine.{name}": value for name, value in found.items()},
        **{
            f"probe.{factor}.{name}": values[f]
            for f, factor in enumerate(names)
            for name, values in probe.items()
        },
    }


REGIONS = ("id", "ood")
AGREEMENTS = tuple(f"{across}{name}" for across in ("", "cross_")
                   for name in ("binary", "true", "partial"))  # fmt: skip
PROBE_SCORES = (
    *(
        f"{shuffled}{name}"
        for shuffled in ("", "shuffled.")
        for name in ("id_r2", "ood_r2", "id_accuracy", "ood_accuracy")
    ),
    "in_sample_r2",
)
LAYER_NUMBERS = (
    "schmidt.rank",
    "schmidt.exp_entropy",
    "explained.hoeffding",
    "explained.schmidt",
    "anova.interaction",
    "anova.interaction_ood",
    "spectrum.numerical_rank",
    "spectrum.energy_rank",
    "spectrum.participation_ratio",
    *(f"probe.{name}" for name in PROBE_SCORES),
    *(f"cosine.{name}" for name in AGREEMENTS),
)


BORDER = 2  # cells: where the grid's end cuts what a task draws
VOLUME_NUMBERS = tuple(f"volume.{name}" for name in (
    "log10_ratio", "effect", "inner_log10_ratio", "inner_effect", "ood_spread"))  # fmt: skip


def geometry_numbers(metrics_BxFxF, held_out, border, names=()) -> dict:
    """Factorization in its three readings, and how the volume of the held-out cells compares
    with the seen ones': `volume.log10_ratio` of geometric means, that difference of log volumes
    over their pooled standard deviation (Cohen's d), `volume.effect`; both again (`inner_`) without
    the cells at the `border`, (B,) bool; and the standard deviation of log10 volume over the
    held-out cells, `volume.ood_spread`. NaN where a region has no cell.

    With the `names` of the F factors, the mean |cosine| of the angle between the tangents of each
    two of them over seen and over held-out cells as well, `angle.NAME-NAME.id` and `.ood`."""
    pairs = list(combinations(range(len(names)), 2))
    angles = [f"angle.{names[i]}-{names[j]}.{region}" for i, j in pairs for region in REGIONS]
    if metrics_BxFxF is None:
        readings = ("ratio_of_means", "mean_of_ratios", "cosine")
        measures = (*(f"factorization.{name}" for name in readings), *VOLUME_NUMBERS)
        return dict.fromkeys((*measures, *angles), np.nan)
    scores = geometry.factorization(metrics_BxFxF)
    volume = np.asarray(geometry.volume_element(metrics_BxFxF), np.float64)
    log_volume = geometry.log_volume(volume)
    every = _difference(log_volume[held_out], log_volume[~held_out])
    inner = _difference(log_volume[held_out & ~border], log_volume[~held_out & ~border])
    spread = log_volume[held_out].std() if held_out.any() else np.nan
    cosines = np.abs(np.asarray(geometry.cosines(metrics_BxFxF), np.float64))
    means = [_mean(cosines[mask, i, j]) for i, j in pairs for mask in (~held_out, held_out)]
    return (
        {f"factorization.{name}": float(score) for name, score in scores.items()}
        | dict(zip(VOLUME_NUMBERS, (*every, *inner, spread), strict=True))
        | dict(zip(angles, means, strict=True))
    )


def _difference(ood, seen) -> tuple:
    """Of the means, and that over the pooled standard deviation."""
    if not ood.size or not seen.size:
        return np.nan, np.nan
    difference, pooled = ood.mean() - seen.mean(), np.sqrt((ood.var() + seen.var()) / 2)
    return difference, difference / pooled if pooled > 0 else np.nan


def _mean(values) -> float:
    return float(values.mean()) if values.size else np.nan


def interaction(gram_BxB, sizes) -> float:
    """Share of the features' variance over a grid of cells that is in no factor alone; NaN of
    features that are dead there."""
    if not np.any(gram_BxB):
        return np.nan
    shares = anova.kernel_anova(gram_BxB, sizes)
    varying = float(shares.main.sum()) + shares.interaction
    return shares.interaction / varying if varying > 1e-12 else np.nan


def interaction_over_hole(gram_BxB, held_out_B, sizes) -> float:
    """The same over the held-out cells, where it separates composition from lookup; NaN where
    they are no grid of at least two values of two factors."""
    box = grids.box_sizes(held_out_B, sizes)
    if box is None or sum(size > 1 for size in box) < 2:
        return np.nan
    return interaction(gram_BxB[np.ix_(held_out_B, held_out_B)], box)


def agreements(kernel_BxB, factors_BxF, held_out_B, true_kernel_BxB) -> dict:
    """Correlations with the binary kernel, with the kernel of the true outputs, and with the binary
    one beyond that of the true outputs: over pairs of held-out cells, and (`cross_`) over pairs of
    a held-out and a seen cell, the "top left section" of Figure 8 in the authors' order of cells.

    All kernels are of the cells, (B, B). That of the true outputs is the same similarity of them
    as `kernel` is of a layer; of two bumps of width sigma the cosine is a Gaussian of lengths
    sqrt(2) sigma. NaN for fewer than three held-out cells; the latter also without a seen one.
    """
    names = ("binary", "true", "partial")
    found = dict.fromkeys(AGREEMENTS, np.nan)
    if held_out_B.sum() < 3:
        return found
    factors, true_kernel_BxB = np.asarray(factors_BxF), np.asarray(true_kernel_BxB)
    within = np.ix_(held_out_B, held_out_B)
    kernel, true = kernel_BxB[within], true_kernel_BxB[within]
    binary = kernels.binary(factors[held_out_B], "sum")
    values = (
        kernels.agreement(kernel, binary),
        kernels.agreement(kernel, true),
        kernels.partial_agreement(kernel, binary, true),
    )
    found |= dict(zip(names, values, strict=True))
    if held_out_B.all():
        return found
    across = np.ix_(held_out_B, ~held_out_B)
    kernel, true = kernel_BxB[across], true_kernel_BxB[across]
    binary = kernels.binary(factors, "sum")[across]
    values = (
        kernels.cross_agreement(kernel, binary),
        kernels.cross_agreement(kernel, true),
        kernels.cross_agreement(kernel, binary, true),
    )
    return found | {f"cross_{name}": value for name, value in zip(names, values, strict=True)}
