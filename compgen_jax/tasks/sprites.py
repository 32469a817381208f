"""Sprites: squares, ellipses and hearts of any scale, orientation, hue and place, as in dSprites.

The images of dSprites (Matthey et al. 2017) have a closed form. At 64 pixels with `supersample=1`
these have its pixels, but for at most 6 at the edge of a heart. `image[y, x]` has row 0 at the top.
"""

import math
from dataclasses import dataclass
from functools import partial

import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import choice, demand, number
from compgen_jax.tasks.scene import Scene, SceneTask
from compgen_jax.tasks.task import Factor

SHAPES = "square", "ellipse", "heart"  # the values 1, 2 and 3 of dSprites' factor
SYMMETRIES = {"square": math.pi / 2, "ellipse": math.pi, "heart": 2 * math.pi}
SPANS = {"quarter": math.pi / 2, "half": math.pi, "whole": 2 * math.pi}
CANVAS = 64  # lengths below are in pixels of dSprites, at scale 1
HALF_SQUARE = 9.6
SEMI_AXES = 12.768, 7.2128
# the heart's radius in canvases, at an angle from its cleft: A(cos) + |sin| B(cos), rising powers
HEART = (0.0239, -0.3125, 0.1287, 0.281, -0.0419), (0.1036, 0.4041, -0.0469, -0.1559)
FIXED = {"scale": 1.0, "orientation": 0.0, "posX": 0.5, "posY": 0.5}  # where they do not vary
EDGE = 1e-5  # of the scale: so far outside still counts, where rounding would decide otherwise


@dataclass(frozen=True)
class CountsConfig:
    """How many values each factor has, evenly spaced. With one it does not vary: scale 1, upright,
    in the middle, grey (H, W).

    Scales go from .5 to 1, both positions from a quarter (0) to three quarters (1) of the canvas,
    hues round the circle.
    """

    scale: int = number(3, low=1, high=64)
    orientation: int = number(4, low=1, high=360)
    hue: int = number(1, low=1, high=64)
    posX: int = number(12, low=1, high=64)
    posY: int = number(12, low=1, high=64)


@dataclass(frozen=True)
class Sprites(SceneTask):
    """A sprite on a black canvas of `side` x `side` pixels.

    The factors are shape, if there are several `shapes`, scale, orientation, hue, posX, posY. A
    pixel is the mean of `supersample` squared points; 1 draws hard edges. Orientations are k/n of a
    `turn`, in radians, counter-clockwise, without the end; 39 of a whole turn are dSprites' values.
    """

    side: int = number(32, low=16, high=64)
    supersample: int = number(4, low=1, high=8)
    shapes: tuple = SHAPES
    counts: CountsConfig = CountsConfig()
    turn: str = choice("quarter", *SPANS)

    def check(self, config):
        super().check(config)
        shapes, turns = self.shapes, self.counts.orientation
        demand(
            0 < len(shapes) == len(set(shapes) & set(SHAPES)),
            f"config.task.shapes={shapes!r}: must be different ones of {', '.join(SHAPES)}",
        )
        for shape in shapes:
            demand(
                SPANS[self.turn] <= SYMMETRIES[shape] or turns % 2,
                f"config.task.counts.orientation={turns}: the {shape} repeats within a {self.turn} "
                "turn; take an odd number, or less of config.task.turn",
            )
        demand(factors(self), f"config.task.counts={self.counts!r}: lets no factor vary")

    def scene(self) -> Scene:
        return Scene(factors(self), partial(picture, settings=self))


def factors(settings: Sprites) -> tuple[Factor, ...]:
    counts, span = settings.counts, SPANS[settings.turn]
    period = span if span >= max(map(SYMMETRIES.get, settings.shapes)) else math.inf
    shapes = tuple(sorted(settings.shapes, key=SHAPES.index))
    labels = np.array([1.0 + SHAPES.index(shape) for shape in shapes])
    scale, pos_x, pos_y = (
        np.arange(count) / max(count - 1, 1) for count in (counts.scale, counts.posX, counts.posY)
    )
    turns, hues = (np.arange(count) / count for count in (counts.orientation, counts.hue))
    every = (
        Factor("shape", labels, real=False, labels=shapes),
        Factor("scale", 0.5 + 0.5 * scale),
        Factor("orientation", span * turns, period=period),
        Factor("hue", hues, period=1.0),
        Factor("posX", pos_x),
        Factor("posY", pos_y),
    )
    return tuple(factor for factor in every if len(factor.values) > 1)


def picture(point, settings: Sprites):
    """The image of a point (F,): (H, W), or (H, W, 3) with hue, float32 from 0 to 1."""
    names = [factor.name for factor in factors(settings)]
    fixed = FIXED | {"shape": 1.0 + SHAPES.index(settings.shapes[0])}
    values = fixed | dict(zip(names, point, strict=True))
    side, within = settings.side, settings.supersample
    # the points of the canvas, as seen from the middle of the shape
    centres = (jnp.arange(side * within) + 0.5) * (CANVAS / (side * within))
    x = (centres - (CANVAS / 4 + CANVAS / 2 * values["posX"]))[None, :]
    y = (centres - (CANVAS / 4 + CANVAS / 2 * values["posY"]))[:, None]
    cos, sin = jnp.cos(values["orientation"]), jnp.sin(values["orientation"])
    u, v = x * cos - y * sin, x * sin + y * cos  # upright: the turn undone, v downwards
    inside = False
    for shape in settings.shapes:
        # the least scale at which the shape has the point inside
        if shape == "square":
            least = jnp.maximum(jnp.abs(u), jnp.abs(v)) / HALF_SQUARE
        elif shape == "ellipse":
            least = jnp.sqrt(jnp.square(u / SEMI_AXES[0]) + jnp.square(v / SEMI_AXES[1]))
        else:
            radius = jnp.maximum(jnp.sqrt(u * u + v * v), 1e-6)
            below, beside = -v / radius, jnp.abs(u) / radius
            even, odd = (sum(a * below**k for k, a in enumerate(part)) for part in HEART)
            least = radius / (CANVAS * (even + beside * odd))
        is_requested = jnp.abs(values["shape"] - 1 - SHAPES.index(shape)) < 0.5
        inside |= is_requested & (least <= values["scale"] + EDGE)
    image = inside.reshape(side, within, side, within).mean(axis=(1, 3))
    if "hue" not in values:
        return image
    # red, green and blue at full saturation and value; the hue 0 is red, 1/3 green
    sixths = (6 * values["hue"] + jnp.array([0.0, 4.0, 2.0])) % 6
    colour = jnp.clip(jnp.abs(sixths - 3) - 1, 0, 1)
    return image[:, :, None] * colour[None, None]
