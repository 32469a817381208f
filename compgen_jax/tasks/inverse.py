"""Image tasks reversed: the image is the input, and its factors are asked for.

The authors' encoders do this, outside the paper: encoder_exps/bump.py answers with the code of the
point, scalar.py with its coordinates.
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import ConfigError, choice, require
from compgen_jax.tasks import baselines, bump
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.task import Example, Task, mean_squared_error

UNIT_CODES = ("bump", "onehot")  # that have one unit for each value


@dataclass(frozen=True)
class Inverse(Bump):
    """The bump task reversed: the image, in its polarity, is given and the point is asked for.

    `answer` 'code' asks for the vector that the bump task would give a model, 'coordinates' for the
    factors' values in pixels. All other fields are the bump task's; `image.position_tolerance` and
    `image.image_tolerance` have no effect.
    """

    answer: str = choice("code", "code", "coordinates")

    def check(self, config):
        super().check(config)
        is_code, code = self.answer == "code", self.code.name
        hint = "an image does not tell which of its bumps is the first; say 1"
        require(self.bumps == 1, "task.bumps", self.bumps, hint)
        hint = (
            "a stripe has no value of its missing factor; say 'code', or "
            "config.task.stripes.copies=0"
        )
        require(is_code or not self.stripes.copies, "task.answer", self.answer, hint)
        hint = (
            f"has no unit for each value to decode; must be one of {', '.join(UNIT_CODES)} for "
            "config.task.answer='code', or say config.task.answer='coordinates'"
        )
        require(not is_code or code in UNIT_CODES, "task.code.name", code, hint)

    def make(self) -> Task:
        """Raises ConfigError for a support that cannot serve."""
        task = super().make()
        if not task.differentiable:
            # the image can be differentiated, though the code cannot
            def example(key, point):
                image = bump.example(point, replace(self, code=CodeConfig())).target
                return Example(forward(key, jax.lax.stop_gradient(point)).input, image)

            forward = task.example
            task = task._replace(example=example, differentiable=True)
        return inverse(task, self.answer)


def inverse(task: Task, answer: str = "code", tolerance: float = 0.5) -> Task:
    """`task`, which maps a code to one image, reversed: its image, as it is, is the input.

    Args:
      task: its input is a vector with one code per factor, its target one array (H, W).
      answer: 'code' asks for the input of `task`, which needs a unit for each value of a factor.
        'coordinates' asks for the factors' values (F,).
      tolerance: how far off a coordinate may be, in cells (for x and y, pixels). The authors allow
        half a pixel.

    The scores are `mse` over the vector, `exact_accuracy` and `position_accuracy`. An answer is
    exact if every factor is right: the largest unit of its code is the true one, or its coordinate
    is within `tolerance`. Its position is right if every factor is within one cell.

    Raises ConfigError for a task that does not map codes to images, and for factors or codes that
    cannot be answered so.
    """
    given, asked = tasks.shapes(task)
    if not all(isinstance(each, jax.ShapeDtypeStruct) for each in (given, asked)) or (
        given.ndim != 1 or asked.ndim != 2
    ):
        raise ConfigError(f"config.task: maps {given} to {asked}, not a code to one image")
    known = answer in ("code", "coordinates")
    require(known, "task.answer", answer, "must be one of code, coordinates")
    if answer == "code":
        values = tuple(len(factor.values) for factor in task.factors)
        parts = tuple(task.parts)
        hint = f"needs a code with a unit for each value, in parts of {values}, not {parts}"
        require(parts == values, "task.answer", answer, f"{hint}; say 'coordinates'")
        off, tolerance = partial(_units_apart, parts=values), 0.5
    else:
        labels = [f.name for f in task.factors if not f.real or np.isfinite(f.period)]
        hint = f"{', '.join(labels)} is a label or an angle, and no coordinate; say 'code'"
        require(not labels, "task.answer", answer, hint)
        steps = [float(np.mean(np.diff(factor.values))) for factor in task.factors]
        off = lambda prediction, truth: jnp.abs(prediction - truth) / jnp.array(steps)

    def scores(prediction, truth, point):
        off_F = off(prediction, truth)
        return {
            "mse": mean_squared_error(prediction, truth),
            "exact_accuracy": jnp.all(off_F <= tolerance),
            "position_accuracy": jnp.all(off_F <= 1),
        }

    said = lambda code, point: code if answer == "code" else point
    return _reversed(task, said, scores=scores, derived=lambda means: {})


def reading(task: Task) -> Task:
    """`task`, which maps a code to one image, reversed for factors of any kind: `answer_of` says
    what is asked for, `factor_scores` how it is scored."""
    return _reversed(
        task,
        lambda code, point: answer_of(point, task.factors),
        scores=partial(factor_scores, factors=task.factors),
        derived=lambda means: _r2_of_means(means, task.factors),
        differentiable=False,
    )


def _reversed(task: Task, answer, **fields) -> Task:
    """`task` with its image as the input, which asks for `answer(input, point)`."""

    def example(key, point):
        forward = task.example(key, point)
        return Example(forward.target, answer(forward.input, point))

    return task._replace(
        example=example,
        loss=mean_squared_error,
        output=None,
        prediction=lambda output: output,
        truth=None,
        nearest=None,
        error="mse",
        accuracy="exact_accuracy",
        baselines=baselines.BASELINES | {"mean_answer": mean_answer},
        parts=(),
        **fields,
    )


def answer_of(point, factors):
    """What a model should say of a point: for each factor one number from -1 to 1 over its values,
    cosine and sine of an angle, or one unit for each label."""
    parts = []
    for value, factor in zip(point[: len(factors)], factors, strict=True):
        values = np.asarray(factor.values, np.float32)
        if not factor.real:
            parts.append((jnp.abs(values - value) < 1e-6).astype(jnp.float32))
        elif np.isfinite(factor.period):
            turn = 2 * jnp.pi / factor.period * value
            parts.append(jnp.stack([jnp.cos(turn), jnp.sin(turn)]))
        else:
            middle, half = _span(values)
            parts.append(((value - middle) / half)[None])
    return jnp.concatenate(parts)


def read_answer(answer, factors):
    """(F,) the values that an answer says."""
    said, start = [], 0
    for factor in factors:
        values = np.asarray(factor.values, np.float32)
        if not factor.real:
            said.append(jnp.asarray(values)[jnp.argmax(answer[start : start + len(values)])])
            start += len(values)
        elif np.isfinite(factor.period):
            turn = jnp.arctan2(answer[start + 1], answer[start])
            said.append(turn * factor.period / (2 * jnp.pi) % factor.period)
            start += 2
        else:
            middle, half = _span(values)
            said.append(middle + half * answer[start])
            start += 1
    return jnp.stack(said)


def _span(values):
    """The middle of a factor's values, and half their range."""
    middle, half = (values[0] + values[-1]) / 2, (values[-1] - values[0]) / 2
    return float(middle), float(half) or 1.0


