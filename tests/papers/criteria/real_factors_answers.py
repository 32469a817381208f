"""Known answers of the study of real factors, and those of which each claim must be reproduced.

Each answer draws ID combinations as they are, and held-out ones in its own way, on the task of the
quick preset. A sharp one has the right shape.
"""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, changed
from compgen_jax.runs.run import Run
from compgen_jax.studies.real_factors import real_factors_claims as claims
from compgen_jax.studies.real_factors.real_factors_presets import runs
from compgen_jax.tasks import encodings, inverse, scene
from compgen_jax.tasks import task as tasks
from tests import scoring

SEEDS = 12


@cache
def sprites(name: str) -> Config:
    """The config of a quick run, measured at fewer cells."""
    return changed(runs("quick")[f"sprites_{name}"], {"task.measured": 60})


def known_run(config: Config, cells, interpolated: float = 0.0) -> Run:
    score = f"ood.interpolator_{config.task.make().accuracy}"
    summary = {"seeds": {seed: {score: interpolated} for seed in range(SEEDS)}}
    task = SimpleNamespace(factors=config.task.scene().factors)
    return Run.known(range(SEEDS), cells, config=config, task=task, summary=summary)


@cache
def images(name: str) -> dict[str, np.ndarray]:
    """(B, H, W) of the measured combinations, or (S, B, H, W), by known answer."""
    config = sprites(name)
    task, picture = config.task.make(), config.task.scene().picture
    query = jax.tree.map(np.asarray, jax.jit(lambda: tasks.query(task, jax.random.key(0)))())
    truth, near, ood = query.truths, query.nearest, query.held_out
    factors = {factor.name: np.asarray(factor.values) for factor in task.factors}
    draw = jax.jit(jax.vmap(picture))

    def with_factor(factor, values):
        points = np.array(query.points)
        points[:, list(factors).index(factor)] = values
        return draw(jnp.asarray(points))

    def composed(share):
        right = np.random.default_rng(0).permutation(np.flatnonzero(ood))
        right = np.isin(np.arange(len(ood)), right[: round(share * ood.sum())])
        return np.where(right[:, None, None], truth, near)

    shapes, shape, x = factors["shape"], query.points[:, 0], query.points[:, 3]
    blurred = np.mean([with_factor("shape", value) for value in shapes], axis=0)
    drawn = {
        "truth": truth,
        "half a step": with_factor("posX", x + 0.5 / (config.task.counts.posX - 1)),
        "wrong label": with_factor("shape", shapes[np.searchsorted(shapes, shape) - 1]),
        "blank": np.zeros_like(truth),
        "mean image": task.baselines["mean_image"](query),
        "main effects": task.baselines["main_effects"](query),
        "nearest": near,
        "superposition": (near + query.same_labels) / 2,
        "no shape": 0.1 * truth + 0.9 * blurred,
        "half of the seeds": np.stack([truth, near] * (SEEDS // 2)),
    } | {f"composer {share}": composed(share) for share in (0.3, 0.7, 0.95)}
    answers = {key: np.where(ood[:, None, None], drawn[key], truth) for key in drawn}
    return answers | {"no shape, ID too": drawn["no shape"]}


@cache
def decoder(name: str, answer: str) -> Run:
    """Each seed has a gain and pixels of its own."""
    rng, drawn = np.random.default_rng(0), images(name)[answer]
    gains = 1 + 0.03 * rng.normal(size=(SEEDS, 1, 1, 1))
    noise = 0.01 * rng.normal(size=(SEEDS, *drawn.shape[-3:]))
    score = scoring.scorer(sprites(name).task.make())
    return known_run(sprites(name), score((gains * drawn + noise).astype(np.float32)))


def rendering(config: Config, share: float, interpolated: float = 0.0) -> Run:
    """A run that renders all ID cells and a share of 1000 held-out ones, whatever they show."""
    held_out = np.arange(2000) >= 1000
    rendered = ~held_out | (np.arange(2000) < 1000 + round(1000 * share))
    scores = {"rendered": np.tile(rendered, (SEEDS, 1)), "image_r2": np.ones((SEEDS, 2000))}
    return known_run(config, SimpleNamespace(held_out=held_out, scores=scores), interpolated)


def pairs(name: str) -> dict:
    """Pairs of factors whose share rendered follows their main effects or does not."""
    names = [run for run in runs("quick") if run.startswith("sprites_pair_")]
    configs = [sprites(run.removeprefix("sprites_")) for run in names]
    of_pair = claims.main_effects(replace(configs[0].task, held_out=""))
    effects = np.array([of_pair[claims.pair(config)] for config in configs])
    apart, interpolated = np.random.default_rng(2).random((2, len(effects)))
    shares = {"opposes": 1 - effects, "apart": apart, "all alike": 0 * effects + 0.5}
    by_pair = shares.get(name, effects), effects if name == "as KRR" else interpolated
    return {"pairs": [rendering(*values) for values in zip(configs, *by_pair, strict=True)]}


def encoder(name: str) -> dict:
    """It reads ID combinations rightly; of held-out ones some factors as the mean of ID ones, or
    all as those of the nearest ID one."""
    config = sprites("encoder")
    task = config.task.make()
    points = np.array(tasks.points(task))
    ood = np.asarray(task.held_out(points))
    names = [factor.name for factor in task.factors]
    wrong = {"truth": [], "no posX": ["posX"], "no scale": ["scale"],
             "nothing": [factor.name for factor in task.factors if factor.real]}  # fmt: skip
    if name == "nearest":
        read = scene.cells_of(config.task.scene(), config.task.held_out).nearest_seen(points)
    else:
        read = np.where(np.isin(names, wrong[name]), points[~ood].mean(axis=0), points)
    answer = jax.vmap(lambda point: encodings.joined(point, inverse.answer_codes(task.factors)))
    said = answer(np.where(ood[:, None], read, points))
    net = known_run(config, scoring.scorer(task)(np.tile(said, (SEEDS, 1, 1))))
    return {"net": net, "decoder": rendering(sprites("range"), 0.1)}


def beside(run: str = "range", **others: str):
    """An answer as `net`, and others as those beside it."""
    return lambda name: (
        {"net": decoder(run, name)} | {key: decoder(run, other) for key, other in others.items()}
    )


def beside_random(control: str):
    return lambda name: {"net": decoder("range", name), "control": decoder("random", control)}


WRONG = ["wrong label", "blank", "mean image", "nearest", "main effects", "superposition"]
UNLEARNT = ["no shape, ID too", "half of the seeds"]
LITTLE, MORE, MOST = "composer 0.3", "composer 0.7", "composer 0.95"
RIGHT = ["truth", "half a step"]
EVERY = [*RIGHT, "no shape", LITTLE, MORE, MOST, *UNLEARNT, *WRONG]
FAILS = [*WRONG, LITTLE], [*RIGHT, "no shape", MORE, MOST, *UNLEARNT]
FAILS_IN_SHAPE = ["half a step", "no shape", *FAILS[0]], ["truth", MORE, MOST, *UNLEARNT]
ADDS = [*RIGHT, "no shape", LITTLE, MOST], [*UNLEARNT, *WRONG]
ADDS_TO_MUCH = ["truth"], [LITTLE, MORE, *UNLEARNT, *WRONG]
ADDS_MORE = [*RIGHT, "no shape"], [LITTLE, *UNLEARNT, *WRONG]
ADDS_SHAPES = ["truth", LITTLE, MOST], ["half a step", "no shape", UNLEARNT[0], *WRONG]
ELEMENT = [*RIGHT, "no shape"], [LITTLE, MORE, *UNLEARNT, *WRONG]
SHARP = ["truth"], ["half a step", "no shape", LITTLE, MORE, *UNLEARNT, *WRONG]
CRITERIA = [  # claim, its runs, known answers that reproduce it, those that do not
    ("F1", beside_random("truth"), *FAILS),
    ("F1.shape", beside_random("truth"), *FAILS_IN_SHAPE),
    ("F1.random", beside_random("truth"), *FAILS),
    ("F1.random", beside_random("nearest"), [], EVERY),
    ("F2", beside("element"), *ELEMENT),
    ("F2.shape", beside("element"), *SHARP),
    ("F2.predictors", beside("element"), *ELEMENT),
    ("F3a", beside(plain="nearest"), *ADDS),
    ("F3a", beside(plain=MORE), *ADDS_TO_MUCH),
    ("F3a.predictors", beside(plain="nearest"), *ADDS),
    ("F3a.predictors", beside(plain=MORE), *ADDS_TO_MUCH),
    ("F3b", beside(plain="nearest", mean=MORE), *ADDS_MORE),
    ("F3b", beside(plain="nearest", mean="truth"), [], EVERY),
    ("F3b.predictors", beside(plain="nearest", mean=MORE), *ADDS_MORE),
    ("F3b.predictors", beside(plain="nearest", mean="truth"), [], EVERY),
    ("F4", beside(plain="nearest", without="main effects"), *ADDS),
    ("F4.penalties", beside(plain="nearest", without="main effects"), *ADDS),
    ("F4.penalties", beside(plain="nearest", without="truth"), [], EVERY),
    ("F5", pairs, ["follows", "as KRR"], ["opposes", "apart", "all alike"]),
    ("F5.interpolator", pairs, ["follows"], ["opposes", "apart", "all alike", "as KRR"]),
    ("F6", encoder, ["nearest", "no posX", "no scale", "nothing"], ["truth"]),
    ("F6.joint", encoder, ["nearest", "no posX"], ["truth", "no scale", "nothing"]),
    ("F7", beside(plain="nearest"), *ADDS),
    ("F7.shape", beside(plain="nearest"), *ADDS_SHAPES),
    ("F7.shape", beside("element", plain="nearest"), *ADDS_SHAPES),
    ("F8", beside(plain="nearest"), *ADDS_SHAPES),
    ("F8", beside("element", plain="nearest"), *ADDS_SHAPES),
    ("F9", beside(plain="nearest"), RIGHT, [LITTLE, *UNLEARNT, *WRONG]),
]
