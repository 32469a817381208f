"""Why do networks not compose a square of bumps, and what lets them? Other decoders, squares,
weights that read the code, and stripes, around the first paper's quick networks."""

import functools

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.papers.forced_rendering import bump_presets as paper
from compgen_jax.papers.forced_rendering.bump_presets import (
    BUMP_CNN,
    BUMPS,
    CORNER,
    DONUT,
    EDGES,
    HOLE,
    PAPER,
    QUICK,
    SEEDS,
    SHORT,
    SMALL_HOLE,
)
from compgen_jax.papers.variations import SCALES, Preset, at_scale, fresh
from compgen_jax.tasks.bump import Bump, SizeConfig
from compgen_jax.tasks.supports import SupportConfig

RUNS = {}
BUMP, TWO_OBJECTS = paper.RUNS["bump_cnn"], paper.RUNS["two_objects"]

# A ladder of decoders, the same task and training for all; see the claim K4. Steps and sizes were
# chosen by ID numbers of the donut and of wide bumps at seed 50, which no claim uses.
LADDER = HOLE | SHORT | {"training.evaluate_every": 300, "training.seeds": tuple(range(20))}
PER_PIXEL = {"model.name": "pixelwise", "model.depth": 4, "model.width": 64}
RUNGS = {
    "conv": {"model.width": 32},
    "conv_coordinates": {"model.width": 32, "model.coordinates": True},
    "pixelwise_onehot": PER_PIXEL | {"task.code.name": "onehot"},
    "pixelwise_bump": PER_PIXEL,
    "transformer": {  # without dropout it learns the ID cells in as many steps as the others
        "model.name": "transformer",
        "model.depth": 2,
        "model.width": 64,
        "model.heads": 2,
        "model.hidden": 128,
        "model.dropout": 0.0,
    },
}
for rung, model in RUNGS.items():
    decoder = Preset(BUMP_CNN, LADDER | model, **QUICK)
    wide = {"task.image.sigma": 2.5, "training.seeds": tuple(range(8))}
    RUNS |= {
        f"ladder_{rung}_donut": decoder,
        f"ladder_{rung}_corner": Preset(decoder, CORNER | {"task.support.low": 7}, **QUICK),
        f"ladder_{rung}_wide": Preset(decoder, wide, **QUICK),
    }
