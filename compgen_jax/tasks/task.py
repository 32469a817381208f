"""What a task is: pure functions of ONE point.

A *point* is a vector of factor values (F,); NaN stands for a missing factor. The *cells* are all
combinations of the factors' `values`, the first factor varying fastest (`grids`).

A family of tasks is a dataclass of settings (`settings.Family`) whose `make()` returns a `Task`. A
user's own task needs only `factors`, `held_out` and `example`: `over_cells` fills in the rest.
"""

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.settings import ConfigError, demand, nearest_or_all
from compgen_jax.tasks import baselines, sampling


class Factor(NamedTuple):
    """One factor of the input.

    values: (V,) those of the cells, ascending.  real: whether values between them exist; a discrete
    factor's values are labels.  period: of an angle, that after which it repeats.  labels: names of
    a discrete factor's values, for figures.
    """

    name: str
    values: np.ndarray
    real: bool = True
    period: float = math.inf
    labels: tuple[str, ...] = ()


class Example(NamedTuple):
    input: Any
    target: Any


def mean_squared_error(output, target):
    """The mean over all entries of one example (paper Eq 12)."""
    chex.assert_equal_shape([output, target])
    return jnp.mean(jnp.square(output - target))


def unchanged(output):
    return output


class Task(NamedTuple):
    """A task as pure functions; B is a batch, F the number of factors.

    factors:    the first varies fastest over the cells.
    held_out:   points (..., F), NumPy or JAX -> bool (...): what training must not show.
    example:    key, point (F,) -> Example. The key draws what the point leaves open.
    dataset:    key -> a pytree of arrays, traced: what training may show to one seed. Columns of
                points beyond the factors' are for `example` alone.
    examples:   their number in the dataset; 0 for points drawn afresh, which have no epochs.
    next_batch: key, step, dataset, batch size -> points (B, F), whether each counts (B,) bool.
    loss:       output, target -> scalar, for one example.
    output:     shapes of the model's output, if they differ from the target's.
    prediction: output -> array: the model's answer, without conventions (polarity, softmax).
    truth:      target -> array of the same shape: the right answer; by default `prediction`.
    scores:     prediction, truth, point -> named scalars, bool for a hit. A name that ends in
                `accuracy` or `rendered` is that of a share (`statistics.SHARE`).
    nearest:    points (..., F), NumPy or JAX -> the nearest seen point of each (..., F), NaN for a
                point that is seen. `scores` then takes it as an optional fourth argument.
    error:      the name of the score that is 0 for a perfect model.
    accuracy:   the name of the score that says whether an answer is right; '' if there is none.
    baselines:  trivial predictors by name: `baselines.Query` -> predictions (B, ...).
    interpolated: whether a kernel over the model's inputs is a trivial predictor too: not where the
                example's key draws most of an input.
    points:     where the task is measured, (B, F) NumPy, if not at all cells.
    rows_B:     how many images each cell has, (B,) NumPy, if `points` are cells that have some.
    between:    whether points between the cells have examples of their own.
    origin:     where figures put the first row of an image, 'lower' or 'upper'.
    derived:    a region's means by score name, and the trivial predictors' errors by
                'PREDICTOR_ERROR' if known -> further numbers by name, such as a ratio of means.
    facts:      () -> named numbers of the task itself, for the summary of its runs.
    describe:   () -> lines that a user should read before training.
    parts:      lengths of the input's parts, if it is a vector of one code per factor.
    differentiable:  whether the input is differentiable in the real factors.
    units:      sizes by name, multiples of which a search may try (`SearchConfig.per`), or None.
    check:      a seed's dataset, concrete -> None; raises ConfigError if it is of no use.
    """

    factors: tuple[Factor, ...]
    held_out: Callable
    example: Callable
    dataset: Callable
    examples: int
    next_batch: Callable = sampling.epochs
    loss: Callable = mean_squared_error
    output: Any = None
    prediction: Callable = unchanged
    truth: Callable | None = None
    scores: Callable = lambda prediction, truth, point: {
        "mse": mean_squared_error(prediction, truth)
    }
    nearest: Callable | None = None
    error: str = "mse"
    accuracy: str = ""
    baselines: dict = baselines.BASELINES
    interpolated: bool = True
    parts: tuple = ()
    differentiable: bool = True
    units: dict = {}
    points: np.ndarray | None = None
    rows_B: np.ndarray | None = None
    between: bool = True
    origin: str = "lower"
    derived: Callable = lambda means: {}
    facts: Callable = dict
    describe: Callable = tuple
    check: Callable = lambda dataset: None


