"""The paper's decoder of low-rank embeddings and their penalty (section 4.1, Eq 8 to 11; appendix
C, Eq 44 to 48), for any number of factors.

Shape letters: H and W sides of the image, F factors, V tokens of a factor, K terms.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.conv import ConvTranspose
from compgen_jax.models.initializers import prelu
from compgen_jax.models.model import Model, Shapes, name_layers, split
from compgen_jax.models.per_factor import parts_of_factors
from compgen_jax.settings import number, require

SHORTEST = 1e-12  # a vector shorter than this is not stretched to unit length
SMALLEST_SHARE = 1e-8  # of a token's energy: the logarithm is cut off below it, as the authors do

# along which axes of an embedding its variance is penalised, as fields of `Factor`
AXES = {
    "both": ("raw_left", "raw_right"),
    "rows": ("raw_left",),
    "columns": ("raw_right",),
    "none": (),
}


class Factor(NamedTuple):
    """The terms of the embeddings of one factor's tokens: E[t] = sum_k values l_k r_k^T."""

    values: jax.Array  # (V, K) weights of either sign
    left: jax.Array  # (V, K, H) l_k, along the rows (y) of the image, as the decoder uses them
    right: jax.Array  # (V, K, W) r_k, along its columns (x)
    raw_left: jax.Array  # (V, K, H) the parameters that `left` and `right` come from
    raw_right: jax.Array


def unit(vectors):
    """Each vector of (..., N) divided by its length."""
    squares = jnp.sum(jnp.square(vectors), axis=-1, keepdims=True)
    return vectors * jax.lax.rsqrt(jnp.maximum(squares, SHORTEST**2))


def embeddings(params) -> tuple[Factor, ...]:
    """The terms of a `LowRankDecoder`'s embeddings, factor by factor, from its variables."""
    count = sum(name.startswith("embed_") for name in params["params"])
    factors = []
    for name in embedding_names(count):
        values, left, right = (params["params"][name][key] for key in ("values", "left", "right"))
        factors.append(Factor(values, unit(left), unit(right), left, right))
    return tuple(factors)


def embedding_names(factors: int) -> tuple[str, ...]:
    """The names of the factors' parameters; two factors have those of the paper."""
    if factors == 2:
        return "embed_x", "embed_y"
    return tuple(f"embed_{index}" for index in range(factors))


# --- the penalty -----------------------------------------------------------------------------


@dataclass(frozen=True)
class PenaltyConfig:
    """The penalty that is added to the loss (paper Eq 10, 11).

    `entropy` and `variance` are the coefficients of two terms, summed over tokens. The variance is
    that of the raw vectors, as in the authors' code.

    `axes` says along which axes of the image a factor's embeddings should be constant: 'both' (the
    paper), 'rows', 'columns' or 'none'. It has pairs of a factor and its axes, and a factor is
    named by its index in the task, from 0. A factor without a pair has 'both'. ((3, 'rows'), (4,
    'columns')) is right for dSprites, whose factors 3 and 4 are posX and posY.
    """

    entropy: float = number(0.0, low=0, high=1e6, traced=True)
    variance: float = number(0.0, low=0, high=1e6, traced=True)
    axes: tuple = ()


def entropy(values_VxK):
    """(V,) entropy in nats of every token's energy, lambda_k^2, over its terms (paper Eq 9, 10,
    45)."""
    energy_VxK = jnp.square(values_VxK)
    total_Vx1 = jnp.sum(energy_VxK, axis=1, keepdims=True)
    shares_VxK = energy_VxK / jnp.where(total_Vx1 > 0, total_Vx1, 1.0)
    return -jnp.sum(shares_VxK * jnp.log(jnp.maximum(shares_VxK, SMALLEST_SHARE)), axis=1)


def variance(vectors_VxKxH):
    """(V,) unbiased variance of each vector's entries, summed over a token's terms (paper Eq 11,
    46)."""
    return jnp.sum(jnp.var(vectors_VxKxH, axis=2, ddof=1), axis=1)


def embedding_penalty(factors, entropy_weight, variance_weight, axes=()):
    """The weighted penalty of the embeddings of all `factors` (`Factor`); a scalar."""
    axes, total = dict(axes), 0
    for index, factor in enumerate(factors):
        penalty = entropy_weight * jnp.sum(entropy(factor.values))
        sides = AXES[axes.get(index, "both")]
        spread = sum(variance(getattr(factor, side)) for side in sides)
        total += penalty + variance_weight * jnp.sum(spread)
    return total


# --- the decoder -----------------------------------------------------------------------------


