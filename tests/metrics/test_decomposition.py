import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import decomposition as dec
from compgen_jax.metrics.kernels import binary, gram
from tests.metrics.test_kernels import (
    CELLS,
    HIGH,
    HOLE,
    LOW,
    PROFILES,
    N,
    known_map,
)

UNIT_KERNEL = PROFILES @ PROFILES.T  # of the bump code's half
SQUARE = (N, N)
HOLE_SIZES = (HIGH - LOW + 1,) * 2


def test_epsilon_rank_and_entropy_in_closed_form():
    values = np.array([3.0, 4.0, 0.0])[[1, 0, 2]]  # tails 1, 9/25, 0
    assert [dec.epsilon_rank(values, e) for e in (0.61, 0.59, 1e-9, 1.0)] == [1, 2, 2, 0]
    assert dec.epsilon_rank(np.zeros(3), 0.1) == dec.rank(np.zeros(3)) == 0
    assert dec.entropy(np.array([5.0, 0.0])) == 0
    assert np.exp(dec.entropy(np.ones(7))) == pytest.approx(7)
    shares = np.array([0.64, 0.36])
    assert dec.entropy(values) == pytest.approx(-np.sum(shares * np.log(shares)))


def test_hoeffding_share_in_closed_form():
    """Memorization d_xx' d_yy' leaves 2/N - 1/N^2 to lower orders; sums leave all."""
    assert dec.hoeffding_share(np.eye(N * N), SQUARE) == pytest.approx(2 / N - 1 / N**2)
    assert dec.hoeffding_share(binary(CELLS), SQUARE) == pytest.approx(1)
    one = np.ones((N, N))
    additive = np.kron(UNIT_KERNEL, one) + np.kron(one, UNIT_KERNEL)
    assert dec.hoeffding_share(additive, SQUARE) == pytest.approx(1)
    # K = k_a k_b k_c: the squared mean and three variances of the means of single kernels
    kernels = kernels_of_three()
    product = np.kron(np.kron(kernels[2], kernels[1]), kernels[0])
    means, variances = np.array([[k.mean(), k.var()] for k in kernels]).T
    lower = np.prod(means**2) * (1 + np.sum(variances / means**2))
    assert dec.hoeffding_share(product, THREE) == pytest.approx(lower / np.mean(product**2))


def test_target_rank_of_bumps_and_pluses():
    bump, plus = known_map("bump"), known_map("plus")
    ranks = [dec.target_rank(s, SQUARE) for s in (bump, 1 - bump, plus, 0 * bump)]
    assert ranks == [(1, 1), (2, 1), (2, 2), (0, 0)]
    assert dec.target_rank(known_map("noise"), SQUARE)[0] == N


def test_distribution_rank_of_a_product_and_a_donut():
    p, q = np.array([0.1, 0.2, 0.7]), np.array([0.4, 0.4, 0.1, 0.1])
    np.testing.assert_allclose(dec.distribution_rank(np.outer(p, q), 1), 0, atol=1e-12)
    law = ~HOLE.reshape(N, N) * 1.0
    found = dec.distribution_rank(5 * law, max_rank=2)
    law /= law.sum()
    marginals = np.outer(law.sum(axis=1), law.sum(axis=0))
    mutual = np.sum(law[law > 0] * np.log(law[law > 0] / marginals[law > 0]))
    assert found[0] == pytest.approx(mutual) and found[1] < 1e-9


def test_distribution_rank_of_a_diagonal_law():
    """k products cover k of N cells; the rest are best merged, log of the merged share in KL."""
    found = dec.distribution_rank(np.eye(4), max_rank=4, steps=500)
    np.testing.assert_allclose(found, [np.log(4), np.log(2), np.log(2) / 2, 0], atol=1e-6)


THREE = (2, 3, 4)


def kernels_of_three(seed=0):
    """A kernel of each factor of the grid THREE."""
    rng = np.random.default_rng(seed)
    return [gram(rng.normal(size=(size, 3))) for size in THREE]


def paired(kernel_BxB, sizes, factor):
    """By loops: rows are pairs of values of the factor, columns pairs of values of the others."""
    cells = [tuple(cell) for cell in grids.indices(sizes)]
    rest = lambda cell: cell[:factor] + cell[factor + 1 :]
    others = sorted({rest(cell) for cell in cells})
    found = np.zeros((sizes[factor] ** 2, len(others) ** 2))
    for i, a in enumerate(cells):
        for j, b in enumerate(cells):
            row = a[factor] * sizes[factor] + b[factor]
            column = others.index(rest(a)) * len(others) + others.index(rest(b))
            found[row, column] = kernel_BxB[i, j]
    return found


@pytest.mark.parametrize("factor", range(3))
def test_operator_schmidt_of_one_factor_against_the_others(factor):
    kernel = gram(np.random.default_rng(1).normal(size=(24, 5)))
    expected = np.linalg.svd(paired(kernel, THREE, factor), compute_uv=False)
    found = dec.operator_schmidt(kernel, THREE, factor)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_products_and_sums_of_three_factors():
    a, b, c = kernels_of_three()
    product = np.kron(np.kron(c, b), a)
    ones = [np.ones_like(k) for k in (a, b, c)]
    only_a = np.kron(np.kron(ones[2], ones[1]), a)
    pair = np.kron(np.kron(ones[2], b), a) + np.kron(np.kron(c, ones[1]), ones[0])
    ranks = lambda kernel: [
        dec.rank(dec.operator_schmidt(kernel, THREE, f), 1e-9) for f in range(3)
    ]
    assert ranks(product) == ranks(only_a) == [1, 1, 1]
    assert ranks(product + only_a) == [1, 2, 2]  # a (b c + 1)
    assert ranks(pair) == [2, 2, 2]  # a b + c
    assert ranks(np.kron(np.kron(ones[2], b), a) + only_a) == [1, 1, 1]  # a (b + 1)


def test_target_rank_of_three_factors():
    a, b, c = grids.indices(THREE).T + 1.0
    signals = np.stack([a * b * c, a + b * c, (a == b) * c, a * (b == c)], axis=1)
    for factor, expected in enumerate(([1, 2, 2, 1], [1, 2, 2, 3], [1, 2, 1, 3])):
        assert [dec.target_rank(one, THREE, factor)[0] for one in signals.T] == expected