# other squares around the same centre; the authors' has 9 x 9 of 28 x 28 positions
for side in (2, 4, 6, 8):
    square = {"task.support.low": 8 - side // 2, "task.support.high": 7 + side // 2}
    RUNS[f"bump_cnn_square_{side}"] = Preset(BUMP, quick=square, **QUICK)
RUNS["bump_cnn_square_9"] = Preset(BUMP, SMALL_HOLE, **PAPER)
# bumps with a third factor, their size; a box of combinations is held out
THREE_FACTORS = Config(
    task=Bump(
        size=SizeConfig(values=12, largest=2.5, low=3, high=8),
        support=SupportConfig(samples=10_000),
    ),
    training=TrainingConfig(steps=8000, evaluate_every=1000, seeds=SEEDS),
)
RUNS["three_factors"] = Preset(
    THREE_FACTORS,
    # after 1200 steps 97% of ID combinations are drawn at exactly the right pixel
    quick=BUMPS
    | SHORT
    | {
        "task.size.values": 6,
        "task.size.low": 1,
        "task.size.high": 3,
        "task.support.samples": 3000,
        "training.evaluate_every": 300,
    },
    takes=("about 30 s", "about 2 h"),
)
# Held out is a box; a square of x and y at every size, so that none of its pairs (x, y) is seen; a
# square of x and size at every y; as many combinations as in the box, at random.
for name, fields in (
    ("xy", {"task.support.of": ("x", "y")}),
    ("xs", {"task.support.of": ("x", "size")}),
    ("random", paper.at_random),
):
    RUNS[f"three_factors_{name}"] = Preset(RUNS["three_factors"], fields)
# as deep as the authors' network, with half of its channels, around our square of 10 x 10
RUNS["bump_cnn_deep"] = Preset(
    BUMP, {"model.depth": 10, "model.width": 128}, takes=("1 h",), **QUICK
)
# Which weights read the code: those of all pixels, or each pixel's own; in per-pixel networks, in
# convolutions of the whole image, and in a convolutional decoder that doubles its image twice. See
# the claim K11. Steps and rate are such that ID cells are learnt at seed 50. That OOD cells differ
# was found at seeds 50 to 55, and is judged at others.
SLOWLY = {"training.steps": 2400, "training.learning_rate": 1e-3}
LONGER = {"training.steps": 4800, "training.evaluate_every": 600}
for layers, field, model in (
    ("pixels", "model.shared", PER_PIXEL),
    ("convolutions", "model.shared", PER_PIXEL | {"model.kernel": 3}),
    ("doubling", "model.broadcast", RUNGS["conv_coordinates"]),
):
    for code in ("bump", "onehot"):
        for weights, shared in (("shared", True), ("own", False)):
            RUNS[f"{layers}_{weights}_{code}"] = Preset(
                BUMP_CNN,
                model | {field: shared, "task.code.name": code},
                quick=LADDER | SLOWLY,
                paper=SLOWLY | LONGER,
                scales=SCALES if (layers, code) == ("pixels", "bump") else ("quick",),
            )
# What else the convolutional decoder has, and the others lack: doublings, and a ReLU before it is
# told a place. Seeds 0 to 19 were looked at before the claim K11.parts was written.
DOUBLING, UNMIXED = RUNS["doubling_shared_bump"], {"model.mixes": False}
UNDOUBLED, OTHERS = {"model.doublings": 0}, {"training.seeds": tuple(range(20, 32))}
NEITHER, NARROW = UNMIXED | UNDOUBLED | OTHERS, OTHERS | {"model.width": 32}
RUNS |= {
    "doubling_unmixed": Preset(DOUBLING, UNMIXED, **QUICK),
    "doubling_undoubled": Preset(DOUBLING, UNDOUBLED, **QUICK),
    "doubling_unmixed_undoubled": Preset(DOUBLING, NEITHER, **QUICK),
    "doubling_unmixed_undoubled_64": Preset(DOUBLING, NEITHER | {"model.width": 64}, **QUICK),
    "convolutions_shared_32": Preset(RUNS["convolutions_shared_bump"], NARROW, **QUICK),
}
# A convolutional decoder that doubles its image and composes, `upsampled_once_shared`, and others
# in which one thing is changed. Found at seeds 50 to 53, and written down before any of the seeds
# judged here was trained.
ADAPTED = {
    "model.broadcast": True,
    "model.mixes": False,
    "model.sines": True,
    "model.activation": "prelu",
    "model.width": 64,
}
VARIANTS = {
    "shared": {},
    "own": {"model.broadcast": False},
    "mixed": {"model.mixes": True},
    "relu": {"model.activation": "relu"},
    "coordinates": {"model.sines": False, "model.coordinates": True},
    "narrow": {"model.width": 32},
}
for times, doublings in (("once", 1), ("twice", 2)):
    for name, changes in VARIANTS.items():
        RUNS[f"upsampled_{times}_{name}"] = Preset(
            BUMP_CNN,
            ADAPTED | {"model.doublings": doublings} | changes,
            quick=LADDER | SLOWLY | OTHERS,
            paper=SLOWLY | LONGER,
            scales=SCALES if times == "once" and name in ("shared", "own") else ("quick",),
        )
# With as many parameters, 130,000, and where a second bump or wide bumps light every pixel. Seeds 0
# to 7 were looked at before the claims K11.besides and K11.wide were written.
LATER = {"training.seeds": tuple(range(8, 16))}
for weights, width, shared in (("own", 16, False), ("shared", 176, True)):
    pixels = Preset(RUNS[f"pixels_{weights}_bump"], LATER, **QUICK)
    model = PER_PIXEL | {"model.shared": shared} | LATER
    RUNS |= {
        f"pixels_{weights}_as_many_parameters": Preset(pixels, {"model.width": width}, **QUICK),
        f"pixels_{weights}_wide": Preset(pixels, {"task.image.sigma": 2.5}, **QUICK),
        f"pixels_{weights}_two_objects": Preset(TWO_OBJECTS, model, **QUICK),
    }
# As many stripes as bumps. Steps of the networks with own weights are enough at seeds 50 and 51, of
# which the ID cells alone were looked at; no other was trained before K11.stripes was written. Two
# sets of weights (`pixels_apart`) are one for the pixels that no shown bump covers, 6 x 6 (13 x 13
# at the papers' size), or as many of a corner, and one for the rest. None was trained before
# K11.apart was written.
SHUFFLED = {"task.stripes.shuffled_codes": True}
STRIPED = OTHERS | {"task.stripes.copies": 31}
RUNS["pixels_own_stripes"] = Preset(RUNS["pixels_own_bump"], STRIPED, **QUICK)
RUNS["bump_cnn_stripes"] = Preset(
    BUMP, quick=STRIPED, paper={"task.stripes.copies": 36, "training.seeds": tuple(range(20, 26))}
)
for where, quick, papers in (("middle", (5, 10), (8, 20)), ("corner", (0, 5), (0, 12))):
    RUNS[f"pixels_apart_{where}"] = Preset(
        RUNS["pixels_shared_bump"],
        quick={"model.apart": quick, "training.seeds": tuple(range(8, 20))},
        paper={"model.apart": papers},
    )
    blank = {"task.stripes.hole": quick}
    masked = blank | {"task.stripes.hole_is": "left_out"}
    RUNS |= {
        f"bump_cnn_stripes_hole_{where}": Preset(RUNS["bump_cnn_stripes"], blank, **QUICK),
        f"bump_cnn_stripes_left_out_{where}": Preset(RUNS["bump_cnn_stripes"], masked, **QUICK),
        f"pixels_own_stripes_left_out_{where}": Preset(RUNS["pixels_own_stripes"], masked, **QUICK),
    }
for name, preset in (
    ("donut_stripes", paper.RUNS["donut_stripes"]),
    ("pixels_own_stripes", RUNS["pixels_own_stripes"]),
    ("bump_cnn_stripes", RUNS["bump_cnn_stripes"]),
):
    RUNS[f"{name}_shuffled"] = Preset(preset, SHUFFLED, **QUICK)
# the low-rank decoder around the same square
for name in ("lowrank_none", "lowrank_variance"):
    RUNS[f"{name}_square"] = Preset(paper.RUNS[name], DONUT, quick=EDGES | OTHERS, **QUICK)


# scale -> the configs by name of the run
runs = functools.cache(functools.partial(at_scale, RUNS))
SETTINGS = (
    # K4, K5 and K11 at fresh seeds
    fresh(
        "bump_cnn_stripes",
        "bump_cnn_stripes_hole_middle",
        "bump_cnn_stripes_hole_corner",
        "donut_stripes_shuffled",
        "pixels_own_bump",
        "pixels_shared_bump",
        *(f"ladder_{rung}_donut" for rung in RUNGS),
        *(name for name in RUNS if "left_out" in name),
    ),
)
