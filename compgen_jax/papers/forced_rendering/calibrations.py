"""The known answers on which the criteria of the paper are tried.

Images of every cell (`known_maps`), networks whose every layer is known (`known_networks`) and
images of turned objects (`known_turns`), each at the grids of the quick and of the paper's presets.
Claims on ablations and exponents are tried on numbers instead (tests/papers).
"""

import functools
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np

from compgen_jax import grids
from compgen_jax.calibration import Calibration, Case, excluding
from compgen_jax.metrics.layers import BORDER
from compgen_jax.papers.forced_rendering import (
    known,
    known_networks,
    known_turns,
    known_volumes,
    layers,
)
from compgen_jax.papers.forced_rendering.known_networks import NETWORKS
from compgen_jax.papers.forced_rendering.known_turns import TURNS
from compgen_jax.papers.forced_rendering.presets import PRESETS
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.tasks.supports import SupportConfig

SEEDS = 3  # slightly different copies of everything known
# the holes and corners of the presets
SUPPORTS = {
    (16, "donut"): SupportConfig(region="donut", low=3, high=12),
    (16, "corner"): SupportConfig(region="corner", low=7),
    (28, "donut"): SupportConfig(region="donut", low=6, high=22),
    (28, "corner"): SupportConfig(region="corner", low=12),
}
TURNED = 4, 7  # digits: the first has the gap, and is the one object of the other task
ANGLES = 144  # with fewer, the interval of a share is too wide for K6


# --- claims on layers --------------------------------------------------------------------------

OTHER = "another composer"


