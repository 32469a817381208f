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
from compgen_jax.metrics.reference_images import World, lookup, neighbours, superposer
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.studies.why_not.why_not_claims import RUNGS, WIDE
from compgen_jax.tasks import baselines, bump
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.supports import SupportConfig
from tests.papers.criteria.matrix import Matrix, rows_of, runs_by
from tests.scoring import scorer

SEEDS = 3  # slightly different copies of everything known
GRID = 16
GAIN, PIXELS = 0.05, 0.01  # standard deviations of a seed's jitter: of the gain, of every pixel
# the holes and corners of the presets
SUPPORTS = {
    "donut": SupportConfig(region="donut", low=3, high=12),
    "corner": SupportConfig(region="corner", low=7),
}


def bumps(region: str) -> Bump:
    return Bump(grid=GRID, support=SUPPORTS[region])


def scorer_of(settings):
    """A task's scorer, and what it says of a network that draws nothing."""
    task = settings.make()
    truths = results.truths_at(task, tasks.points(task))
    return scorer(task, truths), scorer(task, truths)(np.zeros((1, *truths.shape), np.float32))


def jittered(images, seeds: int = SEEDS, amplitude: float = 1.0):
    """(S, ...) copies of images, each with a gain and pixels of its own."""
    images, copies = np.asarray(images, np.float64), []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        gain, noise = 1 + GAIN * rng.normal(), PIXELS * amplitude * rng.normal(size=images.shape)
        copies.append(gain * images + noise)
    return np.stack(copies).astype(np.float32)


# --- maps of one object ------------------------------------------------------------------------

FAINT = 0.01  # the height of `faint`, in bumps
PLUS = {"plus": 0.0, "plus-0.4": 0.4, "plus-1": 1.0}  # less so much of the amplitude


def plus(point, world: World, level: float):
    """Both stripes, added, less so much of the amplitude."""
    (x, y), missing = point, jnp.float32(jnp.nan)
    return world.draw(x, missing) + world.draw(missing, y) - level * world.amplitude


def sum_of_all(point, world: World):
    """All seen bumps on the row and on the column."""
    (x, y), values = point, jnp.arange(world.grid, dtype=jnp.float32)
    seen = ((values < world.low) | (values > world.high)).astype(jnp.float32)
    row = jax.vmap(lambda value: world.draw(value, y))(values)
    column = jax.vmap(lambda value: world.draw(x, value))(values)
    return jnp.tensordot(seen, row + column, axes=1)


def edge(point, world: World):
    """The bump within a pixel of a seen one, else what `superposer` draws."""
    near = neighbours(point, world)[1].min() <= 1
    return jnp.where(near, world.draw(*point), superposer(point, world))


def noise(point, world: World):
    cell = jnp.round(point).astype(jnp.int32)
    key = jax.random.fold_in(jax.random.key(0), cell[0] + world.grid * cell[1])
    return world.amplitude * jax.random.uniform(key, (world.grid, world.grid))


