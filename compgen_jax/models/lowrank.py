"""The paper's decoder of low-rank embeddings and their penalty (section 4.1, Eq 8 to 11; appendix
C, Eq 44 to 48).

Every value of a factor is a token. It has an embedding matrix with the size of the image, a sum of
K rank-1 terms. The embeddings of the tokens of x and y are the two channels of an image, which a
small stack of convolutions decodes.

Shape letters: N grid side and number of a factor's tokens, K terms of an embedding.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models import model
from compgen_jax.models.conv import ConvTranspose
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import ConfigError, choice, number

SHORTEST = 1e-12  # a vector shorter than this is not stretched to unit length
SMALLEST_SHARE = 1e-8  # of a token's energy: the logarithm is cut off below it, as the authors do


class Factor(NamedTuple):
    """The terms of the embeddings of one factor's tokens: E[t] = sum_k values l_k r_k^T."""

    values: jax.Array  # (N, K) weights of either sign
    left: jax.Array  # (N, K, N) l_k, along the rows (y) of the image, as the decoder uses them
    right: jax.Array  # (N, K, N) r_k, along its columns (x)
    raw_left: jax.Array  # (N, K, N) the parameters that `left` and `right` come from
    raw_right: jax.Array


class Factors(NamedTuple):
    x: Factor
    y: Factor


def unit(vectors):
    """Each vector of (..., N) divided by its length."""
    squares = jnp.sum(jnp.square(vectors), axis=-1, keepdims=True)
    return vectors * jax.lax.rsqrt(jnp.maximum(squares, SHORTEST**2))


@jax.custom_vjp
def orthonormal(vectors):
    """The K <= N vectors of (..., K, N) made orthonormal, in order, by Gram-Schmidt.

    They are the Q of a QR factorisation whose R has a positive diagonal. Where the vectors are
    linearly independent it is continuous and, in reverse mode, differentiable. LAPACK's QR is not
    used: inside a loop, the OpenBLAS threads of its many small problems wait for each other. Value
    and gradient of four (32, 32, 32) then take 20 to 700 ms on two cores; here, 3 ms.
    """
    return _orthonormal_fwd(vectors)[0]


def _orthonormal_fwd(vectors):
    """Rows q = inverse @ vectors; the residuals are q and the lower triangular `inverse`."""
    terms, length = vectors.shape[-2:]
    identity = jnp.broadcast_to(jnp.eye(terms, dtype=vectors.dtype), (*vectors.shape[:-1], terms))
    rows = jnp.concatenate([vectors, identity], axis=-1)  # what is done to one is done to both

    def add_row(k, done):
        row = jax.lax.dynamic_index_in_dim(rows, k, -2, keepdims=False)
        for _ in range(2):  # the second time removes what rounding left in the first
            overlaps = jnp.einsum("...kn,...n->...k", done[..., :length], row[..., :length])
            row = row - jnp.einsum("...k,...kn->...n", overlaps, done)
        row = row / jnp.linalg.norm(row[..., :length], axis=-1, keepdims=True)
        return jax.lax.dynamic_update_index_in_dim(done, row, k, -2)

    done = jax.lax.fori_loop(0, terms, add_row, jnp.zeros_like(rows))
    q, inverse = done[..., :length], done[..., length:]
    return q, (q, inverse)


def _orthonormal_bwd(residuals, gq):
    """The gradient is inverse^T [gq - S q + upper(S - S^T) q], where S = gq q^T."""
    q, inverse = residuals
    s = gq @ jnp.swapaxes(q, -2, -1)
    upper = jnp.triu(s - jnp.swapaxes(s, -2, -1), 1)
    return (jnp.swapaxes(inverse, -2, -1) @ (gq + (upper - s) @ q),)


orthonormal.defvjp(_orthonormal_fwd, _orthonormal_bwd)


VECTORS = {"unit": unit, "orthonormal": orthonormal}


def embeddings(params, vectors: str) -> Factors:
    """The terms of a `LowRankDecoder`'s embeddings, from its variables (as `init` returns them) and
    its `vectors`."""
    return Factors(
        x=_factor(params["params"]["embed_x"], vectors),
        y=_factor(params["params"]["embed_y"], vectors),
    )


