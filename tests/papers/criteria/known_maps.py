"""Known answers of the first paper, and what its criteria must say of them.

Known maps draw an image for every position (x, y), or for every pair of two objects' positions.
Seen combinations are true bumps, and each map draws held-out ones in its own way. Held out is a
square with seen cells next to it on each row and column, or a corner.
"""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.metrics import reference_images
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.metrics.reference_images import (
    World,
    lookup,
    neighbours,
    output_numbers,
    superposer,
    world_of,
)
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.studies.why_not import why_not_claims
from compgen_jax.tasks import baselines, bump
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.supports import SupportConfig
from tests.papers.criteria.matrix import Matrix, letters

SEEDS = 3  # slightly different copies of everything known
GAIN, PIXELS = 0.05, 0.01  # standard deviations of a seed's jitter: of the gain, of every pixel
# the holes and corners of the presets
SUPPORTS = {
    (16, "donut"): SupportConfig(region="donut", low=3, high=12),
    (16, "corner"): SupportConfig(region="corner", low=7),
    (28, "donut"): SupportConfig(region="donut", low=6, high=22),
    (28, "corner"): SupportConfig(region="corner", low=12),
}
# where the authors' own network of Figure 1b is judged: 81 of 784 cells are held out
AUTHORS = 28, "the authors' hole"
SUPPORTS_OF_MAPS = SUPPORTS | {AUTHORS: SupportConfig(region="donut", low=10, high=18)}


def bumps(grid: int, region: str) -> Bump:
    return Bump(grid=grid, support=SUPPORTS_OF_MAPS[grid, region])


def scorer_of(config: Bump):
    """A task's scorer, and what it says of a network that draws nothing."""
    score, grid = results.scorer(config.make()), config.grid
    return score, score(np.zeros((1, grid**2, grid, grid), np.float32))


def jittered(images, seeds: int = SEEDS, amplitude: float = 1.0):
    """(S, ...) copies of images, each with a gain and pixels of its own."""
    images, copies = np.asarray(images, np.float64), []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        gain, noise = 1 + GAIN * rng.normal(), PIXELS * amplitude * rng.normal(size=images.shape)
        copies.append(gain * images + noise)
    return np.stack(copies).astype(np.float32)


# --- maps of one object ------------------------------------------------------------------------

NEAR = 1.0  # pixels from a seen combination: what `edge` composes
FAINT = 0.01  # the height of `faint`, in bumps


MAPS = {
    "bump": "the bump that is asked for",
    "faint": "the bump that is asked for, at a hundredth of its height",
    "plus": "its two stripes, added",
    "plus - 0.4": "the plus, less .4 of the amplitude",
    "plus - 1": "the plus, less the amplitude",
    "lookup": "the nearest seen image",
    "superposer": "the seen bumps next on its row and column, weighted by 1 / distance",
    "sum": "the sum of all seen bumps on its row and on its column",
    "edge": "the bump within a pixel of a seen one, else what `superposer` draws",
    "blank": "nothing",
    "noise": "independent uniform pixels",
}
KERNELS = {  # code and predictor of `baselines.FROM_CODES`; asked around holes alone
    "wide network": ("bump", "wide_network"),
    "interpolator": ("bump", "interpolator"),
    "ramp's wide network": ("ramp", "wide_network"),
    "ramp's interpolator": ("ramp", "interpolator"),
}
OF_KERNELS = {
    name: f"what `baselines.{predictor}` draws from the {code} code"
    for name, (code, predictor) in KERNELS.items()
}
PLUS = {"plus": 0.0, "plus - 0.4": 0.4, "plus - 1": 1.0}  # less so much of the amplitude


def plus(point, world: World, level: float = 0.0):
    """Both stripes, added, less so much of the amplitude."""
    (x, y), missing = point, jnp.float32(jnp.nan)
    return world.draw(x, missing) + world.draw(missing, y) - level * world.amplitude


def sum_of_all(point, world: World):
    (x, y), values = point, jnp.arange(world.grid, dtype=jnp.float32)
    seen = ((values < world.low) | (values > world.high)).astype(jnp.float32)
    row = jax.vmap(lambda value: world.draw(value, y))(values)
    column = jax.vmap(lambda value: world.draw(x, value))(values)
    return jnp.tensordot(seen, row + column, axes=1)


def edge(point, world: World):
    near = neighbours(point, world)[1].min() <= NEAR
    return jnp.where(near, world.draw(*point), superposer(point, world))


