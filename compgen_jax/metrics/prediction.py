"""Do numbers of networks say which of them compose? Rank correlations over all networks, within
tasks, and of predictions for a model family that was left out, with intervals over families.

A network stands beside others of its family (a model's name) and of its group (a task and what it
holds out), so networks are not independent, and no interval here counts them as if they were.
How often intervals lie above 0 (nominally .025) where nothing is to be found: 400 draws of 10
families in 12 groups, one network in each, where besides the networks their families, their groups
or both have normal effects of the same size, on predictor and outcome independently.

    effects of                              none   families   groups   both
    rank_correlation                        .015       .022     .025   .020
    rank_correlation, within groups         .018       .020     .018   .020
    left_out, pooled                        .000       .015     .005   .002
    left_out, pooled, within groups         .005       .012     .005   .012
    left_out, mean                          .015       .005     .122   .110
    left_out, mean, within groups           .008       .005     .008   .005
    compare, mean beyond the group mean     .038       .015     .002   .000

So what predicts an unseen family overall may only tell tasks apart, by chance: believe it within
groups, or beyond the group mean. Intervals of what is left out lie below 0 more often, up to .11:
without a relation the others' slope tends to be opposite to that of the family left out. With 5 or
6 families in place of 10, expect worse.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from compgen_jax.statistics import LEVEL

GROUP_MEAN = "group mean"  # of the outcome of other families: the strongest trivial predictor
RIDGE = 1.0  # added to the squares of a standardised predictor: as if of one network more


class Networks(NamedTuple):
    """family (N,) and group (N,): labels.  outcome (N,): how well each composes, such as its OOD
    accuracy.  predictors: (N,) by name. NaN where a network has no such number."""

    family: np.ndarray
    group: np.ndarray
    outcome: np.ndarray
    predictors: dict


def rank_correlation(networks: Networks, name: str, within: bool = False) -> dict:
    """Spearman's rank correlation, -1 to 1, of a predictor with the outcome.

    Over all networks or, `within`, of positions inside each group, (mid-rank - 1/2) / its size
    - 1/2, pooled over the groups: what a predictor has from telling tasks apart is then gone.
    Groups of which no two outcomes differ are left out. NaN where either is constant.

    Returns `value`, `ci95`, and counts: `networks`, `families`, `groups`, and `dropped`, of those
    without a finite outcome or predictor. The interval is Student's t with the delete-one-cluster
    jackknife's error (CV3: MacKinnon, Nielsen & Webb 2023). Within groups, clusters are families,
    and it speaks of these groups. Overall, families and groups are: of the two jackknives, and of
    their sum less that over single networks (Cameron, Gelbach & Miller 2011), the largest variance,
    with degrees of freedom of the fewer. It is clipped to [-1, 1], and NaN for a single family.

    ValueError for columns that do not match, and for a predictor that is not there.
    """
    checked = _checked(networks)
    if name not in checked.predictors:
        raise ValueError(f"predictor {name!r} is none of {sorted(checked.predictors)}")
    kept = _finite(checked, (name,))
    found = select(checked, kept)
    statistic = _Spearman(found.predictors[name], found.outcome, found.group, within)
    number = _number(statistic, found.family, None if within else found.group)
    return number | _counts(found) | {"dropped": int((~kept).sum())}


def left_out(networks: Networks, names: Sequence[str], within: bool = False) -> dict:
    """How predictors, fitted on all other families, rank the networks of one they never met.

    Predictors and outcome are positions among the fitted networks (`within`: among those of the
    same group), the fit a ridge through the middle of both. `GROUP_MEAN` among the names is the
    mean outcome in a network's group over the families that are neither its own nor left out, all
    groups' where there is none; within groups it is silent. Networks between the same two fitted
    ones tie. A network is dropped as in `rank_correlation`, for any name, and where no other family
    is in its group (`within`).

    Returns `pooled`, the rank correlation of all networks' predictions with the outcome (`within`:
    inside groups), `mean`, of the families' own, each `value` and `ci95`; `by_family`; counts as in
    `rank_correlation`. What is ranked by a constant has 0, a family of equal outcomes has NaN and
    no part in the mean. Fits share networks, so the jackknife's variance over the families (and
    overall, for `pooled`, over the groups) is raised by 1 + F / (F - 1) (Nadeau & Bengio 2003);
    where a predictor is good the interval is therefore too wide.

    ValueError as there, and for fewer than 3 families.
    """
    return compare(networks, {"": tuple(names)}, within)[""]


def compare(networks: Networks, sets: dict, within: bool = False) -> dict:
    """{set: `left_out`'s answer} for named sets of predictors, all on the networks that have a
    number for every one of them, each with `beyond`: {other set: its `pooled` and `mean` less the
    other's}, paired, with intervals of the same kind."""
    checked = _checked(networks)
    names = {name for of_set in sets.values() for name in of_set}
    if absent := names - {*checked.predictors, GROUP_MEAN}:
        raise ValueError(f"predictors {sorted(absent)} are none of {sorted(checked.predictors)}")
    kept = _finite(checked, names - {GROUP_MEAN})
    if within:
        kept &= _has_other_family(checked, kept)
    found = select(checked, kept)
    families = np.unique(found.family)
    if len(families) < 3:
        raise ValueError(f"at least 3 families needed to leave one out, not {families.tolist()}")
    statistics, scores = {}, {}
    for title, of_set in sets.items():
        predicted = _predictions(found, tuple(of_set), within)
        statistics[title] = _Spearman(predicted, found.outcome, found.group, within, 0.0)
        scores[title] = _family_scores(statistics[title], found.family, families)
    counts = _counts(found) | {"dropped": int((~kept).sum())}

    def numbers(statistic, scores_F, largest: float = 1.0):
        groups = None if within else found.group
        pooled = _number(statistic, found.family, groups, shared=True, largest=largest)
        return {"pooled": pooled, "mean": _mean_number(scores_F, largest)}

    answers = {}
    for title in sets:
        beyond = {
            other: numbers(
                lambda weights, a=statistics[title], b=statistics[other]: a(weights) - b(weights),
                scores[title] - scores[other],
                largest=2.0,
            )
            for other in sets
            if other != title
        }
        by_family = dict(zip(families.tolist(), scores[title].tolist(), strict=True))
        answers[title] = numbers(statistics[title], scores[title]) | counts
        answers[title] |= {"by_family": by_family, "beyond": beyond}
    return answers


class _Spearman:
    """Rank correlation of x and y as a function of weights (R, N), 1 of a network that counts and 0
    of one that does not: (R,), NaN where y is constant, `of_constant` where only x is."""

    def __init__(self, x_N, y_N, group_N, within: bool, of_constant: float = np.nan):
        self.same, self.of_constant = _same(group_N, within), of_constant
        self.x, self.y = _below(x_N, self.same), _below(y_N, self.same)

    def positions(self, weights_RxN):
        count = weights_RxN @ self.same
        found = ((weights_RxN @ below.T) / np.maximum(count, 1) - 0.5 for below in (self.x, self.y))
        x, y = (weights_RxN * position for position in found)
        # of a group of equal outcomes nothing can be said
        return np.where((y**2) @ self.same > 1e-12, x, 0.0), y

    def __call__(self, weights_RxN):
        x, y = self.positions(np.asarray(weights_RxN, np.float64))
        return _correlation(x, y, self.of_constant)


def _correlation(x_RxN, y_RxN, of_constant: float):
    """(R,) of centred values, NaN where y is constant, `of_constant` where only x is."""
    product, x_square, y_square = (np.sum(a * b, axis=1) for a, b in
                                   ((x_RxN, y_RxN), (x_RxN, x_RxN), (y_RxN, y_RxN)))  # fmt: skip
    x_varies, y_varies = x_square > 1e-12, y_square > 1e-12
    norm = np.sqrt(np.where(x_varies & y_varies, x_square * y_square, 1.0))
    found = np.where(x_varies, np.clip(product / norm, -1, 1), of_constant)
    return np.where(y_varies, found, np.nan)


def _same(group_N, within: bool):
    """(N, N) float: whether two networks are ranked against each other."""
    same = group_N[:, None] == group_N[None, :] if within else np.ones((len(group_N),) * 2)
    return same.astype(np.float64)


def _below(values_N, same_NxN):
    """(N, N): 1 where the second of a pair is below the first, 1/2 where they are equal."""
    below = values_N[None, :] < values_N[:, None]
    return (below + 0.5 * (values_N[None, :] == values_N[:, None])) * same_NxN


def _positions(values_N, same_NxN, reference_N):
    """(N,) -1/2 to 1/2: each network's position among those of the reference."""
    reference = reference_N.astype(np.float64)
    count = np.maximum(same_NxN @ reference, 1)
    return (_below(values_N, same_NxN) @ reference) / count - 0.5


def _predictions(found: Networks, names, within: bool):
    """(N,) what fits to the other families say of each network's position."""
    same, predicted = _same(found.group, within), np.empty(len(found.outcome))
    for family in np.unique(found.family):
        fitted = found.family != family
        columns = []
        for name in names:
            if name != GROUP_MEAN:
                columns.append(_positions(found.predictors[name], same, fitted))
            elif within:
                columns.append(np.zeros(len(predicted)))
            else:
                columns.append(_positions(_group_means(found, fitted), same, fitted))
        x = np.stack(columns, axis=1) if columns else np.zeros((len(predicted), 1))
        scale = np.sqrt(np.mean(x[fitted] ** 2, axis=0, keepdims=True))
        x = x / np.where(scale > 0, scale, 1.0)
        y = _positions(found.outcome, same, fitted)
        square = x[fitted].T @ x[fitted] + RIDGE * np.eye(x.shape[1])
        weights = np.linalg.solve(square, x[fitted].T @ y[fitted])
        predicted[~fitted] = x[~fitted] @ weights
    return np.round(predicted, 12)  # equal predictors give ties


def _group_means(found: Networks, fitted_N):
    """(N,) the mean outcome in each network's group of fitted networks of other families, of all
    groups where there is none: a network's own outcome has no part in it."""
    other = (found.family[:, None] != found.family[None, :]) & fitted_N[None, :]
    beside = other & (found.group[:, None] == found.group[None, :])
    used = np.where(beside.any(axis=1, keepdims=True), beside, other).astype(np.float64)
    return np.round(used @ found.outcome / used.sum(axis=1), 12)


def _family_scores(statistic, family_N, families_F):
    """(F,) rank correlation over the networks of each family: 0 of a prediction that is constant,
    NaN of equal outcomes."""
    weights = (family_N[None, :] == families_F[:, None]).astype(np.float64)
    everyone = np.ones((1, len(family_N)))
    x, y = (values[0] for values in statistic.positions(everyone))
    return np.array([_spearman(x[own], y[own]) for own in weights > 0])


def _spearman(x, y) -> float:
    everyone = np.zeros(len(x))
    statistic = _Spearman(np.round(x, 12), np.round(y, 12), everyone, False, 0.0)
    return float(statistic(np.ones((1, len(x))))[0])


def _number(statistic, family_N, group_N=None, shared: bool = False, largest=1.0) -> dict:
    """Value, up to `largest`, and interval; see `rank_correlation` and, `shared`, `left_out`."""
    everyone = np.ones((1, len(family_N)))
    value = float(statistic(everyone)[0]) if len(family_N) else np.nan
    families = _jackknife(statistic, value, family_N, shared)
    variance, freedom = families, len(np.unique(family_N)) - 1
    groups = 0 if group_N is None else len(np.unique(group_N))
    if groups > 1:
        of_groups = _jackknife(statistic, value, group_N, shared)
        single = _jackknife(statistic, value, np.arange(len(family_N)), shared)
        variance = np.max([families, of_groups, families + of_groups - single])
        freedom = min(freedom, groups - 1)
    if not freedom > 0 or not np.isfinite(value + variance):
        return {"value": value, "ci95": [np.nan, np.nan]}
    half = stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(variance)
    return {"value": value, "ci95": _clipped(value, half, largest)}


def _clipped(value: float, half: float, largest: float) -> list:
    return np.clip([value - half, value + half], -largest, largest).tolist()


def _jackknife(statistic, value: float, labels_N, shared: bool) -> float:
    """Variance by leaving out one cluster after the other; NaN where one cannot be spared."""
    clusters = np.unique(labels_N)
    if len(clusters) < 2:
        return np.nan
    without = statistic((labels_N[None, :] != clusters[:, None]).astype(np.float64))
    count = len(clusters)
    variance = (count - 1) / count * np.sum((without - value) ** 2)
    return float(variance * (1 + count / (count - 1)) if shared else variance)


def _mean_number(scores_F, largest: float) -> dict:
    """The mean over families that have a score; its interval as of `left_out`."""
    scores = scores_F[np.isfinite(scores_F)]
    count = len(scores)
    if count < 2:
        return {"value": float(scores.mean()) if count else np.nan, "ci95": [np.nan, np.nan]}
    error = scores.std(ddof=1) * np.sqrt(1 / count + 1 / (count - 1))
    half = stdtrit(count - 1, (1 + LEVEL) / 2) * error
    value = float(scores.mean())
    return {"value": value, "ci95": _clipped(value, half, largest)}


def _finite(networks: Networks, names):
    columns = [networks.outcome, *(networks.predictors[name] for name in names)]
    return np.isfinite(columns).all(axis=0)


def _has_other_family(networks: Networks, kept_N):
    """Whether a network's group has another family that is kept."""
    other = networks.family[:, None] != networks.family[None, :]
    same = networks.group[:, None] == networks.group[None, :]
    return (other & same & kept_N[None, :]).any(axis=1)


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


def _checked(networks: Networks) -> Networks:
    family, group = (np.asarray(labels) for labels in networks[:2])
    outcome = np.asarray(networks.outcome, np.float64)
    predictors = {k: np.asarray(v, np.float64) for k, v in networks.predictors.items()}
    columns = {"family": family, "group": group, "outcome": outcome} | predictors
    for name, column in columns.items():
        if column.shape != (len(outcome),) or outcome.ndim != 1 or not len(outcome):
            raise ValueError(f"{name} must be a number for each network, not {column.shape}")
    return Networks(family, group, outcome, predictors)
