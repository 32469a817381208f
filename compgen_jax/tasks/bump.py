"""Bumps: images of a bump at (x, y), perhaps with a size (paper section 3.1 and Figure 4a).

This module alone decides the axis order (`image[y, x]`, pixel centres at the integers 0..N-1) and
the polarity: a *signal* is 0 on a blank image, an *image* is the signal or one minus it.
"""

import functools
import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import Family, choice, number, traced
from compgen_jax.tasks import baselines, encodings, images, marginals, sampling
from compgen_jax.tasks.encodings import CodeConfig, is_missing
from compgen_jax.tasks.supports import Axis, Support, SupportConfig
from compgen_jax.tasks.task import Example, Factor, Task, mean_squared_error, refuse


@dataclass(frozen=True)
class ImageConfig:
    """How a point is drawn. `sigma` is in pixels; 'inverted' is a dark bump on white (1 - bump).
    The tolerances are those of `tasks.images.scores`."""

    sigma: float = number(1.0, above=0)
    amplitude: float = number(1.0, above=0)
    polarity: str = choice("inverted", "inverted", "upright")
    position_tolerance: float = number(1.0, low=0)
    image_tolerance: float = number(0.25, above=0)


@dataclass(frozen=True)
class SizeConfig:
    """A third factor, the bump's sigma in pixels: `values` sizes, evenly spaced from `smallest` to
    `largest`; 0 for no third factor. Sizes number `low` to `high` bound a held-out box or corner.
    The task's accuracy then asks for the size as well."""

    values: int = number(0, low=0, high=128)
    smallest: float = number(0.8, above=0)
    largest: float = number(2.2, above=0)
    low: int = number(2, low=0)
    high: int = number(5, low=0)


@dataclass(frozen=True)
class StripesConfig:
    """Images of one factor alone in the training set (paper section 4.2, appendix E).

    There are all N vertical and all N horizontal stripes, `copies` times each, in this order or
    `shuffled` by the seed. `task.code.missing` says how the missing factor is coded. With
    `shuffled_codes` each stripe comes with the code of another: the seed permutes all 2N codes. All
    leave a square blank if there is a `hole`, its first and its last pixel along x and y; or its
    pixels are 'left_out' of the loss (NaN), so that stripes say nothing of them.
    """

    copies: int = number(0, low=0, high=1000, traced=True)
    order: str = choice("by_axis", "by_axis", "shuffled", traced=True)
    shuffled_codes: bool = False
    hole: tuple = ()
    hole_is: str = choice("blank", "blank", "left_out")


@dataclass(frozen=True)
class Bump(Family):
    """The paper's task on an N x N grid. `images`, unless 0, is the number of training images and
    replaces `support.samples`: first the stripes (shuffled, if not all fit), then points.

    With 2 `bumps` an image is the sum of two bumps, and the input joins their codes. The factors
    and the held-out region are those of the first bump. The second lies on any pixel: each training
    image has drawn one, and all measurements at a cell show the same one.
    """

    grid: int = number(28, low=8, high=128)
    image: ImageConfig = ImageConfig()
    size: SizeConfig = SizeConfig()
    code: CodeConfig = CodeConfig()
    support: SupportConfig = traced(SupportConfig())
    stripes: StripesConfig = StripesConfig()
    bumps: int = number(1, low=1, high=2)
    images: int = number(0, low=0, high=10**7, traced=True)

    def check(self, config):
        images, stripes, support, size = self.images, self.stripes, self.support, self.size
        hole, missing = stripes.hole, self.code.missing
        is_ramp, every_cell = self.code.name == "ramp", support.sampling == "every_cell"
        ends = len(hole) == 2 and all(type(end) is int for end in hole)
        refuse({
            "code.missing='off_canvas': adds units, of which the ramp has one; say 'off_grid'":
                is_ramp and missing == "off_canvas",
            f"images={images}: config.task.support.sampling='every_cell' takes each cell once":
                images and every_cell,
            f"images={images}: leaves out stripes; needs config.task.stripes.order='shuffled'":
                0 < images < 2 * self.grid * stripes.copies and stripes.order != "shuffled",
            "support.samples=0: leaves nothing to train on, as config.task.stripes.copies=0":
                not (support.samples or stripes.copies or images or every_cell),
            "code.missing='zero': is the ramp's code of coordinate 0; stripes need 'off_grid'":
                stripes.copies and is_ramp and missing == "zero",
            f"stripes.hole={hole}: must be the first and the last pixel, whole numbers":
                hole and not (ends and 0 <= hole[0] <= hole[1] < self.grid),
            f"size.values={size.values}: a third factor needs two sizes or more, from "
            f"config.task.size.smallest={size.smallest:g} up to a larger config.task.size.largest":
                size.values and (size.values == 1 or size.smallest >= size.largest),
            f"size.values={size.values}: is for one object; config.task.bumps=2 needs 0":
                self.bumps == 2 and size.values,
            f"stripes.copies={stripes.copies}: is for one object; config.task.bumps=2 needs 0":
                self.bumps == 2 and stripes.copies,
            f"size.values={size.values}: stripes are images of x or of y alone, and need 0":
                size.values and stripes.copies,
        })  # fmt: skip

    def make(self) -> Task:
        """Raises ConfigError for a support that cannot serve."""
        cells, stripes, points = support(self), self.stripes.copies, n_points(self)
        cells.check(points, shows_every_value=bool(stripes))

        def check(dataset):
            points = np.asarray(dataset.points)[: int(dataset.count)]
            cells.check_marginals(points[:, : len(cells.axes)])

        has_size = bool(self.size.values)
        return Task(
            factors=cells.factors,
            held_out=cells.is_held_out,
            example=lambda key, point: example(point, self),
            loss=loss if self.stripes.hole_is == "left_out" else mean_squared_error,
            dataset=lambda key: sampling.table(training_points(key, self)),
            examples=n_stripes(self) + points,
            prediction=partial(flip, settings=self.image),
            scores=partial(_scores if self.bumps == 1 else _scores_of_two, settings=self),
            nearest=cells.nearest_seen,
            accuracy="combination_accuracy" if has_size else "exact_accuracy",
            baselines=baselines.BASELINES
            | ({"mean_size": partial(_mean_size, settings=self)} if has_size else {}),
            parts=self.bumps * encodings.lengths(encodings.codes_of_counts(cells.sizes, self.code)),
            differentiable=self.code.name != "onehot",
            units={
                "value": self.grid if stripes else None,
                "cell": None if stripes else math.prod(cells.sizes),
            },
            check=check,
        )


