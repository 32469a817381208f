"""Tasks made of pictures: codes of factors in and an image out, or an image in and factors out.

A *scene* says which factors there are and draws the picture of a point, by a formula
(`tasks.sprites`) or from a file (`tasks.table`). All else is the same for every scene and stands
here: what is held out, codes, marginal images, scores and trivial predictors. Pictures are (H, W)
or (H, W, C), float32 from 0 to 1.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import Family, choice, number, require, traced
from compgen_jax.tasks import baselines, encodings, holdouts, images, inverse, marginals, sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.encodings import CODES_OF_FACTORS, CodesConfig
from compgen_jax.tasks.marginals import MarginalsConfig
from compgen_jax.tasks.regions import Cells
from compgen_jax.tasks.task import Example, Factor, Task

MAIN_EFFECTS = "a sum of one image per factor explains {:.0%} of the pixels' variance"
CERTAIN = 1e-7  # a probability is at least so far from 0 and from 1: float32 has no finer


class Scene(NamedTuple):
    """Factors, and a picture of every point.

    factors: the first varies fastest over the cells.
    picture: point (F,) -> image, pure and traceable.
    points: (B, F) NumPy, the combinations that have a picture, where not every one does.
    anywhere: whether points between the cells have pictures of their own, or the nearest cell's.
    background: an image, if it is not black: `rendered` compares what is left after it.
    says: sentences about the scene, printed before training.
    """

    factors: tuple[Factor, ...]
    picture: Callable
    points: np.ndarray | None = None
    anywhere: bool = True
    background: np.ndarray | float = 0.0
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class SceneTask(Family):
    """What all tasks made of pictures have in common. A subclass adds fields, and `scene`.

    `held_out` is a sentence or a name (`tasks.holdouts`). Each step draws afresh, from `samples`
    ID combinations that a seed is shown (0: all), and marginal images in their share. `asks` says
    whether a model draws the image or reads the factors off it. With the loss 'bernoulli' a model
    gives logits. A run is `measured` at so many ID and so many held-out cells, drawn once (0: all).
    """

    held_out: str = traced("random(0.3, seed=0)")
    code: CodesConfig = CodesConfig()
    marginals: MarginalsConfig = MarginalsConfig()
    asks: str = choice("image", "image", "factors")
    loss: str = choice("mse", "mse", "bernoulli")
    samples: int = number(0, low=0, high=10**8, traced=True)
    measured: int = number(0, low=0, high=10**6)

    def scene(self) -> Scene:
        raise NotImplementedError

    def check(self, config):
        steps, kind = config.training.steps, self.marginals.kind
        require(steps, "training.steps", steps, "each step draws afresh; give the number of steps")
        hint = "marginal images are drawn from factors; say config.task.asks='image'"
        require(self.asks == "image" or kind == "none", "task.marginals.kind", kind, hint)
        hint = "reading factors has its own loss; say 'mse'"
        require(self.asks == "image" or self.loss == "mse", "task.loss", self.loss, hint)

    def make(self) -> Task:
        """Raises ConfigError for settings that no task can have."""
        return _task(self)


def cells_of(scene: Scene, sentence: str) -> Cells:
    """The combinations that have a picture. Raises ConfigError for a sentence that cannot be."""
    points = tasks.cells(scene.factors) if scene.points is None else scene.points
    held_out = holdouts.held_out(sentence, scene.factors, points)
    return Cells(scene.factors, held_out, scene.points)


# --- examples --------------------------------------------------------------------------------


class Shown(NamedTuple):
    """What training may show to a seed: the first `count` of `points` (B, F), and marginal images
    as rows (M, F + P) of a point and its P pixels."""

    points: jax.Array
    count: jax.Array
    marginals: jax.Array


def _example(point, scene: Scene, codes) -> Example:
    """The code and the image of a point (F,); behind it may stand a marginal image (zeros for a
    point that lacks no factor)."""
    count = len(scene.factors)
    point, marginal = point[:count], point[count:]
    first_values = jnp.array([factor.values[0] for factor in scene.factors], jnp.float32)
    missing = jnp.isnan(point)
    image = scene.picture(jax.lax.stop_gradient(jnp.where(missing, first_values, point)))
    if len(marginal):
        image = jnp.where(missing.any(), marginal.reshape(image.shape), image)
    return Example(encodings.joined(point, codes), image)


def _draw(key, shown: Shown, share: float):
    """One example's point and what stands behind it; see `_example`."""
    key_point, key_kind, key_marginal = jax.random.split(key, 3)
    point = shown.points[jax.random.randint(key_point, (), 0, shown.count)]
    if not len(shown.marginals):
        return point
    row = shown.marginals[jax.random.randint(key_marginal, (), 0, len(shown.marginals))]
    blank = jnp.zeros(shown.marginals.shape[1] - len(point))
    return jnp.where(jax.random.uniform(key_kind) < share, row, jnp.concatenate([point, blank]))


