"""Rank correlations and predictions of families left out, beside scipy, loops and known answers."""

import numpy as np
import pytest
from scipy import stats

from compgen_jax.metrics import prediction
from compgen_jax.metrics.prediction import Networks, compare, rank_correlation


def crossed(families=10, groups=12):
    """Labels (N,) of a network of every family in every group."""
    family, group = np.indices((families, groups)).reshape(2, -1)
    return np.array([f"model {f}" for f in family]), np.array([f"task {g}" for g in group])


def effects(labels, rng):
    """A normal number for each label."""
    names, place = np.unique(labels, return_inverse=True)
    return rng.normal(size=len(names))[place]


@pytest.mark.parametrize("levels", [2, 10_000])
def test_in_a_single_group_it_is_scipys_with_ties(levels):
    rng = np.random.default_rng(levels)
    family, _ = crossed(6, 5)
    outcome = rng.integers(levels, size=30)
    predictor = outcome + 2 * rng.integers(levels, size=30)
    found = rank_correlation(Networks(family, np.zeros(30), outcome, {"p": predictor}), "p")
    assert found["value"] == pytest.approx(stats.spearmanr(predictor, outcome).statistic)
    assert [found[n] for n in ("networks", "families", "groups", "dropped")] == [30, 6, 1, 0]


def test_within_groups_it_is_of_centred_ranks_over_their_number():
    rng = np.random.default_rng(0)
    sizes = [3, 8, 5, 1, 4]
    group = np.repeat(np.arange(5), sizes)
    outcome, predictor = rng.normal(size=21) + 9 * group, rng.integers(4, size=21)
    outcome[group == 4] = 7.0  # nothing to predict: left out
    x, y = [], []
    for g in range(4):
        ranks = [stats.rankdata(values[group == g]) for values in (predictor, outcome)]
        for found, rank in zip((x, y), ranks, strict=True):
            found.extend((rank - rank.mean()) / sizes[g])
    networks = Networks(np.arange(21) % 3, group, outcome, {"p": predictor})
    found = rank_correlation(networks, "p")
    assert found["value"] == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_a_monotone_predictor_has_one_and_one_that_tells_tasks_apart_has_none():
    rng = np.random.default_rng(1)
    family, group = crossed()
    task = 3 * effects(group, rng)
    outcome = effects(family, rng) + task + rng.normal(size=120)
    predictors = {"up": np.exp(outcome), "down": -(outcome**3), "task": task}
    predictors["task"] = task + rng.normal(size=120)
    networks = Networks(family, group, outcome, predictors)
    for name, sign in (("up", 1), ("down", -1)):
        found = rank_correlation(networks, name)
        assert found["value"] == pytest.approx(sign)
        assert found["ci95"] == pytest.approx([sign, sign])
        found = compare(networks, {"alone": (name,)})["alone"]["pooled"]
        assert found["value"] > 0.98 and found["ci95"][0] > 0.95
    low, high = rank_correlation(networks, "task")["ci95"]
    assert low < 0 < high


def predicted_by_loops(networks, names, family):
    """Of the family left out, by ranks in loops and the ridge's normal equations."""
    fitted = networks.family != family

    def positions(values):
        found = []
        for value, group in zip(values, networks.group, strict=True):
            others = values[fitted & (networks.group == group)]
            found.append(np.mean([(w < value) + 0.5 * (w == value) for w in others]) - 0.5)
        return np.array(found)

    x = np.stack([positions(networks.predictors[name]) for name in names], axis=1)
    x /= np.sqrt(np.mean(x[fitted] ** 2, axis=0, keepdims=True))
    design = np.concatenate([x[fitted], np.eye(len(names))])  # a ridge of 1 is such rows
    target = np.concatenate([positions(networks.outcome)[fitted], np.zeros(len(names))])
    return x[~fitted] @ np.linalg.lstsq(design, target)[0]


def variance_by_loops(predictor, networks):
    """Of the correlation within groups over families, by deleting them in turn."""
    families = np.unique(networks.family)

    def value(kept):
        of_kept = Networks(*(c[kept] for c in networks[:3]), {"p": predictor[kept]})
        return rank_correlation(of_kept, "p")["value"]

    full = value(networks.family != "")
    squares = [(value(networks.family != name) - full) ** 2 for name in families]
    return full, (len(families) - 1) / len(families) * np.sum(squares)


def ends(value, variance, freedom):
    half = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    return np.clip([value - half, value + half], -1, 1)


@pytest.mark.parametrize("names", [("a",), ("b", "a")])
def test_numbers_and_intervals_are_those_of_loops(names):
    rng = np.random.default_rng(4)
    family, group = crossed(6, 5)
    outcome = rng.integers(6, size=30) / 5 + effects(group, rng)
    predictors = {"a": outcome + rng.normal(size=30), "b": rng.integers(3, size=30)}
    networks = Networks(family, group, outcome, predictors)
    value, variance = variance_by_loops(predictors["a"], networks)
    found = rank_correlation(networks, "a")
    assert found["ci95"] == pytest.approx(ends(value, variance, 5))
    predicted = np.empty(30)
    for name in np.unique(family):
        predicted[family == name] = predicted_by_loops(networks, names, name)
    value, variance = variance_by_loops(predicted.round(10), networks)
    found = compare(networks, {"these": names})["these"]["pooled"]
    assert found["value"] == pytest.approx(value)
    # wider, as fits share networks
    assert found["ci95"] == pytest.approx(ends(value, variance * (1 + 6 / 5), 5))


