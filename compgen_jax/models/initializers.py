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
from typing import NamedTuple

import jax
from flax import linen as nn


class Initializers(NamedTuple):
    kernel: Callable  # (key, shape, dtype) -> array
    bias: Callable


def for_conv_transpose(name: str, kernel_shape) -> Initializers:
    """For a transposed convolution with Flax's `kernel_shape` (k, k, in, out). PyTorch calls
    `fan_out` what is here 'kaiming_fan_in'."""
    height, width, _, outputs = kernel_shape
    return for_dense(name, outputs * height * width)


def for_dense(name: str, fan_in: int) -> Initializers:
    """For a layer that reads `fan_in` numbers."""
    if name == "torch":
        bound = 1 / math.sqrt(fan_in)

        def uniform(key, shape, dtype=jax.numpy.float32):
            return jax.random.uniform(key, shape, dtype, -bound, bound)

        return Initializers(uniform, uniform)
    kernel = nn.initializers.lecun_normal()
    if name.startswith("kaiming"):
        kernel = nn.initializers.variance_scaling(2.0, name.removeprefix("kaiming_"), "normal")
    return Initializers(kernel, nn.initializers.zeros_init())
