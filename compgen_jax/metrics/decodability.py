"""Which factors can be read off the layers of any network, and does success go with it?

For activations that someone brings: rows in any order, in groups that belong together (images of
one prompt, points of one task), of which a split never parts two. `probes` is for cells of a grid.

The authors of "Scale leads to compositional generalization" decode constituents from the layers
of text-to-image models, take the layer of best test F1, and rank the models' images by grades;
decodability and grades are never joined. Here the layer is chosen on ID rows alone, and
`success_correlation` joins the two row by row.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from compgen_jax.metrics.kernels import check_finite
from compgen_jax.metrics.probes import PENALTIES, compact
from compgen_jax.statistics import jackknife_interval

REGIONS = ("id", "ood")
SHUFFLES = 3  # permutations that the control is the mean of
CONSTANT = 1e-12  # a target that varies by less, relative to its size, is constant
# Mean scores that differ by less are equal: a layer of .99997 tells no more than one of .99995.
TIED = 1e-3


class Decoded(NamedTuple):
    """What `decode` finds of L layers and F factors.

    layers: names, in the order given.
    measures: of each factor, 'r2' or 'auc'.
    scores: (L, F) arrays 'id', 'ood', 'shuffled.id' and 'shuffled.ood'.
    intervals: (L, F, 2) arrays 'id' and 'ood', 95%; NaN where a score, or that without one of the
      groups, has no value.
    without: (L, F, S) arrays 'id' and 'ood', the scores without each of the region's S groups.
    chosen: the name of the earliest layer whose mean ID score is within `TIED` of the best.
    quality: (L, B), how well each row's factors are decoded from a layer: the mean over the
      factors of minus the squared error over the ID rows' variance or, of a class, of the margin
      (`_margin`). Of ID rows by the fit that has not seen them. NaN where nothing is known.
    """

    layers: tuple
    measures: tuple
    scores: dict
    intervals: dict
    without: dict
    chosen: str
    quality: np.ndarray


def decode(
    layers, factors_BxF, held_out_B, groups_B=None, folds: int = 5, seed: int = 0, classes=None
) -> Decoded:
    """Linear decodability of every factor from every layer, on ID rows left out and on OOD rows.

    Args:
      layers: {name: (B, ...)}, any number of features.  factors: (B, F).  held_out: (B,) bool.
      groups: (B,) labels of what belongs together, each all ID or all OOD; None: every row alone.
      folds: of the ID groups, whole, assigned at random from `seed`.
      classes: of each factor, whether its values are labels. None: of those with exactly two.

    The readout is a ridge regression. Its penalty, one for each factor and fit, has the least
    squared error over the fitted folds, each predicted from the others: only fitted rows decide.
    ID scores are of each fold's rows by a fit on the other folds, OOD scores of one on all ID rows.

    R^2 is 1 - squared error / variance around the region's own mean: 1 is exact, 0 as good as that
    mean, and it can be negative. AUC is the share of pairs of rows, one with the label and one
    without, that the readout orders, ties a half: 1 is exact, 0.5 chance; of a label among many,
    that label against the others, the mean over the labels. ID pairs are of one fold, as readouts
    of two folds differ by offsets that push the AUC of no information below 0.5. NaN where a target
    is constant in the region or among the ID rows, where nothing can be fitted.

    'shuffled.' is the mean over 3 permutations of the ID groups' targets, whole groups at a time
    (of a donor with fewer rows they repeat); OOD rows keep their own. Intervals are by
    delete-a-group jackknife, of readouts and a layer as they are: what other ID rows would have
    fitted is not in them. Time is that of 16 eigenvalue problems of size min(B, D) for each layer.

    ValueError for shapes that do not match, values that are not finite, fewer than 3 folds or ID
    groups than twice the folds, no held-out row, a group on both sides and constant factors.
    """
    factors, held_out, groups = _checked_rows(layers, factors_BxF, held_out_B, groups_B, folds)
    measures, targets = _targets(factors, held_out, classes)
    rng = np.random.default_rng(seed)
    fold_B = _folds(groups, held_out, folds, rng)
    columns = np.concatenate(targets, axis=1)
    owner_T = np.repeat(np.arange(len(targets)), [target.shape[1] for target in targets])
    donors = [_donors(groups, held_out, rng) for _ in range(SHUFFLES)]
    versions = [columns, *(columns[donor] for donor in donors)]
    owners = np.concatenate([owner_T + len(targets) * k for k in range(len(versions))])

    by_layer, qualities = [], []
    for name, layer in layers.items():
        features = compact(_rows(name, layer))
        fitted = cross_fitted(features, np.concatenate(versions, axis=1), owners, fold_B, folds)
        parts = np.split(fitted, len(versions), axis=1)
        apart = [[part[:, owner_T == f] for f in range(len(targets))] for part in parts]
        scored = _scores(targets, apart[0], measures, held_out, fold_B, groups)
        control = [
            _scores([target[donor] for target in targets], part, measures, held_out, fold_B)
            for donor, part in zip(donors, apart[1:], strict=True)
        ]
        by_layer.append((scored, control))
        qualities.append(_quality(targets, apart[0], measures, held_out))

    scores, without = {}, {}
    for region in REGIONS:
        scores[region] = np.array([[one[region][0] for one in scored] for scored, _ in by_layer])
        without[region] = np.array([[one[region][1] for one in scored] for scored, _ in by_layer])
        values = [[[one[region][0] for one in each] for each in control] for _, control in by_layer]
        scores[f"shuffled.{region}"] = np.mean(values, axis=1)
    intervals = {r: jackknife_interval(scores[r], without[r], most=1) for r in REGIONS}
    mean_L = _mean(scores["id"])
    chosen = tuple(layers)[int(np.argmax(mean_L > np.max(mean_L) - TIED))]
    return Decoded(tuple(layers), measures, scores, intervals, without, chosen, np.stack(qualities))


def means(decoded: Decoded, region: str, measure: str | None = None) -> list[dict]:
    """{'value', 'ci95'} of each layer: the mean over the factors (of one measure) that have a score
    in the region, 'id' or 'ood', or 'shuffled.' of one, which has no interval."""
    counted = [measure in (None, name) for name in decoded.measures]
    value_L = _mean(decoded.scores[region][:, counted])
    if region not in decoded.without:
        return _measured(value_L, np.full((len(value_L), 2), np.nan))
    without_LxS = _mean(np.moveaxis(decoded.without[region][:, counted], 1, -1))
    return _measured(value_L, jackknife_interval(value_L, without_LxS, most=1))


def success_correlation(quality_B, success_B, held_out_B, groups_B=None) -> dict:
    """Spearman's correlation over the held-out rows of how well a row's factors are decoded
    (`Decoded.quality`, or any numbers of which more is better) with success: {'value', 'ci95'}.

    Rows whose quality is NaN are left out. The interval is by delete-a-group jackknife in Fisher's
    z, each time with new ranks. NaN where one side is constant.

    ValueError unless all are (B,) and success is finite on the held-out rows.
    """
    quality, success = np.asarray(quality_B, np.float64), np.asarray(success_B, np.float64)
    held_out = np.asarray(held_out_B, bool)
    groups = np.arange(len(quality)) if groups_B is None else np.asarray(groups_B)
    if not quality.shape == success.shape == held_out.shape == groups.shape == (len(quality),):
        raise ValueError(
            f"quality {quality.shape}, success {success.shape}, held_out {held_out.shape} and "
            f"groups {groups.shape}: all must be (B,)"
        )
    check_finite("success", success[held_out])
    used = held_out & ~np.isnan(quality)
    pair = np.stack([quality[used], success[used]])
    if pair.shape[1] < 2:
        return {"value": float("nan"), "ci95": [float("nan")] * 2}
    ranks = np.stack([midranks(values) for values in pair])
    full = _correlation(ranks)
    _, group = np.unique(groups[used], return_inverse=True)
    without = np.array([
        _correlation(_ranks_without(pair, ranks, group == g)) for g in range(group.max() + 1)
    ])  # fmt: skip
    ends = np.tanh(jackknife_interval(_fisher(full), _fisher(without)))
    return {"value": float(full), "ci95": ends.tolist()}


def midranks(values_B, strata_B=None):
    """(B,) ranks from 1 within each stratum, ties at their mean rank."""
    _, value = np.unique(values_B, return_inverse=True)
    _, stratum = np.unique(np.zeros(len(value)) if strata_B is None else strata_B,
                           return_inverse=True)  # fmt: skip
    _, kind, counts = np.unique(
        stratum * len(value) + value, return_inverse=True, return_counts=True
    )
    sizes = np.bincount(stratum)
    rank = np.cumsum(counts) - (counts - 1) / 2
    return rank[kind] - (np.cumsum(sizes) - sizes)[stratum]


def cross_fitted(features_BxD, targets_BxT, owner_T, fold_B, folds: int):
    """(B, T) predictions by ridges with a free intercept: of the rows of a fold by the fit on all
    other folds, of rows in no fold (-1) by the fit on all folds.

    Columns of one owner share a penalty, the best of `PENALTIES` (of the fit's mean squared
    singular value) when every fold of the fitted rows is predicted from their other folds: for that
    a ridge is fitted without each pair of folds, and errors on both are kept.
    """
    pieces = [(features_BxD[fold_B == k], targets_BxT[fold_B == k]) for k in range(folds)]
    moments = [_moments(*piece) for piece in pieces]

    def fit(*left_out):
        kept = [moments[k] for k in range(folds) if k not in left_out]
        return _fit(*(sum(parts) for parts in zip(*kept, strict=True)))

    errors = np.zeros((folds + 1, len(PENALTIES), targets_BxT.shape[1]))
    for j, k in combinations(range(folds), 2):
        solved = fit(j, k)
        errors[k] += _errors(solved, *pieces[j])
        errors[j] += _errors(solved, *pieces[k])
    predictions = np.empty(targets_BxT.shape)
    for k in range(folds):
        solved = fit(k)
        errors[folds] += _errors(solved, *pieces[k])
        predictions[fold_B == k] = _predict(solved, pieces[k][0], _best(errors[k], owner_T))
    new = fold_B < 0
    predictions[new] = _predict(fit(), features_BxD[new], _best(errors[folds], owner_T))
    return predictions


def _moments(features, targets):
    return (
        len(features), features.sum(axis=0), targets.sum(axis=0),
        features.T @ features, features.T @ targets,
    )  # fmt: skip


class _Fit(NamedTuple):
    """Means (D,) and (T,), principal axes (D, R), their squared singular values (R,), and the
    targets along them (R, T)."""

    features: np.ndarray
    targets: np.ndarray
    axes: np.ndarray
    squared: np.ndarray
    along: np.ndarray


def _fit(count, features_D, targets_T, square_DxD, cross_DxT) -> _Fit:
    mean_D, mean_T = features_D / count, targets_T / count
    squared_R, axes = np.linalg.eigh(square_DxD - count * np.outer(mean_D, mean_D))
    along = axes.T @ (cross_DxT - count * np.outer(mean_D, mean_T))
    return _Fit(mean_D, mean_T, axes, np.maximum(squared_R, 0), along)


def _gains(fit: _Fit, penalties_x):
    """(R, ...) what a target along an axis is divided by: squared singular value and penalty."""
    unit = fit.squared.mean() if fit.squared.any() else 1.0
    return fit.squared.reshape(-1, *(1,) * np.ndim(penalties_x)) + unit * penalties_x[None]


def _errors(fit: _Fit, features_QxD, targets_QxT):
    """(P, T) sums of squared errors at every penalty; of many rows, from their second moments,
    which is the same up to 1e-13 of the targets' squares."""
    along_QxR = (features_QxD - fit.features) @ fit.axes
    wanted = targets_QxT - fit.targets
    weights_RxPxT = fit.along[:, None] / _gains(fit, PENALTIES)[:, :, None]
    flat = weights_RxPxT.reshape(len(weights_RxPxT), -1)
    if len(along_QxR) <= along_QxR.shape[1]:
        left = (along_QxR @ flat).reshape(-1, *weights_RxPxT.shape[1:]) - wanted[:, None]
        return np.einsum("qpt,qpt->pt", left, left)
    twice = (along_QxR.T @ along_QxR @ flat).reshape(weights_RxPxT.shape)
    twice -= 2 * (along_QxR.T @ wanted)[:, None]
    return np.einsum("rpt,rpt->pt", weights_RxPxT, twice) + np.sum(wanted**2, axis=0)[None]


