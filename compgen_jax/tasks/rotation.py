"""Rotation: images of an object, a digit, turned by an angle (paper Figure 9).

Angles are in degrees, counter-clockwise when images are shown with the origin at the lower left, as
everywhere here: `image[y, x]`. A signal is the image itself, 0 where it is blank.
"""

import functools
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import ConfigError, Family, choice, demand, number, require, traced
from compgen_jax.tasks import baselines, digits, images, regions, sampling
from compgen_jax.tasks.task import Example, Factor, Task, numpy_of

BANK = 720  # at most so many true images are compared with an answer
CLOSE = 1e-3  # degrees, or a share of a step between cells: rounding errors
TIE = 1e-5  # of an image's square: two images this near to an answer are equally near


@dataclass(frozen=True)
class AngleCodeConfig:
    """How the angle is given to the model.

    cos_sin  its cosine and sine;
    angle    one number from -1 to 1 over the circle, which jumps where the circle closes;
    bump     `units` evenly round the circle, each a Gaussian of the circular distance to it, with
             the standard deviation `width` in degrees.
    """

    name: str = choice("cos_sin", "cos_sin", "angle", "bump")
    units: int = number(36, low=2, high=3600)
    width: float = number(20.0, above=0)


@dataclass(frozen=True)
class GapConfig:
    """Which angles are held out: all in [low, high) degrees, where `high` may exceed 360 (gap); a
    `share` of the cells, drawn with `seed` (random); or none.

    They are held out for the objects named in `of` (none: for all). With 'random', an angle between
    the cells belongs to its nearest cell.
    """

    region: str = choice("gap", "gap", "random", "none")
    low: float = number(160.0, low=0, high=360)
    high: float = number(200.0, low=0, high=720)
    of: tuple = ()
    share: float = number(0.1, low=0, high=1)
    seed: int = number(0, low=0)


@dataclass(frozen=True)
class Rotation(Family):
    """Turned digits, the `objects`, on `side` x `side` pixels, measured at `angles` angles evenly
    round the circle. With one object, the angle is the only factor.

    The digits are drawn from a font. With `mnist_path` (a directory, or its file of images) they
    are the first training examples of MNIST, of 28 x 28 pixels. Training shows `samples` angles of
    each object, evenly round the circle from 0 on, without those that are held out: 889 of 1000.
    (The authors take 888, as many below the gap as above.)

    The loss is the mean squared error plus `l1` times the mean absolute one. An answer's angle is
    right within `angle_tolerance` degrees; its image is right up to `image_tolerance` times a blank
    image's error.
    """

    side: int = number(28, low=8, high=128)
    objects: tuple = (4,)
    angles: int = number(360, low=4, high=3600)
    mnist_path: str = ""
    code: AngleCodeConfig = AngleCodeConfig()
    gap: GapConfig = traced(GapConfig())
    samples: int = number(1000, low=1, high=10**6)
    l1: float = number(0.1, low=0)
    angle_tolerance: float = number(5.0, low=0, high=180)
    image_tolerance: float = number(0.05, above=0)

    def check(self, config):
        objects, gap = self.objects, self.gap
        are_digits = lambda values: all(type(value) is int and 0 <= value <= 9 for value in values)
        differ = are_digits(objects) and 0 < len(objects) == len(set(objects))
        hint = "must be one or more different digits from 0 to 9"
        require(differ, "task.objects", objects, hint)
        hint = f"must name some of config.task.objects={objects!r}"
        require(are_digits(gap.of) and set(gap.of) <= set(objects), "task.gap.of", gap.of, hint)
        side, own = self.side, digits.SIDE
        hint = f"images of config.task.mnist_path have {own} x {own} pixels; must be {own}"
        require(not self.mnist_path or side == own, "task.side", side, hint)
        fits = gap.region != "gap" or gap.low < gap.high < gap.low + 360
        hint = f"must be greater than config.task.gap.low={gap.low:g} and less than once round from"
        demand(fits, f"config.task.gap.high={gap.high:g}: {hint} it, {gap.low + 360:g}")

    def make(self) -> Task:
        """Raises ConfigError for held-out angles that cannot be, and for wrong files of MNIST."""
        return _task(self)


# --- images and codes ------------------------------------------------------------------------


