"""The figure of two objects, for a network that draws the second alone where the first is OOD."""

import jax
import numpy as np
import pytest

from compgen_jax.config import Config
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.supports import SupportConfig
from figures.forced_rendering import two_objects
from tests.figures import panels


@pytest.fixture(scope="module")
def run():
    """Of three seeds the first draws both bumps, the others the second alone at held-out cells."""
    config = Config(task=Bump(grid=12, bumps=2, support=SupportConfig(low=3, high=8)))
    task = config.task.make()
    points = tasks.points(task)
    truths, held_out = results.truths_at(task, points), np.asarray(task.held_out(points))
    y, x = np.mgrid[:12, :12]
    firsts = np.stack([np.exp(-((x - a) ** 2 + (y - b) ** 2) / 2) for a, b in points])
    seconds = np.where(held_out[:, None, None], truths - firsts, truths)
    with jax.numpy_rank_promotion("allow"):
        cells = results.scorer(task)(np.stack([truths, seconds, 0.99 * seconds]))
    return Run.known((0, 1, 2), cells, config=config)


def test_the_first_object_is_missing_in_its_hole_alone(drawn, run):
    figure = drawn(two_objects.draw, {"two_objects": run})
    cells = run.cells
    axes = [panels.axis_of(figure, letter) for letter in "cd"]
    first, second = (axis.images[0].get_array() for axis in axes)
    held_out = cells.held_out.reshape(12, 12)
    np.testing.assert_allclose(first, np.where(held_out, 1 / 3, 1), atol=1e-6)
    assert second.min() == 1
    assert [panels.title_of(axis) for axis in axes] == [
        "first bump rendered: 100% ID, 33% OOD", "second bump rendered: 100% ID, 100% OOD"
    ]  # fmt: skip


def test_examples_are_of_the_median_seed(drawn, run):
    figure = drawn(two_objects.draw, {"two_objects": run})
    images = [np.asarray(image) for image in panels.images_of(figure)][: 4 * two_objects.EXAMPLES]
    id_drawn, id_asked, ood_drawn, ood_asked = np.reshape(images, (4, -1, 12, 12))
    np.testing.assert_allclose(id_drawn.max(axis=(1, 2)), 1, atol=0.011)
    np.testing.assert_allclose(id_drawn, id_asked, atol=0.011)
    at = lambda images: [float(image.sum()) for image in images]
    np.testing.assert_allclose(at(ood_drawn), np.array(at(ood_asked)) / 2, rtol=0.3)
