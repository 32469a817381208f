"""Transposed convolutions as matrix products, which XLA:CPU runs at full speed inside a compiled
loop; its gradients of `lax.conv_general_dilated` are ten times slower there.

Shape letters: B examples, H and W input sides, I and O channels, k kernel side, s stride, T and S
numbers of tiles along H and W, P = B T S.
"""

import math
from functools import reduce
from operator import add
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

# XLA:CPU's product over a long leading axis is its slow one. Below this many entries (they then
# stay in the cache) moving the axis last first is faster, above it slower: steps of 4.8 ms
# instead of 5.2 for 36 x 512 x 32, 40 ms instead of 35 for 36 x 1568 x 64.
MOVED_FOR_PRODUCT = 2**20

BANDED_TILE = 8  # output columns; 4 and 16 are slower


class Filtering(NamedTuple):
    """Winograd's minimal filtering F(m x m, r x r) along one axis: y = output @ [(kernel @ g) *
    (input @ d)] correlates n = m + r - 1 inputs d with r taps g to m outputs y (Lavin & Gray 2016,
    section 4)."""

    input: np.ndarray  # (n, n)
    kernel: np.ndarray  # (n, r)
    output: np.ndarray  # (m, n)
    # (m, 3 n) that adds overlapping tiles of input.T: those of a tile, the one before and after
    overlap: np.ndarray


def _matrix(rows: str, divisor: int = 1) -> np.ndarray:
    return np.array([row.split() for row in rows.split(";")], float) / divisor


FILTERINGS = {  # by r
    3: Filtering(  # F(4x4, 3x3), at the points 0, 1, -1, 2, -2 and infinity
        input=_matrix(
            "4 0 -5 0 1 0; 0 -4 -4 1 1 0; 0 4 -4 -1 1 0; 0 -2 -1 2 1 0; 0 2 -1 -2 1 0; 0 4 0 -5 0 1"
        ),
        kernel=_matrix("6 0 0; -4 -4 -4; -4 4 -4; 1 2 4; 1 -2 4; 0 0 24", 24),
        output=_matrix("1 1 1 1 1 0; 0 1 -1 2 -2 0; 0 1 1 4 4 0; 0 1 -1 8 -8 1"),
        overlap=_matrix(
            "0 -4 4 -2 2 4 0 0 0 0 0 1 0 0 0 0 0 0; -5 -4 -4 -1 -1 0 0 0 0 0 0 0 0 0 0 0 0 0; "
            "0 1 -1 2 -2 -5 0 0 0 0 0 0 0 0 0 0 0 0; 1 1 1 1 1 0 0 0 0 0 0 0 4 0 0 0 0 0"
        ),
    ),
    2: Filtering(  # F(3x3, 2x2), at the points 0, 1, -1 and infinity
        input=_matrix("1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 -1 0 1"),
        kernel=_matrix("2 0; 1 1; 1 -1; 0 2", 2),
        output=_matrix("1 1 1 0; 0 1 -1 0; 0 1 1 1"),
        overlap=_matrix(
            "0 1 -1 -1 0 0 0 0 0 0 0 0; -1 1 1 0 0 0 0 0 0 0 0 0; 0 0 0 1 0 0 0 0 1 0 0 0"
        ),
    ),
}


def choose_lowering(backend, trials, precision="float32", forward_mode=False):
    """The lowering that trains `trials` models under `jax.vmap` fastest, or the fastest
    in `forward_mode`; see `conv_transpose`."""
    if backend in ("gpu", "tpu"):
        # Under vmap over kernels a convolution becomes a grouped one, whose CUDA gradients were
        # slow (https://github.com/jax-ml/jax/issues/13800). On an H100, ms a step: one network
        # 1.1 by either at 28 x 28, .54 and .33 by "gemm" at 16 x 16.
        return "lax" if trials == 1 else "gemm"
    # "winograd" in bfloat16 has an error of 4%, rms, where the others have 0.3 to 0.5%
    if forward_mode:
        return "forward_winograd"
    return "gemm" if precision == "bfloat16" else "winograd"


def conv_transpose(x, kernel, stride: int, lowering: str):
    """Transposed convolution with 'SAME' padding, equal to `nn.ConvTranspose` without bias.

    Args:
      x: (..., H, W, I).  stride: s.
      kernel: (k, k, I, O), not flipped; k = 3 with s = 1, or k = 4 with s = 2.
      lowering: "lax", "gemm", "winograd" or "forward_winograd". The third, and "gemm" in bfloat16,
        have no forward mode; the last has no gradients of its own, and takes them from JAX.

    Returns (..., s H, s W, O) in the kernel's dtype.
    """
    inputs, outputs = kernel.shape[2:]
    x_bhwi = x.astype(kernel.dtype).reshape(-1, *x.shape[-3:])
    winograd, narrow = _winograd, _narrow
    if lowering == "forward_winograd":
        winograd, narrow = _winograd.__wrapped__, _narrow.__wrapped__
    if lowering == "lax":
        y = lax.conv_transpose(x_bhwi, kernel, (stride, stride), "SAME")
    elif lowering == "gemm":
        y = _gemm(x_bhwi, kernel, stride)
    elif stride == 2:
        y = _doubling_winograd(x_bhwi, kernel, winograd)
    elif max(inputs, outputs) < 8:  # too few channels for any product over channels alone
        y = _banded(x_bhwi, kernel)
    elif min(inputs, outputs) < 8:  # too few channels for products: the last layer has one
        y = narrow(x_bhwi, kernel)
    else:
        y = winograd(x_bhwi, kernel)
    return y.reshape(*x.shape[:-3], *y.shape[1:])