def turned(image_HxW, degrees):
    """A square image turned counter-clockwise about its centre, bilinear, 0 beyond its pixels;
    differentiable in the angle.

    For an image whose outermost pixels are 0 it equals scipy.ndimage.rotate(reshape=False, order=1,
    mode='constant') by minus the angle, since SciPy's row 0 is at the top. Other images fade over
    one pixel, as with mode='grid-constant'.
    """
    places = _places(len(image_HxW), degrees, jnp)
    return jax.scipy.ndimage.map_coordinates(image_HxW, places, order=1, mode="constant")


def _places(side: int, degrees, numpy):
    """[row, column] of the point that each pixel of a turned image shows."""
    centre, turn = (side - 1) / 2, degrees * (np.pi / 180)
    offset_N = numpy.arange(side) - centre
    y, x = offset_N[:, None], offset_N[None, :]
    cos, sin = numpy.cos(turn), numpy.sin(turn)
    return [centre + cos * y - sin * x, centre + sin * y + cos * x]


def pictures(settings: Rotation):
    """(O, N, N) float32 NumPy: the objects in ascending order, at the angle 0. Raises ConfigError
    for wrong files of MNIST."""
    names = sorted(settings.objects)
    if not settings.mnist_path:
        return np.stack([digits.drawn(name, settings.side) for name in names])
    examples = digits.first_of_each(settings.mnist_path, names)
    return np.stack([examples[name][::-1] for name in names])  # a file's row 0 is at the top


def encode_angle(degrees, config: AngleCodeConfig):
    """The code (E,) of one angle; it repeats after a whole turn."""
    if config.name == "cos_sin":
        turn = degrees * (jnp.pi / 180)
        return jnp.stack([jnp.cos(turn), jnp.sin(turn)])
    if config.name == "angle":
        return (degrees % 360 / 180 - 1)[None]
    own_U = 360 / config.units * jnp.arange(config.units)
    return jnp.exp(-jnp.square(_apart(own_U - degrees)) / (2 * config.width**2))


def _apart(difference):
    """The signed circular distance, in degrees from -180 up to 180."""
    return (difference + 180) % 360 - 180


def example(point, settings: Rotation, pictures_OxNxN) -> Example:
    """The code and the image of a point (angle, object), or (angle,) if there is one object. A
    one-hot code of the object follows that of the angle if there are several."""
    angle, *names = point
    code, picture = encode_angle(angle, settings.code), jnp.asarray(pictures_OxNxN[0])
    if names:
        chosen_O = jnp.array(sorted(settings.objects), jnp.float32) == names[0]
        code = jnp.concatenate([code, chosen_O.astype(jnp.float32)])
        picture = jnp.asarray(pictures_OxNxN)[jnp.argmax(chosen_O)]
    return Example(code, turned(picture, angle))


def loss(output, target, l1: float):
    """The mean squared error plus `l1` times the mean absolute one."""
    chex.assert_equal_shape([output, target])
    difference = output - target
    return jnp.mean(jnp.square(difference)) + l1 * jnp.mean(jnp.abs(difference))


# --- which angles are held out ---------------------------------------------------------------


def is_held_out(points, settings: Rotation):
    """Whether the points (..., F) are held out; for NumPy or JAX arrays."""
    gap, numpy = settings.gap, numpy_of(points)
    angle = points[..., 0]
    if gap.region == "none":
        return numpy.zeros(angle.shape, bool)
    if gap.region == "random":
        place = numpy.nan_to_num(numpy.round(angle * (settings.angles / 360))).astype(int)
        cell = settings.angles * _object(points, settings) + place % settings.angles
        return numpy.asarray(_random_cells(settings))[cell] & ~numpy.isnan(angle)
    # rounding moves neither end
    inside = (angle - gap.low + CLOSE) % 360 < gap.high - gap.low
    if not gap.of or len(settings.objects) == 1:
        return inside
    return inside & numpy.isin(points[..., 1], numpy.asarray(gap.of))


def _object(points, settings: Rotation):
    """(...,) int: the index of the object, in ascending order."""
    if len(settings.objects) == 1:
        return 0
    return sum(k * (points[..., 1] == name) for k, name in enumerate(sorted(settings.objects)))


@functools.lru_cache(maxsize=64)
def _random_cells(settings: Rotation):
    """(O * A,) bool: the share of the cells of the objects in `of`."""
    gap, names = settings.gap, sorted(settings.objects)
    options = np.repeat([name in (gap.of or names) for name in names], settings.angles)
    return regions.random_cells(options, gap.share, gap.seed)