def noise(point, world: World):
    cell = jnp.round(point).astype(jnp.int32)
    key = jax.random.fold_in(jax.random.key(0), cell[0] + world.grid * cell[1])
    return world.amplitude * jax.random.uniform(key, (world.grid, world.grid))


RULES = {
    "bump": reference_images.true_image,
    "faint": lambda point, world: FAINT * world.draw(*point),
    **{name: partial(plus, level=level) for name, level in PLUS.items()},
    "lookup": lookup,
    "superposer": superposer,
    "sum": sum_of_all,
    "edge": edge,
    "blank": lambda point, world: jnp.zeros((world.grid, world.grid)),
    "noise": noise,
}


def images(name: str, world: World):
    """(B, N, N) of a map at every cell, x varying fastest."""
    return reference_images.images(RULES[name], world)


def maps(grid: int, region: str, names=tuple(MAPS)) -> dict[str, Run]:
    """Known maps around a hole or a corner, by name."""
    config = bumps(grid, region)
    score, empty = scorer_of(config)
    world = world_of(empty.truths, empty.held_out)
    task = config.make()
    from_codes = {
        code: _from_codes(score, replace(config, code=CodeConfig(name=code)), empty)
        for code in ("bump", "ramp")[: 2 if KERNELS.keys() & set(names) else 1]
    }
    stripes = jittered(results.truths_at(task, bump.stripe_points(grid)), amplitude=world.amplitude)
    known = {WITH_RAMP: from_codes.get("ramp")}
    for name in names:
        if name in KERNELS:
            code, predictor = KERNELS[name]
            of_map = from_codes[code][predictor].predictions[0]
        else:
            of_map = images(name, world)
        height = FAINT if name == "faint" else 1.0  # jitter is in proportion to it
        cells = score(jittered(of_map, amplitude=height * world.amplitude))
        # without factors the level for which each plus is f(x) + f(y) - f()
        null = np.full_like(stripes[:, :1], PLUS.get(name, 0.0) * world.amplitude)
        known[name] = Run.known(
            cells.seeds,
            cells=cells,
            outputs={} if region == "corner" else _outputs(cells),
            config=SimpleNamespace(task=config),
            task=task,
            **from_codes["bump"],
            # claims ask for what is drawn for one factor and for none, and for no other points
            predict=partial(lambda drawn, points: drawn, np.concatenate([stripes, null], axis=1)),
        )
    return known


def _from_codes(score, config: Bump, empty: CellResults) -> dict[str, CellResults]:
    """What kernels say that know the images of all ID cells, once for every copy, by name."""
    task = config.make()
    codes = tasks.examples_at(task, jax.random.key(0), tasks.points(task)).input
    known = ~empty.held_out
    drawn = {
        name: predict(codes[known], empty.truths[known], codes).astype(np.float32)
        for name, predict in baselines.FROM_CODES.items()
    }
    return {name: score(np.repeat(each[None], SEEDS, axis=0)) for name, each in drawn.items()}


# --- how what they draw is alike ---------------------------------------------------------------


def _outputs(cells: CellResults) -> dict:
    """(S,) by metric. Both constructions of superpositions are that of sums, as the other one needs
    a network."""
    numbers = [output_numbers(of_seed, cells) for of_seed in cells.predictions]
    outputs = {key: np.array([one[key] for one in numbers]) for key in numbers[0]}
    return outputs | {key.replace(".sums.", ".mean_code."): outputs[key] for key in outputs}


# --- what claims must say of maps --------------------------------------------------------------

