"""How composite a kernel is, as Appendix A defines it; cells in the order of `grids`. Use signals:
of inverted bumps the constant makes rank 4."""

import numpy as np

from compgen_jax.metrics.anova import checked_gram

RANK_TOLERANCE = 1e-5  # of the largest singular value; float32 features carry 1e-7 of rounding


def operator_schmidt(gram_BxB, sizes, factor: int = 0):
    """Singular values, largest first, of K from the pairs of values of one factor to those of the
    others (Eq 1, 30). ValueError for a matrix that is not square over the grid, or 0."""
    pairs = np.moveaxis(_pairs_tensor(gram_BxB, sizes), factor, 0)
    return np.linalg.svd(pairs.reshape(len(pairs), -1), compute_uv=False)


def rank(values_K, tolerance: float = RANK_TOLERANCE) -> int:
    """Singular values, largest first, above `tolerance` times the first (Eq 16, 31)."""
    return int(np.sum(values_K > tolerance * values_K[0]))


def entropy(values_K) -> float:
    """Entropy in nats of the squared singular values, scaled to sum to 1; exp(entropy) counts
    the terms, from 1."""
    share_K = np.square(values_K) / np.sum(np.square(values_K))
    share_K = share_K[share_K > 0]
    return float(-np.sum(share_K * np.log(share_K)))


def hoeffding_share(gram_BxB, sizes) -> float:
    """Share, 0 to 1, of the squared Frobenius norm of a kernel in its mean and its parts that
    depend on the pair of one factor alone (Eq 35). Errors as above."""
    kernel, factors = _pairs_tensor(gram_BxB, sizes), range(len(sizes))
    means = [kernel.mean(axis=tuple(g for g in factors if g != f)) for f in factors]
    squares = sum(np.mean(mean**2) for mean in means)
    mean_square = squares - (len(sizes) - 1) * kernel.mean() ** 2
    return float(mean_square / np.mean(kernel**2))


def _pairs_tensor(gram_BxB, sizes):
    """K[(x, x'), (y, y'), ...], an axis for each factor."""
    kernel = checked_gram(gram_BxB, sizes).reshape(*sizes[::-1], *sizes[::-1])
    factors = len(sizes)
    axes = [axis for f in range(factors) for axis in (factors - 1 - f, 2 * factors - 1 - f)]
    return kernel.transpose(axes).reshape([size**2 for size in sizes])
