"""The figure of three factors, for networks whose answer is known."""

import jax
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, SizeConfig
from compgen_jax.tasks.supports import SupportConfig
from figures import plotting
from figures.forced_rendering import three_factors
from tests.figures import panels

SIZE = SizeConfig(values=5, smallest=0.8, largest=2.0, low=1, high=3)
BOX = {"region": "donut", "low": 3, "high": 6}
REGIONS = {
    "box": BOX,
    "xy": BOX | {"of": ("x", "y")},
    "random": {"region": "random", "share": 0.09},
}
LAYERS = ("layer_00", "layer_01", "layer_02", "output")


def of_another_size(index, truths):
    """The right place with the largest size."""
    x, y, _ = index.T
    return truths[400 + 10 * y + x]


def right(index, truths):
    x, y, size = index.T
    return truths[100 * size + 10 * y + x]


def run_of(region, drawn):
    """Three seeds that are right but for `drawn(index_QxF, truths)`, images of held-out cells, a
    little different by seed."""
    task = Bump(grid=10, size=SIZE, support=SupportConfig(**REGIONS[region])).make()
    points = tasks.points(task)
    truths, held_out = results.truths_at(task, points), np.asarray(task.held_out(points))
    images = np.stack([truths] * 3)
    for seed, scale in enumerate((0.98, 1.0, 1.02)):
        images[seed, held_out] = scale * drawn(grids.indices(tasks.sizes(task))[held_out], truths)
    with jax.numpy_rank_promotion("allow"):
        cells = results.scorer(task)(images)
    rng = np.random.default_rng(0)
    layers = {f"angle.{pair}.{where}": rng.uniform(0, 0.5, (3, len(LAYERS)))
              for pair in ("x-y", "x-size", "y-size") for where in ("id", "ood")}  # fmt: skip
    layers["volume.log10_ratio"] = rng.normal(0, 0.3, (3, len(LAYERS)))
    return Run.known((0, 1, 2), cells, layers, layer_names=LAYERS)


@pytest.fixture(scope="module")
def runs():
    return {
        "three_factors": run_of("box", of_another_size),
        "three_factors_xy": run_of("xy", right),
        "three_factors_random": run_of("random", right),
    }


@pytest.fixture(scope="module")
def figure(runs):
    drawn = three_factors.draw(runs)
    drawn.canvas.draw()
    panels.assert_readable(drawn)
    yield drawn
    plotting.close(drawn)


def means(figure, letter, name, marker="o"):
    axis = panels.axis_of(figure, letter)
    return panels.means(axis, marker, three_factors.COLORS[name])


def test_what_fails_is_the_size_where_the_place_is_right(figure):
    assert [y for _, y in means(figure, "e", "box")] == [1, 0, 0]  # position, size, both
    assert [y for _, y in means(figure, "e", "random")] == [1, 1, 1]
    assert {y for _, y in means(figure, "e", "box", "s")} == {1}
    assert [y for _, y in means(figure, "a", "random")] == [1, 1]
    good, exact = (y for _, y in means(figure, "a", "box"))
    assert exact == 1 and good < 0.6


def test_pairs_are_counted_on_held_out_combinations(figure):
    assert [round(x) for x, _ in means(figure, "c", "box")] == [3]  # a box leaves all pairs
    assert [round(x) for x, _ in means(figure, "c", "xy")] == [2]  # a square of x and y all but one


def test_every_layer_has_its_angles(figure, runs):
    axis = panels.axis_of(figure, "f")
    labels = axis.get_legend_handles_labels()[1]
    assert labels[::2] == ["x, y", "x, size", "y, size"]
    solid = next(line for line in axis.lines if line.get_label() == "x, y")
    expected = runs["three_factors"].layers("angle.x-y.ood").mean(axis=0)[:-1]
    np.testing.assert_allclose(solid.get_ydata(), expected)


def test_examples_are_held_out_of_the_box_and_of_three_sizes(figure, runs):
    box = runs["three_factors"].cells
    indices = three_factors.example_cells(box)
    assert len(set(indices)) == len(indices) and box.held_out[indices].all()
    assert list(grids.indices(box.sizes)[indices, 2]) == [1, 1, 2, 2, 3, 3]
    images = panels.images_of(figure)
    assert len(images) == 3 * len(indices)  # asked, box and square: there is no slab
    np.testing.assert_allclose(images[0], box.truths[indices[0]])
