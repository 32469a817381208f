"""The protocol: cells, nearest values, real points, and a task of three functions."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Example, Factor, Task, over_cells

KEY = jax.random.key(0)
OBJECT = Factor("object", np.array([0, 1, 2]), real=False)
ANGLE = Factor("angle", np.arange(0.0, 360.0, 30.0), period=360.0)
HEIGHT = Factor("height", np.array([-1.0, 0.5, 2.0]))


def held_out(points):
    """Object 2 at the angles from 300 on, and all that is nearest to them."""
    angle = points[..., 1] % 360
    return (points[..., 0] == 2) & (angle >= 285) & (angle < 345)


def example(key, point):
    """Input and target are pytrees; the key adds noise to the input."""
    turn = point[1] * jnp.pi / 180
    noise = 0.01 * jax.random.normal(key, (2,))
    label = (jnp.arange(3) == point[0]).astype(jnp.float32)
    wave = jnp.stack([jnp.cos(turn), jnp.sin(turn)])
    return Example({"label": label, "wave": wave + noise}, {"turned": point[2] * wave})


def own_task(factors=(OBJECT, ANGLE, HEIGHT), **others) -> Task:
    read = {"prediction": lambda output: output["turned"], "loss": tree_error, "scores": scores}
    return over_cells(factors, held_out, example, **(read | others))


def tree_error(output, target):
    return jnp.mean(jnp.square(output["turned"] - target["turned"]))


def scores(signal, truth, point):
    return {"mse": jnp.mean(jnp.square(signal - truth)), "right": jnp.all(signal == truth)}


def test_a_task_over_cells_shows_every_seen_cell_once():
    task = own_task()
    points = tasks.cells(task.factors)
    seen = [tuple(p) for p in points.tolist() if not (p[0] == 2 and p[1] in (300, 330))]
    assert task.examples == len(seen) == 108 - 2 * 3
    dataset = task.dataset(KEY)
    assert [tuple(p) for p in np.asarray(dataset.points).tolist()] == seen
    assert int(dataset.count) == len(seen) and task.next_batch is sampling.epochs
    assert task.units == {"cell": 108.0} and task.parts == () and task.differentiable
    assert task.check(dataset) is None
    own = own_task(examples=4, units={"cell": 7}, differentiable=False)
    assert (own.examples, own.units, own.differentiable) == (4, {"cell": 7}, False)


def test_the_nearest_point_with_the_same_labels_against_a_loop():
    task = own_task()
    points, held_out = tasks.cells(task.factors), tasks.regions(task)["ood"]
    apart = lambda a, b: math.dist(
        (0, min((a[1] - b[1]) % 360, (b[1] - a[1]) % 360) / 30, a[2]), (0, 0, b[2])
    )
    for fixed in ((True, False, False), (True, False, True), (False, True, True)):
        found = tasks.nearest_with_same(task, held_out, fixed)
        for cell, index in enumerate(found):
            same = (points == points[cell])[:, np.flatnonzero(fixed)].all(axis=1)
            alike = np.flatnonzero(same & ~held_out)
            assert index in alike
            if fixed[0] and fixed[2]:
                least = min(apart(points[i], points[cell]) for i in alike)
                assert apart(points[index], points[cell]) == pytest.approx(least)
    # all angles of an object held out: no seen point has its label
    alone = own_task()._replace(held_out=lambda points: points[..., 0] == 2)
    held_out = tasks.regions(alone)["ood"]
    found = tasks.nearest_with_same(alone, held_out, (True, False, False))
    np.testing.assert_array_equal(found, tasks.nearest_seen(alone, held_out)[0])


def test_points_without_a_grid_keep_their_labels_too():
    rng = np.random.default_rng(7)
    at = np.column_stack([rng.integers(0, 3, 40), rng.uniform(0, 1, 40)]).astype(np.float32)
    factors = OBJECT, Factor("height", np.array([0.0, 1.0]))
    task = over_cells(factors, lambda points: points[..., 1] < -1, example)._replace(points=at)
    held_out = (at[:, 0] == 1) & (at[:, 1] > 0.5)
    found = tasks.nearest_with_same(task, held_out, (True, False))
    for cell, index in enumerate(found):
        alike = [i for i in range(40) if not held_out[i] and at[i, 0] == at[cell, 0]]
        assert index == min(alike, key=lambda i: abs(at[i, 1] - at[cell, 1]))


def test_the_nearest_values_of_points_against_a_loop():
    task = own_task()
    rng = np.random.default_rng(0)
    points = np.stack(
        [rng.integers(0, 3, 200), rng.uniform(-90, 720, 200), rng.uniform(-2, 3, 200)], axis=1
    )

    def apart(a, b, period):
        return abs(a - b) if math.isinf(period) else min((a - b) % period, (b - a) % period)

    for point, found in zip(points, tasks.nearest_values(task.factors, points), strict=True):
        for value, index, factor in zip(point, found, task.factors, strict=True):
            distances = [apart(value, other, factor.period) for other in factor.values]
            assert distances[index] == pytest.approx(min(distances), abs=1e-4)
    np.testing.assert_array_equal(
        tasks.nearest_values(task.factors, np.array([[[1, 359.0, 0.4]], [[2, 346.0, 1.3]]])),
        [[[1, 0, 1]], [[2, 0, 2]]],
    )
    every = tasks.nearest_values(task.factors, tasks.cells(task.factors))
    np.testing.assert_array_equal(every, grids.indices(tasks.sizes(task)))


def test_the_nearest_seen_point_of_points_without_a_grid():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 3)).astype(np.float32)
    task, held_out_B = own_task(points=points), rng.random(40) < 0.5
    index, distances = tasks.nearest_seen(task, held_out_B)
    seen = np.flatnonzero(~held_out_B)
    for b, point in enumerate(points):
        apart = [np.sqrt(np.sum((point - points[k]) ** 2)) for k in seen]
        assert index[b] == seen[np.argmin(apart)]
        assert distances[b] == pytest.approx(min(apart), abs=1e-6)
    with pytest.raises(ValueError, match="must leave some point seen"):
        tasks.nearest_seen(task, np.ones(40, bool))


def test_shapes_and_names_are_found_without_compiling_or_drawing():
    task = own_task()
    concrete = []

    def watched(key, point):
        concrete.append(not isinstance(point, jax.core.Tracer))
        return example(key, point)

    watching = task._replace(example=watched)
    with jax.log_compiles(False), jax.check_tracer_leaks(False):
        inputs, output = tasks.shapes(watching)
        names = tasks.score_names(watching)
    assert concrete and not any(concrete)
    assert {name: leaf.shape for name, leaf in inputs.items()} == {"label": (3,), "wave": (2,)}
    assert output["turned"].shape == (2,)
    assert names == ("mse", "right")
    other = jax.ShapeDtypeStruct((4,), jnp.float32)
    assert tasks.shapes(task._replace(output=other))[1] is other


def test_real_points_are_seen_points_within_the_box():
    task = own_task()
    points = np.asarray(tasks.real_points(task, KEY, 3000))
    assert points.shape == (3000, 3) and not held_out(points).any()
    labels, angles, heights = points.T
    assert set(labels.tolist()) == {0.0, 1.0, 2.0}
    assert angles.min() >= 0 and 355 < angles.max() <= 360  # once round, beyond the last value
    assert heights.min() >= -1 and heights.max() <= 2
    assert len(np.unique(angles)) > 2900 and len(np.unique(heights)) > 2900
    # a sixth of the circle of object 2 is held out
    share = (5 / 6) / (2 + 5 / 6)
    assert abs((labels == 2).mean() - share) < 5 * (share * (1 - share) / 3000) ** 0.5
    np.testing.assert_array_equal(points, tasks.real_points(task, KEY, 3000))


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(AssertionError):
        tasks.mean_squared_error(jnp.zeros((3, 2)), jnp.zeros((1, 2)))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 4))
    expected = sum((x - y) ** 2 for x, y in zip(a.ravel(), b.ravel(), strict=True)) / 12
    assert float(tasks.mean_squared_error(jnp.asarray(a), jnp.asarray(b))) == pytest.approx(
        expected, rel=1e-5
    )
    assert list(tasks.error_alone(jnp.zeros(2), jnp.zeros(2), None)) == ["mse"]


def test_held_out_may_use_jax_also_where_a_program_is_traced():
    apart = jax.jit(lambda points: jnp.abs(points[..., 2]) > 1.5)
    make = lambda: over_cells((OBJECT, ANGLE, HEIGHT), apart, example)
    traced = jax.jit(lambda: jnp.asarray(tasks.regions(make())["ood"]))
    expected = np.abs(tasks.points(own_task())[:, 2]) > 1.5
    np.testing.assert_array_equal(traced(), expected)
    np.testing.assert_array_equal(tasks.regions(make())["ood"], expected)


def test_a_map_shows_the_factors_that_the_hold_out_depends_on():
    factors = [tasks.Factor(name, np.arange(6.0)) for name in "abcd"]
    cells = tasks.cells(factors)
    box = (cells[:, 1] > 3) & (cells[:, 3] < 2)
    assert tasks.map_axes(factors, box) == (1, 3)
    chance = np.random.default_rng(0).uniform(size=len(cells)) < 0.3
    assert tasks.map_axes(factors, chance) == tasks.map_axes(factors, box & False) == (0, 1)
    assert tasks.map_axes(factors[:1], np.arange(6) > 3) == (0,)


def test_a_point_is_given_and_told_by_labels():
    factors = tasks.Factor("kind", np.array([1.0, 2.0]), False, labels=("a", "b")), HEIGHT
    np.testing.assert_array_equal(tasks.point_of(factors, ("b", "0.25")), [2, 0.25])
    assert tasks.in_words(factors, np.float32([2, 0.25])) == f"kind = b, {HEIGHT.name} = 0.25"
    for values, hint in ((("c", 1), "kind = 'c': must be one of a, b, or a number"),
                         (("a", "up"), "'up': must be a number"),
                         (("a",), "give a value for each factor: kind")):  # fmt: skip
        with pytest.raises(ValueError, match=hint):
            tasks.point_of(factors, values)
