"""Transposed convolutions of the decoders, in forms that train fast inside a compiled loop.

XLA:CPU runs the gradients of `lax.conv_general_dilated` an order of magnitude slower inside a
while loop than PyTorch runs them outside one, whereas its matrix products run at full speed
everywhere. So the two convolutions the decoders are made of are written here as matrix products.

Shape letters: B examples, H and W input sides, I and O channels, k kernel side, s stride,
T and S numbers of tiles along H and W, P = B T S.
"""

import math
from functools import partial, reduce
from itertools import product
from operator import add

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LOWERINGS = ("lax", "gemm", "winograd")
KERNEL_STRIDES = ((3, 1), (4, 2))

# Winograd's minimal filtering F(4x4, 3x3): y = A' [(G g G') * (B' d B)] A for a 6x6 input tile d,
# a 3x3 kernel g and a 4x4 output tile y. Lavin & Gray (2016), "Fast Algorithms for Convolutional
# Neural Networks", https://arxiv.org/abs/1509.09308, section 4.3; the points are 0, +-1, +-2, inf.
TILE = 4
INPUT_TRANSFORM = np.array(  # B'
    [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ]
)
KERNEL_TRANSFORM = np.array(  # G
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ]
)
OUTPUT_TRANSFORM = np.array(  # A'
    [
        [1, 1, 1, 1, 1, 0],
        [0, 1, -1, 2, -2, 0],
        [0, 1, 1, 4, 4, 0],
        [0, 1, -1, 8, -8, 1],
    ]
)

# B, which adds the overlapping tiles of an input gradient: the columns are the six rows of a
# position's own tile, of the tile before (whose last row overlaps) and of the one after (first).
INPUT_TRANSPOSED = np.zeros((4, 18))
INPUT_TRANSPOSED[:, :6] = INPUT_TRANSFORM.T[1:5]
INPUT_TRANSPOSED[0, 6:12] = INPUT_TRANSFORM.T[5]
INPUT_TRANSPOSED[3, 12:] = INPUT_TRANSFORM.T[0]


def choose_lowering(*, backend, trials, forward_mode=False):
    """Returns the one of `LOWERINGS` to use on `backend` with `trials` models under `jax.vmap`.

    `forward_mode` says that the caller differentiates with `jax.jvp` or `jax.jacfwd`.
    """
    if backend == "cpu":
        return "gemm" if forward_mode else "winograd"
    if backend in ("gpu", "tpu"):
        # Under vmap over kernels a convolution becomes a grouped one, whose CUDA gradients are
        # slow (https://github.com/jax-ml/jax/issues/13800). Not measured here: no GPU at hand.
        return "lax" if trials == 1 else "gemm"
    raise ValueError(f"backend {backend!r} is not one of ('cpu', 'gpu', 'tpu')")


def conv_transpose(x, kernel, *, stride, lowering):
    """Transposed convolution with 'SAME' padding, equal to `nn.ConvTranspose` without bias.

    Args:
      x: (..., H, W, I), any leading axes, also none; they share the kernel.
      kernel: (k, k, I, O), not flipped; k = 3 with stride 1, or k = 4 with stride 2.
      stride: s, 1 or 2.
      lowering: one of `LOWERINGS`. All compute the same map; "winograd" has a hand-written
        reverse-mode derivative and so no forward mode (`jax.jvp` of it raises jax's TypeError).

    Returns:
      (..., s H, s W, O).

    Raises:
      ValueError: for another kernel and stride, an unknown lowering or channels that differ.
    """
    if lowering not in LOWERINGS:
        raise ValueError(f"lowering {lowering!r} is not one of {LOWERINGS}")
    if x.ndim < 3 or kernel.ndim != 4:
        raise ValueError(
            f"x {x.shape} must be (..., H, W, I) and kernel {kernel.shape} (k, k, I, O)"
        )
    if kernel.shape[0] != kernel.shape[1] or (kernel.shape[0], stride) not in KERNEL_STRIDES:
        raise ValueError(
            f"kernel {kernel.shape[:2]} with stride {stride} is not supported: "
            f"the pairs (k, stride) are {KERNEL_STRIDES}"
        )
    if x.shape[-1] != kernel.shape[2]:
        raise ValueError(
            f"x {x.shape} has {x.shape[-1]} channels, kernel {kernel.shape} reads {kernel.shape[2]}"
        )
    x_bhwi = x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:])
    if lowering == "lax":
        y = lax.conv_transpose(x_bhwi, kernel, (stride, stride), "SAME")
    elif lowering == "gemm":
        y = _gemm(x_bhwi, kernel, stride)
    elif _worth_winograd(kernel.shape):
        y = _winograd(x_bhwi, kernel)
    else:
        y = _trained_overlap_add(x_bhwi, kernel, stride)
    return y.reshape(*x.shape[:-3], *y.shape[1:])