def networks(grid: int, region: str) -> dict[str, Run]:
    """All known networks around a hole or a corner, by name, and the composer once more with other
    seeds, to compare with."""
    score, empty = scorer_of(bumps(grid, region))
    world = known.world_of(empty.truths, empty.held_out)
    every = NETWORKS | {OTHER: NETWORKS["composer"]}
    drawn = {
        of: score(np.repeat(known.images(of, world)[None], SEEDS, axis=0).astype(np.float32))
        for of in {one.draws for one in every.values()}
    }
    where = empty.factors, empty.held_out, grids.border(BORDER, (grid, grid))
    seeds = {name: range(SEEDS) for name in NETWORKS} | {OTHER: range(SEEDS, 2 * SEEDS)}
    numbers = {
        name: known_networks.layer_numbers(one, world, *where, seeds[name])
        for name, one in every.items()
    }
    # before training, all were random
    untrained = {f"untrained.{metric}": values for metric, values in numbers["random"].items()}
    return {
        name: Run.known(
            seeds[name],
            drawn[one.draws],
            layers=numbers[name] | untrained,
            config=_sizes(depth=4),
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
    return Run.known(run.seeds, run.cells, layers=run.known_layers, config=_sizes(**sizes))


def _beside_composer(name, known):
    return {"net": known[name], "composer": known[OTHER]}


def _beside_inwards(name, known):
    """With stripes and with bumps alone, which distort the volume, in both places."""
    alone = known["fading inwards"]
    return {
        "stripes": known[name], "alone": alone,
        "donut_stripes": known[name], "donut_alone": alone,
    }  # fmt: skip


def _mlp_beside_cnn(mlp: str = "", cnn: str = ""):
    """The known answer in the place of the one that is not named."""
    return lambda name, known: {"mlp": known[mlp or name], "conv": known[cnn or name], "convs": []}


def _with_more_bumps(name, known, sharper: bool = True):
    """The network with the most bumps, and with fewer blunter ones, or, unless these make it
    `sharper`, the same. Bumps alone turn stripes into bumps halfway."""
    fewer = ("stripes", "halfway") if sharper else (name, name)
    by_bumps = [_with(known[one], bumps=count) for one, count in zip(fewer, (0, 10), strict=True)]
    return {
        "net": known[name],
        "by_bumps": [*by_bumps, _with(known[name], bumps=50)],
        "alone": known["halfway"],
    }


DISTORTED = "fading", "swelling", "to the seen"
FADING = "fading", "to the seen", "fading inwards"
# of the paper's score and the probe none falls, or as a composer's, or the probe alone
STEADY = "stripes", "reversed", "random"
COMPOSING = "composer", "halfway", "products"
LESS_DECODABLE = "fading", "to the seen"
MLP_ROWS = ("trained", layers.MLP_IS_OPPOSITE), ("20 epochs", layers.MLP_OF_20_EPOCHS_IS_OPPOSITE)
SMOOTH = "stripes", "flat", "smooth lookup", "random"  # and compose nothing
ON_LAYERS = (
    Case(
        "C6",
        mechanism=("swirling",),
        excluded=(*STEADY, *COMPOSING, *LESS_DECODABLE),
        # the features of any decoder turn from a code into an image
        passes=(*COMPOSING, *LESS_DECODABLE),
        runs=_beside_composer,
        fields={"code": "bump", "deep": ""},
    ),
    Case(
        "C6, shallow against deep",
        mechanism=("swirling",),
        excluded=(*STEADY, *COMPOSING, *LESS_DECODABLE),
        runs=lambda name, known: {
            "preset": _with(known["composer"], depth=4),
            "others": [_with(known[name], depth=2), _with(known[OTHER], depth=6)],
        },
        row=layers.SHALLOW_RAMP_IS_SHARPER,
    ),
    Case(
        "C7",
        mechanism=DISTORTED,
        excluded=excluding(NETWORKS, *DISTORTED, "fading inwards"),
        runs=_beside_composer,
        fields={"code": "bump", "deep": ""},
    ),
    *(
        Case(
            f"C7, {title}, {trained}",
            mechanism=mechanism,
            excluded=excluding(NETWORKS, *mechanism),
            passes=("random",),  # by a hair
            runs=runs,
            fields={"code": "bump", "deep": ""},
            row=row,
        )
        for title, mechanism, runs in (
            ("MLP beside a fading CNN", ("swelling",), _mlp_beside_cnn(cnn="fading")),
            ("CNN beside a swelling MLP", FADING, _mlp_beside_cnn(mlp="swelling")),
        )
        for trained, row in MLP_ROWS
    ),
)
ON_CORNER_LAYERS = (
    Case(
        "C12",
        mechanism=("composer",),
        excluded=("fading", "swelling", "fading inwards", *SMOOTH),
        passes=SMOOTH,
        runs=_beside_inwards,
        fields={"few": 50},
    ),
    Case(
        "C13",
        mechanism=("composer",),
        excluded=("stripes", "products", "reversed", "random", "halfway"),
        passes=("halfway",),  # as much as with bumps alone
        runs=_with_more_bumps,
        fields={"few": 50},
    ),
    Case(
        "C13, as sharp without bumps",
        mechanism=(),
        excluded=tuple(NETWORKS),
        runs=functools.partial(_with_more_bumps, sharper=False),
        fields={"few": 50},
        row=layers.UNITS_TURN_FROM_STRIPES_TO_BUMPS,
    ),
)

# --- the claim on smooth volume ----------------------------------------------------------------


def volumes(preset: str) -> dict[str, Run]:
    """Maps whose volume is known, at the corner, the grid and the width of bumps of a decoder of
    low-rank embeddings."""
    score, empty = scorer_of(PRESETS[preset].config.task)
    world = known.world_of(empty.truths, empty.held_out)
    drawn = {name: known_volumes.images(name, world) for name in known_volumes.MAPS}
    return {
        name: Run.known(range(SEEDS), score(known.jittered(images, SEEDS, world.amplitude)))
        for name, images in drawn.items()
    }


ON_VOLUMES = (
    Case(
        "C15",
        mechanism=("bump",),
        excluded=excluding(known_volumes.MAPS, "bump"),
        passes=("plus", "superposer", "blank", "noise"),  # smooth, and no bumps
        runs=lambda name, known: {"none": known["lookup"], "both": known[name]},
    ),
)

# --- claims on turned objects ------------------------------------------------------------------


def turns(side: int) -> dict[str, dict]:
    """Known maps of one turned digit, `single`, and of two of which the first has a gap,
    `several`."""

    def known(objects, **gap):
        task = Rotation(side=side, objects=objects, angles=ANGLES, gap=GapConfig(**gap)).make()
        return turned(results.scorer(task), ANGLES * len(objects), side)

    return {"single": known(TURNED[:1]), "several": known(TURNED, of=TURNED[:1])}


def turned(score, cells: int, side: int) -> dict[str, Run]:
    """All known maps at the cells of a task, by name; `another object` where there are several.

    score: signals (T, B, N, N) -> CellResults, as the task scores.  cells: B.  side: N.
    ValueError as `circle.gaps`.
    """
    true = score(np.zeros((1, cells, side, side), np.float32))
    names = [name for name in TURNS if name != known_turns.ANOTHER or true.factors.shape[1] > 1]
    drawn = {name: known_turns.images(name, true) for name in names}
    return {
        name: Run.known(range(SEEDS), score(known.jittered(images, SEEDS, true.amplitude)))
        for name, images in drawn.items()
    }


ON_TURNS = (
    Case(
        "C14",
        mechanism=("mixture", "halves", "mixed logits"),
        # whether these pass depends on the object and the size of its image
        excluded=excluding(
            TURNS, "mixture", "halves", "mixed logits", "steep logits", "brighter", "contrast"
        ),
        # one object has no other: `another object` is asked of several as stated, too
        runs=lambda name, known: {
            "single": known["single"].get(name, known["several"][name]),
            "several": known["several"][name],
        },
    ),
    Case(
        "K6",
        mechanism=("true",),
        excluded=excluding(TURNS, "true", "half turned"),  # a faint ghost is within the tolerance
        # on few pixels a mixture of both edges' images resembles the turned one
        passes=("halves", "steep logits"),
        # a kernel on the angle mixes the edges' images too
        runs=lambda name, known: _interpolated_as("mixture")(name, known["several"]),
    ),
)


def _at_figures_size(case: Case) -> Case:
    """Of 28 pixels, on which a mixture that is black and white lies near the span as well, and no
    mixture resembles the turned image."""
    if case.claim == "K6":
        return case._replace(passes=())
    return case._replace(mechanism=(*case.mechanism, "contrast", "steep logits"))


OF_NETWORKS = tuple(
    Calibration(
        f"N = {grid}, {region}",
        {name: one.does for name, one in NETWORKS.items()},
        ON_LAYERS if region == "donut" else ON_CORNER_LAYERS,
        functools.partial(networks, grid, region),
    )
    for grid, region in SUPPORTS
)
OF_VOLUMES = tuple(
    Calibration(
        f"N = {PRESETS[preset].config.task.grid}, corner, bumps of 1.5 pixels",
        known_volumes.MAPS,
        ON_VOLUMES,
        functools.partial(volumes, preset),
    )
    for preset in ("lowrank_quick", "lowrank")
)
OF_TURNS = tuple(
    Calibration(
        f"N = {side}",
        {name: one.draws for name, one in TURNS.items()},
        ON_TURNS if side == 16 else tuple(map(_at_figures_size, ON_TURNS)),
        functools.partial(turns, side),
    )
    for side in (16, 28)
)
CALIBRATIONS = (*OF_NETWORKS, *OF_VOLUMES, *OF_TURNS)