def _best(errors_PxT, owner_T):
    """(T,) the penalty of least error, the largest of equals, summed over an owner's columns."""
    of_owner = np.zeros((len(PENALTIES), owner_T.max() + 1))
    np.add.at(of_owner.T, owner_T, errors_PxT.T)
    return PENALTIES[::-1][np.argmin(of_owner[::-1], axis=0)][owner_T]


def _predict(fit: _Fit, features_QxD, penalties_T):
    along_QxR = (features_QxD - fit.features) @ fit.axes
    return fit.targets + along_QxR @ (fit.along / _gains(fit, penalties_T))


def _scores(targets, predictions, measures, held_out, fold_B, groups=None) -> list[dict]:
    """For each factor {'id', 'ood'}: its score, and its scores without each group where there are
    any, else None."""
    by_factor = []
    for target, prediction, measure in zip(targets, predictions, measures, strict=True):
        seen = np.array([not _constant(column) for column in target[~held_out].T])
        parts = {}
        for region, mask in (("id", ~held_out), ("ood", held_out)):
            group = None if groups is None else np.unique(groups[mask], return_inverse=True)[1]
            scored = [
                _r2(target[mask, c], prediction[mask, c], group)
                if measure == "r2"
                else _auc(target[mask, c] > 0, prediction[mask, c], fold_B[mask], group)
                for c in np.flatnonzero(seen)
            ]
            count = 0 if group is None else group.max() + 1
            full = _mean(np.array([score for score, _ in scored]))
            without = np.array([each for _, each in scored]).reshape(len(scored), count)
            parts[region] = full, _mean(without.T)
        by_factor.append(parts)
    return by_factor