def _factor(parameters, vectors) -> Factor:
    normalise, raw_left, raw_right = VECTORS[vectors], parameters["left"], parameters["right"]
    return Factor(
        parameters["values"], normalise(raw_left), normalise(raw_right), raw_left, raw_right
    )


# --- the penalty -----------------------------------------------------------------------------


@dataclass(frozen=True)
class PenaltyConfig:
    """The penalty that is added to the loss (paper Eq 10, 11).

    `entropy` and `variance` are the coefficients of two terms, summed or averaged over tokens. The
    variance is that of the raw vectors (the authors' code) or, scale-free, that of the vectors as
    used, weighted by their share of the embedding's energy.
    """

    entropy: float = number(0.0, low=0, high=1e6, traced=True)
    variance: float = number(0.0, low=0, high=1e6, traced=True)
    tokens: str = choice("sum", "sum", "mean")
    vectors: str = choice("raw", "raw", "scale_free")


def energy_shares(values_NxK):
    """(N, K): the share of every term in its token's energy, lambda_k^2 / sum lambda^2; 0 if all
    are 0."""
    energy_NxK = jnp.square(values_NxK)
    total_Nx1 = jnp.sum(energy_NxK, axis=1, keepdims=True)
    return energy_NxK / jnp.where(total_Nx1 > 0, total_Nx1, 1.0)


def entropy(values_NxK):
    """(N,) entropy in nats of every token's energy over its terms (paper Eq 9, 10, 45): log K for K
    equal terms, 0 for one."""
    shares_NxK = energy_shares(values_NxK)
    return -jnp.sum(shares_NxK * jnp.log(jnp.maximum(shares_NxK, SMALLEST_SHARE)), axis=1)


def variance(vectors_NxKxH, weights_NxK=None):
    """(N,) unbiased variance of the entries of each vector, summed over a token's terms (paper Eq
    11, 46), or averaged with weights that sum to 1; 0 for constant vectors."""
    spread_NxK = jnp.var(vectors_NxKxH, axis=2, ddof=1)
    return jnp.sum(spread_NxK if weights_NxK is None else weights_NxK * spread_NxK, axis=1)


def embedding_penalty(factors, entropy_weight, variance_weight, config: PenaltyConfig):
    """The weighted penalty of the embeddings of all `factors` (`Factor`); a scalar.

    On the authors' settings (sum over tokens, raw vectors, N = K = 32) the two terms start near
    17.6 and 1.28.
    """
    over_tokens = jnp.sum if config.tokens == "sum" else jnp.mean

    def vector_variance(factor):
        if config.vectors == "raw":
            return variance(factor.raw_left) + variance(factor.raw_right)
        shares = energy_shares(factor.values)
        return variance(factor.left, shares) + variance(factor.right, shares)

    return sum(
        entropy_weight * over_tokens(entropy(factor.values))
        + variance_weight * over_tokens(vector_variance(factor))
        for factor in factors
    )


# --- the decoder -----------------------------------------------------------------------------


@dataclass(frozen=True)
class LowRank(Model):
    """`LowRankDecoder`: `width` channels and `depth` hidden layers. An embedding matrix has at most
    `rank` terms (0 means N), whose vectors have unit length (the authors' code) or are orthonormal
    (the paper's text)."""

    depth: int = number(4, low=1, high=10)
    width: int = number(64, low=1)
    initial_weights: str = choice("torch", "torch", "flax")
    rank: int = number(0, low=0, high=128)
    vectors: str = choice("unit", "unit", "orthonormal")
    penalty: PenaltyConfig = PenaltyConfig()

    convolutional: ClassVar[bool] = True

    def check(self, config):
        super().check(config)
        code = getattr(config.task, "code", None)
        if code is not None and code.name != "onehot":
            raise ConfigError(
                f"config.task.code.name={code.name!r}: must be 'onehot' for lowrank, which has "
                "an embedding for each value of x and of y"
            )

    def make(self, shapes: Shapes) -> nn.Module:
        length, grid = model.code_length(shapes, self.name), model.image_side(shapes, self.name)
        if length != 2 * grid:
            raise ConfigError(
                f"config.model.name={self.name!r}: embeds two factors with a value for each of "
                f"{grid} pixels, so that its input has {2 * grid} numbers, not {length}"
            )
        if self.rank > grid:
            raise ConfigError(
                f"config.model.rank={self.rank}: must be at most the grid's side, {grid}"
            )
        return LowRankDecoder(
            grid, self.width, self.depth, self.rank, self.vectors, self.initial_weights,
            shapes.lowering,
        )  # fmt: skip

    def extra_loss(self, params, hyper):
        weights = hyper["penalty.entropy"], hyper["penalty.variance"]
        return embedding_penalty(embeddings(params, self.vectors), *weights, self.penalty)


