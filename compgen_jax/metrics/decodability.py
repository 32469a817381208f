"""Which factors can be read off the layers of any network, and does success go with it?"""

from functools import partial
from typing import NamedTuple

import numpy as np

from compgen_jax.metrics.kernels import check_finite
from compgen_jax.metrics.readout import compact, cross_fitted_by_folds, folds_of
from compgen_jax.statistics import jackknife_interval, mean_of_known

FOLDS = 5  # of whole ID groups
SHUFFLES = 3  # permutations that the control is the mean of
CONSTANT = 1e-12  # a target that varies by less, relative to its size, is constant
LARGEST = 1e100  # of layers and factors: sums of their squares must stay finite
# Mean scores that differ by less are equal: a layer of .99997 tells no more than one of .99995.
TIED = 1e-3


class Decoded(NamedTuple):
    """What `decode` measures of L layers and F factors: measures, 'r2' or 'auc'; scores (L, F) by
    'id', 'ood', 'shuffled.id', 'shuffled.ood'; without (L, F, S): those without each of S groups;
    chosen: the earliest layer whose mean ID score is within `TIED` of the best; quality (L, B), how
    well each row's factors are decoded, NaN where unknown."""

    layers: tuple
    measures: tuple
    scores: dict
    without: dict
    chosen: str
    quality: np.ndarray


def decode(layers, factors_BxF, held_out_B, groups_B=None, classes=None) -> Decoded:
    """Linear decodability of every factor from every layer, on ID rows left out and on OOD rows.

    layers: {name: (B, ...)}.  factors: (B, F).  held_out: (B,) bool.
    groups: (B,) labels of what belongs together, each all ID or all OOD; None: every row alone.
    classes: of each factor, whether its values are labels. None: of those with exactly two.

    Ridge regressions; ID scores by fits on the other folds, OOD scores by one on all ID rows. R^2
    is around the region's own mean; AUC over pairs of rows of one fold; 'shuffled.' with the ID
    groups' targets permuted. NaN for a constant target. ValueError for bad rows.
    """
    layers, factors, held_out, groups = _checked_rows(layers, factors_BxF, held_out_B, groups_B)
    measures, targets = _targets(factors, held_out, classes)
    rng = np.random.default_rng(0)
    fold_B = folds_of(groups, held_out, FOLDS, rng)
    donors = [_donors(groups, held_out, rng) for _ in range(SHUFFLES)]
    versions = [targets, *([target[donor] for target in targets] for donor in donors)]
    masks, count = {"id": ~held_out, "ood": held_out}, len(targets)

    by_layer, qualities = [], []
    for features in layers.values():
        fitted = cross_fitted_by_folds(compact(features), sum(versions, []), fold_B, FOLDS)
        predicted = [fitted[k : k + count] for k in range(0, len(fitted), count)]
        pairs = zip(versions, predicted, strict=True)
        by_layer.append([_scores(*pair, measures, masks, fold_B, groups) for pair in pairs])
        qualities.append(_quality(targets, predicted[0], measures, held_out))

    scores, without = {}, {}
    for region in masks:
        every = np.array([[scored[region] for scored in of_layer] for of_layer in by_layer])
        scores[region], without[region] = every[:, 0, :, 0], every[:, 0, :, 1:]
        scores[f"shuffled.{region}"] = every[:, 1:, :, 0].mean(axis=1)
    mean_L = mean_of_known(scores["id"])
    chosen = tuple(layers)[int(np.argmax(mean_L > np.max(mean_L) - TIED))]
    return Decoded(tuple(layers), measures, scores, without, chosen, np.stack(qualities))


def means(decoded: Decoded, region: str, factors=slice(None)) -> list[dict]:
    """{'value', 'ci95'} of each layer: the mean over all or some factors in the region, with a
    delete-a-group jackknife interval; 'shuffled.' ones have none."""
    value_L = mean_of_known(decoded.scores[region][:, factors])
    ends_Lx2 = np.full((len(value_L), 2), np.nan)
    if region in decoded.without:
        without_LxS = mean_of_known(np.moveaxis(decoded.without[region][:, factors], 1, -1))
        ends_Lx2 = jackknife_interval(value_L, without_LxS, most=1)
    return [
        {"value": float(value), "ci95": ends.tolist()}
        for value, ends in zip(value_L, ends_Lx2, strict=True)
    ]