def product(x, w):
    """x (..., K) times w (K, ...), in w's dtype, with sums in float32."""
    if w.dtype == jnp.bfloat16:
        return _product_bfloat16(x.astype(w.dtype), w)
    return jnp.tensordot(x, w, axes=1)


@jax.custom_vjp
def _product_bfloat16(x, w):
    # XLA:CPU of jaxlib 0.11 adds up the blocks of a long bfloat16 product in its output, unless
    # that is float32: a kernel's gradient, a sum over 128 images' pixels, was off by 7%
    return jnp.tensordot(x, w, axes=1, preferred_element_type=jnp.float32).astype(w.dtype)


def _product_bfloat16_bwd(residuals, gy):
    x, w = residuals
    x_PxK, gy_PxO = x.reshape(-1, len(w)), gy.reshape(-1, math.prod(w.shape[1:]))
    gx = _product_bfloat16(gy_PxO, w.reshape(len(w), -1).T)
    return gx.reshape(x.shape), _product_bfloat16(x_PxK.T, gy_PxO).reshape(w.shape)


_product_bfloat16.defvjp(lambda x, w: (_product_bfloat16(x, w), (x, w)), _product_bfloat16_bwd)


def _gemm(x, kernel, stride):
    """Phases of y are products: output row s j + p reads the input rows j + p + n - 1 by the kernel
    rows p + s n."""
    b, h, w, i = x.shape
    taps, phases = kernel.shape[0] // stride, []
    for p, q in np.ndindex(stride, stride):
        windows = jnp.concatenate(_windows(x, (p, p + taps), (q, q + taps)), axis=-1)
        phases.append(product(windows, kernel[p::stride, q::stride].reshape(taps * taps * i, -1)))
    y = jnp.stack(phases, axis=3).reshape(b, h, w, stride, stride, -1)
    return y.swapaxes(2, 3).reshape(b, stride * h, stride * w, -1)


def _windows(x, rows, columns):
    """x (B, H, W, ...) moved by every row and column of two ranges, of which 1 is no move."""
    h, w = x.shape[1:3]
    x = jnp.pad(x, [(0, 0), (1, 1), (1, 1)] + [(0, 0)] * (x.ndim - 3))
    return [x[:, n : n + h, m : m + w] for n in range(*rows) for m in range(*columns)]


