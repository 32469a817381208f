"""The tasks whose trials share a program, and the models that serve them.

Mostly that is one task with its model. Several are tasks of one kind on grids of different sizes:
each has a model of its own, and all of them are padded to the last, the largest
(`training.padding`), so that one program trains and scores them all.
"""

from collections.abc import Callable
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


class TaskGroup:
    """The tasks of a program, and the models that `config` makes for them, as pure functions of one
    trial. `task_index` (traced) says which of the tasks the trial has.

    A batch has a leading axis B. `params` are a model's variables, padded to the largest one's.
    """

    def __init__(self, config: Config, members: tuple[Task, ...], lowering: str = "lax"):
        self.config, self.members, self.largest = config, members, members[-1]
        self.shapes = [shapes_of(task, lowering) for task in members]
        self.modules = [config.model.make(shapes) for shapes in self.shapes]
        self.module, self.is_padded = self.modules[-1], len(members) > 1

    def init(self, key, task_index):
        """A model's initial variables."""

        def of_task(k, key):
            zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), self.shapes[k].input)
            params = self.modules[k].init(key, zeros)
            if self.members[k] is self.largest:
                return params
            like = jax.eval_shape(self.module.init, key, self.shapes[-1].input)
            parts = self.members[k].parts
            return self.config.model.pad_params(params, like, parts, self.largest.parts)

        return self._by_task(task_index, of_task, key)

    def render(self, key, points, task_index) -> Example:
        """The examples of points (B, F), leaves (B, ...)."""

        def of_task(k, key, points):
            task = self.members[k]
            batch = tasks.examples_at(task, key, points)
            if not self.is_padded:
                return batch
            pad_code = partial(padding.pad_code, parts=task.parts, parts_like=self.largest.parts)
            pad_target = partial(padding.pad, shape=self.shapes[-1].output.shape)
            return Example(jax.vmap(pad_code)(batch.input), jax.vmap(pad_target)(batch.target))

        return self._by_task(task_index, of_task, key, points)

    def train(self, params, batch: Example, counts_B, task_index, key):
        """(outputs, variables) of a batch in training, of which the examples `counts_B` count."""
        if self.is_padded:
            return self._run_padded(params, batch.input, task_index), params
        return models.train_apply(self.module, params, batch, counts_B, key)

    def decode(self, params, inputs, task_index):
        """The outputs of inputs (B, ...), some at once."""
        if self.is_padded:
            one = lambda inputs: self._run_padded(params, inputs, task_index)
        elif getattr(self.module, "batched", False):
            one = lambda inputs: models.apply(self.module, params, inputs)[0]
        else:
            one = lambda inputs: self.module.apply(params, inputs)[0]
        at_once = getattr(self.module, "decode_batch", DECODE_BATCH)
        return jax.lax.map(one, inputs, batch_size=at_once)

    def _run_padded(self, params, inputs, task_index):
        sides = jnp.array([shapes.output.shape[0] for shapes in self.shapes])
        return self.module.apply(params, inputs, sides[task_index])[0]

    def losses(self, outputs, targets, task_index):
        """(B,): the task's loss of every example."""

        def of_task(k, outputs, targets):
            crop = partial(self._crop, k)
            loss = lambda output, target: self.members[k].loss(crop(output), crop(target))
            return jax.vmap(loss)(outputs, targets)

        return self._by_task(task_index, of_task, outputs, targets)

    def scores(self, outputs, targets, points, task_index, nearest=None) -> dict:
        """The task's scores by name, (B,) each; `nearest` (B, F) is `Task.nearest` of the trial's
        own support, by default of the task's."""

        def of_task(k, outputs, targets, *points):
            task = self.members[k]

            def of_example(output, target, *points):
                output, target = self._crop(k, output), self._crop(k, target)
                return task.scores(task.prediction(output), tasks.truth(task, target), *points)

            scores = jax.vmap(of_example)(outputs, targets, *points)
            return {name: values.astype(jnp.float32) for name, values in scores.items()}

        points = (points,) if nearest is None else (points, nearest)
        return self._by_task(task_index, of_task, outputs, targets, *points)

    def _crop(self, k: int, array):
        """The part of an output that the k-th task has without padding."""
        return padding.crop(array, self.shapes[k].output.shape) if self.is_padded else array

    def _by_task(self, task_index, of_task: Callable, *arguments):
        """of_task(k, *arguments) for the trial's own k; the results of all k have equal shapes."""
        functions = [partial(of_task, k) for k in range(len(self.members))]
        if len(functions) == 1:
            return functions[0](*arguments)
        return jax.lax.switch(task_index, functions, *arguments)
