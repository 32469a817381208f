"""How composite a map or a kernel is, as Appendix A defines it.

Grids are row-major, y outer: point y * N + x. On known maps at N = 28, donut 6 to 22, sigma = 1,
over all cells, and over the hole alone, itself a square grid:

    Gram matrix of   Schmidt rank   exp(entropy)   0.1-rank   interaction share
    true bump          1 |   1       1.00 | 1.00     1 |   1      .77 | .65
    plus               4 |   2       1.18 | 1.14     2 |   2        0 | 0
    lookup             9 |   4       1.74 | 1.37     3 |   2      .65 | 0
    iid noise        784 | 289       43.5 | 7.1    558 | 187      .93 | .89
    bump code          2 |   2       1.52 | 1.36     2 |   2        0 | 0

All but the noise's ranks hold for tolerances from 1e-3 to 1e-8; above 1.3e-3 the plus has rank
2, its other two terms being effects of the border. So rank and entropy over all cells separate
the four maps; the interaction share over the hole separates composition from superposition (plus
and lookup alike) and from noise. Pixel noise of 1% of the amplitude, as of a well-fitted decoder,
leaves the entropy terms at 1.10, 1.18 and 1.88 and the share at .65, 0 and .08, but not the rank,
which counts the noise; at 3% (2.00, 1.18, 3.08; .69, .01, .42) the entropy fails too.
Use signals: on inverted bumps the constant makes rank 4 of 1 and hides the rest.
"""

from math import isqrt
from typing import NamedTuple

import numpy as np

from compgen_jax.analysis.kernels import BLOCK, check_finite

RANK_TOLERANCE = 1e-5  # of the largest singular value; float32 features carry 1e-7 of rounding


class AnovaShares(NamedTuple):
    """x, y, interaction: shares (D,) of each unit's variance, which sum to 1 and are NaN where
    `varies` (D,) is False; `variance` (D,)."""

    x: np.ndarray
    y: np.ndarray
    interaction: np.ndarray
    variance: np.ndarray
    varies: np.ndarray


def anova_shares(maps_NxNxD) -> AnovaShares:
    """Share of every unit's variance over the grid in x alone, y alone and their interaction.

    Two-way analysis of variance with one observation per cell (A.2, Figure 15). `maps[y, x]` are
    the units' activations at (x, y). A unit whose standard deviation is below 1e-7 of its root
    mean square does not vary. ValueError if the maps are not a finite (N >= 2, N, D).
    """
    maps = np.asarray(maps_NxNxD)
    if maps.ndim != 3 or maps.shape[0] != maps.shape[1] or maps.shape[0] < 2:
        raise ValueError(f"maps must be (N >= 2, N, D), not {maps.shape}")
    check_finite("maps", maps)
    parts = [_anova(maps[..., s : s + BLOCK]) for s in range(0, maps.shape[2], BLOCK)]
    x, y, interaction, mean_square = np.concatenate(parts, axis=1)
    variance = x + y + interaction
    varies = variance > 1e-14 * mean_square
    total = np.where(varies, variance, np.nan)
    return AnovaShares(x / total, y / total, interaction / total, variance, varies)


def _anova(maps_NxNxD):
    maps = maps_NxNxD.astype(np.float64)
    mean_square_D = np.mean(maps**2, axis=(0, 1))
    maps -= maps.mean(axis=(0, 1), keepdims=True)
    of_x, of_y = maps.mean(axis=0, keepdims=True), maps.mean(axis=1, keepdims=True)
    terms = (of_x, of_y, maps - of_x - of_y)
    return np.stack([*(np.mean(term**2, axis=(0, 1)) for term in terms), mean_square_D])


class KernelAnova(NamedTuple):
    """Shares of a Gram matrix's trace, which sum to 1."""

    constant: float
    x: float
    y: float
    interaction: float


def kernel_anova(gram_BxB) -> KernelAnova:
    """Traces of P K P over that of K for the projections on functions of nothing, x alone, y
    alone and the rest (Hoeffding).

    The features' `anova_shares`, weighted by variance, with the squared mean as a fourth part.
    ValueError if the matrix is not square over a grid, or 0.
    """
    kernel_yxyx = _over_grid(gram_BxB)
    grid = len(kernel_yxyx)
    total = np.einsum("yxyx->", kernel_yxyx)
    constant = kernel_yxyx.sum() / grid**2
    x = np.einsum("yxzx->", kernel_yxyx) / grid - constant
    y = np.einsum("yxyw->", kernel_yxyx) / grid - constant
    parts = (constant, x, y, total - constant - x - y)
    return KernelAnova(*(float(part / total) for part in parts))


