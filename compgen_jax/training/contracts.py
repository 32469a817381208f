"""What a user's own task and model must give: checked by shapes, before anything is compiled."""

import contextlib
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config
from compgen_jax.models import model as models
from compgen_jax.models.model import Shapes
from compgen_jax.settings import demand
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Example, Task
from compgen_jax.training.task_group import shapes_of

ACTIVATIONS = "(output, activations): an array, and a dict of at least one array by layer name"


def check(config: Config, task):
    """Raises ConfigError unless the task that `config` makes, and the model, can be trained."""
    shapes = check_task(config.task.name, task)
    _check_model(config.model.name, config.model.make(shapes), shapes)


def check_task(name: str, task) -> Shapes:
    """The shapes of its examples and outputs. Raises ConfigError unless models can be trained and
    scored on what the task of this name makes: a Task of named, ordered factors, whose functions
    take its points, examples and outputs, and return what they should."""
    demand(isinstance(task, Task), f"{name}: make() returned {_kind(task)}, not a Task")
    names = [factor.name for factor in task.factors]
    once = len(set(names)) == len(names)
    demand(once, f"{name}: two factors have one name: {', '.join(names)}")
    for factor in task.factors:
        values = np.asarray(factor.values)
        ascending = values.ndim == 1 and values.size and (np.diff(values) > 0).all()
        demand(ascending, f"{name}: factor {factor.name!r}: its values must be ascending numbers")
    made = tasks.example_shapes(task)[1]
    right = isinstance(made, Example) and all(map(jax.tree.leaves, made))
    hint = f"{name}: example returned {_kind(made)}, not an Example(input, target) of arrays"
    demand(right, hint)
    shapes, (point, example) = shapes_of(task), tasks.example_shapes(task)
    points = tasks.points(task)
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
    said, true = _described(prediction), _described(truth)
    hint = f"prediction returned {said}, and truth {true}: they must have one shape"
    demand(said == true, f"{name}: {hint}")
    scores = jax.eval_shape(task.scores, prediction, truth, point)
    are_scalars = isinstance(scores, dict) and not any(one.shape for one in scores.values())
    demand(are_scalars, f"{name}: scores returned {_described(scores)}, not a dict of scalars")
    for field in ("error", "accuracy"):
        score = getattr(task, field)
        known = score in scores or (field == "accuracy" and not score)
        demand(known, f"{name}: {field}={score!r} is none of its scores: {', '.join(scores)}")
    return shapes


def _check_model(name: str, module, shapes: Shapes):
    """That the module maps an input to (output, activations), with the output that the task asks
    for."""
    right = hasattr(module, "init") and hasattr(module, "apply")
    demand(right, f"{name}: make(shapes) returned {_kind(module)}, not a Flax module")
    variables = jax.eval_shape(module.init, jax.eval_shape(jax.random.key, 0), shapes.input)
    has_parameters = models.size(models.trained(variables)) > 0
    demand(has_parameters, f"{name}: its module has no parameters, so nothing can be trained")
    pair = jax.tree.map(lambda s: jax.ShapeDtypeStruct((2, *s.shape), s.dtype), shapes.input)
    made = jax.eval_shape(partial(models.apply, module), variables, pair)
    right = isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], dict) and made[1]
    demand(right, f"{name}: its module returned {_kind(made)}, not {ACTIVATIONS}")
    output, activations = made
    layers = all(isinstance(layer, jax.ShapeDtypeStruct) for layer in activations.values())
    demand(layers, f"{name}: each of its activations must be one array")
    empty = [layer for layer, array in activations.items() if not array.size]
    demand(not empty, f"{name}: its activations {', '.join(empty)} are empty arrays")
    given = _described(jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape[1:], s.dtype), output))
    asked = _described(shapes.output)
    demand(given == asked, f"{name}: its output is {given}, and the task asks for {asked}")


@contextlib.contextmanager
def compiled():
    """Yields a list, to which the name of every function is added that jax compiles inside."""
    names = []

    def note(event, _, fun_name="", **__):
        if event.endswith("/backend_compile_duration"):
            names.append(fun_name.removeprefix("jit(").removesuffix(")"))

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        yield names
    finally:
        jax.monitoring.unregister_event_duration_listener(note)


def _described(tree) -> str:
    """Shapes as a person writes them: '(16, 16)', or of a tree "{'a': (3,), 'b': ()}"."""
    return str(jax.tree.map(lambda leaf: tuple(leaf.shape), tree))


def _kind(value) -> str:
    if isinstance(value, jax.ShapeDtypeStruct):
        return "one array"
    return "an empty dict" if value == {} else f"a {type(value).__name__}"
