"""Every lowering of the transposed convolution against its definition and Flax."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from compgen_jax.models.convolution import KERNEL_STRIDES, LOWERINGS, conv_transpose

# Largest error relative to the largest entry of the expected array. Float32 rounding alone gives
# up to 5e-7 here; the transforms of F(4x4, 3x3) amplify it: measured 3e-6 for values and input
# gradients, and 1.3e-5 for the kernel gradient of a larger layer, (32, 16, 16, 32) -> 32.
TOLERANCE = {"lax": 2e-6, "gemm": 2e-6, "winograd": 1e-5}

# Leading axes, H, W, I, O: even and odd sides, sides unequal, one output, few and many channels.
SHAPES = (
    ((2,), 8, 4, 9, 11),
    ((), 7, 5, 8, 10),
    ((3,), 5, 8, 16, 1),
    ((2,), 1, 2, 1, 5),
    ((2,), 6, 5, 5, 2),
)


def directly(x, kernel, stride):
    """The definition in float64: input pixel (h, w) adds to the window at (s h, s w) of y.

    Kernel and window run in opposite directions, as in `jax.lax.conv_transpose`, which correlates
    the dilated input with the kernel.
    """
    k = kernel.shape[0]
    lead, (h, w, _) = x.shape[:-3], x.shape[-3:]
    y = np.zeros((*lead, stride * h + k, stride * w + k, kernel.shape[-1]))
    for a, b, i, j in product(range(h), range(w), range(k), range(k)):
        row, column = stride * a + k - 1 - i, stride * b + k - 1 - j
        y[..., row, column, :] += x[..., a, b, :] @ kernel[i, j]
    top = 1  # 'SAME' crops one pixel at the top and left for both kernels
    return y[..., top : top + stride * h, top : top + stride * w, :]


def direct_gradients(x, kernel, gy, stride):
    k = kernel.shape[0]
    gx, gkernel = np.zeros(x.shape), np.zeros(kernel.shape)
    lead = tuple(range(x.ndim - 3))
    h, w = x.shape[-3:-1]
    gy = np.pad(gy, [(0, 0)] * len(lead) + [(1, k), (1, k), (0, 0)])
    for a, b, i, j in product(range(h), range(w), range(k), range(k)):
        gy_pixel = gy[..., stride * a + k - 1 - i, stride * b + k - 1 - j, :]
        gx[..., a, b, :] += gy_pixel @ kernel[i, j].T
        gkernel[i, j] += np.tensordot(x[..., a, b, :], gy_pixel, (lead, lead))
    return gx, gkernel


def draw(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def problem(k, stride, lead=(2,), h=8, w=4, i=8, o=9):
    """x, kernel and an output gradient."""
    return draw(h + 10 * k, (*lead, h, w, i), (k, k, i, o), (*lead, stride * h, stride * w, o))


def assert_near(actual, expected, tolerance):
    assert actual.shape == expected.shape
    scale = np.abs(expected).max()
    np.testing.assert_allclose(np.asarray(actual) / scale, expected / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("k, stride", KERNEL_STRIDES)
@pytest.mark.parametrize("lead, h, w, i, o", SHAPES)
def test_value_and_gradients_are_those_of_the_definition(lowering, k, stride, lead, h, w, i, o):
    x, kernel, gy = problem(k, stride, lead, h, w, i, o)

    @jax.jit
    def value_and_gradients(x, kernel, gy):
        y, pull = jax.vjp(
            lambda x, kernel: conv_transpose(x, kernel, stride=stride, lowering=lowering), x, kernel
        )
        return y, *pull(gy)

    wide = [a.astype(np.float64) for a in (x, kernel, gy)]
    expected = (directly(*wide[:2], stride), *direct_gradients(*wide, stride))
    for one, other in zip(value_and_gradients(x, kernel, gy), expected, strict=True):
        assert_near(one, other, TOLERANCE[lowering])
    if lowering == "gemm" and x.ndim == 4:
        layer = nn.ConvTranspose(o, (k, k), (stride, stride), use_bias=False)
        flax = layer.apply({"params": {"kernel": kernel}}, x)
        assert_near(flax, expected[0], TOLERANCE["lax"])


@pytest.mark.parametrize("k, stride", KERNEL_STRIDES)
@pytest.mark.parametrize("i, o", ((8, 9), (9, 1), (2, 2)))
@pytest.mark.parametrize("dtype, tolerance", ((np.float32, 1e-5), (np.float64, 1e-13)))
def test_winograd_of_float32_and_of_float64_under_x64(k, stride, i, o, dtype, tolerance):
    with jax.enable_x64(True):
        arrays = [array.astype(dtype) for array in problem(k, stride, i=i, o=o)]

        @partial(jax.jit, static_argnums=0)
        def value_and_gradients(lowering, x, kernel, gy):
            convolve = partial(conv_transpose, stride=stride, lowering=lowering)
            y, pull = jax.vjp(convolve, x, kernel)
            return y, *pull(gy)

        of_both = (value_and_gradients(lowering, *arrays) for lowering in ("winograd", "lax"))
        for actual, expected in zip(*of_both, strict=True):
            assert actual.dtype == dtype
            assert_near(actual, np.asarray(expected), tolerance)


@pytest.mark.parametrize("lowering", ("lax", "gemm"))
@pytest.mark.parametrize("k, stride", KERNEL_STRIDES)
def test_forward_mode_is_the_transpose_of_reverse_mode(lowering, k, stride):
    x, kernel, gy = problem(k, stride)
    dx, dkernel = draw(1, x.shape, kernel.shape)

    def convolve(x, kernel):
        return conv_transpose(x, kernel, stride=stride, lowering=lowering)

    _, dy = jax.jit(lambda *given: jax.jvp(convolve, (x, kernel), given))(dx, dkernel)
    gx, gkernel = jax.jit(lambda gy: jax.vjp(convolve, x, kernel)[1](gy))(gy)
    forward, reverse = np.vdot(dy, gy), np.vdot(gx, dx) + np.vdot(gkernel, dkernel)
    scale = np.linalg.norm(dy) * np.linalg.norm(gy)
    assert abs(forward - reverse) < 1e-5 * scale


@pytest.mark.parametrize("k, stride", KERNEL_STRIDES)
@pytest.mark.parametrize("channels", (2, 8))
def test_gradients_in_bfloat16_are_rounded_once_not_at_every_term(k, stride, channels):
    """A kernel's is a sum over 2048 pixels that do not cancel, as the arrays' mean is not 0."""
    arrays = problem(k, stride, lead=(32,), h=8, w=8, i=channels, o=channels)
    rounded = [(array + 0.5).astype(jnp.bfloat16) for array in arrays]

    @jax.jit
    def gradients(x, kernel, gy):
        convolve = lambda x, kernel: conv_transpose(x, kernel, stride=stride, lowering="gemm")
        return jax.vjp(convolve, x, kernel)[1](gy)

    expected = direct_gradients(*(np.asarray(array, np.float64) for array in rounded), stride)
    for actual, wanted in zip(gradients(*rounded), expected, strict=True):
        assert actual.dtype == jnp.bfloat16
        error = np.linalg.norm(np.asarray(actual, np.float64) - wanted)
        assert error < 0.007 * np.linalg.norm(wanted)
