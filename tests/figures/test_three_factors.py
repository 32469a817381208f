"""The figure of three factors, of networks whose answer is known."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, SizeConfig
from compgen_jax.tasks.supports import SupportConfig
from figures import plotting
from figures.forced_rendering import three_factors

SIZE = SizeConfig(values=5, smallest=0.8, largest=2.0, low=1, high=3)
BOX = {"region": "donut", "low": 3, "high": 6}
REGIONS = {
    "box": BOX,
    "xy": BOX | {"of": ("x", "y")},
    "random": {"region": "random", "share": 0.09},
}
LAYERS = ("layer_00", "layer_01", "layer_02", "output")


def results_of(region, wrong):
    """Three seeds that are right but for `wrong(index_QxF, truths) -> images` of held-out cells,
    a little different by seed."""
    task = Bump(grid=10, size=SIZE, support=SupportConfig(**REGIONS[region])).make()
    points, sizes = tasks.cells(task.factors), tasks.sizes(task)
    examples = tasks.examples_at(task, jax.random.key(0), points)
    truths = np.asarray(jax.vmap(lambda target: tasks.truth(task, target))(examples.target))
    held_out = np.asarray(task.held_out(points))
    signals = np.stack([truths] * 3)
    for seed, scale in enumerate((0.98, 1.0, 1.02)):
        signals[seed, held_out] = scale * wrong(grids.indices(sizes)[held_out], truths)
    score = jax.jit(jax.vmap(jax.vmap(task.scores), (0, None, None)))
    return CellResults(
        seeds=(0, 1, 2),
        predictions=signals,
        truths=truths,
        factors=points,
        held_out=held_out,
        distance=grids.distance_to_seen(held_out, **tasks.geometry(task)),
        sizes=sizes,
        scores=jax.tree.map(np.asarray, score(signals, truths, points)),
    )


def of_another_size(index, truths):
    """The right place with the largest size."""
    x, y, _ = index.T
    return truths[400 + 10 * y + x]


def right(index, truths):
    x, y, size = index.T
    return truths[100 * size + 10 * y + x]


def study_of(region, wrong):
    rng = np.random.default_rng(0)
    pairs = ("x-y", "x-size", "y-size")
    numbers = {f"angle.{pair}.{where}": rng.uniform(0, 0.5, (3, len(LAYERS)))
               for pair in pairs for where in ("id", "ood")}  # fmt: skip
    numbers["volume.log10_ratio"] = rng.normal(0, 0.3, (3, len(LAYERS)))
    inspection = SimpleNamespace(layers=LAYERS, numbers=numbers)
    role = SimpleNamespace(region=region)
    return SimpleNamespace(results=results_of(region, wrong), inspection=inspection, role=role)


@pytest.fixture(scope="module")
def studies():
    return [study_of("box", of_another_size), study_of("xy", right), study_of("random", right)]


@pytest.fixture
def figure(studies):
    drawn = three_factors.draw(studies)
    drawn.canvas.draw()
    yield drawn
    plotting.close(drawn)


def axis_of(figure, letter):
    """The axis that has this panel letter."""
    (found,) = [axis for axis in figure.axes
                if any(text.get_text() == letter and text.get_fontweight() == "bold"
                       for text in axis.texts)]  # fmt: skip
    return found


def means(axis, name, marker="o"):
    """(x, y) of a network's means in order of x: the middle points of its intervals."""
    found = [bar[0].get_xydata()[0] for bar in axis.containers
             if bar[0].get_marker() == marker
             and bar[0].get_color() == three_factors.COLORS[name]]  # fmt: skip
    return sorted(map(tuple, found))


def test_what_fails_is_the_size_where_the_place_is_right(figure):
    readout = axis_of(figure, "h")
    assert [y for _, y in means(readout, "box")] == [1, 0, 0]  # position, size, both
    assert [y for _, y in means(readout, "random")] == [1, 1, 1]
    assert {y for _, y in means(readout, "box", "s")} == {1}
    accuracy = axis_of(figure, "a")
    assert [y for _, y in means(accuracy, "random")] == [1, 1]
    good, exact = (y for _, y in means(accuracy, "box"))
    assert exact == 1 and good < 0.6


def test_pairs_are_counted_on_held_out_combinations(figure):
    axis = axis_of(figure, "c")
    assert [round(x) for x, _ in means(axis, "box")] == [3]  # a box leaves all pairs
    assert [round(x) for x, _ in means(axis, "xy")] == [2]  # and a square of x and y all but one


def test_every_layer_has_its_angles_and_its_volume(figure, studies):
    axis = axis_of(figure, "e")
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert labels == ["x, y", "x, size", "y, size"]
    solid = [
        line for line in axis.lines if line.get_linestyle() == "-" and len(line.get_xdata()) > 1
    ]
    expected = studies[0].inspection.numbers["angle.x-y.ood"].mean(axis=0)[:-1]
    np.testing.assert_allclose(solid[0].get_ydata(), expected)
    assert axis_of(figure, "f").get_ylabel().endswith("OOD / ID")


def test_examples_are_held_out_of_the_box_and_of_three_sizes(figure, studies):
    box = studies[0].results
    cells = three_factors.example_cells(box)
    assert len(set(cells)) == len(cells) and box.held_out[cells].all()
    assert list(grids.indices(box.sizes)[cells, 2]) == [1, 1, 2, 2, 3, 3]
    images = [axis for axis in figure.axes if axis.images]
    assert len(images) == 3 * len(cells)  # asked, box and square: no slab is among these
    np.testing.assert_allclose(images[0].images[0].get_array(), box.truths[cells[0]])


def test_a_network_without_angles_is_drawn_without_them(studies):
    numbers = {"volume.log10_ratio": studies[0].inspection.numbers["volume.log10_ratio"]}
    bare = SimpleNamespace(
        results=studies[0].results,
        inspection=SimpleNamespace(layers=LAYERS, numbers=numbers),
        role=studies[0].role,
    )
    plotting.close(three_factors.draw([bare, *studies[1:]]))
