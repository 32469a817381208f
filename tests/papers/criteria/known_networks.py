"""Networks whose every layer is known: what a criterion on layers must decide rightly (C6, C7, C12,
C13).

Each maps a point (x, y) to the activations of its layers, the code first and the drawn signal last,
as a decoder does. Units are stripes, g(x - i) and g(y - j) for the profile g of a bump, and
products of two of them, bumps; *depth* t from 0 to 1 says how far a layer is on the way. Held out
is a square as in `known_maps`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import geometry, layers, probes, tuning
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.metrics.reference_images import World, neighbours, world_of
from compgen_jax.runs.run import Run
from compgen_jax.tasks.supports import SupportConfig
from tests.papers.criteria.known_maps import GAIN, SEEDS, bumps, images, scorer_of
from tests.papers.criteria.matrix import Matrix, rows_of, runs_by

HIDDEN = 3  # layers
UNITS, BEYOND = 8, 2  # along each axis, and on either side of it: so volumes know no border
FAINT = 0.8  # of the activations over the hole: what `fading` has lost at depth 1
TURN = 2.5  # radians at the hole's centre: how far `swirling` has turned at depth 1


def stripes(point, world):
    spacing = world.grid / UNITS
    centres = (jnp.arange(-BEYOND, UNITS + BEYOND) + 0.5) * spacing - 0.5
    return jnp.exp(-(((point[:, None] - centres[None, :]) / spacing) ** 2))  # 2, K


def mixed(point, share, world):
    """Stripes and their products, these with a `share` of the amplitude."""
    x, y = stripes(point, world)
    products = (y[:, None] * x[None, :]).ravel()
    return jnp.concatenate([(1 - share) * x, (1 - share) * y, share * products])


def inside(point, world):
    return ((point > world.low - 0.5) & (point < world.high + 0.5)).all()


def with_gain(gain):
    """What composes, its activations over the hole times gain(t): the volume of two factors over
    the hole becomes gain(t)^2 times as large."""

    def layer(point, t, world):
        return jnp.where(inside(point, world), gain(t), 1.0) * mixed(point, t, world)

    return layer


def towards_seen(point, t, world):
    points, distances, _ = neighbours(point, world)
    nearest = points[jnp.argmin(distances)]
    moved = jnp.where(inside(point, world), point + t * (nearest - point), point)
    return mixed(moved, t, world)


def within(point, world):
    """The point less the hole's centre, and 1 there, falling to 0 at the circle in the hole."""
    offset = point - (world.low + world.high) / 2
    radius = (world.high - world.low + 1) / 2
    return offset, jnp.maximum(1 - jnp.sum(offset**2) / radius**2, 0.0)


def swirling(point, t, world):
    offset, nearness = within(point, world)
    sine, cosine = jnp.sin(TURN * t * nearness), jnp.cos(TURN * t * nearness)
    turned = jnp.array([[cosine, -sine], [sine, cosine]]) @ offset
    return mixed(point - offset + turned, t, world)


def fading_inwards(point, t, world):
    _, nearness = within(point, world)
    return (1 - FAINT * t * nearness) * mixed(point, t, world)


def random(point, t, world):
    waves, phases = (jax.random.normal(jax.random.key(k), (64, 2)) for k in (0, 1))
    return jnp.cos(waves @ point + 3 * phases[:, 0])


def of_share(share_at: Callable) -> Callable:
    """Stripes and their products, by a function of the depth."""
    return lambda point, t, world: mixed(point, share_at(t), world)


NETWORKS = {  # layer: point (2,), depth t, world -> features (D,)
    "composer": mixed,
    "stripes": of_share(jnp.zeros_like),
    "products": of_share(jnp.ceil),
    "reversed": of_share(lambda t: 1 - t),
    "halfway": of_share(lambda t: t / 2),
    "fading": with_gain(lambda t: 1 - FAINT * t),
    "swelling": with_gain(lambda t: 1 / (1 - FAINT * t)),
    "inwards": fading_inwards,
    "swirling": swirling,
    "nearing": towards_seen,
    "random": random,
    "flat": lambda point, t, world: point / world.grid,
    "lookup": mixed,
}
# the known map that each draws, if it does not compose
DRAWN = {"stripes": "plus", "random": "noise", "flat": "blank", "lookup": "lookup"}


