"""Held-out regions against loops, and what is sampled beside them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError
from compgen_jax.tasks import bump, supports
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.supports import Axis, Grid, SupportConfig


def grid_of(n, /, **support) -> Grid:
    return bump.support(Bump(grid=n, support=SupportConfig(**support)))


def held_out_mask(grid):
    """(N, N), indexed [y, x]."""
    return supports.is_held_out(supports.cells(grid), grid).reshape(grid.counts[::-1])


def sample(key, grid):
    return np.asarray(supports.sample(jax.random.key(key), grid, supports.n_samples(grid)))


# --- regions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("support", "rule"),
    [
        ({"region": "donut", "low": 3, "high": 5}, lambda x, y: 3 <= x <= 5 and 3 <= y <= 5),
        ({"region": "cross", "low": 3, "high": 5}, lambda x, y: 3 <= x <= 5 or 3 <= y <= 5),
        ({"region": "donut", "low": 3, "high": 5, "of": ("y",)}, lambda x, y: 3 <= y <= 5),
        ({"region": "corner", "low": 5}, lambda x, y: x >= 5 and y >= 5),
        ({"region": "corner", "low": 5, "corner": "top_left"}, lambda x, y: x <= 2 and y >= 5),
        ({"region": "corner", "low": 5, "corner": "bottom_right"}, lambda x, y: x >= 5 and y <= 2),
        ({"region": "corner", "low": 5, "corner": "bottom_left"}, lambda x, y: x <= 2 and y <= 2),
        ({"region": "none"}, lambda x, y: False),
    ],
)
def test_regions_against_loops(support, rule):
    """For NumPy and JAX; real points belong to their nearest cell. y points up, mask[y, x]."""
    grid = grid_of(8, **support)
    cells = supports.cells(grid)
    np.testing.assert_array_equal(cells, [[i % 8, i // 8] for i in range(64)])
    expected = np.array([rule(x, y) for x, y in cells])
    compiled = jax.jit(lambda points: supports.is_held_out(points, grid))
    for points in (cells, cells + np.float32([0.45, -0.45])):
        np.testing.assert_array_equal(supports.is_held_out(points, grid), expected)
        np.testing.assert_array_equal(compiled(points), expected)
    np.testing.assert_array_equal(supports.seen_cells(grid), cells[~expected])


def test_a_random_region_has_its_share_for_all_seeds():
    grid = grid_of(16, region="random", share=0.3, seed=3)
    mask = held_out_mask(grid)
    chosen = np.random.default_rng(3).permutation(256)[: round(0.3 * 256)]
    np.testing.assert_array_equal(np.flatnonzero(mask), np.sort(chosen))
    assert (mask != held_out_mask(grid_of(16, region="random", share=0.3, seed=4))).any()
    moved = supports.cells(grid) + np.float32([0.4, -0.4])
    np.testing.assert_array_equal(supports.is_held_out(moved, grid), mask.ravel())
    compiled = jax.jit(lambda points: supports.is_held_out(points, grid))
    np.testing.assert_array_equal(compiled(moved), mask.ravel())


def test_points_of_any_leading_axes_and_cells_of_any_step():
    """Values -2, -1.5, ..., 1 and 10, 13: a factor's cells lie where its axis says."""
    axes = (Axis("a", 7, -2.0, 0.5, 1, 3), Axis("b", 2, 10.0, 3.0, 1, 1))
    grid = Grid(axes, SupportConfig(region="donut"))
    points = supports.cells(grid)
    np.testing.assert_allclose(points[:3], [[-2, 10], [-1.5, 10], [-1, 10]])
    expected = [(b == 13) and -1.5 <= a <= -0.5 for a, b in points]
    shaped = points.reshape(2, 7, 2)
    np.testing.assert_array_equal(supports.is_held_out(shaped, grid), np.reshape(expected, (2, 7)))
    assert not supports.is_held_out(np.array([-1.76, 13.0]), grid)  # nearer to -2


@pytest.mark.parametrize("share", [0.2, 16 / 28])
@pytest.mark.parametrize("side", [8, 28])
def test_the_held_out_square_has_the_share_as_its_side(side, share):
    held_out = round(share * side)
    for region in ("donut", "corner"):
        mask = held_out_mask(grid_of(side, region=region, side=share, low=3, high=4))
        rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
        assert mask.sum() == held_out**2 and len(rows) == len(columns) == held_out
        if region == "corner":
            assert rows[-1] == columns[-1] == side - 1
        else:  # centred, to half a cell
            assert abs(rows.mean() - (side - 1) / 2) <= 0.5 and list(rows) == list(columns)
    cross = held_out_mask(grid_of(side, region="cross", side=share)).all(axis=0)
    np.testing.assert_array_equal(
        cross, held_out_mask(grid_of(side, region="donut", side=share)).any(axis=0)
    )


def test_the_nearest_seen_cell_of_a_point_is_that_of_its_own_cell():
    """Against a loop over the seen cells, three factors; for NumPy and JAX."""
    axes = (Axis("x", 6, 0.0, 1.0, 1, 4), Axis("y", 5, 0.0, 1.0, 1, 3), Axis("s", 4, 1, 0.5, 1, 3))
    grid = Grid(axes, SupportConfig(region="donut"))
    step = np.float32([1, 1, 0.5])
    cells, seen = supports.cells(grid), supports.seen_cells(grid)
    moved = cells + np.float32([0.4, -0.4, 0.2])
    found = supports.nearest_seen(moved, grid)
    for point, cell, nearest in zip(moved, cells, found, strict=True):
        apart = np.square((seen - cell) / step).sum(axis=1)
        if not supports.is_held_out(point, grid):
            assert np.isnan(nearest).all()
            continue
        assert np.square((nearest - cell) / step).sum() == apart.min()
        assert (nearest == seen).all(axis=1).any()
    jitted = jax.jit(jax.vmap(lambda point: supports.nearest_seen(point, grid)))(moved)
    np.testing.assert_array_equal(jitted, found)
    stripe = np.float32([2, np.nan, 2])
    assert np.isnan(supports.nearest_seen(stripe, grid)).all()