BESIDE_BLANK = "beside an interpolator that renders nothing"
BESIDE_BUMP = "beside an interpolator that composes"
WITH_RAMP = "beside the kernels of the ramp code"
IN_HALF = "in half of the seeds, blank in the others"
NONE = dict.fromkeys(MAPS, "-")
BUT_EDGE = {name: "-" for name in MAPS if name != "edge"}
NO_SUMS = {name: "-" for name in BUT_EDGE if name not in PLUS}  # a plus is nearly a sum
SUMS = {"superposer": "R", "sum": "R"}
WIDE = {"wide network": "R"}
AS_A_KERNEL = NONE | dict.fromkeys(KERNELS, "-")
FAILS = dict.fromkeys(MAPS, "R") | {"bump": "-"}  # `edge` renders what the interpolator does
COMPOSES = NONE | {"bump": "R"}
STRUCTURE = {name: "-" for name in NO_SUMS if name != "superposer"} | {"sum": "R"}
ON_HOLES = {
    "C1": FAILS | WIDE,
    "C1.interpolation": FAILS | WIDE,
    f"C1.interpolation, {BESIDE_BLANK}": FAILS | {"edge": "-"},
    "C2": NONE | WIDE | {"edge": "R"},  # it renders the corners of the hole
    "C2.overlap": NONE | WIDE | {"edge": "R"},
    "C3": BUT_EDGE | SUMS | WIDE | {"noise": "r"},
    "C3.chance": BUT_EDGE | SUMS | WIDE,
    "C3.kernel": NONE | {"sum": "R", "noise": "r", "wide network": "-"},
    f"C3.kernel, {BESIDE_BLANK}": BUT_EDGE | SUMS | WIDE | {"noise": "r"},
    "C4": NO_SUMS | SUMS | WIDE | {"lookup": "r"},
    "C4.ideal": NO_SUMS | SUMS | WIDE,
    "C4.kernel": AS_A_KERNEL | WIDE,
    f"C4.kernel, {WITH_RAMP}": AS_A_KERNEL | {"ramp's wide network": "R"},
    "C5": STRUCTURE,
    "C5.true_images": STRUCTURE | WIDE,
    "C5.codes": STRUCTURE | {"superposer": "-"},
    "C5.codes_true_images": STRUCTURE | {"superposer": "-"},
    "K2": {name: letter for name, letter in FAILS.items() if name != "edge"},
    "K3": COMPOSES,
    "K3.interpolation": NONE,
    f"K3.interpolation, {BESIDE_BUMP}": COMPOSES,
    "K5": COMPOSES,
    f"K5, {BESIDE_BUMP}": NONE,
    "K5.added": COMPOSES,
    "K5.baselines": COMPOSES,
    "K5.shuffled": FAILS,
}
ON_CORNERS = {
    "C9": NONE | dict.fromkeys(PLUS, "R"),
    "C9.own_parts": NONE | dict.fromkeys(PLUS, "R"),
    "K10": COMPOSES | {"faint": "r"},
    "K10.additive": NONE | dict.fromkeys(PLUS, "R"),
    "C10": COMPOSES,
    "C10.rendered": COMPOSES,
    f"C10.rendered, {IN_HALF}": {"bump": "-"},
    "C10.baselines": COMPOSES,
    # smooth, and no bumps: only the true images' volume tells them
    "C15": letters(
        MAPS,
        ("plus - 1", "noise"),
        R=("bump",),
        r=("plus", "plus - 0.4", "superposer", "sum", "edge", "blank"),
    ),
    "C15.true_images": COMPOSES,
}
OF_FIGURE_1 = "C1", "C3", "C4"  # and of the authors' own networks


def _beside(cells, kernel) -> Run:
    return Run.known(cells.seeds, cells=cells, interpolator=kernel, wide_network=kernel)


def _interpolated_as(predictor: str, name: str, known: dict):
    """Beside an interpolator that draws what another known answer does."""
    return {"net": _beside(known[name].cells, known[predictor].cells)}


def _seeds_of(known: dict, names) -> Run:
    """A run with a seed for each named map, which draws what a copy of this map does."""
    copies = [index % SEEDS for index in range(len(names))]
    pick = lambda given: np.stack([one[at] for one, at in zip(given, copies, strict=True)])

    def picked(every: list[CellResults]):
        scores = {key: pick([one.scores[key] for one in every]) for key in every[0].scores}
        drawn = pick([one.predictions for one in every])
        return every[0]._replace(drawn, scores=scores, seeds=tuple(range(len(names))))

    cells = picked([known[name].cells for name in names])
    run = _beside(cells, picked([known[name].interpolator for name in names]))
    run.config, run.task = known[names[0]].config, known[names[0]].task
    run.predict = lambda points: pick([known[name].predict(points) for name in names])
    return run


def _counted(name: str, known: dict):
    """Seeds enough to be counted, which all draw the same map."""
    return {"net": _seeds_of(known, [name] * LADDER_SEEDS)}


