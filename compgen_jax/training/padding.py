"""Tasks on grids of different sizes, padded to the largest, so that one program trains them all.

A model masks what lies beyond its grid after every nonlinearity, and padded parameters get no
gradient: a padded run is the unpadded one, to float rounding.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from compgen_jax.config import Config
from compgen_jax.models.model import split
from compgen_jax.tasks.task import Example, Task
from compgen_jax.training.loop import Network


def group_grids(grids, max_waste: float) -> list[tuple]:
    """The grids, cut into ascending groups that waste less than `max_waste` of their work."""
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


class PaddedNetwork(Network):
    """The functions of `Network` for several tasks, padded to the last, the largest. `task_index`
    (traced) says which of them the trial has."""

    def __init__(self, config: Config, lowering: str, members: tuple[Task, ...]):
        super().__init__(config, lowering, members[-1])
        self.members = [Network(config, lowering, task) for task in members]

    def switch(self, task_index, of_member: Callable, *arguments):
        """of_member(network, *arguments) of the trial's task."""
        branches = [partial(of_member, member) for member in self.members]
        return jax.lax.switch(task_index, branches, *arguments)

    def init(self, key, task_index):
        like = jax.eval_shape(super().init, key)

        def padded(member, key):
            params = member.init(key)
            if member.task is self.task:
                return params
            return self.model.pad_params(params, like, member.task.parts, self.task.parts)

        return self.switch(task_index, padded, key)

    def examples(self, key, points, task_index) -> Example:
        def padded(member, key, points):
            codes, targets = member.examples(key, points)
            pairs = zip(split(codes, member.task.parts), self.task.parts, strict=True)
            parts = [jnp.pad(part, [(0, 0), (0, length - part.shape[1])]) for part, length in pairs]
            pairs = zip(targets.shape[1:], self.shapes.output.shape, strict=True)
            beyond = [(0, length - short) for short, length in pairs]
            return Example(jnp.concatenate(parts, axis=1), jnp.pad(targets, [(0, 0), *beyond]))

        return self.switch(task_index, padded, key, points)

    def train(self, params, batch, counts_B, task_index, key):
        return self.apply(params, batch.input, task_index), params

    def apply(self, params, inputs, task_index):
        sides = jnp.array([member.shapes.output.shape[0] for member in self.members])
        return self.module.apply(params, inputs, sides[task_index])[0]

    def losses(self, outputs, targets, task_index):
        def of_member(member, *pair):
            return member.losses(*cropped(member, pair))

        return self.switch(task_index, of_member, outputs, targets)

    def scores(self, outputs, targets, points, task_index, nearest=None) -> dict:
        def of_member(member, outputs, targets, points, nearest):
            pair = cropped(member, (outputs, targets))
            return member.scores(*pair, points, nearest=nearest)

        return self.switch(task_index, of_member, outputs, targets, points, nearest)


def cropped(network: Network, batches) -> list:
    """Batches (B, ...) of padded outputs as the network's task has them."""
    corner = [slice(length) for length in network.shapes.output.shape]
    return [batch[:, *corner] for batch in batches]
