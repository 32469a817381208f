"""The protocol: cells, nearest values, real points, and a task of three functions."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from compgen_jax import grids
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Example, Factor, Task, over_cells
from tests.command import refused

KEY = jax.random.key(0)
HEIGHT = Factor("height", np.array([-1.0, 0.5, 2.0]))
FACTORS = (
    Factor("object", np.array([0, 1, 2]), real=False),
    Factor("angle", np.arange(0.0, 360.0, 30.0), period=360.0),
    HEIGHT,
)


def held_out(points):
    """Object 2 at the angles from 300 on, and all that is nearest to them."""
    angle = points[..., 1] % 360
    return (points[..., 0] == 2) & (angle >= 285) & (angle < 345)


def example(key, point):
    """Input and target are pytrees."""
    turn = point[1] * jnp.pi / 180
    label = (jnp.arange(3) == point[0]).astype(jnp.float32)
    wave = jnp.stack([jnp.cos(turn), jnp.sin(turn)])
    return Example({"label": label, "wave": wave}, {"turned": point[2] * wave})


def scores(signal, truth, point):
    return {"mse": jnp.mean(jnp.square(signal - truth)), "right": jnp.all(signal == truth)}


def own_task(**others) -> Task:
    read = {"prediction": lambda output: output["turned"], "scores": scores}
    return over_cells(FACTORS, held_out, example, **(read | others))


def test_a_task_over_cells_shows_every_seen_cell_once():
    task = own_task()
    points = tasks.cells(FACTORS).tolist()
    seen = [point for point in points if not (point[0] == 2 and point[1] in (300, 330))]
    dataset = task.dataset(KEY)
    assert dataset.points.tolist() == seen and task.units == {"cell": 108.0}
    assert task.examples == dataset.count == len(seen) == 108 - 2 * 3
    own = own_task(examples=4, units={"cell": 7})
    assert (own.examples, own.units) == (4, {"cell": 7})


def test_the_nearest_point_with_the_same_labels_against_a_loop():
    task = own_task()
    points, held_out = tasks.cells(FACTORS), tasks.regions(task)["ood"]
    turn = lambda a, b: min((a[1] - b[1]) % 360, (b[1] - a[1]) % 360)
    for cell, index in enumerate(tasks.nearest_seen(task, held_out, (True, False, True))[0]):
        alike = np.flatnonzero((points == points[cell])[:, [0, 2]].all(axis=1) & ~held_out)
        least = min(turn(points[i], points[cell]) for i in alike)
        assert index in alike and turn(points[index], points[cell]) == least
    # all angles of an object held out: no seen point has its label
    alone = own_task()._replace(held_out=lambda points: points[..., 0] == 2)
    held_out = tasks.regions(alone)["ood"]
    same, _ = tasks.nearest_seen(alone, held_out, (True, False, False))
    assert_array_equal(same, tasks.nearest_seen(alone, held_out)[0])


def test_the_nearest_values_of_points_against_a_loop():
    points = np.random.default_rng(0).uniform([0, -90, -2], [2, 720, 3], (200, 3))
    for point, found in zip(points, tasks.nearest_values(FACTORS, points), strict=True):
        for value, index, factor in zip(point, found, FACTORS, strict=True):
            apart = np.abs(value - np.float64(factor.values))
            apart = np.minimum(apart % factor.period, -apart % factor.period)
            assert apart[index] <= apart.min() + 1e-4
    every = tasks.nearest_values(FACTORS, tasks.cells(FACTORS))
    assert_array_equal(every, grids.indices((3, 12, 3)))


def test_the_nearest_seen_point_of_points_without_a_grid():
    """And the nearest with the same label."""
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.integers(0, 3, 40), rng.normal(size=(40, 2))]).astype(np.float32)
    task, held_out_B = own_task(points=points), rng.random(40) < 0.5
    index, distances = tasks.nearest_seen(task, held_out_B)
    alike, apart_alike = tasks.nearest_seen(task, held_out_B, (True, False, False))
    apart_BxB = np.linalg.norm(points[:, None] - points[None], axis=-1)
    for b, apart in enumerate(np.where(held_out_B[None], np.inf, apart_BxB)):
        assert index[b] == np.argmin(apart) and distances[b] == pytest.approx(apart.min(), abs=1e-6)
        same = np.where(points[:, 0] == points[b, 0], apart, np.inf)
        assert alike[b] == np.argmin(same)
        assert apart_alike[b] == pytest.approx(same.min(), abs=1e-6)


def test_shapes_and_names_are_found_without_compiling_or_drawing():
    def traced(key, point):
        assert isinstance(point, jax.core.Tracer)
        return example(key, point)

    task = own_task()._replace(example=traced)
    inputs, output = tasks.shapes(task)
    assert {name: leaf.shape for name, leaf in inputs.items()} == {"label": (3,), "wave": (2,)}
    assert output["turned"].shape == (2,) and tasks.score_names(task) == ("mse", "right")
    other = jax.ShapeDtypeStruct((4,), jnp.float32)
    assert tasks.shapes(task._replace(output=other))[1] is other


def test_real_points_are_seen_points_within_the_box():
    task = own_task()
    points = np.asarray(tasks.real_points(task, KEY, 3000))
    assert points.shape == (3000, 3) and not held_out(points).any()
    assert set(points[:, 0].tolist()) == {0.0, 1.0, 2.0}
    assert (points.min(axis=0) >= [0, 0, -1]).all() and (points.max(axis=0) <= [2, 360, 2]).all()
    assert points[:, 1].max() > 355  # once round, beyond the last value
    assert points[:, 2].mean() == pytest.approx(0.5, abs=0.08)
    # a sixth of the circle of object 2 is held out
    assert (points[:, 0] == 2).mean() == pytest.approx((5 / 6) / (2 + 5 / 6), abs=0.04)


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(AssertionError):
        tasks.mean_squared_error(jnp.zeros((3, 2)), jnp.zeros((1, 2)))


def test_held_out_may_use_jax_also_where_a_program_is_traced():
    apart = jax.jit(lambda points: jnp.abs(points[..., 2]) > 1.5)
    make = lambda: over_cells(FACTORS, apart, example)
    traced = jax.jit(lambda: jnp.asarray(tasks.regions(make())["ood"]))
    assert_array_equal(traced(), np.abs(tasks.points(own_task())[:, 2]) > 1.5)


def test_a_map_shows_the_factors_that_the_hold_out_depends_on():
    factors = [Factor(name, np.arange(6.0)) for name in "abcd"]
    cells = tasks.cells(factors)
    box = (cells[:, 1] > 3) & (cells[:, 3] < 2)
    assert tasks.map_axes(factors, box) == (1, 3)
    chance = np.random.default_rng(0).uniform(size=len(cells)) < 0.3
    assert tasks.map_axes(factors, chance) == tasks.map_axes(factors, box & False) == (0, 1)
    assert tasks.map_axes(factors[:1], np.arange(6) > 3) == (0,)


def test_a_point_is_given_and_told_by_labels():
    factors = Factor("kind", np.array([1.0, 2.0]), False, labels=("a", "b")), HEIGHT
    assert_array_equal(tasks.point_of(factors, ("b", "0.25")), [2, 0.25])
    assert tasks.in_words(factors, np.float32([2, 0.25])) == "kind = b, height = 0.25"
    for value in ("c", "3", 1.5, -1, math.inf, "nan", "1e400", 10**400):
        with refused(f"kind = {value!r}: no such value; allowed: a, b, 1, 2"):
            tasks.point_of(factors, (value, 1))
    for value in ("up", "inf", -math.inf, math.nan, "1e400", 1e39):  # in float32
        with refused(f"height = {value!r}: must be a number that is finite"):
            tasks.point_of(factors, ("a", value))
