"""What decoders are built from: layers with their initial weights, and a pixel's place.

Initial weights follow one of these laws:

'torch'   U(-b, b), b = 1/sqrt(fan_in), PyTorch's default. For a transposed convolution its fan_in
          is OUTPUT channels times kernel area: PyTorch stores that kernel as (in, out, k, k).
'fan_in', 'fan_out'
          kernels from a normal of variance 2/fan (He et al. 2015), with Flax's fans; biases 0.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from compgen_jax.models.convolution import conv_transpose

LONGEST = 10_000.0  # the sinusoids' wavelengths are from 2 pi to nearly 2 pi times this, in pixels


def initializers(law, fan_in):
    """Of the kernel and of the bias of a layer that reads `fan_in` numbers."""
    if law != "torch":
        return nn.initializers.variance_scaling(2.0, law, "normal"), nn.initializers.zeros_init()
    bound = 1 / math.sqrt(fan_in)

    uniform = partial(jax.random.uniform, minval=-bound, maxval=bound)
    return uniform, uniform


def kernel_and_bias(module, shape, fan_in, law="torch"):
    """A layer's kernel (..., O) and bias (O,), float32 whatever `jax_enable_x64` says."""
    kernel_init, bias_init = initializers(law, fan_in)
    kernel = module.param("kernel", kernel_init, shape, jnp.float32)
    return kernel, module.param("bias", bias_init, shape[-1:], jnp.float32)


def add_bias(x, bias):
    return x + bias.reshape((1,) * (x.ndim - 1) + (-1,))


def dense(features, name, x, law="torch", bias_init=None):
    """A linear layer, applied to x; `bias_init` replaces the law's."""
    kernel_init, of_law = initializers(law, x.shape[-1])
    layer = nn.Dense(features, kernel_init=kernel_init, bias_init=bias_init or of_law, name=name)
    return layer(x)


def prelu(index, x):
    return nn.PReLU(negative_slope_init=0.25, name=f"prelu_{index}")(x)


class ConvTranspose(nn.Module):
    """`nn.ConvTranspose` with SAME padding, by a `lowering`."""

    features: int
    kernel_size: int
    stride: int
    lowering: str
    law: str = "torch"

    @nn.compact
    def __call__(self, x):
        shape = (self.kernel_size, self.kernel_size, x.shape[-1], self.features)
        kernel, bias = kernel_and_bias(self, shape, self.features * self.kernel_size**2, self.law)
        return add_bias(conv_transpose(x, kernel, self.stride, self.lowering), bias)


class HalvingConv(nn.Module):
    """`nn.Conv` of kernel 3, stride 2 and padding 1, as one matrix product of windows."""

    features: int

    @nn.compact
    def __call__(self, x):
        shape = (3, 3, x.shape[-1], self.features)
        kernel, bias = kernel_and_bias(self, shape, math.prod(shape[:-1]))
        # what the taps of every output pixel read, tap by tap: (..., H', W', 9 I)
        height, width = x.shape[-3:-1]
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)])
        taps = np.ndindex(3, 3)
        windows = [x[..., row : row + height : 2, col : col + width : 2, :] for row, col in taps]
        windows = jnp.concatenate(windows, axis=-1)
        return add_bias(jnp.tensordot(windows, kernel.reshape(-1, self.features), axes=1), bias)


def position_code(grid: int, width: int) -> np.ndarray:
    """(N, N, width), indexed [y, x]: [sin(w_i x); cos(w_i x); sin(w_i y); cos(w_i y)], w_i =
    10000^(-4 i / width) (Vaswani et al. 2017, for each axis)."""
    frequencies = LONGEST ** (-np.arange(width // 4) / (width // 4))
    phases = np.arange(grid)[:, None] * frequencies
    axis = np.concatenate([np.sin(phases), np.cos(phases)], axis=-1)
    shape = (grid, grid, width // 2)
    along = [np.broadcast_to(values, shape) for values in (axis, axis[:, None])]
    return np.concatenate(along, axis=-1).astype(np.float32)
