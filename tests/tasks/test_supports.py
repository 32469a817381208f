import jax
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
    return supports.is_held_out(supports.cells(grid), grid).reshape(
        [axis.count for axis in grid.axes[::-1]]
    )


def check(grid):
    asked = f"samples={grid.settings.samples}"
    supports.check(grid, supports.n_samples(grid), asked, shows_every_value=False)


def sample(key, grid):
    return np.asarray(supports.sample(jax.random.key(key), grid, supports.n_samples(grid)))


@pytest.mark.parametrize(
    ("grid", "held_out", "seen"),
    [
        (grid_of(28, region="donut", low=6, high=22), 289, 495),
        (grid_of(28, region="donut", low=10, high=18), 81, 703),
        (grid_of(32, region="corner", low=12), 400, 624),
        (grid_of(28, region="corner", low=14), 196, 588),
        (grid_of(28, region="cross", low=10, high=17), 28 * 28 - 20 * 20, 400),
        (grid_of(16, region="random", share=0.25), 64, 192),
        (grid_of(16, region="none"), 0, 256),
    ],
)
def test_counts_of_cells(grid, held_out, seen):
    assert (held_out_mask(grid).sum(), len(supports.seen_cells(grid))) == (held_out, seen)


@pytest.mark.parametrize(
    ("corner", "inside"),
    [
        ("top_right", (7, 7)),
        ("top_left", (0, 7)),
        ("bottom_right", (7, 0)),
        ("bottom_left", (0, 0)),
    ],
)
def test_corner_lies_where_its_name_says_and_all_have_one_size(corner, inside):
    """y points up, mask[y, x]: the top right corner is large x and large y."""
    mask = held_out_mask(grid_of(8, region="corner", low=5, corner=corner))
    x, y = inside
    assert mask[y, x] and mask.sum() == 9


def test_bounds_are_inclusive_and_real_points_belong_to_their_nearest_cell():
    grid = grid_of(28, region="donut", low=6, high=22)
    x = np.array([5.0, 5.49, 5.51, 6.0, 22.0, 22.49, 22.51])
    np.testing.assert_array_equal(
        supports.is_held_out(np.stack([x, np.full(7, 14.0)], axis=1), grid),
        [False, False, True, True, True, True, False],
    )


def test_random_region_is_drawn_once_for_all_and_covers_cells_of_real_points():
    grid = grid_of(16, region="random", share=0.3, seed=3)
    mask = held_out_mask(grid)
    np.testing.assert_array_equal(mask, held_out_mask(grid))
    other = held_out_mask(grid_of(16, region="random", share=0.3, seed=4))
    assert (mask != other).any()
    moved = supports.cells(grid) + np.float32([0.4, -0.4])
    np.testing.assert_array_equal(supports.is_held_out(moved, grid), mask.ravel())


def test_jax_and_numpy_agree_on_every_region():
    for region in ("donut", "corner", "cross", "random", "none"):
        grid = grid_of(16, region=region, low=4, high=9)
        points = supports.cells(grid)
        compiled = jax.jit(lambda points, grid=grid: supports.is_held_out(points, grid))
        np.testing.assert_array_equal(compiled(points), supports.is_held_out(points, grid))


def test_points_of_any_leading_axes_and_cells_of_any_step():
    """Values -2, -1.5, ..., 1 and 10, 13: a factor's cells lie where its axis says."""
    axes = (Axis("a", 7, -2.0, 0.5, 1, 3), Axis("b", 2, 10.0, 3.0, 1, 1))
    grid = Grid(axes, SupportConfig(region="donut"))
    points = supports.cells(grid)
    np.testing.assert_allclose(points[:3], [[-2, 10], [-1.5, 10], [-1, 10]])
    expected = [(b == 13) and -1.5 <= a <= -0.5 for a, b in points]
    np.testing.assert_array_equal(supports.is_held_out(points, grid), expected)
    shaped = points.reshape(2, 7, 2)
    np.testing.assert_array_equal(supports.is_held_out(shaped, grid), np.reshape(expected, (2, 7)))
    assert not supports.is_held_out(np.array([-1.76, 13.0]), grid)  # nearer to -2


@pytest.mark.parametrize(
    "sampling", ["with_replacement", "without_replacement", "every_cell", "real"]
)
@pytest.mark.parametrize("region", ["donut", "corner", "cross", "random"])
def test_samples_are_seen_points_only(sampling, region):
    grid = grid_of(
        16, region=region, low=5, high=10, sampling=sampling, samples=90, require_marginals=False
    )
    factors = sample(0, grid)
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


