"""What a task is: pure functions of ONE point, which every other room asks and none second-guesses.

A *point* is a vector of factor values (F,); NaN stands for a factor that is missing. The *cells*
are all combinations of the factors' `values`, the first factor varying fastest (`grids`): a task is
measured at these, or at `points` of its own where not every combination can be. A family of tasks
is a dataclass of settings (`settings.Family`) whose `make()` returns a `Task`; `tasks.bump` is one,
and a user's own needs no more than `factors`, `held_out` and `example`: `over_cells` does the rest.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.tasks import baselines, sampling


class Factor(NamedTuple):
    """One factor of the input.

    name: for tables and figures.  values: (V,) those of the cells, ascending.  real: whether there
    are points between them; a discrete factor's values are labels.  period: of an angle, in the
    unit of the values.
    """

    name: str
    values: np.ndarray
    real: bool = True
    period: float = math.inf


class Example(NamedTuple):
    """What a model is given and asked for: pytrees of arrays."""

    input: Any
    target: Any


def mean_squared_error(output, target):
    """The mean over all entries of one example (paper Eq 12)."""
    chex.assert_equal_shape([output, target])
    return jnp.mean(jnp.square(output - target))


def error_alone(prediction, truth, point):
    """{'mse'}: the scores of a task that names no others."""
    return {"mse": mean_squared_error(prediction, truth)}


class Task(NamedTuple):
    """A task as pure functions; B is a batch, F the number of factors.

    factors:    the first varies fastest over the cells.
    held_out:   points (..., F), NumPy or JAX -> bool (...): what training must not show.
    example:    key, point (F,) -> Example. The key draws what the point leaves open.
    dataset:    key -> a pytree of arrays: what training may show to one seed. Traced, so that
                supports, shares and sizes share a compilation.
    examples:   number of them in the dataset; 0 for points drawn afresh, which have no epochs.
    next_batch: key, step, dataset, batch size -> points (B, F), and whether each counts (B,) bool.
    loss:       output, target -> scalar, of one example.
    output:     shapes of the model's output, where they are not the target's.
    prediction: output -> array: what the model says, conventions (polarity, softmax) undone.
    truth:      target -> array: what it should say, same shape; `prediction` unless given.
    scores:     prediction, truth, point -> named scalars, bool for a hit.
    error:      the name of the score that is small where all is right; trivial predictors have it.
    accuracy:   the name of the score that says whether an answer is right, '' where there is none.
    baselines:  trivial predictors by name: `baselines.Asked` -> predictions (B, ...).
    points:     what the task is measured at, (B, F) NumPy, unless at all cells.
    derived:    means over a region by score name, and by 'PREDICTOR_ERROR' where known -> further
                numbers by name, which are no means over points: a ratio of two of them, say.
    facts:      () -> named numbers of the task itself, for the summary of its runs.
    parts:      lengths of the input's parts, where it is a vector of one code per factor.
    differentiable:  whether the input is differentiable in the real factors.
    units:      named sizes of which a data set's natural size is a multiple; see `SearchConfig`.
    check:      a seed's dataset, concrete -> None; raises ConfigError where it cannot serve.
    """

    factors: tuple[Factor, ...]
    held_out: Callable
    example: Callable
    dataset: Callable
    examples: int
    next_batch: Callable = sampling.epochs
    loss: Callable = mean_squared_error
    output: Any = None
    prediction: Callable = lambda output: output
    truth: Callable | None = None
    scores: Callable = error_alone
    error: str = "mse"
    accuracy: str = ""
    baselines: dict = baselines.BASELINES
    parts: tuple = ()
    differentiable: bool = True
    units: dict = {}
    points: np.ndarray | None = None
    derived: Callable = lambda means: {}
    facts: Callable = dict
    check: Callable = lambda dataset: None


def over_cells(factors, held_out, example, **others) -> Task:
    """A task that shows every seen cell once per epoch; `others` are further fields of `Task`.

    Raises ValueError if no cell is seen.
    """
    factors = tuple(factors)
    points = cells(factors)
    seen = points[~np.asarray(held_out(points))]
    if not len(seen):
        raise ValueError("every cell is held out")
    own = {
        "dataset": lambda key: sampling.table(jnp.asarray(seen)),
        "examples": len(seen),
        "units": {"cell": float(len(points))},
    }
    return Task(factors, held_out, example, **(own | others))


def has_grid(task: Task) -> bool:
    """Whether every combination of the factors' values can be, so that cells form a grid."""
    return task.points is None


def sizes(task: Task) -> tuple[int, ...]:
    """Numbers of values (V_1, ..., V_F), as `grids` takes them; of points that are no grid, how
    many there are."""
    if not has_grid(task):
        return (len(task.points),)
    return tuple(len(factor.values) for factor in task.factors)


def points(task: Task) -> np.ndarray:
    """(B, F) float32: where the task is measured."""
    return cells(task.factors) if has_grid(task) else np.asarray(task.points, np.float32)


def cells(factors) -> np.ndarray:
    """All combinations of the factors' values as points (B, F) float32."""
    return grids.points([factor.values for factor in factors])


