"""Networks whose every layer is known: what a criterion on layers must decide rightly (C6, C7, C12,
C13).

Each maps a point (x, y) to the activations of its layers, the code first and the drawn signal last,
as a decoder does. Units are stripes, g(x - i) and g(y - j) for the profile g of a bump, and
products of two of them, bumps; *depth* t from 0 to 1 says how far a layer is on the way. Held out
is a square as in `known`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import geometry, layers, probes, tuning
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.metrics.reference_images import World, neighbours, world_of
from compgen_jax.runs.run import Run
from compgen_jax.tasks.supports import SupportConfig
from tests.papers.criteria.known_maps import (
    GAIN,
    SEEDS,
    SUPPORTS,
    bumps,
    images,
    scorer_of,
)
from tests.papers.criteria.matrix import Matrix, letters

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
    points, distances = neighbours(point, world)
    nearest = points[jnp.argmin(distances)]
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


def _random(point, t, world):
    waves, phases = (jax.random.normal(jax.random.key(k), (64, 2)) for k in (0, 1))
    return jnp.cos(waves @ point + 3 * phases[:, 0])


def _at_share(of_depth: Callable) -> Callable:
    """Stripes and their products, by a function of the depth."""
    return lambda point, t, world: _mixed(point, of_depth(t), world)


NETWORKS = {
    "composer": KnownNetwork(_mixed, "stripes, then more and more their products"),
    "stripes": KnownNetwork(
        _at_share(jnp.zeros_like), "stripes in every layer; draws a plus", "plus"
    ),
    "products": KnownNetwork(_at_share(jnp.ceil), "products from the first layer on"),
    "reversed": KnownNetwork(_at_share(lambda t: 1 - t), "products, then more and more stripes"),
    "halfway": KnownNetwork(
        _at_share(lambda t: t / 2), "stripes, then half as many of their products"
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
        lambda point, t, world: point / world.grid,
        "the point itself in every layer, so that areas are the same; draws nothing",
        "blank",
    ),
    "smooth lookup": KnownNetwork(
        _mixed, "the layers of the composer; draws the nearest seen image", "lookup"
    ),
}


def layer_numbers(
    network: KnownNetwork, world: World, cells: CellResults, region: str, seeds: range
) -> dict:
    """What an inspection measures of a network's layers as far as criteria ask around a hole, or a
    corner: (S, L) by metric. Seeds differ slightly: every unit of each has a gain of its own."""
    depths, points = jnp.linspace(0, 1, HIDDEN + 2), jnp.asarray(cells.factors)
    border = grids.border(layers.BORDER, cells.sizes)

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

    def measured(features, metrics):
        layer = layers.Layer(features, cells.factors, cells.held_out, border=border,
                             costly={"tensors": metrics}.get)  # fmt: skip
        numbers = layers.geometry_numbers(layer)
        if region == "corner":
            return numbers | tuning.layer_tuning(features, cells.sizes)
        probe = probes.probe(features, np.asarray(points), cells.held_out, folds=2)
        return numbers | {"probe.ood_r2": probes.mean_over_factors(probe)["ood_r2"]}

    by_seed = zip(*jax.device_get(program(jnp.array(seeds), depths, points)), strict=True)
    numbers = [[measured(*one) for one in zip(*of_seed, strict=True)] for of_seed in by_seed]
    return {name: np.array([[one[name] for one in of_seed] for of_seed in numbers])
            for name in numbers[0][0]}  # fmt: skip


# --- what claims must say of them --------------------------------------------------------------

OTHER = "another composer"  # with other seeds, around the same square
RANDOM = "a composer of random cells"  # the same, trained on all but as many random cells


def networks(grid: int, region: str) -> dict[str, Run]:
    """All known networks around a hole or a corner, by name."""
    config = bumps(grid, region)
    score, empty = scorer_of(config)
    world = world_of(empty.truths, empty.held_out)
    every = NETWORKS | {OTHER: NETWORKS["composer"]}
    jittered = lambda of: np.repeat(images(of, world)[None], SEEDS, axis=0).astype(np.float32)
    drawn = {of: score(jittered(of)) for of in {one.draws for one in every.values()}}
    seeds = {name: range(SEEDS) for name in NETWORKS} | {OTHER: range(SEEDS, 2 * SEEDS)}
    numbers = {
        name: layer_numbers(one, world, empty, region, seeds[name]) for name, one in every.items()
    }
    # before training, all were random
    untrained = {f"untrained.{metric}": values for metric, values in numbers["random"].items()}
    known = {
        name: Run.known(
            range(SEEDS), cells=drawn[one.draws], layers=numbers[name] | untrained, config=_sizes(4)
        )
        for name, one in every.items()
    }
    support = SupportConfig(region="random", share=float(empty.held_out.mean()))
    score, elsewhere = scorer_of(replace(config, support=support))
    known[RANDOM] = Run.known(
        seeds[OTHER],
        cells=score(jittered("bump")),
        layers=layer_numbers(every[OTHER], world, elsewhere, region, seeds[OTHER]),
        over=lambda run: known[OTHER],
    )
    return known


def _sizes(depth: int = 0, bumps: int = 0):
    """What criteria ask of a run's config."""
    support = SimpleNamespace(samples=bumps)
    return SimpleNamespace(
        model=SimpleNamespace(depth=depth), task=SimpleNamespace(support=support)
    )