def layer_numbers(
    layer: Callable, world: World, cells: CellResults, region: str, seeds: range
) -> dict:
    """What an inspection measures of a network's layers as far as criteria ask around a hole, or a
    corner: (S, L) by metric. Seeds differ slightly: every unit of each has a gain of its own."""
    depths, points = jnp.linspace(0, 1, HIDDEN + 2), jnp.asarray(cells.factors)
    border = grids.border(layers.BORDER, cells.sizes)

    def jittered(seed, t, point):
        features = layer(point, t, world)
        key = jax.random.fold_in(jax.random.key(seed), jnp.int32(100 * t))
        return features * (1 + GAIN * jax.random.normal(key, features.shape))

    @jax.jit
    @partial(jax.vmap, in_axes=(0, None, None))
    @partial(jax.vmap, in_axes=(None, 0, None))
    def program(seed, t, points):
        of_points = partial(jittered, seed, t)
        return jax.vmap(of_points)(points), geometry.metric_tensors(of_points, points)

    def measured(features, metrics):
        layer = layers.Layer(features, cells.factors, cells.held_out, border=border,
                             costly={"tensors": metrics}.get)  # fmt: skip
        numbers = layers.geometry_numbers(layer)
        if region == "corner":
            return numbers | tuning.layer_tuning(features, cells.sizes)
        probe = probes.probe(features, np.asarray(points), cells.held_out, folds=2)
        return numbers | {"probe.ood_r2": np.mean(probe["ood_r2"])}

    by_seed = zip(*jax.device_get(program(jnp.array(seeds), depths, points)), strict=True)
    numbers = [[measured(*one) for one in zip(*of_seed, strict=True)] for of_seed in by_seed]
    return {name: np.array([[one[name] for one in of_seed] for of_seed in numbers])
            for name in numbers[0][0]}  # fmt: skip


# --- what claims must say of them --------------------------------------------------------------

OTHER = "another composer"  # with other seeds, around the same square
RANDOM = "a composer of random cells"  # the same, trained on all but as many random cells


def networks(region: str) -> dict[str, Run]:
    """All known networks around a hole or a corner, by name."""
    config = bumps(region)
    score, empty = scorer_of(config)
    world = world_of(empty.truths, empty.held_out)
    copies = lambda name: np.repeat(images(name, world)[None], SEEDS, axis=0).astype(np.float32)
    drawn = {name: score(copies(name)) for name in ("bump", *DRAWN.values())}
    seeds, others = range(SEEDS), range(SEEDS, 2 * SEEDS)
    numbers = {
        name: layer_numbers(layer, world, empty, region, seeds) for name, layer in NETWORKS.items()
    } | {OTHER: layer_numbers(mixed, world, empty, region, others)}
    # before training, all were random
    untrained = {f"untrained.{metric}": values for metric, values in numbers["random"].items()}
    known = {
        name: of_size(
            Run.known(seeds, drawn[DRAWN.get(name, "bump")], of_network | untrained), depth=4
        )
        for name, of_network in numbers.items()
    }
    support = SupportConfig(region="random", share=float(empty.held_out.mean()))
    score, elsewhere = scorer_of(replace(config, support=support))
    known[RANDOM] = Run.known(
        others,
        score(copies("bump")),
        layer_numbers(mixed, world, elsewhere, region, others),
        over=lambda run: known[OTHER],
    )
    return known


def of_size(run: Run, depth: int = 0, bumps: int = 0, layers=slice(None)) -> Run:
    """The same network as if it were of another depth, trained with so many bumps, or of some of
    its layers."""
    task = SimpleNamespace(support=SimpleNamespace(samples=bumps))
    config = SimpleNamespace(model=SimpleNamespace(depth=depth), task=task)
    numbers = {metric: values[:, layers] for metric, values in run.numbers.items()}
    return Run.known(run.seeds, run.cells, numbers, config=config)


def of_two_depths(name, known):
    others = [of_size(known[name], depth=2), of_size(known[OTHER], depth=6)]
    return {"net": of_size(known["composer"], depth=4), "others": others}


def beside_cnn(mlp: str, cnn: str, layers_of_cnn=slice(None), layers_of_mlp=slice(None)):
    """An MLP beside a CNN, each of these layers of a known network; '' is the network tried."""

    def runs(name, known):
        return {"mlp": of_size(known[mlp or name], 4, layers=layers_of_mlp),
                "conv": of_size(known[cnn or name], 4, layers=layers_of_cnn),
                "convs": []}  # fmt: skip

    return runs


