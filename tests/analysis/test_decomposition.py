import sys

import numpy as np
import pytest

from compgen_jax.analysis import decomposition as dec
from compgen_jax.analysis.kernels import BLOCK, binary, gram
from tests.analysis.test_kernels import CELLS, HOLE, PROFILES, N, flat, known_map, rotated

UNIT_KERNEL = PROFILES @ PROFILES.T  # of the bump code's half


def gram_of(name):
    return gram(flat(known_map(name)))


def test_anova_shares_of_known_units():
    x, y = np.meshgrid(np.arange(4.0), np.arange(4.0))
    saddle = (x - 1.5) * (y - 1.5)  # pure interaction, variance 1.25^2
    maps = np.stack([x, 3 * y + 7, saddle, x + saddle, np.full_like(x, 0.1), x * y], axis=-1)
    shares = dec.anova_shares(maps.astype(np.float32))
    np.testing.assert_array_equal(shares.varies, [1, 1, 1, 1, 0, 1])
    # x y = saddle + 1.5 x + 1.5 y + constant: variances 1.5625, 2.25 * 1.25 twice
    expected_x = [1, 0, 0, 1.25 / 2.8125, np.nan, 2.8125 / 7.1875]
    expected_y = [0, 1, 0, 0, np.nan, 2.8125 / 7.1875]
    np.testing.assert_allclose(shares.x, expected_x, atol=1e-6)
    np.testing.assert_allclose(shares.y, expected_y, atol=1e-6)
    np.testing.assert_allclose(shares.interaction, 1 - shares.x - shares.y, atol=1e-12)
    np.testing.assert_allclose(shares.variance, maps.var(axis=(0, 1)), rtol=1e-6, atol=1e-12)


def test_anova_shares_sum_to_1_over_blocks_of_units():
    maps = np.random.default_rng(0).normal(size=(3, 3, BLOCK + 5)).astype(np.float32)
    shares = dec.anova_shares(maps)
    np.testing.assert_allclose(shares.x + shares.y + shares.interaction, 1)
    alone = dec.anova_shares(maps[..., -2:])
    np.testing.assert_allclose(shares.x[-2:], alone.x)
    for bad in (np.ones((3, 4, 2)), np.ones((3, 3)), np.ones((1, 1, 2))):
        with pytest.raises(ValueError, match="maps must be"):
            dec.anova_shares(bad)


def test_kernel_anova_against_projections_and_units():
    features = np.random.default_rng(0).normal(size=(25, 40)) + np.linspace(0, 2, 25)[:, None]
    kernel, found = gram(features), dec.kernel_anova(gram(features))
    mean, rest = np.full((5, 5), 1 / 5), np.eye(5) - 1 / 5
    pairs = ((mean, mean), (mean, rest), (rest, mean), (rest, rest))  # (over y, over x)
    traces = [np.trace(np.kron(*pair) @ kernel @ np.kron(*pair)) for pair in pairs]
    np.testing.assert_allclose(found, np.array(traces) / np.trace(kernel))
    units = dec.anova_shares(features.reshape(5, 5, 40))
    weighted = [np.sum(share * units.variance) for share in (units.x, units.y, units.interaction)]
    np.testing.assert_allclose(
        np.array(found[1:]) / sum(found[1:]), np.array(weighted) / units.variance.sum()
    )
    assert found.y > 2 * found.x  # the trend runs along y, the outer axis


def test_operator_schmidt_pairs_the_coordinates():
    """k_x and k_y differ, so that a wrong reshape shows."""
    k_x, k_y = gram(np.random.default_rng(0).normal(size=(2, 3, 3)).reshape(6, 3)).reshape(2, 3, 6)[
        :, :, :3
    ]
    values = dec.operator_schmidt(np.kron(k_y, k_x))
    assert values[0] == pytest.approx(np.linalg.norm(k_x) * np.linalg.norm(k_y))
    assert dec.rank(values, 1e-9) == 1
    kernel = gram(np.random.default_rng(1).normal(size=(9, 4)))
    pairs = [[kernel[y * 3 + x, w * 3 + z] for y in range(3) for w in range(3)]
             for x in range(3) for z in range(3)]  # fmt: skip
    np.testing.assert_allclose(
        dec.operator_schmidt(kernel), np.linalg.svd(pairs, compute_uv=False), atol=1e-12
    )


