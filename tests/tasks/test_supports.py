"""Held-out regions of bumps against loops, and what is sampled beside them."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from compgen_jax.tasks import bump
from compgen_jax.tasks.bump import Bump, SizeConfig
from compgen_jax.tasks.supports import SupportConfig

SIZE = SizeConfig(values=5, smallest=0.8, largest=2.0, low=1, high=3)


def support(n, config, **others):
    return bump.support(Bump(grid=n, support=config, **others))


Y, X = np.divmod(np.arange(64), 8)


@pytest.mark.parametrize(
    ("config", "of_two"),
    [
        (SupportConfig("donut", 3, 5), (abs(X - 4) < 2) & (abs(Y - 4) < 2)),
        (SupportConfig("donut", 3, 5, of=("y",)), abs(Y - 4) < 2),
        (SupportConfig("corner", 5), (X >= 5) & (Y >= 5)),
        (SupportConfig("corner", 5, of=("x",)), X >= 5),
        (SupportConfig("none"), X < 0),
    ],
)
def test_regions_are_what_is_drawn_of_them(config, of_two):
    """A third factor has bounds of its own: values 1 to 3 of a box, from 1 on of a corner. A point
    that lacks a factor is not held out."""
    region, sizes = support(8, config), range(1, 4 if config.region == "donut" else 5)
    assert_array_equal(region.held_out, of_two)
    of_three = [of_two & (size in sizes or config.of != ()) for size in range(5)]
    assert_array_equal(support(8, config, size=SIZE).held_out, np.ravel(of_three))
    assert not region.is_held_out(np.float32([[5, np.nan], [np.nan, 5]])).any()


@pytest.mark.parametrize(("region", "mean"), [("donut", 13.5), ("corner", 19.5)])
def test_the_held_out_square_has_the_share_as_its_side(region, mean):
    """Centred, or in the corner: 16 of 28 values."""
    found = support(28, SupportConfig(region, 3, 4, side=16 / 28))
    values = np.unique(found.points[found.held_out][:, 0])
    assert found.held_out.sum() == 16**2 and len(values) == 16 and values.mean() == mean


@pytest.mark.parametrize(
    "sampling", ["with_replacement", "without_replacement", "every_cell", "real"]
)
def test_samples_are_seen_points_as_the_kind_of_sampling_says(sampling):
    found = support(16, SupportConfig("donut", 5, 10, sampling=sampling, samples=90))
    points, other = (
        np.asarray(found.sample(jax.random.key(seed), found.n_samples())) for seed in (0, 1)
    )
    seen, every_cell = found.points[~found.held_out], sampling == "every_cell"
    assert points.shape == (len(seen) if every_cell else 90, 2)
    assert (points != other).any() != every_cell
    assert (len(np.unique(points, axis=0)) == len(points)) == (sampling != "with_replacement")
    assert (points == points.round()).all() == (sampling != "real")
    assert not every_cell or (points == seen).all()


@pytest.mark.parametrize(
    "hole",
    [
        SupportConfig("donut", 6, 22),  # beyond the grid's end: 10 of 16 columns
        SupportConfig("corner", 1, of=("x",)),
        SupportConfig("corner", 10),
    ],
)
def test_the_area_of_a_hole_at_the_edge_ends_where_real_points_do(hole):
    of_cells = replace(hole, in_proportion=True, samples=1000)
    real = support(16, replace(of_cells, sampling="real"))
    points = np.random.default_rng(0).uniform(0, 15, (10**5, 2))
    assert real.n_samples() / 1000 == pytest.approx(1 - real.is_held_out(points).mean(), abs=6e-3)
    cells = support(16, of_cells)
    assert cells.n_samples() == round(1000 * (1 - cells.held_out.mean()))
