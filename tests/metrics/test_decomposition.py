import numpy as np
import pytest

from compgen_jax.metrics import decomposition as dec
from compgen_jax.metrics.kernels import gram
from tests.metrics.test_kernels import N

SQUARE, THREE = (N, N), (2, 3, 4)


def test_rank_and_entropy_in_closed_form():
    values = np.array([4.0, 3.0, 0.0])
    assert dec.rank(values) == 2 and dec.rank(np.zeros(3)) == 0
    assert np.exp(dec.entropy(np.ones(7))) == pytest.approx(7)
    shares = np.array([0.64, 0.36])
    assert dec.entropy(values) == pytest.approx(-np.sum(shares * np.log(shares)))


def test_hoeffding_share_in_closed_form(rng):
    """Memorization d_xx' d_yy' leaves 2/N - 1/N^2 to lower orders; a product of three kernels its
    squared mean and three variances of the means of single ones."""
    assert dec.hoeffding_share(np.eye(N * N), SQUARE) == pytest.approx(2 / N - 1 / N**2)
    a, b, c = (gram(rng.normal(size=(size, 3))) for size in THREE)
    product = np.kron(np.kron(c, b), a)
    means, variances = np.array([[k.mean(), k.var()] for k in (a, b, c)]).T
    lower = np.prod(means**2) * (1 + np.sum(variances / means**2))
    assert dec.hoeffding_share(product, THREE) == pytest.approx(lower / np.mean(product**2))


@pytest.mark.parametrize("factor", range(3))
def test_operator_schmidt_of_one_factor_against_the_others(factor):
    """Rows are pairs of values of the factor, columns pairs of values of the others."""
    kernel = gram(np.random.default_rng(1).normal(size=(24, 5)))
    pairs = np.moveaxis(kernel.reshape(4, 3, 2, 4, 3, 2), [2 - factor, 5 - factor], [0, 1])
    expected = np.linalg.svd(pairs.reshape(THREE[factor] ** 2, -1), compute_uv=False)
    found = dec.operator_schmidt(kernel, THREE, factor)
    np.testing.assert_allclose(found, expected, atol=1e-12)
