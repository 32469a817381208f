"""Bumps: images of a bump at (x, y), perhaps with a size (paper section 3.1 and Figure 4a).

`image[y, x]` has pixel centres at the integers 0..N-1. A *signal* is 0 on a blank image, an *image*
is the signal or one minus it.
"""

import functools
import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import Family, choice, demand, number, traced
from compgen_jax.tasks import baselines, encodings, images, marginals, sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.encodings import CodeConfig, is_missing
from compgen_jax.tasks.holdouts import held_out_points
from compgen_jax.tasks.supports import Support, SupportConfig
from compgen_jax.tasks.task import Example, Factor, Task, mean_squared_error


@dataclass(frozen=True)
class ImageConfig:
    """How a point is drawn. `sigma` is in pixels; 'inverted' is a dark bump on white (1 - bump)."""

    sigma: float = number(1.0, above=0)
    amplitude: float = number(1.0, above=0)
    polarity: str = choice("inverted", "inverted", "upright")


@dataclass(frozen=True)
class SizeConfig:
    """A third factor, the bump's sigma in pixels: `values` sizes, evenly spaced from `smallest` to
    `largest`; 0 for none. Sizes number `low` to `high` bound what is held out."""

    values: int = number(0, low=0, high=128)
    smallest: float = number(0.8, above=0)
    largest: float = number(2.2, above=0)
    low: int = number(2, low=0)
    high: int = number(5, low=0)

    @property
    def step(self) -> float:
        return (self.largest - self.smallest) / (self.values - 1)


@dataclass(frozen=True)
class StripesConfig:
    """Single-factor images in the training set (paper section 4.2): all N vertical and all N
    horizontal stripes, `copies` times each. With `shuffled_codes` the seed permutes their codes. A
    `hole`, its first and last pixel along x and y, is a square that all leave blank, or that is
    'left_out' of the loss (NaN)."""

    copies: int = number(0, low=0, high=1000, traced=True)
    order: str = choice("by_axis", "by_axis", "shuffled", traced=True)
    shuffled_codes: bool = False
    hole: tuple = ()
    hole_is: str = choice("blank", "blank", "left_out")