def test_what_a_set_says_beyond_another_is_the_paired_difference():
    rng = np.random.default_rng(3)
    family, group = crossed()
    outcome, noise = rng.normal(size=(2, 120))
    networks = Networks(family, group, outcome, {"good": outcome + 0.3 * noise, "bad": noise})
    found = compare(networks, {"good": ("good",), "bad": ("bad",)})
    beyond, back = (
        found["good"]["beyond"]["bad"]["pooled"],
        found["bad"]["beyond"]["good"]["pooled"],
    )
    difference = found["good"]["pooled"]["value"] - found["bad"]["pooled"]["value"]
    assert beyond["value"] == pytest.approx(difference) and beyond["ci95"][0] > 0
    assert back["value"] == -beyond["value"]
    assert back["ci95"] == pytest.approx([-end for end in beyond["ci95"][::-1]])


def test_the_left_out_familys_outcomes_do_not_enter_its_predictions():
    rng = np.random.default_rng(5)
    family, group = crossed(5, 6)
    outcome, own = rng.normal(size=30), family == "model 2"
    networks = Networks(family, group, outcome, {"a": rng.normal(size=30)})
    other = networks._replace(outcome=np.where(own, -7 * outcome, outcome))
    before, after = (prediction._predictions(each, ("a",)) for each in (networks, other))
    np.testing.assert_array_equal(before[own], after[own])
    assert np.abs(before - after)[~own].max() > 1e-3


def test_networks_without_a_number_are_dropped_and_counted():
    rng = np.random.default_rng(9)
    family, group = crossed(5, 6)
    outcome, a, b = rng.normal(size=(3, 30))
    gone = np.isin(np.arange(30), [0, 7, 11])
    holes = Networks(family, group, outcome, {"a": np.where(gone, np.nan, a), "b": b})
    rest = Networks(family[~gone], group[~gone], outcome[~gone], {"a": a[~gone], "b": b[~gone]})
    assert rank_correlation(holes, "a") == rank_correlation(rest, "a") | {"dropped": 3}
    unknown = holes._replace(outcome=np.where(gone, np.inf, outcome))
    assert rank_correlation(unknown, "b") == rank_correlation(rest, "b") | {"dropped": 3}
    # of sets that are compared, all have the same networks
    sets = {"a": ("a",), "b": ("b",)}
    found, expected = compare(holes, sets), compare(rest, sets)
    assert found == {name: each | {"dropped": 3} for name, each in expected.items()}
    # a family that is alone in its group has none to be ranked among
    alone = holes._replace(group=np.where(np.arange(30) == 20, "alone", group))
    assert compare(alone, {"b": ("b",)})["b"]["dropped"] == 1


def test_nothing_to_rank_is_nan_and_a_silent_predictor_is_0():
    rng = np.random.default_rng(10)
    family, group = crossed(4, 5)
    outcome = rng.normal(size=20)
    networks = Networks(family, group, outcome, {"same": np.ones(20), "p": rng.normal(size=20)})
    found = rank_correlation(networks, "same")
    assert np.isnan([found["value"], *found["ci95"]]).all()
    assert compare(networks, {"s": ("same",)})["s"]["pooled"] == {"value": 0, "ci95": [0, 0]}
    assert np.isnan(rank_correlation(networks._replace(outcome=np.ones(20)), "p")["value"])
    one = rank_correlation(networks._replace(family=np.zeros(20)), "p")
    assert np.isfinite(one["value"]) and np.isnan(one["ci95"]).all()
    nothing = networks._replace(outcome=np.full(20, np.nan))
    assert np.isnan(rank_correlation(nothing, "p")["value"])


@pytest.mark.parametrize(
    ("change", "call", "message"),
    [
        ({}, lambda n: rank_correlation(n, "q"), r"predictors \['q'\] are none of \['p'\]"),
        ({}, lambda n: compare(n, {"": ("p", "q")}), r"predictors \['q'\] are none of \['p'\]"),
        ({"predictors": {"p": np.ones(3)}}, lambda n: rank_correlation(n, "p"), "p must be a num"),
        ({"family": np.ones(3)}, lambda n: rank_correlation(n, "p"), "family must be a number for"),
        ({"family": np.arange(20) % 2}, lambda n: compare(n, {"": ("p",)}), "at least 3 families"),
    ],
)
def test_bad_input_is_named(change, call, message):
    family, group = crossed(4, 5)
    good = Networks(family, group, np.arange(20.0), {"p": np.arange(20.0)})
    with pytest.raises(ValueError, match=message):
        call(good._replace(**change))
