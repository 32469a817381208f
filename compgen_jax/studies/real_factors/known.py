"""The known answers on which the criteria for real factors are tried.

Each answer draws ID combinations as they are, and held-out ones in its own way, on the task of the
quick preset.
"""

import functools
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.claims import Matrix, letters
from compgen_jax.config import Config, changed
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.studies.real_factors import real_factors_claims as claims
from compgen_jax.studies.real_factors.real_factors_presets import runs
from compgen_jax.tasks import baselines, inverse, scene
from compgen_jax.tasks import task as tasks

SEEDS, MEASURED = 12, 60
GAIN, PIXELS = 0.03, 0.01  # standard deviations of a seed's jitter: of the gain, of every pixel
SHARES = (0.3, 0.7, 0.95)  # that a composer renders
IMAGES = {
    "truth": "what is asked",
    "half a step": "what is asked, half a step of posX too far right",
    "wrong label": "what is asked, with the next shape",
    "wrong scale": "what is asked, at the other end of the scales",
    "blank": "nothing",
    "mean image": "the mean ID image",
    "nearest": "the nearest ID image",
    "same labels": "the nearest ID image of the same shape",
    "main effects": "a sum of one image per factor, from means of ID images",
    "superposition": "the mean of the nearest ID image and of the nearest of the same shape",
    "interpolator": "kernel ridge regression from the codes, on ID cells that are measured",
    "no shape": "the mean of what is asked with each shape, and a tenth of what is asked",
    "no shape, ID too": "the same, of ID combinations, too",
    "half of the seeds": "what is asked in every other seed, the nearest ID image in the rest",
} | {f"composer {share}": f"what is asked in {share:.0%}, else nearest" for share in SHARES}


def sprites(name: str) -> Config:
    """The config of a quick run, measured at fewer cells."""
    return changed(runs("quick")[f"sprites_{name}"], {"task.measured": MEASURED})


# --- images ------------------------------------------------------------------------------------


