"""What can be trained: checked by shapes, before anything is compiled, as a user's own task and
model may give anything."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

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
    """The task of `config`. Raises ConfigError, before anything is compiled, for a task or a model
    that is impossible, and for an endless run."""
    with in_own_files(config.task, config.model):
        task = config.task.make()
        if is_own(config.task) or is_own(config.model):
            shapes = check_task(config.task.name, task)
            _check_model(config, config.model.make(shapes), shapes)
        else:
            config.model.make(shapes_of(task))
    hint = "points that are drawn afresh have no epochs; give the run's length in steps"
    require(task.examples or config.training.steps, "training.steps", 0, hint)
    schedule = config.training.schedule
    lacks = "looks at the loss of epochs, and points that are drawn afresh have none"
    fits = schedule != "plateau" or task.examples
    require(fits, "training.schedule", schedule, f"{lacks}; say constant or cosine")
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
    unique = len(set(names)) == len(names)
    demand(unique, f"{name}: two factors have one name: {', '.join(names)}")
    for factor in task.factors:
        values = np.asarray(factor.values)
        ascending = values.ndim == 1 and values.size and (np.diff(values) > 0).all()
        demand(ascending, f"{name}: factor {factor.name!r}: its values must be ascending numbers")
    point, example = tasks.example_shapes(task)
    right = isinstance(example, Example) and all(map(jax.tree.leaves, example))
    hint = "not an Example(input, target) of arrays"
    demand(right, f"{name}: example returned {_kind(example)}, {hint}")
    shapes, points = shapes_of(task), tasks.points(task)
    mask = np.asarray(task.held_out(points))
    right = mask.shape == (len(points),) and mask.dtype == bool
    hint = f"for points {points.shape}, not bool {(len(points),)}"
    demand(right, f"{name}: held_out returned {mask.dtype} {mask.shape} {hint}")
    leaves = jax.tree.leaves(shapes.output)
    are_shapes = all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves)
    hint = "must hold arrays, or jax.ShapeDtypeStruct(shape, dtype)"
    demand(are_shapes, f"{name}: output={shapes.output!r}: {hint}")
    dtypes = [leaf.dtype for leaf in jax.tree.leaves((example, shapes.output))]
    is_complex = any(jnp.issubdtype(dtype, jnp.complexfloating) for dtype in dtypes)
    hint = "its examples hold complex numbers; give real and imaginary parts instead"
    demand(not is_complex, f"{name}: {hint}")
    loss = jax.eval_shape(task.loss, shapes.output, example.target)
    is_scalar = isinstance(loss, jax.ShapeDtypeStruct) and loss.shape == ()
    demand(is_scalar, f"{name}: loss returned {_described(loss)}, not a scalar")
    prediction = jax.eval_shape(task.prediction, shapes.output)
    truth = jax.eval_shape(partial(tasks.truth, task), example.target)
    pair = f"prediction returned {_described(prediction)}, and truth {_described(truth)}"
    alike = _described(prediction) == _described(truth)
    demand(alike, f"{name}: {pair}: they must have one shape")
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
    name = config.model.name
    right = hasattr(module, "init") and hasattr(module, "apply")
    demand(right, f"{name}: make(shapes) returned {_kind(module)}, not a Flax module")
    misplaced = ", ".join(name for name in OF_THE_FAMILY if hasattr(module, name))
    hint = f"of its module: say it in the class {name}"
    demand(not misplaced, f"{name}: {misplaced} {hint}")
    variables = jax.eval_shape(module.init, jax.eval_shape(jax.random.key, 0), shapes.input)
    has_parameters = models.size(models.trained(variables)) > 0
    demand(has_parameters, f"{name}: its module has no parameters, so nothing can be trained")
    pair = jax.tree.map(lambda s: jax.ShapeDtypeStruct((2, *s.shape), s.dtype), shapes.input)
    answer = jax.eval_shape(partial(config.model.apply, module), variables, pair)
    right = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)
    demand(right and answer[1], f"{name}: its module returned {_kind(answer)}, not {ACTIVATIONS}")
    output, activations = answer
    layers = all(isinstance(layer, jax.ShapeDtypeStruct) for layer in activations.values())
    demand(layers, f"{name}: each of its activations must be one array")
    empty = [layer for layer, array in activations.items() if not array.size]
    demand(not empty, f"{name}: its activations {', '.join(empty)} are empty arrays")
    output = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape[1:], s.dtype), output)
    actual, wanted = _described(output), _described(shapes.output)
    demand(actual == wanted, f"{name}: its output is {actual}, and the task asks for {wanted}")


def _described(tree) -> str:
    """Shapes as a person writes them: '(16, 16)', or of a tree "{'a': (3,), 'b': ()}"."""
    return str(jax.tree.map(lambda leaf: tuple(leaf.shape), tree))


def _kind(value) -> str:
    if isinstance(value, jax.ShapeDtypeStruct):
        return "one array"
    return "an empty dict" if value == {} else f"a {type(value).__name__}"