@pytest.mark.parametrize(
    ("name", "rank", "rank_in_hole"), [("bump", 1, 1), ("plus", 4, 2), ("lookup", 9, 4)]
)
def test_schmidt_ranks_of_known_maps(name, rank, rank_in_hole):
    features = flat(known_map(name))
    for tolerance in (1e-3, 1e-5, 1e-8):
        assert dec.rank(dec.operator_schmidt(gram(features)), tolerance) == rank
        hole = dec.operator_schmidt(gram(features[HOLE]))
        assert dec.rank(hole, tolerance) == rank_in_hole
    turned = dec.operator_schmidt(gram(rotated(features.astype(np.float64))))
    assert dec.rank(turned) == rank


def test_schmidt_ranks_of_ideal_kernels_and_noise():
    code = np.concatenate([PROFILES[CELLS[:, 0]], PROFILES[CELLS[:, 1]]], axis=1)
    for kernel, expected in (
        (gram(code), 2),
        (binary(CELLS, "sum"), 2),
        (binary(CELLS, "or"), 2),
        (binary(CELLS, "and"), 1),
    ):
        assert dec.rank(dec.operator_schmidt(kernel)) == expected
    assert dec.rank(dec.operator_schmidt(gram_of("noise"))) == N * N


def test_metrics_rank_composition_superposition_lookup_noise():
    values = {name: dec.operator_schmidt(gram_of(name))
              for name in ("bump", "plus", "lookup", "noise")}  # fmt: skip
    terms = [np.exp(dec.entropy(value)) for value in values.values()]
    assert terms[0] == pytest.approx(1) and np.all(np.diff(terms) > [0.05, 0.2, 10])
    in_hole = {name: dec.kernel_anova(gram(flat(known_map(name))[HOLE])) for name in values}
    assert abs(in_hole["plus"].interaction) < 1e-6 and abs(in_hole["lookup"].interaction) < 1e-6
    assert 0.2 < in_hole["bump"].interaction < 0.4 and in_hole["noise"].interaction > 0.6


def test_epsilon_rank_and_entropy_in_closed_form():
    values = np.array([3.0, 4.0, 0.0])[[1, 0, 2]]  # tails 1, 9/25, 0
    assert [dec.epsilon_rank(values, e) for e in (0.61, 0.59, 1e-9, 1.0)] == [1, 2, 2, 0]
    assert dec.epsilon_rank(np.zeros(3), 0.1) == dec.rank(np.zeros(3)) == 0
    assert dec.entropy(np.array([5.0, 0.0])) == 0
    assert np.exp(dec.entropy(np.ones(7))) == pytest.approx(7)
    shares = np.array([0.64, 0.36])
    assert dec.entropy(values) == pytest.approx(-np.sum(shares * np.log(shares)))


def test_explained_fraction_in_closed_form():
    """Memorization d_xx' d_yy': both bases leave 2/N - 1/N^2 to lower orders; sums leave all."""
    memorized, summed = binary(CELLS, "and"), binary(CELLS, "sum")
    for basis in ("hoeffding", "products"):
        assert dec.explained_fraction(memorized, basis) == pytest.approx(2 / N - 1 / N**2)
        assert dec.explained_fraction(summed, basis) == pytest.approx(1)
    assert dec.explained_fraction(memorized, "schmidt") == pytest.approx(1)
    values = dec.operator_schmidt(gram_of("lookup")) ** 2
    expected = values[0] / values.sum()
    assert dec.explained_fraction(gram_of("lookup"), "schmidt") == pytest.approx(expected)
    one = np.ones((N, N))
    additive = np.kron(UNIT_KERNEL, one) + np.kron(one, UNIT_KERNEL)
    assert dec.explained_fraction(additive, "hoeffding") == pytest.approx(1)
    assert dec.explained_fraction(additive, "products") < 0.9  # no sum of coincidences
    with pytest.raises(ValueError, match="'taylor'"):
        dec.explained_fraction(memorized, "taylor")


