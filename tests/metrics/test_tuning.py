import numpy as np
import pytest
from scipy.optimize import minimize

from compgen_jax import grids
from compgen_jax.metrics import tuning
from tests.metrics.test_kernels import CELLS, N


def gaussian(distance):
    return np.exp(-(distance**2) / 2)


def test_product_share_is_that_of_the_first_singular_value():
    """By hand for one map: interaction as what its means leave, singular values by SVD."""
    rng = np.random.default_rng(4)
    unit = 3 * np.outer(*rng.normal(size=(2, 6))) + rng.normal(size=(6, 6))
    inter = unit - unit.mean(axis=1, keepdims=True) - unit.mean(axis=0) + unit.mean()
    energies = np.linalg.svd(inter, compute_uv=False) ** 2
    found = tuning.tuning(unit.reshape(-1, 1), unit.shape)
    assert found.product[0] == pytest.approx(energies[0] / (unit.size * unit.var()))


def test_layer_numbers_over_units_that_vary(monkeypatch):
    """Two stripes, a plus, a bump; units that vary too little, and just enough."""
    x, y = CELLS.T
    stripe, bump = gaussian(x - 5), gaussian(x - 7) * gaussian(y - 7)
    plus, constant = stripe + gaussian(y - 5), np.full(N * N, 7.1)
    layer = np.stack([stripe, stripe, plus, bump, constant, stripe, stripe], axis=1, dtype="f4")
    layer[:, -2:] *= np.sqrt(np.array([0.9e-3, 1.1e-3]) * layer[:, 2].var() / layer[:, 0].var())
    monkeypatch.setattr(tuning, "CACHED", 3 * N * N)  # three units at a time
    found = tuning.tuning(layer, (N, N))
    np.testing.assert_array_equal(found.active, [1, 1, 1, 1, 0, 0, 1])
    np.testing.assert_array_equal(np.isnan(found.main[0]), [0, 0, 0, 0, 1, 0, 0])
    numbers = tuning.layer_tuning(layer, (N, N))
    profile = gaussian(np.arange(N) - 7)
    r = profile.mean() ** 2 / np.mean(profile**2)
    one_factor, interaction = r / (1 + r), (1 - r) / (1 + r)  # of a bump on a diagonal cell
    assert numbers["tuning.one_factor"] == pytest.approx((3.5 + one_factor) / 5, abs=1e-6)
    assert numbers["tuning.interaction"] == pytest.approx(interaction / 5, abs=1e-6)
    assert numbers["tuning.bump"] == 1 / 5 and numbers["tuning.active"] == 5 / 7


@pytest.mark.parametrize("seed", [1, 95])  # of two starts the one finds it, or the other
def test_product_of_three_factors_against_a_search(seed):
    """Of sums of two products and noise: no product from many random starts explains more, and
    what one explains is what least squares on it and all functions of one factor add."""
    rng = np.random.default_rng(seed)
    x, y, z = grids.indices((4, 3, 3)).T
    single = np.concatenate([np.eye(4)[x], np.eye(3)[y], np.eye(3)[z]], axis=1)
    values = (x - 1.5) * (y - 1) + np.exp(z) * (y == 1) * x / 9 + rng.normal(size=36) * 2

    def unexplained(*functions):
        design = np.column_stack([single, functions[0][x] * functions[1][y] * functions[2][z]])
        return np.mean((values - design @ np.linalg.lstsq(design, values)[0]) ** 2)

    without = np.mean((values - single @ np.linalg.lstsq(single, values)[0]) ** 2)
    search = lambda start: minimize(lambda each: unexplained(*np.split(each, [4, 7])), start).fun
    best = min(search(rng.normal(size=10)) for _ in range(20))
    found = tuning.tuning(values[:, None], (4, 3, 3))
    product = found.product[0] * values.var()
    assert without == pytest.approx(found.interaction[0] * values.var())
    of_factors = [[values[level == k].mean() for k in level] for level in (x, y, z)]
    np.testing.assert_allclose(found.main[:, 0], np.var(of_factors, axis=1) / values.var())
    assert without - best <= 1.001 * product < found.interaction[0] * values.var()
    assert without - best > 0.99 * product
