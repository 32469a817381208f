"""Networks whose every layer is known: what a criterion on layers must decide rightly.

Each maps a point (x, y) to the activations of its layers, the code first and the drawn signal last,
as a decoder does. Units are stripes, g(x - i) and g(y - j) for the profile g of a bump, and
products of two of them, bumps; *depth* t from 0 to 1 says how far a layer is on the way. Held out
is a square as in `known_maps`.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.metrics import geometry, layers, probes, tuning
from compgen_jax.papers.forced_rendering.known_maps import GAIN, World, neighbours

HIDDEN = 3  # layers
UNITS, BEYOND = 8, 2  # along each axis, and on either side of it: so volumes know no border
FAINT = 0.8  # of the activations over the hole: what `fading` has lost at depth 1
TURN = 2.5  # radians at the hole's centre: how far `swirling` has turned at depth 1


class KnownNetwork(NamedTuple):
    """layer: point (2,), depth t, world -> features (D,).  does: what, in words.  draws: which of
    `known_maps.MAPS`."""

    layer: Callable
    does: str
    draws: str = "bump"


def _stripes(point, world):
    spacing = world.grid / UNITS
    centres = (jnp.arange(-BEYOND, UNITS + BEYOND) + 0.5) * spacing - 0.5
    return jnp.exp(-(((point[:, None] - centres[None, :]) / spacing) ** 2))  # 2, K


def _mixed(point, share, world):
    """Stripes and their products, these with a `share` of the amplitude."""
    x, y = _stripes(point, world)
    products = (y[:, None] * x[None, :]).ravel()
    return jnp.concatenate([(1 - share) * x, (1 - share) * y, share * products])


def _inside(point, world):
    return ((point > world.low - 0.5) & (point < world.high + 0.5)).all()


def _with_gain(gain):
    """What composes, its activations over the hole times gain(t): the volume of two factors over
    the hole becomes gain(t)^2 times as large."""

    def layer(point, t, world):
        return jnp.where(_inside(point, world), gain(t), 1.0) * _mixed(point, t, world)

    return layer


def _towards_seen(point, t, world):
    points, distances, exists = neighbours(point, world)
    nearest = points[jnp.argmin(jnp.where(exists, distances, jnp.inf))]
    moved = jnp.where(_inside(point, world), point + t * (nearest - point), point)
    return _mixed(moved, t, world)


def _within(point, world):
    """The point less the hole's centre, and 1 there, falling to 0 at the circle in the hole."""
    offset = point - (world.low + world.high) / 2
    radius = (world.high - world.low + 1) / 2
    return offset, jnp.maximum(1 - jnp.sum(offset**2) / radius**2, 0.0)


def _swirling(point, t, world):
    offset, nearness = _within(point, world)
    sine, cosine = jnp.sin(TURN * t * nearness), jnp.cos(TURN * t * nearness)
    turned = jnp.stack(
        [cosine * offset[0] - sine * offset[1], sine * offset[0] + cosine * offset[1]]
    )
    return _mixed(point - offset + turned, t, world)


def _fading_inwards(point, t, world):
    _, nearness = _within(point, world)
    return (1 - FAINT * t * nearness) * _mixed(point, t, world)


def _flat(point, t, world):
    return point / world.grid


def _random(point, t, world):
    waves, phases = (jax.random.normal(jax.random.key(k), (64, 2)) for k in (0, 1))
    return jnp.cos(waves @ point + 3 * phases[:, 0])


NETWORKS = {
    "composer": KnownNetwork(_mixed, "stripes, then more and more their products"),
    "stripes": KnownNetwork(
        lambda p, t, w: _mixed(p, 0.0, w), "stripes in every layer; draws a plus", "plus"
    ),
    "products": KnownNetwork(
        lambda p, t, w: _mixed(p, jnp.where(t > 0, 1.0, 0.0), w), "products from the first layer on"
    ),
    "reversed": KnownNetwork(
        lambda p, t, w: _mixed(p, 1 - t, w), "products, then more and more stripes"
    ),
    "fading": KnownNetwork(
        _with_gain(lambda t: 1 - FAINT * t), "composes, ever fainter over the hole"
    ),
    "swelling": KnownNetwork(
        _with_gain(lambda t: 1 / (1 - FAINT * t)), "composes, ever stronger over the hole"
    ),
    "fading inwards": KnownNetwork(
        _fading_inwards, "composes, ever fainter towards the hole's centre"
    ),
    "halfway": KnownNetwork(
        lambda p, t, w: _mixed(p, t / 2, w), "stripes, then half as many of their products"
    ),
    "swirling": KnownNetwork(
        _swirling,
        "composes a point that turns about the hole's centre with depth, most there: areas stay",
    ),
    "to the seen": KnownNetwork(
        _towards_seen, "composes a point that moves to the nearest seen one with depth"
    ),
    "random": KnownNetwork(
        _random, "waves in random directions, the same in every layer; draws noise", "noise"
    ),
    "flat": KnownNetwork(
        _flat, "the point itself in every layer, so that areas are the same; draws nothing", "blank"
    ),
    "smooth lookup": KnownNetwork(
        _mixed, "the layers of the composer; draws the nearest seen image", "lookup"
    ),
}


def layer_numbers(
    network: KnownNetwork, world: World, points_BxF, held_out_B, border_B, seeds: range
) -> dict:
    """What an inspection measures of a network's layers as far as criteria ask, (T, L) by metric.
    Seeds differ slightly: every unit of each has a gain of its own. `border` as in
    `layers.geometry_numbers`."""
    depths = jnp.linspace(0, 1, HIDDEN + 2)

    def layer(seed, t, point):
        features = network.layer(point, t, world)
        key = jax.random.fold_in(jax.random.key(seed), jnp.int32(100 * t))
        return features * (1 + GAIN * jax.random.normal(key, features.shape))

    @jax.jit
    @partial(jax.vmap, in_axes=(0, None, None))
    @partial(jax.vmap, in_axes=(None, 0, None))
    def program(seed, t, points):
        own = partial(layer, seed, t)
        return jax.vmap(own)(points), geometry.metric_tensors(own, points)

    points = jnp.asarray(points_BxF)
    features, metrics = jax.device_get(program(jnp.arange(seeds.start, seeds.stop), depths, points))
    numbers = [
        [_measured(*of_layer, world.grid, np.asarray(points), held_out_B, border_B)
         for of_layer in zip(*of_seed, strict=True)]
        for of_seed in zip(features, metrics, strict=True)
    ]  # fmt: skip
    return {n: np.array([[one[n] for one in of_seed] for of_seed in numbers])
            for n in numbers[0][0]}  # fmt: skip


def _measured(features, metrics, grid, points, held_out, border) -> dict:
    probe = probes.mean_over_factors(probes.probe(features, points, held_out, folds=2))
    sizes = (grid, grid)
    return {
        "probe.ood_r2": probe["ood_r2"],
        **layers.geometry_numbers(metrics, held_out, border),
        **tuning.layer_tuning(features, sizes),
    }
