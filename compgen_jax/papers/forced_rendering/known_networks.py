"""Networks whose every layer is known: what a criterion on layers must decide rightly (C6, C7, C12,
C13).

Each maps a point (x, y) to the activations of its layers, the code first and the drawn signal last,
as a decoder does. Units are stripes, g(x - i) and g(y - j) for the profile g of a bump, and
products of two of them, bumps; *depth* t from 0 to 1 says how far a layer is on the way. Held out
is a square as in `known`.
"""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.claims import Matrix
from compgen_jax.metrics import geometry, layers, probes, tuning
from compgen_jax.papers.forced_rendering.known import (
    GAIN,
    SEEDS,
    SUPPORTS,
    World,
    bumps,
    images,
    neighbours,
    scorer_of,
    world_of,
)
from compgen_jax.runs.run import Run

HIDDEN = 3  # layers
UNITS, BEYOND = 8, 2  # along each axis, and on either side of it: so volumes know no border
FAINT = 0.8  # of the activations over the hole: what `fading` has lost at depth 1
TURN = 2.5  # radians at the hole's centre: how far `swirling` has turned at depth 1


class KnownNetwork(NamedTuple):
    """layer: point (2,), depth t, world -> features (D,).  does: what, in words.  draws: which of
    `known.MAPS`."""

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


# --- what claims must say of them --------------------------------------------------------------

OTHER = "another composer"  # with other seeds, to compare with


def networks(grid: int, region: str) -> dict[str, Run]:
    """All known networks around a hole or a corner, by name."""
    score, empty = scorer_of(bumps(grid, region))
    world = world_of(empty.truths, empty.held_out)
    every = NETWORKS | {OTHER: NETWORKS["composer"]}
    drawn = {
        of: score(np.repeat(images(of, world)[None], SEEDS, axis=0).astype(np.float32))
        for of in {one.draws for one in every.values()}
    }
    where = empty.factors, empty.held_out, grids.border(layers.BORDER, (grid, grid))
    seeds = {name: range(SEEDS) for name in NETWORKS} | {OTHER: range(SEEDS, 2 * SEEDS)}
    numbers = {name: layer_numbers(one, world, *where, seeds[name]) for name, one in every.items()}
    # before training, all were random
    untrained = {f"untrained.{metric}": values for metric, values in numbers["random"].items()}
    return {
        name: Run.known(
            seeds[name], cells=drawn[one.draws], layers=numbers[name] | untrained, config=_sizes(4)
        )
        for name, one in every.items()
    }


def _sizes(depth: int = 0, bumps: int = 0):
    """What criteria ask of a run's config."""
    support = SimpleNamespace(samples=bumps)
    return SimpleNamespace(
        model=SimpleNamespace(depth=depth), task=SimpleNamespace(support=support)
    )


def _with(run: Run, **sizes) -> Run:
    """The same network as if it were of another depth, or trained with so many bumps."""
    return Run.known(run.seeds, cells=run.cells, layers=run.known_layers, config=_sizes(**sizes))


def _beside_composer(name, known):
    return {"net": known[name], "composer": known[OTHER]}


def _of_two_depths(name, known):
    others = [_with(known[name], depth=2), _with(known[OTHER], depth=6)]
    return {"net": _with(known["composer"], depth=4), "others": others}


def _mlp(name, known):
    return {"mlp": known[name], "conv": known["fading"], "convs": []}


def _cnn(name, known):
    return {"mlp": known["swelling"], "conv": known[name], "convs": []}


def _beside_inwards(name, known):
    """With stripes and with bumps alone, which distort the volume."""
    return {"stripes": known[name], "alone": known["fading inwards"]}


def _with_more_bumps(name, known, fewer=("stripes", "halfway")):
    """The network with the most bumps, and blunter ones with fewer."""
    few = [_with(known[one], bumps=count) for one, count in zip(fewer, (0, 10), strict=True)]
    return {"net": known[name], "by_bumps": [*few, _with(known[name], bumps=50)]}


def _as_sharp_without_bumps(name, known):
    return _with_more_bumps(name, known, (name, name))


def _beside_alone(by_bumps: Callable) -> Callable:
    """Bumps alone turn stripes into bumps halfway."""
    return lambda name, known: by_bumps(name, known) | {"alone": known["halfway"]}


