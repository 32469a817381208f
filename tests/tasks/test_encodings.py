"""Codes against their definitions, and their derivatives."""

import math
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from compgen_jax.tasks import encodings
from compgen_jax.tasks.encodings import CodeConfig, CodesConfig
from compgen_jax.tasks.task import Factor

N = 12
FACTORS = (
    Factor("shape", np.array([1.0, 2.0]), real=False, labels=("narrow", "wide")),
    Factor("x", np.arange(6.0)),
    Factor("angle", np.arange(4) * np.pi / 2, period=2 * math.pi),
)


def encode(config, *coordinates):
    return jax.jit(lambda: encodings.encode(coordinates, (N, N), config))()


def of_factors(point, **config):
    codes = encodings.codes_of_factors(FACTORS, CodesConfig(**config))
    return np.asarray(jax.jit(lambda point: encodings.joined(point, codes))(np.float32(point)))


def by_hand(coordinate, config, count=N):
    """One coordinate's code from its definition, in float64."""
    if config.name == "bump":
        variance = config.width * config.sigma**2
        return [math.exp(-((i - coordinate) ** 2) / (2 * variance)) for i in range(count)]
    if config.name == "ramp":
        return [coordinate]
    if config.name == "onehot":
        return [float(i == round(coordinate)) for i in range(count)]
    growth = (count / 2) ** (1 / 7)
    phases = [coordinate * math.pi / count * growth**k for k in range(8)]
    return [math.sin(p) for p in phases] + [math.cos(p) for p in phases]


@pytest.mark.parametrize(
    "config", [CodeConfig("bump", 1.3, 5.0), *map(CodeConfig, ("ramp", "onehot", "positional"))]
)
def test_a_code_equals_its_definition(config):
    """A missing factor's is zero, or that of a label off the grid."""
    of, off_grid = partial(by_hand, config=config), replace(config, missing="off_grid")
    codes = [
        (encode(config, 0, 11), of(0) + of(11)),
        (encode(config, 7.25, 3), of(7.25) + of(3)),
        (encode(config, 4, None), of(4) + [0] * len(of(4))),
        (encode(off_grid, np.nan, 4), of(-1) + of(4)),
    ]
    if config.name != "ramp":  # 12 more cells, the seventh of them for a missing factor
        off_canvas = replace(config, missing="off_canvas")
        expected = of(4, count=N + 12) + of(N + 6, count=N + 12)
        codes.append((encode(off_canvas, 4.0, None), expected))
    for found, expected in codes:
        assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


# --- of any factors --------------------------------------------------------------------------


def test_codes_of_factors_by_kind():
    point = [2.0, 1.5, math.pi / 4]
    assert_allclose(of_factors(point, name="value"), point, rtol=1e-6)
    # the label; six places; quarter turns away from 45 degrees
    apart = np.array([np.inf, 0, 1.5, 0.5, 0.5, 1.5, 2.5, 3.5, 0.5, 0.5, 1.5, 1.5])
    assert_allclose(of_factors(point, sigma=0.7), np.exp(-(apart**2) / 0.98), rtol=1e-5)
    for x in (-1.5, 6.5):  # beyond the values
        expected = np.exp(-((np.arange(6) - x) ** 2) / 2)
        assert_allclose(of_factors([2.0, x, 0.0])[2:8], expected, rtol=1e-5)
    mixed = {"name": "onehot", "of": (("angle", "circle"), ("shape", "value"))}
    found = of_factors([2, 4, math.pi / 4], **mixed)
    assert_allclose(found, [2, 0, 0, 0, 0, 1, 0, 0.5**0.5, 0.5**0.5], atol=1e-6)


@pytest.mark.parametrize(("missing", "units"), [("zero", [[], [], []]), ("mask", [[1], [0], [1]])])
def test_codes_of_missing_factors(missing, units):
    bump = np.exp(-((np.arange(6) - 3.0) ** 2) / 2)
    parts = [[*code, *unit] for code, unit in zip([2 * [0], bump, 4 * [0]], units, strict=True)]
    found = of_factors([np.nan, 3, np.nan], missing=missing)
    assert_allclose(found, np.concatenate(parts), rtol=1e-5)
    codes = encodings.codes_of_factors(FACTORS, CodesConfig(missing=missing))
    assert encodings.lengths(codes) == tuple(map(len, parts))
