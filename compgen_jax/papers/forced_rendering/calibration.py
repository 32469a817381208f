"""Criteria on maps whose answer is known: only what decides rightly on them may judge a network.

For each claim on what is drawn, `CASES` says which known maps are the paper's mechanism, to come
out as reproduced in both readings, and which are no instance of it, not to be reproduced by the
stricter one nor, but for the exceptions named, by the one as stated. For claims on layers
`LAYER_CASES` says so of networks whose every layer is known. Claims on ablations and exponents are
tried on numbers whose answer is known (`ON_NUMBERS`).
"""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from compgen_jax import calibration, grids
from compgen_jax.calibration import decided, excluding
from compgen_jax.metrics import layers
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering import (
    figure1,
    known_maps,
    known_networks,
    mechanism,
    remedies,
)
from compgen_jax.papers.forced_rendering.remedies import Stripes

SEEDS = 3
OTHER = "another composer"


class Case(NamedTuple):
    """region: around which the claim's networks are trained.  mechanism: maps that must be
    reproduced.  excluded: maps that must not be.  passes: of these, those that the reading as
    stated cannot tell from the mechanism.  judge: name of a map, `Shown` -> a claim (`entry`); of
    a known network, its name and the inspections of all -> the row."""

    claim: str
    region: str
    mechanism: tuple
    excluded: tuple
    passes: tuple
    judge: object


class Shown(NamedTuple):
    """results: of every known map, by name.  ideal: see `mechanism.Ideal`.  outputs: what an
    inspection measures of them; both around a donut's hole only, where they are asked for.
    stripes: exact ones, drawn by decoders that add or multiply."""

    results: dict[str, CellResults]
    ideal: mechanism.Ideal | None
    outputs: dict
    stripes: dict[str, Stripes]


def shown(score, grid: int, region: str) -> Shown:
    """All known maps at the grid and hold-out of a task, each as a few slightly different seeds.

    `score`: signals (T, B, N, N) -> CellResults, scored as the task scores.
    """
    empty = score(np.zeros((1, grid**2, grid, grid), np.float32))
    world = known_maps.world_of(empty.truths, empty.held_out)
    results = {
        name: score(known_maps.jittered(known_maps.images(name, world), SEEDS, world.amplitude))
        for name in known_maps.MAPS
    }
    ideal, outputs = None, {}
    if region == "donut":
        ideal = mechanism.ideal(results["bump"])
        true = mechanism.similarity(empty.truths)
        outputs = {name: _outputs(found, true) for name, found in results.items()}
    lines = np.arange(world.grid, dtype=np.float32)
    vertical = [world.draw(np.float32(c), np.float32(np.nan)) for c in lines]
    horizontal = [world.draw(np.float32(np.nan), np.float32(c)) for c in lines]
    true = np.stack([*vertical, *horizontal])
    drawn = known_maps.jittered(true, SEEDS, world.amplitude)
    null = np.zeros((SEEDS, world.grid, world.grid))
    # f(x, y) = f(x) + f(y) - f() is what each plus is, by the level that it has without a factor
    levels = {"plus": 0.0, "plus - 0.4": 0.4, "plus - 1": 1.0}
    stripes = {
        name: Stripes(drawn, null + world.amplitude * levels.get(name, 0.0), true)
        for name in results
    }
    return Shown(results, ideal, outputs, stripes)


def _outputs(results: CellResults, true_BxB):
    """As far as an inspection needs no network; both constructions are that of sums."""
    numbers = [mechanism.output_numbers(one, results, true_BxB) for one in results.predictions]
    outputs = {name: np.array([one[name] for one in numbers]) for name in numbers[0]}
    outputs |= {
        name.replace(".sums.", ".mean_code."): values
        for name, values in outputs.items()
        if ".sums." in name
    }
    return SimpleNamespace(seeds=results.seeds, outputs=outputs)


def inspected(score, grid: int) -> dict:
    """All known networks around a task's hole, each as a few slightly different seeds, and the
    composer once more with others, to compare with. `score` as in `shown`."""
    empty = score(np.zeros((1, grid**2, grid, grid), np.float32))
    world = known_maps.world_of(empty.truths, empty.held_out)
    where = empty.factors, empty.held_out, grids.border(layers.BORDER, (grid, grid))
    found = {
        name: known_networks.inspected(name, world, *where, range(SEEDS))
        for name in known_networks.NETWORKS
    }
    again = range(SEEDS, 2 * SEEDS)
    return found | {OTHER: known_networks.inspected("composer", world, *where, again)}


def verdicts(found: Shown, region: str) -> dict:
    """{claim: {map: (as stated, stricter)}} of the claims around this region."""
    return {
        case.claim: {name: decided(case.judge(name, found)) for name in found.results}
        for case in CASES
        if case.region == region
    }


