"""Rank correlations and predictions of families left out, beside scipy, loops and known answers."""

import numpy as np
import pytest
from scipy import stats

from compgen_jax.metrics import prediction
from compgen_jax.metrics.prediction import GROUP_MEAN, Networks, compare, left_out
from compgen_jax.metrics.prediction import rank_correlation as correlation


def crossed(families=10, groups=12, copies=1):
    """Labels (N,) of a network of every family in every group."""
    shape = families, groups, copies
    family, group, _ = (each.ravel() for each in np.indices(shape))
    return np.array([f"model {f}" for f in family]), np.array([f"task {g}" for g in group])


def effects(labels, rng):
    """A normal number for each label."""
    names, place = np.unique(labels, return_inverse=True)
    return rng.normal(size=len(names))[place]


def excludes_0(number):
    return number["ci95"][0] > 0 or number["ci95"][1] < 0


@pytest.mark.parametrize("levels", [2, 5, 10_000])
def test_over_all_networks_it_is_scipys_with_ties(levels):
    rng = np.random.default_rng(levels)
    family, group = crossed(6, 5)
    outcome = rng.integers(levels, size=30)
    predictor = outcome + 2 * rng.integers(levels, size=30)
    found = correlation(Networks(family, group, outcome, {"p": predictor}), "p")
    assert found["value"] == pytest.approx(stats.spearmanr(predictor, outcome).statistic)
    assert [found[n] for n in ("networks", "families", "groups", "dropped")] == [30, 6, 5, 0]
    low, high = found["ci95"]
    assert -1 <= low < found["value"] < high <= 1


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
    found = correlation(networks, "p", within=True)
    assert found["value"] == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_a_monotone_predictor_has_one_in_every_reading():
    rng = np.random.default_rng(1)
    family, group = crossed()
    outcome = effects(family, rng) + effects(group, rng) + rng.normal(size=120)
    networks = Networks(family, group, outcome, {"up": np.exp(outcome), "down": -(outcome**3)})
    for within in (False, True):
        for name, sign in (("up", 1), ("down", -1)):
            found = correlation(networks, name, within)
            assert found["value"] == pytest.approx(sign)
            assert found["ci95"] == pytest.approx([sign, sign])
            found = left_out(networks, (name,), within)
            assert found["pooled"]["value"] > 0.98 and found["pooled"]["ci95"][0] > 0.95
            assert found["mean"]["value"] > 0.95 and found["mean"]["ci95"][0] > 0.9


def test_what_only_tells_groups_apart_does_not_correlate_within_them():
    rng = np.random.default_rng(2)
    family, group = crossed()
    task = effects(group, rng)
    outcome = 3 * task + rng.normal(size=120)
    networks = Networks(family, group, outcome, {"task": 3 * task + rng.normal(size=120)})
    assert correlation(networks, "task")["ci95"][0] > 0.5
    assert not excludes_0(correlation(networks, "task", within=True))
    assert left_out(networks, ("task",))["mean"]["ci95"][0] > 0.4
    assert not excludes_0(left_out(networks, ("task",), within=True)["mean"])
    # nor does it say anything that the other families' mean does not
    sets = {"task": ("task", GROUP_MEAN), "trivial": (GROUP_MEAN,)}
    beyond = compare(networks, sets)["task"]["beyond"]["trivial"]
    assert not excludes_0(beyond["pooled"]) and not excludes_0(beyond["mean"])


