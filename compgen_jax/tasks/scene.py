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

from compgen_jax import grids
from compgen_jax.settings import Family, choice, number, require, traced
from compgen_jax.tasks import baselines, encodings, holdouts, images, inverse, marginals, sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.marginals import MarginalsConfig
from compgen_jax.tasks.task import Example, Factor, Task

CODES = "bump", "value", "onehot", "circle"
MAIN_EFFECTS = "a sum of one image per factor explains {:.0%} of the pixels' variance"
CERTAIN = 1e-7  # a probability is at least so far from 0 and from 1: float32 has no finer


class Scene(NamedTuple):
    """Factors, and a picture of every point.

    factors: the first varies fastest over the cells.
    picture: point (F,) -> image, pure and traceable; of a scene of two objects, point (2F,).
    points: (B, F) NumPy, the combinations that have a picture, where not every one does.
    anywhere: whether points between the cells have pictures of their own, or the nearest cell's.
    objects: 1, or 2 with the same factors.
    background: an image, if it is not black: `rendered` compares what is left after it.
    held_out: (B,) NumPy bool, what is held out where no sentence says it; None for nothing.
    says: sentences about the scene, printed before training.
    """

    factors: tuple[Factor, ...]
    picture: Callable
    points: np.ndarray | None = None
    anywhere: bool = True
    objects: int = 1
    background: np.ndarray | float = 0.0
    held_out: np.ndarray | None = None
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class CodesConfig:
    """How the factors' values are given to a model: all by the code `name`, but those named in
    `of`, pairs of a factor and its code.

    value   the stored number itself.
    bump    a unit for each value, with a Gaussian of `sigma` cells; round the circle for an angle.
    onehot  a unit for each value, 1 for the nearest one. A label has this code instead of a bump.
    circle  cosine and sine of an angle; other factors have the bump code.

    A missing factor's code is zero, or that of a value one step below the first ('off_range'; an
    angle's only if its code is 'value', as the others go round). With 'mask' every factor has one
    more unit, which is 1 if it is missing.
    """

    name: str = choice("bump", *CODES)
    of: tuple = ()
    sigma: float = number(1.0, above=0)
    missing: str = choice("zero", "zero", "mask", "off_range")


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


# --- cells -----------------------------------------------------------------------------------


class Cells:
    """The combinations of a scene that have a picture: points (B, F), and which are held out.
    Raises ConfigError for a sentence that cannot be, or that leaves no ID cell."""

    def __init__(self, scene: Scene, sentence: str):
        self.factors, self.is_grid = scene.factors, scene.points is None
        points = tasks.cells(scene.factors) if self.is_grid else scene.points
        self.points = np.asarray(points, np.float32)
        self.held_out = holdouts.held_out(sentence, scene.factors, self.points)
        if not sentence.strip() and scene.held_out is not None:
            self.held_out = scene.held_out
            hint = "all that is left is of the file's test part; say what is held out"
            require(not self.held_out.all(), "task.held_out", sentence, hint)

    def index(self, points):
        """(...,) int: the cell of each point (..., F), NumPy or JAX."""
        place = tasks.nearest_cell(self.factors, points)
        return place if self.is_grid else tasks.numpy_of(points).asarray(self._of_place)[place]

    def is_held_out(self, points):
        return tasks.numpy_of(points).asarray(self.held_out)[self.index(points)]

    def nearest_seen(self, points):
        """(..., F): the nearest ID cell of each point, NaN for a point that is ID or lacks a
        factor."""
        numpy = tasks.numpy_of(points)
        nearest = numpy.asarray(self._nearest)[self.index(points)]
        incomplete = numpy.isnan(points[..., : len(self.factors)]).any(axis=-1, keepdims=True)
        return numpy.where(incomplete, numpy.nan, nearest)

    def _nearest_of(self, cells_B):
        """(places,) int: the nearest of these cells for every combination of the factors' values,
        which for a grid are its cells."""
        cell = np.full(math.prod(len(factor.values) for factor in self.factors), -1)
        cell[self._places[cells_B]] = np.flatnonzero(cells_B)
        return cell[grids.nearest_seen(cell < 0, **tasks.geometry(self.factors))]

    @functools.cached_property
    def _places(self):
        """(B,) int: which combination of the factors' values each cell is."""
        at = self.points
        return np.arange(len(at)) if self.is_grid else tasks.nearest_cell(self.factors, at)

    @functools.cached_property
    def _of_place(self):
        return self._nearest_of(np.ones(len(self.points), bool))

    @functools.cached_property
    def _nearest(self):
        """(B, F) float32: `nearest_seen` of every cell."""
        nearest = self.points[self._nearest_of(~self.held_out)[self._places]]
        return np.where(self.held_out[:, None], nearest, np.float32(np.nan))


