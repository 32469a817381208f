"""How composite a map or a kernel is, as Appendix A defines it.

For any number of factors: cells are in the order of `grids`, whose sizes every function takes.
On known maps of two factors, N = 28, donut 6 to 22, sigma = 1, over all cells, and over the hole
alone, itself a grid:

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

import numpy as np

from compgen_jax.metrics.anova import checked_gram

RANK_TOLERANCE = 1e-5  # of the largest singular value; float32 features carry 1e-7 of rounding


def operator_schmidt(gram_BxB, sizes, factor: int = 0):
    """Singular values, largest first, of K as a map from the pairs of values of one factor,
    (x, x'), to those of the others, (y, y') (Eq 1, 30).

    One value only: K = k_x k_y. Of two factors either gives the same values. ValueError if the
    matrix is not square over the grid, or 0, or there is no such factor.
    """
    if not 0 <= factor < len(sizes):
        raise ValueError(f"factor must be from 0 to {len(sizes) - 1}, not {factor}")
    pairs = np.moveaxis(_pairs_tensor(gram_BxB, sizes), factor, 0)
    return np.linalg.svd(pairs.reshape(len(pairs), -1), compute_uv=False)


def distinct_factors(sizes) -> range:
    """The factors whose `operator_schmidt` differ: of two, the first stands for both."""
    return range(1 if len(sizes) == 2 else len(sizes))


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
    """Share, 0 to 1, of the squared Frobenius norm of a kernel in its lower-order terms (Eq 35).

    The terms are its mean and its parts that depend on the pair of one factor alone, (x, x') or
    (y, y') ...; the rest are interactions. ValueError for a matrix that is not square over the
    grid, or 0.
    """
    kernel, factors = _pairs_tensor(gram_BxB, sizes), range(len(sizes))
    of_one = [kernel.mean(axis=tuple(g for g in factors if g != f)) for f in factors]
    squares = sum(np.mean(each**2) for each in of_one)
    mean_square = squares - (len(sizes) - 1) * kernel.mean() ** 2
    return float(mean_square / np.mean(kernel**2))


def _pairs_tensor(gram_BxB, sizes):
    """K[(x, x'), (y, y'), ...], an axis for each factor."""
    kernel = checked_gram(gram_BxB, sizes).reshape(*sizes[::-1], *sizes[::-1])
    factors = len(sizes)
    axes = [axis for f in range(factors) for axis in (factors - 1 - f, 2 * factors - 1 - f)]
    return kernel.transpose(axes).reshape([size**2 for size in sizes])