def _banded(x, kernel):
    """k = 3, s = 1 for few channels: tiles of one row of y are products of tiles of the three rows
    around it and a banded matrix."""
    b, h, w, i = x.shape
    o = kernel.shape[-1]
    n_tiles = -(-w // BANDED_TILE)
    x = jnp.pad(x, [(0, 0), (1, 1), (1, 1 + n_tiles * BANDED_TILE - w), (0, 0)])
    tiles = [x[:, :, BANDED_TILE * n :][:, :, : BANDED_TILE + 2] for n in range(n_tiles)]
    rows = jnp.stack(tiles, axis=2).reshape(b, h + 2, n_tiles, -1)
    rows = jnp.concatenate([rows[:, n : n + h] for n in range(3)], axis=-1)
    # input column v reaches output column u of the tile through kernel column v - u
    reach = np.stack([np.eye(BANDED_TILE + 2, BANDED_TILE, -m, np.float32) for m in range(3)])
    band = jnp.einsum("mvu,nmio->nviuo", reach, kernel).reshape(-1, BANDED_TILE * o)
    return (rows @ band).reshape(b, h, -1, o)[:, :, :w]


@jax.custom_vjp
def _narrow(x, kernel):
    """k = 3, s = 1 for few output channels: multiply first, then add windows of the product."""
    b, h, w, i = x.shape
    matrix = kernel.transpose(2, 0, 1, 3).reshape(i, -1)
    z = (x.reshape(-1, i) @ matrix).reshape(b, h, w, 9, -1)
    return reduce(add, [window[..., n, :] for n, window in enumerate(_windows(z, (0, 3), (0, 3)))])


def _narrow_bwd(residuals, gy):
    x, kernel = residuals
    i = x.shape[-1]
    matrix = kernel.transpose(2, 0, 1, 3).reshape(i, -1)
    gz = jnp.concatenate(_windows(gy, (2, -1, -1), (2, -1, -1)), axis=-1)
    gz = gz.reshape(-1, 9 * gy.shape[-1])
    gkernel = (x.reshape(-1, i).T @ gz).reshape(i, 3, 3, -1)
    return (gz @ matrix.T).reshape(x.shape), gkernel.transpose(1, 2, 0, 3)


_narrow.defvjp(lambda x, kernel: (_narrow(x, kernel), (x, kernel)), _narrow_bwd)


def _combine(matrix, terms, axis=0):
    """matrix @ terms as sums of arrays, which XLA fuses into one loop over them all."""
    rows = [[float(c) * terms[k] for k, c in enumerate(row) if c] for row in matrix]
    return jnp.stack([reduce(add, row) for row in rows], axis=axis)


def _to_tiles(x_bhwc, matrix, m, t, s):
    """Tiles at every m-th row and column, transformed: (p p, B T S, C) by a (p, width) matrix."""
    p, width = matrix.shape
    b, _, _, c = x_bhwc.shape
    rows = [x_bhwc[:, k : k + m * (t - 1) + 1 : m] for k in range(width)]
    x_pbtwc = _combine(matrix, rows)
    columns = [x_pbtwc[:, :, :, k : k + m * (s - 1) + 1 : m] for k in range(width)]
    return _combine(matrix, columns).reshape(p * p, b * t * s, c)


def _from_tiles(tiles, matrix, t, s):
    """Tiles (n n, B T S, C) back to (B, m T, m S, C) by an (m, n) matrix, or an (m, 3 n) one that
    reads the tiles before and after too."""
    m, n = len(matrix), math.isqrt(len(tiles))
    c = tiles.shape[-1]

    def with_neighbours(terms, axis):
        shifted = []
        for by in (1, -1):  # zeros enter at the end that it leaves
            edges = [(0, 0, 0)] * terms[0].ndim
            edges[axis] = (by, -by, 0)
            shifted += [lax.pad(term, jnp.zeros((), term.dtype), edges) for term in terms]
        return terms + shifted

    columns = list(tiles.reshape(n, n, -1, t, s, c))
    y = _combine(matrix, with_neighbours(columns, 3), axis=4)
    rows = list(y.reshape(n, -1, t, m * s, c))
    y = _combine(matrix, with_neighbours(rows, 1), axis=2)
    return y.reshape(-1, m * t, m * s, c)


@jax.custom_vjp
def _winograd(x, kernel):
    """Correlates x (B, H, W, I), padded by 1 on all sides, with a kernel (r, r, I, O)."""
    return _winograd_fwd(x, kernel)[0]


def _winograd_fwd(x, kernel):
    r, _, i, _ = kernel.shape
    filtering = FILTERINGS[r]
    m, n = filtering.output.shape
    height, width = (side + 3 - r for side in x.shape[1:3])
    t, s = -(-height // m), -(-width // m)
    x = jnp.pad(x, [(0, 0), (1, 1 + m * t - height), (1, 1 + m * s - width), (0, 0)])
    v = _to_tiles(x, filtering.input, m, t, s)
    u = _combine(filtering.kernel, _combine(filtering.kernel, kernel).swapaxes(0, 1))
    u = u.reshape(n * n, i, -1)
    y = _from_tiles(jnp.einsum("npi,nio->npo", v, u), filtering.output, t, s)
    return y[:, :height, :width], (v, u, kernel)


def _winograd_bwd(residuals, gy):
    """Every linear map of the forward pass, transposed."""
    v, u, kernel = residuals
    r, _, i, o = kernel.shape
    filtering = FILTERINGS[r]
    m, n = filtering.output.shape
    _, height, width, _ = gy.shape
    t, s = -(-height // m), -(-width // m)
    gy = jnp.pad(gy, [(0, 0), (0, m * t - height), (0, m * s - width), (0, 0)])
    gy = _to_tiles(gy, filtering.output.T, m, t, s)
    gx = _from_tiles(jnp.einsum("npo,nio->npi", gy, u), filtering.overlap, t, s)
    if v.size < MOVED_FOR_PRODUCT:
        v = lax.optimization_barrier(jnp.swapaxes(v, 1, 2))
        gu = jnp.einsum("nip,npo->nio", v, gy)
    else:
        gu = jnp.einsum("npi,npo->nio", v, gy)
    gu = _combine(filtering.kernel.T, gu.reshape(n, n, i, o)).swapaxes(0, 1)
    return gx[:, : height + r - 3, : width + r - 3], _combine(filtering.kernel.T, gu)


_winograd.defvjp(_winograd_fwd, _winograd_bwd)


def _doubling_winograd(x, kernel, winograd):
    """k = 4, s = 2: a 2 x 2 kernel gives 2 x 2 blocks of y as channels; row r of a block reads the
    kernel rows 1 - r and 3 - r."""
    b, h, w, i = x.shape
    o = kernel.shape[-1]
    blocks = kernel.reshape(2, 2, 2, 2, i, o)[:, ::-1, :, ::-1].transpose(0, 2, 4, 1, 3, 5)
    y = winograd(x, blocks.reshape(2, 2, i, 4 * o))
    y = y.reshape(b, h + 1, w + 1, 2, 2, o).transpose(0, 1, 3, 2, 4, 5)
    return y.reshape(b, 2 * h + 2, 2 * w + 2, o)[:, 1:-1, 1:-1]
