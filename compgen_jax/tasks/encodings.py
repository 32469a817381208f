"""Disentangled codes of a point (paper section 3.1): each factor has units of its own.

A code is a function of one continuous coordinate, in cells. A point's code joins the codes of its
coordinates.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from compgen_jax.settings import ConfigError, choice, number

OFF_CANVAS = 12  # labels behind those of the cells, as in the authors' earlier work: 40 of 28


@dataclass(frozen=True)
class CodeConfig:
    """How a coordinate is given to the model (paper section 3.1).

    `sigma` (in cells; for x and y, pixels) and `width` shape the bump code: `width` multiplies the
    variance. `scale` is for the ramp, `frequencies` for the positional code. A missing factor has
    the zero vector as its code (for the ramp this is also the code of coordinate 0), or the code of
    an off-grid coordinate. With 'off_canvas' each factor has 12 more labels than cells, behind
    them, with units of their own; the seventh of these labels is that of a missing factor.
    """

    name: str = choice("bump", "bump", "ramp", "onehot", "positional")
    sigma: float = number(1.0, above=0)
    width: float = number(1.0, above=0)
    scale: str = choice("pixels", "pixels", "unit")
    frequencies: int = number(8, low=2, high=64)
    missing: str = choice("zero", "zero", "off_grid", "off_canvas")
    missing_coordinate: float = number(-1.0)


def is_missing(coordinate):
    """(whether a scalar coordinate is None or NaN, the coordinate or else 0). The 0 keeps
    derivatives finite."""
    coordinate = (
        jnp.float32(jnp.nan) if coordinate is None else jnp.asarray(coordinate, jnp.float32)
    )
    missing = jnp.isnan(coordinate)
    return missing, jnp.where(missing, 0.0, coordinate)


def gaussian_profile(coordinate, count: int, sigma):
    """exp(-(i - c)^2 / (2 sigma^2)) at i = 0..count-1."""
    offset_N = jnp.arange(count, dtype=jnp.float32) - coordinate
    return jnp.exp(-jnp.square(offset_N) / (2 * sigma**2))


def encode(coordinates, config: CodeConfig):
    """The code (E,) of a point, from a pair (coordinate, number of cells) for each factor. A
    missing factor's coordinate is None or NaN."""
    return jnp.concatenate([encode_coordinate(c, count, config) for c, count in coordinates])


def encode_coordinate(coordinate, count: int, config: CodeConfig):
    """The code of one scalar coordinate, or of a missing one (None or NaN)."""
    code, labels = CODES[config.name], _labels(count, config)
    missing, coordinate = is_missing(coordinate)
    if config.missing == "zero":
        absent = jnp.zeros(part_lengths([count], config))
    else:
        off_canvas = config.missing == "off_canvas"
        label = count + OFF_CANVAS // 2 if off_canvas else config.missing_coordinate
        absent = code(jnp.float32(label), labels, config)
    return jnp.where(missing, absent, code(coordinate, labels, config))


def _labels(count: int, config: CodeConfig) -> int:
    """How many labels a factor with so many cells has."""
    return count + OFF_CANVAS * (config.missing == "off_canvas")


def part_lengths(counts, config: CodeConfig) -> tuple[int, ...]:
    """The lengths of the codes of factors with so many cells; E is their sum."""
    fixed = {"ramp": 1, "positional": 2 * config.frequencies}
    return tuple(fixed.get(config.name, _labels(count, config)) for count in counts)


def check(config: CodeConfig):
    """Raises ConfigError for settings that contradict each other."""
    if config.missing == "off_canvas" and config.name == "ramp":
        raise ConfigError(
            "config.task.code.missing='off_canvas': adds units, of which the ramp has one alone; "
            "say 'off_grid', with the label in config.task.code.missing_coordinate"
        )


def bump_code(coordinate, count, config):
    """exp(-(i - c)^2 / (2 w sigma^2)) for i = 0..N-1: `width` w multiplies the variance."""
    return gaussian_profile(coordinate, count, config.width**0.5 * config.sigma)


def ramp_code(coordinate, count, config):
    """The coordinate itself, in cells or as a fraction of the grid (0 to 1)."""
    scale = 1.0 if config.scale == "pixels" else 1.0 / (count - 1)
    return scale * coordinate[None]


@jax.custom_jvp
def _nearest_cell(coordinate):
    return jnp.round(coordinate)


@_nearest_cell.defjvp
def _no_derivative(primals, tangents):
    raise ValueError(
        "config.task.code.name='onehot': a one-hot code is a step function and has no derivative "
        "in its factors; codes with one: bump, ramp, positional"
    )


def onehot_code(coordinate, count, config):
    """1 for the nearest cell, else 0 (all 0 off the grid). Differentiating it raises ValueError."""
    return (jnp.arange(count) == _nearest_cell(coordinate)).astype(jnp.float32)


def positional_code(coordinate, count, config):
    """[sin(w_k c); cos(w_k c)], k = 0..F-1, for geometric frequencies w_k.

    The paper names this code and gives no formula. Here the longest wavelength is 2N cells, so that
    no two coordinates share a code. The shortest is 4 cells, which turns the code of neighbouring
    cells by a quarter.
    """
    exponent_F = jnp.arange(config.frequencies) / (config.frequencies - 1)
    phase_F = coordinate * (jnp.pi / count) * (count / 2.0) ** exponent_F
    return jnp.concatenate([jnp.sin(phase_F), jnp.cos(phase_F)])


CODES = {
    "bump": bump_code,
    "ramp": ramp_code,
    "onehot": onehot_code,
    "positional": positional_code,
}
