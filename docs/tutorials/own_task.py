"""Sprites, after dSprites and 3D Shapes: a shape, a hue and a scale, to be drawn in RGB."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, SweepConfig, TrainingConfig
from compgen_jax.models.mlp import MLP
from compgen_jax.settings import Family, number
from compgen_jax.tasks.task import Example, Factor, over_cells

SIDE = 12
FACTORS = (
    Factor("shape", np.arange(3), real=False, labels=("square", "disc", "diamond")),
    Factor("hue", np.arange(0, 360, 30), period=360),
    Factor("scale", np.linspace(0.4, 0.8, 5)),
)


def draw(shape, hue, scale):
    """(SIDE, SIDE, 3): a soft-edged shape on black."""
    x = jnp.abs(jnp.arange(SIDE) - (SIDE - 1) / 2) / (SIDE / 2)
    x, y = x[None, :], x[:, None]
    radii = jnp.stack([jnp.maximum(x, y), jnp.sqrt(x**2 + y**2), (x + y) / 2**0.5])
    mask = jax.nn.sigmoid((scale - radii[shape]) * SIDE)
    color = (1 + jnp.cos(jnp.radians(hue - jnp.array([0.0, 120.0, 240.0])))) / 2
    return mask[..., None] * color


@dataclass(frozen=True)
class Sprites(Family):
    """Discs with a hue from `low` to `high` degrees are held out, whatever their scale."""

    low: float = number(100.0, traced=True)
    high: float = number(260.0, traced=True)

    def make(self):
        def held_out(points):
            shape, hue = points[..., 0], points[..., 1]
            return (shape == 1) & (self.low <= hue) & (hue <= self.high)

        def example(key, point):
            shape, hue, scale = point
            angle = jnp.radians(hue)
            shape, real = shape.astype(int), jnp.stack([jnp.cos(angle), jnp.sin(angle), scale])
            code = jnp.concatenate([jax.nn.one_hot(shape, 3), real])
            return Example(code, draw(shape, hue, scale))

        return over_cells(FACTORS, held_out, example)


def get_config(name):
    training = TrainingConfig(steps=1500, evaluate_every=300, learning_rate=3e-3, seeds=(0, 1, 2))
    config = Config("sprites", Sprites(), MLP(depth=3, width=128), training)
    if name == "sweep":
        axes = {"task.high": (130.0, 190.0, 260.0), "model.width": (16, 128)}
        return replace(config, sweep=SweepConfig(axes))
    return config