# --- scores ----------------------------------------------------------------------------------


def _scores(signal, truth, point, nearest=None, *, scene: Scene, cells: Cells, loss: str) -> dict:
    """The scores of one image.

    mse: the mean squared error.  blank_mse: that of a blank image.
    LABEL_accuracy: whether, of the true images of all labels of a factor, the requested one is
        nearest to the prediction. Ties count as right.
    image_r2: `images.squared_correlation`, after the background is taken off.
    rendered: `images.rendered`, after the background is taken off, and every label is right.
    excess_nll: for a Bernoulli loss, nats per image above the target's own entropy.
    """
    error = jnp.mean(jnp.square(signal - truth))
    found = {"mse": error, "blank_mse": jnp.mean(jnp.square(truth))}
    labels_right = jnp.isfinite(signal).all()
    point, picture = point[: len(scene.factors)], scene.picture
    for index, factor in enumerate(scene.factors):
        if factor.real or len(factor.values) == 1:
            continue
        values = jnp.asarray(factor.values, jnp.float32)
        of_label = lambda value, i=index: jnp.mean(
            jnp.square(signal - picture(point.at[i].set(value)))
        )
        least = jnp.min(jax.lax.map(of_label, values))
        right = error <= least * (1 + 1e-4) + 1e-9
        found[f"{factor.name}_accuracy"] = right
        labels_right &= right
    nearest = cells.nearest_seen(point) if nearest is None else nearest
    incomplete = jnp.isnan(nearest).any()
    near_image = picture(jnp.where(incomplete, point, nearest)) - scene.background
    signal_left, truth_left = signal - scene.background, truth - scene.background
    shown = images.rendered(signal_left, truth_left)
    nearer = images.rendered(signal_left, truth_left, near_image)
    found["image_r2"] = images.squared_correlation(signal_left, truth_left)
    found["rendered"] = jnp.where(incomplete, shown, nearer) & labels_right
    if loss == "bernoulli":
        found["excess_nll"] = _divergence(signal, truth)
    return found


def _divergence(signal, truth):
    """Sum over the pixels of KL(truth || prediction), in nats, of grey values as probabilities."""
    p = jnp.clip(signal, CERTAIN, 1 - CERTAIN)
    cross = jax.scipy.special.xlogy(truth, p) + jax.scipy.special.xlog1py(1 - truth, -p)
    own = jax.scipy.special.xlogy(truth, truth) + jax.scipy.special.xlog1py(1 - truth, -truth)
    return jnp.sum(own - cross)


def _bernoulli(output, target):
    """Cross-entropy of logits, in nats, summed over pixels."""
    return jnp.sum(jnp.logaddexp(0.0, output) - target * output)


# --- trivial predictors ----------------------------------------------------------------------


def mean_image(asked: baselines.Asked):
    """The mean ID image."""
    seen_B = jnp.asarray(~asked.held_out).reshape((-1,) + (1,) * (asked.truths.ndim - 1))
    mean = jnp.mean(asked.truths, axis=0, where=seen_B, keepdims=True)
    return jnp.broadcast_to(mean, asked.truths.shape)


def main_effects(asked: baselines.Asked, factors):
    """What a sum of one image per factor draws: Sum_f (mean ID image with this value of f) less
    F - 1 mean ID images. A value that no ID image has counts as the mean."""
    seen, truths = ~np.asarray(asked.held_out), asked.truths
    mean = mean_image(asked)[:1]
    places, drawn = tasks.nearest_values(factors, np.asarray(asked.points)), mean
    for index, factor in enumerate(factors):
        seen_BxV = seen[:, None] & (places[:, [index]] == np.arange(len(factor.values))[None])
        count_V = seen_BxV.sum(axis=0)
        weights_BxV = seen_BxV / np.maximum(count_V, 1)[None]
        means = jnp.tensordot(jnp.asarray(weights_BxV.T, jnp.float32), truths, axes=1)
        exists = jnp.asarray(count_V > 0).reshape((-1,) + (1,) * (truths.ndim - 1))
        drawn = drawn + (jnp.where(exists, means, mean) - mean)[places[:, index]]
    return drawn


# --- the task --------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _scene(settings: SceneTask) -> Scene:
    """What does not depend on what is held out, made once."""
    return settings.scene()


