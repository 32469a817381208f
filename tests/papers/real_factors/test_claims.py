"""Quantities of real factors are those of closed forms."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from compgen_jax.studies.real_factors import real_factors_claims as claims
from compgen_jax.tasks import marginals
from compgen_jax.tasks.task import Factor


def test_rank_correlation_takes_out_a_third_quantity():
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    # of what is left of ranks after a regression on those of the third
    b, c = a + rng.normal(size=400), rng.normal(size=400) + a
    of_a, of_b, of_c = stats.rankdata([a, b, c], axis=1)
    left = [of - np.polyval(np.polyfit(of_c, of, 1), of_c) for of in (of_a, of_b)]
    expected = np.corrcoef(left)[0, 1]
    assert claims.rank_correlation(a, b, c) == pytest.approx(expected, abs=1e-9)
    expected = stats.spearmanr(a, b).statistic
    assert claims.rank_correlation(a, b, np.ones(400)) == pytest.approx(expected)
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

    shares = marginals.main_effects_shares(picture, factors, 2)
    assert shares["a", "b"] == pytest.approx(0.4)
    # at a fixed b, a and c: pixel 2 is a product where b is on, c itself nowhere interacts
    assert shares["a", "c"] == pytest.approx(shares["b", "c"]) and shares["b", "c"] > 0.9
    summed = marginals.main_effects_shares(lambda point: point[:1] + point[1:2], factors, 2)
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
    shares, r2 = claims.all_learnt(good, worse)
    assert shares.values.tolist() == [0.9, 0.9]
    np.testing.assert_allclose(r2.values, 0.91)
    del worse.late.cells.scores["image_r2"]
    assert np.isnan(list(claims.all_learnt(good, worse))[1].values).all()
