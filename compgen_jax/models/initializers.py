"""Layers of the calling module, with initial weights by one of these laws:

'torch'   U(-b, b), b = 1/sqrt(fan_in), PyTorch's default. For a transposed convolution its fan_in
          is OUTPUT channels times kernel area: PyTorch stores that kernel as (in, out, k, k).
'fan_in', 'fan_out'
          kernels from a normal of variance 2/fan (He et al. 2015), with Flax's fans; biases 0.
"""

import math
from collections.abc import Callable

import jax
from flax import linen as nn


def initializers(law: str, fan_in: int) -> tuple[Callable, Callable]:
    """(key, shape, dtype) -> array: of the kernel and of the bias of a layer that reads `fan_in`
    numbers."""
    if law != "torch":
        return nn.initializers.variance_scaling(2.0, law, "normal"), nn.initializers.zeros_init()
    bound = 1 / math.sqrt(fan_in)

    def uniform(key, shape, dtype=jax.numpy.float32):
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return uniform, uniform


def kernel_and_bias(module: nn.Module, shape, fan_in: int, law: str = "torch"):
    """A layer's parameters, float32 whatever `jax_enable_x64` says, as Flax's layers have them:
    kernel (..., O) of this shape and bias (O,)."""
    kernel_init, bias_init = initializers(law, fan_in)
    kernel = module.param("kernel", kernel_init, shape, jax.numpy.float32)
    return kernel, module.param("bias", bias_init, shape[-1:], jax.numpy.float32)


def add_bias(x, bias):
    return x + bias.reshape((1,) * (x.ndim - 1) + (-1,))


def dense(features: int, name: str, x, law: str = "torch", bias_init: Callable | None = None):
    """A linear layer, applied to x; `bias_init` replaces the law's."""
    kernel_init, of_law = initializers(law, x.shape[-1])
    layer = nn.Dense(features, kernel_init=kernel_init, bias_init=bias_init or of_law, name=name)
    return layer(x)


def prelu(index: int, x):
    return nn.PReLU(negative_slope_init=0.25, name=f"prelu_{index}")(x)