# --- images and codes ------------------------------------------------------------------------


def bump(x, y, grid: int, image: ImageConfig, sigma=None):
    """The signal of a point, shape (N, N), range [0, amplitude].

    The vertical stripe at x for a missing y (None or NaN), and the horizontal one at y for a
    missing x. `sigma` is in pixels, by default that of `image`.
    """
    sigma, profiles = image.sigma if sigma is None else sigma, []
    for coordinate in (y, x):
        missing, coordinate = is_missing(coordinate)
        profile = encodings.gaussian_profile(coordinate, grid, sigma)
        profiles.append(jnp.where(missing, 1.0, profile))
    row_H, column_W = profiles
    return image.amplitude * row_H[:, None] * column_W[None, :]


def flip(image, settings: ImageConfig):
    return 1.0 - image if settings.polarity == "inverted" else image


def example(point, settings: Bump) -> Example:
    """The code and the image of a point (x, y), or (x, y, size); a stripe where x or y is NaN. A
    second pair (x2, y2) is that of the second bump; with shuffled codes the code is that of (x2,
    y2)."""
    if settings.stripes.shuffled_codes and len(point) > 2:
        (code, _), (_, signal) = _object(point[2:], settings), _object(point[:2], settings)
    elif settings.bumps == 1:
        code, signal = _object(point, settings)
    else:
        second = point[2:] if len(point) > 2 else second_position(point, settings.grid)
        objects = [_object(position, settings) for position in (point[:2], second)]
        codes, signals = zip(*objects, strict=True)
        code, signal = jnp.concatenate(codes), sum(signals)
    return Example(code, flip(signal, settings.image))


def loss(output, target):
    """The mean squared error, without pixels whose target is NaN."""
    missing = jnp.isnan(target)
    return mean_squared_error(jnp.where(missing, 0, output), jnp.where(missing, 0, target))


def _random_pixel(key, grid: int):
    return jax.random.randint(key, (2,), 0, grid).astype(jnp.float32)


def second_position(point, grid: int):
    """(2,): the second bump's pixel where the first one's cell is measured, for all seeds."""
    x, y = jnp.nan_to_num(jnp.round(point)).astype(jnp.int32)
    key = jax.random.fold_in(jax.random.key(0), sampling.tag("second object"))
    return _random_pixel(jax.random.fold_in(jax.random.fold_in(key, x), y), grid)


def _object(point, settings: Bump) -> tuple:
    x, y, *size = point
    signal = bump(x, y, settings.grid, settings.image, *size)
    if settings.stripes.hole:
        (first, last), pixels = settings.stripes.hole, jnp.arange(settings.grid)
        within = (first <= pixels) & (pixels <= last)
        is_stripe = is_missing(x)[0] | is_missing(y)[0]
        inside = 0.0 if settings.stripes.hole_is == "blank" else jnp.nan
        signal = jnp.where(is_stripe & within[:, None] & within[None], inside, signal)
    coordinates = [(x, settings.grid), (y, settings.grid)]
    if size:
        axis = support(settings).axes[2]
        coordinates.append(((size[0] - axis.first) / axis.step, axis.count))
    return encodings.encode(coordinates, settings.code), signal


