"""Known answers of the study of real factors, and those of which each claim must be reproduced.

Each answer draws ID combinations as they are, and held-out ones in its own way, on the task of the
quick preset. A sharp one has the right shape.
"""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import jax
import numpy as np

from compgen_jax.config import Config, changed
from compgen_jax.runs.run import Run
from compgen_jax.studies.real_factors import real_factors_claims as claims
from compgen_jax.studies.real_factors.real_factors_presets import runs
from compgen_jax.tasks import encodings, inverse
from compgen_jax.tasks import task as tasks
from tests import scoring
from tests.papers.criteria.matrix import Matrix, rows_of

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
    shapes, (shape, *_, x, _) = np.asarray(task.factors[0].values), query.points.T
    draw = jax.jit(jax.vmap(picture))

    def with_factor(index, values):
        points = np.array(query.points)
        points[:, index] = values
        return draw(points)

    def composed(share):
        right = np.random.default_rng(0).permutation(np.flatnonzero(ood))
        right = np.isin(np.arange(len(ood)), right[: round(share * ood.sum())])
        return np.where(right[:, None, None], truth, near)

    blurred = np.mean([with_factor(0, value) for value in shapes], axis=0)
    drawn = {
        "truth": truth,
        "half-a-step": with_factor(3, x + 0.5 / (config.task.counts.posX - 1)),
        "wrong-label": with_factor(0, shapes[np.searchsorted(shapes, shape) - 1]),
        "blank": 0 * truth,
        "mean-image": task.baselines["mean_image"](query),
        "main-effects": task.baselines["main_effects"](query),
        "nearest": near,
        "superposition": (near + query.same_labels) / 2,
        "no-shape": 0.1 * truth + 0.9 * blurred,
        "half-of-the-seeds": np.stack([truth, near] * (SEEDS // 2)),
    } | {f"composer-{share}": composed(share) for share in (0.3, 0.7, 0.95)}
    answers = {key: np.where(ood[:, None, None], drawn[key], truth) for key in drawn}
    return answers | {"no-shape-ID-too": drawn["no-shape"]}


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
    shares = {"opposes": 1 - effects, "apart": apart, "all-alike": 0 * effects + 0.5}
    by_pair = shares.get(name, effects), effects if name == "as-KRR" else interpolated
    return {"pairs": [rendering(*values) for values in zip(configs, *by_pair, strict=True)]}


def encoder(name: str) -> dict:
    """It reads ID combinations rightly; of held-out ones some factors as the mean of ID ones, or
    all as those of the nearest ID one."""
    config = sprites("encoder")
    task = config.task.make()
    points = np.array(tasks.points(task))
    ood = np.asarray(task.held_out(points))
    names, real = zip(*((factor.name, factor.real) for factor in task.factors), strict=True)
    wrong = {"truth": [], "no-posX": ["posX"], "no-scale": ["scale"]}
    if name == "nearest":
        read = np.asarray(replace(config.task, asks="image").make().nearest(points))
    else:
        is_wrong = real if name == "nothing" else np.isin(names, wrong[name])
        read = np.where(is_wrong, points[~ood].mean(axis=0), points)
    answer = jax.vmap(lambda point: encodings.joined(point, inverse.answer_codes(task.factors)))
    said = answer(np.where(ood[:, None], read, points))
    net = known_run(config, scoring.scorer(task)(np.tile(said, (SEEDS, 1, 1))))
    return {"net": net, "decoder": rendering(sprites("range"), 0.1)}


def beside(run: str = "range", **others: str):
    """An answer as `net`, and others of the same run as those beside it."""
    return lambda name, known: (
        {"net": decoder(run, name)} | {key: decoder(run, other) for key, other in others.items()}
    )


def beside_random(control: str):
    return lambda name, known: beside()(name, known) | {"control": decoder("random", control)}


# --- what claims must say of them --------------------------------------------------------------

FAILURE = """
answer            F1 F1.shape F1.random F1.random/nearest F2 F2.shape F2.predictors
truth             -  -        -         -                 R  R        R
half-a-step       -  R        -         -                 R  -        R
no-shape          -  R        -         -                 R  -        R
composer-0.3      R  R        R         -                 -  -        -
composer-0.7      -  -        -         -                 -  -        -
composer-0.95     -  -        -         -                 .  .        .
no-shape-ID-too   -  -        -         -                 -  -        -
half-of-the-seeds -  -        -         -                 -  -        -
wrong-label       R  R        R         -                 -  -        -
blank             R  R        R         -                 -  -        -
mean-image        R  R        R         -                 -  -        -
nearest           R  R        R         -                 -  -        -
main-effects      R  R        R         -                 -  -        -
superposition     R  R        R         -                 -  -        -
"""
MEANS = """
answer            F3a F3a/more F3a.predictors F3a.predictors/more
truth             R   R        R              R
half-a-step       R   .        R              .
no-shape          R   .        R              .
composer-0.3      R   -        R              -
composer-0.7      .   -        .              -
composer-0.95     R   .        R              .
no-shape-ID-too   -   -        -              -
half-of-the-seeds -   -        -              -
wrong-label       -   -        -              -
blank             -   -        -              -
mean-image        -   -        -              -
nearest           -   -        -              -
main-effects      -   -        -              -
superposition     -   -        -              -
"""
SLICES = """
answer            F3b F3b/truth F3b.predictors F3b.predictors/truth
truth             R   -         R              -
half-a-step       R   -         R              -
no-shape          R   -         R              -
composer-0.3      -   -         -              -
composer-0.7      .   -         .              -
composer-0.95     .   -         .              -
no-shape-ID-too   -   -         -              -
half-of-the-seeds -   -         -              -
wrong-label       -   -         -              -
blank             -   -         -              -
mean-image        -   -         -              -
nearest           -   -         -              -
main-effects      -   -         -              -
superposition     -   -         -              -
"""
OTHER_REMEDIES = """
answer            F4 F4.penalties F4.penalties/truth F7 F7.shape F7.shape/element F8 F8/element F9
truth             R  R            -                  R  R        R                R  R          R
half-a-step       R  R            -                  R  -        -                -  -          R
no-shape          R  R            -                  R  -        -                -  -          .
composer-0.3      R  R            -                  R  R        R                R  R          -
composer-0.7      .  .            -                  .  .        .                .  .          .
composer-0.95     R  R            -                  R  R        R                R  R          .
no-shape-ID-too   -  -            -                  -  -        -                -  -          -
half-of-the-seeds -  -            -                  -  .        .                .  .          -
wrong-label       -  -            -                  -  -        -                -  -          -
blank             -  -            -                  -  -        -                -  -          -
mean-image        -  -            -                  -  -        -                -  -          -
nearest           -  -            -                  -  -        -                -  -          -
main-effects      -  -            -                  -  -        -                -  -          -
superposition     -  -            -                  -  -        -                -  -          -
"""
ON_PAIRS = """
answer    F5 F5.interpolator
follows   R  R
as-KRR    R  -
opposes   -  -
apart     -  -
all-alike -  -
"""
ON_ENCODERS = """
answer   F6 F6.joint
nearest  R  R
no-posX  R  R
no-scale R  -
nothing  R  -
truth    -  -
"""
LITTLE, MORE = beside(plain="nearest"), beside(plain="composer-0.7")
BESIDE = {
    **dict.fromkeys(("F1", "F1.shape", "F1.random"), beside_random("truth")),
    "F1.random/nearest": beside_random("nearest"),
    **dict.fromkeys(("F2", "F2.shape", "F2.predictors"), beside("element")),
    **dict.fromkeys(("F3a", "F3a.predictors", "F7", "F7.shape", "F8", "F9"), LITTLE),
    **dict.fromkeys(("F7.shape/element", "F8/element"), beside("element", plain="nearest")),
    **dict.fromkeys(("F3a/more", "F3a.predictors/more"), MORE),
    **dict.fromkeys(("F3b", "F3b.predictors"), beside(plain="nearest", other="composer-0.7")),
    **dict.fromkeys(("F4", "F4.penalties"), beside(plain="nearest", other="main-effects")),
    **dict.fromkeys(
        ("F3b/truth", "F3b.predictors/truth", "F4.penalties/truth"),
        beside(plain="nearest", other="truth"),
    ),
    **dict.fromkeys(("F5", "F5.interpolator"), lambda name, known: pairs(name)),
    **dict.fromkeys(("F6", "F6.joint"), lambda name, known: encoder(name)),
}
MATRICES = {
    "sprites": Matrix(
        dict, rows_of(FAILURE, MEANS, SLICES, OTHER_REMEDIES, ON_PAIRS, ON_ENCODERS), BESIDE
    ),
}
