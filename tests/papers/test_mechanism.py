"""C4 to C7 on runs whose numbers are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import mechanism
from tests.papers.decoders import JITTER, blank, cell_results, decoder, judged, run, verdicts

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
BUMP = {"code": "bump"}


@pytest.fixture(autouse=True)
def ideals(monkeypatch):
    ideal = mechanism.Ideal(0.4, bump_r2=0.01, superposer_binary=-0.3, lookup_partial=0.2)
    monkeypatch.setattr(mechanism, "ideal", lambda cells: ideal)


@pytest.mark.parametrize(
    ("own", "others", "sums", "expected"),
    [
        (0.9, np.full(3, 0.1), 0.4, (R, R)),
        (0.9, np.full(3, 0.95), 0.4, (C, R)),
        (0.9, np.full(3, 0.1), 0.2, (R, C)),
        (0.1, 0.05 - JITTER, 0.4, (U, R)),
    ],
)
def test_superposition_in_the_construction_of_the_code(own, others, sums, expected):
    outputs = {
        "superposition.mean_code.inner_r2": own,
        "superposition.sums.inner_r2": sums,
        "superposition.sums.inner_shuffled_r2": 0.1,
    }
    net = run(outputs=outputs)
    net.output_numbers["output.superposition.mean_code.inner_shuffled_r2"] = others
    row = judged(mechanism.SUPERPOSES, BUMP, net=net)
    assert (row["as_stated"]["verdict"], row["stricter"]["verdict"]) == expected
    assert row["as_stated"]["measured"] == pytest.approx(own - others.mean())
    row = judged(mechanism.SUPERPOSES, {"code": "ramp"}, net=net)
    assert row["as_stated"]["measured"] == pytest.approx(sums - 0.1)


def kernel(binary, true, partial):
    names = {"cross_binary": binary, "cross_true": true, "cross_partial": partial}
    return run(outputs={f"cosine.{name}": value for name, value in names.items()})


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0.8, 0.4, 0.5), (R, R)),
        # the jitter is common to both kernels, so their difference has no spread
        ((0.4, 0.8, 0.1), (C, C)),
        ((0.5, 0.7, 0.1), (U, C)),  # it is not further than an ideal superposer's
        ((0.8, 0.4, 0.1), (R, C)),
        ((0.8, 0.4, 0.2), (R, U)),
    ],
)
def test_binary_kernel_must_fit_better_than_the_true_images_and_beyond_a_lookup(numbers, expected):
    net = kernel(*numbers)
    assert verdicts(mechanism.RESEMBLES_BINARY_KERNEL, BUMP, net=net) == expected


def test_the_clearer_structure_is_that_of_the_bump_code():
    runs = {"bump": kernel(0.8, 0.4, 0.5), "ramp": kernel(0.8, 0.4, 0.2)}
    row = judged(mechanism.CLEARER_FOR_BUMP, **runs)
    assert row["stricter"]["verdict"] == R
    assert row["stricter"]["measured"] == pytest.approx(0.3)


def layers(decodability, interaction, **others):
    """Behind the last hidden layer the drawn signal, which does not count."""
    numbers = {
        "probe.ood_r2": [*decodability, 5],
        "anova.interaction": [*interaction, -5],
        "factorization.ratio_of_means": [*np.linspace(1, 0.9, len(decodability)), 5],
    }
    config = SimpleNamespace(model=SimpleNamespace(depth=len(decodability) - 1))
    return run(numbers=numbers, config=config, **others)


def test_decay_is_the_slope_over_layers_and_stricter_that_beyond_a_composers():
    falling = layers([1, 0.8, 0.6, 0.4], [0, 0.2, 0.4, 0.6])
    slight = [1, 0.95, 0.9, 0.85], [0, 0.1, 0.2, 0.3]
    composer, claim = layers(*slight), mechanism.DECAYS_WITH_DEPTH
    row = judged(claim, BUMP, net=falling, composer=composer)
    assert row["as_stated"]["verdict"] == row["stricter"]["verdict"] == R
    assert row["as_stated"]["measured"] == pytest.approx(-0.2)
    assert row["stricter"]["measured"] == pytest.approx(-0.15)
    # a perfect composer's features turn into an image as well
    assert verdicts(claim, BUMP, net=composer, composer=falling) == (R, C)
    rising = layers([0.4, 0.6, 0.8, 1], [0, 0.2, 0.4, 0.6])
    assert verdicts(claim, BUMP, net=rising, composer=composer) == (C, C)
    no_composer = layers(*slight, cells=decoder(blank))
    for other, reason in ((None, "not run: composer"), (no_composer, "the network with random")):
        row = judged(claim, BUMP, net=falling, composer=other)
        assert row["as_stated"]["verdict"] == R and row["stricter"]["verdict"] == U
        assert row["stricter"]["reason"].startswith(reason)
    untrained = cell_results(np.zeros((3, 144, 12, 12)))
    net = layers([1, 0.8, 0.6, 0.4], [0, 0.2, 0.4, 0.6], cells=untrained)
    assert verdicts(claim, BUMP, net=net, composer=composer) == (U, U)


def test_shallow_and_deep_are_compared_at_equal_relative_depth():
    deep = layers([1, 0.8, 0.6, 0.4], [0, 0.2, 0.4, 0.6])
    between = layers([1, 0, 0], [0, 1, 1])
    steep, claim = layers([1, 0.2], [0, 0.8]), mechanism.SHALLOW_RAMP_IS_SHARPER
    for preset, others in ((deep, [between, steep]), (steep, [deep]), (between, [deep, steep])):
        row = judged(claim, preset=preset, others=others)
        assert row["stricter"]["verdict"] == R
        assert row["stricter"]["measured"] == pytest.approx(-0.8 + 0.6, abs=0.02)
    # a drop of the same size in fewer layers is no sharper
    equal = layers([1, 0.5], [0, 0.5])
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
    flat, claim = volume(0.01, 0.2), mechanism.DISTORTS_VOLUME
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
    claim = mechanism.MLP_IS_OPPOSITE
    row = judged(claim, BUMP, conv=volume(0.5, 1), mlp=volume(-0.4, -1))
    assert row["as_stated"]["verdict"] == row["stricter"]["verdict"] == R
    assert row["stricter"]["measured"] == pytest.approx(-0.2, abs=1e-2)
    assert verdicts(claim, BUMP, conv=volume(0.5, 1), mlp=volume(-0.4, -0.3)) == (R, C)
    assert verdicts(claim, BUMP, conv=volume(-0.5, -1), mlp=volume(-0.4, -1)) == (C, C)
    untrained = run(cell_results(np.zeros((3, 144, 12, 12))))
    untrained.layer_numbers = volume(-0.4, -1).layer_numbers
    assert verdicts(claim, BUMP, conv=volume(0.5, 1), mlp=untrained) == (U, U)
