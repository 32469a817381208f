"""Rotation: images of an object, a digit, turned by an angle (paper Figure 9), in degrees
counter-clockwise when images are shown with the origin at the lower left: `image[y, x]`."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.settings import Family, choice, demand, number, traced
from compgen_jax.tasks import baselines, digits, sampling
from compgen_jax.tasks.supports import Cells, random_cells
from compgen_jax.tasks.task import Example, Factor, Task, mean_squared_error, numpy_of

BANK = 720  # at most so many true images are compared with an answer
ANGLE_TOLERANCE = 5.0  # degrees
IMAGE_TOLERANCE = 0.05  # of a blank image's error
CLOSE = 1e-3  # degrees, or a share of a step between cells: rounding errors
TIE = 1e-5  # of an image's square: two images this near to an answer are equally near


@dataclass(frozen=True)
class AngleCodeConfig:
    """How the angle is given to the model.

    cos_sin  its cosine and sine;
    bump     `units` Gaussians evenly round the circle, with the standard deviation
             `width` in degrees.
    """

    name: str = choice("cos_sin", "cos_sin", "bump")
    units: int = number(36, low=2, high=3600)
    width: float = number(20.0, above=0)


@dataclass(frozen=True)
class GapConfig:
    """Which angles are held out, for the objects named in `of` (none: all): those in [low, high)
    degrees, where `high` may exceed 360 (gap); a `share` of the cells, drawn with `seed`
    (random)."""

    region: str = choice("gap", "gap", "random", "none")
    low: float = number(160.0, low=0, high=360)
    high: float = number(200.0, low=0, high=720)
    of: tuple = ()
    share: float = number(0.1, low=0, high=1)
    seed: int = number(0, low=0)


@dataclass(frozen=True)
class Rotation(Family):
    """Turned digits, the `objects`, on `side` x `side` pixels, measured at `angles` angles evenly
    round the circle.

    The digits are drawn from a font. With `mnist_path`, a directory, they are the first training
    examples of MNIST, of 28 x 28 pixels. Training shows `samples` angles of each, evenly round the
    circle, without those held out: 889 of 1000 (of the authors, 888). The loss is the mean squared
    error plus `l1` times the mean absolute one.
    """

    side: int = number(28, low=8, high=128)
    objects: tuple = (4,)
    angles: int = number(360, low=4, high=3600)
    mnist_path: str = ""
    code: AngleCodeConfig = AngleCodeConfig()
    gap: GapConfig = traced(GapConfig())
    samples: int = number(1000, low=1, high=10**6)
    l1: float = number(0.1, low=0)

    def check(self, config):
        objects, gap, side = self.objects, self.gap, digits.SIDE
        demand(
            0 < len(objects) == len(set(objects) & set(range(10))),
            f"config.task.objects={objects!r}: must be one or more different digits from 0 to 9",
        )
        demand(
            set(gap.of) <= set(objects),
            f"config.task.gap.of={gap.of!r}: must name some of config.task.objects={objects!r}",
        )
        demand(
            not self.mnist_path or self.side == side,
            f"config.task.side={self.side}: images of config.task.mnist_path need {side}",
        )
        demand(
            gap.region != "gap" or gap.low < gap.high < gap.low + 360,
            f"config.task.gap.high={gap.high:g}: must be greater than config.task.gap.low, and "
            f"less than {gap.low + 360:g}",
        )

    @functools.lru_cache(maxsize=256)  # noqa: B019  (one for each of many gaps)
    def make(self) -> Task:
        """Raises ConfigError for held-out angles that cannot be, and for wrong files of MNIST."""
        factors, angles, prefix = factors_of(self), self.angles, f"config.task.gap={self.gap}"
        is_held_out = held_out_by(self)
        objects = [factor.values for factor in factors[1:]]
        cells, samples = (
            grids.points([360 / n * np.arange(n), *objects]) for n in (angles, self.samples)
        )
        seen_OxA = ~is_held_out(cells).reshape(-1, angles)
        seen_samples = ~is_held_out(samples)
        demand(
            self.gap.region == "none" or not seen_OxA.all(),
            f"{prefix}: holds out none of config.task.angles={angles} angles; say region='none'",
        )
        is_seen_O = seen_OxA.any(axis=1) & seen_samples.reshape(-1, self.samples).any(axis=1)
        demand(
            is_seen_O.all(),
            f"{prefix}: holds out all of config.task.angles={angles} or of config.task.samples="
            f"{self.samples} angles of a digit",
        )
        demand(
            len(factors) == 1 or seen_OxA.any(axis=0).all(),
            f"{prefix}: no digit is shown at some angles; name digits in config.task.gap.of",
        )
        # examples and scores do not depend on what is held out
        constants = replace(self, gap=GapConfig(region="none"))
        pictures, *bank = _pictures_and_bank(constants)
        length = 2 if self.code.name == "cos_sin" else self.code.units
        mixture = partial(edge_mixture, objects=self.objects, pictures=pictures, seen_OxA=seen_OxA)
        return Task(
            factors=factors,
            held_out=is_held_out,
            example=lambda key, point: example(point, constants, pictures),
            dataset=lambda key: sampling.table(jnp.asarray(samples[seen_samples])),
            examples=int(seen_samples.sum()),
            loss=partial(loss, l1=self.l1),
            scores=partial(scores, bank=bank),
            accuracy="exact_accuracy",
            baselines=baselines.BASELINES | {"edge_mixture": mixture},
            parts=(length, len(self.objects))[: len(factors)],
            units={"cell": float(len(cells))},
        )


# --- images and codes ------------------------------------------------------------------------


def turned(image_HxW, degrees):
    """A square image turned counter-clockwise, as scipy.ndimage.rotate(order=1,
    mode='grid-constant') does by minus the angle."""
    centre, turn = (len(image_HxW) - 1) / 2, degrees * (np.pi / 180)
    offset_N = jnp.arange(len(image_HxW)) - centre
    y, x = offset_N[:, None], offset_N[None, :]
    cos, sin = jnp.cos(turn), jnp.sin(turn)
    positions = [centre + cos * y - sin * x, centre + sin * y + cos * x]
    return jax.scipy.ndimage.map_coordinates(image_HxW, positions, order=1, mode="constant")


def encode_angle(degrees, config: AngleCodeConfig):
    if config.name == "cos_sin":
        turn = degrees * (jnp.pi / 180)
        return jnp.stack([jnp.cos(turn), jnp.sin(turn)])
    angle_U = 360 / config.units * jnp.arange(config.units)
    apart_U = (angle_U - degrees + 180) % 360 - 180
    return jnp.exp(-jnp.square(apart_U) / (2 * config.width**2))


def example(point, settings: Rotation, pictures_OxNxN) -> Example:
    """Of a point (angle, object), or (angle,) if there is one object."""
    code, pictures = encode_angle(point[0], settings.code), jnp.asarray(pictures_OxNxN)
    if len(point) == 1:
        return Example(code, turned(pictures[0], point[0]))
    is_object_O = jnp.array(sorted(settings.objects), jnp.float32) == point[1]
    code = jnp.concatenate([code, is_object_O.astype(jnp.float32)])
    return Example(code, turned(pictures[jnp.argmax(is_object_O)], point[0]))


def loss(output, target, l1: float):
    # in this order: the other one adds gradients in another, and trains to other bits
    return mean_squared_error(output, target) + l1 * jnp.mean(jnp.abs(output - target))


# --- which angles are held out ---------------------------------------------------------------


def factors_of(settings: Rotation) -> tuple[Factor, ...]:
    angle_A = 360 / settings.angles * np.arange(settings.angles)
    objects = np.array(sorted(settings.objects), np.float32)
    angle = Factor("angle", angle_A.astype(np.float32), period=360.0)
    return (angle, Factor("object", objects, real=False)) if len(objects) > 1 else (angle,)


def held_out_by(settings: Rotation) -> Callable:
    """points (..., F), NumPy or JAX -> (...,) bool."""
    gap, names = settings.gap, sorted(settings.objects)
    if gap.region != "gap":
        options = np.repeat([name in (gap.of or names) for name in names], settings.angles)
        share = gap.share if gap.region == "random" else 0.0
        chosen = random_cells(options, share, gap.seed)
        return Cells(factors_of(settings), chosen).is_held_out

    def is_held_out(points):
        # rounding moves neither end
        inside = (points[..., 0] - gap.low + CLOSE) % 360 < gap.high - gap.low
        if not gap.of or len(names) == 1:
            return inside
        numpy = numpy_of(points)
        return inside & numpy.isin(points[..., 1], numpy.asarray(gap.of))

    return is_held_out


# --- scores and a trivial predictor ----------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _pictures_and_bank(settings: Rotation):
    """The pictures (O, N, N) of the objects at the angle 0; and the bank: true images (C, P) and
    points (C, F) of all cells, or of every k-th angle if they exceed `BANK`."""
    from scipy import ndimage  # a while to import

    names = sorted(settings.objects)
    if settings.mnist_path:
        examples = digits.first_of_each(settings.mnist_path, names)
        pictures = np.stack([examples[name][::-1] for name in names])  # their row 0 is at the top
    else:
        pictures = np.stack([digits.drawn(name, settings.side) for name in names])
    step = -(-settings.angles * len(names) // BANK)
    angle_A = 360 / settings.angles * np.arange(0, settings.angles, step)
    turn = partial(ndimage.rotate, reshape=False, order=1, mode="grid-constant")
    images = [turn(picture, -angle).ravel() for picture in pictures for angle in angle_A]
    points = grids.points([angle_A, *(factor.values for factor in factors_of(settings)[1:])])
    return pictures, np.stack(images), points


def scores(signal, truth, point, bank) -> dict:
    """angle_accuracy: whether the nearest of all true images, those of the bank and the requested
    one, shows the requested object, within `ANGLE_TOLERANCE`. Ties count as right. exact_accuracy:
    whether the angle and the image are right."""
    error, blank = mean_squared_error(signal, truth), jnp.mean(jnp.square(truth))
    images_CxP, points_CxF = map(jnp.asarray, bank)
    apart_CxF = points_CxF - point[None]
    off_C = jnp.abs((apart_CxF[:, 0] + 180) % 360 - 180)
    alike = (off_C <= ANGLE_TOLERANCE + CLOSE) & (apart_CxF[:, 1:] == 0).all(axis=1)
    # squared distances without the signal's own square, which they share
    product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)
    distance = jnp.sum(jnp.square(images_CxP), axis=1) - 2 * product(images_CxP, signal.ravel())
    requested = jnp.sum(jnp.square(truth)) - 2 * product(truth.ravel(), signal.ravel())
    nearest_alike = jnp.minimum(requested, jnp.min(jnp.where(alike, distance, jnp.inf)))
    nearest_other = jnp.min(jnp.where(alike, jnp.inf, distance))
    slack = TIE * jnp.sum(jnp.square(truth))
    right_angle = jnp.isfinite(signal).all() & (nearest_alike <= nearest_other + slack)
    right_image = error <= IMAGE_TOLERANCE * blank
    return {
        "mse": error,
        "blank_mse": blank,
        "image_accuracy": right_image,
        "angle_accuracy": right_angle,
        "exact_accuracy": right_image & right_angle,
    }


def edge_mixture(query: baselines.Query, objects, pictures, seen_OxA):
    """A held-out angle as the images at its gap's edges, weighted by the distance to the other
    (Figure 9d)."""
    angle_A = 360 / seen_OxA.shape[1] * jnp.arange(seen_OxA.shape[1])
    names_O = jnp.array(sorted(objects))

    def predict(point):
        index = jnp.argmax(names_O == point[1]) if len(point) > 1 else 0
        seen_A, picture = (jnp.asarray(array)[index] for array in (seen_OxA, pictures))
        before_A = jnp.where(seen_A, (point[0] - angle_A) % 360, jnp.inf)
        after_A = jnp.where(seen_A, (angle_A - point[0]) % 360, jnp.inf)
        first, last = jnp.argmin(before_A), jnp.argmin(after_A)
        share = before_A[first] / jnp.maximum(before_A[first] + after_A[last], CLOSE)
        edges = [turned(picture, angle_A[edge]) for edge in (first, last)]
        return (1 - share) * edges[0] + share * edges[1]

    mixtures = jax.vmap(predict)(jnp.asarray(query.points, jnp.float32))
    return jnp.where(jnp.asarray(query.held_out)[:, None, None], mixtures, query.truths)