def answers(config: Config, names=tuple(IMAGES)) -> dict[str, np.ndarray]:
    """{name: (B, ...), or (T, B, ...) by seed} what known answers of `IMAGES` draw at the measured
    cells."""
    task, world = config.task.make(), config.task.scene()

    def of_task():
        known = tasks.query(task, jax.random.key(0))
        summed = [task.baselines[name](known) for name in ("mean_image", "main_effects")]
        return jax.tree.map(jnp.asarray, (known, *summed))

    known, mean, effects = jax.tree.map(np.asarray, jax.jit(of_task)())
    factors = {factor.name: factor for factor in task.factors}
    draw = jax.jit(jax.vmap(world.picture))

    def moved(name, move):
        column, points = list(factors).index(name), np.array(tasks.points(task))
        points[:, column] = move(points[:, column], np.asarray(factors[name].values))
        return draw(jnp.asarray(points))

    codes, truths, ood = known.inputs, known.truths, known.held_out
    step = 1 / (config.task.counts.posX - 1)
    near, same = known.nearest, known.same_labels

    def shapeless():
        shapes = factors["shape"].values
        each = [moved("shape", lambda x, values, s=shape: np.full_like(x, s)) for shape in shapes]
        return 0.1 * truths + 0.9 * np.mean(each, axis=0)

    def composed(share: float):
        right = np.random.default_rng(0).permutation(np.flatnonzero(ood))
        right = np.isin(np.arange(len(ood)), right[: round(share * ood.sum())])
        return np.where(_beside(right, truths), truths, near)

    draws = {
        "truth": lambda: truths,
        "half a step": lambda: moved("posX", lambda x, values: x + step / 2),
        "wrong label": lambda: moved("shape", lambda x, of: of[np.searchsorted(of, x) - 1]),
        "wrong scale": lambda: moved("scale", lambda x, of: np.where(x > of.mean(), of[0], of[-1])),
        "blank": lambda: np.zeros_like(truths),
        "mean image": lambda: mean,
        "nearest": lambda: near,
        "same labels": lambda: same,
        "main effects": lambda: effects,
        "superposition": lambda: (near + same) / 2,
        "interpolator": lambda: baselines.interpolate(codes[~ood], truths[~ood], codes),
        "no shape": shapeless,
        "no shape, ID too": shapeless,
        "half of the seeds": lambda: np.stack([truths, near] * (SEEDS // 2)),
    } | {f"composer {share}": functools.partial(composed, share) for share in SHARES}
    where = lambda name: ood | name.endswith("ID too")
    return {name: np.where(_beside(where(name), truths), draws[name](), truths) for name in names}


def _beside(mask_B, images_Bx):
    """The mask with as many axes as images have."""
    return np.asarray(mask_B).reshape((-1,) + (1,) * (images_Bx.ndim - 1))


def known_runs(config: Config, names=tuple(IMAGES)) -> dict[str, Run]:
    score, drawn = results.scorer(config.task.make()), answers(config, names)
    of = {name: score(_jittered(images)) for name, images in drawn.items()}
    share = lambda cells: float(mean_score(cells, "rendered", cells.held_out).mean())
    interpolated = share(of["interpolator"]) if "interpolator" in of else 0.0
    return {name: _known(config, cells, interpolated) for name, cells in of.items()}


def _known(config: Config, cells, interpolated: float) -> Run:
    score = f"ood.interpolator_{config.task.make().accuracy}"
    summary = {"seeds": {seed: {score: interpolated} for seed in range(SEEDS)}}
    task = SimpleNamespace(factors=config.task.scene().factors)
    return Run.known(range(SEEDS), cells, config=config, task=task, summary=summary)


def _jittered(images):
    """(T, B, H, W) copies of images, each with a gain and pixels of its own."""
    rng, shape = np.random.default_rng(0), (SEEDS, *np.shape(images)[-3:])
    gains, noise = 1 + GAIN * rng.normal(size=(SEEDS, 1, 1, 1)), PIXELS * rng.normal(size=shape)
    return (gains * np.broadcast_to(images, shape) + noise).astype(np.float32)


def _on_range() -> dict:
    at_random = known_runs(sprites("random"), ("truth", "nearest"))
    return known_runs(sprites("range")) | {"at random": at_random}


def _on_element() -> dict:
    return known_runs(sprites("element"))


# --- pairs of factors --------------------------------------------------------------------------


PAIRS = {
    "follows": "each pair's share rendered is its main-effects share",
    "opposes": "one less that share",
    "apart": "shares that are drawn without relation",
    "all alike": "half of every pair",
    "as the interpolator": "the share follows main effects, and is the interpolator's",
}


def known_pairs() -> dict:
    """{name: runs of all pairs}."""
    names = [name for name in runs("quick") if name.startswith("sprites_pair_")]
    configs = [sprites(name.removeprefix("sprites_")) for name in names]
    of_pair = claims.main_effects(replace(configs[0].task, held_out=""))
    effects = np.array([of_pair[claims.pair(config)] for config in configs])
    apart = np.random.default_rng(2).random((2, len(effects)))
    of = {
        "follows": (effects, apart[1]),
        "opposes": (1 - effects, apart[1]),
        "apart": (apart[0], apart[1]),
        "all alike": (np.full(len(effects), 0.5), apart[1]),
        "as the interpolator": (effects, effects),
    }
    return {
        name: [_rendering(*one) for one in zip(configs, *values, strict=True)]
        for name, values in of.items()
    }


def _rendering(config: Config, share: float, interpolated: float) -> Run:
    """A run that renders all ID cells and a share of 1000 held-out ones, whatever they show."""
    held_out = np.arange(2000) >= 1000
    shown = ~held_out | (np.arange(2000) < 1000 + round(1000 * share))
    scores = {"rendered": np.tile(shown, (SEEDS, 1)), "image_r2": np.ones((SEEDS, 2000))}
    cells = SimpleNamespace(held_out=held_out, scores=scores)
    return _known(config, cells, interpolated)


# --- encoders ----------------------------------------------------------------------------------


READINGS = {
    "truth": "every factor",
    "nearest": "the factors of the nearest ID image",
    "no posX": "posX as the mean of ID combinations, the rest right",
    "no scale": "scale as the mean of ID combinations, the rest right",
    "nothing": "all real factors as the mean of ID combinations",
}


def encoders() -> dict:
    config = sprites("encoder")
    task, at = config.task.make(), np.array(tasks.points(config.task.make()))
    ood = np.asarray(task.held_out(at))
    names, real = [f.name for f in task.factors], [f.name for f in task.factors if f.real]
    mean = at[~ood].mean(axis=0, keepdims=True)
    without = lambda *chosen: np.where(np.isin(names, chosen), mean, at)
    said = {
        "truth": at,
        "nearest": scene.cells_of(config.task.scene(), config.task.held_out).nearest_seen(at),
        "no posX": without("posX"),
        "no scale": without("scale"),
        "nothing": without(*real),
    }
    answer = jax.jit(jax.vmap(lambda point: inverse.answer_of(point, task.factors)))
    score, copies = results.scorer(task), (SEEDS, 1, 1)
    answers = {name: answer(np.where(ood[:, None], each, at)) for name, each in said.items()}
    known = {n: _known(config, score(np.tile(each, copies)), 0.0) for n, each in answers.items()}
    return known | {"a decoder": _rendering(sprites("range"), 0.1, 0.0)}


# --- what claims must say of them --------------------------------------------------------------

# The interpolator's answer is not known: it renders what its kernel does.
WITHOUT = "interpolator"
RIGHT, NEITHER = ("truth", "half a step"), ("composer 0.7", WITHOUT)
MOST = *RIGHT, "composer 0.95"
SOME = *MOST, "composer 0.3"
ALL_SHOWN = "no shape"  # counts as rendered
UNLEARNT = "no shape, ID too", "half of the seeds"
NOTHING = letters(IMAGES)
FAIL = letters(IMAGES, [WITHOUT], R=IMAGES)
FAIL |= dict.fromkeys((*MOST, "composer 0.7", ALL_SHOWN, *UNLEARNT), "-")
FAIL_IN_SHAPE = FAIL | {ALL_SHOWN: "R", "half a step": "r"}  # as half a step has an r² of .87
ADDS = letters(IMAGES, NEITHER, R=SOME, r=(ALL_SHOWN,))
ADDS_TO_MUCH = letters(IMAGES, ("half a step", "composer 0.95", WITHOUT, ALL_SHOWN), R=("truth",))
ADDS_MORE = letters(IMAGES, ("composer 0.95", *NEITHER), R=RIGHT, r=(ALL_SHOWN,))


def _beside_random(control: str):
    return lambda name, known: {"net": known[name], "control": known["at random"][control]}


def _remedied(plain: str, **others: str):
    """A known answer as the remedied network, others as those beside it."""
    return lambda name, known: (
        {"net": known[name], "plain": known[plain]}
        | {argument: known[other] for argument, other in others.items()}
    )


ON_RANGE = {
    "F1": (FAIL, _beside_random("truth")),
    "F1.shape": (FAIL_IN_SHAPE, _beside_random("truth")),
    "F1.random": (FAIL, _beside_random("truth")),
    "F1.random, as few at random": (NOTHING, _beside_random("nearest")),
    "F4, where low rank alone does as well": (
        letters(IMAGES, (*SOME, *NEITHER), r=(ALL_SHOWN,)),
        _remedied("nearest", without="truth"),
    ),
    "F4.penalties, where low rank alone does as well": (
        NOTHING,
        _remedied("nearest", without="truth"),
    ),
}
for claim in ("F4", "F4.penalties"):
    ON_RANGE[claim] = ADDS, _remedied("nearest", without="main effects")
ON_RANGE["F7"] = ADDS, _remedied("nearest")
ON_RANGE["F9"] = (
    letters(IMAGES, ("composer 0.95", ALL_SHOWN, *NEITHER), R=RIGHT),
    _remedied("nearest"),
)
ADDS_SHAPES = letters(IMAGES, (*NEITHER, "half of the seeds"), R=("truth", *SOME[2:]))
ON_RANGE["F7.shape"] = ON_RANGE["F8"] = ADDS_SHAPES, _remedied("nearest")
for claim in ("F3a", "F3a.predictors"):
    ON_RANGE[claim] = ADDS, _remedied("nearest")
    ON_RANGE[f"{claim}, beside one that renders 70%"] = ADDS_TO_MUCH, _remedied("composer 0.7")
for claim in ("F3b", "F3b.predictors"):
    ON_RANGE[claim] = ADDS_MORE, _remedied("nearest", mean="composer 0.7")
    means = _remedied("nearest", mean="truth")
    ON_RANGE[f"{claim}, beside means that do as well"] = NOTHING, means


def _alone(name, known):
    return {"net": known[name]}


def _of_pairs(name, known):
    return {"pairs": known[name]}


def _beside_decoder(name, known):
    return {"net": known[name], "decoder": known["a decoder"]}


OF_ELEMENT = letters(IMAGES, ("composer 0.95", WITHOUT), R=RIGHT, r=(ALL_SHOWN,)), _alone
SHAPES = letters(IMAGES, ("composer 0.95", WITHOUT), R=("truth",)), _alone
FOLLOW, JOINT = letters(PAIRS, R=("follows",)), letters(READINGS, R=("nearest", "no posX"))
ROWS = (  # title, known answers in words, how they are made, their rows and runs by claim
    ("a range", IMAGES, _on_range, ON_RANGE),
    (
        "an element",
        IMAGES,
        _on_element,
        {"F2": OF_ELEMENT, "F2.shape": SHAPES, "F2.predictors": OF_ELEMENT}
        | {claim: ON_RANGE[claim] for claim in ("F7.shape", "F8")},
    ),
    (
        "pairs of factors",
        PAIRS,
        known_pairs,
        {
            "F5": (FOLLOW | {"as the interpolator": "r"}, _of_pairs),
            "F5.interpolator": (FOLLOW, _of_pairs),
        },
    ),
    (
        "encoders, a range",
        READINGS,
        encoders,
        {
            "F6": (JOINT | {"no scale": "r", "nothing": "r"}, _beside_decoder),
            "F6.joint": (JOINT, _beside_decoder),
        },
    ),
)
MATRICES = tuple(
    Matrix(title, does, make, *({claim: pair[k] for claim, pair in rows.items()} for k in (0, 1)))
    for title, does, make, rows in ROWS
)
