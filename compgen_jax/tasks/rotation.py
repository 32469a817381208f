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

from compgen_jax.settings import Family, choice, number, traced
from compgen_jax.tasks import baselines, digits, images, regions, sampling
from compgen_jax.tasks.task import Example, Factor, Task, numpy_of, refuse

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
        are_digits = all(type(value) is int and 0 <= value <= 9 for value in objects)
        refuse({
            f"objects={objects!r}: must be one or more different digits from 0 to 9":
                not are_digits or not 0 < len(objects) == len(set(objects)),
            f"gap.of={gap.of!r}: must name some of config.task.objects={objects!r}":
                not set(gap.of) <= set(objects),
            f"side={self.side}: images of config.task.mnist_path have {digits.SIDE} x "
            f"{digits.SIDE} pixels; must be {digits.SIDE}":
                self.mnist_path and self.side != digits.SIDE,
            f"gap.high={gap.high:g}: must be greater than config.task.gap.low={gap.low:g} and less "
            f"than once round from it, {gap.low + 360:g}":
                gap.region == "gap" and not gap.low < gap.high < gap.low + 360,
        })  # fmt: skip

    @functools.lru_cache(maxsize=256)  # noqa: B019  (one for each of many gaps)
    def make(self) -> Task:
        """Raises ConfigError for held-out angles that cannot be, and for wrong files of MNIST."""
        names, angles, gap = sorted(self.objects), self.angles, self.gap
        seen_OxA = seen(self, angles)
        never = 360 / angles * np.flatnonzero(~seen_OxA.any(axis=0))
        refuse({
            f"gap={gap}: holds out none of config.task.angles={angles} angles; say region='none'":
                gap.region != "none" and seen_OxA.all(),
            f"gap={gap}: holds out all of config.task.angles={angles} angles of a digit":
                not seen_OxA.any(axis=1).all(),
            f"gap={gap}: holds out all of config.task.samples={self.samples} angles of a digit":
                not seen(self, self.samples).any(axis=1).all(),
            f"gap={gap}: no digit is shown at {len(never)} of config.task.angles={angles} angles, "
            f"the first of which is {min(never, default=0):g}; hold out angles of some digits "
            "alone (config.task.gap.of)":
                len(names) > 1 and len(never),
        })  # fmt: skip
        # examples and scores do not depend on what is held out
        constants = replace(self, gap=GapConfig(region="none"))
        pictures, bank = _pictures_and_bank(constants)
        points = points_of(self, self.samples)[seen(self, self.samples).ravel()]
        length = {"cos_sin": 2, "angle": 1, "bump": self.code.units}[self.code.name]
        values = 360 / angles * np.arange(angles)
        factors, parts = (Factor("angle", values.astype(np.float32), period=360.0),), (length,)
        if len(names) > 1:
            factors += (Factor("object", np.array(names, np.float32), real=False),)
            parts += (len(names),)
        mixture = partial(edge_mixture, settings=self, pictures_OxNxN=pictures)
        return Task(
            factors=factors,
            held_out=partial(is_held_out, settings=self),
            example=lambda key, point: example(point, constants, pictures),
            dataset=lambda key: sampling.table(jnp.asarray(points)),
            examples=len(points),
            loss=partial(loss, l1=self.l1),
            scores=partial(scores, settings=constants, bank=bank),
            accuracy="exact_accuracy",
            baselines=baselines.BASELINES | {"edge_mixture": mixture},
            parts=parts,
            units={"cell": float(angles * len(names))},
        )


# --- images and codes ------------------------------------------------------------------------


def turned(image_HxW, degrees):
    """A square image turned counter-clockwise, as scipy.ndimage.rotate(order=1,
    mode='grid-constant') does by minus the angle."""
    positions = _positions(len(image_HxW), degrees, jnp)
    return jax.scipy.ndimage.map_coordinates(image_HxW, positions, order=1, mode="constant")


