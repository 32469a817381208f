"""Image tasks reversed: the image is the input, and its factors are asked for (the authors'
encoder_exps/bump.py and scalar.py, outside the paper)."""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import choice
from compgen_jax.tasks import baselines, bump, encodings
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.task import Example, Task, mean_squared_error, refuse


@dataclass(frozen=True)
class Inverse(Bump):
    """The bump task reversed: the image is given and the point is asked for.

    `answer` 'code' asks for the vector that the bump task would give a model, 'coordinates' for the
    factors' values in pixels; `mse` is over this vector. For `exact_accuracy` every factor must be
    right: the largest unit of its code, or its coordinate within half a cell. For
    `position_accuracy` every factor must be within one cell.
    """

    answer: str = choice("code", "code", "coordinates")

    def check(self, config):
        super().check(config)
        refuse({
            f"bumps={self.bumps}: an image does not tell which of its bumps is the first; say 1":
                self.bumps != 1,
            "answer='coordinates': a stripe has no value of its missing factor; say 'code', or "
            "config.task.stripes.copies=0":
                self.answer == "coordinates" and self.stripes.copies,
        })  # fmt: skip

    def make(self) -> Task:
        """Raises ConfigError for a support that cannot serve, or a code that cannot be decoded."""
        task, is_code = super().make(), self.answer == "code"
        units = tasks.counts(task.factors)
        refuse({
            f"code.name={self.code.name!r}: has no unit for each value to decode; must be bump or "
            "onehot, without labels off the canvas, or say config.task.answer='coordinates'":
                is_code and task.parts != units,
        })  # fmt: skip
        steps = [float(np.mean(np.diff(factor.values))) for factor in task.factors]

        def example(key, point):
            if task.differentiable:
                code, image = task.example(key, point)
            else:  # the image can be differentiated, though the code cannot
                code = task.example(key, jax.lax.stop_gradient(point)).input
                image = bump.example(point, replace(self, code=CodeConfig())).target
            return Example(image, code if is_code else point)

        def scores(prediction, truth, point):
            if is_code:
                splits = np.cumsum(units)[:-1].tolist()
                answered, right = (
                    jnp.stack([jnp.argmax(part) for part in jnp.split(vector, splits)])
                    for vector in (prediction, truth)
                )
                off_F = jnp.abs(answered - right)
                off_F = jnp.where(jnp.isfinite(prediction).all(), off_F, jnp.inf)
            else:
                off_F = jnp.abs(prediction - truth) / jnp.array(steps)
            return {
                "mse": mean_squared_error(prediction, truth),
                "exact_accuracy": jnp.all(off_F <= 0.5),
                "position_accuracy": jnp.all(off_F <= 1),
            }

        return _reversed(task, example, scores=scores, differentiable=True)


def reading(task: Task) -> Task:
    """`task`, which maps a code to one image, reversed for factors of any kind; see `answer_codes`
    and `factor_scores`."""
    factors, codes = task.factors, answer_codes(task.factors)

    def example(key, point):
        answer = encodings.joined(point[: len(factors)], codes)
        return Example(task.example(key, point).target, answer)

    def r2_of_means(means):
        """1 - mean squared error / the variance of the values over the whole grid (Schott et al.
        2022)."""
        names = [factor.name for factor in factors if f"{factor.name}_mse" in means]
        return {f"{name}_r2": 1 - means[f"{name}_mse"] for name in names}

    scores = partial(factor_scores, factors=factors)
    return _reversed(task, example, scores=scores, derived=r2_of_means, differentiable=False)


def _reversed(task: Task, example, **fields) -> Task:
    defaults = Task._field_defaults
    return task._replace(
        example=example,
        **{name: defaults[name] for name in ("loss", "prediction", "truth", "nearest", "parts")},
        accuracy="exact_accuracy",
        baselines=baselines.BASELINES | {"mean_answer": baselines.mean_answer},
        **fields,
    )


def answer_codes(factors) -> list[encodings.Code]:
    """A real factor is answered by one number from -1 to 1, an angle by cosine and sine, a label by
    one unit for each."""
    codes = []
    for factor in factors:
        kind = "circle" if np.isfinite(factor.period) else "scaled"
        codes.append(encodings.code_of_factor(factor, kind if factor.real else "onehot"))
    return codes


def factor_scores(prediction, truth, point, factors) -> dict:
    """The scores of one answer.

    NAME_accuracy: whether the value nearest to the answered one is the requested one.
    NAME_error, NAME_mse: how far the value is off, and its square over the variance of the factor's
        values; the first not of labels, the second of neither labels nor angles.
    exact_accuracy: whether all are right. An answer that is not finite is wrong.
    """
    ends, values = np.cumsum(encodings.lengths(answer_codes(factors)))[:-1].tolist(), []
    for factor, part in zip(factors, jnp.split(prediction, ends), strict=True):
        factor_values = np.asarray(factor.values, np.float32)
        if not factor.real:
            values.append(jnp.asarray(factor_values)[jnp.argmax(part)])
        elif np.isfinite(factor.period):
            turn = jnp.arctan2(part[1], part[0])
            values.append(turn * factor.period / (2 * jnp.pi) % factor.period)
        else:
            middle, half = encodings.span(factor_values)
            values.append(middle + half * part[0])
    values_F, finite = jnp.stack(values), jnp.isfinite(prediction).all()
    index_F = tasks.nearest_values(factors, values_F)
    right_F = (index_F == tasks.nearest_values(factors, point)) & finite
    scores = {"mse": mean_squared_error(prediction, truth), "exact_accuracy": right_F.all()}
    for index, factor in enumerate(factors):
        scores[f"{factor.name}_accuracy"] = right_F[index]
        if not factor.real:
            continue
        off = jnp.abs(values_F[index] - point[index])
        if np.isfinite(factor.period):
            off = jnp.minimum(off % factor.period, -off % factor.period)
        elif len(factor.values) > 1:
            scores[f"{factor.name}_mse"] = jnp.square(off) / float(np.var(factor.values))
        scores[f"{factor.name}_error"] = off
    return scores
