"""C4 to C7 on inspections whose numbers are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import mechanism

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
TRAINED = np.ones(3)
JITTER = np.array([-0.01, 0.0, 0.01])


def per_layer(*values):
    """(3 seeds, L): the values with a small spread over seeds."""
    return np.array(values, float) + JITTER[:, None] * np.arange(1, len(values) + 1)


def inspection(numbers=None, outputs=None):
    numbers = {name: per_layer(*values) for name, values in (numbers or {}).items()}
    outputs = {f"output.{name}": value + JITTER for name, value in (outputs or {}).items()}
    return SimpleNamespace(seeds=(0, 1, 2), numbers=numbers, outputs=outputs)


IDEAL = mechanism.Ideal(superposer_r2=0.4, bump_r2=0.01, superposer_binary=-0.3, lookup_partial=0.2)


def found_in(row):
    return row["as_stated"]["verdict"], row["stricter"]["verdict"]


@pytest.mark.parametrize(
    ("own", "sums", "verdicts"),
    [
        ((0.9, 0.1), 0.4, (R, R)),
        ((0.9, 0.95), 0.4, (C, R)),
        ((0.9, 0.1), 0.2, (R, C)),
        ((0.1, 0.05), 0.4, (U, R)),
    ],
)
@pytest.mark.parametrize("code", ["bump", "ramp"])
def test_superposition_in_the_construction_of_the_code(code, own, sums, verdicts):
    r2, shuffled = own
    outputs = {
        "superposition.mean_code.inner_r2": r2,
        "superposition.mean_code.inner_shuffled_r2": shuffled,
        "superposition.sums.inner_r2": sums,
        "superposition.sums.inner_shuffled_r2": 0.1,
    }
    measured = inspection(outputs=outputs)
    if own != (0.1, 0.05):
        measured.outputs["output.superposition.mean_code.inner_shuffled_r2"] = np.full(3, shuffled)
    else:  # the same jitter in both would leave no interval
        measured.outputs["output.superposition.mean_code.inner_shuffled_r2"] = 0.05 - JITTER
    row = mechanism.superposes(code, TRAINED, measured, IDEAL)
    assert row["claim"] == "C4" and row["stricter"]["verdict"] == verdicts[1]
    if code == "bump":
        assert found_in(row) == verdicts
        assert row["as_stated"]["measured"] == pytest.approx(r2 - shuffled)
    else:
        assert row["as_stated"]["measured"] == pytest.approx(sums - 0.1)


def kernel(binary, true, partial):
    names = {"cross_binary": binary, "cross_true": true, "cross_partial": partial}
    return inspection(outputs={f"cosine.{name}": value for name, value in names.items()})


def test_binary_kernel_must_fit_better_than_the_true_images_and_beyond_a_lookup():
    def verdicts(*numbers):
        row = mechanism.resembles_binary_kernel("bump", TRAINED, kernel(*numbers), IDEAL)
        return found_in(row)

    assert verdicts(0.8, 0.4, 0.5) == (R, R)
    # the jitter is common to both kernels, so their difference has no spread
    assert verdicts(0.4, 0.8, 0.1) == (C, C)
    assert verdicts(0.5, 0.7, 0.1) == (U, C)  # further than an ideal superposer's is it not
    assert verdicts(0.8, 0.4, 0.1) == (R, C)
    assert verdicts(0.8, 0.4, 0.2) == (R, U)
    clearer = mechanism.clearer_for_bump(TRAINED, kernel(0.8, 0.4, 0.5), kernel(0.8, 0.4, 0.2))
    assert clearer["stricter"]["verdict"] == R
    assert clearer["stricter"]["measured"] == pytest.approx(0.3)


def layers(decodability, interaction):
    """Behind the last hidden layer the drawn signal, which does not count."""
    count = len(decodability)
    return inspection(
        {
            "probe.ood_r2": [*decodability, 5],
            "anova.interaction": [*interaction, -5],
            "factorization.ratio_of_means": [*np.linspace(1, 0.9, count), 5],
        }
    )


def test_decay_is_the_slope_over_layers_and_stricter_that_beyond_a_composers():
    falling = layers([1, 0.8, 0.6, 0.4], [0, 0.2, 0.4, 0.6])
    composer = layers([1, 0.95, 0.9, 0.85], [0, 0.1, 0.2, 0.3])
    row = mechanism.decays_with_depth("bump", TRAINED, falling, composer)
    assert row["claim"] == "C6" and found_in(row) == (R, R)
    assert row["as_stated"]["measured"] == pytest.approx(-0.2)
    assert row["stricter"]["measured"] == pytest.approx(-0.15)
    # a perfect composer's features turn into an image as well
    assert found_in(mechanism.decays_with_depth("bump", TRAINED, composer, falling)) == (R, C)
    rising = layers([0.4, 0.6, 0.8, 1], [0, 0.2, 0.4, 0.6])
    assert found_in(mechanism.decays_with_depth("bump", TRAINED, rising, composer)) == (C, C)
    alone = mechanism.decays_with_depth("bump", TRAINED, falling)
    assert found_in(alone) == (R, U) and alone["stricter"]["reason"].startswith("not known")
    assert found_in(mechanism.decays_with_depth("bump", 0.5 * TRAINED, falling)) == (U, U)


def test_shallow_and_deep_are_compared_at_equal_relative_depth():
    deep = layers([1, 0.8, 0.6, 0.4], [0, 0.2, 0.4, 0.6])
    steep = layers([1, 0.2], [0, 0.8])
    row = mechanism.shallow_ramp_is_sharper(TRAINED, steep, deep)
    assert row["stricter"]["verdict"] == R
    assert row["stricter"]["measured"] == pytest.approx(-0.8 + 0.6, abs=0.02)
    # a drop of the same size in fewer layers is no sharper
    equal = layers([1, 0.5], [0, 0.5])
    assert mechanism.shallow_ramp_is_sharper(TRAINED, equal, deep)["stricter"]["verdict"] == C


def volume(ratio, effect, inner=None):
    """The last hidden layer's stands before the drawn signal's, which does not count."""
    return inspection(
        {
            "volume.log10_ratio": [0, ratio / 2, ratio, -9],
            "volume.effect": [0, 0.1, effect, -9],
            "volume.inner_effect": [0, 0.1, effect if inner is None else inner, -9],
        }
    )


def test_volume_is_that_of_the_last_hidden_layer_whatever_its_sign():
    flat = volume(0.01, 0.2)
    for sign in (1, -1):
        row = mechanism.distorts_volume("bump", TRAINED, volume(0.5, sign * 1.5), flat)
        assert row["claim"] == "C7" and found_in(row) == (R, R)
        assert row["as_stated"]["measured"] == pytest.approx(1.5)
    assert found_in(mechanism.distorts_volume("bump", TRAINED, volume(0.5, 0.3), flat)) == (C, C)
    # of the border alone; as much in a decoder that composes; no such decoder
    bordered = mechanism.distorts_volume("bump", TRAINED, volume(0.5, 1.5, inner=0.2), flat)
    assert found_in(bordered) == (R, C)
    both = mechanism.distorts_volume("bump", TRAINED, volume(0.5, 1.5), volume(0.5, 2.0))
    assert found_in(both) == (R, C)
    alone = mechanism.distorts_volume("bump", TRAINED, volume(0.5, 1.5))
    assert found_in(alone) == (R, U)


def test_mlps_and_cnns_must_differ_in_sign():
    opposite = mechanism.mlp_is_opposite("bump", TRAINED, volume(0.5, 1), volume(-0.4, -1))
    assert found_in(opposite) == (R, R)
    assert opposite["stricter"]["measured"] == pytest.approx(-0.2, abs=1e-2)
    small = mechanism.mlp_is_opposite("bump", TRAINED, volume(0.5, 1), volume(-0.4, -0.3))
    assert found_in(small) == (R, C)
    same = mechanism.mlp_is_opposite("bump", TRAINED, volume(-0.5, -1), volume(-0.4, -1))
    assert found_in(same) == (C, C)
