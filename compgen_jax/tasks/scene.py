"""Tasks made of pictures: codes of factors in and an image out, or an image in and factors out.

A *scene* says which factors there are and draws the picture of a point: (H, W) or (H, W, C),
float32 from 0 to 1.
"""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import rel_entr

from compgen_jax.settings import Family, choice, demand, number, traced
from compgen_jax.tasks import baselines, encodings, holdouts, images, inverse, marginals, sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.encodings import CODES_OF_FACTORS, CodesConfig
from compgen_jax.tasks.marginals import MarginalsConfig
from compgen_jax.tasks.supports import Cells
from compgen_jax.tasks.task import Example, Factor, Task

CERTAIN = 1e-7  # a probability is at least so far from 0 and from 1: float32 has no finer


class Scene(NamedTuple):
    """Factors, and a picture of every point.

    picture: point (F,) -> image, pure and traceable; of several images of a point, the mean.
    anywhere: whether points between the cells have pictures of their own.
    background: an image, if it is not black, that is taken off before `rendered` compares.
    says: sentences printed before training.
    rows_B: how many pictures each cell has, (B,) NumPy, or all have.
    sampled: key, point -> one of the images of a point that has several.
    compared: signal, point -> of these, the image that a signal is scored against.
    """

    factors: tuple[Factor, ...]
    picture: Callable
    anywhere: bool = True
    background: np.ndarray | float = 0.0
    says: tuple[str, ...] = ()
    rows_B: np.ndarray | int = 1
    sampled: Callable | None = None
    compared: Callable | None = None


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
        demand(
            self.asks == "image" or (self.marginals.kind, self.loss) == ("none", "mse"),
            f"config.task.asks={self.asks!r}: needs config.task.marginals.kind='none' and "
            "config.task.loss='mse'",
        )

    @functools.lru_cache(maxsize=256)  # noqa: B019  (one for each of many hold-outs)
    def make(self) -> Task:
        """Raises ConfigError for settings that no task can have."""
        drawn_by = replace(self, **vars(SceneTask()))
        scene, code, marginal = _scene(drawn_by), self.code, self.marginals
        factors = scene.factors
        names = [factor.name for factor in factors]
        demand(
            set(code.of) <= set(itertools.product(names, CODES_OF_FACTORS)),
            f"config.task.code.of={code.of!r}: must be pairs of one of {names} and one of "
            f"{CODES_OF_FACTORS}",
        )
        points = tasks.cells(factors)
        rows_B = np.broadcast_to(scene.rows_B, len(points))
        points = points[rows_B > 0]
        held_out = holdouts.held_out_points(self.held_out, factors, points)
        cells = Cells(factors, held_out, None if rows_B.all() else points)
        seen, total = int((~cells.held_out).sum()), len(points)
        samples = self.samples or seen
        demand(
            marginal.kind == "none" or cells.is_grid,
            f"config.task.marginals.kind={marginal.kind!r}: needs a picture of every combination",
        )
        demand(
            samples <= seen,
            f"config.task.samples={samples}: only {seen} of {total} combinations are ID",
        )
        points = cells.points[np.argsort(cells.held_out, kind="stable")]
        rows = np.zeros((0, len(factors)), np.float32)
        if marginal.kind != "none":
            support = ~cells.held_out if marginal.over == "seen" else np.ones(total, bool)
            drawn, exist = marginals.images(marginal.kind, scene.picture, factors, support)
            rows = [marginals.points(factors), drawn.reshape(len(drawn), -1)]
            rows = np.concatenate(rows, axis=1)[exist]

        def dataset(key):
            shuffled = jnp.asarray(points)
            if self.samples:
                drawn = jax.random.uniform(key, (total,))
                shuffled = shuffled[jnp.argsort(jnp.where(jnp.arange(total) < seen, drawn, 2.0))]
            return TrainingSet(shuffled, jnp.int32(samples), jnp.asarray(rows))

        measured = None if cells.is_grid else cells.points
        if self.measured:
            rng, regions = np.random.default_rng(0), (~cells.held_out, cells.held_out)
            orders = [rng.permutation(np.flatnonzero(region)) for region in regions]
            chosen = np.concatenate([np.sort(order[: self.measured]) for order in orders])
            measured = cells.points[chosen]

        @functools.cache
        def coverage():
            """What is printed before training, and facts of the task."""
            lines, facts = holdouts.coverage(cells.held_out, factors, cells.points)
            shares = _main_effects(drawn_by)
            whose = "mean images" if scene.sampled else "pixels"
            for share in shares.values():
                explains = f"explains {share:.0%} of the {whose}' variance"
                lines.append(f"a sum of one image per factor {explains}")
            return (*scene.says, *lines), facts | shares

        codes = encodings.codes_of_factors(factors, code)
        first_values = jnp.array([factor.values[0] for factor in factors], jnp.float32)

        def example(key, point):
            """Behind a point may stand a marginal image, zeros where no factor is missing."""
            point, marginal = point[: len(factors)], point[len(factors) :]
            missing = jnp.isnan(point)
            complete = jax.lax.stop_gradient(jnp.where(missing, first_values, point))
            image = scene.sampled(key, complete) if scene.sampled else scene.picture(complete)
            if len(marginal):
                image = jnp.where(missing.any(), marginal.reshape(image.shape), image)
            return Example(encodings.joined(point, codes), image)

        code_of, real = dict(code.of), [factor.name for factor in factors if factor.real]
        is_bernoulli = self.loss == "bernoulli"
        task = Task(
            factors=factors,
            held_out=cells.is_held_out,
            example=example,
            dataset=dataset,
            examples=0,
            next_batch=sampling.stream(partial(_draw, share=marginal.share)),
            loss=cross_entropy if is_bernoulli else tasks.mean_squared_error,
            prediction=jax.nn.sigmoid if is_bernoulli else tasks.unchanged,
            truth=tasks.unchanged,
            scores=partial(_scores, scene=scene, cells=cells, loss=self.loss),
            nearest=cells.nearest_seen,
            accuracy="rendered",
            baselines=baselines.BASELINES
            | {"mean_image": mean_image, "main_effects": partial(main_effects, factors=factors)},
            parts=encodings.lengths(codes),
            differentiable="onehot" not in [code_of.get(name, code.name) for name in real],
            units={"cell": float(total)},
            points=measured,
            between=scene.anywhere,
            origin="upper",
            rows_B=rows_B,
            facts=lambda: coverage()[1],
            describe=lambda: coverage()[0],
        )
        return inverse.reading(task) if self.asks == "factors" else task


