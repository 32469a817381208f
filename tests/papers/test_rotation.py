"""C14 and K6 on maps from angles to images whose answer is known."""

from functools import cache

import jax
import numpy as np
import pytest

from compgen_jax.metrics import circle
from compgen_jax.papers.forced_rendering import known_turns, rotation
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.tasks.rotation import GapConfig, Rotation
from tests.papers.decoders import judged

ANGLES, SIDE = 72, 16  # 5 degrees apart; the gap is 160 to 195


@cache
def score(objects):
    """Of a task of these objects, of which the first has a gap."""
    gap = GapConfig(of=objects[:1] if len(objects) > 1 else ())
    return results.scorer(Rotation(side=SIDE, angles=ANGLES, objects=objects, gap=gap).make())


@cache
def true(objects=(4, 7)):
    return score(objects)(np.zeros((1, ANGLES * len(objects), SIDE, SIDE), np.float32))


@cache
def turns(objects):
    with jax.numpy_rank_promotion("allow"):
        return known_turns.turned(score(objects), ANGLES * len(objects), SIDE)


def known(name, objects=(4, 7)):
    return turns(objects)[name]


def test_known_maps_draw_what_they_say():
    cells = true()
    at = {
        tuple(cell): image for cell, image in zip(cells.factors.tolist(), cells.truths, strict=True)
    }
    label, other = cells.factors[0, 1], cells.factors[-1, 1]
    angles = cells.factors[cells.held_out, 0]
    assert angles.tolist() == list(range(160, 200, 5))
    drawn = {name: known_turns.images(name, cells) for name in known_turns.TURNS}
    for name, images in drawn.items():
        np.testing.assert_array_equal(images[~cells.held_out], cells.truths[~cells.held_out], name)
    before, after = at[155.0, label], at[200.0, label]
    for index, angle in zip(np.flatnonzero(cells.held_out), angles, strict=True):
        share = (angle - 155) / 45
        near, far = (before, after) if share < 0.5 else (after, before)
        halfway = (angle + 155) / 2 if share < 0.5 else (angle + 200) / 2
        expected = {
            "mixture": (1 - share) * before + share * after,
            "halves": (before + after) / 2,
            "true": at[angle, label],
            "nearest edge": near,
            "beyond": 1.5 * near - 0.5 * far,
            "brighter": np.maximum(before, after),
            "best constant": cells.truths[~cells.held_out].mean(axis=0),
            "another object": at[angle, other],
            "blank": 0 * near,
        }
        for name, image in expected.items():
            np.testing.assert_allclose(drawn[name][index], image, atol=1e-6, err_msg=name)
        errors = [np.abs(drawn["lagging"][index] - at[a, label]).max() for a in
                  5 * np.array([np.floor(halfway / 5), np.ceil(halfway / 5)])]  # fmt: skip
        assert min(errors) < 1e-6
    noise = drawn["noise"][cells.held_out]
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.3
    assert turns((4,)).keys() == drawn.keys() - {"another object"}


def test_mixing_of_what_is_known():
    cells = true((4,))
    (gap,) = circle.gaps(cells.factors, cells.held_out)
    before, after = (cells.truths[edge].astype(np.float64) for edge in gap.edges)
    signals = np.stack([cells.truths, cells.truths]).astype(np.float64)
    signals[0, gap.cells] = 0.6 * before + 0.2 * after
    found = rotation.mixing(score((4,))(signals))
    np.testing.assert_allclose(found.residual, [0, found.true_residual], atol=1e-9)
    assert found.share[0] == pytest.approx(0.25) and found.weight[0] == pytest.approx(0.8)
    assert found.ideal_share == pytest.approx(np.mean([1, 2, 3, 4, 4, 3, 2, 1]) / 9)
    faded = [(1 - p) * before + p * after for p in (np.arange(160, 200, 5) - 155) / 45]
    asked = cells.truths[gap.cells]
    assert found.to_truth[1] == 0
    assert found.to_mixture[1] == pytest.approx(np.square(asked - faded).mean())
    expected = np.square(0.6 * before + 0.2 * after - asked).mean()
    assert found.to_truth[0] == pytest.approx(expected)
    shares = []
    for image in asked.reshape(len(asked), -1).astype(np.float64):
        edges = np.stack([before.ravel(), after.ravel()], axis=1)
        left = np.linalg.lstsq(edges, image, rcond=None)[1][0]
        shares.append(left / (image @ image))
    assert found.true_residual == pytest.approx(np.mean(shares))