def over_cells(factors, held_out, example, **others) -> Task:
    """A task that shows every ID cell once per epoch; `others` are further fields of `Task`. Raises
    ValueError if all cells are held out."""
    factors = tuple(factors)
    points = cells(factors)
    seen = points[~_mask(held_out, points)]
    if not len(seen):
        raise ValueError("every cell is held out")
    fields = {
        "dataset": lambda key: sampling.table(jnp.asarray(seen)),
        "examples": len(seen),
        "units": {"cell": float(len(points))},
    }
    return Task(factors, held_out, example, **(fields | others))


def refuse(problems: dict):
    """Raises the ConfigError 'config.task.MESSAGE' of the first message whose value is true."""
    for message, holds in problems.items():
        if holds:
            raise ConfigError(f"config.task.{message}")


# --- points and cells ------------------------------------------------------------------------


def has_grid(task: Task) -> bool:
    """Whether the task is measured at all combinations of the factors' values."""
    return task.points is None


def on_grid(task: Task) -> Task:
    """The task as measured at all of its cells, where its points are a sample of them."""
    is_sample = task.rows_B is not None and task.rows_B.all()
    return task._replace(points=None) if is_sample else task


def counts(factors) -> tuple[int, ...]:
    return tuple(len(factor.values) for factor in factors)


def sizes(task: Task) -> tuple[int, ...]:
    """`counts` of the task's factors; (B,) for points that form no grid."""
    return counts(task.factors) if has_grid(task) else (len(task.points),)


def points(task: Task) -> np.ndarray:
    """(B, F) float32: the points that the task is measured at."""
    return cells(task.factors) if has_grid(task) else np.asarray(task.points, np.float32)


def cells(factors) -> np.ndarray:
    """All combinations of the factors' values as points (B, F) float32."""
    return grids.points([factor.values for factor in factors])


def point_of(factors, values) -> np.ndarray:
    """(F,) float32 of a number, its text or a label for each factor. Raises ValueError, also for a
    number that is no label."""
    if len(values) != len(factors):
        names = ", ".join(factor.name for factor in factors)
        raise ValueError(f"give a value for each factor: {names}")
    numbers = []
    for factor, value in zip(factors, values, strict=True):
        number = math.nan
        if value in factor.labels:
            number = factor.values[factor.labels.index(value)]
        else:
            with contextlib.suppress(ValueError, OverflowError):
                number = float(value)
        fits = abs(number) <= float(np.finfo(np.float32).max)
        hint = "must be a number that is finite"
        if not factor.real:
            names = [*factor.labels, *map("{:g}".format, factor.values)]
            fits = np.isclose(factor.values, number).any()
            hint = f"no such value; {nearest_or_all(str(value), names)}"
        demand(fits, f"{factor.name} = {value!r}: {hint}")
        numbers.append(number)
    return np.array(numbers, np.float32)


def in_words(factors, point) -> str:
    """'shape = heart, posX = 0.5': a point with labels by name."""
    pairs = zip(factors, point, strict=True)
    return ", ".join(f"{factor.name} = {value_name(factor, value)}" for factor, value in pairs)


def value_name(factor: Factor, value) -> str:
    index = np.flatnonzero(np.isclose(factor.values, value)) if factor.labels else ()
    return factor.labels[index[0]] if len(index) else f"{value:.4g}"


def numpy_of(values):
    return jnp if isinstance(values, jax.Array) else np


def nearest_values(factors, points):
    """(..., F) int: the index of each factor's value nearest to each point (..., F); NumPy or JAX.
    A missing value is nearest to the first."""
    numpy = numpy_of(points)
    points, indices = numpy.asarray(points), []
    for index, factor in enumerate(factors):
        values = numpy.asarray(factor.values, numpy.float32)
        apart = abs(points[..., index, None] - values.reshape((1,) * (points.ndim - 1) + (-1,)))
        if math.isfinite(factor.period):
            apart = numpy.minimum(apart % factor.period, -apart % factor.period)
        indices.append(numpy.argmin(apart, axis=-1))
    return numpy.stack(indices, axis=-1)