def _with(run: Run, **sizes) -> Run:
    """The same network as if it were of another depth, or trained with so many bumps."""
    return Run.known(run.seeds, cells=run.cells, layers=run.numbers, config=_sizes(**sizes))


def _alone(name, known):
    return {"net": known[name]}


def _beside_composer(name, known):
    return {"net": known[name], "composer": known[RANDOM]}


def _of_two_depths(name, known):
    others = [_with(known[name], depth=2), _with(known[OTHER], depth=6)]
    return {"net": _with(known["composer"], depth=4), "others": others}


def _beside_cnn(cnn: str, layers_of_cnn=slice(None), layers_of_mlp=slice(None)) -> Callable:
    """As an MLP beside a CNN; each consists of these layers of a known network."""

    def runs(name, known):
        return {"mlp": _of_layers(known[name], layers_of_mlp),
                "conv": _of_layers(known[cnn], layers_of_cnn), "convs": []}  # fmt: skip

    return runs


def _of_layers(run: Run, chosen) -> Run:
    layers = {metric: values[:, chosen] for metric, values in run.numbers.items()}
    return Run.known(run.seeds, cells=run.cells, layers=layers, config=run.config)


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


def _beside_alone(name, known):
    """Bumps alone turn stripes into bumps halfway."""
    return {"net": known[name], "alone": known["halfway"]}


COMPOSERS = "composer", "halfway", "products", "fading", "to the seen"  # some less decodable
STEADY = "stripes", "reversed", "random"  # neither the paper's score nor the probe falls
FALL = letters(("swirling", *COMPOSERS, *STEADY), R=("swirling",))
DISTORTED = "fading", "swelling", "to the seen", "fading inwards"
DISTORT = letters(NETWORKS, R=DISTORTED)
NONE = letters(NETWORKS)
READ_WORSE = letters(NETWORKS, R=("swirling", *DISTORTED))
SAME_SCORE = letters(NETWORKS, R=("smooth lookup", *DISTORTED), r=("composer", "products"))
# a fall in the last hidden layer alone: halfway, and down to the drawn one's
ONCE, FURTHER = [0, 0, 0, 2, 4], [0, 0, 0, 4, 4]
SPREAD = letters(NETWORKS, R=("swirling",))
SWELL = letters(NETWORKS, R=("swelling",))
# *random* has a sign by a hair
FADE = letters(NETWORKS, ("random",), R=("fading", "to the seen", "fading inwards"))
SMOOTH = "stripes", "flat", "smooth lookup", "random"  # and compose nothing
SMOOTH_BUMPS = letters(("composer", *SMOOTH, *DISTORTED), R=("composer",))
SHARPEN = letters(("composer", "halfway", "stripes", "products", "reversed", "random"),
                  R=("composer",))  # fmt: skip
ON_HOLES = {  # claim: the letters, and runs beside a network
    # the features of any decoder turn from a code into an image
    "C6": (FALL | dict.fromkeys(COMPOSERS, "r"), _alone),
    f"C6.composer, beside {RANDOM}": (READ_WORSE, _beside_composer),
    f"C6.score, beside {RANDOM}": (SAME_SCORE, _beside_composer),
    "C6.mlp, beside a CNN that falls once": (SPREAD, _beside_cnn("swirling", ONCE)),
    "C6.mlp, beside one that falls once and further": (NONE, _beside_cnn("swirling", FURTHER)),
    "C6.mlp, falls once beside one that does": (NONE, _beside_cnn("swirling", ONCE, FURTHER)),
    "C6.shallow": (FALL, _of_two_depths),
    "C6.depths": (FALL, _of_two_depths),
    "C7": (DISTORT, _alone),
    "C7.size": (DISTORT, _alone),
    f"C7.composer, beside {RANDOM}": (
        letters(NETWORKS, ("fading inwards",), R=DISTORTED),
        _beside_composer,
    ),
    "C7.mlp, MLP beside a fading CNN": (SWELL, _beside_cnn("fading")),
    "C7.mlp, CNN beside a swelling MLP": (FADE, _cnn),
    "C7.mlp_size, MLP beside a fading CNN": (SWELL, _beside_cnn("fading")),
    "C7.mlp_size, CNN beside a swelling MLP": (FADE, _cnn),
}
ON_CORNERS = {
    "C12": (SMOOTH_BUMPS | dict.fromkeys(SMOOTH, "r"), _beside_inwards),
    "C12.spread": (SMOOTH_BUMPS, _beside_inwards),
    "C12.donut": (SMOOTH_BUMPS, _beside_inwards),
    "C13": (SHARPEN | {"halfway": "r"}, _with_more_bumps),
    "C13, as sharp without bumps": (NONE, _as_sharp_without_bumps),
    "C13.untrained": (SHARPEN | {"halfway": "R"}, _alone),
    "C13.bumps_alone": (SHARPEN, _beside_alone),
}
ROWS = {"donut": ON_HOLES, "corner": ON_CORNERS}
MATRICES = tuple(
    Matrix(
        f"N = {grid}, {region}",
        {name: one.does for name, one in NETWORKS.items()},
        partial(networks, grid, region),
        *({claim: pair[k] for claim, pair in ROWS[region].items()} for k in (0, 1)),
    )
    for grid, region in SUPPORTS
)