def layer_verdicts(found: dict) -> dict:
    """{claim: {network: (as stated, stricter)}}"""
    return {
        case.claim: {name: decided(case.judge(name, found)) for name in known_networks.NETWORKS}
        for case in LAYER_CASES
    }


def wrongly_decided(table: dict, cases: tuple = ()) -> list[str]:
    """`claims.calibration.wrongly_decided`, by default by `CASES` and `LAYER_CASES`."""
    return calibration.wrongly_decided(table, cases or (*CASES, *LAYER_CASES))


PLUS = ("plus", "plus - 0.4", "plus - 1")
TRAINED = np.ones(SEEDS)


CASES = (
    Case(
        "C1",
        "donut",
        ("superposer", "sum", "lookup", "edge", "blank", "noise"),  # whatever fails
        ("bump",),
        (),
        lambda name, found: figure1.fails_ood("bump", found.results[name]),
    ),
    Case(
        "C2",
        "donut",
        ("edge",),
        excluding(known_maps.MAPS, "edge"),
        (),
        lambda name, found: figure1.succeeds_near_edge(
            "bump", found.results[name], found.results["superposer"]
        ),
    ),
    Case(
        "C3",
        "donut",
        ("superposer", "sum"),
        excluding(known_maps.MAPS, "superposer", "sum", "edge"),
        ("noise",),
        lambda name, found: figure1.superposes_seen("bump", found.results[name]),
    ),
    Case(
        "C4",
        "donut",
        ("superposer", "sum"),
        ("bump", "lookup", "blank", "noise"),
        ("lookup",),
        lambda name, found: mechanism.superposes("bump", TRAINED, found.outputs[name], found.ideal),
    ),
    Case(
        "C5",
        "donut",
        ("sum",),
        ("bump", "lookup", "blank", "noise"),
        (),
        lambda name, found: mechanism.resembles_binary_kernel(
            "bump", TRAINED, found.outputs[name], found.ideal
        ),
    ),
    Case(
        "C9",
        "corner",
        PLUS,
        excluding(known_maps.MAPS, *PLUS),
        (),
        lambda name, found: remedies.stripes_add_up(
            "bump", found.results[name], found.stripes[name]
        ),
    ),
    Case(
        "C10",
        "corner",
        ("bump",),
        excluding(known_maps.MAPS, "bump"),
        (),
        lambda name, found: remedies.few_bumps_multiply(
            "bump", {0: found.results["plus"], 9: found.results[name]}, 9, found.stripes[name]
        ),
    ),
)


def _with_untrained(found: dict, name: str):
    """The inspection of a network that was random before training."""
    untrained = {f"untrained.{key}": value for key, value in found["random"].numbers.items()}
    return SimpleNamespace(seeds=found[name].seeds, numbers=found[name].numbers | untrained)


DISTORTED = ("fading", "swelling", "to the seen")
LAYER_CASES = (
    Case(
        "C6",
        "donut",
        ("swirling", "fading", "to the seen"),
        ("composer", "stripes", "products", "reversed", "random"),
        ("composer", "products"),  # the features of any decoder turn from a code into an image
        lambda name, found: mechanism.decays_with_depth("bump", TRAINED, found[name], found[OTHER]),
    ),
    Case(
        "C7",
        "donut",
        DISTORTED,
        excluding(known_networks.NETWORKS, *DISTORTED, "fading inwards"),
        (),
        lambda name, found: mechanism.distorts_volume("bump", TRAINED, found[name], found[OTHER]),
    ),
    Case(
        "C7, opposite to swelling",
        "donut",
        ("fading", "to the seen", "fading inwards"),
        excluding(known_networks.NETWORKS, "fading", "to the seen", "fading inwards"),
        ("random", "swirling", "stripes", "products", "reversed", "composer"),  # by a hair
        lambda name, found: mechanism.mlp_is_opposite(
            "bump", TRAINED, found["swelling"], found[name]
        ),
    ),
    Case(
        "C12",
        "donut",
        ("composer",),
        ("fading", "swelling", "fading inwards"),
        (),
        lambda name, found: remedies.volume_stays_smooth(
            "bump", TRAINED, found[name], found["fading inwards"]
        ),
    ),
    Case(
        "C13",
        "donut",
        ("composer",),
        ("stripes", "products", "reversed", "random"),
        (),
        lambda name, found: remedies.units_turn_from_stripes_to_bumps(
            "bump",
            TRAINED,
            *(_with_untrained(found, one) for one in (name, "composer")),
        ),
    ),
)
ON_NUMBERS = ("C8", "C11", "K1", "K2", "K3", "K4", "K5")
