import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import anova
from compgen_jax.metrics.kernels import BLOCK, gram


def test_anova_shares_are_of_each_unit_alone_over_blocks_of_units():
    features = np.random.default_rng(0).normal(size=(9, BLOCK + 5)).astype(np.float32)
    shares = anova.anova_shares(features, (3, 3))
    alone = anova.anova_shares(features[:, -2:], (3, 3))
    np.testing.assert_allclose(shares.main[:, -2:], alone.main)


SIZES = (4, 3, 5)
A, B, C = grids.indices(SIZES).T.astype(float)


def variances_by_loops(values_B, sizes):
    """Variance of every interaction of the factors, by their sets, from conditional means."""
    cells, found, effects = grids.indices(sizes), {}, {(): np.full(len(values_B), values_B.mean())}
    factors = range(len(sizes))
    for chosen in [(f,) for f in factors] + [(0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        effect = np.empty(len(values_B))
        for index, cell in enumerate(cells):
            same = (cells[:, chosen] == cell[list(chosen)]).all(axis=1)
            effect[index] = values_B[same].mean()
        for smaller, other in effects.items():
            if set(smaller) < set(chosen):
                effect -= other
        effects[chosen] = effect
        found[chosen] = np.mean(effect**2)
    return found


def test_three_factors_against_loops():
    trends = np.stack([A, B * C, 0 * A], axis=1)
    features = np.random.default_rng(0).normal(size=(60, 3)) + trends
    shares = anova.anova_shares(features, SIZES)
    for unit, values in enumerate(features.T):
        parts = variances_by_loops(values, SIZES)
        expected = np.array([parts[0,], parts[1,], parts[2,]]) / values.var()
        np.testing.assert_allclose(shares.main[:, unit], expected)
        interaction = parts[0, 1] + parts[0, 2] + parts[1, 2] + parts[0, 1, 2]
        assert shares.interaction[unit] == pytest.approx(interaction / values.var())


def test_kernel_anova_of_three_factors_against_projections():
    trends = np.stack([A, B * C, A * B], axis=1)
    features = np.random.default_rng(0).normal(size=(60, 3)) + trends
    kernel = gram(features)
    constant, main, interaction = anova.kernel_anova(kernel, SIZES)
    whole = [np.full((size, size), 1 / size) for size in SIZES]
    traces = np.zeros((2, 2, 2))
    for which in np.ndindex(2, 2, 2):  # of each factor, its mean or what is left
        one = [np.eye(len(m)) - m if w else m for w, m in zip(which, whole, strict=True)]
        projection = np.kron(np.kron(one[2], one[1]), one[0])
        traces[which] = np.trace(projection @ kernel @ projection) / np.trace(kernel)
    assert constant == pytest.approx(traces[0, 0, 0])
    np.testing.assert_allclose(main, [traces[1, 0, 0], traces[0, 1, 0], traces[0, 0, 1]])
    assert interaction == pytest.approx(1 - constant - main.sum())
    assert interaction == pytest.approx(traces.sum() - constant - main.sum())
    alone = anova.kernel_anova(gram(features[:4]), (4,))  # of one factor
    assert alone[2] == pytest.approx(0, abs=1e-12)