MAPS = {
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
PREDICTORS = {"wide": "wide_network", "krr": "interpolator"}  # of `baselines.FROM_CODES`


def images(name: str, world: World):
    """(B, N, N) of a map at every cell, x varying fastest."""
    return reference_images.images(MAPS[name], world)


def maps(region: str) -> dict[str, Run]:
    """Known maps around a hole or a corner, by name; kernels by code."""
    config = bumps(region)
    score, empty = scorer_of(config)
    truths, unseen, task = empty.truths, empty.held_out, config.make()
    world, known = reference_images.world_of(truths, unseen), {}
    drawn = {name: images(name, world) for name in MAPS}
    for code in ("bump", "ramp") if region == "donut" else ("bump",):
        coded = replace(config, code=CodeConfig(name=code)).make()
        codes = tasks.examples_at(coded, jax.random.key(0), tasks.points(coded)).input
        known[code + " kernels"] = kernels = {}
        for name, predictor in PREDICTORS.items():
            predict = baselines.FROM_CODES[predictor]
            of_codes = predict(codes[~unseen], truths[~unseen], codes).astype(np.float32)
            kernels[predictor] = score(np.repeat(of_codes[None], SEEDS, axis=0))
            if region == "donut":
                drawn[f"{code}-{name}"] = of_codes
    stripes = jittered(results.truths_at(task, bump.stripe_points(GRID)), amplitude=world.amplitude)
    for name, of_map in drawn.items():
        height = FAINT if name == "faint" else 1.0  # jitter is in proportion to it
        cells = score(jittered(of_map, amplitude=height * world.amplitude))
        outputs = {}
        if region == "donut":
            # both constructions of superpositions are that of sums: the other needs a network
            by_seed = [reference_images.output_numbers(one, cells) for one in cells.predictions]
            outputs = {key: np.array([numbers[key] for numbers in by_seed]) for key in by_seed[0]}
            outputs |= {key.replace(".sums.", ".mean_code."): outputs[key] for key in outputs}
        # without factors the level for which each plus is f(x) + f(y) - f()
        null = np.full_like(stripes[:, :1], PLUS.get(name, 0.0) * world.amplitude)
        known[name] = Run.known(
            cells.seeds,
            cells=cells,
            outputs=outputs,
            config=SimpleNamespace(task=config),
            task=task,
            **known["bump kernels"],
            # claims ask for what is drawn for one factor and for none, and for no other points
            predict=partial(lambda drawn, points: drawn, np.concatenate([stripes, null], axis=1)),
        )
    return known


# --- what claims must say of maps --------------------------------------------------------------

# `edge` renders the corners of the hole, and what the interpolator does
ON_HOLES = """
claim                  bump faint plus plus-0.4 plus-1 lookup superposer sum edge blank noise
C1                     -    R     R    R        R      R      R          R   R    R     R
C1.interpolation       -    R     R    R        R      R      R          R   R    R     R
C1.interpolation/blank -    R     R    R        R      R      R          R   -    R     R
C2                     -    -     -    -        -      -      -          -   R    -     -
C2.overlap             -    -     -    -        -      -      -          -   R    -     -
C3                     -    -     -    -        -      -      R          R   .    -     r
C3.chance              -    -     -    -        -      -      R          R   .    -     -
C3.kernel              -    -     -    -        -      -      -          R   -    -     r
C3.kernel/blank        -    -     -    -        -      -      R          R   .    -     r
C4                     -    -     .    .        .      r      R          R   .    -     -
C4.ideal               -    -     .    .        .      -      R          R   .    -     -
C4.kernel              -    -     -    -        -      -      -          -   -    -     -
C4.kernel/ramp         -    -     -    -        -      -      -          -   -    -     -
C5                     -    -     .    .        .      -      .          R   .    -     -
C5.true_images         -    -     .    .        .      -      .          R   .    -     -
C5.codes               -    -     .    .        .      -      -          R   .    -     -
C5.codes_true_images   -    -     .    .        .      -      -          R   .    -     -
K2                     -    R     R    R        R      R      R          R   .    R     R
K3                     R    -     -    -        -      -      -          -   -    -     -
K3.interpolation       -    -     -    -        -      -      -          -   -    -     -
K3.interpolation/bump  R    -     -    -        -      -      -          -   -    -     -
K5                     R    -     -    -        -      -      -          -   -    -     -
K5/bump                -    -     -    -        -      -      -          -   -    -     -
K5.added               R    -     -    -        -      -      -          -   -    -     -
K5.baselines           R    -     -    -        -      -      -          -   -    -     -
K5.shuffled            -    R     R    R        R      R      R          R   R    R     R
"""
ON_KERNELS = """
claim            bump-wide bump-krr ramp-wide ramp-krr
C1               R         .        .         .
C1.interpolation R         .        .         .
C2               R         .        .         .
C2.overlap       R         .        .         .
C3               R         .        .         .
C3.chance        R         .        .         .
C3.kernel        -         .        .         .
C3.kernel/blank  R         .        .         .
C4               R         .        .         .
C4.ideal         R         .        .         .
C4.kernel        R         -        -         -
C4.kernel/ramp   -         -        R         -
C5.true_images   R         .        .         .
"""
# of C15: smooth, and no bumps, so that only the true images' volume tells them
ON_CORNERS = """
claim             bump faint plus plus-0.4 plus-1 lookup superposer sum edge blank noise
C9                -    -     R    R        R      -      -          -   -    -     -
C9.own_parts      -    -     R    R        R      -      -          -   -    -     -
K10               R    r     -    -        -      -      -          -   -    -     -
K10.additive      -    -     R    R        R      -      -          -   -    -     -
C10               R    -     -    -        -      -      -          -   -    -     -
C10.rendered      R    -     -    -        -      -      -          -   -    -     -
C10.rendered/half -    .     .    .        .      .      .          .   .    .     .
C10.baselines     R    -     -    -        -      -      -          -   -    -     -
C15               R    -     r    r        .      -      r          r   r    r     .
C15.true_images   R    -     -    -        -      -      -          -   -    -     -
"""


def beside(cells, kernel) -> Run:
    return Run.known(cells.seeds, cells=cells, interpolator=kernel, wide_network=kernel)


def beside_map(predictor: str, name: str, known: dict):
    """Beside an interpolator that draws what another known answer does."""
    return {"net": beside(known[name].cells, known[predictor].cells)}


def seeds_of(known: dict, names) -> Run:
    """A run with a seed for each named map, which draws what a copy of this map does."""
    runs = [known[name] for name in names]
    pick = lambda arrays: np.stack([array[i % SEEDS] for i, array in enumerate(arrays)])

    def picked(cells):
        scores = {key: pick([one.scores[key] for one in cells]) for key in cells[0].scores}
        drawn = pick([one.predictions for one in cells])
        return replace(cells[0], predict=drawn, scores=scores, seeds=tuple(range(len(names))))

    run = beside(picked([one.cells for one in runs]), picked([one.interpolator for one in runs]))
    run.config, run.task = runs[0].config, runs[0].task
    run.predict = lambda points: pick([one.predict(points) for one in runs])
    return run


def counted(name: str, known: dict, other: str = ""):
    """Seeds enough to be counted, half of which draw another map if one is named."""
    return {"net": seeds_of(known, [name, other or name] * (LADDER_SEEDS // 2))}


BESIDE = {
    **dict.fromkeys(("K5", "K5.added", "K5.baselines", "K5.shuffled", "C10.rendered"), counted),
    "C10.baselines": counted,
    "C10.rendered/half": partial(counted, other="blank"),
    "K5/bump": lambda name, known: {
        "net": beside(*(counted(each, known)["net"].cells for each in (name, "bump")))
    },
    **dict.fromkeys(("C1.interpolation/blank", "C3.kernel/blank"), partial(beside_map, "blank")),
    "K3.interpolation/bump": partial(beside_map, "bump"),
    "C4.kernel/ramp": lambda name, known: {
        "net": Run.known(range(SEEDS), cells=known[name].cells, **known["ramp kernels"])
    },
    "C2.overlap": runs_by(net="", control="superposer"),
    **dict.fromkeys(("C5.codes", "C5.codes_true_images"), runs_by(bump="", ramp="superposer")),
    "C10": runs_by(net="", none="plus"),
    **dict.fromkeys(("C15", "C15.true_images"), runs_by(both="", none="lookup")),
}

# --- ladders of networks -----------------------------------------------------------------------

LADDER_SEEDS = 8  # as few as any run whose seeds are counted has
# how many of 8 seeds compose, rung by rung; the others draw the nearest seen image
ON_LADDERS = """
claim         02468 00008 08888 00024 86420 00000 22222 88888 00800 08008
K4            R     R     R     -     -     -     -     -     -     r
K11           R     R     R     -     -     -     -     -     -     r
K11.doubling  -     -     -     -     -     R     -     -     R     -
K11.besides   R     R     R     -     -     -     -     -     -     r
K11.apart     R     R     R     -     -     -     -     -     -     r
K5.hole       R     R     R     -     -     -     -     -     -     r
K11.left_out  R     R     R     -     -     -     -     -     -     r
K11.upsampled R     R     R     -     -     -     -     -     -     r
K11.lacks     R     R     R     R     -     -     -     -     -     R
K11.wide      -     -     -     -     R     -     -     R     -     -
K11.stripes   R     R     R     -     -     -     -     -     -     r
K11.parts     R     R     R     -     -     -     -     -     -     R
K4.light/wide R     R     R     R     -     -     -     -     -     r
K4.light/lit  R     R     R     R     -     -     -     -     -     r
"""


def ladder(*arguments: str):
    """Runs of all rungs, or of the first and the last one, or of the first alone."""

    def runs(name: str, known: dict):
        rungs = [
            seeds_of(known, ["bump"] * count + ["lookup"] * (LADDER_SEEDS - count))
            for count in map(int, name)
        ]
        chosen = rungs if len(arguments) == len(rungs) else rungs[::4]
        return dict(zip(arguments, chosen, strict=False))

    return runs


OF_LADDERS = {
    "K4": ladder(*RUNGS),
    **dict.fromkeys(
        ("K11", "K11.doubling", "K11.besides", "K11.upsampled"), ladder("own", "shared")
    ),
    **dict.fromkeys(("K11.apart", "K5.hole", "K11.left_out"), ladder("middle", "corner")),
    "K11.lacks": ladder("lacking", "net"),
    "K11.wide": ladder("own"),
    "K11.stripes": ladder("shuffled", "own"),
    "K11.parts": ladder("plain", "net"),
    "K4.light/wide": lambda name, known: (
        ladder(*WIDE)(name, known) | ladder(*RUNGS)("02468", known)
    ),
    "K4.light/lit": lambda name, known: ladder(*WIDE)("02468", known) | ladder(*RUNGS)(name, known),
}

# --- maps of two objects -----------------------------------------------------------------------

# how the second bump is drawn: from true images (B, N, N) of it
SECONDS = {
    "true": np.asarray,
    "blank": np.zeros_like,
    "misplaced": lambda seconds: np.roll(seconds, GRID // 2, axis=-1),
}
PAIRS = {  # held-out cells: the known map that draws the first bump, and how the second is drawn
    "both": ("bump", "true"),
    "first-blank": ("blank", "true"),
    "first-looked-up": ("lookup", "true"),
    "first-superposed": ("superposer", "true"),
    "second-blank": ("bump", "blank"),
    "second-misplaced": ("bump", "misplaced"),
    "both-blank": ("blank", "blank"),
    "both-wrong": ("lookup", "misplaced"),
    "noise": ("noise", "blank"),
}
# the ridges of a sum and of a plus cross most second bumps, which then do not count
ON_OBJECTS = """
answer                 K1 K1.second
both                   -  -
first-blank            R  R
first-looked-up        R  R
first-superposed       R  R
second-blank           -  -
second-misplaced       -  -
both-blank             -  -
both-wrong             -  -
noise                  -  -
one-seed-blank -  -
"""


def objects() -> dict[str, Run]:
    """All known pairs around a hole, by name."""
    single = bumps("donut")
    score, empty = scorer_of(replace(single, bumps=2))
    truths, held_out_Bx1x1 = empty.truths, empty.held_out[:, None, None]
    firsts = results.truths_at(single.make(), empty.factors)
    world, drawn = reference_images.world_of(firsts, empty.held_out), {}
    for name, (first, second) in PAIRS.items():
        pairs = images(first, world) + SECONDS[second](truths - firsts)
        drawn[name] = jittered(np.where(held_out_Bx1x1, pairs, truths))
    drawn["one-seed-blank"] = np.concatenate(
        [drawn["both-blank"][:1], drawn["first-looked-up"][1:]]
    )
    cells = {name: score(of_seeds) for name, of_seeds in drawn.items()}
    return {name: beside(one, cells["both-blank"]) for name, one in cells.items()}


MATRICES = {
    "maps around a hole": Matrix(
        partial(maps, "donut"),
        rows_of(ON_HOLES, ON_KERNELS, ON_LADDERS),
        BESIDE | OF_LADDERS,
    ),
    "maps with a corner": Matrix(
        partial(maps, "corner"), rows_of(ON_CORNERS, ON_LADDERS), BESIDE | OF_LADDERS
    ),
    "maps of two objects": Matrix(objects, rows_of(ON_OBJECTS)),
}