def _r2(targets, predictions, group=None):
    """The score, and (S,) without each group: from sums over the groups."""
    count = 0 if group is None else group.max() + 1
    if _constant(targets):
        return np.nan, np.full(count, np.nan)
    around, error = targets - targets.mean(), (targets - predictions) ** 2
    total = np.sum(around**2)
    score = 1 - error.sum() / total
    if group is None:
        return score, np.empty(0)
    summed = lambda values: np.bincount(group, values, count)
    left = len(targets) - summed(np.ones(len(targets)))
    totals = total - summed(around**2) - summed(around) ** 2 / np.where(left, left, np.nan)
    totals[~(totals > CONSTANT * total)] = np.nan
    return score, 1 - (error.sum() - summed(error)) / totals


def _auc(positive, predictions, strata, group=None):
    """The score over pairs of one stratum, and (S,) without each group, whole in one stratum: a
    group's pairs are its rows' pairs, of which those within it are counted twice."""
    wins, pairs = _wins(positive, predictions, strata)
    total, count = wins[positive].sum(), pairs[positive].sum()
    score = total / count if count else np.nan
    if group is None:
        return score, np.empty(0)
    summed = lambda values: np.bincount(group, values, group.max() + 1)
    wins_within, pairs_within = _wins(positive, predictions, group)
    totals = total - summed(wins) + summed(wins_within * positive)
    counts = count - summed(pairs) + summed(pairs_within * positive)
    return score, totals / np.where(counts > 0, counts, np.nan)


