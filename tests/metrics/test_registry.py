"""Every registered metric: one layer or prediction where its number is known in closed form, and
the changes of features that leave it alone."""

import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import kernels, outputs, registry
from compgen_jax.metrics.decoding import LastLayer, PointLayer
from compgen_jax.metrics.id_cells import IdLayer
from compgen_jax.metrics.layers import GridLayer

V = 6  # values of each of two factors
CELLS = grids.indices((V, V))
HELD_OUT = ((CELLS >= 2) & (CELLS <= 4)).all(axis=1)
BORDER = CELLS[:, 1] == 4  # a row that crosses the hole
STRIPES = np.concatenate([np.eye(V)[CELLS[:, 0]], np.eye(V)[CELLS[:, 1]]], axis=1)
# tangents of lengths 2 and 3 at 60 degrees; a hole of 10^2 or, where x = y, 10^3 the volume, and
# one row of seen cells of 10 times the others
LOG = HELD_OUT * (2.0 + (CELLS[:, 0] == CELLS[:, 1])) + (CELLS[:, 1] == 0)
TENSORS = 10 ** LOG[:, None, None] * np.array([[4.0, 3.0], [3.0, 9.0]])


def held_out_beside_seen(cells):
    """How much larger the log volume of held-out cells is; and over the spread within regions."""
    ood, seen = LOG[HELD_OUT & cells], LOG[~HELD_OUT & cells]
    ratio = ood.mean() - seen.mean()
    return ratio, ratio / np.sqrt((ood.var() + seen.var()) / 2)


(RATIO, EFFECT), (INNER_RATIO, INNER_EFFECT) = map(held_out_beside_seen, (BORDER | True, ~BORDER))


def at(place, features, scale=1.0) -> dict:
    """All numbers of a layer that is also the untrained and the last one, with tensors that follow
    the features' scale."""
    named = {"features": features, "factors": CELLS * 1.0, "tensors": scale**2 * TENSORS}
    if place == "grid":
        true = STRIPES @ STRIPES.T / 2
        layer = GridLayer(
            sizes=(V, V), held_out=HELD_OUT, border=BORDER, true_kernel=true, untrained=features,
            factor_names=("x", "y"), tangent_names=("x", "y"), **named,
        )  # fmt: skip
    elif place == "id_cells":
        layer = IdLayer(true_tensors=TENSORS, **named)
    elif place == "points":
        rows = {"factors": CELLS * 1.0, "held_out": HELD_OUT}
        groups = np.arange(V * V)
        layer = PointLayer(features=features, untrained=features, groups=groups, **rows)
        last = LastLayer(features=features, rows_per_point=1, **rows)
        metrics = [each for each in registry.OUTPUT_METRICS if each.at == "points"]
        return registry.layer_numbers(layer, "points") | registry.numbers(metrics, last)
    return registry.layer_numbers(layer, place)


def of_prediction(predictions, truths, law=None) -> dict:
    given = outputs.GridPrediction(
        predictions=predictions, truths=truths, factors=CELLS * 1.0, held_out=HELD_OUT,
        distance=HELD_OUT * 1.0, sizes=(V, V), mean_code_parts=None, places=CELLS * 1.0,
        training_law=np.ones((V, V)) if law is None else law,
        true_similarities=outputs.similarities(truths, truths),
    )  # fmt: skip
    metrics = [metric for metric in registry.OUTPUT_METRICS if metric.at == "grid"]
    return registry.numbers(metrics, given)


# The Gram matrix of the stripes is I (x) J + J (x) I: two terms of singular values V^1.5 +- V
TERMS = np.array([V**1.5 + V, V**1.5 - V]) ** 2 / (2 * V**3 + 2 * V**2)
KNOWN = {
    "grid": {
        "schmidt.rank": 2, "schmidt.exp_entropy": np.exp(-TERMS @ np.log(TERMS)),
        "explained.schmidt": TERMS[0], "explained.hoeffding": 1,
        "spectrum.numerical_rank": 2 * (V - 1), "spectrum.energy_rank": 2 * (V - 1),
        "spectrum.participation_ratio": 2 * (V - 1),
        "anova.interaction": 0, "anova.interaction_ood": 0,
        "probe.in_sample_r2": 1, "probe.id_r2": 1, "probe.ood_r2": 1,
        "probe.id_accuracy": 1, "probe.ood_accuracy": 1,
        "cosine.binary": 1, "cosine.true": 1, "cosine.partial": np.nan,
        "cosine.cross_binary": 1, "cosine.cross_true": 1, "cosine.cross_partial": np.nan,
        "factorization.ratio_of_means": 1 - 3 / 13, "factorization.mean_of_ratios": 1 - 3 / 13,
        "factorization.cosine": 1 / 2,
        "volume.log10_ratio": RATIO, "volume.inner_log10_ratio": INNER_RATIO,
        "volume.effect": EFFECT, "volume.inner_effect": INNER_EFFECT,
        "volume.ood_spread": np.sqrt(2) / 3,
        "tuning.one_factor": 1, "tuning.interaction": 0, "tuning.product": 0, "tuning.bump": 0,
        "tuning.stripe": 1, "tuning.weighted_one_factor": 1, "tuning.weighted_product": 0,
        "tuning.active": 1, "curve.turning_ratio": np.nan,
    },
    "id_cells": {
        "interaction": 0, "probe": 1, "orthogonality": 1 / 2, "log10_volume_excess": 0,
        "log10_volume_mean": np.log10(np.sqrt(27.0)) + LOG.mean(),
        "log10_volume_spread": LOG.std(),
    },
    "points": {
        "decode.id_r2": 1, "decode.ood_r2": 1, "decode.untrained.id_r2": 1,
        "decode.untrained.ood_r2": 1, "decode.recovery": 1, "decode.active_recovery": 1,
    },
}  # fmt: skip