def nearest_values(task: Task, points):
    """(..., F) int: the values' indices of the cell that is nearest to each point; NumPy."""
    found = []
    for factor, column in zip(task.factors, np.moveaxis(np.asarray(points), -1, 0), strict=True):
        apart = np.abs(column[..., None] - np.asarray(factor.values, np.float32))
        if math.isfinite(factor.period):
            apart = np.minimum(apart % factor.period, -apart % factor.period)
        found.append(np.argmin(apart, axis=-1))
    return np.stack(found, axis=-1)


def geometry(task: Task) -> dict:
    """How far apart cells are, as `grids.nearest_seen` and `grids.distance_to_seen` ask."""
    return {
        "sizes": sizes(task),
        "ordered": tuple(factor.real for factor in task.factors),
        "periods": tuple(_period_in_cells(factor) for factor in task.factors),
    }


def nearest_seen(task: Task, held_out_B):
    """(indices (B,), distances (B,)) of every point's nearest seen one: in cells of a grid, else
    Euclidean in the factors' values. ValueError if none is seen."""
    if has_grid(task):
        where = geometry(task)
        return grids.nearest_seen(held_out_B, **where), grids.distance_to_seen(held_out_B, **where)
    seen = np.flatnonzero(~np.asarray(held_out_B))
    if not len(seen):
        raise ValueError("held_out must leave some point seen")
    from scipy.spatial import cKDTree  # a fifth of a second that tasks on a grid need not wait

    distances, index = cKDTree(task.points[seen]).query(task.points)
    return seen[index], distances


def _period_in_cells(factor: Factor) -> float | None:
    if not math.isfinite(factor.period):
        return None
    return factor.period / float(np.mean(np.diff(factor.values)))


def examples_at(task: Task, key, points) -> Example:
    """The examples of points (B, F), leaves (B, ...)."""
    return jax.vmap(task.example)(jax.random.split(key, len(points)), points)


def shapes(task: Task) -> tuple:
    """(input, output) of a model of the task as `jax.ShapeDtypeStruct`s; nothing is compiled."""
    point = jax.ShapeDtypeStruct((len(task.factors),), jnp.float32)
    found = jax.eval_shape(task.example, jax.eval_shape(jax.random.key, 0), point)
    return found.input, found.target if task.output is None else task.output


def truth(task: Task, target):
    """What a target says; see `Task.truth`."""
    return (task.truth or task.prediction)(target)


def score_names(task: Task) -> tuple[str, ...]:
    """What the task scores, in alphabetical order; nothing is compiled."""
    point = jax.ShapeDtypeStruct((len(task.factors),), jnp.float32)
    target = jax.eval_shape(task.example, jax.eval_shape(jax.random.key, 0), point).target
    prediction = jax.eval_shape(lambda target: truth(task, target), target)
    return tuple(sorted(jax.eval_shape(task.scores, prediction, prediction, point)))


def number_names(task: Task) -> tuple[str, ...]:
    """What it scores and what it derives of scores, in alphabetical order."""
    scores = score_names(task)
    return tuple(sorted({*scores, *task.derived(dict.fromkeys(scores, 1.0))}))


def regions(task: Task) -> dict:
    """{'id', 'ood'}: which of the task's points (B,) bool."""
    held_out = np.asarray(task.held_out(points(task)))
    return {"id": ~held_out, "ood": held_out}


def trivial_scores(task: Task, key) -> dict[str, dict]:
    """{predictor: {score: (B,)}} of the task's trivial predictors, on the examples that `key` makes
    at the task's points; traceable in the key."""
    at, held_out = points(task), regions(task)["ood"]
    nearest, _ = nearest_seen(task, held_out)
    inputs, targets = examples_at(task, key, at)
    nearest_targets = examples_at(task, key, at[nearest]).target
    truths, of_nearest = (
        jax.vmap(lambda target: truth(task, target))(each) for each in (targets, nearest_targets)
    )
    asked = baselines.Asked(at, inputs, truths, of_nearest, held_out)
    return {
        name: jax.vmap(task.scores)(predict(asked), truths, at)
        for name, predict in task.baselines.items()
    }


def real_points(task: Task, key, count: int):
    """(count, F) points between the cells, uniform over the seen part of what the cells span; a
    discrete factor takes any of its values. (0, F) where no factor is real, or there is no grid."""
    if not has_grid(task) or not any(factor.real for factor in task.factors):
        return jnp.zeros((0, len(task.factors)))
    discrete = [
        (index, jnp.asarray(factor.values, jnp.float32))
        for index, factor in enumerate(task.factors)
        if not factor.real
    ]

    def draw(key):
        point = sampling.by_rejection(
            key, first, extent, lambda point: task.held_out(place(key, point))
        )
        return place(key, point)

    def place(key, point):
        for index, values in discrete:
            chosen = jax.random.randint(jax.random.fold_in(key, index), (), 0, len(values))
            point = point.at[index].set(values[chosen])
        return point

    ends = [(factor.values[0], _last(factor)) for factor in task.factors]
    first = jnp.array([float(low) for low, _ in ends])
    extent = jnp.array([float(high) - float(low) for low, high in ends])
    return jax.vmap(draw)(jax.random.split(key, count))


def _last(factor: Factor) -> float:
    """Where a factor's real values end: once round, for an angle."""
    return factor.values[0] + factor.period if math.isfinite(factor.period) else factor.values[-1]