@dataclass(frozen=True)
class Bump(Family):
    """The paper's task on an N x N grid. `images`, unless 0, is the number of training images and
    replaces `support.samples`: first stripes, then points.

    With 2 `bumps` an image is their sum, and the input joins their codes. Factors and held-out
    region are the first one's; the second lies on any pixel.
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
        images, copies, size = self.images, self.stripes.copies, self.size
        hole, is_ramp = self.stripes.hole, self.code.name == "ramp"
        every_cell = self.support.sampling == "every_cell"
        demand(
            not (images and every_cell),
            f"config.task.images={images}: sampling='every_cell' takes each cell once",
        )
        demand(
            self.support.samples or copies or images or every_cell,
            "config.task.support.samples=0: leaves nothing to train on",
        )
        demand(
            not (copies and is_ramp and self.code.missing == "zero"),
            "config.task.code.missing='zero': is the ramp's code of coordinate 0; say 'off_grid'",
        )
        demand(
            not hole or (len(hole) == 2 and 0 <= hole[0] <= hole[1] < self.grid),
            f"config.task.stripes.hole={hole}: must be the first and the last pixel",
        )
        demand(
            not size.values or (size.values > 1 and size.smallest < size.largest),
            f"config.task.size.values={size.values}: needs two sizes or more, from "
            f"config.task.size.smallest={size.smallest:g} up to a larger one",
        )
        demand(
            [size.values > 0, copies > 0, self.bumps > 1].count(True) < 2,
            f"config.task.size.values={size.values}: only one of sizes, stripes, two bumps can be",
        )

    def make(self) -> Task:
        """Raises ConfigError for a support that cannot serve."""
        cells, (stripes, points) = support(self), counts(self)
        seen = cells.points[~cells.held_out]
        demand(
            self.support.sampling != "without_replacement" or points <= len(seen),
            f"config.task.support.samples: {points} points, but only {len(seen)} cells are seen",
        )
        if not stripes:
            cells.check_marginals(seen)

        def check(dataset):
            points = np.asarray(dataset.points)[: int(dataset.count)]
            cells.check_marginals(points[:, : len(cells.factors)])

        predictors, has_size = baselines.BASELINES, self.size.values > 0
        if has_size:
            mean_size = lambda point: _bumps_of_all_sizes(point, self).mean(axis=0)
            predictors = predictors | {"mean_size": lambda query: jax.vmap(mean_size)(query.points)}
        return Task(
            factors=cells.factors,
            held_out=cells.is_held_out,
            example=lambda key, point: example(point, self),
            loss=loss if self.stripes.hole_is == "left_out" else mean_squared_error,
            dataset=lambda key: sampling.table(training_points(key, self)),
            examples=stripes + points,
            prediction=partial(flip, settings=self.image),
            scores=partial(_scores if self.bumps == 1 else _scores_of_two, settings=self),
            nearest=cells.nearest_seen,
            accuracy="combination_accuracy" if has_size else "exact_accuracy",
            baselines=predictors,
            parts=self.bumps * encodings.lengths(encodings.codes_of_counts(cells.sizes, self.code)),
            differentiable=self.code.name != "onehot",
            units={
                "value": self.grid if stripes else None,
                "cell": None if stripes else len(cells.points),
            },
            check=check,
        )


# --- images and codes ------------------------------------------------------------------------


def bump(x, y, grid: int, image: ImageConfig, sigma=None):
    """The signal of a point, (N, N), from 0 to the amplitude: for a missing y (None or NaN) the
    vertical stripe at x, for a missing x the horizontal one. `sigma` is in pixels."""
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
    second pair (x2, y2) is the second bump's, or the code's if codes are shuffled."""
    drawn = coded = [point]
    if settings.bumps == 2:
        second = point[2:] if len(point) > 2 else second_position(point, settings.grid)
        drawn = coded = [point[:2], second]
    elif settings.stripes.shuffled_codes and len(point) > 2:
        drawn, coded = [point[:2]], [point[2:]]
    codes, size = [], settings.size
    for position in coded:
        coordinates = [*position[:2], *((position[2:] - size.smallest) / size.step)]
        codes.append(encodings.encode(coordinates, support(settings).sizes, settings.code))
    signal = sum(_signal(position, settings) for position in drawn)
    return Example(jnp.concatenate(codes), flip(signal, settings.image))


def _signal(point, settings: Bump):
    signal = bump(*point[:2], settings.grid, settings.image, *point[2:])
    if not settings.stripes.hole:
        return signal
    first, last = settings.stripes.hole
    hole = slice(first, last + 1)
    inside = 0.0 if settings.stripes.hole_is == "blank" else jnp.nan
    return jnp.where(jnp.isnan(point).any(), signal.at[hole, hole].set(inside), signal)


def loss(output, target):
    """The mean squared error, 0 for pixels whose target is NaN."""
    return mean_squared_error(output, jnp.where(jnp.isnan(target), output, target))


def second_position(point, grid: int):
    """(2,): the second bump's pixel where the first one's cell is measured, for all seeds."""
    x, y = jnp.nan_to_num(jnp.round(point)).astype(jnp.int32)
    return _random_pixel(jax.random.key(0), grid, x, y)


def _random_pixel(key, grid: int, *indices):
    for index in (sampling.tag("second object"), *indices):
        key = jax.random.fold_in(key, index)
    return jax.random.randint(key, (2,), 0, grid).astype(jnp.float32)


@functools.lru_cache(maxsize=64)
def support(settings: Bump) -> Support:
    grid, size, region = settings.grid, settings.size, settings.support
    low, high = region.low, region.high
    if region.side:
        held_out = round(region.side * grid)
        low = grid - held_out if region.region == "corner" else (grid - held_out) // 2
        high = low + held_out - 1
    values = {"x": np.arange(grid), "y": np.arange(grid)}
    box = {"x": (low, high), "y": (low, high)}
    if size.values:
        values["size"] = size.smallest + size.step * np.arange(size.values)
        box["size"] = (size.low, size.high)
    hint = f"must name some of {', '.join(values)}"
    demand(values.keys() >= {*region.of}, f"config.task.support.of={region.of}: {hint}")
    factors = [Factor(name, column.astype(np.float32)) for name, column in values.items()]
    held_out = None
    if region.held_out:
        points = tasks.cells(factors)
        held_out = held_out_points(region.held_out, factors, points, "task.support.held_out")
    return Support(region, factors, {name: box[name] for name in region.of or box}, held_out)