def _worth_winograd(kernel_shape):
    """Winograd pays where both channel counts make each of its 36 products a real one."""
    k, _, i, o = kernel_shape
    return k == 3 and min(i, o) >= 8


def _gemm(x, kernel, stride):
    """The s^2 phases of the output, each a convolution with every s-th kernel row and column."""
    _, h, w, i = x.shape
    k, o = kernel.shape[0], kernel.shape[-1]
    taps = tuple(product(range(k // stride), repeat=2))
    phases = tuple(product(range(stride), repeat=2))

    def window(padded_bhwc, phase, tap):
        top, left = phase[0] + tap[0], phase[1] + tap[1]
        return padded_bhwc[..., top : top + h, left : left + w, :]

    padding = [(0, 0), (1, 1), (1, 1), (0, 0)]
    if o >= i:  # gather windows of x, then multiply: the wide side is moved once
        x = jnp.pad(x, padding)
        y = [
            jnp.concatenate([window(x, phase, tap) for tap in taps], axis=-1)
            @ kernel[phase[0] :: stride, phase[1] :: stride].reshape(len(taps) * i, o)
            for phase in phases
        ]
    else:  # multiply, then add windows of the products
        z = jnp.pad(jnp.einsum("bhwi,klio->klbhwo", x, kernel), [(0, 0), (0, 0), *padding])
        y = [
            sum(
                window(z[phase[0] + stride * tap[0], phase[1] + stride * tap[1]], phase, tap)
                for tap in taps
            )
            for phase in phases
        ]
    rows = [jnp.stack(y[p * stride : (p + 1) * stride], axis=3) for p in range(stride)]
    return jnp.stack(rows, axis=2).reshape(-1, stride * h, stride * w, o)


def _overlap_add(x, kernel, stride):
    """One product gives the k x k window that each input pixel adds to y; then these are added.

    Output row s j + p adds the rows p + s n of the windows of input rows j + p + n - 1.
    """
    b, h, w, i = x.shape
    k, o = kernel.shape[0], kernel.shape[-1]
    z = (x.reshape(-1, i) @ _as_matrix(kernel)).reshape(b, h, w, k, k, o)
    z = jnp.pad(z, [(0, 0), (1, 1), (1, 1), (0, 0), (0, 0), (0, 0)])

    def phase(p, q):
        return reduce(
            add,
            [
                z[:, p + n : p + n + h, q + m : q + m + w, p + stride * n, q + stride * m]
                for n, m in product(range(k // stride), repeat=2)
            ],
        )

    rows = [jnp.stack([phase(p, q) for q in range(stride)], axis=3) for p in range(stride)]
    return jnp.stack(rows, axis=2).reshape(b, stride * h, stride * w, o)


def _as_matrix(kernel):
    return kernel.transpose(2, 0, 1, 3).reshape(kernel.shape[2], -1)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _trained_overlap_add(x, kernel, stride):
    """`_overlap_add` whose gradients are one product each, from the windows of gy."""
    return _overlap_add(x, kernel, stride)


def _overlap_add_fwd(x, kernel, stride):
    return _overlap_add(x, kernel, stride), (x, kernel)


def _overlap_add_bwd(stride, residuals, gy):
    x, kernel = residuals
    b, h, w, i = x.shape
    k, o = kernel.shape[0], kernel.shape[-1]
    gy = jnp.pad(gy, [(0, 0), (1, 1), (1, 1), (0, 0)])

    def window(n, m):
        top, left = 1 + k // 2 - n, 1 + k // 2 - m
        rows = slice(top, top + stride * (h - 1) + 1, stride)
        return gy[:, rows, left : left + stride * (w - 1) + 1 : stride]

    gz = jnp.stack([window(n, m) for n, m in product(range(k), repeat=2)], axis=3)
    gz = gz.reshape(b * h * w, k * k * o)
    gx = (gz @ _as_matrix(kernel).T).reshape(x.shape)
    gkernel = (x.reshape(-1, i).T @ gz).reshape(i, k, k, o).transpose(1, 2, 0, 3)
    return gx, gkernel


_trained_overlap_add.defvjp(_overlap_add_fwd, _overlap_add_bwd)


def _combine(matrix, terms):
    """The list matrix @ terms as sums of arrays, which XLA fuses into one loop over them all."""
    return [
        reduce(add, [terms[k] if c == 1 else float(c) * terms[k] for k, c in enumerate(row) if c])
        for row in matrix
    ]


def _to_tiles(x_bhwc, matrix, t, s):
    """Tiles of every 4 rows and columns, transformed: (q p, B T S, C) by a (p, m) matrix."""
    p, m = matrix.shape
    b, _, _, c = x_bhwc.shape
    rows = [x_bhwc[:, k : k + TILE * (t - 1) + 1 : TILE] for k in range(m)]
    x_pbtwc = jnp.stack(_combine(matrix, rows))
    columns = [x_pbtwc[:, :, :, k : k + TILE * (s - 1) + 1 : TILE] for k in range(m)]
    return jnp.stack(_combine(matrix, columns)).reshape(p * p, b * t * s, c)


def _from_tiles(m_npc, matrix, t, s):
    """Tiles back to (B, 4 T, 4 S, C), by a (4, 6) matrix or one that reads the neighbours too."""
    n, positions, c = m_npc.shape
    b, p = positions // (t * s), math.isqrt(n)

    def shifted(term, by, axis):  # zeros enter at the end that it leaves
        edges = [(by, -by, 0) if a == axis else (0, 0, 0) for a in range(term.ndim)]
        return lax.pad(term, 0.0, edges)

    def with_neighbours(terms, axis):
        return terms + [shifted(term, by, axis) for by in (1, -1) for term in terms]

    m_qpbtsc = m_npc.reshape(p, p, b, t, s, c)
    y_pbtswc = jnp.stack(_combine(matrix, with_neighbours(list(m_qpbtsc), 3)), axis=4)
    y_pbtwc = y_pbtswc.reshape(p, b, t, TILE * s, c)
    y_bthwc = jnp.stack(_combine(matrix, with_neighbours(list(y_pbtwc), 1)), axis=2)
    return y_bthwc.reshape(b, TILE * t, TILE * s, c)


def _kernel_transform(matrix, g_kkio):
    """(p, k) matrix on both sides of (k, k, ...): (p, p, ...), here with columns first."""
    rows = jnp.stack(_combine(matrix, list(g_kkio)))
    return jnp.stack(_combine(matrix, [rows[:, k] for k in range(matrix.shape[1])]))


@jax.custom_vjp
def _winograd(x, kernel):
    """F(4x4, 3x3) on (B, H, W, I) and (3, 3, I, O); see `INPUT_TRANSFORM`."""
    return _winograd_fwd(x, kernel)[0]


def _winograd_fwd(x, kernel):
    _, h, w, i = x.shape
    t, s = -(-h // TILE), -(-w // TILE)
    x = jnp.pad(x, [(0, 0), (1, TILE * t - h + 1), (1, TILE * s - w + 1), (0, 0)])
    v = _to_tiles(x, INPUT_TRANSFORM, t, s)
    u = _kernel_transform(KERNEL_TRANSFORM, kernel).reshape(36, i, -1)
    m = jnp.einsum("npi,nio->npo", v, u)
    return _from_tiles(m, OUTPUT_TRANSFORM, t, s)[:, :h, :w], (v, u)


def _winograd_bwd(residuals, gy):
    """The transposed algorithm: every linear map of the forward pass, transposed."""
    v, u = residuals
    _, h, w, o = gy.shape
    t, s = -(-h // TILE), -(-w // TILE)
    gy = jnp.pad(gy, [(0, 0), (0, TILE * t - h), (0, TILE * s - w), (0, 0)])
    gm = _to_tiles(gy, OUTPUT_TRANSFORM.T, t, s)
    gv = jnp.einsum("npo,nio->npi", gm, u)
    gx = _from_tiles(gv, INPUT_TRANSPOSED, t, s)[:, :h, :w]
    gu = jnp.einsum("npi,npo->nio", v, gm).reshape(6, 6, -1, o)
    return gx, _kernel_transform(KERNEL_TRANSFORM.T, gu)


_winograd.defvjp(_winograd_fwd, _winograd_bwd)
