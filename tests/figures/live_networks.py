"""Networks with a live form, and what JAX says of them at codes that a reader could make."""

import base64
import functools
import math
import zlib
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.models.conv import Conv
from compgen_jax.models.lowrank import LowRank
from compgen_jax.models.mlp import MLP
from compgen_jax.models.pixelwise import Pixelwise
from compgen_jax.models.upsampling import ConvBatchNorm, Upsampling
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, ImageConfig
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.tasks.scene import CodesConfig
from compgen_jax.tasks.sprites import CountsConfig, Sprites
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.training import loop

SEEDS = 0, 7
SUPPORT = SupportConfig(region="donut", low=3, high=5, samples=60)
# shape, hue, posX and posY, in colours
SPRITES = Sprites(
    side=16, supersample=1, counts=CountsConfig(scale=1, orientation=1, hue=4, posX=5, posY=3)
)
CASES = {
    "conv": (Bump(grid=12, support=SUPPORT), Conv(depth=4, width=6)),
    "conv, linear first": (Bump(grid=8, support=SUPPORT), Conv(width=3, mixes=False, doublings=1)),
    "mlp": (Bump(grid=8, image=ImageConfig(polarity="upright"), support=SUPPORT), MLP(2, 9)),
    "upsampling": (SPRITES, Upsampling(dense=(7,), channels=(4, 3))),
    "low rank": (replace(SPRITES, code=CodesConfig(name="onehot")),
                 LowRank(depth=2, width=3, dilations=(1, 2))),
    "per pixel": (Bump(grid=9, support=SUPPORT), Pixelwise(depth=2, width=8)),
    "per pixel, untied": (Bump(grid=9, support=SUPPORT), Pixelwise(2, 8, shared=False)),
    "batch norm": (Rotation(side=12, angles=8, objects=(4, 7), gap=GapConfig(of=(4,))),
                   ConvBatchNorm(width=6)),
}  # fmt: skip


def decode(entry) -> np.ndarray:
    """What `arrays.encode` made this of; of whole numbers between levels, what they stand for."""
    data = zlib.decompress(base64.b64decode(entry["deflate"], validate=True))
    values = np.frombuffer(data, np.dtype(entry["dtype"]).newbyteorder("<"))
    values = values.reshape(entry["shape"])
    if "levels" not in entry:
        return values
    return entry["low"] + (entry["high"] - entry["low"]) * values / entry["levels"]


@functools.cache
def network(name: str) -> Run:
    """A run of two seeds whose parameters, biases and running means too, are all random."""
    task, model = CASES[name]
    config = Config(task=task, model=model, training=TrainingConfig(steps=1, seeds=SEEDS))
    rng = np.random.default_rng(len(name))

    def draw(path, leaf):
        std = (2 / math.prod(leaf.shape[:-1])) ** 0.5 if leaf.ndim > 1 else 0.2
        values = rng.normal(0, std, (len(SEEDS), *leaf.shape))
        return np.float32(1 + abs(values) if path[-1].key in ("var", "scale") else values)

    like = jax.eval_shape(loop.make_trainer(config).init, jax.random.key(0)).params
    params = jax.tree_util.tree_map_with_path(draw, like)
    return Run.known(SEEDS, config=config, task=config.task.make(), params=params)


def codes(run: Run) -> np.ndarray:
    """(20, E): random numbers, half of them 0, as where a part is left out; the last is no code."""
    rng = np.random.default_rng(1)
    size = 20, tasks.shapes(run.task)[0].size
    values = np.where(rng.random(size) < 0.5, rng.normal(size=size), 0)
    values[-1] = 0
    return values


def in_jax(run: Run, seed: int, codes) -> tuple:
    """(predictions (B, ...), {layer: (B, ...)} in the model's order)."""
    model = run.config.model
    module = model.make(loop.shapes_of(run.task))
    params = jax.tree.map(lambda leaf: leaf[run.seeds.index(seed)], run.params)
    output, activations = model.apply(module, params, jnp.asarray(codes, jnp.float32))
    return np.asarray(jax.vmap(run.task.prediction)(output)), activations
