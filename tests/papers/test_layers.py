"""C6, C7, C12 and C13 on runs whose numbers are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import layers
from tests.papers.decoders import blank, cell_results, decoder, judged, run, verdicts

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
BUMP = {"code": "bump"}


def network(decodability, interaction, **others):
    """Behind the last hidden layer the drawn signal, which does not count."""
    numbers = {
        "probe.ood_r2": [*decodability, 5],
        "anova.interaction": [*interaction, -5],
        "factorization.ratio_of_means": [*np.linspace(1, 0.9, len(decodability)), 5],
    }
    config = SimpleNamespace(model=SimpleNamespace(depth=len(decodability) - 1))
    return run(numbers=numbers, config=config, **others)


def test_decay_is_the_slope_over_layers_and_stricter_that_beyond_a_composers():
    falling = network([1, 0.8, 0.6, 0.4], [0, 0.2, 0.4, 0.6])
    slight = [1, 0.95, 0.9, 0.85], [0, 0.1, 0.2, 0.3]
    composer, claim = network(*slight), layers.DECAYS_WITH_DEPTH
    row = judged(claim, BUMP, net=falling, composer=composer)
    assert row["as_stated"]["verdict"] == row["stricter"]["verdict"] == R
    assert row["as_stated"]["measured"] == pytest.approx(-0.2)
    assert row["stricter"]["measured"] == pytest.approx(-0.15)
    # a perfect composer's features turn into an image as well
    assert verdicts(claim, BUMP, net=composer, composer=falling) == (R, C)
    rising = network([0.4, 0.6, 0.8, 1], [0, 0.2, 0.4, 0.6])
    assert verdicts(claim, BUMP, net=rising, composer=composer) == (C, C)
    no_composer = network(*slight, cells=decoder(blank))
    for other, reason in ((None, "not run: composer"), (no_composer, "the network with random")):
        row = judged(claim, BUMP, net=falling, composer=other)
        assert row["as_stated"]["verdict"] == R and row["stricter"]["verdict"] == U
        assert row["stricter"]["reason"].startswith(reason)
    untrained = cell_results(np.zeros((3, 144, 12, 12)))
    net = network([1, 0.8, 0.6, 0.4], [0, 0.2, 0.4, 0.6], cells=untrained)
    assert verdicts(claim, BUMP, net=net, composer=composer) == (U, U)


def test_shallow_and_deep_are_compared_at_equal_relative_depth():
    deep = network([1, 0.8, 0.6, 0.4], [0, 0.2, 0.4, 0.6])
    between = network([1, 0, 0], [0, 1, 1])
    steep, claim = network([1, 0.2], [0, 0.8]), layers.SHALLOW_RAMP_IS_SHARPER
    for preset, others in ((deep, [between, steep]), (steep, [deep]), (between, [deep, steep])):
        row = judged(claim, preset=preset, others=others)
        assert row["stricter"]["verdict"] == R
        assert row["stricter"]["measured"] == pytest.approx(-0.8 + 0.6, abs=0.02)
    # a drop of the same size in fewer layers is no sharper
    equal = network([1, 0.5], [0, 0.5])
    assert verdicts(claim, preset=deep, others=[equal])[1] == C


def volume(ratio, effect, inner=None):
    """The last hidden layer's stands before the drawn signal's, which does not count."""
    return run(
        numbers={
            "volume.log10_ratio": [0, ratio / 2, ratio, -9],
            "volume.effect": [0, 0.1, effect, -9],
            "volume.inner_effect": [0, 0.1, effect if inner is None else inner, -9],
        }
    )


def test_volume_is_that_of_the_last_hidden_layer_whatever_its_sign():
    flat, claim = volume(0.01, 0.2), layers.DISTORTS_VOLUME
    for sign in (1, -1):
        row = judged(claim, BUMP, net=volume(0.5, sign * 1.5), composer=flat)
        assert row["as_stated"]["verdict"] == row["stricter"]["verdict"] == R
        assert row["as_stated"]["measured"] == pytest.approx(1.5)
    for net, composer, expected in (
        (volume(0.5, 0.3), flat, (C, C)),
        (volume(0.5, 1.5, inner=0.2), flat, (R, C)),  # at the border alone
        (volume(0.5, 1.5), volume(0.5, 2.0), (R, C)),  # as much in a decoder that composes
        (volume(0.5, 1.5), None, (R, U)),
    ):
        assert verdicts(claim, BUMP, net=net, composer=composer) == expected


def test_mlps_and_cnns_must_differ_in_sign():
    claim = layers.MLP_IS_OPPOSITE
    row = judged(claim, BUMP, conv=volume(0.5, 1), mlp=volume(-0.4, -1))
    assert row["as_stated"]["verdict"] == row["stricter"]["verdict"] == R
    assert row["stricter"]["measured"] == pytest.approx(-0.2, abs=1e-2)
    assert verdicts(claim, BUMP, conv=volume(0.5, 1), mlp=volume(-0.4, -0.3)) == (R, C)
    assert verdicts(claim, BUMP, conv=volume(-0.5, -1), mlp=volume(-0.4, -1)) == (C, C)
    untrained = run(cell_results(np.zeros((3, 144, 12, 12))))
    untrained.layer_numbers = volume(-0.4, -1).layer_numbers
    assert verdicts(claim, BUMP, conv=volume(0.5, 1), mlp=untrained) == (U, U)


@pytest.mark.parametrize(
    ("ratio", "spread", "expected"),
    [
        ((0.3, -0.3), (0.2, 0.2), (R, R)),
        ((-0.9, 0.9), (0.2, 0.2), (C, C)),  # as far on average, on both sides
        ((0.3, -0.3), (0.7, 0.6), (R, C)),
    ],
)
def test_volume_must_be_closer_to_the_seen_one_and_flatter(ratio, spread, expected):
    def of(ratio, spread):
        return run(
            numbers={"volume.log10_ratio": [0, *ratio, 0], "volume.ood_spread": [0, *spread, 0]}
        )

    alone = of((-0.8, 0.9), (0.5, 0.6))
    found = verdicts(layers.VOLUME_STAYS_SMOOTH, stripes=of(ratio, spread), alone=alone)
    assert found == expected


@pytest.mark.parametrize(
    ("one_factor", "product", "expected"),
    [
        ((0.8, 0.5, 0.2), (0.1, 0.3, 0.6), (R, R)),
        ((0.8, 0.7, 0.6), (0.1, 0.15, 0.2), (R, C)),  # as before training
        ((0.8, 0.8, 0.9), (0.1, 0.1, 0.0), (C, C)),  # stripes to the end
        ((0.2, 0.2, 0.1), (0.7, 0.6, 0.5), (C, C)),  # fewer bumps at the end
    ],
)
def test_units_must_turn_from_stripes_to_bumps(one_factor, product, expected):
    numbers = {
        "tuning.weighted_one_factor": (1, *one_factor, 0),
        "tuning.weighted_product": (0, *product, 1),
        "untrained.tuning.weighted_one_factor": (1, 0.9, 0.7, 0.5, 0),
        "untrained.tuning.weighted_product": (0, 0.1, 0.2, 0.3, 1),
    }
    net = run(numbers=numbers)
    row = judged(layers.UNITS_TURN_FROM_STRIPES_TO_BUMPS, {"few": 5}, net=net, alone=net)
    assert (row["as_stated"]["verdict"], row["stricter"]["verdict"]) == expected
    assert row["as_stated"]["measured"] == pytest.approx(one_factor[-1] - one_factor[0], abs=0.01)