def factors(settings: Rotation) -> tuple[Factor, ...]:
    """The angle, and the object if there are several; the angle varies fastest."""
    values = 360 / settings.angles * np.arange(settings.angles)
    angle = Factor("angle", values.astype(np.float32), period=360.0)
    if len(settings.objects) == 1:
        return (angle,)
    return angle, Factor("object", np.array(sorted(settings.objects), np.float32), real=False)


def _every(settings: Rotation, count: int):
    """(O * count, F) float32: `count` angles evenly round the circle, for each object."""
    angle_A = 360 / count * np.arange(count)
    names = sorted(settings.objects)
    columns = [np.tile(angle_A, len(names)), np.repeat(names, count)][: len(factors(settings))]
    return np.stack(columns, axis=1).astype(np.float32)


def seen(settings: Rotation, count: int):
    """(O, count) bool NumPy: which of `count` angles evenly round the circle are seen."""
    return ~is_held_out(_every(settings, count), settings).reshape(-1, count)


# --- scores and a trivial predictor ----------------------------------------------------------


class Bank(NamedTuple):
    """True images (C, P) of the cells, their squares (C,), objects (C,) and angles (C,)."""

    images: np.ndarray
    squares: np.ndarray
    objects: np.ndarray
    angles: np.ndarray


def bank(settings: Rotation, pictures_OxNxN) -> Bank:
    """The images of all cells, or of every k-th angle if there are more than `BANK`; NumPy."""
    from scipy import ndimage  # a while to import

    names = sorted(settings.objects)
    step = -(-settings.angles * len(names) // BANK)
    angle_A = 360 / settings.angles * np.arange(0, settings.angles, step)
    places = _places(settings.side, angle_A[:, None, None], np)
    turn = partial(ndimage.map_coordinates, coordinates=places, order=1, mode="grid-constant")
    turned = np.stack([turn(picture) for picture in pictures_OxNxN])
    images_CxP = turned.reshape(len(names) * len(angle_A), -1).astype(np.float32)
    return Bank(
        images_CxP,
        np.sum(np.square(images_CxP), axis=1),
        np.repeat(names, len(angle_A)).astype(np.float32),
        np.tile(angle_A, len(names)).astype(np.float32),
    )


def scores(signal, truth, point, settings: Rotation, true: Bank) -> dict:
    """The scores of one image by name.

    mse: the mean squared error.  blank_mse: that of a blank image.
    image_accuracy: whether the error is at most `image_tolerance` times a blank image's.
    angle_accuracy: whether the nearest of all true images, those of the bank and the requested one,
        shows the requested object at about the requested angle. Ties count as right.
    exact_accuracy: whether both are right. Signals that are not finite are wrong.
    """
    error = images.mean_squared_error(signal, truth)
    blank = images.mean_squared_error(jnp.zeros_like(truth), truth)
    alike = jnp.abs(_apart(true.angles - point[0])) <= settings.angle_tolerance + CLOSE
    if len(settings.objects) > 1:
        alike = alike & (true.objects == point[1])
    # squared distances without the signal's own square, which they share
    product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)
    distance = true.squares - 2 * product(jnp.asarray(true.images), signal.ravel())
    requested = jnp.sum(jnp.square(truth)) - 2 * product(truth.ravel(), signal.ravel())
    nearest_alike = jnp.minimum(requested, jnp.min(jnp.where(alike, distance, jnp.inf)))
    nearest_other = jnp.min(jnp.where(alike, jnp.inf, distance))
    slack = TIE * jnp.sum(jnp.square(truth))
    right_angle = jnp.isfinite(signal).all() & (nearest_alike <= nearest_other + slack)
    right_image = error <= settings.image_tolerance * blank
    return {
        "mse": error,
        "blank_mse": blank,
        "image_accuracy": right_image,
        "angle_accuracy": right_angle,
        "exact_accuracy": right_image & right_angle,
    }