@functools.lru_cache(maxsize=64)
def support(settings: Bump) -> Support:
    grid, size, region = settings.grid, settings.size, settings.support
    low, high = region.low, region.high
    if region.side:
        held_out = round(region.side * grid)
        low = grid - held_out if region.region == "corner" else (grid - held_out) // 2
        high = low + held_out - 1
    axes = [Axis(name, grid, 0.0, 1.0, low, high) for name in "xy"]
    if size.values:
        step = (size.largest - size.smallest) / (size.values - 1)
        axes.append(Axis("size", size.values, size.smallest, step, size.low, size.high))
    return Support(region, axes)


# --- the training set ------------------------------------------------------------------------


def n_stripes(settings: Bump) -> int:
    stripes = 2 * settings.grid * settings.stripes.copies
    return min(stripes, settings.images) if settings.images else stripes


def n_points(settings: Bump) -> int:
    if settings.images:
        return settings.images - n_stripes(settings)
    return support(settings).n_samples()


def stripe_points(grid: int):
    """(2N, 2): the vertical stripes at x = 0..N-1, then the horizontal ones (Figures 4a and 7a)."""
    pixels = np.arange(grid, dtype=np.float32)
    return jnp.asarray(marginals.points([Factor("x", pixels), Factor("y", pixels)]))


def training_points(key, settings: Bump):
    """(examples, F): the copies of the stripes, then points of the seen region. With two bumps, or
    shuffled codes, F = 4."""
    points = support(settings).sample(key, n_points(settings))
    if settings.bumps == 2:
        key = jax.random.fold_in(key, sampling.tag("second object"))
        keys = jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(len(points)))
        seconds = jax.vmap(partial(_random_pixel, grid=settings.grid))(keys)
        return jnp.concatenate([points, seconds], axis=1)
    if not settings.stripes.copies:
        return points
    stripes = stripe_points(settings.grid)
    if settings.stripes.shuffled_codes:
        key_codes = jax.random.fold_in(key, sampling.tag("codes of stripes"))
        others = jax.random.permutation(key_codes, stripes)
        stripes, points = jnp.concatenate([stripes, others], axis=1), jnp.tile(points, 2)
    stripes = jnp.tile(stripes, (settings.stripes.copies, 1))
    if settings.stripes.order == "shuffled":
        key = jax.random.fold_in(key, sampling.tag("stripes"))
        stripes = jax.random.permutation(key, stripes)
    return jnp.concatenate([stripes[: n_stripes(settings)], points])


# --- scores ----------------------------------------------------------------------------------


def _bumps_of_all_sizes(x, y, settings: Bump):
    """(S, N, N) signals."""
    axis = support(settings).axes[2]
    draw = partial(bump, x, y, settings.grid, settings.image)
    return jax.vmap(draw)(axis.first + axis.step * jnp.arange(axis.count))


def _scores(signal, truth, point, nearest=None, *, settings: Bump) -> dict:
    """With a third factor the size is right if, of the true bumps of all sizes, that of the
    requested size is nearest to the prediction."""
    image = settings.image
    tolerances = image.position_tolerance, image.image_tolerance
    scores = images.scores(signal, truth, point[:2], *tolerances)
    nearest = support(settings).nearest_seen(point) if nearest is None else nearest
    nearest_image = bump(*nearest[:2], settings.grid, image, *nearest[2:])
    is_seen = jnp.isnan(nearest).any()
    scores["rendered"] = images.rendered(signal, truth, nearest_image, is_seen)
    if settings.size.values:
        all_sizes = _bumps_of_all_sizes(point[0], point[1], settings)
        errors_S = images.mean_squared_error(signal[None], all_sizes)
        axis = support(settings).axes[2]
        requested = jnp.round((point[2] - axis.first) / axis.step)
        right = (jnp.argmin(errors_S) == requested) & jnp.isfinite(errors_S).all()
        scores["size_accuracy"] = right
        scores["rendered"] = scores["rendered"] & right
        scores["combination_accuracy"] = right & scores["exact_accuracy"]
    return scores


def _scores_of_two(signal, truth, point, nearest=None, *, settings: Bump) -> dict:
    """The first bump's, on the prediction less the true second one; the second is rendered if the
    prediction is right within 3 sigma of it, with the true first bump taken off or not."""
    first = bump(*point, settings.grid, settings.image)
    second = truth - first
    scores = _scores(signal - second, first, point, nearest, settings=settings)
    side = min(2 * math.ceil(3 * settings.image.sigma) + 1, settings.grid)
    x, y = images.brightest_pixel(second).astype(jnp.int32)
    start = jnp.clip(jnp.stack([y, x]) - side // 2, 0, settings.grid - side)
    whole, less_first, true = (
        jax.lax.dynamic_slice(image, start, (side, side))
        for image in (signal, signal - first, second)
    )
    scores["rendered_second"] = images.rendered(whole, true) | images.rendered(less_first, true)
    return scores


def _mean_size(query: baselines.Query, settings: Bump):
    """What x and y alone can say of a third factor."""
    draw = jax.vmap(partial(_bumps_of_all_sizes, settings=settings))
    return draw(query.points[:, 0], query.points[:, 1]).mean(axis=1)