def test_draws_differ_by_key_and_repeat_for_the_same():
    grid = grid_of(16, region="donut", low=5, high=10, samples=50)
    first, again, other = (sample(key, grid) for key in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("share", [0.2, 0.5, 16 / 28])
@pytest.mark.parametrize("region", ["donut", "corner"])
@pytest.mark.parametrize("side", [8, 12, 28])
def test_the_held_out_square_has_the_share_as_its_side(side, region, share):
    mask = held_out_mask(grid_of(side, region=region, side=share, low=3, high=4))
    held_out = round(share * side)
    rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    assert mask.sum() == held_out**2 and len(rows) == len(columns) == held_out
    if region == "corner":
        assert rows[-1] == columns[-1] == side - 1
    else:  # centred, to half a cell
        assert abs(rows.mean() - (side - 1) / 2) <= 0.5 and list(rows) == list(columns)


@pytest.mark.parametrize(
    ("share", "low", "high"), [(17 / 28, 5, 21), (16 / 28, 6, 21), (0.25, 10, 16)]
)
def test_a_side_is_the_low_and_high_of_its_square(share, low, high):
    by_side = held_out_mask(grid_of(28, region="donut", side=share))
    by_bounds = held_out_mask(grid_of(28, region="donut", low=low, high=high))
    np.testing.assert_array_equal(by_side, by_bounds)
    corner = held_out_mask(grid_of(28, region="corner", side=share))
    np.testing.assert_array_equal(
        corner, held_out_mask(grid_of(28, region="corner", low=28 - (high - low + 1)))
    )


@pytest.mark.parametrize("region", ["donut", "corner"])
@pytest.mark.parametrize("share", [0.2, 0.375, 0.5])
@pytest.mark.parametrize("side", [8, 12, 20])
def test_a_data_set_in_proportion_is_as_large_as_its_area(side, share, region):
    """Cells by counting, real points by the area of their square: [0, N-1]^2 without the hole."""
    hole = round(share * side)
    cells = grid_of(side, region=region, side=share, samples=1000, in_proportion=True)
    assert supports.n_samples(cells) == round(1000 * (1 - (hole / side) ** 2))
    real = grid_of(
        side, region=region, side=share, samples=1000, in_proportion=True, sampling="real"
    )
    extent = hole - 0.5 if region == "corner" else hole
    expected = 1000 * (1 - (extent / (side - 1)) ** 2)
    assert supports.n_samples(real) == pytest.approx(expected, abs=0.5 + 1e-9)


@pytest.mark.parametrize("region", ["donut", "corner"])
def test_the_area_of_real_points_is_that_of_their_square(region):
    """Against the share of many real points that are not held out."""
    grid = grid_of(8, region=region, side=0.5, samples=10**6, in_proportion=True, sampling="real")
    points = np.random.default_rng(0).uniform(0, 7, (10**6, 2))
    held_out = supports.is_held_out(points, grid)
    assert supports.n_samples(grid) / 10**6 == pytest.approx(1 - held_out.mean(), abs=2e-3)


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
    grid = grid_of(16, **hole, samples=10**6, in_proportion=True, sampling="real")
    points = np.random.default_rng(0).uniform(0, 15, (10**6, 2))
    seen = 1 - supports.is_held_out(points, grid).mean()
    assert supports.seen_share(grid) == pytest.approx(seen, abs=2e-3)


@pytest.mark.parametrize("side", [0.25, 0.5])
def test_a_cross_with_a_side_is_centred(side):
    columns = np.flatnonzero(held_out_mask(grid_of(16, region="cross", side=side)).all(axis=0))
    assert len(columns) == 16 * side and columns.mean() == 7.5


def test_a_share_that_is_not_known_is_named():
    grid = grid_of(8, region="cross", low=3, high=4, in_proportion=True, sampling="real")
    with pytest.raises(ConfigError, match="in_proportion=True: of real points the region 'cross'"):
        supports.n_samples(grid)
    assert supports.n_samples(
        grid_of(8, region="cross", low=3, high=4, in_proportion=True, samples=640)
    ) == 360  # fmt: skip
    assert supports.n_samples(
        grid_of(8, region="none", in_proportion=True, sampling="real", samples=70)
    ) == 70  # fmt: skip


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (grid_of(16, region="donut", low=0, high=15), "holds out every cell"),
        (grid_of(16, region="donut", low=9, high=8), "low=9, high=8: holds out no cell"),
        (grid_of(16, region="donut", side=0.01), "side=0.01: holds out no cell of the 16x16"),
        (grid_of(16, region="corner", low=16), "holds out no cell"),
        (grid_of(16, region="random", share=1.0), "share=1.0, seed=0: holds out every cell"),
        (grid_of(16, region="cross", low=4, high=6), r"no training point has x in \[4, 5, 6\]"),
        (grid_of(16, region="donut", low=0, high=13), None),
        (
            grid_of(16, region="none", sampling="without_replacement", samples=257),
            "samples=257: only 256 cells are seen",
        ),
    ],
)
def test_impossible_supports_are_refused(grid, message):
    if message is None:
        check(grid)
        return
    with pytest.raises(ConfigError, match=message) as error:
        check(grid)
    assert "\n" not in str(error.value)
    with pytest.raises(ConfigError):
        Config(task=Bump(grid=16, support=grid.settings)).task.make()


def test_marginals_of_a_draw():
    grid = grid_of(8, region="none")
    cells = supports.cells(grid)
    supports.check_marginals(cells, grid)
    with pytest.raises(ConfigError, match=r"seed 3: no training point has y in \[7\]"):
        supports.check_marginals(cells[:56], grid, of="seed 3")
    missing = supports.missing_marginals(np.array([[0, 2], [1.2, 2], [np.nan, 4]]), grid)
    assert missing == {"x": [2, 3, 4, 5, 6, 7], "y": [0, 1, 3, 5, 6, 7]}


def test_cells_are_in_the_order_of_the_protocol():
    cells = supports.cells(grid_of(8, region="none"))
    np.testing.assert_array_equal(cells[:9], [[i % 8, i // 8] for i in range(9)])
