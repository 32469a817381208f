"""Exact metric tensors of every layer of the paper's decoder against one forward pass of all
layers over the same points, and against the finite-difference pipeline."""

import resource

import jax
import jax.numpy as jnp

from compgen_jax.metrics import geometry
from compgen_jax.models.convolution import LOWERINGS
from compgen_jax.papers.presets import PRESETS
from compgen_jax.tasks import task as tasks
from compgen_jax.training import task_group

from . import timing

AUTODIFF = [name for name in LOWERINGS if name != "winograd"]  # it has no forward mode


def run(rounds: int) -> list[dict]:
    """Rows: seconds over all cells, ratio to the forward pass of the same lowering."""
    return [row for preset in ("bump_cnn", "bump_cnn_quick") for row in _compare(preset, rounds)]


def _compare(preset: str, rounds: int) -> list[dict]:
    config = PRESETS[preset]
    task, key, side = config.task.make(), jax.random.key(0), config.task.grid
    points = jnp.asarray(tasks.cells(task.factors))
    contenders = {}
    for lowering in AUTODIFF:
        model = config.model.make(task_group.shapes_of(task, lowering))
        params = model.init(key, task.example(key, points[0]).input)

        def layers(point, model=model, params=params):
            image, activations = model.apply(params, task.example(key, point).input)
            return activations | {"output": image}

        def forward(points, layers=layers):
            return jax.lax.map(layers, points, batch_size=geometry.POINTS_AT_ONCE)

        def differences(points, forward=forward):
            grids = jax.tree.map(lambda layer: layer.reshape(side, side, -1), forward(points))
            return jax.tree.map(geometry.grid_metric, grids)

        exact = lambda points, layers=layers: geometry.metric_tensors(layers, points)
        for name, function in {
            "forward": forward, "exact metric": exact, "finite differences": differences,
        }.items():  # fmt: skip
            contenders[lowering, name] = _blocking(jax.jit(function), points)
    seconds = timing.interleave(contenders, rounds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [
        {
            "preset": preset,
            "contender": f"{lowering}, {name}",
            "seconds": value,
            "over forward": value / seconds[lowering, "forward"],
            "peak GiB of all": memory,
        }
        for (lowering, name), value in seconds.items()
    ]


def _blocking(function, points):
    return lambda: jax.block_until_ready(function(points))
