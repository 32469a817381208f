"""Tasks on grids of different sizes, padded to the largest, so that one program trains them all.

A smaller grid lies in a corner of the largest. Inputs, targets and parameters are padded with
zeros. A model that is told its grid masks what lies beyond it after every nonlinearity, so that its
convolutions meet the zeros of 'SAME' padding where they would meet them alone. Padded parameters
start at zero, get no gradient and stay there: a padded run is the unpadded one, to float rounding.
"""

from functools import partial

import jax
import jax.numpy as jnp

from compgen_jax.config import Config
from compgen_jax.models.model import split
from compgen_jax.tasks.task import Example, Task
from compgen_jax.training.loop import Network


def group_grids(grids, max_waste: float) -> list[tuple]:
    """The grids, largest first, cut into groups that waste less than `max_waste` of their work
    where every grid has as many trials; each in ascending order. 0 leaves each by itself."""
    groups = []
    for grid in sorted(set(grids), reverse=True):
        if groups and waste((*groups[-1], grid)) < max_waste:
            groups[-1] = (grid, *groups[-1])
        else:
            groups.append((grid,))
    return groups


def waste(grids) -> float:
    """Share of the work that padding `grids` to their largest adds, the work of a model being
    proportional to its pixels."""
    return 1 - sum((grid / max(grids)) ** 2 for grid in grids) / len(grids)


class PaddedNetwork(Network):
    """The functions of `Network` for several tasks, padded to the last, the largest. `task_index`
    (traced) says which of them the trial has; its params are padded to the largest one's."""

    def __init__(self, config: Config, lowering: str, members: tuple[Task, ...]):
        super().__init__(config, lowering, members[-1])
        # the largest one's network, too, crops and pads: by nothing
        self.networks = [Network(config, lowering, task) for task in members]
        self.sides = [network.shapes.output.shape[0] for network in self.networks]

    def init(self, key, task_index):
        def of_task(network, key):
            params = network.init(key)
            if network.task is self.task:
                return params
            like = jax.eval_shape(self.module.init, key, self.shapes.input)
            return self.model.pad_params(params, like, network.task.parts, self.task.parts)

        return self._switch(task_index, of_task, key)

    def examples(self, key, points, task_index) -> Example:
        def of_task(network, key, points):
            inputs, targets = network.examples(key, points)

            def pad_code(code):
                pairs = zip(split(code, network.task.parts), self.task.parts, strict=True)
                parts = [jnp.pad(part, (0, length - len(part))) for part, length in pairs]
                return jnp.concatenate(parts)

            def pad_target(target):
                pairs = zip(target.shape, self.shapes.output.shape, strict=True)
                return jnp.pad(target, [(0, length - short) for short, length in pairs])

            return Example(jax.vmap(pad_code)(inputs), jax.vmap(pad_target)(targets))

        return self._switch(task_index, of_task, key, points)

    def train(self, params, batch, counts_B, task_index, key):
        return self._apply(params, batch.input, task_index), params

    def decode(self, params, inputs, task_index):
        decode = lambda code: self._apply(params, code, task_index)
        return jax.lax.map(decode, inputs, batch_size=self.model.decode_batch)

    def losses(self, outputs, targets, task_index):
        def of_task(network, *pair):
            return network.losses(*_crop(network, pair))

        return self._switch(task_index, of_task, outputs, targets)

    def scores(self, outputs, targets, points, task_index, nearest=None) -> dict:
        def of_task(network, outputs, targets, points, *nearest):
            return network.scores(*_crop(network, (outputs, targets)), points, 0, *nearest)

        nearest = () if nearest is None else (nearest,)
        return self._switch(task_index, of_task, outputs, targets, points, *nearest)

    def _apply(self, params, inputs, task_index):
        return self.module.apply(params, inputs, jnp.array(self.sides)[task_index])[0]

    def _switch(self, task_index, of_task, *arguments):
        """of_task(network, *arguments) of the trial's own network: all give equal shapes."""
        functions = [partial(of_task, network) for network in self.networks]
        return jax.lax.switch(task_index, functions, *arguments)


def _crop(network: Network, batches) -> list:
    """The parts of batches of outputs (B, ...) that a network has without padding."""
    inside = tuple(slice(0, length) for length in network.shapes.output.shape)
    return [batch[:, *inside] for batch in batches]


def network_of(members: tuple[Task, ...]):
    """What `loop.make_trainer` makes its network with, for one task or several."""
    if len(members) == 1:
        return partial(Network, task=members[0])
    return partial(PaddedNetwork, members=members)
