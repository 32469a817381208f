"""Initial weights. The paper's numbers come from PyTorch's defaults, which Flax's differ from.

PyTorch draws a layer's kernel and bias from U(-b, b) with b = 1/sqrt(fan_in). For a linear
layer fan_in is the number of inputs, but for a transposed convolution it is OUTPUT channels
times kernel area, because PyTorch stores that kernel as (in, out, k, k). Flax draws kernels
from a truncated normal of variance 1/fan_in, fan_in = input channels times kernel area, and
sets biases to zero.

The authors' rotation network has the law of He et al. (2015), a normal of variance 2/fan with
biases of zero: 'kaiming_fan_in' or 'kaiming_fan_out', where fans are those of Flax's kernels.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
from flax import linen as nn


class Initializers(NamedTuple):
    kernel: Callable  # (key, shape, dtype) -> array
    bias: Callable


def _uniform(bound: float):
    def init(key, shape, dtype=jax.numpy.float32):
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return init


def _kaiming(name: str) -> Initializers:
    fan = name.removeprefix("kaiming_")
    kernel = nn.initializers.variance_scaling(2.0, fan, "normal")
    return Initializers(kernel, nn.initializers.zeros_init())


def for_conv_transpose(name: str, kernel_shape) -> Initializers:
    """`kernel_shape` is Flax's (k, k, in, out); `name` is 'torch', 'flax', 'kaiming_fan_in' or
    'kaiming_fan_out'. Of a transposed convolution PyTorch calls the first fan `fan_out`."""
    if name.startswith("kaiming"):
        return _kaiming(name)
    if name == "flax":
        return Initializers(nn.initializers.lecun_normal(), nn.initializers.zeros_init())
    height, width, _, outputs = kernel_shape
    bound = 1 / math.sqrt(outputs * height * width)
    return Initializers(_uniform(bound), _uniform(bound))


def for_dense(name: str, inputs: int) -> Initializers:
    """Of a layer that reads so many numbers; `name` as in `for_conv_transpose`."""
    if name.startswith("kaiming"):
        return _kaiming(name)
    if name == "flax":
        return Initializers(nn.initializers.lecun_normal(), nn.initializers.zeros_init())
    bound = 1 / math.sqrt(inputs)
    return Initializers(_uniform(bound), _uniform(bound))