def _positions(side: int, degrees, numpy):
    """[row, column] of the point that each pixel of a turned image shows."""
    centre, turn = (side - 1) / 2, degrees * (np.pi / 180)
    offset_N = numpy.arange(side) - centre
    y, x = offset_N[:, None], offset_N[None, :]
    cos, sin = numpy.cos(turn), numpy.sin(turn)
    return [centre + cos * y - sin * x, centre + sin * y + cos * x]


def encode_angle(degrees, config: AngleCodeConfig):
    if config.name == "cos_sin":
        turn = degrees * (jnp.pi / 180)
        return jnp.stack([jnp.cos(turn), jnp.sin(turn)])
    if config.name == "angle":
        return (degrees % 360 / 180 - 1)[None]
    angle_U = 360 / config.units * jnp.arange(config.units)
    return jnp.exp(-jnp.square(_apart(angle_U - degrees)) / (2 * config.width**2))


def _apart(difference):
    """The signed circular distance, in degrees from -180 up to 180."""
    return (difference + 180) % 360 - 180


def example(point, settings: Rotation, pictures_OxNxN) -> Example:
    """Of a point (angle, object), or (angle,) if there is one object."""
    code, picture = encode_angle(point[0], settings.code), jnp.asarray(pictures_OxNxN[0])
    if len(point) > 1:
        is_object_O = jnp.array(sorted(settings.objects), jnp.float32) == point[1]
        code = jnp.concatenate([code, is_object_O.astype(jnp.float32)])
        picture = jnp.asarray(pictures_OxNxN)[jnp.argmax(is_object_O)]
    return Example(code, turned(picture, point[0]))


def loss(output, target, l1: float):
    chex.assert_equal_shape([output, target])
    difference = output - target
    return jnp.mean(jnp.square(difference)) + l1 * jnp.mean(jnp.abs(difference))


# --- which angles are held out ---------------------------------------------------------------


def is_held_out(points, settings: Rotation):
    gap, numpy = settings.gap, numpy_of(points)
    angle = points[..., 0]
    if gap.region == "none":
        return numpy.zeros(angle.shape, bool)
    if gap.region == "random":
        index = numpy.nan_to_num(numpy.round(angle * (settings.angles / 360))).astype(int)
        cell = settings.angles * _object(points, settings) + index % settings.angles
        names = sorted(settings.objects)
        options = np.repeat([name in (gap.of or names) for name in names], settings.angles)
        chosen = regions.random_cells(options, gap.share, gap.seed)
        return numpy.asarray(chosen)[cell] & ~numpy.isnan(angle)
    # rounding moves neither end
    inside = (angle - gap.low + CLOSE) % 360 < gap.high - gap.low
    if not gap.of or len(settings.objects) == 1:
        return inside
    return inside & numpy.isin(points[..., 1], numpy.asarray(gap.of))


def _object(points, settings: Rotation):
    if len(settings.objects) == 1:
        return 0
    return sum(k * (points[..., 1] == name) for k, name in enumerate(sorted(settings.objects)))


def points_of(settings: Rotation, count: int):
    """(O * count, F) float32: `count` angles evenly round the circle, for each object."""
    angle_A, names = 360 / count * np.arange(count), sorted(settings.objects)
    columns = [np.tile(angle_A, len(names)), np.repeat(names, count)]
    return np.stack(columns[: 1 + (len(names) > 1)], axis=1).astype(np.float32)


def seen(settings: Rotation, count: int):
    """(O, count) bool NumPy: which of `count` angles evenly round the circle are seen."""
    return ~is_held_out(points_of(settings, count), settings).reshape(-1, count)


# --- scores and a trivial predictor ----------------------------------------------------------


class Bank(NamedTuple):
    """True images (C, P) of the cells, their squares (C,), objects (C,) and angles (C,): of all
    cells, or of every k-th angle if there are more than `BANK`; NumPy."""

    images: np.ndarray
    squares: np.ndarray
    objects: np.ndarray
    angles: np.ndarray