# --- the training set ------------------------------------------------------------------------


def counts(settings: Bump) -> tuple[int, int]:
    """How many stripes training shows, and how many points."""
    stripes = 2 * settings.grid * settings.stripes.copies
    if not settings.images:
        return stripes, support(settings).n_samples()
    stripes = min(stripes, settings.images)
    return stripes, settings.images - stripes


def stripe_points(grid: int):
    """(2N, 2): the vertical stripes at x = 0..N-1, then the horizontal ones (Figures 4a and 7a)."""
    pixels = np.arange(grid, dtype=np.float32)
    return jnp.asarray(marginals.points([Factor("x", pixels), Factor("y", pixels)]))


def training_points(key, settings: Bump):
    """(examples, F): the copies of the stripes, then points of the seen region. With two bumps, or
    shuffled codes, F = 4."""
    n_stripes, n_points = counts(settings)
    points, stripes = support(settings).sample(key, n_points), stripe_points(settings.grid)
    if settings.bumps == 2:
        draw = partial(_random_pixel, key, settings.grid)
        seconds = jax.vmap(draw)(jnp.arange(n_points))
        return jnp.concatenate([points, seconds], axis=1)
    if not n_stripes:
        return points
    if settings.stripes.shuffled_codes:
        key_codes = jax.random.fold_in(key, sampling.tag("codes of stripes"))
        others = jax.random.permutation(key_codes, stripes)
        stripes, points = jnp.concatenate([stripes, others], axis=1), jnp.tile(points, 2)
    stripes = jnp.tile(stripes, (settings.stripes.copies, 1))
    if settings.stripes.order == "shuffled":
        key = jax.random.fold_in(key, sampling.tag("stripes"))
        stripes = jax.random.permutation(key, stripes)
    return jnp.concatenate([stripes[:n_stripes], points])


# --- scores ----------------------------------------------------------------------------------


def _bumps_of_all_sizes(point, settings: Bump):
    """(S, N, N) signals."""
    size = settings.size
    draw = partial(bump, point[0], point[1], settings.grid, settings.image)
    return jax.vmap(draw)(size.smallest + size.step * jnp.arange(size.values))


def _scores(signal, truth, point, nearest=None, *, settings: Bump) -> dict:
    """With a third factor the size is right if, of the true bumps of all sizes, that of the
    requested size is nearest to the prediction."""
    image, size = settings.image, settings.size
    scores = images.scores(signal, truth, point[:2])
    nearest = support(settings).nearest_seen(point) if nearest is None else nearest
    nearest_image = bump(*nearest[:2], settings.grid, image, *nearest[2:])
    scores["rendered"] = images.rendered(signal, truth, nearest_image, jnp.isnan(nearest).any())
    if size.values:
        errors = jnp.square(signal[None] - _bumps_of_all_sizes(point, settings))
        errors_S = jnp.mean(errors, axis=(-2, -1))
        requested = jnp.round((point[2] - size.smallest) / size.step)
        right = (jnp.argmin(errors_S) == requested) & jnp.isfinite(errors_S).all()
        scores["size_accuracy"] = right
        scores["rendered"] &= right
        scores["combination_accuracy"] = right & scores["exact_accuracy"]
    return scores


def _scores_of_two(signal, truth, point, nearest=None, *, settings: Bump) -> dict:
    """The first bump's, on the prediction less the true second one; the second is rendered if the
    prediction is within 3 sigma of it, with the true first bump taken off or not."""
    first = bump(*point, settings.grid, settings.image)
    second = truth - first
    scores = _scores(signal - second, first, point, nearest, settings=settings)
    side = min(2 * math.ceil(3 * settings.image.sigma) + 1, settings.grid)
    x, y = images.brightest_pixel(second).astype(jnp.int32)
    start = jnp.clip(jnp.stack([y, x]) - side // 2, 0, settings.grid - side)
    around = partial(jax.lax.dynamic_slice, start_indices=start, slice_sizes=(side, side))
    true, parts = around(second), (signal, signal - first)
    whole, less_first = (images.rendered(around(part), true) for part in parts)
    scores["rendered_second"] = whole | less_first
    return scores