def _wins(positive, predictions, strata):
    """(B,) pairs that each row wins with the other label in its stratum, ties a half, and (B,) all
    its pairs: ranks among all minus ranks among its own label."""
    _, stratum = np.unique(strata, return_inverse=True)
    below = midranks(predictions, stratum) - midranks(predictions, 2 * stratum + positive)
    others = np.bincount(2 * stratum + positive, minlength=2 * stratum.max() + 2)
    pairs = others[2 * stratum + ~positive]
    return np.where(positive, below, pairs - below), pairs


def _quality(targets, predictions, measures, held_out):
    """(B,) see `Decoded`."""
    parts = []
    for target, prediction, measure in zip(targets, predictions, measures, strict=True):
        if all(_constant(column) for column in target[~held_out].T):
            continue
        if measure == "r2":
            parts.append(-((target - prediction)[:, 0] ** 2) / target[~held_out].var())
        else:
            parts.append(_margin(target, prediction, held_out))
    return _mean(np.stack(parts, axis=1))


def _margin(labels_BxK, predictions_BxK, held_out):
    """(B,) how far the true label's prediction is above the largest of the others, each measured
    from halfway between its means over the ID rows with and without that label, as a rare label is
    predicted low throughout. At most the mean over the ID rows of that label: what goes beyond it
    is no better decoded. NaN for a row whose label no ID row has."""
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
    """Measures, and for each factor (B, K) columns to be fitted: its values, 0 and 1 for two of
    them, or one column for each label."""
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