@pytest.mark.parametrize("place", registry.PLACES)
def test_numbers_of_stripes_in_closed_form(place):
    """Features that are one-hot in each factor: everything is in single factors."""
    prefix = "id_cells." if place == "id_cells" else ""
    expected = {prefix + name: value for name, value in KNOWN[place].items()}
    numbers = at(place, STRIPES)
    if place == "grid":
        expected |= {f"untrained.{k}": v for k, v in expected.items() if k.startswith("tuning.")}
        expected |= {f"angle.x-y.{region}": 1 / 2 for region in ("id", "ood")}
        scores = {k: v for k, v in expected.items() if k.startswith("probe.")}
        for factor in "xy":
            expected |= {k.replace("probe.", f"probe.{factor}."): v for k, v in scores.items()}
    for name, value in expected.items():
        assert numbers.pop(name) == pytest.approx(value, abs=1e-5, nan_ok=True), name
    assert all("shuffled." in name and value < 0.6 for name, value in numbers.items())


def test_numbers_of_a_prediction_in_closed_form():
    """Stripes where the truth is stripes, shown in two of four quarters of the grid."""
    law = np.kron(np.eye(2), np.ones((V // 2, V // 2)))
    numbers = of_prediction(STRIPES, STRIPES, law)
    agreements = {k: v for k, v in KNOWN["grid"].items() if k.startswith("cosine.")}
    for name, value in agreements.items():  # two points of the hole share one factor or none
        for kind in outputs.SIMILARITIES:
            number = numbers.pop(name.replace("cosine.", f"output.{kind}.", 1))
            assert number == pytest.approx(value, abs=1e-9, nan_ok=True), (kind, name)
    assert numbers.pop("output.target_rank") == numbers.pop("output.epsilon_rank") == 1
    assert numbers.pop("output.training_law_kl_rank_1") == pytest.approx(np.log(2))
    assert numbers.pop("output.training_law_kl_rank_2") == pytest.approx(0, abs=1e-9)
    # sums of outputs at ID cells that share x or y: an average stripe beside the right one
    assert 0.5 < numbers.pop("output.superposition.sums.r2") < 1
    assert np.isnan([value for name, value in numbers.items() if "mean_code" in name]).all()


ROTATED = ("schmidt.", "explained.", "spectrum.", "anova.", "probe.", "cosine.", "factorization.",
           "volume.", "angle.", "curve.", "id_cells.", "decode.")  # fmt: skip
SHIFTED = ("spectrum.", "anova.", "probe.", "tuning.", "untrained.tuning.", "id_cells.", "decode.")
UNITS_ALONE = ("tuning.", "untrained.tuning.")
RNG = np.random.default_rng(0)
NOISY = STRIPES[:, 2:] @ RNG.normal(size=(10, 10)) + 0.5 * RNG.normal(size=(V * V, 10))
TURN = np.linalg.qr(RNG.normal(size=(10, 10)))[0]
CHANGES = {
    "scaled": (lambda features: 3 * features, (*ROTATED, *UNITS_ALONE)),
    "permuted": (lambda features: 3 * features[:, ::-1], (*ROTATED, *UNITS_ALONE)),
    "rotated": (lambda features: 3 * features @ TURN, ROTATED),
    "shifted": (lambda features: 3 * features + 7, SHIFTED),
}
FOLLOWS_SCALE = ("id_cells.log10_volume_mean", "id_cells.log10_volume_excess")


@pytest.mark.parametrize("place", registry.PLACES)
@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_the_features_that_change_no_number(place, change):
    function, prefixes = CHANGES[change]
    before, after = at(place, NOISY), at(place, function(NOISY), scale=3.0)
    assert all(name.startswith((*ROTATED, *UNITS_ALONE)) for name in before)  # a row for each
    for name, value in before.items():
        if name in FOLLOWS_SCALE:
            assert after[name] == pytest.approx(value + 2 * np.log10(3), rel=1e-5)
        elif name.startswith(prefixes):
            assert after[name] == pytest.approx(value, rel=1e-5, abs=1e-7, nan_ok=True), name


def test_permuted_pixels_and_units_of_measurement_change_no_number_of_a_prediction():
    truths = np.abs(NOISY) + 0.1
    before = of_prediction(NOISY, truths)
    after = of_prediction(3 * NOISY[:, ::-1], 3 * truths[:, ::-1])
    assert after == pytest.approx(before, rel=1e-6, nan_ok=True)


def test_kernels_have_one_length_or_one_for_each_factor():
    x, y = CELLS.T
    drawn = np.exp(-((x[:, None] - np.arange(V)) ** 2)) * np.cos(y / 5)[:, None]
    numbers = of_prediction(drawn, np.abs(drawn))
    names = [f"output.kernel_regression.{kind}_error" for kind in outputs.KERNELS]
    factorized, isotropic = (numbers[name] for name in names)
    _, fitted = kernels.kernel_regression(CELLS[~HELD_OUT], drawn[~HELD_OUT], CELLS[HELD_OUT])
    error = np.mean((fitted - drawn[HELD_OUT]) ** 2) / np.mean(drawn[HELD_OUT] ** 2)
    assert factorized == pytest.approx(error) and factorized < 0.9 * isotropic