@dataclass(frozen=True)
class LowRank(Model):
    """`LowRankDecoder`: `width` channels and `depth` hidden layers. An embedding matrix has at most
    `rank` terms (0 means the shorter side of the image), whose vectors have unit length, as in the
    authors' code. `dilations`, unless empty, has a number for each hidden layer: the pixels from
    one tap of its kernel to the next. An output pixel reads 3 + 2 (sum of dilations) pixels of the
    embeddings: 7 in the paper; with 1, 2, 4 and 4, 25."""

    depth: int = number(4, low=1, high=10)
    width: int = number(64, low=1)
    rank: int = number(0, low=0, high=128)
    penalty: PenaltyConfig = PenaltyConfig()
    dilations: tuple = ()

    convolutional: ClassVar[bool] = True
    batched: ClassVar[bool] = True

    def check(self, config):
        super().check(config)
        code = getattr(config.task, "code", None)
        hint = "must be 'onehot' for lowrank, which has an embedding for each value of a factor"
        require(code is None or code.name == "onehot", "task.code.name", code and code.name, hint)
        codes = getattr(code, "of", ())
        onehot = all(isinstance(pair, tuple) and pair[1:] == ("onehot",) for pair in codes)
        require(onehot, "task.code.of", codes, hint)
        axes, dilations = self.penalty.axes, self.dilations
        hint = f"must be pairs of a factor's index, from 0, and one of {', '.join(AXES)}"
        for pair in axes:
            is_pair = isinstance(pair, tuple) and len(pair) == 2 and type(pair[0]) is int
            require(is_pair and pair[1] in AXES, "model.penalty.axes", axes, hint)
        require(len(dict(axes)) == len(axes), "model.penalty.axes", axes, "names a factor twice")
        positive = all(type(dilation) is int and dilation > 0 for dilation in dilations)
        hint = f"must be a positive integer for each of the {self.depth} hidden layers"
        fits = positive and len(dilations) in (0, self.depth)
        require(fits, "model.dilations", dilations, hint)

    def make(self, shapes: Shapes) -> nn.Module:
        length, parts = self.code_length(shapes), shapes.parts
        if parts:
            shape = self.image_shape(shapes)
            parts = parts_of_factors(self, shapes)
        else:
            grid = self.image_side(shapes)
            shape = parts = grid, grid
            hint = (
                f"embeds two factors with a value for each of {grid} pixels, so that its input has "
                f"{2 * grid} numbers, not {length}"
            )
            require(length == 2 * grid, "model.name", self.name, hint)
        height, width = shape[:2]
        hint = f"must be at most the grid's side, {min(height, width)}"
        require(self.rank <= min(height, width), "model.rank", self.rank, hint)
        dilations = self.dilations or (1,) * self.depth
        multiple = math.lcm(*dilations)
        hint = f"both sides of the image, {height} x {width}, must be multiples of each"
        fits = height % multiple == width % multiple == 0
        require(fits, "model.dilations", self.dilations, hint)
        axes, last = self.penalty.axes, len(parts) - 1
        fits = all(0 <= index <= last for index, _ in axes)
        require(fits, "model.penalty.axes", axes, f"factors have the indices 0 to {last}")
        return LowRankDecoder(shape, parts, dilations, self, shapes.lowering)

    def extra_loss(self, params, hyper):
        weights = hyper["penalty.entropy"], hyper["penalty.variance"]
        return embedding_penalty(embeddings(params), *weights, self.penalty.axes)


class Embedding(nn.Module):
    """The embedding matrices of one factor's tokens; see `LowRankDecoder`."""

    rows: int
    columns: int
    terms: int

    @nn.compact
    def __call__(self, code):
        """(..., V) one-hot -> (..., H, W), indexed [y, x]. Zeros, a missing factor, give zeros."""
        shape = code.shape[-1], self.terms
        on_sphere = lambda key, shape: unit(jax.random.normal(key, shape))
        values = self.param("values", nn.initializers.normal(self.terms**-0.5), shape)
        left = unit(self.param("left", on_sphere, (*shape, self.rows)))
        right = unit(self.param("right", on_sphere, (*shape, self.columns)))
        # the code picks its token's terms, so that no other token's matrix is formed
        values, left, right = (jnp.tensordot(code, x, axes=1) for x in (values, left, right))
        return jnp.einsum("...k,...kh,...kw->...hw", values, left, right)


def dilated(layer, x, dilation: int):
    """A layer of stride 1, its taps `dilation` pixels apart: every dilation-th row and column of x
    (..., H, W, I) is an image of its own."""
    if dilation == 1:
        return layer(x)
    *lead, height, width, channels = x.shape
    x = x.reshape(*lead, height // dilation, dilation, width // dilation, dilation, channels)
    y = jnp.moveaxis(layer(jnp.moveaxis(x, (-4, -2), (0, 1))), (0, 1), (-4, -2))
    return y.reshape(*lead, height, width, -1)


class LowRankDecoder(nn.Module):
    """One-hot codes of F factors -> image through embeddings of low rank (Eq 8, 9).

    Vectors are scaled to unit length at each use, so they are not orthogonal, and the values are
    not singular values as in the text. Attributes: shape, (H, W) or (H, W, C) of the image; parts,
    V of each factor; dilations.
    """

    shape: tuple
    parts: tuple
    dilations: tuple
    settings: LowRank
    lowering: str

    @nn.compact
    def __call__(self, code):
        """(..., sum of V) -> image (..., *shape) and the activations by layer name, code first."""
        how = self.settings
        convolution = partial(ConvTranspose, kernel_size=3, stride=1, lowering=self.lowering)
        sizes = *self.shape[:2], how.rank or min(self.shape[:2])
        of_factors = zip(embedding_names(len(self.parts)), split(code, self.parts), strict=True)
        embedded = [Embedding(*sizes, name=name)(part) for name, part in of_factors]
        layers = [code, jnp.stack(embedded, axis=-1)]
        x = prelu(0, layers[1])
        for index, dilation in enumerate(self.dilations, start=1):
            hidden = convolution(how.width, name=f"hidden_{index}")
            x = prelu(index, dilated(hidden, x, dilation))
            layers.append(x)
        image = convolution((*self.shape, 1)[2], name="image")(x)
        return image.reshape(*code.shape[:-1], *self.shape), name_layers(layers)