def _checked_rows(layers, factors_BxF, held_out_B, groups_B, folds):
    factors, held_out = np.asarray(factors_BxF, np.float64), np.asarray(held_out_B, bool)
    if factors.ndim != 2 or 0 in factors.shape or held_out.shape != factors.shape[:1]:
        raise ValueError(f"factors {factors.shape} and held_out {held_out.shape}: (B, F) and (B,)")
    check_finite("factors", factors)
    groups = np.arange(len(factors)) if groups_B is None else np.asarray(groups_B)
    if groups.shape != held_out.shape:
        raise ValueError(f"groups {groups.shape} for {len(factors)} rows")
    if not layers:
        raise ValueError("no layers")
    for name, layer in layers.items():
        if np.ndim(layer) < 1 or len(layer) != len(factors) or np.size(layer) == 0:
            raise ValueError(f"layer {name} {np.shape(layer)} for {len(factors)} rows")
    _, groups = np.unique(groups, return_inverse=True)
    both = np.intersect1d(groups[held_out], groups[~held_out])
    if len(both):
        seen, new = (np.argmax((groups == both[0]) & side) for side in (~held_out, held_out))
        raise ValueError(f"a group is ID at row {seen} and held out at row {new}")
    count = len(np.unique(groups[~held_out]))
    if folds < 3 or count < 2 * folds:
        raise ValueError(f"{count} ID groups: at least 3 folds and 2 groups in each, not {folds}")
    if not held_out.any():
        raise ValueError("no row is held out")
    return factors, held_out, groups


def _rows(name, layer):
    features = np.asarray(layer)
    features = features.reshape(len(features), -1)
    check_finite(f"layer {name}", features)
    return features


def _folds(groups, held_out, folds, rng):
    """(B,) the fold of each ID row, its whole group's; -1 for OOD rows."""
    seen, index = np.unique(groups[~held_out], return_inverse=True)
    fold_B = np.full(len(groups), -1)
    fold_B[~held_out] = (rng.permutation(len(seen)) % folds)[index]
    return fold_B


def _donors(groups, held_out, rng):
    """(B,) the row whose target each row gets: the rows of one ID group in turn for those of
    another, repeated where it has fewer; OOD rows keep theirs."""
    donor_B = np.arange(len(groups))
    seen = np.flatnonzero(~held_out)
    order = seen[np.argsort(groups[seen], kind="stable")]
    members = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    for rows, donor in zip(members, rng.permutation(len(members)), strict=True):
        donor_B[rows] = np.resize(members[donor], len(rows))
    return donor_B


def _ranks_without(pair_2xB, ranks_2xB, gone_B):
    """(2, B - G) ranks of the other rows, once those of a group are gone."""
    kept = ~gone_B
    ranks_left = []
    for values, ranks in zip(pair_2xB, ranks_2xB, strict=True):
        away = np.sort(values[gone_B])
        below, up_to = (np.searchsorted(away, values[kept], side) for side in ("left", "right"))
        ranks_left.append(ranks[kept] - (below + up_to) / 2)
    return np.stack(ranks_left)


def _correlation(pair_2xB):
    """NaN for fewer than two rows, or where one side is constant."""
    if pair_2xB.shape[1] < 2 or (np.ptp(pair_2xB, axis=1) == 0).any():
        return np.nan
    a, b = pair_2xB - pair_2xB.mean(axis=1, keepdims=True)
    return a @ b / np.sqrt((a @ a) * (b @ b))


def _fisher(correlation):
    return np.arctanh(np.clip(correlation, -1 + 1e-12, 1 - 1e-12))


def _constant(values) -> bool:
    return bool(np.ptp(values) <= CONSTANT * np.abs(values).max())


def _mean(values_xF):
    """(...) the mean over the last axis of what is not NaN; NaN where nothing is."""
    values = np.asarray(values_xF, np.float64)
    known = ~np.isnan(values)
    count = known.sum(axis=-1)
    return np.where(known, values, 0).sum(axis=-1) / np.where(count, count, np.nan)


def _measured(value_L, ends_Lx2) -> list[dict]:
    return [
        {"value": float(value), "ci95": ends.tolist()}
        for value, ends in zip(value_L, ends_Lx2, strict=True)
    ]