def operator_schmidt(gram_BxB):
    """Singular values (N^2,), largest first, of K as a map from (x, x') to (y, y') (Eq 1, 30).

    One value only: K = k_x k_y. ValueError if the matrix is not square over a grid, or 0.
    """
    return np.linalg.svd(_pairs_matrix(gram_BxB), compute_uv=False)


def rank(values_K, tolerance: float = RANK_TOLERANCE) -> int:
    """Singular values, largest first, above `tolerance` times the first (Eq 16, 31)."""
    return int(np.sum(values_K > tolerance * values_K[0]))


def epsilon_rank(values_K, epsilon: float) -> int:
    """Fewest singular values whose tail has at most epsilon^2 of the energy (Eq 17)."""
    energy_K = np.square(values_K)
    tail_K = np.append(np.cumsum(energy_K[::-1])[::-1], 0)
    return int(np.argmax(tail_K <= epsilon**2 * tail_K[0]))


def entropy(values_K) -> float:
    """Entropy in nats of the squared singular values, scaled to sum to 1; exp(entropy) counts
    the terms, from 1."""
    share_K = np.square(values_K) / np.sum(np.square(values_K))
    share_K = share_K[share_K > 0]
    return float(-np.sum(share_K * np.log(share_K)))


def explained_fraction(gram_BxB, basis: str) -> float:
    """Share of the squared Frobenius norm of a kernel in its lower-order terms, 0 to 1 (Eq 33, 35).

    The terms are, in `basis` 'hoeffding', its mean and its parts that depend on (x, x') alone
    and on (y, y') alone, against their interaction; in 'schmidt', the first product k_x k_y,
    against the others; in 'products', its projection on {1, d_xx', d_yy'}, against all else,
    d_xx' d_yy' (pure memorization) included. Centre the features to leave the mean out.
    ValueError for another basis or a matrix that is not square over a grid, or 0.
    """
    kernel = _pairs_matrix(gram_BxB)
    if basis == "schmidt":
        energy = np.linalg.svd(kernel, compute_uv=False) ** 2
        return float(energy[0] / energy.sum())
    if basis == "hoeffding":
        of_x, of_y = kernel.mean(axis=1), kernel.mean(axis=0)
        mean_square = np.mean(of_x**2) + np.mean(of_y**2) - kernel.mean() ** 2
        return float(mean_square / np.mean(kernel**2))
    if basis == "products":
        same = np.eye(isqrt(len(kernel))).ravel()
        terms = np.ones(kernel.size), np.repeat(same, len(same)), np.tile(same, len(same))
        along = np.linalg.qr(np.stack(terms, axis=1))[0].T @ kernel.ravel()
        return float(np.sum(along**2) / np.sum(kernel**2))
    raise ValueError(f"basis must be 'hoeffding', 'schmidt' or 'products', not {basis!r}")


class TargetRank(NamedTuple):
    """rank, epsilon_rank (H, W) int: 0 at a pixel that is 0 everywhere. Take their maximum."""

    rank: np.ndarray
    epsilon_rank: np.ndarray


def target_rank(
    signals_BxHxW, tolerance: float = RANK_TOLERANCE, epsilon: float = 0.1
) -> TargetRank:
    """Rank of each pixel's value as a matrix over the grid, f_p(y, x) (Eq 13 to 17).

    `tolerance` and `epsilon` are relative to that pixel's own matrix. An upright bump has rank 1
    at every pixel, an inverted bump and a plus 2. ValueError if the images are not finite over
    every cell of a square grid.
    """
    signals = np.asarray(signals_BxHxW, np.float64)
    grid = isqrt(len(signals))
    if signals.ndim != 3 or grid**2 != len(signals):
        raise ValueError(f"signals must be (N*N, H, W), not {signals.shape}")
    check_finite("signals", signals)
    maps_PxNxN = signals.reshape(grid, grid, -1).transpose(2, 0, 1)
    values_PxN = np.linalg.svd(maps_PxNxN, compute_uv=False)
    exact = [rank(values, tolerance) for values in values_PxN]
    approximate = [epsilon_rank(values, epsilon) for values in values_PxN]
    shape = signals.shape[1:]
    return TargetRank(np.reshape(exact, shape), np.reshape(approximate, shape))


class DistributionRank(NamedTuple):
    """kl (nats) and total_variation (0 to 1), (K,): distance to a law of the best mixture of
    k = 1..K products, best by KL."""

    kl: np.ndarray
    total_variation: np.ndarray


