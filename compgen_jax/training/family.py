"""The tasks whose trials share a program, and the models that serve them.

Mostly that is one task with its model. Several are tasks of one kind on grids of different sizes:
each has a model of its own, and all of them are padded to the last, the largest
(`training.padding`), so that one program trains and judges them all.
"""

from functools import partial

import jax
import jax.numpy as jnp

from compgen_jax.config import Config
from compgen_jax.models import model as models
from compgen_jax.models.model import Shapes
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Example, Task
from compgen_jax.training import padding

DECODE_BATCH = 128  # points decoded at once: bounds the memory of an evaluation


def shapes_of(task: Task, lowering: str = "lax") -> Shapes:
    """What a model of the task is built from."""
    return Shapes(*tasks.shapes(task), lowering, task.parts)


class Family:
    """`of` these tasks, the models that `config` makes for them, as pure functions of one trial,
    `which` of the tasks it has (traced).

    A batch has a leading axis B; `params` are a model's variables, padded to the largest one's.
    """

    def __init__(self, config: Config, of: tuple[Task, ...], lowering: str = "lax"):
        self.config, self.of, self.largest = config, of, of[-1]
        self.shapes = [shapes_of(task, lowering) for task in of]
        self.modules = [config.model.make(each) for each in self.shapes]
        self.module, self.several = self.modules[-1], len(of) > 1

    def init(self, key, which):
        """A model's initial variables."""
        functions = [partial(self._init_one, k) for k in range(len(self.of))]
        return padding.by_task(which, functions, key)

    def _init_one(self, k: int, key):
        zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), self.shapes[k].input)
        params = self.modules[k].init(key, zeros)
        if self.of[k] is self.largest:
            return params
        like = jax.eval_shape(self.module.init, key, self.shapes[-1].input)
        return self.config.model.pad_params(params, like, self.of[k].parts, self.largest.parts)

    def render(self, key, points, which) -> Example:
        """The examples of points (B, F), leaves (B, ...)."""
        functions = [partial(self._render_one, task) for task in self.of]
        return padding.by_task(which, functions, key, points)

    def _render_one(self, task: Task, key, points) -> Example:
        batch = tasks.examples_at(task, key, points)
        if not self.several:
            return batch
        pad_code = partial(padding.pad_code, parts=task.parts, parts_like=self.largest.parts)
        pad_target = partial(padding.pad, shape=self.shapes[-1].output.shape)
        return Example(jax.vmap(pad_code)(batch.input), jax.vmap(pad_target)(batch.target))

    def train(self, params, inputs, counts_B, which, key):
        """(outputs, variables) of a batch in training, of which the examples `counts_B` count."""
        if self.several:
            return self._run_padded(params, inputs, which), params
        return models.train_apply(self.module, params, inputs, counts_B, key)

    def decode(self, params, inputs, which):
        """The outputs of inputs (B, ...), some at once."""
        if self.several:
            one = lambda inputs: self._run_padded(params, inputs, which)
        elif getattr(self.module, "batched", False):
            one = lambda inputs: models.apply(self.module, params, inputs)[0]
        else:
            one = lambda inputs: self.module.apply(params, inputs)[0]
        at_once = getattr(self.module, "decode_batch", DECODE_BATCH)
        return jax.lax.map(one, inputs, batch_size=at_once)

    def _run_padded(self, params, inputs, which):
        sides = jnp.array([each.output.shape[0] for each in self.shapes])
        return self.module.apply(params, inputs, sides[which])[0]

    def losses(self, outputs, targets, which):
        """(B,): the task's loss of every example."""
        functions = [partial(self._losses_one, k) for k in range(len(self.of))]
        return padding.by_task(which, functions, outputs, targets)

    def _losses_one(self, k: int, outputs, targets):
        own = partial(self._own, k)
        return jax.vmap(lambda o, t: self.of[k].loss(own(o), own(t)))(outputs, targets)

    def scores(self, outputs, targets, points, which, nearest=None) -> dict:
        """The task's scores by name, (B,) each; `nearest` (B, F) as `Task.nearest` of the trial's
        own support, by default of the task's."""
        functions = [partial(self._scores_one, k) for k in range(len(self.of))]
        nearest = () if nearest is None else (nearest,)
        return padding.by_task(which, functions, outputs, targets, points, *nearest)

    def _scores_one(self, k: int, outputs, targets, *points) -> dict:
        task = self.of[k]

        def of_one(output, target, *points):
            output, target = self._own(k, output), self._own(k, target)
            return task.scores(task.prediction(output), tasks.truth(task, target), *points)

        found = jax.vmap(of_one)(outputs, targets, *points)
        return {name: values.astype(jnp.float32) for name, values in found.items()}

    def _own(self, k: int, array):
        """The part of an output that is the k-th task's own."""
        return padding.crop(array, self.shapes[k].output.shape) if self.several else array