def success_correlation(quality_B, success_B, held_out_B, groups_B=None) -> dict:
    """Spearman's correlation over held-out rows of `Decoded.quality` with success, {'value',
    'ci95'}, by jackknife in Fisher's z; NaN where one side is constant."""
    quality, success = np.asarray(quality_B, np.float64), np.asarray(success_B, np.float64)
    held_out = np.asarray(held_out_B, bool)
    groups = np.arange(len(quality)) if groups_B is None else np.asarray(groups_B)
    if success.shape != quality.shape:
        raise ValueError(f"success {success.shape} for {len(quality)} rows")
    check_finite("success", success[held_out])
    used = held_out & ~np.isnan(quality)
    quality, success = quality[used], success[used]

    def correlation(rows):
        first, second = midranks(quality[rows]), midranks(success[rows])
        if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
            return np.nan
        first, second = first - first.mean(), second - second.mean()
        return first @ second / np.sqrt((first @ first) * (second @ second))

    full = correlation(slice(None))
    _, group = np.unique(groups[used], return_inverse=True)
    without = [correlation(group != g) for g in np.unique(group)]
    z_full, *z = np.arctanh(np.clip([full, *without], -1 + 1e-12, 1 - 1e-12))
    ends = np.tanh(jackknife_interval(z_full, z))
    return {"value": float(full), "ci95": ends.tolist()}


def midranks(values_B, strata_B=None):
    """(B,) ranks from 1 within each stratum, ties at their mean rank."""
    from scipy.stats import rankdata  # takes a fifth of a second to import

    _, value = np.unique(values_B, return_inverse=True)
    strata_B = np.zeros(len(values_B), int) if strata_B is None else strata_B
    _, stratum = np.unique(strata_B, return_inverse=True)
    sizes = np.bincount(stratum)
    ranks = rankdata(stratum * len(value) + value)
    return ranks - (np.cumsum(sizes) - sizes)[stratum]


def _scores(targets, predictions, measures, masks, fold_B, groups_B) -> dict:
    """{region: (F, 1 + S)}: scores, and those without each group."""
    scores = {}
    for region, mask in masks.items():
        _, group = np.unique(groups_B[mask], return_inverse=True)
        rows = []
        for target, prediction, measure in zip(targets, predictions, measures, strict=True):
            columns = [
                _r2(target[mask, c], prediction[mask, c], group)
                if measure == "r2"
                else _auc(target[mask, c] > 0, prediction[mask, c], fold_B[mask], group)
                for c, column in enumerate(target[masks["id"]].T)
                if not _constant(column)
            ]
            rows.append(mean_of_known(np.reshape(columns, (len(columns), 2 + group.max())).T))
        scores[region] = np.array(rows)
    return scores


def _r2(targets, predictions, group):
    if _constant(targets):
        return np.full(2 + group.max(), np.nan)
    summed = partial(np.bincount, group)
    around, error = targets - targets.mean(), (targets - predictions) ** 2
    total = np.sum(around**2)
    others = len(targets) - np.bincount(group)
    totals = total - summed(around**2) - summed(around) ** 2 / np.where(others, others, np.nan)
    totals[~(totals > CONSTANT * total)] = np.nan
    without = 1 - (error.sum() - summed(error)) / totals
    return np.array([1 - error.sum() / total, *without])


def _auc(positive, predictions, strata, group):
    """(1 + S,) over pairs of one stratum."""
    summed, counted = partial(np.bincount, group), []
    for within in (strata, group):  # of each row: pairs with the other label, and those it wins
        _, stratum = np.unique(within, return_inverse=True)
        side = 2 * stratum + positive
        below = midranks(predictions, stratum) - midranks(predictions, side)
        pairs = np.bincount(side, minlength=2 * stratum.max() + 2)[2 * stratum + ~positive]
        counted.append((np.where(positive, below, pairs - below), pairs))
    (wins, pairs), (wins_within, pairs_within) = counted
    total, count = wins[positive].sum(), pairs[positive].sum()
    totals = [total, *(total - summed(wins) + summed(wins_within * positive))]
    counts = np.array([count, *(count - summed(pairs) + summed(pairs_within * positive))])
    return totals / np.where(counts > 0, counts, np.nan)


def _quality(targets, predictions, measures, held_out):
    parts = []
    for target, prediction, measure in zip(targets, predictions, measures, strict=True):
        if all(_constant(column) for column in target[~held_out].T):
            continue
        if measure == "r2":
            parts.append(-((target - prediction)[:, 0] ** 2) / target[~held_out].var())
        else:
            parts.append(_margin(target, prediction, held_out))
    return mean_of_known(np.stack(parts, axis=1))


