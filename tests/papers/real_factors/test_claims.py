"""Known answers for real factors do what they say, and quantities are those of closed forms."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.studies.real_factors import known
from compgen_jax.studies.real_factors import real_factors_claims as claims
from compgen_jax.tasks import marginals
from compgen_jax.tasks.task import Factor


def test_known_answers_draw_what_they_say():
    config = known.sprites("range")
    names = ("truth", "half a step", "wrong label", "nearest", "superposition", "composer 0.7")
    drawn, task = known.answers(config, names), config.task.make()
    points = task.points
    ood = (points[:, 0] == 1) & (points[:, 3] > 0.5)
    truths = drawn["truth"]
    for images in drawn.values():
        np.testing.assert_array_equal(images[~ood], truths[~ood])
    # of all pictures the mean place of the light is half a step further right
    across = lambda images: (images @ np.arange(32.0)).sum(axis=1) / images.sum(axis=(1, 2))
    moved = across(drawn["half a step"]) - across(truths)
    # half the canvas is 16 pixels in 11 steps
    np.testing.assert_allclose(moved[ood], 16 / 11 / 2, atol=0.15)
    # the shape that the square follows, in the order of labels, is the heart: of less area
    assert (drawn["wrong label"][ood].sum(axis=(1, 2)) < truths[ood].sum(axis=(1, 2))).all()
    right = (drawn["composer 0.7"] == truths).all(axis=(1, 2))[ood]
    assert right.mean() == pytest.approx(0.7, abs=0.01)
    assert not (drawn["nearest"] == truths).all(axis=(1, 2))[ood].any()


def test_rank_correlation_takes_out_a_third_quantity():
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    assert claims.rank_correlation(a, np.exp(a)) == pytest.approx(1)
    assert claims.rank_correlation(a, -a) == pytest.approx(-1)
    # the closed form of a partial correlation, of ranks
    b, c = a + rng.normal(size=400), rng.normal(size=400) + a
    ranks = np.argsort(np.argsort([a, b, c], axis=1), axis=1)
    (_, ab, ac), (_, _, bc), _ = np.corrcoef(ranks)
    expected = (ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2))
    assert claims.rank_correlation(a, b, c) == pytest.approx(expected, abs=1e-9)
    assert claims.rank_correlation(a, b, np.ones(400)) == pytest.approx(ab)
    assert claims.rank_correlation(a, a, a) == 0
    assert np.isnan(claims.rank_correlation(a, np.ones(400)))


def test_main_effects_of_a_pair_are_those_at_fixed_values_of_the_others():
    """Of a sum all, of a product of binary profiles of duty m 2m / (1 + m), whatever a third factor
    adds or scales."""
    factors = [Factor(name, np.arange(4.0)) for name in "abc"]
    on = lambda value: jnp.float32(value < 1)  # duty 1/4

    def picture(point):
        a, b, c = point
        return jnp.stack([on(a) * on(b), on(a) * on(b) * c, 10 * c])

    shares = marginals.main_effects_of_pairs(picture, factors)
    assert shares["a", "b"] == pytest.approx(0.4)
    # at a fixed b, a and c: pixel 2 is a product where b is on, c itself nowhere interacts
    assert shares["a", "c"] == pytest.approx(shares["b", "c"]) and shares["b", "c"] > 0.9
    summed = marginals.main_effects_of_pairs(lambda point: point[:1] + point[1:2], factors)
    assert summed["a", "b"] == pytest.approx(1)
    assert summed["a", "c"] == pytest.approx(1)


def test_the_worst_network_must_have_learnt_shapes():
    def network(rendered, r2):
        scores = {
            "rendered": np.ones((2, 3)) * rendered,
            "image_r2": np.array(r2) * np.ones((2, 3)),
        }
        cells = SimpleNamespace(held_out=np.array([False, False, True]), scores=scores)
        return SimpleNamespace(late=SimpleNamespace(cells=cells))

    # the mean of two ID images is their median
    good, worse = network(1, [0.9, 1, 0]), network(0.9, [0.9, 0.92, 1])
    shares, r2 = claims._learnt(good, worse)
    assert shares.values.tolist() == [0.9, 0.9]
    np.testing.assert_allclose(r2.values, 0.91)
    del worse.late.cells.scores["image_r2"]
    assert list(claims._learnt(good, worse))[1].values["undecided_because"]
