import numpy as np
import pytest

from compgen_jax.metrics import decodability
from compgen_jax.metrics.probes import PENALTIES
from compgen_jax.statistics import jackknife_interval
from tests.metrics.test_probes import explicit_ridge

T_11 = 2.200985160  # Student's t of 11 degrees of freedom, from a table


def rows(groups=24, each=4, factors=2, features=7, noise=0.5, held_out=8, seed=0):
    """Layers of one linear map, targets by the group, and the first groups held out."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), each)
    values = rng.normal(size=(groups, factors))[group]
    layer = values @ rng.normal(size=(factors, features))
    layer += noise * rng.normal(size=layer.shape)
    return layer, values, group < held_out, group


def brute_auc(positive, predictions, strata=None):
    strata = np.zeros(len(positive)) if strata is None else strata
    wins, pairs = 0.0, 0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            if strata[i] == strata[j]:
                wins += (predictions[i] > predictions[j]) + (predictions[i] == predictions[j]) / 2
                pairs += 1
    return wins / pairs if pairs else np.nan


def plain_r2(targets, predictions):
    return 1 - np.sum((targets - predictions) ** 2) / np.sum((targets - targets.mean()) ** 2)


def refitted(features, target_B, fitted, inner_folds, new):
    """Predictions of `new` rows by a ridge on `fitted` ones, by normal equations, its penalty the
    best when each inner fold is predicted by refits on the others."""

    def predict(fit, asked, penalty):
        centred = features[fit] - features[fit].mean(axis=0)
        unit = np.sum(centred**2) / np.linalg.matrix_rank(features - features.mean(axis=0))
        weights, intercept = explicit_ridge(features[fit], target_B[fit, None], penalty * unit)
        return (features[asked] @ weights + intercept)[:, 0]

    errors = []
    for penalty in PENALTIES:
        error = 0.0
        for k in np.unique(inner_folds[fitted]):
            left, kept = fitted & (inner_folds == k), fitted & (inner_folds != k)
            error += np.sum((target_B[left] - predict(kept, left, penalty)) ** 2)
        errors.append(error)
    return predict(fitted, new, PENALTIES[np.argmin(errors)])


@pytest.mark.parametrize("features", [7, 150])
def test_predictions_against_nested_refits_by_normal_equations(features):
    """Fewer and more features than rows."""
    layer, values, held_out, group = rows(features=features)
    small = decodability.compact(layer)
    fold = np.where(held_out, -1, group % 4)
    found = decodability.cross_fitted(small, values, np.arange(2), fold, 4)
    for f in range(2):
        for k in (-1, 0, 3):
            new, fitted = fold == k, ~held_out & (fold != k)
            wanted = refitted(small, values[:, f], fitted, fold, new)
            np.testing.assert_allclose(found[new, f], wanted, atol=1e-6)


def test_errors_from_moments_and_from_rows_agree():
    """Many rows are summed up before the penalties are tried, few are not."""
    layer, values, _, _ = rows(noise=2.0)
    fit = decodability._fit(*decodability._moments(layer[:40], values[:40]))
    few = decodability._errors(fit, layer[40:46], values[40:46])
    few += decodability._errors(fit, layer[46:52], values[46:52])
    np.testing.assert_allclose(decodability._errors(fit, layer[40:52], values[40:52]), few)


def test_columns_of_one_owner_share_a_penalty():
    errors = np.full((len(PENALTIES), 3), 9.0)
    errors[4, 0], errors[7, 1], errors[7, 2] = 1, 3, 5  # together 7 is best for the last two
    errors[2, 1], errors[2, 2] = 2, 8
    found = decodability._best(errors, np.array([0, 1, 1]))
    np.testing.assert_array_equal(found, PENALTIES[[4, 7, 7]])


def test_folds_keep_groups_whole_and_are_even():
    _, _, held_out, group = rows(groups=31, each=3)
    fold = decodability._folds(group, held_out, 5, np.random.default_rng(0))
    assert (fold[held_out] == -1).all() and set(fold[~held_out]) == set(range(5))
    for g in range(8, 31):
        assert len(set(fold[group == g])) == 1
    counts = [len(set(group[fold == k])) for k in range(5)]
    assert max(counts) - min(counts) <= 1


def test_features_that_give_the_group_away_decode_nothing_of_a_new_group():
    """As its own group each row is known from its twins, wholly; whole groups leave nothing."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 6)
    values = rng.normal(size=(60, 2))[group]
    layer = rng.normal(size=(60, 200))[group] + 0.01 * rng.normal(size=(360, 200))
    held_out = group < 20
    together = decodability.decode({"a": layer}, values, held_out, group).scores
    apart = decodability.decode({"a": layer}, values, held_out).scores
    assert (np.abs(together["id"]) < 0.15).all() and (apart["id"] > 0.98).all()
    assert (together["ood"] < 0.15).all() and (apart["ood"] < 0.15).all()


