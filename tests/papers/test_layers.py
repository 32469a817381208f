"""C6, C7, C12 and C13 on runs whose numbers are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.papers.forced_rendering import layers
from compgen_jax.runs.run import Run
from tests.papers.decoders import blank, cell_results, decoder, draw, judged, run

R, C, U = "reproduced", "contradicted", "inconclusive"


def of(depth=3, samples=0):
    support = SimpleNamespace(samples=samples)
    return SimpleNamespace(
        model=SimpleNamespace(depth=depth), task=SimpleNamespace(support=support)
    )


def network(decodability, score=None, **others):
    """Behind the last hidden layer the drawn signal, which does not count."""
    score = np.linspace(1, 0.9, len(decodability)) if score is None else score
    numbers = {
        "probe.ood_r2": [*decodability, -5],
        "factorization.ratio_of_means": [*score, -5],
    }
    return run(numbers=numbers, **({"config": of(len(decodability) - 1)} | others))


def test_slopes_are_least_squares():
    values, places = np.random.default_rng(0).normal(size=(2, 3, 5)), np.array([1, 2, 4, 7, 8])
    expected = [[np.polyfit(places, one, 1)[0] for one in of_seed] for of_seed in values]
    np.testing.assert_allclose(layers.slope(values, places), expected)
    assert (layers.slope(np.full((2, 3, 4), 0.3)) == 0).all()


def test_decay_is_that_of_the_last_hidden_layer_also_beside_a_composer():
    v_shaped = network([1, 0.2, 0.3, 0.4], [1, 0.5, 0.6, 0.6])
    slight = network([1, 1, 1, 0.8], [1, 1, 1, 0.8])
    row = judged(layers.falls, net=v_shaped)
    first = list(row["conditions"].values())[0]
    assert row["verdict"] == R and first["value"] == pytest.approx(-0.6, abs=1e-2)
    # of 1, .2, .3, .4: (-1.5 - .1 + .15 + .6) / 5; of 1, .5, .6, .6: (-1.5 - .25 + .3 + .9) / 5
    slopes = [one["value"] for name, one in row["notes"].items() if name.startswith("slope of")]
    assert slopes == pytest.approx([-0.17, -0.11], abs=1e-2)
    row = judged(layers.falls_below_a_composer, net=v_shaped, composer=slight)
    less = [one["value"] for one in list(row["conditions"].values())[2:]]
    assert row["verdict"] == R and less == pytest.approx([-0.4, -0.2], abs=1e-2)
    # nothing is concluded beside a network that renders nothing, or of an untrained one
    empty = network([1, 1, 1, 0.8], cells=decoder(blank))
    row = judged(layers.falls_below_a_composer, net=v_shaped, composer=empty)
    assert row["verdict"] == U and row["reason"].startswith("the network with random")
    untrained = network([1, 0.8, 0.6, 0.4], cells=cell_results(np.zeros((3, 144, 12, 12))))
    assert judged(layers.falls, net=untrained)["reason"].startswith("not trained")


def test_shallow_and_deep_are_compared_by_their_least_value():
    deep = network([1, 0.6, 0.8, 0.9], [1, 0.95, 0.95, 0.95])
    middle, shallow = network([1, 0.5, 0.7], [1, 0.9, 0.93]), network([1, 0.2], [1, 0.7])
    for net, others in ((deep, [middle, shallow]), (shallow, [deep, middle])):
        for claim, value in (
            (layers.falls_more_in_shallow_networks, 0.2 - 0.6),
            # depths 1, 2 and 3: the ends alone have a part in the slope
            (layers.falls_less_with_every_depth, (0.6 - 0.2) / 2),
        ):
            row = judged(claim, net=net, others=others)
            first = list(row["conditions"].values())[0]
            assert row["verdict"] == R and first["value"] == pytest.approx(value, abs=0.02)


def volume(ratio, effect, inner=None, depth=3, **others):
    """The last hidden layer's stands before the drawn signal's, which does not count."""
    inner = effect if inner is None else inner
    numbers = {
        "volume.log10_ratio": [0, ratio / 2, ratio, -9],
        "volume.effect": [0, 0.1, effect, -9],
        "volume.inner_effect": [0, 0.1, inner, -9],
        "volume.ood_spread": [0, 5, abs(effect), 9],
    }
    return run(config=of(depth), numbers=numbers, **others)


def test_volume_is_that_of_the_last_hidden_layer_whatever_its_sign():
    for sign in (1, -1):
        row = judged(layers.distorts_volume, net=volume(0.5, sign * 1.5, inner=0.1))
        first = list(row["conditions"].values())[0]
        assert row["verdict"] == R and first["value"] == pytest.approx(1.5, abs=0.02)
    for net, composer, verdict in (
        (volume(0.5, 1.5), volume(0.01, 0.2), R),
        (volume(0.5, 1.5, inner=0.2), volume(0.01, 0.2), C),  # at the border alone
        (volume(0.5, 1.5), volume(0.5, 2.0), C),  # as much in a decoder that composes
    ):
        row = judged(layers.distorts_volume_more_than_a_composer, net=net, composer=composer)
        assert row["verdict"] == verdict


def test_an_mlp_is_compared_with_the_cnn_of_the_nearest_depth():
    convs = [volume(0.5, 1, depth=2), volume(-0.5, -1, depth=6)]
    for depth, verdict, nearest in ((3, C, 4), (5, R, 6), (7, R, 6)):  # of two the deeper
        runs = {"mlp": volume(0.4, 1.2, depth=depth), "conv": volume(0.3, 1, depth=4)}
        row = judged(layers.mlps_are_opposite, convs=convs, **runs)
        assert row["verdict"] == verdict
        assert row["notes"]["depth of the CNN"]["value"] == nearest
    cells = cell_results(np.zeros((3, 144, 12, 12)))
    runs = {"mlp": volume(0.4, 1, cells=cells), "conv": volume(-0.5, -1), "convs": []}
    assert judged(layers.mlps_are_opposite, **runs)["verdict"] == U
    assert judged(layers.brief_mlps_are_opposite, **runs)["verdict"] == R
    runs["conv"] = volume(-0.5, -1, cells=cells)
    reason = judged(layers.brief_mlps_are_opposite, **runs)["reason"]
    assert reason.startswith("not trained: exact accuracy ID, CNN")


def test_of_late_checkpoints_the_median_counts():
    """Two seeds of three checkpoints each, of which one is far off."""
    values = np.array([[-0.5, -0.4, 9], [-0.6, -0.5, 9]])[..., None] * np.array([0, 1, 0])
    true = decoder(draw)
    late = true._replace(
        scores={name: np.broadcast_to(of[0], (2, 3, *of.shape[1:]))
                for name, of in true.scores.items()}
    )  # fmt: skip
    conv, mlp = (
        Run.known((0, 1), late=Run.known((0, 1), late, {"volume.log10_ratio": sign * values}),
                  config=of())
        for sign in (1, -1)
    )  # fmt: skip
    row = judged(layers.brief_mlps_are_opposite, mlp=mlp, conv=conv, convs=[])
    found = [one["value"] for one in row["conditions"].values()]
    assert found == pytest.approx([0.45, -0.45])


def test_units_turn_by_more_than_untrained_and_with_more_bumps():
    numbers = {
        "tuning.weighted_one_factor": (1, 0.8, 0.5, 0.2, 0),
        "tuning.weighted_product": (0, 0.1, 0.3, 0.6, 1),
        "untrained.tuning.weighted_one_factor": (1, 0.9, 0.7, 0.5, 0),
        "untrained.tuning.weighted_product": (0, 0.1, 0.2, 0.3, 1),
    }
    net, alone = run(numbers=numbers), run(numbers=numbers)
    by_bumps = [
        run(numbers={"tuning.weighted_product": [0, 0, product, 9]}, config=of(samples=bumps))
        for bumps, product in zip((0, 9, 99), (0.1, 0.2, 0.6), strict=True)
    ]
    row = judged(
        layers.units_turn_more_than_untrained_or_with_bumps_alone,
        net=net, by_bumps=by_bumps, alone=alone,
    )  # fmt: skip
    values = [one["value"] for one in row["conditions"].values()]
    # changes of both shares; half a decade of product share in two of bumps; less untrained, alone
    expected = [-0.6, 0.5, 0.25, -0.6 + 0.4, -0.6 + 0.6, 0.5 - 0.2, 0.5 - 0.5]
    assert values == pytest.approx(expected, abs=0.01) and row["verdict"] == C
