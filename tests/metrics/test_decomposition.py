import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import decomposition as dec
from compgen_jax.metrics.kernels import gram
from tests.metrics.test_kernels import BUMPS, CELLS, HOLE, PROFILES, N

SQUARE, THREE = (N, N), (2, 3, 4)


def test_epsilon_rank_and_entropy_in_closed_form():
    values = np.array([3.0, 4.0, 0.0])[[1, 0, 2]]  # tails 1, 9/25, 0
    assert [dec.epsilon_rank(values, e) for e in (0.61, 0.59, 1e-9, 1.0)] == [1, 2, 2, 0]
    assert dec.epsilon_rank(np.zeros(3), 0.1) == dec.rank(np.zeros(3)) == 0
    assert np.exp(dec.entropy(np.ones(7))) == pytest.approx(7)
    shares = np.array([0.64, 0.36])
    assert dec.entropy(values) == pytest.approx(-np.sum(shares * np.log(shares)))


def test_hoeffding_share_in_closed_form():
    """Memorization d_xx' d_yy' leaves 2/N - 1/N^2 to lower orders; a product of three kernels its
    squared mean and three variances of the means of single ones."""
    assert dec.hoeffding_share(np.eye(N * N), SQUARE) == pytest.approx(2 / N - 1 / N**2)
    rng = np.random.default_rng(0)
    a, b, c = (gram(rng.normal(size=(size, 3))) for size in THREE)
    product = np.kron(np.kron(c, b), a)
    means, variances = np.array([[k.mean(), k.var()] for k in (a, b, c)]).T
    lower = np.prod(means**2) * (1 + np.sum(variances / means**2))
    assert dec.hoeffding_share(product, THREE) == pytest.approx(lower / np.mean(product**2))


def test_target_ranks():
    x, y = CELLS.T
    plus = PROFILES[y][:, :, None] + PROFILES[x][:, None, :]
    ranks = [dec.target_rank(s, SQUARE) for s in (BUMPS, 1 - BUMPS, plus, 0 * BUMPS)]
    assert ranks == [(1, 1), (2, 1), (2, 2), (0, 0)]
    a, b, c = grids.indices(THREE).T + 1.0
    signals = np.stack([a * b * c, a + b * c, (a == b) * c, a * (b == c)], axis=1)
    for factor, expected in enumerate(([1, 2, 2, 1], [1, 2, 2, 3], [1, 2, 1, 3])):
        assert [dec.target_rank(one, THREE, factor)[0] for one in signals.T] == expected


def test_distribution_ranks_of_a_donut_and_a_diagonal():
    law = ~HOLE.reshape(N, N) * 1.0
    found = dec.distribution_rank(5 * law, max_rank=2)
    law /= law.sum()
    marginals = np.outer(law.sum(axis=1), law.sum(axis=0))
    mutual = np.sum(law[law > 0] * np.log(law[law > 0] / marginals[law > 0]))
    assert found[0] == pytest.approx(mutual) and found[1] < 1e-9
    # of a diagonal law k products cover k of N cells; the rest are best merged
    found = dec.distribution_rank(np.eye(4), max_rank=4, steps=500)
    np.testing.assert_allclose(found, [np.log(4), np.log(2), np.log(2) / 2, 0], atol=1e-6)


@pytest.mark.parametrize("factor", range(3))
def test_operator_schmidt_of_one_factor_against_the_others(factor):
    """Rows are pairs of values of the factor, columns pairs of values of the others."""
    kernel = gram(np.random.default_rng(1).normal(size=(24, 5)))
    pairs = np.moveaxis(kernel.reshape(4, 3, 2, 4, 3, 2), [2 - factor, 5 - factor], [0, 1])
    expected = np.linalg.svd(pairs.reshape(THREE[factor] ** 2, -1), compute_uv=False)
    found = dec.operator_schmidt(kernel, THREE, factor)
    np.testing.assert_allclose(found, expected, atol=1e-12)
