"""Every lowering of the transposed convolution against its definition and Flax."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from compgen_jax.models.convolution import conv_transpose

# Largest error relative to the largest entry of the expected array. Float32 rounding alone gives
# up to 5e-7 here; the transforms of F(4x4, 3x3) amplify it: measured 3e-6 for values and input
# gradients, and 1.3e-5 for the kernel gradient of a larger layer, (32, 16, 16, 32) -> 32.
TOLERANCE = {"lax": 2e-6, "gemm": 2e-6, "winograd": 1e-5, "forward_winograd": 1e-5}

# Leading axes, H, W, I, O: even and odd sides, sides unequal, one output, few and many channels.
SHAPES = (
    ((2,), 8, 4, 9, 11),
    ((), 7, 5, 8, 10),
    ((3,), 5, 8, 16, 1),
    ((2,), 1, 2, 1, 5),
    ((2,), 6, 5, 5, 2),
)


def products(x, kernel, stride):
    """(pixel of x, pixel of y with a border, place in the kernel) of every product.

    Input pixel (h, w) adds to the window at (s h, s w) of y. Kernel and window run in opposite
    directions, as in `jax.lax.conv_transpose`, which correlates the dilated input with the kernel.
    """
    last = len(kernel) - 1
    for a, b, i, j in np.ndindex(*x.shape[-3:-1], *kernel.shape[:2]):
        row, column = stride * a + last - i, stride * b + last - j
        yield (..., a, b, slice(None)), (..., row, column, slice(None)), (i, j)


def directly(x, kernel, stride):
    """The definition in float64."""
    k, (*lead, h, w, _) = len(kernel), x.shape
    y = np.zeros((*lead, stride * h + k, stride * w + k, kernel.shape[-1]))
    for source, to, tap in products(x, kernel, stride):
        y[to] += x[source] @ kernel[tap]
    # 'SAME' crops one pixel at the top and left for both kernels
    return y[..., 1 : 1 + stride * h, 1 : 1 + stride * w, :]


def direct_gradients(x, kernel, gy, stride):
    gx, gkernel = np.zeros(x.shape), np.zeros(kernel.shape)
    lead, border = tuple(range(x.ndim - 3)), (1, len(kernel))
    gy = np.pad(gy, [(0, 0)] * len(lead) + [border, border, (0, 0)])
    for source, to, tap in products(x, kernel, stride):
        gx[source] += gy[to] @ kernel[tap].T
        gkernel[tap] += np.tensordot(x[source], gy[to], (lead, lead))
    return gx, gkernel


def problem(k, stride, lead=(2,), h=8, w=4, i=8, o=9):
    """x, kernel and an output gradient."""
    random = np.random.default_rng(h + 10 * k)
    shapes = (*lead, h, w, i), (k, k, i, o), (*lead, stride * h, stride * w, o)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def assert_near(actual, expected, tolerance):
    assert actual.shape == expected.shape
    scale = np.abs(expected).max()
    np.testing.assert_allclose(np.asarray(actual) / scale, expected / scale, rtol=0, atol=tolerance)


def value_and_gradients(lowering, stride):
    """(x, kernel, gy) -> y and the gradients, compiled."""

    @jax.jit
    def run(x, kernel, gy):
        y, pull = jax.vjp(partial(conv_transpose, stride=stride, lowering=lowering), x, kernel)
        return y, *pull(gy)

    return run


of_kernels = pytest.mark.parametrize("k, stride", ((3, 1), (4, 2)))


@pytest.mark.parametrize("lowering", TOLERANCE)
@of_kernels
@pytest.mark.parametrize("lead, h, w, i, o", SHAPES)
def test_value_and_gradients_are_those_of_the_definition(lowering, k, stride, lead, h, w, i, o):
    arrays = problem(k, stride, lead, h, w, i, o)
    x, kernel, gy = (array.astype(np.float64) for array in arrays)
    expected = directly(x, kernel, stride), *direct_gradients(x, kernel, gy, stride)
    for one, other in zip(value_and_gradients(lowering, stride)(*arrays), expected, strict=True):
        assert_near(one, other, TOLERANCE[lowering])
    if lowering == "winograd":
        with jax.enable_x64(True):
            in_float64 = value_and_gradients(lowering, stride)(x, kernel, gy)
        for one, other in zip(in_float64, expected, strict=True):
            assert one.dtype == np.float64
            assert_near(one, other, 1e-13)
    if lowering == "gemm" and x.ndim == 4:
        layer = nn.ConvTranspose(o, (k, k), (stride, stride), use_bias=False)
        flax = layer.apply({"params": {"kernel": arrays[1]}}, arrays[0])
        assert_near(flax, expected[0], TOLERANCE["lax"])


@pytest.mark.parametrize("lowering", ("lax", "forward_winograd"))
@of_kernels
@pytest.mark.parametrize("lead, h, w, i, o", SHAPES)
def test_tangents_are_those_of_a_linear_map(lowering, k, stride, lead, h, w, i, o):
    x, kernel, _ = problem(k, stride, lead, h, w, i, o)
    tangent = np.random.default_rng(1).standard_normal(x.shape).astype(np.float32)
    of_x = lambda x: conv_transpose(x, kernel, stride, lowering)
    found = jax.jit(lambda x, tangent: jax.jvp(of_x, (x,), (tangent,))[1])(x, tangent)
    expected = directly(tangent.astype(np.float64), kernel.astype(np.float64), stride)
    assert_near(found, expected, TOLERANCE[lowering])


@of_kernels
@pytest.mark.parametrize("channels", (2, 8))
def test_gradients_in_bfloat16_are_rounded_once_not_at_every_term(k, stride, channels):
    """A kernel's is a sum over 2048 pixels that do not cancel, as the arrays' mean is not 0."""
    arrays = problem(k, stride, lead=(32,), h=8, w=8, i=channels, o=channels)
    rounded = [(array + 0.5).astype(jnp.bfloat16) for array in arrays]
    expected = direct_gradients(*(np.asarray(array, np.float64) for array in rounded), stride)
    found = value_and_gradients("gemm", stride)(*rounded)[1:]
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.dtype == jnp.bfloat16
        error = np.linalg.norm(np.asarray(actual, np.float64) - wanted)
        assert error < 0.007 * np.linalg.norm(wanted)
