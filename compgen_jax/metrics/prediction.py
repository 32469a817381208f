"""Do numbers of networks say which of them compose? Rank correlations within groups, and of
predictions for a model family that was left out, with intervals over families.

A network stands beside others of its family (a model's name) and of its group (a task and what it
holds out), so networks are not independent, and no interval here counts them as if they were.
Ranks are taken inside a group: what only tells tasks apart may predict an unseen family by chance.
How often intervals lie above 0 (nominally .025) where nothing is to be found: 400 draws of 10
families in 12 groups, one network in each, where besides the networks their families, their groups
or both have normal effects of the same size, on predictor and outcome independently.

    effects of            none   families   groups   both
    rank_correlation      .018       .020     .018   .020
    compare, pooled       .005       .012     .005   .012

Intervals of what is left out lie below 0 more often, up to .11: without a relation the others'
slope tends to be opposite to that of the family left out. With 5 or 6 families in place of 10,
expect worse.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from compgen_jax.statistics import LEVEL

RIDGE = 1.0  # added to the squares of a standardised predictor: as if of one network more


class Networks(NamedTuple):
    """family (N,) and group (N,): labels.  outcome (N,): how well each composes, such as its OOD
    accuracy.  predictors: (N,) by name. NaN where a network has no such number."""

    family: np.ndarray
    group: np.ndarray
    outcome: np.ndarray
    predictors: dict


def rank_correlation(networks: Networks, name: str) -> dict:
    """Spearman's rank correlation, -1 to 1, of a predictor with the outcome, within groups: of
    positions inside each group, (mid-rank - 1/2) / its size - 1/2, pooled over the groups.

    Groups of which no two outcomes differ are left out. NaN where either is constant.

    Returns `value`, `ci95`, and counts: `networks`, `families`, `groups`, and `dropped`, of those
    without a finite outcome or predictor. The interval is Student's t with the delete-one-family
    jackknife's error (CV3: MacKinnon, Nielsen & Webb 2023), so it speaks of these groups. It is
    clipped to [-1, 1], and NaN for a single family.

    ValueError for columns that do not match, and for a predictor that is not there.
    """
    checked = _checked(networks, [name])
    kept = _finite(checked, [name])
    found = select(checked, kept)
    statistic = _Spearman(found.predictors[name], found.outcome, found.group)
    return _number(statistic, found.family) | _counts(found) | {"dropped": int((~kept).sum())}


def compare(networks: Networks, sets: dict) -> dict:
    """{set: how its predictors, fitted on all other families, rank the networks of one they never
    met}, for named sets of predictors, all on the networks that have a number for each of them.

    Predictors and outcome are positions among the fitted networks of the same group, the fit a
    ridge through the middle of both. Networks between the same two fitted ones tie. A network is
    dropped as in `rank_correlation`, for any name, and where no other family is in its group.

    Returns for each set `pooled`, the rank correlation within groups of all networks' predictions
    with the outcome, {'value', 'ci95'}, 0 for a constant prediction; `beyond`: {other set: its
    `pooled` less the other's}, paired; and counts as in `rank_correlation`. Fits share networks, so
    the jackknife's variance over the families is raised by 1 + F / (F - 1) (Nadeau & Bengio 2003);
    where a predictor is good the interval is therefore too wide.

    ValueError as there, and for fewer than 3 families.
    """
    names = {name for of_set in sets.values() for name in of_set}
    checked = _checked(networks, names)
    kept = _finite(checked, names)
    other = checked.family[:, None] != checked.family[None, :]
    same = checked.group[:, None] == checked.group[None, :]
    kept &= (other & same & kept[None, :]).any(axis=1)
    found = select(checked, kept)
    families = np.unique(found.family)
    if len(families) < 3:
        raise ValueError(f"at least 3 families needed to leave one out, not {families.tolist()}")
    statistics = {
        title: _Spearman(_predictions(found, tuple(of_set)), found.outcome, found.group, 0.0)
        for title, of_set in sets.items()
    }
    counts = _counts(found) | {"dropped": int((~kept).sum())}
    answers = {}
    for title, own in statistics.items():
        beyond = {}
        for name, other in statistics.items():
            if name != title:
                difference = lambda weights, a=own, b=other: a(weights) - b(weights)
                beyond[name] = {"pooled": _number(difference, found.family, True, largest=2.0)}
        pooled = _number(own, found.family, shared=True)
        answers[title] = {"pooled": pooled, "beyond": beyond} | counts
    return answers


class _Spearman:
    """Rank correlation of x and y within groups as a function of weights (R, N), 1 of a network
    that counts and 0 of one that does not: (R,), NaN where y is constant, `of_constant` where only
    x is."""

    def __init__(self, x_N, y_N, group_N, of_constant: float = np.nan):
        self.same, self.of_constant = _same(group_N), of_constant
        self.x, self.y = _below(x_N, self.same), _below(y_N, self.same)

    def __call__(self, weights_RxN):
        weights = np.asarray(weights_RxN, np.float64)
        count = np.maximum(weights @ self.same, 1)
        x, y = (weights * (weights @ below.T / count - 0.5) for below in (self.x, self.y))
        # of a group of equal outcomes nothing can be said
        x = np.where((y**2) @ self.same > 1e-12, x, 0.0)
        product, x_square, y_square = (np.sum(a * b, axis=1) for a, b in ((x, y), (x, x), (y, y)))
        x_varies, y_varies = x_square > 1e-12, y_square > 1e-12
        norm = np.sqrt(np.where(x_varies & y_varies, x_square * y_square, 1.0))
        found = np.where(x_varies, np.clip(product / norm, -1, 1), self.of_constant)
        return np.where(y_varies, found, np.nan)


def _same(group_N):
    """(N, N) float: whether two networks are ranked against each other."""
    return (group_N[:, None] == group_N[None, :]).astype(np.float64)


def _below(values_N, same_NxN):
    """(N, N): 1 where the second of a pair is below the first, 1/2 where they are equal."""
    below = values_N[None, :] < values_N[:, None]
    return (below + 0.5 * (values_N[None, :] == values_N[:, None])) * same_NxN


def _predictions(found: Networks, names):
    """(N,) what fits to the other families say of each network's position in its group."""
    same, predicted = _same(found.group), np.empty(len(found.outcome))
    for family in np.unique(found.family):
        fitted = found.family != family
        count = np.maximum(same @ fitted.astype(np.float64), 1)
        position = lambda values, f=fitted, c=count: _below(values, same) @ f / c - 0.5
        x = np.stack([position(found.predictors[name]) for name in names], axis=1)
        scale = np.sqrt(np.mean(x[fitted] ** 2, axis=0, keepdims=True))
        x = x / np.where(scale > 0, scale, 1.0)
        square = x[fitted].T @ x[fitted] + RIDGE * np.eye(x.shape[1])
        weights = np.linalg.solve(square, x[fitted].T @ position(found.outcome)[fitted])
        predicted[~fitted] = x[~fitted] @ weights
    return np.round(predicted, 12)  # equal predictors give ties


def _number(statistic, family_N, shared: bool = False, largest: float = 1.0) -> dict:
    """Value, up to `largest`, and interval; see `rank_correlation` and, `shared`, `compare`."""
    value = float(statistic(np.ones((1, len(family_N))))[0]) if len(family_N) else np.nan
    families = np.unique(family_N)
    count = len(families)
    if count < 2:
        return {"value": value, "ci95": [np.nan, np.nan]}
    without = statistic((family_N[None, :] != families[:, None]).astype(np.float64))
    variance = (count - 1) / count * np.sum((without - value) ** 2)
    variance *= 1 + count / (count - 1) if shared else 1
    if not np.isfinite(value + variance):
        return {"value": value, "ci95": [np.nan, np.nan]}
    half = stdtrit(count - 1, (1 + LEVEL) / 2) * np.sqrt(variance)
    ends = np.clip([value - half, value + half], -largest, largest)
    return {"value": value, "ci95": ends.tolist()}


def _finite(networks: Networks, names):
    columns = [networks.outcome, *(networks.predictors[name] for name in names)]
    return np.isfinite(columns).all(axis=0)


def select(networks: Networks, kept_N) -> Networks:
    """Those of which `kept` (N,) bool is true."""
    predictors = {name: values[kept_N] for name, values in networks.predictors.items()}
    return Networks(*(column[kept_N] for column in networks[:3]), predictors)


def _counts(networks: Networks) -> dict:
    return {
        "networks": len(networks.outcome),
        "families": len(np.unique(networks.family)),
        "groups": len(np.unique(networks.group)),
    }


def _checked(networks: Networks, names) -> Networks:
    family, group = (np.asarray(labels) for labels in networks[:2])
    outcome = np.asarray(networks.outcome, np.float64)
    predictors = {k: np.asarray(v, np.float64) for k, v in networks.predictors.items()}
    columns = {"family": family, "group": group, "outcome": outcome} | predictors
    for name, column in columns.items():
        if column.shape != (len(outcome),) or outcome.ndim != 1 or not len(outcome):
            raise ValueError(f"{name} must be a number for each network, not {column.shape}")
    if absent := {*names} - {*predictors}:
        raise ValueError(f"predictors {sorted(absent)} are none of {sorted(predictors)}")
    return Networks(family, group, outcome, predictors)