def factor_scores(prediction, truth, point, factors) -> dict:
    """The scores of one answer.

    mse: over the numbers of `answer_of`.
    NAME_accuracy: whether the value nearest to the one said is the requested one.
    NAME_error: how far the value said is off, round the circle for an angle; not of labels.
    NAME_mse: its square over the variance of the factor's values; not of labels and angles.
    exact_accuracy: whether all are right. An answer that is not finite is wrong.
    """
    said_F, finite = read_answer(prediction, factors), jnp.isfinite(prediction).all()
    place_F = tasks.nearest_values(factors, said_F)
    right_F = (place_F == tasks.nearest_values(factors, point)) & finite
    found = {"mse": mean_squared_error(prediction, truth), "exact_accuracy": right_F.all()}
    for index, factor in enumerate(factors):
        found[f"{factor.name}_accuracy"] = right_F[index]
        if not factor.real:
            continue
        off = jnp.abs(said_F[index] - point[index])
        if np.isfinite(factor.period):
            off = jnp.minimum(off % factor.period, -off % factor.period)
        elif len(factor.values) > 1:
            found[f"{factor.name}_mse"] = jnp.square(off) / float(np.var(factor.values))
        found[f"{factor.name}_error"] = off
    return found


def _r2_of_means(means: dict, factors) -> dict:
    """{NAME_r2}: 1 - mean squared error / the variance of the values over the whole grid, as Schott
    et al. (2022) score a factor."""
    names = [factor.name for factor in factors if f"{factor.name}_mse" in means]
    return {f"{name}_r2": 1 - means[f"{name}_mse"] for name in names}


def _units_apart(prediction, truth, parts):
    """(F,): how far each part's largest unit is from the true one; infinite for a prediction that
    is not finite."""
    splits = np.cumsum(parts)[:-1].tolist()
    largest = lambda code: jnp.stack([jnp.argmax(part) for part in jnp.split(code, splits)])
    off_F = jnp.abs(largest(prediction) - largest(truth))
    return jnp.where(jnp.isfinite(prediction).all(), off_F, jnp.inf)


def mean_answer(asked: baselines.Asked):
    """The mean truth, entry by entry, of seen and of held-out points apart (see
    `baselines.best_constant`)."""

    def mean(mask_B):
        return jnp.mean(asked.truths, axis=0, where=mask_B[:, None], keepdims=True)

    held_out_B = jnp.asarray(asked.held_out)
    return jnp.where(held_out_B[:, None], mean(held_out_B), mean(~held_out_B))