def edge_mixture(asked: baselines.Asked, settings: Rotation, pictures_OxNxN):
    """For a held-out point, the images at the nearest seen cells of the same object on both sides,
    mixed pixel by pixel in proportion to the angle (Figure 9d).

    It is the truth for a seen point, and blank for an object without seen cells.
    """
    below, above = _seen_on_both_sides(seen(settings, settings.angles))
    step = 360 / settings.angles

    def predict(point):
        name, place = _object(point, settings), point[0] * (settings.angles / 360)
        at = jnp.round(place)
        on_cell = jnp.abs(place - at) < CLOSE  # a cell's angle, but for rounding
        index = lambda cell: jnp.where(on_cell, at, cell).astype(int) % settings.angles
        first = jnp.asarray(below)[name, index(jnp.floor(place))]
        last = jnp.asarray(above)[name, index(jnp.ceil(place))]
        before, after = (point[0] - step * first) % 360, (step * last - point[0]) % 360
        share = before / jnp.maximum(before + after, CLOSE)
        picture = jnp.asarray(pictures_OxNxN)[name]
        mixed = (1 - share) * turned(picture, step * first) + share * turned(picture, step * last)
        return jnp.where(first < 0, 0.0, mixed)

    mixtures = jax.vmap(predict)(jnp.asarray(asked.points, jnp.float32))
    return jnp.where(jnp.asarray(asked.held_out)[:, None, None], mixtures, asked.truths)


def _seen_on_both_sides(seen_OxA):
    """(O, A) int each: the nearest seen cell at or below each cell, and at or above it; -1 for an
    object without seen cells."""
    count = seen_OxA.shape[1]
    cells = np.arange(2 * count)
    twice = np.concatenate([seen_OxA, seen_OxA], axis=1)
    below = np.maximum.accumulate(np.where(twice, cells, -1), axis=1)[:, count:]
    backwards = np.where(twice, cells, 2 * count)[:, ::-1]
    above = np.minimum.accumulate(backwards, axis=1)[:, ::-1][:, :count]
    some = seen_OxA.any(axis=1, keepdims=True)
    return np.where(some, below % count, -1), np.where(some, above % count, -1)


# --- the task --------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _constants(settings: Rotation):
    """The pictures and the bank; the same for all held-out regions."""
    upright = pictures(settings)
    return upright, bank(settings, upright)


@functools.lru_cache(maxsize=256)  # one for each of many gaps
def _task(settings: Rotation) -> Task:
    _check_support(settings)
    # examples and scores do not depend on what is held out
    constants = replace(settings, gap=GapConfig(region="none"))
    upright, true = _constants(constants)
    points = _every(settings, settings.samples)[seen(settings, settings.samples).ravel()]
    length = {"cos_sin": 2, "angle": 1, "bump": settings.code.units}[settings.code.name]
    several = len(settings.objects) > 1
    return Task(
        factors=factors(settings),
        held_out=partial(is_held_out, settings=settings),
        example=lambda key, point: example(point, constants, upright),
        dataset=lambda key: sampling.table(jnp.asarray(points)),
        examples=len(points),
        loss=partial(loss, l1=settings.l1),
        scores=partial(scores, settings=constants, true=true),
        accuracy="exact_accuracy",
        baselines=baselines.BASELINES
        | {"edge_mixture": partial(edge_mixture, settings=settings, pictures_OxNxN=upright)},
        parts=(length, len(settings.objects)) if several else (length,),
        units={"cell": float(settings.angles * len(settings.objects))},
    )


def _check_support(settings: Rotation):
    """Raises ConfigError where held-out angles leave nothing to learn, or to compose."""
    seen_OxA, names, gap = seen(settings, settings.angles), sorted(settings.objects), settings.gap
    shown = {"gap": ("low", "high", "of"), "random": ("share", "seed", "of"), "none": ()}
    pairs = [f"{name}={getattr(gap, name)!r}" for name in ("region", *shown[gap.region])]
    where = f"config.task.gap: {', '.join(pairs)}"
    some = gap.region == "none" or not seen_OxA.all()
    hint = "(to show all, say config.task.gap.region='none')"
    demand(some, f"{where}: holds out none of config.task.angles={settings.angles} angles {hint}")
    for flag in ("angles", "samples"):
        count = getattr(settings, flag)
        for name, some in zip(names, seen(settings, count).any(axis=1), strict=True):
            what = f"all of config.task.{flag}={count} angles of the digit {name}"
            demand(some, f"{where}: holds out {what}; must leave some")
    never = np.flatnonzero(~seen_OxA.any(axis=0)) * (360 / settings.angles)
    if len(names) > 1 and len(never):
        raise ConfigError(
            f"{where}: no digit is shown at {len(never)} of config.task.angles={settings.angles} "
            f"angles, the first of which is {never[0]:g}; hold out angles of some digits alone "
            "(config.task.gap.of)"
        )
