"""Disentangled codes of a point (paper section 3.1): `CodeConfig` gives all factors of bumps one
code of their coordinate in cells, `CodesConfig` each factor of a scene a code that suits it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import choice, number

FREQUENCIES = 8  # of the positional code
OFF_CANVAS = 12  # labels behind those of the cells, as in the authors' earlier work: 40 of 28
CODES_OF_FACTORS = "bump", "value", "onehot", "circle"


@dataclass(frozen=True)
class CodeConfig:
    """How a coordinate is given to the model (paper section 3.1).

    `sigma` (in cells; for x and y, pixels) and `width`, which multiplies the variance, shape the
    bump code. A missing factor's code is zero (the ramp's also of coordinate 0), that of the
    coordinate -1 ('off_grid'), or the seventh of 12 labels behind the cells, which have units of
    their own ('off_canvas').
    """

    name: str = choice("bump", "bump", "ramp", "onehot", "positional")
    sigma: float = number(1.0, above=0)
    width: float = number(1.0, above=0)
    missing: str = choice("zero", "zero", "off_grid", "off_canvas")


@dataclass(frozen=True)
class CodesConfig:
    """How factors are given to a model: all by the code `name`, but those in `of`, pairs of a
    factor and its code.

    value   the stored number.
    bump    a unit for each value, with a Gaussian of `sigma` cells; labels have onehot.
    onehot  a unit for each value, 1 for the nearest one.
    circle  cosine and sine of an angle; other factors have the bump code.

    A missing factor's code is zero. 'mask' adds a unit for each factor, 1 if it is missing.
    """

    name: str = choice("bump", *CODES_OF_FACTORS)
    of: tuple = ()
    sigma: float = number(1.0, above=0)
    missing: str = choice("zero", "zero", "mask")


class Code(NamedTuple):
    """The code of one factor, `function`: scalar -> (E,). A missing factor has the code of the
    scalar `absent`, or zeros; a `masked` one has one more unit for it."""

    function: Callable
    absent: float | None = None
    masked: bool = False


def joined(values, codes):
    parts = []
    for value, code in zip(values, codes, strict=True):
        missing, value = is_missing(value)
        absent = 0.0 if code.absent is None else code.function(jnp.float32(code.absent))
        parts.append(jnp.where(missing, absent, code.function(value)))
        if code.masked:
            parts.append(missing[None].astype(jnp.float32))
    return jnp.concatenate(parts)


def lengths(codes) -> tuple[int, ...]:
    scalar = jax.ShapeDtypeStruct((), jnp.float32)
    return tuple(jax.eval_shape(code.function, scalar).size + code.masked for code in codes)


def is_missing(coordinate):
    """(whether a scalar is None or NaN, the scalar or else 0). The 0 keeps derivatives finite."""
    coordinate = jnp.asarray(jnp.nan if coordinate is None else coordinate, jnp.float32)
    missing = jnp.isnan(coordinate)
    return missing, jnp.where(missing, 0.0, coordinate)


# --- of coordinates, in cells ----------------------------------------------------------------


def codes_of_counts(counts, config: CodeConfig) -> list[Code]:
    codes = []
    for count in counts:
        absent = -1.0 if config.missing == "off_grid" else None
        if config.missing == "off_canvas":
            absent = count + OFF_CANVAS // 2
            count += OFF_CANVAS
        codes.append(Code(partial(code_of_coordinate, count=count, config=config), absent))
    return codes


def encode(coordinates, counts, config: CodeConfig):
    """The code (E,) of a point; a coordinate is None or NaN if the factor is missing."""
    return joined(coordinates, codes_of_counts(counts, config))


def gaussian_profile(coordinate, count: int, sigma):
    """exp(-(i - c)^2 / (2 sigma^2)) at i = 0..count-1."""
    offset_N = jnp.arange(count, dtype=jnp.float32) - coordinate
    return jnp.exp(-jnp.square(offset_N) / (2 * sigma**2))


def code_of_coordinate(coordinate, count: int, config: CodeConfig):
    """The code of one coordinate in cells, for N = `count` cells.

    bump        exp(-(i - c)^2 / (2 w sigma^2)) for i = 0..N-1, w the `width`
    ramp        c itself
    onehot      1 for the nearest cell (all 0 off the grid)
    positional  [sin(w_k c); cos(w_k c)] for geometric frequencies w_k, with wavelengths from 2N
                cells, so that no two coordinates share a code, to 4
    """
    if config.name == "bump":
        return gaussian_profile(coordinate, count, config.width**0.5 * config.sigma)
    if config.name == "ramp":
        return coordinate[None]
    if config.name == "onehot":
        return (jnp.arange(count) == jnp.round(coordinate)).astype(jnp.float32)
    exponent_F = jnp.arange(FREQUENCIES) / (FREQUENCIES - 1)
    phase_F = coordinate * (jnp.pi / count) * (count / 2.0) ** exponent_F
    return jnp.concatenate([jnp.sin(phase_F), jnp.cos(phase_F)])


# --- of values of any factors ----------------------------------------------------------------


def codes_of_factors(factors, config: CodesConfig) -> list[Code]:
    codes = []
    for factor in factors:
        kind = dict(config.of).get(factor.name, config.name)
        if not factor.real and kind != "value":
            kind = "onehot"
        if kind == "circle" and math.isinf(factor.period):
            kind = "bump"
        codes.append(code_of_factor(factor, kind, config))
    return codes


def code_of_factor(factor, kind: str, config: CodesConfig = CodesConfig()) -> Code:
    """The code of one factor. Beside the kinds of `CodesConfig` there is 'scaled': one number, from
    -1 to 1."""
    values = np.asarray(factor.values, np.float32)
    period = factor.period

    def function(value):
        if kind == "value":
            return value[None]
        if kind == "scaled":
            middle, half = span(values)
            return ((value - middle) / half)[None]
        if kind == "circle":
            turn = 2 * jnp.pi / period * value
            return jnp.stack([jnp.cos(turn), jnp.sin(turn)])
        if not factor.real:
            return (jnp.abs(values - value) < 1e-6).astype(jnp.float32)
        steps = np.diff(values)
        if kind == "bump" and math.isfinite(period):
            apart = (values - value + period / 2) % period - period / 2
            return jnp.exp(-jnp.square(apart / steps.mean()) / (2 * config.sigma**2))
        # in cells from the first value on, linear between and beyond the values
        coordinate = jnp.interp(value, values, jnp.arange(len(values), dtype=jnp.float32))
        coordinate += jnp.minimum((value - values[0]) / steps[0], 0.0)
        coordinate += jnp.maximum((value - values[-1]) / steps[-1], 0.0)
        return code_of_coordinate(coordinate, len(values), CodeConfig(kind, config.sigma))

    return Code(function, masked=config.missing == "mask")


def span(values):
    middle, half = (values[0] + values[-1]) / 2, (values[-1] - values[0]) / 2
    return float(middle), float(half) or 1.0
