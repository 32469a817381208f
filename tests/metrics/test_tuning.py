import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from compgen_jax import grids
from compgen_jax.metrics import tuning
from tests.metrics.test_kernels import N


def units(*functions, grid=N):
    """(N*N, D) features of units given as functions of (x, y)."""
    return np.stack([[float(f(x, y)) for y in range(grid) for x in range(grid)]
                     for f in functions], axis=1)  # fmt: skip


def gaussian(distance, sigma=1.0):
    return np.exp(-(distance**2) / (2 * sigma**2))


def bump_unit(x0, y0, sigma=1.0):
    return lambda x, y: gaussian(x - x0, sigma) * gaussian(y - y0, sigma)


def bump_shares(grid, x0, sigma=1.0):
    """(one factor, interaction) of a bump on a diagonal cell, from the moments of its profile."""
    profile = gaussian(np.arange(grid) - x0, sigma)
    r = profile.mean() ** 2 / np.mean(profile**2)
    return r / (1 + r), (1 - r) / (1 + r)


def test_maps_are_y_x_and_marginals_their_means():
    features = units(lambda x, y: x, lambda x, y: 10 * y, lambda x, y: x + 10 * y, grid=4)
    maps = grids.over_grid(features.astype(np.float32), (4, 4))
    assert maps[3, 1].tolist() == [1, 30, 31]
    of_x, of_y = tuning.marginals(maps)
    np.testing.assert_array_equal(of_x.T, [[0, 1, 2, 3], [15] * 4, [15, 16, 17, 18]])
    np.testing.assert_array_equal(of_y.T, [[1.5] * 4, [0, 10, 20, 30], [1.5, 11.5, 21.5, 31.5]])
    assert of_x.dtype == of_y.dtype == np.float64


def test_product_share_is_that_of_the_first_singular_value():
    """By hand for one map: interaction by loops, singular values by SVD."""
    rng = np.random.default_rng(4)
    grid = 6
    unit = 3 * np.outer(rng.normal(size=grid), rng.normal(size=grid)) + rng.normal(
        size=(grid, grid)
    )
    inter = [
        [unit[y, x] - unit[y].mean() - unit[:, x].mean() + unit.mean() for x in range(grid)]
        for y in range(grid)
    ]
    energies = np.linalg.svd(inter, compute_uv=False) ** 2
    found = tuning.tuning(np.stack([unit.ravel(), np.ones(grid**2)], axis=1), (grid, grid))
    assert found.product[0] == pytest.approx(energies[0] / (unit.size * unit.var()))
    assert np.isnan(found.product[1])
    assert found.interaction[0] == pytest.approx(energies.sum() / (unit.size * unit.var()))


def test_units_that_hardly_vary_are_not_active():
    ramp = lambda scale: lambda x, y: scale * x
    loud, quiet, constant, dead = ramp(1), ramp(np.sqrt(0.9e-3)), lambda x, y: 7.1, lambda x, y: 0
    features = units(loud, quiet, constant, dead, ramp(np.sqrt(1.1e-3))).astype(np.float32)
    found = tuning.tuning(features, (N, N))
    np.testing.assert_array_equal(found.active, [1, 0, 0, 0, 1])
    np.testing.assert_array_equal(np.isnan(found.main[0]), [0, 0, 1, 1, 0])
    assert found.variance[0] == pytest.approx((N**2 - 1) / 12)
    assert not tuning.tuning(features[:, 2:4], (N, N)).active.any()


def test_layer_numbers_over_active_units():
    stripe, plus = lambda x, y: gaussian(x - 5), lambda x, y: gaussian(x - 5) + gaussian(y - 5)
    layer = units(stripe, stripe, plus, bump_unit(7, 7), lambda x, y: 3)
    numbers = tuning.layer_tuning(jnp.asarray(layer), (N, N))
    one_factor, interaction = bump_shares(N, 7)
    assert tuple(numbers) == tuning.TUNING_NUMBERS
    assert all(type(value) is float for value in numbers.values())
    assert numbers["tuning.one_factor"] == pytest.approx((2.5 + one_factor) / 4, abs=1e-6)
    assert numbers["tuning.interaction"] == pytest.approx(interaction / 4, abs=1e-6)
    assert numbers["tuning.bump"] == 1 / 4 and numbers["tuning.active"] == 4 / 5
    assert numbers["tuning.stripe"] in (1 / 2, 3 / 4)  # the plus is on the edge


