"""Ridge regressions against normal equations, and their penalties against refits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from compgen_jax.metrics import kernels, readout
from compgen_jax.metrics.readout import PENALTIES, compact, cross_fitted, ridge
from tests.metrics.test_decodability import rows
from tests.metrics.test_probes import explicit_ridge


@pytest.mark.parametrize(("features", "noise"), [(5, 0.0), (5, 1.0), (40, 1.0)])
def test_ridge_against_normal_equations_and_refits(features, noise, rng):
    """Fewer and more features than points: the penalty has the least error of actual refits, each
    without one point."""
    points = rng.normal(size=(14, features)) + 3
    targets = points[:, :2] + noise * rng.normal(size=(14, 2)) - 5
    (fit,) = ridge(points, [targets])
    weights, intercept = explicit_ridge(points, targets, fit.penalty)
    assert_allclose(fit.weights, weights, atol=1e-7)
    assert_allclose(fit.intercept, intercept, atol=1e-6)

    centred, small = points - points.mean(axis=0), compact(points)
    penalties = np.mean(np.linalg.svd(centred, compute_uv=False) ** 2) * PENALTIES
    errors = np.zeros(len(penalties))
    for k, i in np.ndindex(len(penalties), 14):
        others = np.arange(14) != i
        weights, intercept = explicit_ridge(points[others], targets[others], penalties[k])
        errors[k] += np.mean((points[i] @ weights + intercept - targets[i]) ** 2) / 14
    assert fit.penalty == pytest.approx(penalties[np.argmin(errors)])
    assert small.shape[1] <= min(points.shape)
    assert_allclose(small @ small.T, centred @ centred.T, atol=1e-10)


def refitted(features, targets, fitted, inner_folds, new):
    """Predictions of `new` rows by a ridge on `fitted` ones, by normal equations, its penalty the
    best when each inner fold is predicted by refits on the others."""

    def predict(fit, asked, penalty):
        centred = features[fit] - features[fit].mean(axis=0)
        unit = np.sum(centred**2) / np.linalg.matrix_rank(features - features.mean(axis=0))
        weights, intercept = explicit_ridge(features[fit], targets[fit], penalty * unit)
        return features[asked] @ weights + intercept

    errors = np.zeros(len(PENALTIES))
    for index, penalty in enumerate(PENALTIES):
        for k in np.unique(inner_folds[fitted]):
            left, kept = fitted & (inner_folds == k), fitted & (inner_folds != k)
            errors[index] += np.sum((targets[left] - predict(kept, left, penalty)) ** 2)
    return predict(fitted, new, PENALTIES[np.argmin(errors)])


@pytest.mark.parametrize("features", [7, 150])
def test_penalties_by_whole_folds_against_nested_refits(features):
    """Fewer and more features than rows; the two columns of the second target share a penalty."""
    layer, values, held_out, group = rows(features=features, factors=3)
    values[:, 2] += 3 * np.random.default_rng(1).normal(size=len(values))  # hard to read
    targets, small = [values[:, :1], values[:, 1:]], compact(layer)
    fold = np.where(held_out, -1, group % 4)
    predictions = readout.cross_fitted_by_folds(small, targets, fold, 4)
    for target, prediction in zip(targets, predictions, strict=True):
        for k in (-1, 0, 3):
            new, fitted = fold == k, ~held_out & (fold != k)
            wanted = refitted(small, target, fitted, fold, new)
            assert_allclose(prediction[new], wanted, atol=1e-6)


@pytest.mark.parametrize("features", [7, 150])
def test_rows_are_predicted_by_the_ridge_of_all_other_folds(features):
    layer, values, held_out, group = rows(features=features)
    layer[:, 9:] = 0  # of 150 features 9 vary
    fold, gram = np.where(held_out, -1, group % 3), kernels.gram(layer, center=True)
    small = compact(layer)
    (prediction,) = cross_fitted(gram, [values], fold, 3, features)
    for k in (-1, 0, 2):
        fitted = ~held_out & (fold != k)
        (fit,) = ridge(small[fitted], [values[fitted]])
        assert_allclose(prediction[fold == k], small[fold == k] @ fit.weights + fit.intercept)


def test_features_that_are_constant_where_fitted_predict_the_mean():
    features, fold = np.eye(6)[:, 5:], np.array([0, 1, 0, 1, 0, -1])
    (prediction,) = cross_fitted(kernels.gram(features, True), [np.eye(6)[:, :1]], fold, 2, 1)
    assert_allclose(prediction[:, 0], [0, 1 / 3, 0, 1 / 3, 0, 0.2])


def test_folds_keep_groups_whole_and_are_even(rng):
    _, _, held_out, group = rows(groups=31, each=3)
    fold = readout.folds_of(group, held_out, 5, rng)
    assert (fold[held_out] == -1).all() and set(fold[~held_out]) == set(range(5))
    pairs = set(zip(group[~held_out], fold[~held_out], strict=True))
    counts = np.bincount([k for _, k in pairs])
    assert counts.sum() == 31 - 8 and np.ptp(counts) <= 1