@functools.lru_cache(maxsize=64)
def _pictures_and_bank(settings: Rotation):
    """The pictures (O, N, N) of the objects in ascending order at the angle 0, and the bank."""
    from scipy import ndimage  # a while to import

    names, side = sorted(settings.objects), settings.side
    if settings.mnist_path:
        examples = digits.first_of_each(settings.mnist_path, names)
        pictures = np.stack([examples[name][::-1] for name in names])  # their row 0 is at the top
    else:
        pictures = np.stack([digits.drawn(name, side) for name in names])
    step = -(-settings.angles * len(names) // BANK)
    angle_A = 360 / settings.angles * np.arange(0, settings.angles, step)
    positions = _positions(side, angle_A[:, None, None], np)
    images = [
        ndimage.map_coordinates(picture, positions, order=1, mode="grid-constant")
        for picture in pictures
    ]
    images_CxP = np.stack(images).reshape(-1, side**2).astype(np.float32)
    objects_C = np.repeat(names, len(angle_A)).astype(np.float32)
    angles_C = np.tile(angle_A, len(names)).astype(np.float32)
    return pictures, Bank(images_CxP, np.sum(np.square(images_CxP), axis=1), objects_C, angles_C)


def scores(signal, truth, point, settings: Rotation, bank: Bank) -> dict:
    """image_accuracy: whether the error is at most `image_tolerance` times a blank image's.
    angle_accuracy: whether the nearest of all true images, those of the bank and the requested one,
        shows the requested object at about the requested angle. Ties count as right.
    exact_accuracy: whether both are right. Signals that are not finite are wrong.
    """
    error = images.mean_squared_error(signal, truth)
    blank = images.mean_squared_error(jnp.zeros_like(truth), truth)
    alike = jnp.abs(_apart(bank.angles - point[0])) <= settings.angle_tolerance + CLOSE
    if len(settings.objects) > 1:
        alike = alike & (bank.objects == point[1])
    # squared distances without the signal's own square, which they share
    product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)
    distance = bank.squares - 2 * product(jnp.asarray(bank.images), signal.ravel())
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


def edge_mixture(query: baselines.Query, settings: Rotation, pictures_OxNxN):
    """For a held-out point, the images at the nearest seen cells of the same object on both sides,
    mixed in proportion to the angle (Figure 9d); blank for an object without seen cells."""
    seen_OxA, count = seen(settings, settings.angles), settings.angles
    step, cells = 360 / count, np.arange(2 * count)
    # the nearest seen cell at or below each cell, and at or above it; -1 without seen cells
    twice = np.concatenate([seen_OxA, seen_OxA], axis=1)
    below = np.maximum.accumulate(np.where(twice, cells, -1), axis=1)[:, count:]
    backwards = np.where(twice, cells, 2 * count)[:, ::-1]
    above = np.minimum.accumulate(backwards, axis=1)[:, ::-1][:, :count]
    some = seen_OxA.any(axis=1, keepdims=True)
    below, above = (np.where(some, cell % count, -1) for cell in (below, above))

    def predict(point):
        name, position = _object(point, settings), point[0] * (count / 360)
        nearest = jnp.round(position)
        on_cell = jnp.abs(position - nearest) < CLOSE  # a cell's angle, but for rounding
        first, last = (
            jnp.asarray(edges)[name, jnp.where(on_cell, nearest, cell).astype(int) % count]
            for edges, cell in ((below, jnp.floor(position)), (above, jnp.ceil(position)))
        )
        before, after = (point[0] - step * first) % 360, (step * last - point[0]) % 360
        share = before / jnp.maximum(before + after, CLOSE)
        picture = jnp.asarray(pictures_OxNxN)[name]
        mixed = (1 - share) * turned(picture, step * first) + share * turned(picture, step * last)
        return jnp.where(first < 0, 0.0, mixed)

    mixtures = jax.vmap(predict)(jnp.asarray(query.points, jnp.float32))
    return jnp.where(jnp.asarray(query.held_out)[:, None, None], mixtures, query.truths)
