"""How many dimensions a layer uses: the spectrum of its covariance (E18 to E20)."""

import math

import numpy as np

RANK_TOLERANCE = 1e-3  # of the largest eigenvalue
ENERGY = 0.99
LANCZOS_STEPS, NEWTON_STEPS = 12, 18
VANISHING = 1e-12  # of a matrix's squares
UNCERTAIN = 1e-10  # of an eigenvalue


def spectrum(centred_BxB) -> dict:
    """Dimensions of features with this centred Gram matrix, by the eigenvalues l of the covariance:
    those above `RANK_TOLERANCE` of the largest, the fewest that sum to `ENERGY` of the total, and
    (sum l)^2 / sum l^2."""
    eigenvalues = np.maximum(np.linalg.eigvalsh(centred_BxB)[::-1], 0)
    total = np.cumsum(eigenvalues)
    return {
        "numerical_rank": np.sum(eigenvalues > RANK_TOLERANCE * eigenvalues[0]),
        "energy_rank": np.searchsorted(total, ENERGY * total[-1]) + 1,
        "participation_ratio": np.sum(eigenvalues) ** 2 / np.sum(np.square(eigenvalues)),
    }


def singular_values_of_pairs(pairs):
    """Singular values, largest first, of a kernel (V, V, ...) from pairs of values of one factor to
    pairs of the others. Swapping both pairs changes nothing, so symmetric and antisymmetric ones do
    not mix."""
    size, others = len(pairs), math.isqrt(pairs.size // len(pairs) ** 2)
    pairs, values = pairs.reshape(size, size, others, others), []
    for sign in (1, -1):
        both = pairs + sign * pairs.swapaxes(0, 1)
        rows, columns = (np.triu_indices(n, k=int(sign < 0)) for n in (size, others))
        block = both[rows][:, *columns]
        for axis, (first, second) in enumerate((rows, columns)):
            block *= np.expand_dims(np.where(first == second, np.sqrt(0.5), 1), 1 - axis)
        values.append(np.linalg.svd(block, compute_uv=False))
    return np.sort(np.concatenate(values))[::-1]


def largest_squares(matrices_DxYxX):
    """(D,) squared largest singular values of D matrices, by Lanczos's method; where that does not
    converge, by eigendecompositions."""
    total_D = np.einsum("dyx,dyx->d", matrices_DxYxX, matrices_DxYxX)
    start_X = np.random.default_rng(0).normal(size=matrices_DxYxX.shape[2])
    vector_DxX = np.tile(start_X / np.linalg.norm(start_X), (len(total_D), 1))
    before_DxX, diagonal, couplings = 0.0, [], [np.zeros_like(total_D)]
    for _ in range(LANCZOS_STEPS):
        through_DxYx1 = matrices_DxYxX @ vector_DxX[..., None]
        next_DxX = (through_DxYx1.swapaxes(1, 2) @ matrices_DxYxX)[:, 0]
        diagonal.append(np.einsum("dx,dx->d", vector_DxX, next_DxX))
        next_DxX -= diagonal[-1][:, None] * vector_DxX + couplings[-1][:, None] * before_DxX
        length_D = np.linalg.norm(next_DxX, axis=1)
        # below it nothing is left but rounding, and the vector becomes 0
        couplings.append(np.where(length_D > VANISHING * total_D, length_D, 0))
        divisor_D = np.where(couplings[-1] > 0, couplings[-1], np.inf)
        before_DxX, vector_DxX = vector_DxX, next_DxX / divisor_D[:, None]
    largest_D, error_D = largest_of_tridiagonals(np.stack(diagonal), np.stack(couplings))
    uncertain = error_D > UNCERTAIN * largest_D
    matrices = matrices_DxYxX[uncertain]
    largest_D[uncertain] = np.linalg.eigvalsh(matrices @ matrices.swapaxes(1, 2))[:, -1]
    return largest_D


def largest_of_tridiagonals(diagonal_KxD, couplings_KxD) -> tuple:
    """(D,) largest eigenvalues of D positive semidefinite tridiagonal matrices, by Newton's method
    from above, and what they may be off as those of larger ones, by Temple's bound for a gap as
    large as the eigenvalue. couplings: (K + 1, D), of each entry with the one before and, the last,
    with what the larger matrix goes on with."""
    squared_KxD = couplings_KxD**2
    scale_D = np.sqrt(np.sum(diagonal_KxD**2 + 2 * squared_KxD[:-1], axis=0))
    positive_D = np.where(scale_D > 0, scale_D, 1)
    diagonal_KxD, squared_KxD = diagonal_KxD / positive_D, squared_KxD / positive_D**2
    value_D = np.ones(len(scale_D))
    for _ in range(NEWTON_STEPS):
        # of the leading minors' characteristic polynomials the value and the slope
        before_2xD, now_2xD = np.zeros((2, len(value_D))), np.zeros((2, len(value_D)))
        now_2xD[0] = 1
        for entry_D, square_D in zip(diagonal_KxD, squared_KxD[:-1], strict=True):
            next_2xD = (entry_D - value_D) * now_2xD - square_D * before_2xD
            next_2xD[1] -= now_2xD[0]
            before_2xD, now_2xD = now_2xD, next_2xD
        step_D = now_2xD[0] / now_2xD[1]
        value_D = value_D - step_D
    # of the eigenvector's last entry the square is the ratio of these
    residual_D = squared_KxD[-1] * np.abs(before_2xD[0] / now_2xD[1])
    return value_D * scale_D, (residual_D / value_D + np.abs(step_D)) * scale_D


def exp_entropy(values_xK):
    """(...) exp(entropy) of the shares of the squared values: from 1, a single one, to K, all
    equal; NaN of zeros."""
    total = np.sum(values_xK**2, axis=-1, keepdims=True)
    share_xK = values_xK**2 / np.where(total > 0, total, np.nan)
    log_xK = np.log(np.where(share_xK > 0, share_xK, 1))
    return np.exp(-np.sum(share_xK * log_xK, axis=-1))