def nearest_cell(factors, points):
    """(...,) int: the index of the cell nearest to each point (..., F)."""
    return nearest_values(factors, points) @ np.cumprod([1, *counts(factors)[:-1]])


def geometry(factors) -> dict:
    """The arguments of `grids.nearest_seen` that say how far apart cells are."""
    periods = [
        factor.period / float(np.mean(np.diff(factor.values)))
        if math.isfinite(factor.period) and len(factor.values) > 1
        else None
        for factor in factors
    ]
    ordered = tuple(factor.real for factor in factors)
    return {"sizes": counts(factors), "ordered": ordered, "periods": tuple(periods)}


# --- the nearest seen point ------------------------------------------------------------------


def nearest_seen(task: Task, held_out_B, fixed=()):
    """(indices (B,), distances (B,)) of the nearest seen point of every point, in cells of a grid
    or else in values; if possible with the same values of the `fixed` factors, (F,) bool.
    ValueError if no point is seen."""
    if has_grid(task):
        return grids.nearest_seen(held_out_B, **geometry(task.factors), fixed=fixed)
    held_out = np.asarray(held_out_B)
    seen = np.flatnonzero(~held_out)
    if not len(seen):
        raise ValueError("held_out must leave some point seen")
    from scipy.spatial import cKDTree  # takes a fifth of a second to import

    distances, index = cKDTree(task.points[seen]).query(task.points)
    index = seen[index]
    if any(fixed):
        _, group_B = np.unique(points(task)[:, np.asarray(fixed)], axis=0, return_inverse=True)
        group_B = group_B.reshape(-1)
        for group in np.unique(group_B[held_out]):
            in_group = group_B == group
            if (in_group & ~held_out).any():
                same = nearest_seen(task, held_out | ~in_group)
                index[in_group], distances[in_group] = (array_B[in_group] for array_B in same)
    return index, distances


def map_axes(factors, held_out_B) -> tuple[int, ...]:
    """The first two factors with whose values the share of held-out cells changes, or others."""
    indices = grids.indices(counts(factors)).T
    shares = [np.bincount(index, held_out_B) / np.bincount(index) for index in indices]
    alike = np.array([np.ptp(share) < 1e-9 for share in shares])
    return tuple(sorted(np.argsort(alike, kind="stable")[:2].tolist()))


def nearest_of_all(task: Task, fixed=()):
    """The nearest seen point of each of the task's, (B, F), and its distance (B,); one with the
    same values of the `fixed` factors, (F,) bool, if there are any. Where these are some of the
    cells, among all that are seen, measured or not."""
    own_points = points(task)
    if task.rows_B is None and not has_grid(task):
        index, distances = nearest_seen(task, regions(task)["ood"], fixed)
        return own_points[index], distances
    every, cell = cells(task.factors), nearest_cell(task.factors, own_points)
    unseen = _mask(task.held_out, every) | (task.rows_B == 0)  # False where it is None
    index, distances = grids.nearest_seen(unseen, **geometry(task.factors), fixed=fixed)
    return every[index[cell]], distances[cell]


def with_lookups_along_factors(task: Task) -> Task:
    """With `nearest_along_FACTOR` on a grid: the truth at the nearest seen point that differs in
    this factor alone."""
    if not has_grid(task):
        return task
    lookups = {}
    for factor in task.factors:
        fixed = [other is not factor for other in task.factors]
        index, _ = nearest_seen(task, regions(task)["ood"], fixed)
        lookups[f"nearest_along_{factor.name}"] = lambda query, index=index: query.truths[index]
    return task._replace(baselines=task.baselines | lookups)


def with_additions(task: Task) -> Task:
    """With `additive` and, where answers are images, `nearest_shifted` of the ID point with the
    same labels and angles. Only where the input is one code, which names the factors."""
    code, target = example_shapes(task)[1]
    answer = jax.eval_shape(partial(truth, task), target)
    if not (task.interpolated and isinstance(code, jax.ShapeDtypeStruct) and code.ndim == 1):
        return task
    indices_BxF = nearest_values(task.factors, points(task))
    added = {"additive": partial(baselines.additive, indices_BxF=indices_BxF)}
    moves_F = np.array([factor.real and math.isinf(factor.period) for factor in task.factors])
    if moves_F.any() and answer.ndim > 1:
        shift = {"nearest_BxF": nearest_of_all(task, ~moves_F)[0], "moves_F": moves_F}
        added["nearest_shifted"] = partial(baselines.nearest_shifted, **shift)
    return task._replace(baselines=task.baselines | added)