# --- codes -----------------------------------------------------------------------------------


def kind_of(factor: Factor, settings: CodesConfig) -> str:
    """The code that a factor has."""
    kind = dict(settings.of).get(factor.name, settings.name)
    if not factor.real and kind != "value":
        return "onehot"
    return "bump" if kind == "circle" and math.isinf(factor.period) else kind


def encode(point, factors, settings: CodesConfig):
    """The code (E,) of a point (F,), one part per factor; NaN is a missing factor."""
    pairs = zip(point, factors, strict=True)
    return jnp.concatenate([_encode_factor(value, factor, settings) for value, factor in pairs])


def part_lengths(factors, settings: CodesConfig) -> tuple[int, ...]:
    """The lengths of the codes' parts."""
    fixed, more = {"value": 1, "circle": 2}, settings.missing == "mask"
    return tuple(fixed.get(kind_of(f, settings), len(f.values)) + more for f in factors)


def _encode_factor(value, factor: Factor, settings: CodesConfig):
    kind, values = kind_of(factor, settings), np.asarray(factor.values, np.float32)
    missing, value = encodings.is_missing(value)
    code = partial(_code, kind=kind, factor=factor, settings=settings)
    found, absent = code(value), 0.0
    if settings.missing == "off_range" and (kind == "value" or math.isinf(factor.period)):
        step = np.diff(values).mean() if len(values) > 1 else 1.0
        absent = code(jnp.float32(values[0] - step))
    found = jnp.where(missing, absent, found)
    return jnp.append(found, missing) if settings.missing == "mask" else found


def _code(value, kind: str, factor: Factor, settings: CodesConfig):
    values = np.asarray(factor.values, np.float32)
    if kind == "value":
        return value[None]
    if kind == "circle":
        turn = 2 * jnp.pi / factor.period * value
        return jnp.stack([jnp.cos(turn), jnp.sin(turn)])
    if not factor.real:
        return (jnp.abs(values - value) < 1e-6).astype(jnp.float32)
    if kind == "bump" and math.isfinite(factor.period):
        apart = (values - value + factor.period / 2) % factor.period - factor.period / 2
        step = np.diff(values).mean() if len(values) > 1 else factor.period
        return jnp.exp(-jnp.square(apart / step) / (2 * settings.sigma**2))
    place = _place(value, values)
    of_bump = CodeConfig(name=kind, sigma=settings.sigma)
    return encodings.CODES[kind](place, len(values), of_bump)


def _place(value, values):
    """Where a value lies among the cells, from 0, linear between and beyond them."""
    if len(values) == 1:
        return value - values[0]
    step = np.diff(values)
    inside = jnp.interp(value, values, jnp.arange(len(values), dtype=jnp.float32))
    below, above = (value - values[0]) / step[0], (value - values[-1]) / step[-1]
    return inside + jnp.minimum(below, 0.0) + jnp.maximum(above, 0.0)


# --- examples --------------------------------------------------------------------------------


class Shown(NamedTuple):
    """What training may show to a seed: the first `count` of `points` (B, F), and marginal images
    as rows (M, F + P) of a point and its P pixels."""

    points: jax.Array
    count: jax.Array
    marginals: jax.Array


def second_point(point, factors):
    """(F,): the second object where the first one's cell is measured. It is drawn for every cell
    apart, uniformly over all combinations, and is the same for all seeds of training."""
    key = jax.random.fold_in(jax.random.key(0), sampling.tag("second object"))
    for place in tasks.nearest_values(factors, jnp.asarray(point)):
        key = jax.random.fold_in(key, place)
    return _any_point(key, factors)


def _any_point(key, factors):
    keys = zip(jax.random.split(key, len(factors)), factors, strict=True)
    return jnp.stack([jax.random.choice(k, jnp.asarray(f.values, jnp.float32)) for k, f in keys])


def _example(key, point, scene: Scene, settings: SceneTask) -> Example:
    """The code and the image of a point (F,); behind it may stand the second object's, or a
    marginal image (zeros for a point that lacks no factor)."""
    factors, count = scene.factors, len(scene.factors)
    first, behind = point[:count], point[count:]
    code = encode(first, factors, settings.code)
    if scene.objects == 2:
        second = behind if len(behind) else second_point(first, factors)
        code = jnp.concatenate([code, encode(second, factors, settings.code)])
        return Example(code, scene.picture(jnp.concatenate([first, second])))
    first_values = jnp.array([factor.values[0] for factor in factors], jnp.float32)
    missing = jnp.isnan(first)
    image = scene.picture(jax.lax.stop_gradient(jnp.where(missing, first_values, first)))
    if len(behind):
        image = jnp.where(missing.any(), behind.reshape(image.shape), image)
    return Example(code, image)