def test_what_tells_networks_apart_adds_to_the_mean_of_their_group():
    rng = np.random.default_rng(3)
    family, group = crossed()
    own = rng.normal(size=120)
    outcome = effects(group, rng) + own
    networks = Networks(family, group, outcome, {"own": own + 0.3 * rng.normal(size=120)})
    sets = {"both": (GROUP_MEAN, "own"), "trivial": (GROUP_MEAN,), "own": ("own",)}
    found = compare(networks, sets)
    assert list(found) == list(sets)
    for kind in ("pooled", "mean"):
        values = {title: found[title][kind]["value"] for title in sets}
        assert values["both"] > max(values["trivial"], values["own"])
        beyond = found["both"]["beyond"]["trivial"][kind]
        assert beyond["value"] == pytest.approx(values["both"] - values["trivial"])
        back = found["trivial"]["beyond"]["both"][kind]
        assert back["value"] == -beyond["value"]
        assert back["ci95"] == pytest.approx([-end for end in beyond["ci95"][::-1]])
    assert found["both"]["beyond"]["trivial"]["mean"]["ci95"][0] > 0
    within = compare(networks, sets, within=True)
    for kind in ("pooled", "mean"):
        assert within["trivial"][kind] == {"value": 0, "ci95": [0, 0]}  # constant inside a group
        beyond, own = within["own"]["beyond"]["trivial"][kind], within["own"][kind]
        assert beyond["value"] == own["value"] and beyond["ci95"][0] == own["ci95"][0]
    assert within["own"]["pooled"]["ci95"][0] > 0.5


def predicted_by_loops(networks, names, family):
    """Of the family left out, by ranks of scipy and the ridge's normal equations."""
    fitted = networks.family != family

    def positions(values):
        below = [np.mean([(w < v) + 0.5 * (w == v) for w in values[fitted]]) - 0.5 for v in values]
        return np.array(below)

    def group_mean(i):
        other = fitted & (networks.family != networks.family[i])
        beside = other & (networks.group == networks.group[i])
        return networks.outcome[beside if beside.any() else other].mean()

    means = np.array([group_mean(i) for i in range(len(fitted))])
    columns = [means if name == GROUP_MEAN else networks.predictors[name] for name in names]
    x = np.stack([positions(np.round(column, 12)) for column in columns], axis=1)
    x /= x[fitted].std(axis=0, keepdims=True)
    y = positions(networks.outcome)
    design = np.concatenate([x[fitted], np.eye(len(names))])  # a ridge of 1 is such rows
    target = np.concatenate([y[fitted], np.zeros(len(names))])
    return x[~fitted] @ np.linalg.lstsq(design, target)[0]


@pytest.mark.parametrize("names", [("a",), ("b", "a", GROUP_MEAN)])
def test_predictions_for_a_family_are_of_fits_to_the_others(names):
    rng = np.random.default_rng(4)
    family, group = crossed(4, 5, 2)
    group[0] = "alone"  # without another family: the mean of all groups
    outcome = rng.integers(6, size=40) / 5 + effects(group, rng)
    predictors = {"a": outcome + rng.normal(size=40), "b": rng.integers(3, size=40)}
    networks = Networks(family, group, outcome, predictors)
    found = left_out(networks, names)
    every = np.empty(40)
    for name in np.unique(family):
        own = family == name
        every[own] = predicted_by_loops(networks, names, name)
        assert len(np.unique(every[own].round(10))) > 4
        expected = stats.spearmanr(every[own].round(10), outcome[own]).statistic
        assert found["by_family"][name] == pytest.approx(expected)
    expected = stats.spearmanr(every.round(10), outcome).statistic
    assert found["pooled"]["value"] == pytest.approx(expected)
    scores = np.array(list(found["by_family"].values()))
    assert found["mean"]["value"] == pytest.approx(scores.mean())
    variance = scores.var(ddof=1) * (1 / 4 + 1 / 3)
    assert found["mean"]["ci95"] == pytest.approx(ends(scores.mean(), variance, 3))


def test_the_left_out_familys_outcomes_do_not_enter_its_predictions():
    rng = np.random.default_rng(5)
    family, group = crossed(5, 6)
    outcome, own = rng.normal(size=30), family == "model 2"
    predictors = {"a": rng.normal(size=30)}
    networks = Networks(family, group, outcome, predictors)
    other = networks._replace(outcome=np.where(own, -7 * outcome, outcome))
    for within in (False, True):
        before, after = (
            prediction._predictions(each, ("a", GROUP_MEAN), within) for each in (networks, other)
        )
        np.testing.assert_array_equal(before[own], after[own])
        assert np.abs(before - after)[~own].max() > 1e-3


def jackknife(predictor, outcome, labels):
    """Variance of Spearman's correlation over clusters, by loops."""
    names = np.unique(labels)
    value = lambda kept: stats.spearmanr(predictor[kept], outcome[kept]).statistic
    squares = [(value(labels != n) - value(labels != -1)) ** 2 for n in names]
    return (len(names) - 1) / len(names) * np.sum(squares)