def _row(letters: str, names: str) -> dict[str, str]:
    """{name: letter} of 'R: a, b; -: c' parts; `names` are all that count for '-' unless named."""
    row = {}
    for part in letters.split("; "):
        letter, _, named = part.partition(": ")
        row |= dict.fromkeys(named.split(", "), letter)
    return dict.fromkeys(names, "-") | row if names else row


COMPOSERS = "composer, halfway, products, fading, to the seen"  # less decodable ones among them
STEADY = "stripes, reversed, random"  # neither the paper's score nor the probe falls
DISTORTED = "fading, swelling, to the seen"
NOT_INWARDS = tuple(name for name in NETWORKS if name != "fading inwards")
NOT_RANDOM = tuple(name for name in NETWORKS if name != "random")  # has a sign by a hair
SMOOTH = "stripes, flat, smooth lookup, random"  # and compose nothing
BLUNT = "stripes, products, reversed, random"
ON_HOLES = {
    # the features of any decoder turn from a code into an image
    "C6": _row(f"R: swirling; r: {COMPOSERS}; -: {STEADY}", ""),
    "C6.composer": _row(f"R: swirling; -: {COMPOSERS}; -: {STEADY}", ""),
    "C6.shallow": _row(f"R: swirling; -: {COMPOSERS}; -: {STEADY}", ""),
    "C6.depths": _row(f"R: swirling; -: {COMPOSERS}; -: {STEADY}", ""),
    "C7": _row(f"R: {DISTORTED}", NOT_INWARDS),
    "C7.size": _row(f"R: {DISTORTED}", NOT_INWARDS),
    "C7.composer": _row(f"R: {DISTORTED}", NOT_INWARDS),
}
BESIDE_ON_HOLES = {
    "C6.composer": _beside_composer,
    "C6.shallow": _of_two_depths,
    "C6.depths": _of_two_depths,
    "C7.composer": _beside_composer,
}
for trained in ("mlp", "mlp_20_epochs"):
    for size, names in (("", NOT_RANDOM), ("_size", tuple(NETWORKS))):
        claim = f"C7.{trained}{size}"
        ON_HOLES[f"{claim}, MLP beside a fading CNN"] = _row("R: swelling", names)
        ON_HOLES[f"{claim}, CNN beside a swelling MLP"] = _row(
            "R: fading, to the seen, fading inwards", names
        )
        BESIDE_ON_HOLES[f"{claim}, MLP beside a fading CNN"] = _mlp
        BESIDE_ON_HOLES[f"{claim}, CNN beside a swelling MLP"] = _cnn
ON_CORNERS = {
    "C12": _row(f"R: composer; r: {SMOOTH}; -: {DISTORTED}, fading inwards", ""),
    "C12.spread": _row(f"R: composer; -: {SMOOTH}; -: {DISTORTED}, fading inwards", ""),
    "C12.donut": _row(f"R: composer; -: {SMOOTH}; -: {DISTORTED}, fading inwards", ""),
    "C13": _row(f"R: composer; r: halfway; -: {BLUNT}", ""),
    "C13.alone": _row(f"R: composer; -: {BLUNT}, halfway", ""),
    "C13, as sharp without bumps": dict.fromkeys(NETWORKS, "-"),
    "C13.alone, as sharp without bumps": dict.fromkeys(NETWORKS, "-"),
}
BESIDE_ON_CORNERS = {
    "C12": _beside_inwards,
    "C12.spread": _beside_inwards,
    "C12.donut": _beside_inwards,
    "C13": _with_more_bumps,
    "C13.alone": _beside_alone(_with_more_bumps),
    "C13, as sharp without bumps": _as_sharp_without_bumps,
    "C13.alone, as sharp without bumps": _beside_alone(_as_sharp_without_bumps),
}
MATRICES = tuple(
    Matrix(
        f"N = {grid}, {region}",
        {name: one.does for name, one in NETWORKS.items()},
        partial(networks, grid, region),
        ON_HOLES if region == "donut" else ON_CORNERS,
        BESIDE_ON_HOLES if region == "donut" else BESIDE_ON_CORNERS,
    )
    for grid, region in SUPPORTS
)
