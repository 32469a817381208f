"""Tasks on grids of different sizes, padded to the largest, so that one program trains them all.

Everything is padded with zeros; a model masks what lies beyond its grid after every nonlinearity,
and padded parameters get no gradient: a padded run is the unpadded one, to float rounding.
"""

import jax
import jax.numpy as jnp
from jax.lax import switch

from compgen_jax.config import Config
from compgen_jax.models.model import split
from compgen_jax.tasks.task import Example, Task
from compgen_jax.training.loop import Network


def group_grids(grids, max_waste: float) -> list[tuple]:
    """The grids, cut into ascending groups that waste less than `max_waste` of their work; 0 leaves
    each by itself."""
    groups = []
    for grid in sorted(set(grids), reverse=True):
        if groups:
            together = grid, *groups[-1]
            work = sum((side / max(together)) ** 2 for side in together) / len(together)
            if 1 - work < max_waste:
                groups[-1] = together
                continue
        groups.append((grid,))
    return groups


class Member(Network):
    """One of several tasks: its examples and parameters are padded to the largest one's."""

    def __init__(self, config: Config, lowering: str, task: Task, largest: Network):
        super().__init__(config, lowering, task)
        self.largest = largest

    def init(self, key, task_index=0):
        params = super().init(key)
        if self.task is self.largest.task:
            return params
        like = jax.eval_shape(self.largest.init, key)
        return self.model.pad_params(params, like, self.task.parts, self.largest.task.parts)

    def examples(self, key, points, task_index=0) -> Example:
        codes, targets = super().examples(key, points)
        pairs = zip(split(codes, self.task.parts), self.largest.task.parts, strict=True)
        parts = [jnp.pad(part, [(0, 0), (0, length - part.shape[1])]) for part, length in pairs]
        pairs = zip(targets.shape[1:], self.largest.shapes.output.shape, strict=True)
        beyond = [(0, length - short) for short, length in pairs]
        return Example(jnp.concatenate(parts, axis=1), jnp.pad(targets, [(0, 0), *beyond]))

    def losses(self, outputs, targets, task_index=0):
        return super().losses(self._cropped(outputs), self._cropped(targets))

    def scores(self, outputs, targets, points, task_index=0, nearest=None) -> dict:
        pair = self._cropped(outputs), self._cropped(targets)
        return super().scores(*pair, points, task_index, nearest)

    def _cropped(self, batch):
        return batch[:, *(slice(0, length) for length in self.shapes.output.shape)]


class PaddedNetwork:
    """The functions of `Network` for several tasks, padded to the last, the largest. `task_index`
    (traced) says which of them the trial has."""

    def __init__(self, config: Config, lowering: str, members: tuple[Task, ...]):
        self.largest = Network(config, lowering, members[-1])
        self.task = self.largest.task
        self.members = [Member(config, lowering, task, self.largest) for task in members]

    def init(self, key, task_index):
        return switch(task_index, [member.init for member in self.members], key)

    def examples(self, key, points, task_index) -> Example:
        return switch(task_index, [member.examples for member in self.members], key, points)

    def train(self, params, batch, counts_B, task_index, key):
        return self._apply(params, batch.input, task_index), params

    def decode(self, params, inputs, task_index):
        decode = lambda code: self._apply(params, code, task_index)
        return jax.lax.map(decode, inputs, batch_size=self.largest.model.decode_batch)

    def losses(self, outputs, targets, task_index):
        return switch(task_index, [member.losses for member in self.members], outputs, targets)

    def scores(self, outputs, targets, points, task_index, nearest=None) -> dict:
        functions = [member.scores for member in self.members]
        return switch(task_index, functions, outputs, targets, points, 0, nearest)

    def _apply(self, params, inputs, task_index):
        sides = jnp.array([member.shapes.output.shape[0] for member in self.members])
        return self.largest.module.apply(params, inputs, sides[task_index])[0]