def test_target_rank_of_bumps_and_pluses():
    bump, plus = known_map("bump"), known_map("plus")
    upright, inverted, sums = (dec.target_rank(s) for s in (bump, 1 - bump, plus))
    assert (upright.rank == 1).all() and (inverted.rank == 2).all() and (sums.rank == 2).all()
    assert (sums.epsilon_rank == 2).all() and (inverted.epsilon_rank == 1).all()
    assert dec.target_rank(known_map("noise")).rank.min() == N
    blank = bump * np.eye(N, dtype=np.float32)
    np.testing.assert_array_equal(dec.target_rank(blank).rank, np.eye(N))


def test_target_rank_is_of_each_pixel_over_the_grid():
    x, y = CELLS.T[:, :, None]
    signals = np.stack([x * y, x + y, (x == y) * 1.0, 0 * x], axis=-1)
    np.testing.assert_array_equal(dec.target_rank(signals).rank, [[1, 2, N, 0]])
    with pytest.raises(ValueError, match="signals must be"):
        dec.target_rank(signals[:-1])


def test_distribution_rank_of_a_product_and_a_donut():
    p, q = np.array([0.1, 0.2, 0.7]), np.array([0.4, 0.4, 0.1, 0.1])
    independent = dec.distribution_rank(np.outer(p, q), max_rank=1)
    np.testing.assert_allclose([independent.kl, independent.total_variation], 0, atol=1e-12)
    law = ~HOLE.reshape(N, N) * 1.0
    found = dec.distribution_rank(5 * law, max_rank=2)
    law /= law.sum()
    marginals = np.outer(law.sum(axis=1), law.sum(axis=0))
    mutual = np.sum(law[law > 0] * np.log(law[law > 0] / marginals[law > 0]))
    assert found.kl[0] == pytest.approx(mutual)
    assert found.total_variation[0] == pytest.approx(np.abs(law - marginals).sum() / 2)
    assert found.kl[1] < 1e-9 and found.total_variation[1] < 1e-6


def test_distribution_rank_of_a_diagonal_law():
    """k products cover k of N cells; the rest are best merged, log of the merged share in KL."""
    found = dec.distribution_rank(np.eye(4), max_rank=4, steps=500)
    np.testing.assert_allclose(found.kl, [np.log(4), np.log(2), np.log(2) / 2, 0], atol=1e-6)
    again = dec.distribution_rank(np.eye(4), max_rank=4, steps=500)
    np.testing.assert_array_equal(found.kl, again.kl)
    for bad in (-np.eye(3), np.zeros((3, 3)), np.full((3, 3), np.nan), np.ones(3)):
        with pytest.raises(ValueError, match="law must be"):
            dec.distribution_rank(bad)


def test_cp_errors_of_three_factors():
    pytest.importorskip("tensorly")
    k, one = UNIT_KERNEL[:3, :3], np.ones((2, 2))
    product = np.kron(np.kron(k, one), k)
    np.testing.assert_allclose(dec.cp_errors(product, (3, 2, 3), max_rank=1), 0, atol=1e-6)
    errors = dec.cp_errors(np.eye(8) + np.ones((8, 8)), (2, 2, 2), max_rank=2)
    assert errors[0] > 0.01 and errors[1] < 1e-6
    two = gram_of("plus")
    values = dec.operator_schmidt(two) ** 2
    expected = np.sqrt(1 - np.cumsum(values)[:2] / values.sum())
    np.testing.assert_allclose(dec.cp_errors(two, (N, N), max_rank=2), expected, atol=1e-4)
    with pytest.raises(ValueError, match="do not make"):
        dec.cp_errors(product, (3, 3, 3), max_rank=1)


def test_cp_errors_without_tensorly_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorly", None)
    with pytest.raises(ImportError, match=r"compgen_jax\[decomposition\]"):
        dec.cp_errors(np.eye(8), (2, 2, 2), max_rank=1)


@pytest.mark.parametrize("metric", [dec.kernel_anova, dec.operator_schmidt])
def test_bad_gram_matrices_are_named(metric):
    for bad, message in (
        (np.ones((6, 6)), "6 points are no square grid"),
        (np.ones((4, 5)), "gram must be square"),
        (np.zeros((4, 4)), "gram is 0"),
        (np.full((4, 4), np.nan), "gram: NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            metric(bad)