@functools.lru_cache(maxsize=256)
def _task(settings: SceneTask) -> Task:
    apart = {name: getattr(type(settings)(), name) for name in SceneTask.__dataclass_fields__}
    drawn_by = replace(settings, **apart)
    scene = _scene(drawn_by)
    _check(scene, settings)
    cells, factors = cells_of(scene, settings.held_out), scene.factors
    seen_first = np.argsort(cells.held_out, kind="stable")
    points, seen = cells.points[seen_first], int((~cells.held_out).sum())
    samples = settings.samples or seen
    hint = f"only {seen} of {len(points)} combinations are ID"
    require(samples <= seen, "task.samples", settings.samples, hint)
    rows = _marginal_rows(scene, cells, settings.marginals)
    share = settings.marginals.share

    def dataset(key):
        shown = jnp.asarray(points)
        if settings.samples:
            drawn = jax.random.uniform(key, (len(points),))
            shown = shown[jnp.argsort(jnp.where(jnp.arange(len(points)) < seen, drawn, 2.0))]
        return Shown(shown, jnp.int32(samples), jnp.asarray(rows))

    kinds = [encodings.kind_of(f, settings.code) for f in factors if f.real]
    bernoulli = settings.loss == "bernoulli"
    codes = encodings.codes_of_factors(factors, settings.code)
    coverage = functools.lru_cache(lambda: holdouts.coverage(cells.held_out, factors, cells.points))
    task = Task(
        factors=factors,
        held_out=cells.is_held_out,
        example=lambda key, point: _example(point, scene, codes),
        dataset=dataset,
        examples=0,
        next_batch=sampling.stream(partial(_draw, share=share)),
        loss=_bernoulli if bernoulli else tasks.mean_squared_error,
        prediction=jax.nn.sigmoid if bernoulli else (lambda output: output),
        truth=lambda target: target,
        scores=partial(_scores, scene=scene, cells=cells, loss=settings.loss),
        nearest=cells.nearest_seen,
        accuracy="rendered",
        baselines=baselines.BASELINES
        | {"mean_image": mean_image, "main_effects": partial(main_effects, factors=factors)},
        parts=encodings.lengths(codes),
        differentiable="onehot" not in kinds,
        units={"cell": float(len(points))},
        points=_measured(cells, settings.measured),
        sampled=cells.is_grid and settings.measured > 0,
        between=scene.anywhere,
        origin="upper",
        facts=lambda: coverage().facts | _main_effects(drawn_by),
        describe=lambda: (
            *scene.says,
            *coverage().lines,
            *map(MAIN_EFFECTS.format, _main_effects(drawn_by).values()),
        ),
    )
    return inverse.reading(task) if settings.asks == "factors" else task


def _check(scene: Scene, settings: SceneTask):
    names = [factor.name for factor in scene.factors]
    field, of, kind = "task.code.of", settings.code.of, settings.marginals.kind
    for pair in of:
        right = isinstance(pair, tuple) and len(pair) == 2 and pair[1] in CODES_OF_FACTORS
        require(
            right, field, of, f"must be pairs of a factor and one of {', '.join(CODES_OF_FACTORS)}"
        )
        require(pair[0] in names, field, of, f"must name some of {', '.join(names)}")
        turns = math.isfinite(scene.factors[names.index(pair[0])].period)
        hint = f"{pair[0]} is no angle, and has no circle"
        require(turns or pair[1] != "circle", field, of, hint)
    hint = "needs a picture of every combination of the factors' values"
    require(scene.points is None or kind == "none", "task.marginals.kind", kind, hint)


def _marginal_rows(scene: Scene, cells: Cells, settings: MarginalsConfig):
    """(M, F + P) float32; see `Shown`. (0, F) without marginals."""
    if settings.kind == "none":
        return np.zeros((0, len(scene.factors)), np.float32)
    shown = ~cells.held_out if settings.over == "seen" else np.ones(len(cells.points), bool)
    found, exist = marginals.images(settings.kind, scene.picture, scene.factors, shown)
    rows = np.concatenate([marginals.points(scene.factors), found.reshape(len(found), -1)], axis=1)
    return rows[exist]


def _measured(cells: Cells, count: int):
    """(B', F) the cells that a run is measured at, or None for all of a grid."""
    if not count:
        return None if cells.is_grid else cells.points
    rng, regions = np.random.default_rng(0), (~cells.held_out, cells.held_out)
    chosen = [np.sort(rng.permutation(np.flatnonzero(region))[:count]) for region in regions]
    return cells.points[np.concatenate(chosen)]


@functools.lru_cache(maxsize=64)
def _main_effects(settings: SceneTask) -> dict:
    """The share of the pixels' variance in main effects, if it is known."""
    scene = _scene(settings)
    if scene.points is not None:
        return {}
    return {"main_effects_share": marginals.main_effects_share(scene.picture, scene.factors)}