def test_scores_are_those_of_the_predictions():
    layer, values, held_out, group = rows(factors=3)
    values[:, 1] = values[:, 1] > 0
    values[:, 2] = np.digitize(values[:, 2], [-0.5, 0.5])
    classes = (False, True, True)
    found = decodability.decode({"a": layer}, values, held_out, group, classes=classes)
    assert found.measures == ("r2", "auc", "auc")
    fold = decodability._folds(group, held_out, 5, np.random.default_rng(0))
    columns = np.column_stack([values[:, :2], values[:, 2:] == np.arange(3)])
    owner = np.array([0, 1, 2, 2, 2])
    fitted = decodability.cross_fitted(decodability.compact(layer), columns, owner, fold, 5)
    for region, mask in (("id", ~held_out), ("ood", held_out)):
        r2 = plain_r2(columns[mask, 0], fitted[mask, 0])
        auc = [brute_auc(columns[mask, c] > 0, fitted[mask, c], fold[mask]) for c in range(1, 5)]
        wanted = [r2, auc[0], np.mean(auc[1:])]
        np.testing.assert_allclose(found.scores[region][0], wanted, atol=1e-9)


def test_two_values_are_labels_unless_it_is_said_which_factors_are():
    layer, values, held_out, group = rows(factors=2)
    values[:, 1] = np.where(values[:, 1] > 0, 5.0, -3.0)
    decode = lambda classes: decodability.decode(
        {"a": layer}, values, held_out, group, classes=classes
    )
    found, numbers = decode(None), decode((False, False))
    assert found.measures == ("r2", "auc") and numbers.measures == ("r2", "r2")
    fold = decodability._folds(group, held_out, 5, np.random.default_rng(0))
    small = decodability.compact(layer)
    fitted = decodability.cross_fitted(small, values, np.arange(2), fold, 5)[:, 1]
    seen, target = ~held_out, values[:, 1]
    assert numbers.scores["id"][0, 1] == pytest.approx(plain_r2(target[seen], fitted[seen]))
    auc = brute_auc(target[seen] > 0, fitted[seen], fold[seen])
    assert found.scores["id"][0, 1] == pytest.approx(auc)


def test_ranks_and_auc_with_ties_against_all_pairs():
    rng = np.random.default_rng(0)
    values, strata = rng.integers(0, 6, 80).astype(float), rng.integers(0, 3, 80)
    for i in range(80):
        same = values[strata == strata[i]]
        rank = np.sum(same < values[i]) + (np.sum(same == values[i]) + 1) / 2
        assert decodability.midranks(values, strata)[i] == rank
    positive = rng.random(80) < 0.3
    found, _ = decodability._auc(positive, values, strata)
    assert found == pytest.approx(brute_auc(positive, values, strata))
    assert decodability._auc(positive, np.ones(80), strata)[0] == 0.5
    assert np.isnan(decodability._auc(positive, values, positive)[0])  # no pair in any stratum


def test_scores_without_a_group_against_loops():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 9, 90)
    strata = group % 2  # a group is whole within a stratum
    targets, positive = rng.normal(size=90), rng.random(90) < 0.4
    predictions = targets + positive + rng.integers(0, 3, 90)
    r2, r2_without = decodability._r2(targets, predictions, group)
    auc, auc_without = decodability._auc(positive, predictions, strata, group)
    assert r2 == pytest.approx(plain_r2(targets, predictions))
    assert auc == pytest.approx(brute_auc(positive, predictions, strata))
    for g in range(9):
        kept = group != g
        assert r2_without[g] == pytest.approx(plain_r2(targets[kept], predictions[kept]))
        wanted = brute_auc(positive[kept], predictions[kept], strata[kept])
        assert auc_without[g] == pytest.approx(wanted)


def test_intervals_are_those_of_pseudo_values_and_cover():
    """Of an R^2 whose limit is known, over groups that share their noise."""
    hits, rng = 0, np.random.default_rng(0)
    for _ in range(200):
        group = np.repeat(np.arange(30), 5)
        shared = rng.normal(size=(2, 30))[:, group]
        targets, noise = shared + 0.3 * rng.normal(size=(2, 150))
        full, without = decodability._r2(targets, targets + 0.5 * noise, group)
        low, high = jackknife_interval(full, without, most=1)
        hits += low <= 0.75 <= high
    assert hits >= 175