# --- examples and scores ---------------------------------------------------------------------


def examples_at(task: Task, key, points) -> Example:
    return jax.vmap(task.example)(jax.random.split(key, len(points)), points)


def shapes(task: Task) -> tuple:
    """(input, output) of a model of the task as `jax.ShapeDtypeStruct`s; nothing is compiled."""
    example = example_shapes(task)[1]
    return example.input, example.target if task.output is None else task.output


def example_shapes(task: Task) -> tuple:
    point = jax.ShapeDtypeStruct((len(task.factors),), jnp.float32)
    return point, jax.eval_shape(task.example, jax.eval_shape(jax.random.key, 0), point)


def truth(task: Task, target):
    return (task.truth or task.prediction)(target)


def headline(task: Task) -> str:
    """The score of a right answer: `rendered`, else the task's accuracy; '' without one."""
    return "rendered" if "rendered" in score_names(task) else task.accuracy


def score_names(task: Task) -> tuple[str, ...]:
    point, (_, target) = example_shapes(task)
    prediction = jax.eval_shape(partial(truth, task), target)
    return tuple(sorted(jax.eval_shape(task.scores, prediction, prediction, point)))


def number_names(task: Task) -> tuple[str, ...]:
    scores = score_names(task)
    return tuple(sorted({*scores, *task.derived(dict.fromkeys(scores, 1.0))}))


def regions(task: Task) -> dict:
    """{'id', 'ood'}: which of the task's points (B,) bool."""
    held_out = _mask(task.held_out, points(task))
    return {"id": ~held_out, "ood": held_out}


def trivial_scores(task: Task, key) -> dict[str, dict]:
    """{predictor: {score: (B,)}} on the examples that `key` makes; traceable in the key."""
    known = query(task, key)
    return {
        name: jax.vmap(task.scores)(predict(known), known.truths, known.points)
        for name, predict in task.baselines.items()
    }


def query(task: Task, key) -> baselines.Query:
    """What the trivial predictors know of the task's points; traceable in the key."""
    own_points, held_out = points(task), regions(task)["ood"]
    nearest, _ = nearest_of_all(task)
    same_labels, _ = nearest_of_all(task, [not factor.real for factor in task.factors])
    if not has_grid(on_grid(task)) and task.nearest is not None:
        of_all = np.asarray(task.nearest(own_points))
        nearest = np.where(np.isnan(of_all), own_points, of_all)

    def truths_of(key_data, points):
        key = jax.random.wrap_key_data(key_data)
        return jax.vmap(partial(truth, task))(examples_at(task, key, points).target)

    truths_at = jax.tree_util.Partial(truths_of, jax.random.key_data(key))  # leaves a `jit`
    inputs = examples_at(task, key, own_points).input
    truths = [truths_at(points) for points in (own_points, nearest, same_labels)]
    return baselines.Query(own_points, inputs, *truths[:2], held_out, truths[2], truths_at)


def _mask(held_out, points):
    """(B,) bool NumPy, also where a program is being traced."""
    with jax.ensure_compile_time_eval():  # as `held_out` may use jax
        return np.asarray(held_out(points))


def real_points(task: Task, key, count: int):
    """(count, F) real points, uniform over the seen part of the box that the cells span; (0, F) if
    there are none."""
    factors = task.factors
    if not (task.between and has_grid(on_grid(task)) and any(factor.real for factor in factors)):
        return jnp.zeros((0, len(factors)))
    firsts = jnp.array([float(factor.values[0]) for factor in factors])
    extents = [  # once round, for an angle
        factor.period if math.isfinite(factor.period) else float(np.ptp(factor.values))
        for factor in factors
    ]

    def with_labels(key, point):
        for index, factor in enumerate(factors):
            if not factor.real:
                values = jnp.asarray(factor.values, jnp.float32)
                label = jax.random.choice(jax.random.fold_in(key, index), values)
                point = point.at[index].set(label)
        return point

    def draw(key):
        rejected = lambda point: task.held_out(with_labels(key, point))
        return with_labels(key, sampling.by_rejection(key, firsts, jnp.array(extents), rejected))

    return jax.vmap(draw)(jax.random.split(key, count))