# --- samples ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampling", ["with_replacement", "without_replacement", "every_cell", "real"]
)
@pytest.mark.parametrize("region", ["donut", "random"])
def test_samples_are_seen_points_only(sampling, region):
    grid = grid_of(
        16, region=region, low=5, high=10, sampling=sampling, samples=90, require_marginals=False
    )
    factors, again, other = (sample(key, grid) for key in (0, 0, 1))
    np.testing.assert_array_equal(factors, again)
    assert (factors != other).any() != (sampling == "every_cell")
    assert factors.shape == (supports.n_samples(grid), 2)
    mask = held_out_mask(grid)
    assert not any(mask[int(np.round(y)), int(np.round(x))] for x, y in factors)
    assert factors.min() >= 0 and factors.max() <= 15
    distinct = len(np.unique(factors, axis=0))
    if sampling == "with_replacement":
        assert distinct < 90 and (factors == factors.round()).all()
    else:
        assert distinct == len(factors)
    if sampling == "every_cell":
        np.testing.assert_array_equal(factors, supports.seen_cells(grid))


def test_real_samples_fill_the_seen_region_evenly():
    """Shares of the two outer thirds against their areas, within 4 standard errors."""
    grid = grid_of(16, region="cross", low=5, high=10, sampling="real", samples=4000)
    x, y = sample(1, grid).T
    for side in (x < 4.5, y < 4.5):  # by symmetry half of what is seen: [0, 4.5] and [10.5, 15]
        assert abs(side.mean() - 0.5) < 4 * 0.5 / 4000**0.5


@pytest.mark.parametrize(("side", "share"), [(8, 0.5), (20, 0.375)])
def test_a_data_set_in_proportion_is_as_large_as_its_area(side, share):
    """Cells by counting, real points by the area of their square: [0, N-1]^2 without the hole."""
    hole = round(share * side)
    for region, extent in (("donut", hole), ("corner", hole - 0.5)):
        settings = {"region": region, "side": share, "samples": 1000, "in_proportion": True}
        cells = supports.n_samples(grid_of(side, **settings))
        assert cells == round(1000 * (1 - (hole / side) ** 2))
        real = supports.n_samples(grid_of(side, **settings, sampling="real"))
        expected = 1000 * (1 - (extent / (side - 1)) ** 2)
        assert real == pytest.approx(expected, abs=0.5 + 1e-9)


@pytest.mark.parametrize(
    "hole",
    [
        {"region": "donut", "low": 6, "high": 22},  # beyond the grid's end: 10 of 16 columns
        {"region": "donut", "low": 0, "high": 3},
        {"region": "corner", "low": 0, "of": ("x",)},
        {"region": "corner", "low": 10},
    ],
)
def test_the_area_of_a_hole_at_the_edge_ends_where_real_points_do(hole):
    grid = grid_of(16, **hole, in_proportion=True, sampling="real")
    points = np.random.default_rng(0).uniform(0, 15, (10**5, 2))
    seen = 1 - supports.is_held_out(points, grid).mean()
    assert supports.seen_share(grid) == pytest.approx(seen, abs=6e-3)


def test_a_share_that_is_not_known_is_named():
    cross = {"region": "cross", "low": 3, "high": 4, "in_proportion": True, "samples": 640}
    assert supports.n_samples(grid_of(8, **cross)) == 360
    with pytest.raises(ConfigError, match="in_proportion=True: the share of real .* 'cross' is"):
        supports.n_samples(grid_of(8, **cross, sampling="real"))
    none = grid_of(8, region="none", in_proportion=True, sampling="real", samples=70)
    assert supports.n_samples(none) == 70


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (grid_of(16, region="donut", low=0, high=15), "holds out every cell"),
        (grid_of(16, region="donut", low=9, high=8), "low=9, high=8: holds out no cell"),
        (grid_of(16, region="donut", side=0.01), "side=0.01: holds out no cell of the 16x16"),
        (grid_of(16, region="corner", low=16), "holds out no cell"),
        (grid_of(16, region="random", share=1.0), "share=1.0, seed=0: holds out every cell"),
        (grid_of(16, region="cross", low=4, high=6), r"no training point has x in \[4, 5, 6\]"),
        (grid_of(16, region="donut", of=("z",)), r"of=\('z',\): must name some of x, y"),
        (
            grid_of(16, region="none", sampling="without_replacement", samples=257),
            "samples=257: only 256 cells are seen",
        ),
    ],
)
def test_impossible_supports_are_refused(grid, message):
    with pytest.raises(ConfigError, match=message) as error:
        Config(task=Bump(grid=16, support=grid.settings)).task.make()
    assert "\n" not in str(error.value)


def test_a_draw_without_a_value_of_a_factor_is_refused():
    grid = grid_of(8, region="none")
    cells = supports.cells(grid)
    supports.check_marginals(jnp.asarray(cells), grid)
    with pytest.raises(ConfigError, match=r"seed 3: no training point has y in \[7\]"):
        supports.check_marginals(cells[:56], grid, "seed 3: ")
    points = np.array([[0, 2], [1.2, 2], [np.nan, 4]])
    with pytest.raises(ConfigError, match=r"no training point has x in \[2, 3, 4, 5, 6, 7\]"):
        supports.check_marginals(points, grid)
    supports.check_marginals(points, grid_of(8, region="none", require_marginals=False))
