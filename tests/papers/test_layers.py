"""C6, C7 and C13 on runs whose numbers are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.papers.forced_rendering import image_quantities, layer_claims
from tests.papers.decoders import blank, decoder, judged, named, run

R, C, U = "reproduced", "contradicted", "inconclusive"


def of(depth=3, samples=0):
    task = SimpleNamespace(support=SimpleNamespace(samples=samples))
    return SimpleNamespace(model=SimpleNamespace(depth=depth), task=task)


def network(decodability, score, **others):
    """Behind the last hidden layer the drawn signal, which does not count."""
    numbers = {
        "probe.ood_r2": [*decodability, -5],
        "factorization.ratio_of_means": [*score, -5],
    }
    return run(numbers=numbers, config=of(len(decodability) - 1), **others)


def values_of(row):
    return [one["value"] for one in row["conditions"].values()]


def test_slopes_are_least_squares():
    values, places = np.random.default_rng(0).normal(size=(3, 5)), [1, 2, 4, 7, 8]
    expected = np.polyfit(places, values.T, 1)[0]
    np.testing.assert_allclose(image_quantities.slope(values, places), expected)
    assert image_quantities.slope(np.full((1, 4), 0.3)) == 0


def test_decay_is_that_of_the_last_hidden_layer_beside_a_composer_over_the_same_cells():
    v_shaped, slight = network([1, 0.2, 0.3, 0.4], [1, 0.5, 0.6, 0.6]), [1, 1, 1, 0.7]
    composer = network([1, 1, 1, 1], slight, over=lambda net: network(slight, slight))
    row = judged(layer_claims.falls_below_a_composer, net=v_shaped, composer=composer)
    assert row["verdict"] == R and values_of(row) == pytest.approx([-0.6 + 0.3], abs=0.01)
    # the score falls by .4, and by .1 more than the composer's: within .2; nearly by .2 more
    for fall, verdict in ((0.7, R), (0.79, U), (0.9, C)):
        composer = network(slight, [1, 1, 1, fall])
        row = judged(layer_claims.score_falls_as_in_a_composer, net=v_shaped, composer=composer)
        expected = [-0.4, 0.6 - fall + 0.2, 0.6 - fall - 0.2]
        assert row["verdict"] == verdict and values_of(row) == pytest.approx(expected, abs=0.01)
    # of 1, .2, .3, .4: (-1.5 - .1 + .15 + .6) / 5; of 1, .5, .6, .6: (-1.5 - .25 + .3 + .9) / 5
    notes = judged(layer_claims.falls, net=v_shaped)["notes"]
    slopes = [one["value"] for name, one in notes.items() if name.startswith("slope of")]
    assert slopes == pytest.approx([-0.17, -0.11], abs=0.01)
    # nothing is concluded beside a network that renders nothing
    empty = network(slight, slight, cells=decoder(blank), over=lambda net: composer)
    row = judged(layer_claims.falls_below_a_composer, net=v_shaped, composer=empty)
    assert row["verdict"] == U and row["reason"].startswith("the network with random")


def test_shallow_and_deep_are_compared_by_their_least_value():
    deep = network([1, 0.6, 0.8, 0.9], [1, 0.95, 0.95, 0.95])
    middle, shallow = network([1, 0.5, 0.7], [1, 0.9, 0.93]), network([1, 0.2], [1, 0.7])
    for net, others in ((deep, [middle, shallow]), (shallow, [deep, middle])):
        for claim, value in (
            (layer_claims.falls_more_in_shallow_networks, 0.2 - 0.6),
            # depths 1, 2 and 3: the ends alone have a part in the slope
            (named(layer_claims.CLAIMS, "C6.depths"), (0.6 - 0.2) / 2),
        ):
            row = judged(claim, net=net, others=others)
            assert row["verdict"] == R and values_of(row)[0] == pytest.approx(value, abs=0.02)


def volume(ratio, depth):
    """The last hidden layer's stands before the drawn signal's, which does not count."""
    numbers = {"volume.inner_effect": [0, ratio / 2, ratio, -9]}
    return run(config=of(depth), numbers=numbers)


def test_an_mlp_is_compared_with_the_cnn_of_the_nearest_depth():
    convs = [volume(0.5, depth=2), volume(-0.5, depth=6)]
    for depth, verdict, nearest in ((3, C, 4), (5, R, 6), (7, R, 6)):  # of two the deeper
        runs = {"mlp": volume(0.4, depth=depth), "conv": volume(0.3, depth=4)}
        row = judged(layer_claims.mlps_are_opposite, convs=convs, **runs)
        assert row["verdict"] == verdict
        assert row["notes"]["depth of the CNN"]["value"] == nearest


def test_units_turn_by_more_than_untrained_and_with_more_bumps():
    numbers = {
        "tuning.weighted_one_factor": (1, 0.8, 0.5, 0.2, 0),
        "tuning.weighted_product": (0, 0.1, 0.3, 0.6, 1),
        "untrained.tuning.weighted_one_factor": (1, 0.9, 0.7, 0.5, 0),
        "untrained.tuning.weighted_product": (0, 0.1, 0.2, 0.3, 1),
    }
    by_bumps = [
        run(numbers={"tuning.weighted_product": [0, 0, product, 9]}, config=of(samples=bumps))
        for bumps, product in zip((0, 9, 99), (0.1, 0.2, 0.6), strict=True)
    ]
    net = run(numbers=numbers)
    # changes of both shares; half a decade of product share in two of bumps; less untrained, alone
    for claim, others, expected, verdict in (
        (
            layer_claims.units_turn_from_stripes_to_bumps,
            {"by_bumps": by_bumps},
            [-0.6, 0.5, 0.25],
            R,
        ),
        (named(layer_claims.CLAIMS, "C13.untrained"), {}, [-0.6 + 0.4, 0.5 - 0.2], R),
        (named(layer_claims.CLAIMS, "C13.bumps_alone"), {"alone": net}, [0, 0], C),
    ):
        row = judged(claim, net=net, **others)
        assert values_of(row) == pytest.approx(expected, abs=0.01) and row["verdict"] == verdict
