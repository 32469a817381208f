"""What can be trained: a user's own task and model are checked by shapes."""

from functools import partial

import jax
import numpy as np
from flax import linen as nn

from compgen_jax.config import Config, ConfigError
from compgen_jax.models import model as models
from compgen_jax.models.model import Shapes
from compgen_jax.settings import demand, in_own_files, is_own, require
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Example, Task
from compgen_jax.training.loop import shapes_of

OF_THE_FAMILY = "batched", "training_mode", "sees_target"
ACTIVATIONS = "(output, activations): an array, and a dict of at least one array by layer name"


def check(config: Config) -> Task:
    """The task of `config`. Raises ConfigError, before anything is compiled, for a task, a model or
    a length of training that is impossible."""
    with in_own_files(config.task, config.model):
        task = config.task.make()
        if is_own(config.task) or is_own(config.model):
            shapes = check_task(config.task.name, task)
            _check_model(config, config.model.make(shapes), shapes)
        else:
            config.model.make(shapes_of(task))
    training, hint = config.training, "points that are drawn afresh have no epochs"
    require(task.examples or training.steps, "training.steps", 0, f"{hint}; give a number of steps")
    fits = task.examples or training.schedule != "plateau"
    require(fits, "training.schedule", training.schedule, f"{hint}; say constant or cosine")
    return task


def check_dataset(task: Task, seed: int, dataset):
    """Raises ConfigError, naming the seed, for a data set that its task refuses."""
    try:
        task.check(jax.device_get(dataset))
    except ConfigError as error:
        raise ConfigError(f"the draw of seed {seed}: {error}") from error


def check_task(name: str, task) -> Shapes:
    """The shapes of its examples and outputs. Raises ConfigError unless models can be trained and
    scored on it."""
    demand(isinstance(task, Task), f"{name}: make() returned {_kind(task)}, not a Task")
    names = [factor.name for factor in task.factors]
    unique = len({*names}) == len(names)
    demand(unique, f"{name}: two factors have one name: {', '.join(names)}")
    for factor in task.factors:
        values = np.asarray(factor.values)
        ascending = values.ndim == 1 and values.size and (np.diff(values) > 0).all()
        demand(ascending, f"{name}: factor {factor.name!r}: its values must be ascending numbers")
    point, example = tasks.example_shapes(task)
    right = isinstance(example, Example) and all(map(jax.tree.leaves, example))
    wanted = "not an Example(input, target) of arrays"
    demand(right, f"{name}: example returned {_kind(example)}, {wanted}")
    shapes, points = shapes_of(task), tasks.points(task)
    mask = np.asarray(task.held_out(points))
    right = mask.shape == points.shape[:1] and mask.dtype == bool
    wanted = f"for points {points.shape}, not bool {points.shape[:1]}"
    demand(right, f"{name}: held_out returned {mask.dtype} {mask.shape} {wanted}")
    leaves = jax.tree.leaves(shapes.output)
    are_shapes = all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves)
    wanted = "must hold arrays, or jax.ShapeDtypeStruct(shape, dtype)"
    demand(are_shapes, f"{name}: output={shapes.output!r}: {wanted}")
    loss = jax.eval_shape(task.loss, shapes.output, example.target)
    is_scalar = _described(loss) == "()"
    demand(is_scalar, f"{name}: loss returned {_described(loss)}, not a scalar")
    prediction = jax.eval_shape(task.prediction, shapes.output)
    truth = jax.eval_shape(partial(tasks.truth, task), example.target)
    actual, wanted = _described(prediction), _described(truth)
    pair = f"prediction returned {actual}, and truth {wanted}"
    demand(actual == wanted, f"{name}: {pair}: they must have one shape")
    scores = jax.eval_shape(task.scores, prediction, truth, point)
    are_scalars = isinstance(scores, dict) and not any(value.shape for value in scores.values())
    demand(are_scalars, f"{name}: scores returned {_described(scores)}, not a dict of scalars")
    for field in ("error", "accuracy"):
        score = getattr(task, field)
        known = score in scores or (field == "accuracy" and not score)
        demand(known, f"{name}: {field}={score!r} is none of its scores: {', '.join(scores)}")
    return shapes


def _check_model(config: Config, module, shapes: Shapes):
    """That the module maps an input to (output, activations), with the output that the task asks
    for."""
    name, right = config.model.name, isinstance(module, nn.Module)
    demand(right, f"{name}: make(shapes) returned {_kind(module)}, not a Flax module")
    for field in OF_THE_FAMILY:
        hint = f"of its module: say it in the class {name}"
        demand(not hasattr(module, field), f"{name}: {field} {hint}")
    variables = jax.eval_shape(module.init, jax.eval_shape(jax.random.key, 0), shapes.input)
    trained = models.trained(variables)
    demand(models.size(trained), f"{name}: its module has no parameters, so nothing can be trained")
    pair = jax.tree.map(lambda s: jax.ShapeDtypeStruct((2, *s.shape), s.dtype), shapes.input)
    answer = jax.eval_shape(partial(config.model.apply, module), variables, pair)
    right = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)
    demand(right and answer[1], f"{name}: its module returned {_kind(answer)}, not {ACTIVATIONS}")
    output, activations = answer
    layers = all(isinstance(layer, jax.ShapeDtypeStruct) for layer in activations.values())
    demand(layers, f"{name}: each of its activations must be one array")
    output = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape[1:], s.dtype), output)
    actual, wanted = _described(output), _described(shapes.output)
    demand(actual == wanted, f"{name}: its output is {actual}, and the task asks for {wanted}")


def _described(tree) -> str:
    """Shapes as a person writes them: '(16, 16)', or of a tree "{'a': (3,), 'b': ()}"."""
    return str(jax.tree.map(lambda leaf: tuple(leaf.shape), tree))


def _kind(value) -> str:
    is_array = isinstance(value, jax.ShapeDtypeStruct)
    return "one array" if is_array else f"a {type(value).__name__}"
