"""Every registered metric: one layer or prediction where its number is known in closed form, and
the changes of features that leave it alone."""

from itertools import product

import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import registry
from compgen_jax.metrics.layers import Layer

V = 6  # values of each of two factors
CELLS = grids.indices((V, V))
HELD_OUT = ((CELLS >= 2) & (CELLS <= 4)).all(axis=1)
BORDER = CELLS[:, 1] == 4  # a row that crosses the hole
STRIPES = np.concatenate([np.eye(V)[CELLS[:, 0]], np.eye(V)[CELLS[:, 1]]], axis=1)
# tangents of lengths 2 and 3 at 60 degrees; a hole of 10^2 or, where x = y, 10^3 the volume, and
# one row of seen cells of 10 times the others
LOG = HELD_OUT * (2.0 + (CELLS[:, 0] == CELLS[:, 1])) + (CELLS[:, 1] == 0)
TENSORS = 10 ** LOG[:, None, None] * np.array([[4.0, 3.0], [3.0, 9.0]])


OOD, ID = LOG[HELD_OUT & ~BORDER], LOG[~HELD_OUT & ~BORDER]
INNER_RATIO = OOD.mean() - ID.mean()


def all_numbers(domain, features, scale=1.0) -> dict:
    """All numbers of a layer that is also the untrained and the last one, with tensors that follow
    the features' scale."""
    contrasts = scale**2 * TENSORS[:, 0, 1]
    costly = {"untrained": features, "tensors": scale**2 * TENSORS, "contrasts": contrasts}
    layer = Layer(features, CELLS * 1.0, HELD_OUT, costly=costly.get)
    if domain == "grid":
        layer.sizes, layer.border, layer.distance = (V, V), BORDER, HELD_OUT * 1.0
        layer.true_kernel, layer.factor_names = STRIPES @ STRIPES.T / 2, ("x", "y")
    else:
        layer.groups = np.arange(V * V)
    return registry.numbers(
        [metric for metric in registry.METRICS if metric.domain == domain], layer
    )


# The Gram matrix of the stripes is I (x) J + J (x) I: two terms of singular values V^1.5 +- V
TERMS = np.array([V**1.5 + V, V**1.5 - V]) ** 2 / (2 * V**3 + 2 * V**2)
AGREEMENTS = {"binary": 1, "true": 1, "partial": np.nan}
TUNING = {
    "one_factor": 1, "interaction": 0, "product": 0, "bump": 0,
    "stripe": 1, "weighted_one_factor": 1, "weighted_product": 0, "active": 1,
}  # fmt: skip
KNOWN = {
    "grid": {
        "schmidt.rank": 2, "schmidt.exp_entropy": np.exp(-TERMS @ np.log(TERMS)),
        "spectrum.numerical_rank": 2 * (V - 1), "spectrum.energy_rank": 2 * (V - 1),
        "spectrum.participation_ratio": 2 * (V - 1),
        "anova.interaction": 0, "anova.interaction_ood": 0,
        "factorization.ratio_of_means": 1 - 3 / 13, "factorization.mean_of_ratios": 1 - 3 / 13,
        "volume.log10_ratio": LOG[HELD_OUT].mean() - LOG[~HELD_OUT].mean(),
        "volume.inner_log10_ratio": INNER_RATIO,
        "volume.inner_effect": INNER_RATIO / np.sqrt((OOD.var() + ID.var()) / 2),
        "volume.ood_spread": np.sqrt(2) / 3,
        "contrast.normalized": 3 / (13 / 2), "contrast.published": 3 * np.mean(10**LOG),
        "subspaces.rank": V - 1, "subspaces.largest_cosine": 0, "subspaces.mean_squared_cosine": 0,
        "curve.turning_ratio": np.nan,
    }
    | {
        f"{layer}cosine.{cross}{name}": value
        for layer, cross in product(("", "output."), ("", "cross_"))
        for name, value in AGREEMENTS.items()
    }
    | {f"{layer}tuning.{name}": TUNING[name] for layer in ("", "untrained.") for name in TUNING}
    | {
        f"probe.{factor}{region}_{score}": 1
        for factor, region, score in product(("", "x.", "y."), ("id", "ood"), ("r2", "accuracy"))
    },
    "points": dict.fromkeys(
        (f"decode.{name}" for name in ("id_r2", "ood_r2", "untrained.id_r2", "untrained.ood_r2",
                                       "recovery", "active_recovery")), 1),
}  # fmt: skip


@pytest.mark.parametrize("domain", registry.DOMAINS)
def test_numbers_of_stripes_in_closed_form(domain):
    """Features that are one-hot in each factor: everything is in single factors."""
    numbers = all_numbers(domain, STRIPES)
    for name, value in KNOWN[domain].items():
        assert numbers.pop(name) == pytest.approx(value, abs=1e-5, nan_ok=True), name
    if domain == "points":
        assert all("shuffled." in name and value < 0.6 for name, value in numbers.items())
        return
    # sums of outputs at ID cells that share x or y: an average stripe beside the right one
    assert 0.5 < numbers.pop("output.superposition.sums.r2") < 1
    assert all(name.startswith("output.superposition.") for name in numbers)
    assert np.isnan([value for name, value in numbers.items() if "mean_code" in name]).all()


ROTATED = ("schmidt.", "spectrum.", "anova.", "probe.", "cosine.", "factorization.",
           "volume.", "curve.", "output.", "decode.", "subspaces.",
           "contrast.normalized")  # fmt: skip
SHIFTED = ("spectrum.", "anova.", "subspaces.", "probe.", "tuning.", "untrained.tuning.", "decode.")
UNITS_ALONE = "tuning.", "untrained.tuning."
RNG = np.random.default_rng(0)
NOISY = STRIPES[:, 2:] @ RNG.normal(size=(10, 10)) + 0.5 * RNG.normal(size=(V * V, 10))
TURN = np.linalg.qr(RNG.normal(size=(10, 10)))[0]
CHANGES = {
    "permuted": (lambda features: 3 * features[:, ::-1], UNITS_ALONE),
    "rotated": (lambda features: 3 * features @ TURN, ROTATED),
    "shifted": (lambda features: 3 * features + 7, SHIFTED),
}


@pytest.mark.parametrize("domain", registry.DOMAINS)
@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_the_features_that_change_no_number(domain, change):
    function, prefixes = CHANGES[change]
    before, after = all_numbers(domain, NOISY), all_numbers(domain, function(NOISY), scale=3.0)
    for name, value in before.items():
        if name.startswith(prefixes):
            assert after[name] == pytest.approx(value, rel=1e-5, abs=1e-7, nan_ok=True), name


WRONG = [
    (lambda layer: layer.feature, AttributeError, "no attribute 'feature'"),
    (lambda layer, factors: 1.0, TypeError, "missing 1 required"),
    (lambda layer: layer.features, TypeError, r"metric mine is an array \(36, 5\), not one number"),
    (lambda layer: {"yours": 1.0}, TypeError, "metric mine is nothing, not one number"),
]


@pytest.mark.parametrize(("function", "error", "message"), WRONG)
@pytest.mark.parametrize("domain", registry.DOMAINS)
def test_a_wrong_metric_is_refused_when_it_is_registered(function, error, message, domain):
    before = list(registry.METRICS)
    with pytest.raises(error, match=message):
        registry.layer_metric("mine", domain=domain)(function)
    assert registry.METRICS == before
    with pytest.raises(ValueError, match="domain must be one of grid, points"):
        registry.layer_metric("mine", domain="id_cells")