def _in_half(name: str, known: dict):
    return {"net": _seeds_of(known, [name, "blank"] * (LADDER_SEEDS // 2))}


def _counted_beside_bump(name: str, known: dict):
    net = _counted(name, known)["net"]
    return {"net": _beside(net.cells, _seeds_of(known, ["bump"] * LADDER_SEEDS).cells)}


def _with_ramp(name, known):
    net = known[name]
    return {"net": Run.known(net.seeds, cells=net.cells, **known[WITH_RAMP])}


def _beside_superposer(argument: str, other: str, name: str, known: dict):
    """`superposer` in the place of a control, or of the network with another code."""
    return {argument: known[name], other: known["superposer"]}


def _beside_lookup(name, known):
    return {"none": known["lookup"], "both": known[name]}


def _with_stripes_alone(name, known):
    return {"net": known[name], "none": known["plus"], "by_bumps": []}


BESIDE = {
    "K5": _counted,
    f"K5, {BESIDE_BUMP}": _counted_beside_bump,
    "K5.added": _counted,
    "K5.baselines": _counted,
    "K5.shuffled": _counted,
    f"C1.interpolation, {BESIDE_BLANK}": partial(_interpolated_as, "blank"),
    f"C3.kernel, {BESIDE_BLANK}": partial(_interpolated_as, "blank"),
    f"C4.kernel, {WITH_RAMP}": _with_ramp,
    "C2.overlap": partial(_beside_superposer, "net", "control"),
    "C5.codes": partial(_beside_superposer, "bump", "ramp"),
    "C5.codes_true_images": partial(_beside_superposer, "bump", "ramp"),
    "C10": _with_stripes_alone,
    "C10.rendered": _counted,
    f"C10.rendered, {IN_HALF}": _in_half,
    "C10.baselines": _counted,
    "C15": _beside_lookup,
    "C15.true_images": _beside_lookup,
    f"K3.interpolation, {BESIDE_BUMP}": partial(_interpolated_as, "bump"),
}

ON_MAPS = {place: ON_HOLES if place[1] == "donut" else ON_CORNERS for place in SUPPORTS} | {
    AUTHORS: {row: letters for row, letters in ON_HOLES.items() if row.startswith(OF_FIGURE_1)}
}
OF_MAPS = tuple(
    Matrix(f"N = {grid}, {where}", does, partial(maps, grid, where, tuple(does)), rows, BESIDE)
    for (grid, where), rows in ON_MAPS.items()
    for does in [MAPS if where == "corner" else MAPS | OF_KERNELS]
)

# --- ladders of networks -----------------------------------------------------------------------

LADDER_SEEDS = 8  # as few as any run whose seeds are counted has
# how many of 8 seeds compose, rung by rung; the others draw the nearest seen image
LADDERS = {
    "rises": (0, 2, 4, 6, 8),
    "last alone": (0, 0, 0, 0, 8),
    "all but the first": (0, 8, 8, 8, 8),
    "half at the end": (0, 0, 0, 2, 4),
    "falls": (8, 6, 4, 2, 0),
    "none": (0, 0, 0, 0, 0),
    "few": (2, 2, 2, 2, 2),
    "all": (8, 8, 8, 8, 8),
    "middle alone": (0, 0, 8, 0, 0),
    "second and last": (0, 8, 0, 0, 8),
}
RISING = {"R": ("rises", "last alone", "all but the first"), "r": ("second and last",)}
# it rises where half of the seeds compose at its end as well
ON_LADDERS = letters(LADDERS, R=(*RISING["R"], "half at the end"), r=RISING["r"])


def _rungs(name: str, known: dict) -> list[Run]:
    drawn = lambda count: ["bump"] * count + ["lookup"] * (LADDER_SEEDS - count)
    return [_seeds_of(known, drawn(count)) for count in LADDERS[name]]


def _ladder(name, known):
    return dict(zip(why_not_claims.RUNGS, _rungs(name, known), strict=True))


def _light(wide: str | None, narrow: str | None, name: str, known: dict):
    """One of both ladders rises."""
    of_wide = dict(zip(why_not_claims.WIDE, _rungs(wide or name, known), strict=True))
    return of_wide | _ladder(narrow or name, known)


def _ends(name: str, known: dict, first: str = "own", last: str = "shared"):
    """The first and the last rung of a ladder."""
    rungs = _rungs(name, known)
    return {first: rungs[0], last: rungs[-1]}


_places = partial(_ends, first="middle", last="corner")

OF_LADDERS = tuple(
    Matrix(
        f"N = {grid}, {where}, ladders",
        {name: f"so many of 8 seeds compose: {counts}" for name, counts in LADDERS.items()},
        partial(maps, grid, where, ("bump", "lookup")),
        {
            "K4": letters(LADDERS, **RISING),
            "K11": letters(LADDERS, **RISING),
            "K11.doubling": letters(LADDERS, R=("none", "middle alone")),
            "K11.besides": letters(LADDERS, **RISING),
            "K11.apart": letters(LADDERS, **RISING),
            "K5.hole": letters(LADDERS, **RISING),
            "K11.left_out": letters(LADDERS, **RISING),
            "K11.upsampled": letters(LADDERS, **RISING),
            "K11.lacks": letters(LADDERS, R=(*RISING["R"], "half at the end", "second and last")),
            "K11.wide": letters(LADDERS, R=("all", "falls")),
            "K11.stripes": letters(LADDERS, **RISING),
            "K11.parts": letters(LADDERS, R=(*RISING["R"], "second and last")),
            "K4.light, wide bumps": ON_LADDERS,
            "K4.light, lit pixels": ON_LADDERS,
        },
        {
            "K4": _ladder,
            "K11": _ends,
            "K11.doubling": _ends,
            "K11.besides": _ends,
            "K11.apart": _places,
            "K5.hole": _places,
            "K11.left_out": _places,
            "K11.upsampled": _ends,
            "K11.lacks": partial(_ends, first="lacking", last="net"),
            "K11.wide": lambda *known: {"own": _ends(*known)["own"]},
            "K11.stripes": partial(_ends, first="shuffled", last="own"),
            "K11.parts": partial(_ends, first="plain", last="net"),
            "K4.light, wide bumps": partial(_light, None, "rises"),
            "K4.light, lit pixels": partial(_light, "rises", None),
        },
    )
    for grid, where in ((16, "donut"), (16, "corner"), (28, "donut"))
)

# --- maps of two objects -----------------------------------------------------------------------


def _misplaced(seconds):
    return np.roll(seconds, seconds.shape[-1] // 2, axis=-1)


# how the second bump is drawn: from true images (B, N, N) of it
SECONDS = {"true": np.asarray, "blank": np.zeros_like, "misplaced": _misplaced}
PAIRS = {  # held-out cells: the known map that draws the first bump, and how the second is drawn
    "both": ("bump", "true"),
    "first blank": ("blank", "true"),
    "first looked up": ("lookup", "true"),
    "first superposed": ("superposer", "true"),
    "second blank": ("bump", "blank"),
    "second misplaced": ("bump", "misplaced"),
    "both blank": ("blank", "blank"),
    "both wrong": ("lookup", "misplaced"),
    "noise": ("noise", "blank"),
}
MIXED = "both blank in one seed"
DOES = {
    name: f"first: {MAPS[first]}; second: {second}" for name, (first, second) in PAIRS.items()
} | {MIXED: "*both blank* in one seed, *first looked up* in the others"}
# the ridges of a sum and of a plus cross most second bumps, which then do not count
ON_OBJECTS = dict.fromkeys(DOES, "-") | dict.fromkeys(
    ("first blank", "first looked up", "first superposed"), "R"
)


def objects(grid: int) -> dict[str, Run]:
    """All known pairs around a hole, by name."""
    single = bumps(grid, "donut")
    score, empty = scorer_of(replace(single, bumps=2))
    truths, held_out_Bx1x1 = empty.truths, empty.held_out[:, None, None]
    firsts = results.truths_at(single.make(), empty.factors)
    world, drawn = world_of(firsts, empty.held_out), {}
    for name, (first, second) in PAIRS.items():
        pairs = images(first, world) + SECONDS[second](truths - firsts)
        drawn[name] = jittered(np.where(held_out_Bx1x1, pairs, truths))
    drawn[MIXED] = np.concatenate([drawn["both blank"][:1], drawn["first looked up"][1:]])
    cells = {name: score(of_seeds) for name, of_seeds in drawn.items()}
    return {name: _beside(one, cells["both blank"]) for name, one in cells.items()}


OF_OBJECTS = tuple(
    Matrix(
        f"N = {grid}, donut, two objects",
        DOES,
        partial(objects, grid),
        {"K1": ON_OBJECTS, "K1.second": ON_OBJECTS},
    )
    for grid in (16, 28)
)

MATRICES = *OF_MAPS, *OF_LADDERS, *OF_OBJECTS
