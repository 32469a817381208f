"""Marginal images against float64 loops, and the bump's stripes as one case of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.tasks import bump, marginals
from compgen_jax.tasks.task import Factor, cells

FACTORS = (
    Factor("shape", np.array([1.0, 2.0]), real=False),
    Factor("x", np.arange(4.0)),
    Factor("y", np.arange(3.0)),
)


def picture(point):
    shape, x, y = point
    column = jnp.exp(-jnp.square(jnp.arange(5.0) - x) / shape)
    return 0.5 * (jnp.arange(4.0) == y)[:, None] * column[None, :]


CELLS, PLACES = cells(FACTORS), grids.indices((2, 4, 3))
PICTURES = np.asarray(jax.vmap(picture)(jnp.asarray(CELLS)), np.float64)
# without x = 3 of shape 2, and without y = 2 at all
SHOWN = ~((PLACES[:, 0] == 1) & (PLACES[:, 1] == 3)) & (PLACES[:, 2] != 2)


@pytest.mark.parametrize(("kind", "of"), [("mean", np.mean), ("union", np.max)])
def test_a_value_is_collected_over_the_shown_cells_that_have_it(kind, of):
    found, exist = marginals.images(kind, picture, FACTORS, SHOWN)
    rows = marginals.points(FACTORS)
    assert found.shape == (9, 4, 5) and rows.shape == (9, 3)
    np.testing.assert_array_equal(exist, [True] * 8 + [False])  # y = 2 is never shown
    for row, image, there in zip(rows, found, exist, strict=True):
        (column,) = np.flatnonzero(~np.isnan(row))
        same = SHOWN & (CELLS[:, column] == row[column])
        wanted = of(PICTURES[same], axis=0) if there else np.zeros((4, 5))
        np.testing.assert_allclose(image, wanted, atol=1e-6)


def test_a_slice_is_a_real_picture_on_a_line_through_one_shown_cell():
    found, exist = marginals.images("slice", picture, FACTORS, SHOWN)
    of_cells = [np.flatnonzero([np.allclose(image, one) for one in PICTURES]) for image in found]
    assert not exist[-1] and exist.sum() >= 6
    for image, indices, there in zip(found, of_cells, exist, strict=True):
        assert there == bool(image.any())
        assert not there or (len(indices) == 1 and SHOWN[indices[0]])
    chosen = PLACES[[indices[0] for indices, there in zip(of_cells, exist, strict=True) if there]]
    reference = [np.bincount(column).argmax() for column in chosen.T]
    assert all((place != reference).sum() <= 1 for place in chosen)


def test_the_unions_of_upright_bumps_are_the_stripes_of_the_bump_task():
    grid, settings = 12, bump.ImageConfig(sigma=1.3, polarity="upright")
    draw = lambda point: bump.bump(point[0], point[1], grid, settings)
    factors = [Factor(name, np.arange(grid, dtype=np.float32)) for name in "xy"]
    found, exist = marginals.images("union", draw, factors, np.ones(grid**2, bool))
    points = bump.stripe_points(grid)
    np.testing.assert_array_equal(marginals.points(factors), points)
    np.testing.assert_array_equal(found, jax.vmap(draw)(points))
    assert exist.all()


def test_main_effects_of_a_sum_are_all_and_of_a_product_what_its_duty_says():
    count = 12
    factors = [Factor(name, np.arange(float(count))) for name in "ab"]
    inside = lambda value: (jnp.arange(float(count)) - value) % count < 3  # duty m = 1/4
    sum_of_two = lambda point: jnp.stack([inside(point[0]), inside(point[1])]).astype(float)
    product = lambda point: (inside(point[0])[:, None] & inside(point[1])[None, :]).astype(float)
    share = marginals.main_effects_share(sum_of_two, factors)
    np.testing.assert_allclose(share, 1.0, rtol=1e-6)
    share = marginals.main_effects_share(product, factors)
    np.testing.assert_allclose(share, 2 * 0.25 / 1.25, rtol=1e-6)
    assert np.isnan(marginals.main_effects_share(lambda point: jnp.ones(3), factors))