def distribution_rank(
    law_NxN, max_rank: int = 4, starts: int = 8, steps: int = 2000
) -> DistributionRank:
    """How well mixtures of k products p(x) q(y) match a law of (x, y), against k (Eq 18 to 20).

    Nonnegative factorization by multiplicative updates that lower KL(law || mixture), the best of
    several fixed starts, so an upper bound. `law` holds weights or counts, scaled to sum to 1.
    ValueError if it is not finite and nonnegative, or sums to 0.
    """
    law = np.asarray(law_NxN, np.float64)
    if law.ndim != 2 or not np.isfinite(law).all() or (law < 0).any() or not law.any():
        raise ValueError("law must be a matrix of finite weights, none below 0 and not all 0")
    law = law / law.sum()
    fits = [_mixture(law, k, starts, steps) for k in range(1, max_rank + 1)]
    kl, total_variation = np.transpose([_distances(law, fit) for fit in fits])
    return DistributionRank(kl, total_variation)


def _mixture(law, k, starts, steps):
    """Expectation maximization: left[c, i] is p(c, y_i), right[c, j] is p(x_j | c)."""
    rng = np.random.default_rng(k)
    left, right = (rng.uniform(0.5, 1.5, (starts, k, n)) for n in law.shape)
    tiny = np.finfo(np.float64).tiny
    for _ in range(steps):
        right /= np.maximum(right.sum(axis=2, keepdims=True), tiny)
        ratio = law / np.maximum(left.transpose(0, 2, 1) @ right, tiny)
        left, right = left * (right @ ratio.transpose(0, 2, 1)), right * (left @ ratio)
    right /= np.maximum(right.sum(axis=2, keepdims=True), tiny)
    return min(left.transpose(0, 2, 1) @ right, key=lambda fit: _distances(law, fit)[0])


def _distances(law, mixture):
    seen = law > 0
    kl = np.sum(law[seen] * np.log(law[seen] / mixture[seen]))
    return kl, np.abs(law - mixture).sum() / 2


def cp_errors(gram_BxB, sizes, max_rank: int, starts: int = 4):
    """Relative Frobenius error of the best k products of single-factor kernels, k = 1..K; (K,).

    For any number of factors (Eq 30, 31); the CP rank is the first k whose error vanishes. For
    two factors `operator_schmidt` is exact; this is alternating least squares from fixed starts,
    so an upper bound. Two products come as close as one likes to a sum of single-factor kernels:
    read the errors, not only the rank. Points are row-major over `sizes`, the first factor
    outermost. ImportError without the optional extra `decomposition`; ValueError if the sizes do
    not match the matrix.
    """
    try:
        import tensorly
        from tensorly.decomposition import parafac
    except ImportError as error:
        raise ImportError(
            "cp_errors needs tensorly: install the extra, compgen_jax[decomposition]"
        ) from error
    gram_BxB, factors = _checked_gram(gram_BxB), len(sizes)
    if np.prod(sizes) != len(gram_BxB):
        raise ValueError(f"sizes {tuple(sizes)} do not make {len(gram_BxB)} points")
    axes = [axis for factor in range(factors) for axis in (factor, factor + factors)]
    tensor = gram_BxB.reshape(*sizes, *sizes).transpose(axes).reshape([n * n for n in sizes])
    tensor = tensor / np.linalg.norm(tensor)
    # the penalty keeps the updates solvable where k exceeds the rank
    settings = {"init": "random", "n_iter_max": 500, "tol": 1e-12, "l2_reg": 1e-12}

    def error(k, start):
        fit = parafac(tensor, k, random_state=start, **settings)
        return np.linalg.norm(tensor - tensorly.cp_to_tensor(fit))

    return np.array([min(error(k, s) for s in range(starts)) for k in range(1, max_rank + 1)])


def _checked_gram(gram_BxB):
    gram_BxB = np.asarray(gram_BxB, np.float64)
    if gram_BxB.ndim != 2 or gram_BxB.shape[0] != gram_BxB.shape[1]:
        raise ValueError(f"gram must be square, not {gram_BxB.shape}")
    check_finite("gram", gram_BxB)
    if not gram_BxB.any():
        raise ValueError("gram is 0: the features are constant or dead")
    return gram_BxB


def _over_grid(gram_BxB):
    """K[y, x, y', x']."""
    gram_BxB = _checked_gram(gram_BxB)
    grid = isqrt(len(gram_BxB))
    if grid**2 != len(gram_BxB):
        raise ValueError(f"gram: {len(gram_BxB)} points are no square grid")
    return gram_BxB.reshape(grid, grid, grid, grid)


def _pairs_matrix(gram_BxB):
    """K[(x, x'), (y, y')]."""
    kernel_yxyx = _over_grid(gram_BxB)
    return kernel_yxyx.transpose(1, 3, 0, 2).reshape(len(gram_BxB), len(gram_BxB))