def test_a_constant_target_is_nan_and_leaves_the_means_alone():
    layer, values, held_out, group = rows(factors=5)
    values[:, 1] = 0.1  # everywhere; its mean is not exactly that
    values[held_out, 2] = 0.3
    values[~held_out, 3] = 0.3
    values[:, 4] = np.where(held_out, 1.0, np.where(group % 2, 1.0, 0.0))
    found = decodability.decode({"a": layer}, values, held_out, group)
    nan = {name: np.isnan(found.scores[name][0]).tolist() for name in found.scores}
    assert nan["id"] == nan["shuffled.id"] == [False, True, False, True, False]
    assert nan["ood"] == nan["shuffled.ood"] == [False, True, True, True, True]
    assert not any(np.isinf(scores).any() for scores in found.scores.values())
    assert decodability.means(found, "ood")[0]["value"] == found.scores["ood"][0, 0]
    assert np.isfinite(decodability.means(found, "ood")[0]["ci95"]).all()
    assert np.isfinite(found.quality).all()
    assert np.isnan(decodability.means(found, "ood", "auc")[0]["value"])


def test_constant_features_decode_nothing_and_give_chance():
    _, values, held_out, group = rows(factors=2)
    values[:, 1] = values[:, 1] > 0
    found = decodability.decode({"a": np.full((96, 3, 4), 0.3)}, values, held_out, group)
    assert found.scores["id"][0, 0] <= 0 and found.scores["ood"][0, 0] <= 0
    assert found.scores["id"][0, 1] == found.scores["ood"][0, 1] == 0.5


def test_groups_get_the_targets_of_whole_groups():
    """Donors of one size give all their rows; smaller ones repeat; held-out rows keep theirs."""
    group = np.array([5, 5, 5, 1, 1, 2, 9, 9, 1, 5])
    held_out = group == 9
    moved = set()
    for seed in range(20):
        donor = decodability._donors(group, held_out, np.random.default_rng(seed))
        assert (donor[held_out] == np.flatnonzero(held_out)).all()
        given = {}
        for g in (1, 2, 5):
            (given[g],) = set(group[donor[group == g]])
        assert sorted(given.values()) == [1, 2, 5]
        moved.add(given[5])
        if given[5] == 1:
            assert donor[group == 5].tolist() == [3, 4, 8, 3]
    assert moved == {1, 2, 5}


def test_the_layer_is_chosen_on_id_rows_alone_and_ties_go_to_the_earliest():
    layer, values, held_out, group = rows(noise=0.0)
    rng = np.random.default_rng(3)
    noise = rng.normal(size=layer.shape)
    only_ood = layer + np.where(held_out[:, None], 0, 2.0) * noise
    only_id = layer + np.where(held_out[:, None], 2.0, 0.2) * noise
    layers = {"only_ood": only_ood, "only_id": only_id, "again": only_id}
    found = decodability.decode(layers, values, held_out, group)
    assert found.chosen == "only_id"
    ood = [mean["value"] for mean in decodability.means(found, "ood")]
    assert ood[0] > ood[1]
    turned = only_id[:, ::-1] * 3  # the same but for rounding
    layers = {"turned": turned, "only_id": only_id}
    assert decodability.decode(layers, values, held_out, group).chosen == "turned"
    saturated = {name: layer + size * noise for name, size in
                 (("less", 0.3), ("early", 0.01), ("late", 0.001))}  # fmt: skip
    found = decodability.decode(saturated, values, held_out, group)
    less, early, late = (mean["value"] for mean in decodability.means(found, "id"))
    assert less < 0.999 * late and early < late and found.chosen == "early"


def test_quality_of_real_factors_is_the_standardised_squared_error():
    layer, values, held_out, group = rows(noise=1.0)
    values[:, 1] *= 1000  # no factor counts more for its units
    found = decodability.decode({"a": layer}, values, held_out, group)
    fold = decodability._folds(group, held_out, 5, np.random.default_rng(0))
    small = decodability.compact(layer)
    fitted = decodability.cross_fitted(small, values, np.arange(2), fold, 5)
    wanted = -np.mean((values - fitted) ** 2 / values[~held_out].var(axis=0), axis=1)
    np.testing.assert_allclose(found.quality[0], wanted)


