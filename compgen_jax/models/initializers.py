"""Initial weights. The paper's numbers come from PyTorch's defaults, which differ from Flax's.

'torch'   kernel and bias from U(-b, b), b = 1/sqrt(fan_in). For a linear layer fan_in is the number
          of inputs. For a transposed convolution it is OUTPUT channels times kernel area, because
          PyTorch stores that kernel as (in, out, k, k).
'flax'    kernels from a truncated normal of variance 1/fan_in, where fan_in is input channels times
          kernel area; biases are zero.
'kaiming_fan_in', 'kaiming_fan_out'
          kernels from a normal of variance 2/fan (He et al. 2015), where fans are those of Flax's
          kernels; biases are zero. The authors' rotation network has these.
"""

import math
from collections.abc import Callable

import jax
from flax import linen as nn


def kernel_and_bias(module: nn.Module, shape, fan_in: int):
    """A layer's parameters, float32 whatever `jax_enable_x64` says, as Flax's layers have them:
    kernel (..., O) of this shape and bias (O,), with the initial weights that its `initial_weights`
    names."""
    of_kernel, of_bias = for_dense(module.initial_weights, fan_in)
    kernel = module.param("kernel", of_kernel, shape, jax.numpy.float32)
    return kernel, module.param("bias", of_bias, shape[-1:], jax.numpy.float32)


def add_bias(x, bias):
    return x + bias.reshape((1,) * (x.ndim - 1) + (-1,))


def for_dense(name: str, fan_in: int) -> tuple[Callable, Callable]:
    """(key, shape, dtype) -> array: of the kernel and of the bias of a layer that reads `fan_in`
    numbers."""
    if name == "torch":
        bound = 1 / math.sqrt(fan_in)

        def uniform(key, shape, dtype=jax.numpy.float32):
            return jax.random.uniform(key, shape, dtype, -bound, bound)

        return uniform, uniform
    kernel = nn.initializers.lecun_normal()
    if name.startswith("kaiming"):
        kernel = nn.initializers.variance_scaling(2.0, name.removeprefix("kaiming_"), "normal")
    return kernel, nn.initializers.zeros_init()