# --- examples --------------------------------------------------------------------------------


class TrainingSet(NamedTuple):
    """The first `count` of `points` (B, F), and marginals as rows (M, F + P) of a point and its
    pixels."""

    points: jax.Array
    count: jax.Array
    marginals: jax.Array


def _draw(key, training_set: TrainingSet, share: float):
    key_point, key_kind, key_marginal = jax.random.split(key, 3)
    point, rows = sampling.from_table(key_point, training_set), training_set.marginals
    if not len(rows):
        return point
    row = rows[jax.random.randint(key_marginal, (), 0, len(rows))]
    whole = jnp.concatenate([point, jnp.zeros(len(row) - len(point))])
    return jnp.where(jax.random.uniform(key_kind) < share, row, whole)


# --- scores ----------------------------------------------------------------------------------


def _scores(signal, truth, point, nearest=None, *, scene: Scene, cells: Cells, loss: str) -> dict:
    """The truth, and every other true image, is the one that `scene.compared` gives.
    LABEL_accuracy: whether, of the true images of all labels of a factor, the requested one is
        nearest to the prediction. Ties count as right.
    rendered, image_r2: after the background is taken off; rendered asks for every label, too.
    excess_nll: for a Bernoulli loss, the sum over the pixels of KL(truth || prediction), in
    nats."""
    point, picture = point[: len(scene.factors)], scene.picture
    if scene.compared:
        picture = partial(scene.compared, signal)
        truth = jnp.where(jnp.isnan(point).any(), truth, picture(point))
    error = jnp.mean(jnp.square(signal - truth))
    scores = {"mse": error, "blank_mse": jnp.mean(jnp.square(truth))}
    labels_right = jnp.isfinite(signal).all()
    for index, factor in enumerate(scene.factors):
        if factor.real:
            continue
        values = jnp.asarray(factor.values, jnp.float32)
        points = jnp.tile(point, (len(values), 1)).at[:, index].set(values)
        errors = jax.lax.map(lambda other: jnp.mean(jnp.square(signal - picture(other))), points)
        right = error <= jnp.min(errors) * (1 + 1e-4) + 1e-9
        scores[f"{factor.name}_accuracy"] = right
        labels_right &= right
    nearest = cells.nearest_seen(point) if nearest is None else nearest
    incomplete = jnp.isnan(nearest).any()
    nearest_image = picture(jnp.where(incomplete, point, nearest)) - scene.background
    over_background = signal - scene.background, truth - scene.background
    rendered = images.rendered(*over_background, nearest_image, incomplete)
    scores["image_r2"] = images.squared_correlation(*over_background)
    scores["rendered"] = rendered & labels_right
    if loss == "bernoulli":
        p = jnp.clip(signal, CERTAIN, 1 - CERTAIN)
        scores["excess_nll"] = jnp.sum(rel_entr(truth, p) + rel_entr(1 - truth, 1 - p))
    return scores


def cross_entropy(output, target):
    """Of logits, in nats, summed over pixels."""
    return jnp.sum(jnp.logaddexp(0.0, output) - target * output)


# --- trivial predictors ----------------------------------------------------------------------


def mean_image(query: baselines.Query):
    seen_B = jnp.asarray(~query.held_out).reshape((-1,) + (1,) * (query.truths.ndim - 1))
    mean = jnp.mean(query.truths, axis=0, where=seen_B, keepdims=True)
    return jnp.broadcast_to(mean, query.truths.shape)


def main_effects(query: baselines.Query, factors):
    """The sum of one mean ID image per value (or else the mean), less F - 1 mean ID images."""
    seen, mean = ~np.asarray(query.held_out), mean_image(query)[:1]
    drawn, indices_BxF = mean, tasks.nearest_values(factors, np.asarray(query.points))
    for factor, index_B in zip(factors, indices_BxF.T, strict=True):
        shows_VxB = seen & (index_B == np.arange(len(factor.values))[:, None])
        count_Vx1 = shows_VxB.sum(axis=1, keepdims=True)
        weights_VxB = jnp.asarray(shows_VxB / np.maximum(count_Vx1, 1), jnp.float32)
        means = jnp.tensordot(weights_VxB, query.truths, axes=1)
        exists = count_Vx1.reshape(-1, *(1,) * (mean.ndim - 1)) > 0
        drawn = drawn + (jnp.where(exists, means, mean) - mean)[index_B]
    return drawn


# --- the task --------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _scene(settings: SceneTask) -> Scene:
    return settings.scene()


@functools.lru_cache(maxsize=64)
def _main_effects(settings: SceneTask) -> dict:
    """The share of the pixels' variance in main effects, if it is known."""
    scene = _scene(settings)
    if not np.all(scene.rows_B):
        return {}
    shares = marginals.main_effects_shares(scene.picture, scene.factors, len(scene.factors))
    return {"main_effects_share": next(iter(shares.values()))}