def test_margin_of_two_labels_by_hand():
    """Predictions .6 and .2 in the mean: halfway is .4, and beyond .6 or .2 nothing is gained."""
    label = np.array([1, 1, 0, 0, 1, 1, 0, 0.0])
    prediction = np.array([0.5, 0.7, 0.1, 0.3, 0.45, 5.0, -3.0, 0.5])
    held_out = np.arange(8) >= 4
    found = decodability._margin(label[:, None], prediction[:, None], held_out)
    np.testing.assert_allclose(found, [0.2, 0.4, 0.4, 0.2, 0.1, 0.4, 0.4, -0.2], atol=1e-12)


def test_margin_of_three_labels_knows_only_those_it_was_fitted_to():
    label = np.array([0, 0, 1, 1, 2, 0])
    onehot = np.eye(3)[label]
    held_out = np.arange(6) >= 4
    found = decodability._margin(onehot, onehot.copy(), held_out)
    np.testing.assert_allclose(found[[0, 1, 2, 3, 5]], 1)
    assert np.isnan(found[4])


def spearman(a, b):
    rank = lambda values: np.array([np.sum(values < v) + np.sum(values <= v) for v in values])
    return np.corrcoef(rank(a), rank(b))[0, 1]


def test_success_correlation_against_ranks_and_loops():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(15), 4)
    held_out = group >= 3
    quality = rng.integers(0, 9, 60).astype(float)
    success = np.round(np.clip(quality / 9 + 0.5 * rng.normal(size=60), 0, 1), 1)
    quality[20] = np.nan
    found = decodability.success_correlation(quality, success, held_out, group)
    used = held_out & ~np.isnan(quality)
    assert found["value"] == pytest.approx(spearman(quality[used], success[used]))
    without = np.array([
        spearman(quality[used & (group != g)], success[used & (group != g)]) for g in range(3, 15)
    ])  # fmt: skip
    values = 12 * np.arctanh(found["value"]) - 11 * np.arctanh(without)
    half = T_11 * values.std(ddof=1) / np.sqrt(12)
    ends = np.tanh([values.mean() - half, values.mean() + half])
    assert found["ci95"] == pytest.approx(ends, rel=1e-5)


def test_success_that_follows_decodability_and_success_that_does_not():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(600, 2))
    noise = np.where(np.arange(600) < 300, rng.uniform(0, 3, 600), 0.5)
    layer = values @ rng.normal(size=(2, 8)) + noise[:, None] * rng.normal(size=(600, 8))
    held_out = np.arange(600) < 300
    quality = decodability.decode({"a": layer}, values, held_out).quality[0]
    follows = decodability.success_correlation(quality, np.exp(-noise), held_out)
    assert follows["ci95"][0] > 0.3 and follows["value"] > 0.5
    apart = decodability.success_correlation(quality, rng.random(600), held_out)
    assert apart["ci95"][0] < 0 < apart["ci95"][1]
    exact = decodability.success_correlation(quality, np.argsort(np.argsort(quality)), held_out)
    assert exact["value"] == pytest.approx(1) and exact["ci95"] == pytest.approx([1, 1])
    constant = decodability.success_correlation(quality, np.ones(600), held_out)
    assert np.isnan(constant["value"]) and np.isnan(constant["ci95"]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": {}}, "no layers"),
        ({"layers": {"a": np.ones((95, 3))}}, r"layer a \(95, 3\) for 96 rows"),
        ({"layers": {"a": np.full((96, 3), np.nan)}}, "layer a: NaN or infinite"),
        ({"factors_BxF": np.ones(96)}, r"factors \(96,\)"),
        ({"factors_BxF": np.full((96, 1), np.inf)}, "factors: NaN or infinite"),
        ({"factors_BxF": np.ones((96, 2))}, "every factor is constant among the ID rows"),
        ({"held_out_B": np.zeros(96, bool)}, "no row is held out"),
        ({"held_out_B": np.arange(96) < 60}, "9 ID groups: at least 3 folds and 2 groups in each"),
        ({"held_out_B": np.arange(96) < 30}, "a group is ID at row 30 and held out at row 28"),
        ({"groups_B": np.arange(95)}, r"groups \(95,\) for 96 rows"),
        ({"folds": 2}, "at least 3 folds"),
        ({"classes": (True,)}, "for 2 factors"),
    ],
)
def test_bad_input_is_named(change, message):
    layer, values, held_out, group = rows()
    given = {"layers": {"a": layer}, "factors_BxF": values, "held_out_B": held_out,
             "groups_B": group}  # fmt: skip
    with pytest.raises(ValueError, match=message):
        decodability.decode(**(given | change))
    with pytest.raises(ValueError, match=r"all must be \(B,\)"):
        decodability.success_correlation(values[:, 0], values[:5, 0], held_out)