def with_more_bumps(name, known, fewer=("stripes", "halfway")):
    """The network with the most bumps, and blunter ones with fewer."""
    few = [of_size(known[one], bumps=count) for one, count in zip(fewer, (0, 10), strict=True)]
    return {"net": known[name], "by_bumps": [*few, of_size(known[name], bumps=50)]}


# a fall in the last hidden layer alone: halfway, and down to the drawn one's
ONCE, FURTHER = [0, 0, 0, 2, 4], [0, 0, 0, 4, 4]
BESIDE = {
    **dict.fromkeys(("C6.composer", "C6.score", "C7.composer"), runs_by(net="", composer=RANDOM)),
    "C6.mlp/once": beside_cnn("", "swirling", ONCE),
    "C6.mlp/further": beside_cnn("", "swirling", FURTHER),
    "C6.mlp/both": beside_cnn("", "swirling", ONCE, FURTHER),
    **dict.fromkeys(("C6.shallow", "C6.depths"), of_two_depths),
    **dict.fromkeys(("C7.mlp/mlp", "C7.mlp_size/mlp"), beside_cnn("", "fading")),
    **dict.fromkeys(("C7.mlp/cnn", "C7.mlp_size/cnn"), beside_cnn("swelling", "")),
    # with stripes and with bumps alone, which distort the volume
    **dict.fromkeys(("C12", "C12.spread", "C12.donut"), runs_by(stripes="", alone="inwards")),
    "C13": with_more_bumps,
    "C13/sharp": lambda name, known: with_more_bumps(name, known, (name, name)),
    # bumps alone turn stripes into bumps halfway
    "C13.bumps_alone": runs_by(net="", alone="halfway"),
}
# the features of any decoder turn from a code into an image; some composers are less decodable
FALL = """
answer   C6 C6.composer C6.score C6.mlp/once C6.mlp/further C6.mlp/both C6.shallow C6.depths
composer r  -           r        -           -              -           -          -
stripes  -  -           -        -           -              -           -          -
products r  -           r        -           -              -           -          -
reversed -  -           -        -           -              -           -          -
halfway  r  -           -        -           -              -           -          -
fading   r  R           R        -           -              -           -          -
swelling .  R           R        -           -              -           .          .
inwards  .  R           R        -           -              -           .          .
swirling R  R           -        R           -              -           R          R
nearing  r  R           R        -           -              -           -          -
random   -  -           -        -           -              -           -          -
flat     .  -           -        -           -              -           .          .
lookup   .  -           R        -           -              -           .          .
"""
# of C7.mlp/cnn: random has a sign by a hair
DISTORT = """
answer   C7 C7.size C7.composer C7.mlp/mlp C7.mlp/cnn C7.mlp_size/mlp C7.mlp_size/cnn
composer -  -       -           -          -          -               -
stripes  -  -       -           -          -          -               -
products -  -       -           -          -          -               -
reversed -  -       -           -          -          -               -
halfway  -  -       -           -          -          -               -
fading   R  R       R           -          R          -               R
swelling R  R       R           R          -          R               -
inwards  R  R       .           -          R          -               R
swirling -  -       -           -          -          -               -
nearing  R  R       R           -          R          -               R
random   -  -       -           -          .          -               .
flat     -  -       -           -          -          -               -
lookup   -  -       -           -          -          -               -
"""
ON_CORNERS = """
answer   C12 C12.spread C12.donut C13 C13/sharp C13.untrained C13.bumps_alone
composer R   R          R         R   -         R             R
stripes  r   -          -         -   -         -             -
products .   .          .         -   -         -             -
reversed .   .          .         -   -         -             -
halfway  .   .          .         r   -         R             -
fading   -   -          -         .   -         .             .
swelling -   -          -         .   -         .             .
inwards  -   -          -         .   -         .             .
swirling .   .          .         .   -         .             .
nearing  -   -          -         .   -         .             .
random   r   -          -         -   -         -             -
flat     r   -          -         .   -         .             .
lookup   r   -          -         .   -         .             .
"""
MATRICES = {
    "networks around a hole": Matrix(partial(networks, "donut"), rows_of(FALL, DISTORT), BESIDE),
    "networks with a corner": Matrix(partial(networks, "corner"), rows_of(ON_CORNERS), BESIDE),
}
