"""The numbers of one layer of one seed: from its activations and its metric tensors."""

import numpy as np

from compgen_jax.analysis import decomposition, geometry, kernels, probes, spectra


def layer_numbers(features_BxD, factors, held_out) -> dict:
    """Numbers of one layer of one seed from its activations at every cell; NaN where a layer is
    constant, or where the hole is no square."""
    features = np.asarray(features_BxD)
    if np.ptp(features, axis=0).max() == 0:
        return dict.fromkeys(LAYER_NUMBERS, np.nan)
    gram = kernels.gram(features)
    schmidt = decomposition.operator_schmidt(gram)
    spectrum = spectra.spectrum(features)
    probe = probes.probe(features, factors, held_out)
    binary = agreements(kernels.cosine(gram), factors, held_out)
    return {
        "schmidt.rank": decomposition.rank(schmidt),
        "schmidt.exp_entropy": np.exp(decomposition.entropy(schmidt)),
        "explained.hoeffding": decomposition.explained_fraction(gram, "hoeffding"),
        "explained.schmidt": decomposition.explained_fraction(gram, "schmidt"),
        "anova.interaction": interaction(gram),
        "anova.interaction_ood": interaction_over_hole(gram, held_out),
        "spectrum.numerical_rank": spectrum.numerical_rank,
        "spectrum.energy_rank": spectrum.energy_rank,
        "spectrum.participation_ratio": spectrum.participation_ratio,
        **{f"probe.{name}": np.mean(value) for name, value in probe.items()},
        **{f"cosine.{name}": value for name, value in binary.items()},
    }


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
    *(
        f"probe.{shuffled}{name}"
        for shuffled in ("", "shuffled.")
        for name in ("id_r2", "ood_r2", "id_accuracy", "ood_accuracy")
    ),
    "probe.in_sample_r2",
    *(f"cosine.{name}" for name in ("binary", "true", "partial")),
)


def geometry_numbers(metrics_BxFxF, held_out) -> dict:
    """Factorization in its three readings, and how the volume of the held-out cells compares
    with the seen ones': `volume.log10_ratio` of geometric means, that difference of log volumes
    over their pooled standard deviation (Cohen's d), `volume.effect`, and the standard deviation
    of log10 volume over the held-out cells, `volume.ood_spread`."""
    if metrics_BxFxF is None:
        readings = ("ratio_of_means", "mean_of_ratios", "cosine")
        names = [f"factorization.{name}" for name in readings]
        names += [f"volume.{name}" for name in ("log10_ratio", "effect", "ood_spread")]
        return dict.fromkeys(names, np.nan)
    scores = geometry.factorization(metrics_BxFxF)
    volume = np.asarray(geometry.volume_element(metrics_BxFxF), np.float64)
    floor = 1e-6 * volume.max() or 1.0  # a dead point has no logarithm
    log_volume = np.log10(np.maximum(volume, floor))
    ood, seen = log_volume[held_out], log_volume[~held_out]
    difference = ood.mean() - seen.mean() if held_out.any() else np.nan
    pooled = np.sqrt((ood.var() + seen.var()) / 2) if held_out.any() else np.nan
    return {f"factorization.{name}": float(score) for name, score in scores.items()} | {
        "volume.log10_ratio": difference,
        "volume.effect": difference / pooled if pooled > 0 else np.nan,
        "volume.ood_spread": ood.std() if held_out.any() else np.nan,
    }


def interaction(gram) -> float:
    """Share of the features' variance over a grid of cells that is in neither x nor y alone."""
    shares = decomposition.kernel_anova(gram)
    varying = shares.x + shares.y + shares.interaction
    return shares.interaction / varying if varying > 1e-12 else np.nan


def interaction_over_hole(gram, held_out) -> float:
    """The same over the held-out cells, where it separates composition from lookup; NaN where
    they are no square."""
    grid = int(len(held_out) ** 0.5)
    rows, columns = np.nonzero(held_out.reshape(grid, grid))
    side = len(np.unique(rows))
    if side < 2 or side != len(np.unique(columns)) or side**2 != len(rows):
        return np.nan
    return interaction(gram[np.ix_(held_out, held_out)])


def agreements(kernel, factors, held_out, true_kernel=None) -> dict:
    """Correlations over pairs of held-out cells with the binary kernel, with the kernel of the
    true images and with the binary one beyond that of the true images."""
    if held_out.sum() < 3:
        return dict.fromkeys(("binary", "true", "partial"), np.nan)
    chosen, points = np.ix_(held_out, held_out), np.asarray(factors)[held_out]
    binary = kernels.binary(points, "sum")
    # two bumps of sigma 1 overlap as a Gaussian of variance 2
    true = kernels.gaussian(points, 2**0.5, 2**0.5) if true_kernel is None else true_kernel[chosen]
    found = kernel[chosen]
    return {
        "binary": kernels.agreement(found, binary),
        "true": kernels.agreement(found, true),
        "partial": kernels.partial_agreement(found, binary, true),
    }