def ends(value, variance, freedom):
    half = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    return np.clip([value - half, value + half], -1, 1)


@pytest.mark.parametrize(
    ("of_families", "of_groups", "largest"), [(3, 0, 0), (0, 3, 1), (0.5, 0.5, 2)]
)
def test_the_interval_is_the_jackknifes_by_loops(of_families, of_groups, largest):
    """Of the families, the groups, or both less that of single networks: each is once largest."""
    rng = np.random.default_rng(5)
    family, group = (each.ravel() for each in np.indices((9, 12)))

    def noise():
        effect = of_families * effects(family, rng) + of_groups * effects(group, rng)
        return effect + 0.7 * rng.normal(size=108)

    outcome, predictor = noise(), noise()
    families, groups, single = (
        jackknife(predictor, outcome, labels) for labels in (family, group, np.arange(108))
    )
    variances = [families, groups, families + groups - single]
    assert np.argmax(variances) == largest
    networks = Networks(family, group, outcome, {"p": predictor})
    found = correlation(networks, "p")
    assert found["ci95"] == pytest.approx(ends(found["value"], max(variances), 8))
    assert max(np.abs(found["ci95"])) < 1
    # of a single group only the families vary
    found = correlation(networks._replace(group=np.zeros(108)), "p")
    assert found["ci95"] == pytest.approx(ends(found["value"], families, 8))


def test_the_interval_of_what_is_left_out_is_wider_by_the_fits_share():
    rng = np.random.default_rng(3)
    family, group = np.indices((8, 9)).reshape(2, -1)
    outcome = rng.normal(size=72)
    networks = Networks(family, np.zeros(72), outcome, {"p": outcome + rng.normal(size=72)})
    predicted = prediction._predictions(networks, ("p",), within=False)
    variance = jackknife(predicted, outcome, family) * (1 + 8 / 7)
    found = left_out(networks, ("p",))["pooled"]
    assert found["ci95"] == pytest.approx(ends(found["value"], variance, 7))
    assert found["ci95"][1] < 1


@pytest.mark.parametrize("clustered", [False, True], ids=["independent", "of families and groups"])
def test_intervals_of_noise_contain_0_as_often_as_they_say(clustered):
    """Where scipy's p-value, which takes networks for independent, rejects far too often."""
    rng = np.random.default_rng(7)
    family, group = crossed(8, 6)
    draws, naive, rejected = 400, 0, dict.fromkeys(("overall", "within", "left out"), 0)

    def noise():
        own = rng.normal(size=48)
        return own + effects(family, rng) + effects(group, rng) if clustered else own

    for _ in range(draws):
        networks = Networks(family, group, noise(), {"p": noise()})
        naive += stats.spearmanr(networks.predictors["p"], networks.outcome).pvalue < 0.05
        rejected["overall"] += excludes_0(correlation(networks, "p"))
        rejected["within"] += excludes_0(correlation(networks, "p", within=True))
        rejected["left out"] += left_out(networks, ("p",), within=True)["mean"]["ci95"][0] > 0
    most = stats.binom.ppf(0.999, draws, 0.05)
    assert all(count <= most for count in rejected.values()), rejected
    assert rejected["within"] > 0
    assert naive > 2 * most if clustered else naive <= most


def test_the_interval_covers_a_correlation_that_is_there():
    """Of two normal numbers of correlation .6, Spearman's is 6/pi asin(.3)."""
    rng, covered = np.random.default_rng(8), 0
    family, group = crossed(8, 6)
    true = 6 / np.pi * np.arcsin(0.3)
    for _ in range(100):
        outcome = rng.normal(size=48)
        predictor = 0.6 * outcome + 0.8 * rng.normal(size=48)
        low, high = correlation(Networks(family, group, outcome, {"p": predictor}), "p")["ci95"]
        covered += low < true < high
    assert covered >= 88


