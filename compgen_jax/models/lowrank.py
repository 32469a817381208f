"""The paper's decoder of low-rank embeddings and their penalty (section 4.1, Eq 8 to 11; appendix
C, Eq 44 to 48).

Shape letters: H and W sides of the image, F factors, V tokens of a factor, K terms.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.blocks import ConvTranspose, prelu
from compgen_jax.models.model import Model, name_layers, split
from compgen_jax.settings import number, require

SHORTEST = 1e-12  # a vector shorter than this is not stretched to unit length
SMALLEST_SHARE = 1e-8  # of a token's energy: the logarithm is cut off below it, as the authors do

# along which axes of an embedding its variance is penalised
AXES = {"both": ("left", "right"), "rows": ("left",), "columns": ("right",), "none": ()}


class Factor(NamedTuple):
    """The terms of the embeddings of one factor's tokens: E[t] = sum_k values l_k r_k^T."""

    values: jax.Array  # (V, K) weights of either sign
    left: jax.Array  # (V, K, H) l_k, along the rows (y) of the image, of unit length
    right: jax.Array  # (V, K, W) r_k, along its columns (x)


def unit(vectors):
    """Each vector of (..., N) divided by its length."""
    squares = jnp.sum(jnp.square(vectors), axis=-1, keepdims=True)
    return vectors * jax.lax.rsqrt(jnp.maximum(squares, SHORTEST**2))


def embeddings(params):
    """The terms of a `LowRankDecoder`'s embeddings, factor by factor, from its variables."""
    return tuple(
        Factor(raw["values"], unit(raw["left"]), unit(raw["right"]))
        for raw in raw_embeddings(params)
    )


def raw_embeddings(params):
    """The parameters of the embeddings, factor by factor: 'embed_2' is before 'embed_10'."""
    names = sorted(name for name in params["params"] if name.startswith("embed_"))
    return [params["params"][name] for name in sorted(names, key=len)]


# --- the penalty -----------------------------------------------------------------------------


@dataclass(frozen=True)
class PenaltyConfig:
    """The penalty that is added to the loss (paper Eq 10, 11): two terms with the coefficients
    `entropy` and `variance`, summed over tokens. The variance is the unbiased one of a raw vector's
    entries, summed over a token's terms.

    `axes` says along which axes of the image a factor's embeddings should be constant, in pairs of
    a factor's index, from 0, and 'both' (also without a pair), 'rows', 'columns' or 'none': ((3,
    'rows'), (4, 'columns')) for posX and posY of dSprites.
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


# --- the decoder -----------------------------------------------------------------------------


@dataclass(frozen=True)
class LowRank(Model):
    """`LowRankDecoder`: `width` channels and `depth` hidden layers. `dilations`, unless empty, has
    for each hidden layer the pixels from one tap of its kernel to the next."""

    depth: int = number(4, low=1, high=10)
    width: int = number(64, low=1)
    penalty: PenaltyConfig = PenaltyConfig()
    dilations: tuple = ()

    convolutional = True
    batched = True

    def check(self, config):
        super().check(config)
        code = getattr(config.task, "code", None)
        names = [] if code is None else [code.name, *(pair[-1] for pair in getattr(code, "of", ()))]
        hint = "must be 'onehot' for lowrank, which has an embedding for each value of a factor"
        require({*names} <= {"onehot"}, "task.code", names, hint)

    def make(self, shapes):
        shape, parts, axes = self.image_shape(shapes), self.factor_parts(shapes), self.penalty.axes
        height, width = shape[:2]
        hint = f"must divide {height} and {width}, one for each of the {self.depth} hidden layers"
        dilations = self.dilations or (1,) * self.depth
        divisors = [d for d in range(1, height + 1) if height % d == width % d == 0]
        fits = len(dilations) == self.depth and {*dilations} <= {*divisors}
        require(fits, "model.dilations", self.dilations, hint)
        allowed = {(index, name) for index in range(len(parts)) for name in AXES}
        hint = f"must be pairs of a factor, each once, from 0 to {len(parts) - 1}, and one of"
        fits = {*axes} <= allowed and len(dict(axes)) == len(axes)
        require(fits, "model.penalty.axes", axes, f"{hint} {', '.join(AXES)}")
        return LowRankDecoder(shape, parts, dilations, self, shapes.lowering)

    def extra_loss(self, params, hyper):
        """Paper Eq 10 and 11, a scalar."""
        axes, total = dict(self.penalty.axes), 0
        for index, raw in enumerate(raw_embeddings(params)):
            penalty = hyper["penalty.entropy"] * jnp.sum(entropy(raw["values"]))
            sides = AXES[axes.get(index, "both")]
            spread_V = sum(jnp.sum(jnp.var(raw[side], axis=2, ddof=1), axis=1) for side in sides)
            total += penalty + hyper["penalty.variance"] * jnp.sum(spread_V)
        return total


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


class LowRankDecoder(nn.Module):
    """One-hot codes of F factors -> image through embeddings of low rank (Eq 8, 9), which have as
    many terms as the shorter side of the image. Vectors are scaled to unit length at each use, as
    in the authors' code, and not orthogonal. Attributes: shape, (H, W) or (H, W, C) of the image;
    parts, V of each factor; dilations."""

    shape: tuple
    parts: tuple
    dilations: tuple
    settings: LowRank
    lowering: str

    @nn.compact
    def __call__(self, code):
        """(..., sum of V) -> image (..., *shape)."""
        how = self.settings
        convolution = partial(ConvTranspose, kernel_size=3, stride=1, lowering=self.lowering)
        sizes = *self.shape[:2], min(self.shape[:2])
        labels = "xy" if len(self.parts) == 2 else range(len(self.parts))
        embedded = [
            Embedding(*sizes, name=f"embed_{label}")(part)
            for label, part in zip(labels, split(code, self.parts), strict=True)
        ]
        layers = [code, jnp.stack(embedded, axis=-1)]
        x = prelu(0, layers[1])
        *lead, height, width, _ = x.shape
        for index, step in enumerate(self.dilations, start=1):
            hidden = convolution(how.width, name=f"hidden_{index}")
            # every step-th row and column is an image of its own
            x = x.reshape(*lead, height // step, step, width // step, step, -1)
            x = jnp.moveaxis(hidden(jnp.moveaxis(x, (-4, -2), (0, 1))), (0, 1), (-4, -2))
            x = prelu(index, x.reshape(*lead, height, width, -1))
            layers.append(x)
        image = convolution((*self.shape, 1)[2], name="image")(x)
        return image.reshape(*code.shape[:-1], *self.shape), name_layers(layers)