class Embedding(nn.Module):
    """The embedding matrices of one factor's tokens; see `LowRankDecoder`."""

    grid: int
    rank: int
    vectors: str

    @nn.compact
    def __call__(self, code):
        """(..., N) one-hot -> (..., N, N), indexed [y, x]. Zeros, a missing factor, give zeros."""
        terms = self.rank or self.grid
        shape = (self.grid, terms, self.grid)
        parameters = {
            "values": self.param("values", nn.initializers.normal(terms**-0.5), shape[:2]),
            "left": self.param("left", _unit_gaussian, shape),
            "right": self.param("right", _unit_gaussian, shape),
        }
        factor = _factor(parameters, self.vectors)
        # the code picks its token's terms, so that no other token's matrix is formed
        values, left, right = (
            jnp.tensordot(code, array, axes=1)
            for array in (factor.values, factor.left, factor.right)
        )
        return jnp.einsum("...k,...kh,...kw->...hw", values, left, right)


def _unit_gaussian(key, shape):
    return unit(jax.random.normal(key, shape))


class LowRankDecoder(nn.Module):
    """One-hot code -> image through embeddings of low rank (Eq 8, 9).

    The embeddings of the tokens of x and of y are two channels of an N x N image. A PReLU, `depth`
    hidden transposed convolutions (kernel 3), each with a PReLU, and a last, linear one make the
    image. Recorded are the code, the embeddings (before their PReLU) and the hidden layers (after
    theirs). Leading axes of the code are carried through.

    Initial values are Gaussian with variance 1/K, initial vectors uniform on the unit sphere. With
    N = 32, two channels and depth 2 this is the authors' network of 133,218 parameters. The authors
    scale vectors to unit length at each use. So they are not orthogonal, and the values are not
    singular values, as in the paper; with `vectors` 'orthonormal' they are.

    Attributes:
      grid: N.  width: hidden channels.  depth: at least 1.
      rank: K, at most N; 0 means N.  vectors: 'unit' or 'orthonormal'.
      initial_weights: 'torch' or 'flax'.  lowering: see `models.convolution`.
    """

    grid: int
    width: int
    depth: int
    rank: int = 0
    vectors: str = "unit"
    initial_weights: str = "torch"
    lowering: str = "lax"

    batched: ClassVar[bool] = True

    @nn.compact
    def __call__(self, code):
        """(..., 2N) -> image (..., N, N) and the activations by layer name, code first."""

        def embed(name, code):
            return Embedding(self.grid, self.rank, self.vectors, name=name)(code)

        def convolve(features, name, x):
            return ConvTranspose(features, 3, 1, self.initial_weights, self.lowering, name=name)(x)

        def prelu(index, x):
            return nn.PReLU(negative_slope_init=0.25, name=f"prelu_{index}")(x)

        code_x, code_y = jnp.split(code, 2, axis=-1)
        x = jnp.stack([embed("embed_x", code_x), embed("embed_y", code_y)], axis=-1)
        layers = [code, x]
        x = prelu(0, x)
        for index in range(1, self.depth + 1):
            x = prelu(index, convolve(self.width, f"hidden_{index}", x))
            layers.append(x)
        return convolve(1, "image", x)[..., 0], name_layers(layers)