def _draw(key, shown: Shown, scene: Scene, share: float):
    """One example's point and what stands behind it; see `_example`."""
    key_first, key_kind, key_second = jax.random.split(key, 3)
    point = shown.points[jax.random.randint(key_first, (), 0, shown.count)]
    if scene.objects == 2:
        return jnp.concatenate([point, _any_point(key_second, scene.factors)])
    if not len(shown.marginals):
        return point
    row = shown.marginals[jax.random.randint(key_second, (), 0, len(shown.marginals))]
    blank = jnp.zeros(shown.marginals.shape[1] - len(point))
    return jnp.where(jax.random.uniform(key_kind) < share, row, jnp.concatenate([point, blank]))


# --- scores ----------------------------------------------------------------------------------


def _scores(signal, truth, point, nearest=None, *, scene: Scene, cells: Cells, loss: str) -> dict:
    """The scores of one image. With two objects, all true images have the same second one.

    mse: the mean squared error.  blank_mse: that of a blank image.
    LABEL_accuracy: whether, of the true images of all labels of a factor, the requested one is
        nearest to the prediction. Ties count as right.
    rendered: `images.rendered`, after the background is taken off, and every label is right.
    excess_nll: for a Bernoulli loss, nats per image above the target's own entropy.
    """
    error = jnp.mean(jnp.square(signal - truth))
    found = {"mse": error, "blank_mse": jnp.mean(jnp.square(truth))}
    labels_right = jnp.isfinite(signal).all()
    point = point[: len(scene.factors)]
    second = second_point(point, scene.factors) if scene.objects == 2 else point[:0]
    picture = lambda first: scene.picture(jnp.concatenate([first, second]))
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
    cells, factors = Cells(scene, settings.held_out), scene.factors
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

    bernoulli = settings.loss == "bernoulli"
    parts = part_lengths(factors, settings.code)
    coverage = functools.lru_cache(lambda: holdouts.coverage(cells.held_out, factors, cells.points))
    task = Task(
        factors=factors,
        held_out=cells.is_held_out,
        example=lambda key, point: _example(key, point, scene, settings),
        dataset=dataset,
        examples=0,
        next_batch=sampling.stream(partial(_draw, scene=scene, share=share)),
        loss=_bernoulli if bernoulli else tasks.mean_squared_error,
        prediction=jax.nn.sigmoid if bernoulli else (lambda output: output),
        truth=lambda target: target,
        scores=partial(_scores, scene=scene, cells=cells, loss=settings.loss),
        nearest=cells.nearest_seen,
        accuracy="rendered",
        baselines=baselines.BASELINES
        | {"mean_image": mean_image, "main_effects": partial(main_effects, factors=factors)},
        parts=scene.objects * parts,
        differentiable="onehot" not in [kind_of(f, settings.code) for f in factors if f.real],
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
        right = isinstance(pair, tuple) and len(pair) == 2 and pair[1] in CODES
        require(right, field, of, f"must be pairs of a factor and one of {', '.join(CODES)}")
        require(pair[0] in names, field, of, f"must name some of {', '.join(names)}")
        turns = math.isfinite(scene.factors[names.index(pair[0])].period)
        hint = f"{pair[0]} is no angle, and has no circle"
        require(turns or pair[1] != "circle", field, of, hint)
    is_one, hint = scene.objects == 1, "is for one object"
    require(is_one or kind == "none", "task.marginals.kind", kind, hint)
    require(is_one or settings.asks == "image", "task.asks", settings.asks, hint)
    hint = "needs a picture of every combination of the factors' values"
    require(scene.points is None or kind == "none", "task.marginals.kind", kind, hint)


def _marginal_rows(scene: Scene, cells: Cells, settings: MarginalsConfig):
    """(M, F + P) float32; see `Shown`. (0, F) without marginals."""
    if settings.kind == "none":
        return np.zeros((0, len(scene.factors)), np.float32)
    shown = ~cells.held_out if settings.over == "seen" else np.ones(len(cells.points), bool)
    how = scene.picture, scene.factors, shown, settings.peak
    found, exist = marginals.images(settings.kind, *how)
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
    if scene.points is not None or scene.objects == 2:
        return {}
    return {"main_effects_share": marginals.main_effects_share(scene.picture, scene.factors)}