def test_networks_without_a_number_are_dropped_and_counted():
    rng = np.random.default_rng(9)
    family, group = crossed(5, 6)
    outcome, a, b = rng.normal(size=(3, 30))
    gone = np.zeros(30, bool)
    gone[[0, 7, 11]] = True
    holes = Networks(family, group, outcome, {"a": np.where(gone, np.nan, a), "b": b})
    rest = Networks(family[~gone], group[~gone], outcome[~gone], {"a": a[~gone], "b": b[~gone]})
    assert correlation(holes, "a") == correlation(rest, "a") | {"dropped": 3}
    assert correlation(holes, "b")["dropped"] == 0
    unknown = holes._replace(outcome=np.where(gone, np.inf, outcome))
    assert correlation(unknown, "b") == correlation(rest, "b") | {"dropped": 3}
    # of sets that are compared, all have the same networks
    sets = {"a": ("a",), "b": ("b",)}
    found, expected = compare(holes, sets), compare(rest, sets)
    assert found == {name: each | {"dropped": 3} for name, each in expected.items()}
    # within groups, a family that is alone in one has none to be ranked among
    alone = holes._replace(group=np.where(np.arange(30) == 20, "alone", group))
    assert left_out(alone, ("b",), within=True)["dropped"] == 1


def test_nothing_to_rank_is_nan_and_a_silent_predictor_is_0():
    rng = np.random.default_rng(10)
    family, group = crossed(4, 5)
    outcome = np.where(family == "model 0", 0.0, rng.normal(size=20))
    networks = Networks(family, group, outcome, {"same": np.ones(20), "p": rng.normal(size=20)})
    for within in (False, True):
        assert np.isnan(correlation(networks, "same", within)["value"])
        assert np.isnan(correlation(networks, "same", within)["ci95"]).all()
    found = left_out(networks, ("same",))
    assert np.isnan(found["by_family"]["model 0"])  # its outcomes are equal
    assert [found["by_family"][f"model {k}"] for k in (1, 2, 3)] == [0, 0, 0]
    assert found["mean"] == found["pooled"] == {"value": 0, "ci95": [0, 0]}
    solved = networks._replace(outcome=np.ones(20))
    assert np.isnan(correlation(solved, "p")["value"])
    assert np.isnan(left_out(solved, ("p",))["mean"]["value"])
    one = networks._replace(family=np.zeros(20))
    assert np.isfinite(correlation(one, "p")["value"])
    assert np.isnan(correlation(one, "p")["ci95"]).all()
    nothing = networks._replace(outcome=np.full(20, np.nan))
    assert np.isnan(correlation(nothing, "p")["value"])


def test_bad_input_is_named():
    family, group = crossed(4, 5)
    good = Networks(family, group, np.arange(20.0), {"p": np.arange(20.0)})
    with pytest.raises(ValueError, match=r"predictor 'q' is none of \['p'\]"):
        correlation(good, "q")
    with pytest.raises(ValueError, match=r"predictors \['q'\] are none of \['p'\]"):
        left_out(good, ("p", "q"))
    with pytest.raises(ValueError, match="p must be a number for each network"):
        correlation(good._replace(predictors={"p": np.ones(3)}), "p")
    with pytest.raises(ValueError, match="family must be a number for each network"):
        correlation(good._replace(family=family[:3]), "p")
    with pytest.raises(ValueError, match="family must be a number for each network"):
        correlation(Networks([], [], [], {"p": []}), "p")
    with pytest.raises(ValueError, match="at least 3 families needed to leave one out"):
        left_out(good._replace(family=np.arange(20) % 2), ("p",))


def test_a_difference_may_exceed_one():
    """Of a predictor that turns round in one family from one that does not."""
    rng = np.random.default_rng(11)
    family, group = crossed(5, 8)
    outcome = rng.normal(size=40)
    turned = np.where(family == "model 4", -outcome, outcome)
    networks = Networks(family, group, outcome, {"right": outcome, "turned": turned})
    found = compare(networks, {"right": ("right",), "turned": ("turned",)})
    scores = [found["turned"]["by_family"][f"model {k}"] for k in range(5)]
    assert min(scores[:4]) > 0.9 and scores[4] < -0.9
    beyond = found["right"]["beyond"]["turned"]["mean"]
    assert beyond["value"] == pytest.approx(0.4, abs=0.05) and 1 < beyond["ci95"][1] <= 2
