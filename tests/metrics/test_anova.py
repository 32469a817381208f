import numpy as np
import pytest
from numpy.testing import assert_allclose

from compgen_jax import grids
from compgen_jax.metrics import anova
from compgen_jax.metrics.kernels import BLOCK, gram


def test_shares_of_three_factors_are_those_of_projections_unit_by_unit(rng):
    """Each factor's projection keeps its mean or what is left of it; units may fill two blocks."""
    sizes = (4, 3, 5)
    a, b, c = grids.indices(sizes).T.astype(float)
    features = rng.normal(size=(60, BLOCK + 5)).astype(np.float32)
    features[:, -3:] += np.stack([a, b * c, a * b], axis=1)
    shares, few = anova.anova_shares(features, sizes), np.float64(features[:, -3:])
    kernel, whole = gram(few), [np.full((size, size), 1 / size) for size in sizes]
    variances, traces = np.zeros((2, 2, 2, 3)), np.zeros((2, 2, 2))
    for which in np.ndindex(2, 2, 2):
        one = [np.eye(len(m)) - m if w else m for w, m in zip(which, whole, strict=True)]
        projection = np.kron(np.kron(one[2], one[1]), one[0])
        variances[which] = np.mean((projection @ few) ** 2, axis=0) / few.var(axis=0)
        traces[which] = np.trace(projection @ kernel @ projection) / np.trace(kernel)
    single = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    main = [variances[which] for which in single]
    assert_allclose(shares.main[:, -3:], main, rtol=1e-6)
    assert_allclose(shares.interaction[-3:], 1 - np.sum(main, axis=0), rtol=1e-6)
    constant, main, interaction = anova.kernel_anova(kernel, sizes)
    assert constant == pytest.approx(traces[0, 0, 0])
    assert_allclose(main, [traces[which] for which in single])
    assert interaction == pytest.approx(traces.sum() - constant - main.sum())