def test_logits_of_the_gap_are_compared_with_those_at_id_angles():
    """Against lstsq, window by window: 5 degrees apart, the gap's edges are 155 and 200."""
    cells = known("mixed logits", (4,)).cells
    drawn = np.clip(cells.predictions.astype(np.float64), 0.01, 0.99)
    logits = np.log(drawn / (1 - drawn)).reshape(len(drawn), ANGLES, -1)
    angle = {a: i for i, a in enumerate(cells.factors[:, 0].tolist())}

    def outside(images, start):
        path = [angle[a % 360] for a in range(start, start + 50, 5)]
        edges = images[[path[0], path[-1]]].T
        left = [np.linalg.lstsq(edges, images[i], rcond=None)[1][0] for i in path[1:-1]]
        return [a / np.square(images[i]).sum() for a, i in zip(left, path[1:-1], strict=True)]

    # seven windows of 45 degrees fill the circle, the last from 470 to 515
    expected = [
        np.mean(outside(of_seed, 155))
        / np.mean([outside(of_seed, start) for start in range(200, 515, 45)])
        for of_seed in logits
    ]
    np.testing.assert_allclose(rotation.logit_residual(cells), expected, rtol=1e-6)


def test_a_network_that_does_not_render_id_angles_decides_nothing():
    mixture = known("mixture")
    seen = np.flatnonzero(~mixture.cells.held_out)
    for share, verdict in ((0.04, "reproduced"), (0.06, "inconclusive")):
        drawn = mixture.cells.predictions.copy()
        drawn[:, seen[: round(share * len(seen))]] = 0
        several = Run.known(mixture.seeds, score((4, 7))(drawn))
        row = judged(rotation.mixes_edges_beside_other_objects, several=several)
        assert row["verdict"] == verdict
    assert row["reason"].startswith("not trained: share rendered ID, others seen there")


def test_networks_of_several_checkpoints_count_as_their_median():
    true, mixture = (known(name).cells.predictions for name in ("true", "mixture"))
    often = score((4, 7))(np.stack([true[:2], mixture[:2], mixture[:2]], axis=1))
    row = judged(rotation.mixes_edges_beside_other_objects, several=Run.known((5, 6), often))
    once = score((4, 7))(mixture[:2])
    alone = judged(rotation.mixes_edges_beside_other_objects, several=Run.known((5, 6), once))
    assert row == alone and row["seeds"] == [5, 6]


def rendered_by_hand(image, truth, nearest):
    """The three parts of `images.rendered`, in float64."""
    image, truth, nearest = (np.asarray(one, np.float64).ravel() for one in (image, truth, nearest))
    if not image.std():
        return False
    r = np.corrcoef(image, truth)[0, 1]
    gain = np.cov(image, truth)[0, 1] / np.var(truth, ddof=1)
    return r > 0 and r**2 >= 0.75 and 0.5 <= gain <= 2 and r > np.corrcoef(image, nearest)[0, 1]


def test_trivial_shares_are_those_of_the_known_maps():
    shares = rotation.trivial_shares(known("true").cells)
    cells = true()
    (gap,) = circle.gaps(cells.factors, cells.held_out)
    maps = {"blank": "blank", "mean seen": "best constant", "nearer edge": "nearest edge",
            "cross-fade": "mixture", "other": "another object"}  # fmt: skip
    assert set(shares) == set(maps)
    for name, known_map in maps.items():
        drawn = known_turns.images(known_map, cells)
        by_hand = []
        for cell, place in zip(gap.cells, gap.place, strict=True):
            nearest = cells.truths[gap.edges[int(place > 0.5)]]
            by_hand.append(rendered_by_hand(drawn[cell], cells.truths[cell], nearest))
        assert shares[name] == pytest.approx(np.mean(by_hand)), name
    assert rotation.rendered_in_gap(known("true").cells).tolist() == [1, 1, 1]


def test_others_must_have_been_seen_in_the_gap():
    every = known("mixture").cells
    angle = every.factors[:, 0]
    same = every._replace(held_out=(angle >= 160) & (angle < 200))
    for cells in (known("mixture", (4,)).cells, same):
        several = Run.known((0, 1, 2), cells)
        with pytest.raises(ValueError, match="no other object was seen"):
            judged(rotation.mixes_edges_beside_other_objects, several=several)