def _margin(labels_BxK, predictions_BxK, held_out):
    """(B,) how far the true label's prediction is above the largest of the others, centred by label
    and at most the mean over the label's ID rows; NaN for a label that no ID row has."""
    if labels_BxK.shape[1] == 1:
        labels_BxK = np.concatenate([1 - labels_BxK, labels_BxK], axis=1)
        predictions_BxK = np.concatenate([1 - predictions_BxK, predictions_BxK], axis=1)
    with_K, seen = labels_BxK[~held_out], predictions_BxK[~held_out]
    known = with_K.any(axis=0)
    labels, with_K = labels_BxK[:, known], with_K[:, known]
    share = with_K.mean(axis=0)
    present = (with_K * seen[:, known]).mean(axis=0) / share
    absent = ((1 - with_K) * seen[:, known]).mean(axis=0) / (1 - share)
    heights = predictions_BxK[:, known] - (present + absent) / 2
    true = np.sum(labels * heights, axis=1)
    margin = true - np.where(labels > 0, -np.inf, heights).max(axis=1)
    typical_K = np.maximum((with_K * margin[~held_out, None]).mean(axis=0) / share, 0)
    return np.where(labels.any(axis=1), np.minimum(margin, labels @ typical_K), np.nan)


def _targets(factors, held_out, classes):
    """Measures, and for each factor (B, K) columns to be fitted."""
    count = factors.shape[1]
    two = np.array([len(np.unique(values)) == 2 for values in factors.T])
    labels = two if classes is None else np.asarray(classes, bool)
    if labels.shape != (count,):
        raise ValueError(f"classes {classes} for {count} factors")
    measures, targets = [], []
    for values, label in zip(factors.T, labels, strict=True):
        kinds, index = np.unique(values, return_inverse=True)
        measures.append("auc" if label else "r2")
        if label and len(kinds) == 2:
            targets.append(index[:, None].astype(np.float64))
        else:
            targets.append(np.eye(len(kinds))[index] if label else values[:, None])
    if all(_constant(column) for target in targets for column in target[~held_out].T):
        raise ValueError("every factor is constant among the ID rows")
    return tuple(measures), targets


def _checked_rows(layers, factors_BxF, held_out_B, groups_B):
    factors, held_out = np.asarray(factors_BxF, np.float64), np.asarray(held_out_B, bool)
    if factors.ndim != 2 or 0 in factors.shape or held_out.shape != factors.shape[:1]:
        raise ValueError(f"factors {factors.shape} and held_out {held_out.shape}: (B, F) and (B,)")
    groups = np.arange(len(factors)) if groups_B is None else np.asarray(groups_B)
    if groups.shape != held_out.shape:
        raise ValueError(f"groups {groups.shape} for {len(factors)} rows")
    arrays = {"factors": factors} | {f"layer {name}": layer for name, layer in layers.items()}
    for name, array in arrays.items():
        if np.ndim(array) < 1 or len(array) != len(factors) or np.size(array) == 0:
            raise ValueError(f"{name} {np.shape(array)} for {len(factors)} rows")
        check_finite(name, np.asarray(array))
        if (largest := float(np.abs(array).max())) > LARGEST:
            hint = "their squares would overflow; divide them by a constant"
            raise ValueError(f"{name}: values reach {largest:.2g}: {hint}")
    _, groups = np.unique(groups, return_inverse=True)
    both = np.intersect1d(groups[held_out], groups[~held_out])
    if len(both):
        seen, new = (np.argmax((groups == both[0]) & side) for side in (~held_out, held_out))
        raise ValueError(f"a group is ID at row {seen} and held out at row {new}")
    count = len(np.unique(groups[~held_out]))
    if count < 2 * FOLDS:
        raise ValueError(f"{count} ID groups: {FOLDS} folds need at least {2 * FOLDS}")
    if not held_out.any():
        raise ValueError("no row is held out")
    rows = {name: np.reshape(layer, (len(factors), -1)) for name, layer in layers.items()}
    return rows, factors, held_out, groups


def _donors(groups, held_out, rng):
    """(B,) the row whose target each row gets, of another ID group; OOD rows keep theirs."""
    donor_B = np.arange(len(groups))
    seen = np.flatnonzero(~held_out)
    order = seen[np.argsort(groups[seen], kind="stable")]
    members = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    for rows, donor in zip(members, rng.permutation(len(members)), strict=True):
        donor_B[rows] = np.resize(members[donor], len(rows))
    return donor_B


def _constant(values) -> bool:
    return bool(np.ptp(values) <= CONSTANT * np.abs(values).max())
