"""C14 and K6: quantities of what is drawn in a gap of angles beside loops."""

import numpy as np
import pytest

from compgen_jax.metrics import circle
from compgen_jax.papers.forced_rendering import rotation_claims
from tests.papers.criteria import known_turns

ANGLES, SIDE = 72, 16  # 5 degrees apart; the gap is 160 to 195
PLACES = (np.arange(160, 200, 5) - 155) / 45


def test_mixing_of_what_is_known():
    score, cells = known_turns.scorer_of((4,), ANGLES, SIDE)
    (gap,) = circle.gaps(cells.factors, cells.held_out)
    before, after = (cells.truths[edge].astype(np.float64) for edge in gap.edges)
    signals = np.stack([cells.truths, cells.truths]).astype(np.float64)
    signals[0, gap.cells] = 0.6 * before + 0.2 * after
    found = rotation_claims.mixing(score(signals))
    np.testing.assert_allclose(found.residual, [0, found.true_residual], atol=1e-9)
    assert found.share[0] == pytest.approx(0.25)
    assert found.ideal_share == pytest.approx(np.mean([1, 2, 3, 4, 4, 3, 2, 1]) / 9)
    faded = [(1 - p) * before + p * after for p in PLACES]
    asked = cells.truths[gap.cells]
    assert found.to_mixture[1] == pytest.approx(np.square(asked - faded).mean())
    expected = np.square(0.6 * before + 0.2 * after - asked).mean()
    assert found.to_truth == pytest.approx([expected, 0])
    edges = np.stack([before.ravel(), after.ravel()], axis=1)
    expected = outside(edges, asked.reshape(len(asked), -1).astype(np.float64))
    assert found.true_residual == pytest.approx(expected)


def outside(edges_Px2, images_QxP):
    """The mean share of squared norms that is outside the span of two images."""
    left = [np.linalg.lstsq(edges_Px2, image, rcond=None)[1][0] for image in images_QxP]
    return np.mean(left / np.square(images_QxP).sum(axis=1))


def test_logits_of_the_gap_are_compared_with_those_at_id_angles():
    """Against lstsq, window by window: 5 degrees apart, the gap's edges are 155 and 200."""
    cells = known_turns.turned((4,), ANGLES, SIDE)["mixed-logits"].cells
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


def test_trivial_predictors_draw_what_they_say(monkeypatch):
    """By the mean square over the gap: a share may be 0 for many images."""
    _, cells = known_turns.scorer_of((4, 7), ANGLES, SIDE)
    at = dict(zip(map(tuple, cells.factors.tolist()), cells.truths, strict=True))
    label, other = cells.factors[0, 1], cells.factors[-1, 1]
    before, after = at[155, label], at[200, label]
    mean = cells.truths[~cells.held_out].mean(axis=0)
    drawn = {
        "blank": 0 * mean,
        "mean seen": mean,
        "nearer edge": [before] * 4 + [after] * 4,
        "cross-fade": [(1 - place) * before + place * after for place in PLACES],
        "other": [at[angle, other] for angle in range(160, 200, 5)],
    }
    true = known_turns.turned((4, 7), ANGLES, SIDE)["true"].cells
    assert rotation_claims.rendered_in_gap(true).tolist() == [1, 1, 1]
    (gap,) = circle.gaps(cells.factors, cells.held_out)
    square = lambda results, images: np.square(images[:, gap.cells]).mean(axis=(1, 2, 3))
    monkeypatch.setattr(rotation_claims, "rendered_in_gap", square)
    expected = {
        name: pytest.approx(np.square(each).mean(), rel=1e-5) for name, each in drawn.items()
    }
    assert rotation_claims.trivial_shares(cells) == expected