def test_chosen_units_sit_at_quantiles_of_the_interaction():
    interaction = np.array([0.9, np.nan, 0.1, 0.5, 0.3, 0.7, 0.2])
    active = np.array([1, 0, 1, 1, 1, 1, 0], bool)
    layer = tuning.Tuning(interaction[None], *[interaction] * 3, active)
    assert tuning.choose_units(layer, 1).tolist() == [3]
    assert tuning.choose_units(layer, 2).tolist() == [4, 5]
    assert tuning.choose_units(layer, 9).tolist() == [2, 4, 3, 5, 0]
    many = layer._replace(interaction=np.arange(1000.0)[::-1], active=np.ones(1000, bool))
    assert tuning.choose_units(many, 4).tolist() == [874, 624, 374, 124]
    assert tuning.choose_units(layer._replace(active=active & False), 3).tolist() == []


SIZES = (9, 8, 7)


def units_of_three(*functions):
    x, y, z = grids.indices(SIZES).T.astype(float)
    return np.stack([function(x, y, z) + 0 * x for function in functions], axis=1)


def test_a_stripe_a_sum_and_products_of_three_factors():
    bump = lambda x, y, z: gaussian(x - 5) * gaussian(y - 2) * gaussian(z - 3)
    layer = units_of_three(
        lambda x, y, z: gaussian(z - 2),
        lambda x, y, z: gaussian(x - 4) + y**2 / 40 + np.sin(z),
        bump,
        lambda x, y, z: gaussian(x - 5) * gaussian(y - 2),
        lambda x, y, z: 3 * bump(x, y, z) + gaussian(x - 4) - z / 5,
        lambda x, y, z: np.sin(x) * (y - 3.5) * np.cos(2 * z),
        lambda x, y, z: 2,
    )
    found = tuning.tuning(layer, SIZES)
    np.testing.assert_allclose(found.main[:, 0], [0, 0, 1], atol=1e-12)
    assert found.main[:, 1].sum() == pytest.approx(1)
    # moments of each profile: mean^2 / mean square, r; a main effect has (1 - r) r r of all
    profiles = [gaussian(np.arange(size) - c) for size, c in zip(SIZES, (5, 2, 3), strict=True)]
    r = np.array([np.mean(p) ** 2 / np.mean(p**2) for p in profiles])
    expected = (1 - r) * np.prod(r) / r / (1 - np.prod(r))
    np.testing.assert_allclose(found.main[:, 2], expected)
    # a product's interactions are explained by the product, whatever else is added to it
    np.testing.assert_allclose(found.product[:6], found.interaction[:6], atol=1e-6)
    assert (found.interaction[2:6] > [0.6, 0.4, 0.1, 0.9]).all()
    assert np.isnan(found.product[6]) and found.active.tolist() == [True] * 6 + [False]


def test_product_of_three_factors_against_a_search():
    """Of sums of two products and noise: no product from many random starts explains more, and
    what one explains is what least squares on it and all functions of one factor add."""
    rng = np.random.default_rng(0)
    x, y, z = grids.indices((4, 3, 3)).T
    single = np.concatenate([np.eye(4)[x], np.eye(3)[y], np.eye(3)[z]], axis=1)
    values = (x - 1.5) * (y - 1) + np.exp(z) * (y == 1) * x / 9 + rng.normal(size=36) / 4

    def unexplained(*functions):
        design = np.column_stack([single, functions[0][x] * functions[1][y] * functions[2][z]])
        return np.mean((values - design @ np.linalg.lstsq(design, values)[0]) ** 2)

    without = np.mean((values - single @ np.linalg.lstsq(single, values)[0]) ** 2)
    search = lambda start: minimize(lambda each: unexplained(*np.split(each, [4, 7])), start).fun
    best = min(search(rng.normal(size=10)) for _ in range(10))
    found = tuning.tuning(values[:, None], (4, 3, 3))
    product = found.product[0] * values.var()
    assert without == pytest.approx(found.interaction[0] * values.var())
    assert without - best <= 1.001 * product < found.interaction[0] * values.var()
    assert without - best > 0.9 * product
