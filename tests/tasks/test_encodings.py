"""Codes against their definitions, and their derivatives."""

import math

import chex
import jax
import numpy as np
import pytest

from compgen_jax.tasks import encodings
from compgen_jax.tasks.encodings import CodeConfig

N = 12
NAMES = ("bump", "ramp", "onehot", "positional")


def encode(x, y, config):
    return np.asarray(jax.jit(lambda: encodings.encode([(x, N), (y, N)], config))())


def encode_one(coordinate, count, config):
    return np.asarray(jax.jit(lambda: encodings.encode_coordinate(coordinate, count, config))())


def by_hand(coordinate, config):
    """One coordinate's code from its definition, in float64."""
    if config.name == "bump":
        variance = config.width * config.sigma**2
        return [math.exp(-((i - coordinate) ** 2) / (2 * variance)) for i in range(N)]
    if config.name == "ramp":
        return [coordinate if config.scale == "pixels" else coordinate / (N - 1)]
    if config.name == "onehot":
        return [float(i == coordinate) for i in range(N)]
    count = config.frequencies
    phases = [coordinate * math.pi / N * (N / 2) ** (k / (count - 1)) for k in range(count)]
    return [math.sin(p) for p in phases] + [math.cos(p) for p in phases]


@pytest.mark.parametrize(
    "config",
    [
        CodeConfig(name="bump", sigma=1.3, width=5.0),
        CodeConfig(name="ramp"),
        CodeConfig(name="ramp", scale="unit"),
        CodeConfig(name="onehot"),
        CodeConfig(name="positional", frequencies=3),
    ],
)
def test_a_code_equals_its_definition(config):
    for x, y in ((0, 11), (7, 3)):
        code = encode(x, y, config)
        chex.assert_shape(code, (sum(encodings.part_lengths((N, N), config)),))
        expected = by_hand(x, config) + by_hand(y, config)
        np.testing.assert_allclose(code, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["bump", "ramp", "positional"])
def test_each_half_depends_on_its_own_factor_alone(name):
    config = CodeConfig(name=name)
    code = lambda point: encodings.encode([(c, N) for c in point], config)
    jacobian = np.asarray(jax.jit(jax.jacfwd(code))(np.float32([4.3, 7.9])))
    half = len(jacobian) // 2
    assert not jacobian[:half, 1].any() and not jacobian[half:, 0].any()
    assert jacobian[:half, 0].any() and jacobian[half:, 1].any()


def test_the_derivative_of_a_bump_code_has_its_closed_form():
    """g_xx = sum_i ((i - x) / sigma^2)^2 g_i(x)^2 for the bump code."""
    x, sigma = 5.3, 1.2
    config = CodeConfig(sigma=sigma)
    tangent = np.asarray(jax.jit(jax.jacfwd(
        lambda c: encodings.encode_coordinate(c, N, config)
    ))(x))  # fmt: skip
    expected = sum(
        ((i - x) / sigma**2) ** 2 * math.exp(-((i - x) ** 2) / sigma**2) for i in range(N)
    )
    assert np.sum(tangent**2) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("differentiate", [jax.jacfwd, jax.grad])
def test_a_one_hot_code_refuses_to_be_differentiated(differentiate):
    config = CodeConfig(name="onehot")
    with pytest.raises(ValueError, match="one-hot code is a step function and has no derivative"):
        differentiate(lambda c: encodings.encode_coordinate(c, N, config).sum())(3.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_factor_has_a_code_of_its_own(name):
    present = encode_one(4, N, CodeConfig(name=name))
    zero = encode(4, None, CodeConfig(name=name))
    np.testing.assert_array_equal(zero, np.concatenate([present, 0 * present]))
    config = CodeConfig(name=name, missing="off_grid", missing_coordinate=-2.0)
    expected = encode_one(-2.0, N, config)
    np.testing.assert_array_equal(encode(None, 4, config), np.concatenate([expected, present]))
    if name == "onehot":
        assert not expected.any()


@pytest.mark.parametrize("name", ["bump", "onehot", "positional"])
def test_a_missing_factors_label_lies_off_the_canvas(name):
    """The code is that of 12 more cells, the seventh of them for a missing factor."""
    config = CodeConfig(name=name, missing="off_canvas")
    wide = lambda c: encode_one(c, N + 12, CodeConfig(name=name))
    expected = np.concatenate([wide(4.0), wide(N + 6.0)])
    assert encodings.part_lengths((N, N), config) == (len(expected) // 2,) * 2
    np.testing.assert_array_equal(encode(4.0, None, config), expected)
    absent = encode_one(None, N, config)
    if name == "positional":
        code = lambda c: encodings.encode_coordinate(c, N, config)
        cells = np.asarray(jax.jit(jax.vmap(code))(np.arange(N)))
        assert np.abs(cells - absent[None]).sum(axis=1).min() > 0.1
    else:
        assert absent.argmax() == N + 6 and absent.max() == 1 and absent[:N].max() < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_no_two_cells_share_a_code(name):
    code = lambda c: encodings.encode_coordinate(c, 28, CodeConfig(name=name))
    codes = np.asarray(jax.jit(jax.vmap(code))(np.arange(28.0)))
    distance = np.abs(codes[:, None] - codes[None]).sum(axis=-1) + np.eye(28)
    assert distance.min() > 0.1


def test_factors_of_other_sizes_have_codes_of_their_own_length():
    coordinates = [(3.0, 12), (1.0, 5), (None, 7)]
    for name, parts in (("bump", (12, 5, 7)), ("ramp", (1, 1, 1)), ("positional", (16, 16, 16))):
        config = CodeConfig(name=name)
        assert encodings.part_lengths([count for _, count in coordinates], config) == parts
        expected = [encode_one(c, count, config) for c, count in coordinates]
        assert [len(part) for part in expected] == list(parts)
        found = jax.jit(lambda config=config: encodings.encode(coordinates, config))()
        np.testing.assert_array_equal(found, np.concatenate(expected))
