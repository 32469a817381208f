"""Held-out regions of bumps against loops, and what is sampled beside them."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from compgen_jax.tasks import bump
from compgen_jax.tasks.bump import Bump, SizeConfig
from compgen_jax.tasks.supports import SupportConfig

SIZE = SizeConfig(values=5, smallest=0.8, largest=2.0, low=1, high=3)
NO_SIZE = SizeConfig()


def support(n, size=NO_SIZE, **settings):
    return bump.support(Bump(grid=n, size=size, support=SupportConfig(**settings)))


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"region": "donut", "low": 3, "high": 5}, lambda x, y, s: 3 <= x <= 5 and 3 <= y <= 5),
        ({"region": "donut", "low": 3, "high": 5, "of": ("y",)}, lambda x, y, s: 3 <= y <= 5),
        ({"region": "corner", "low": 5}, lambda x, y, s: x >= 5 and y >= 5),
        ({"region": "corner", "low": 5, "of": ("x",)}, lambda x, y, s: x >= 5),
        ({"region": "none"}, lambda x, y, s: False),
    ],
)
def test_regions_against_loops(settings, rule):
    """A third factor has bounds of its own: values 1 to 3 of a box, from 1 on of a corner."""
    last = 3 if settings["region"] == "donut" else 4
    of_size = lambda s: "of" in settings or 1 <= s <= last
    for size, count in ((NO_SIZE, 1), (SIZE, 5)):
        found = support(8, size, **settings)
        cells = [(x, y, s) for s in range(count) for y in range(8) for x in range(8)]
        expected = [rule(*cell) and (count == 1 or of_size(cell[2])) for cell in cells]
        assert_array_equal(found.held_out, expected)


def test_a_random_region_has_its_share_whatever_the_seed_of_training():
    held_out = support(16, region="random", share=0.3, seed=3).held_out
    chosen = np.random.default_rng(3).permutation(256)[: round(0.3 * 256)]
    assert_array_equal(np.flatnonzero(held_out), np.sort(chosen))
    assert (held_out != support(16, region="random", share=0.3, seed=4).held_out).any()


@pytest.mark.parametrize(("region", "mean"), [("donut", 13.5), ("corner", 19.5)])
def test_the_held_out_square_has_the_share_as_its_side(region, mean):
    """Centred, or in the corner: 16 of 28 values."""
    found = support(28, region=region, side=16 / 28, low=3, high=4)
    values = np.unique(found.points[found.held_out][:, 0])
    assert found.held_out.sum() == 16**2 and len(values) == 16 and values.mean() == mean


@pytest.mark.parametrize(
    "sampling", ["with_replacement", "without_replacement", "every_cell", "real"]
)
def test_samples_are_seen_points_as_the_kind_of_sampling_says(sampling):
    found = support(16, low=5, high=10, sampling=sampling, samples=90)
    draw = lambda seed: np.asarray(found.sample(jax.random.key(seed), found.n_samples()))
    points, seen = draw(0), found.points[~found.held_out]
    assert points.shape == (len(seen) if sampling == "every_cell" else 90, 2)
    assert (points != draw(1)).any() != (sampling == "every_cell")
    assert (len(np.unique(points, axis=0)) == len(points)) == (sampling != "with_replacement")
    assert (points == points.round()).all() == (sampling != "real")
    if sampling == "every_cell":
        assert_array_equal(points, seen)


@pytest.mark.parametrize(
    "hole",
    [
        {"region": "donut", "low": 6, "high": 22},  # beyond the grid's end: 10 of 16 columns
        {"region": "corner", "low": 0, "of": ("x",)},
        {"region": "corner", "low": 10},
    ],
)
def test_the_area_of_a_hole_at_the_edge_ends_where_real_points_do(hole):
    found = support(16, **hole, in_proportion=True, samples=1000, sampling="real")
    points = np.random.default_rng(0).uniform(0, 15, (10**5, 2))
    assert found.seen_share() == pytest.approx(1 - found.is_held_out(points).mean(), abs=6e-3)
    assert found.n_samples() == round(1000 * found.seen_share())
    cells = support(16, **hole, in_proportion=True, samples=1000).n_samples()
    assert cells == round(1000 * (1 - found.held_out.mean()))
