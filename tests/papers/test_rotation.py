"""C14 and K6: quantities of what is drawn in a gap of angles beside loops."""

from functools import cache

import jax
import numpy as np
import pytest

from compgen_jax.metrics import circle
from compgen_jax.papers.forced_rendering import rotation_claims
from compgen_jax.runs import results
from compgen_jax.tasks.rotation import GapConfig, Rotation
from tests.papers.criteria import known_turns
from tests.papers.decoders import is_rendered

ANGLES, SIDE = 72, 16  # 5 degrees apart; the gap is 160 to 195
PLACES = (np.arange(160, 200, 5) - 155) / 45


@cache
def score(objects):
    """Of a task of these objects, of which the first has a gap."""
    gap = GapConfig(of=objects[:1] if len(objects) > 1 else ())
    return results.scorer(Rotation(side=SIDE, angles=ANGLES, objects=objects, gap=gap).make())


@cache
def true(objects=(4, 7)):
    return score(objects)(np.zeros((1, ANGLES * len(objects), SIDE, SIDE), np.float32))


@cache
def known(name, objects=(4, 7)):
    with jax.numpy_rank_promotion("allow"):
        return known_turns.turned(score(objects), ANGLES * len(objects), SIDE)[name]


def test_known_maps_draw_what_they_say():
    cells = true()
    factors = cells.factors.tolist()
    at = {tuple(cell): image for cell, image in zip(factors, cells.truths, strict=True)}
    label, other = cells.factors[0, 1], cells.factors[-1, 1]
    assert cells.factors[cells.held_out, 0].tolist() == list(range(160, 200, 5))
    drawn = known_turns.images(cells)
    for name, images in drawn.items():
        np.testing.assert_array_equal(images[~cells.held_out], cells.truths[~cells.held_out], name)
    before, after = at[155.0, label], at[200.0, label]
    for index, share in zip(np.flatnonzero(cells.held_out), PLACES, strict=True):
        angle, (near, far) = factors[index][0], (before, after)[:: 1 if share < 0.5 else -1]
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


def test_mixing_of_what_is_known():
    cells = true((4,))
    (gap,) = circle.gaps(cells.factors, cells.held_out)
    before, after = (cells.truths[edge].astype(np.float64) for edge in gap.edges)
    signals = np.stack([cells.truths, cells.truths]).astype(np.float64)
    signals[0, gap.cells] = 0.6 * before + 0.2 * after
    found = rotation_claims.mixing(score((4,))(signals))
    np.testing.assert_allclose(found.residual, [0, found.true_residual], atol=1e-9)
    assert found.share[0] == pytest.approx(0.25)
    assert found.ideal_share == pytest.approx(np.mean([1, 2, 3, 4, 4, 3, 2, 1]) / 9)
    faded = [(1 - p) * before + p * after for p in PLACES]
    asked = cells.truths[gap.cells]
    assert found.to_truth[1] == 0
    assert found.to_mixture[1] == pytest.approx(np.square(asked - faded).mean())
    expected = np.square(0.6 * before + 0.2 * after - asked).mean()
    assert found.to_truth[0] == pytest.approx(expected)
    edges = np.stack([before.ravel(), after.ravel()], axis=1)
    expected = outside(edges, asked.reshape(len(asked), -1).astype(np.float64))
    assert found.true_residual == pytest.approx(expected)


def outside(edges_Px2, images_QxP):
    """The mean share of squared norms that is outside the span of two images."""
    left = [np.linalg.lstsq(edges_Px2, image, rcond=None)[1][0] for image in images_QxP]
    return np.mean(left / np.square(images_QxP).sum(axis=1))


def test_logits_of_the_gap_are_compared_with_those_at_id_angles():
    """Against lstsq, window by window: 5 degrees apart, the gap's edges are 155 and 200."""
    cells = known("mixed logits", (4,)).cells
    drawn = np.clip(cells.predictions.astype(np.float64), 0.01, 0.99)
    logits = np.log(drawn / (1 - drawn)).reshape(len(drawn), ANGLES, -1)
    angle = {a: i for i, a in enumerate(cells.factors[:, 0].tolist())}

    def of_window(images, start):
        path = images[[angle[a % 360] for a in range(start, start + 50, 5)]]
        return outside(path[[0, -1]].T, path[1:-1])

    # seven windows of 45 degrees fill the circle, the last from 470 to 515
    expected = [
        of_window(of_seed, 155) / np.mean([of_window(of_seed, s) for s in range(200, 515, 45)])
        for of_seed in logits
    ]
    np.testing.assert_allclose(rotation_claims.logit_residual(cells), expected, rtol=1e-6)


def test_trivial_shares_are_those_of_the_known_maps(monkeypatch):
    """Also what is drawn in the gap, as its mean square: a share may be 0 for many images."""
    shares = rotation_claims.trivial_shares(known("true").cells)
    assert rotation_claims.rendered_in_gap(known("true").cells).tolist() == [1, 1, 1]
    cells = true()
    (gap,) = circle.gaps(cells.factors, cells.held_out)
    square = lambda results, images: np.square(images[:, gap.cells]).mean(axis=(1, 2, 3))
    monkeypatch.setattr(rotation_claims, "rendered_in_gap", square)
    squares = rotation_claims.trivial_shares(cells)
    maps = {"blank": "blank", "mean seen": "best constant", "nearer edge": "nearest edge",
            "cross-fade": "mixture", "other": "another object"}  # fmt: skip
    for name, share in shares.items():
        drawn = known_turns.images(cells)[maps[name]]
        assert squares[name] == pytest.approx(np.square(drawn[gap.cells]).mean(), rel=1e-5), name
        by_hand = []
        for cell, place in zip(gap.cells, gap.place, strict=True):
            nearest = cells.truths[gap.edges[int(place > 0.5)]]
            by_hand.append(is_rendered(drawn[cell], cells.truths[cell], nearest))
        assert share == pytest.approx(np.mean(by_hand)), name
