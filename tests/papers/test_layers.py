"""C6, C7, C12 and C13 on runs whose numbers are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import layers
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from tests.papers.decoders import (
    blank,
    cell_results,
    decoder,
    draw,
    judged,
    run,
    task,
    verdicts,
)

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
BUMP = {"code": "bump", "deep": ""}


def network(decodability, score=None, **others):
    """Behind the last hidden layer the drawn signal, which does not count."""
    score = np.linspace(1, 0.9, len(decodability)) if score is None else score
    numbers = {
        "probe.ood_r2": [*decodability, -5],
        "factorization.ratio_of_means": [*score, -5],
    }
    return run(numbers=numbers, **({"config": of_depth(len(decodability) - 1)} | others))


def of_depth(depth):
    return SimpleNamespace(model=SimpleNamespace(depth=depth))


def test_decay_is_that_of_the_last_layer_and_stricter_that_below_a_composers():
    v_shaped = network([1, 0.2, 0.3, 0.4], [1, 0.5, 0.6, 0.6])
    slight, claim = network([1, 1, 1, 0.8], [1, 1, 1, 0.8]), layers.DECAYS_WITH_DEPTH
    row = judged(claim, BUMP, net=v_shaped, composer=slight)
    assert row["as_stated"]["verdict"] == row["stricter"]["verdict"] == R
    assert row["as_stated"]["measured"] == pytest.approx(-0.6, abs=1e-2)
    slopes = [one["value"] for name, one in row["details"].items() if name.startswith("slope of")]
    # of 1, .2, .3, .4: (-1.5 - .1 + .15 + .6) / 5; of 1, .5, .6, .6: (-1.5 - .25 + .3 + .9) / 5
    assert sorted(slopes) == pytest.approx([-0.17, -0.11], abs=1e-2)
    last = list(row["stricter"]["conditions"].values())[2:]
    assert [one["value"] for one in last] == pytest.approx([-0.4, -0.2], abs=1e-2)
    # a perfect composer's features turn into an image as well
    assert verdicts(claim, BUMP, net=slight, composer=v_shaped) == (R, C)
    rising = network([0.2, 0.1, 0.1, 0.4])
    assert verdicts(claim, BUMP, net=rising, composer=slight) == (C, C)
    no_composer = network([1, 1, 1, 0.8], cells=decoder(blank))
    for other, reason in ((None, "not run: composer"), (no_composer, "the network with random")):
        row = judged(claim, BUMP, net=v_shaped, composer=other)
        assert row["as_stated"]["verdict"] == R and row["stricter"]["verdict"] == U
        assert row["stricter"]["reason"].startswith(reason)
    untrained = cell_results(np.zeros((3, 144, 12, 12)))
    net = network([1, 0.8, 0.6, 0.4], cells=untrained)
    assert verdicts(claim, BUMP, net=net, composer=slight) == (U, U)


def test_shallow_and_deep_are_compared_by_their_least_value():
    deep = network([1, 0.6, 0.8, 0.9], [1, 0.95, 0.95, 0.95])
    middle = network([1, 0.5, 0.7], [1, 0.9, 0.93])
    shallow, claim = network([1, 0.2], [1, 0.7]), layers.SHALLOW_RAMP_IS_SHARPER
    for preset, others in ((deep, [middle, shallow]), (shallow, [deep, middle])):
        row = judged(claim, preset=preset, others=others)
        assert row["as_stated"]["verdict"] == row["stricter"]["verdict"] == R
        assert row["as_stated"]["measured"] == pytest.approx(0.2 - 0.6, abs=0.02)
        # depths 1, 2 and 3: the ends alone have a part in the slope
        assert row["stricter"]["measured"] == pytest.approx((0.6 - 0.2) / 2, abs=0.02)
    assert verdicts(claim, preset=network([1, 0.9], [1, 0.99]), others=[deep]) == (C, C)


def volume(ratio, effect, inner=None, depth=3):
    """The last hidden layer's stands before the drawn signal's, which does not count."""
    return run(
        config=of_depth(depth),
        numbers={
            "volume.log10_ratio": [0, ratio / 2, ratio, -9],
            "volume.inner_log10_ratio": [0, ratio / 2, ratio, -9],
            "volume.effect": [0, 0.1, effect, -9],
            "volume.inner_effect": [0, 0.1, effect if inner is None else inner, -9],
        },
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


def test_an_mlp_must_have_the_larger_ood_volume_and_a_cnn_the_smaller():
    claim = layers.MLP_IS_OPPOSITE
    of = lambda conv, mlp, one=claim, convs=(): judged(
        one, BUMP, mlp=mlp, conv=conv, convs=list(convs)
    )
    both = lambda row: (row["as_stated"]["verdict"], row["stricter"]["verdict"])
    row = of(volume(-0.5, -1), volume(0.4, 1.2))
    assert both(row) == (R, R)
    assert row["as_stated"]["measured"] == pytest.approx(0.4, abs=1e-2)
    assert row["stricter"]["measured"] == pytest.approx(1.2, abs=1e-2)
    for conv, mlp, expected in (
        (volume(0.5, 1), volume(-0.4, -1), (C, C)),  # opposite, the other way round
        (volume(-0.5, -1), volume(-0.4, -1), (C, C)),
        (volume(0.5, 1), volume(0.4, 1), (C, C)),
        (volume(-0.5, -1), volume(0.4, 0.3), (R, C)),
        (volume(-0.5, -1, inner=-0.3), volume(0.4, 1), (R, C)),  # at the border alone
        (volume(-0.5, -1), volume(0, 0), (U, C)),
    ):
        assert both(of(conv, mlp)) == expected
    # the CNN of the nearest depth; of 2 and 4 beside an MLP of 3, that of 4
    convs = [volume(0.5, 1, depth=2), volume(-0.5, -1, depth=6)]
    for depth, expected in ((3, C), (5, R), (7, R)):
        row = of(volume(0.3, 1, depth=4), volume(0.4, 1, depth=depth), convs=convs)
        assert row["as_stated"]["verdict"] == expected
        assert row["details"]["depth of the CNN"]["value"] == (4 if depth == 3 else 6)


def test_only_rows_of_trained_mlps_ask_for_their_accuracy():
    cells = cell_results(np.zeros((3, 144, 12, 12)))
    untrained = volume(0.4, 1)
    untrained.cells = cells
    runs = {"conv": volume(-0.5, -1), "mlp": untrained, "convs": []}
    assert verdicts(layers.MLP_IS_OPPOSITE, BUMP, **runs) == (U, U)
    assert verdicts(layers.MLP_OF_20_EPOCHS_IS_OPPOSITE, BUMP, **runs) == (R, R)
    runs["conv"].cells = cells
    row = judged(layers.MLP_OF_20_EPOCHS_IS_OPPOSITE, BUMP, **runs)
    assert row["as_stated"]["reason"].startswith("not trained: exact accuracy ID, CNN")


def test_of_late_checkpoints_the_median_counts():
    """Two seeds of three checkpoints each, of which one is far off."""
    values = {"volume.log10_ratio": np.array([[-0.5, -0.4, 9], [-0.6, -0.5, 9]])}
    values["volume.inner_effect"] = 2 * values["volume.log10_ratio"]
    score = results.scorer(task())
    truths = decoder(draw).truths
    cells = score(np.repeat(truths[None], 2, axis=0))
    late = score(np.tile(truths, (2, 3, 1, 1, 1)))
    conv, mlp = (
        Run.known(
            (0, 1),
            cells,
            late=Run.known(
                (0, 1),
                late,
                {
                    name: sign * each[..., None] * np.array([0, 1, 0])
                    for name, each in values.items()
                },
            ),
            config=of_depth(3),
        )
        for sign in (1, -1)
    )
    row = judged(layers.MLP_OF_20_EPOCHS_IS_OPPOSITE, BUMP, mlp=mlp, conv=conv, convs=[])
    found = [one["value"] for one in row["as_stated"]["conditions"].values()]
    assert found == pytest.approx([0.45, -0.45])


@pytest.mark.parametrize(
    ("ratio", "spread", "donut", "expected"),
    [
        (-0.3, 0.2, 0.2, (R, R)),
        (0.3, 0.2, 0.2, (R, R)),
        (-1.2, 0.2, 0.2, (C, C)),  # further, on the same side
        (1.2, 0.2, 0.2, (C, C)),  # further, on the other side
        (0.3, 0.9, 0.2, (R, C)),
        (0.3, 0.2, 1.5, (R, C)),
        (0.3, 0.2, None, (R, U)),
    ],
)
def test_volume_must_be_closer_to_the_seen_one_and_flatter(ratio, spread, donut, expected):
    """By the last hidden layer, whatever the others do."""

    alone = smooth(-0.8, 0.6)
    donut_stripes = None if donut is None else smooth(donut, 0.1)
    around = {"donut_stripes": donut_stripes, "donut_alone": alone}
    stripes = smooth(ratio, spread)
    found = verdicts(layers.VOLUME_STAYS_SMOOTH, {"few": 5}, stripes=stripes, alone=alone, **around)
    assert found == expected


def smooth(ratio, spread, **others):
    numbers = {
        "volume.log10_ratio": [0, 5, -5, ratio, 9],
        "volume.ood_spread": [0, 5, 5, spread, 9],
    }
    return run(numbers=numbers, **others)


@pytest.mark.parametrize("where", ["stripes", "donut_stripes"])
def test_a_smooth_network_must_render_bumps_in_both_places(where):
    runs = dict.fromkeys(("stripes", "donut_stripes"), smooth(0.3, 0.2))
    runs |= dict.fromkeys(("alone", "donut_alone"), smooth(-0.8, 0.6))
    runs[where] = smooth(0.3, 0.2, cells=decoder(blank))
    assert verdicts(layers.VOLUME_STAYS_SMOOTH, {"few": 5}, **runs) == (R, C)


def by_bumps(last_products):
    """Networks with 0, 9 and 99 bumps, by the product share of their last hidden layer."""
    return [
        run(
            numbers={"tuning.weighted_product": [0, 0, product, 9]},
            config=SimpleNamespace(task=SimpleNamespace(support=SimpleNamespace(samples=bumps))),
        )
        for bumps, product in zip((0, 9, 99), last_products, strict=True)
    ]


@pytest.mark.parametrize(
    ("one_factor", "product", "alone", "sharper", "expected"),
    [
        ((0.8, 0.5, 0.2), (0.1, 0.3, 0.6), (0.2, 0.2), (0.1, 0.2, 0.6), (R, R)),
        ((0.8, 0.7, 0.6), (0.1, 0.15, 0.2), (0.0, 0.0), (0.1, 0.2, 0.6), (R, C)),  # as untrained
        ((0.8, 0.5, 0.2), (0.1, 0.3, 0.6), (0.8, 0.2), (0.1, 0.2, 0.6), (R, C)),  # as bumps alone
        ((0.8, 0.5, 0.2), (0.1, 0.3, 0.6), (0.2, 0.2), (0.7, 0.8, 0.6), (C, C)),  # no sharper
        ((0.8, 0.8, 0.9), (0.1, 0.1, 0.0), (0.2, 0.2), (0.1, 0.2, 0.6), (C, C)),  # stripes stay
        ((0.2, 0.2, 0.1), (0.7, 0.6, 0.5), (0.2, 0.2), (0.1, 0.2, 0.6), (C, C)),  # fewer bumps
    ],
)
def test_units_must_turn_from_stripes_to_bumps(one_factor, product, alone, sharper, expected):
    numbers = {
        "tuning.weighted_one_factor": (1, *one_factor, 0),
        "tuning.weighted_product": (0, *product, 1),
        "untrained.tuning.weighted_one_factor": (1, 0.9, 0.7, 0.5, 0),
        "untrained.tuning.weighted_product": (0, 0.1, 0.2, 0.3, 1),
    }
    falls, rises = alone
    of_bumps = {
        "tuning.weighted_one_factor": (1, 0.9, 0.9 - falls, 0),
        "tuning.weighted_product": (0, 0.1, 0.1 + rises, 1),
    }
    row = judged(
        layers.UNITS_TURN_FROM_STRIPES_TO_BUMPS,
        {"few": 5},
        net=run(numbers=numbers),
        by_bumps=by_bumps(sharper),
        alone=run(numbers=of_bumps),
    )
    assert (row["as_stated"]["verdict"], row["stricter"]["verdict"]) == expected
    assert row["as_stated"]["measured"] == pytest.approx(one_factor[-1] - one_factor[0], abs=0.01)
    # 0, 1 and 2 decades of bumps
    slope = list(row["as_stated"]["conditions"].values())[-1]["value"]
    assert slope == pytest.approx((sharper[2] - sharper[0]) / 2, abs=0.01)
