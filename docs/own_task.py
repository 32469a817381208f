"""Sprites, as in dSprites and 3D Shapes: a shape, a hue and a scale, drawn in RGB from their codes."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, SweepConfig, TrainingConfig
from compgen_jax.models.mlp import MLP
from compgen_jax.settings import Family, number
from compgen_jax.tasks.task import Example, Factor, Task, over_cells

SIDE = 12
AXIS = (jnp.arange(SIDE) - (SIDE - 1) / 2) / (SIDE / 2)


def masks(scale):
    """(3, SIDE, SIDE): a square, a disc and a diamond, with soft edges."""
    x, y = jnp.abs(AXIS)[None, :], jnp.abs(AXIS)[:, None]
    radii = jnp.stack([jnp.maximum(x, y), jnp.sqrt(x**2 + y**2), (x + y) / 2**0.5])
    return jax.nn.sigmoid((scale - radii) * SIDE)


def color(hue):
    """(3,): RGB of a hue in degrees."""
    return (1 + jnp.cos(jnp.radians(hue - jnp.array([0.0, 120.0, 240.0])))) / 2


@dataclass(frozen=True)
class Sprites(Family):
    """Discs between the hues `low` and `high` (degrees) are held out, whatever their scale."""

    low: float = number(100.0)
    high: float = number(260.0)

    def make(self) -> Task:
        shape = Factor("shape", np.arange(3), real=False)
        hue = Factor("hue", np.arange(0, 360, 30), period=360)
        scale = Factor("scale", np.linspace(0.4, 0.8, 5))

        def held_out(points):
            return (
                (points[..., 0] == 1) & (points[..., 1] >= self.low) & (points[..., 1] <= self.high)
            )

        def example(key, point):
            angle = jnp.radians(point[1])
            code = [
                jax.nn.one_hot(point[0], 3),
                jnp.cos(angle)[None],
                jnp.sin(angle)[None],
                point[2:],
            ]
            image = masks(point[2])[point[0].astype(int)][..., None] * color(point[1])
            return Example(jnp.concatenate(code), image)

        return over_cells([shape, hue, scale], held_out, example)


def get_config(name="quick"):
    training = TrainingConfig(steps=1500, evaluate_every=300, learning_rate=3e-3, seeds=(0, 1, 2))
    config = Config(
        name="sprites", task=Sprites(), decoder=MLP(depth=3, width=128), training=training
    )
    axes = {"task.high": (130.0, 190.0, 260.0), "decoder.width": (32, 128)}
    return config if name == "quick" else Config(**{**vars(config), "sweep": SweepConfig(axes)})
