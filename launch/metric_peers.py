"""What `launch.benchmark` compares metrics with: SciPy and scikit-learn, on the same features."""

from functools import partial

import numpy as np
import scipy.linalg

from compgen_jax.metrics import kernels, readout, spectra

FOLDS = 5


def pairs_of(layer) -> dict[str, tuple]:
    """By name two functions that return the same array of one layer on a grid of two factors: ours
    and a peer's."""
    gram_BxB, centred_BxB = kernels.grams(layer.features)
    kernel = np.moveaxis(gram_BxB.reshape(layer.sizes[::-1] * 2), (1, 3), (0, 1))
    rank = np.linalg.matrix_rank(centred_BxB, rtol=readout.RELATIVE_NOISE, hermitian=True)
    rows = np.arange(len(gram_BxB))
    fold_B = readout.folds_of(rows, layer.held_out, FOLDS, np.random.default_rng(0))
    features, factors = (array.astype(np.float64) for array in (layer.features, layer.factors))
    return {
        "Schmidt values": (
            partial(spectra.singular_values_of_pairs, kernel),
            partial(scipy.linalg.svdvals, kernel.reshape(len(kernel) ** 2, -1)),
        ),
        "probe of the factors": (
            partial(probe, features, factors, fold_B),
            partial(ridges, features, factors, fold_B, rank=rank),
        ),
    }


def probe(features_BxD, factors_BxF, fold_B):
    """(B, F) predictions, of each fold by a ridge on the others."""
    centred_BxB = kernels.gram(features_BxD, center=True)
    targets, dimensions = np.split(factors_BxF, factors_BxF.shape[1], 1), features_BxD.shape[1]
    fitted = readout.cross_fitted(centred_BxB, targets, fold_B, FOLDS, dimensions)
    return np.concatenate(fitted, axis=1)


def ridges(features_BxD, factors_BxF, fold_B, rank: int):
    """The same by scikit-learn, which chooses among the same penalties, by leave-one-out too."""
    from sklearn.linear_model import RidgeCV

    predictions_BxF = np.empty_like(factors_BxF)
    for fold in (*range(FOLDS), -1):
        fitted, new = (fold_B >= 0) & (fold_B != fold), fold_B == fold
        known_NxD = features_BxD[fitted]
        squares = np.sum((known_NxD - known_NxD.mean(axis=0, keepdims=True)) ** 2)
        penalties = squares / min(len(known_NxD), rank) * readout.PENALTIES
        for factor, values_N in enumerate(factors_BxF[fitted].T):
            model = RidgeCV(penalties).fit(known_NxD, values_N)
            predictions_BxF[new, factor] = model.predict(features_BxD[new])
    return predictions_BxF
