"""Exact metric tensors of every layer of the paper's decoder against one forward pass of all
layers over the same points, and against the finite-difference pipeline."""

import resource
from functools import partial

import jax
import jax.numpy as jnp
import pandas

from compgen_jax.metrics import geometry
from compgen_jax.presets import PRESETS
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

from . import timing


def run(rounds: int, presets=("bump_cnn", "bump_cnn_quick")) -> pandas.DataFrame:
    """Rows: seconds over all cells, ratio to the forward pass."""
    return pandas.concat([_compare(preset, rounds) for preset in presets])


def _compare(preset: str, rounds: int) -> pandas.DataFrame:
    config = PRESETS[preset]
    task, key, side = config.task.make(), jax.random.key(0), config.task.grid
    points = jnp.asarray(tasks.cells(task.factors))
    model = config.model.make(loop.shapes_of(task, "gemm"))  # it has a forward mode
    params = model.init(key, task.example(key, points[0]).input)

    def layers(point):
        image, activations = model.apply(params, task.example(key, point).input)
        return activations | {"output": image}

    def forward(points):
        return jax.lax.map(layers, points, batch_size=geometry.POINTS_AT_ONCE)

    def differences(points):
        grids = jax.tree.map(lambda layer: layer.reshape(side, side, -1), forward(points))
        return jax.tree.map(geometry.grid_metric, grids)

    functions = {
        "forward": forward,
        "exact metric": partial(geometry.metric_tensors, layers),
        "finite differences": differences,
    }
    turns = {name: partial(jax.jit(function), points) for name, function in functions.items()}
    seconds = pandas.Series(timing.interleave(turns, rounds), name="seconds")
    table = seconds.rename_axis("contender").reset_index()
    table["over forward"] = table["seconds"] / seconds["forward"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return table.assign(of=preset, **{"peak GiB of all": memory})
