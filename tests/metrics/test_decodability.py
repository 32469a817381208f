import numpy as np
import pytest
from scipy.stats import spearmanr

from compgen_jax.metrics import decodability, readout
from compgen_jax.statistics import jackknife_interval


def rows(groups=24, each=4, factors=2, features=7, noise=0.5):
    """Layers of one linear map, targets by the group, and the first groups held out."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(groups), each)
    values = rng.normal(size=(groups, factors))[group]
    layer = values @ rng.normal(size=(factors, features))
    layer += noise * rng.normal(size=layer.shape)
    return layer, values, group < 8, group


def brute_auc(positive, predictions, strata):
    """Of all pairs of a stratum, ties count half."""
    pairs = positive[:, None] & ~positive & (strata[:, None] == strata)
    wins = 0.5 + np.sign(predictions[:, None] - predictions) / 2
    return wins[pairs].mean() if pairs.any() else np.nan


def plain_r2(targets, predictions):
    around = targets - targets.mean(axis=0)
    return 1 - np.sum((targets - predictions) ** 2) / np.sum(around**2)


def test_scores_are_those_of_the_predictions(rng):
    layer, values, held_out, group = rows(factors=3)
    values[:, 0] *= 1000  # no factor counts more for its units
    values[:, 1] = values[:, 1] > 0
    values[:, 2] = np.digitize(values[:, 2], [-0.5, 0.5])
    classes = (False, True, True)
    decoded = decodability.decode({"a": layer}, values, held_out, group, classes=classes)
    assert decoded.measures == ("r2", "auc", "auc")
    fold = readout.folds_of(group, held_out, 5, rng)
    donors = [decodability._donors(group, held_out, rng) for _ in range(3)]
    columns = np.column_stack([values[:, :2], values[:, 2:] == np.arange(3)])
    controls = [columns[donor, :1] for donor in donors]
    parts = [*np.split(columns, [1, 2], axis=1), *controls]
    *fitted, a, b, c = readout.cross_fitted_by_folds(readout.compact(layer), parts, fold, 5)
    fitted = np.concatenate(fitted, axis=1)
    for region, mask in (("id", ~held_out), ("ood", held_out)):
        r2 = [plain_r2(t[mask], p[mask]) for t, p in zip(controls, (a, b, c), strict=True)]
        assert decoded.scores[f"shuffled.{region}"][0, 0] == pytest.approx(np.mean(r2))
        r2 = plain_r2(columns[mask, 0], fitted[mask, 0])
        auc = [brute_auc(columns[mask, c] > 0, fitted[mask, c], fold[mask]) for c in range(1, 5)]
        wanted = [r2, auc[0], np.mean(auc[1:])]
        np.testing.assert_allclose(decoded.scores[region][0], wanted, atol=1e-9)
    error = (values[:, 0] - fitted[:, 0]) ** 2 / values[~held_out, 0].var()
    margins = [
        decodability._margin(columns[:, k], fitted[:, k], held_out) for k in ([1], [2, 3, 4])
    ]
    np.testing.assert_allclose(decoded.quality[0], np.mean([-error, *margins], axis=0))


def test_scores_without_a_group_against_loops():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 9, 90)
    strata = group % 2  # a group is whole within a stratum
    targets, positive = rng.normal(size=90), rng.random(90) < 0.4
    predictions = np.round(targets + positive + rng.integers(0, 3, 90))  # with ties
    _, *r2_without = decodability._r2(targets, predictions, group)
    _, *auc_without = decodability._auc(positive, predictions, strata, group)
    for g in range(9):
        kept = group != g
        assert r2_without[g] == pytest.approx(plain_r2(targets[kept], predictions[kept]))
        wanted = brute_auc(positive[kept], predictions[kept], strata[kept])
        assert auc_without[g] == pytest.approx(wanted)
    _, first, *others = decodability._r2(0.1 + (group == 0), predictions, group)
    assert np.isnan(first) and np.isfinite(others).all()  # the rest is constant


def test_a_constant_target_is_nan_and_leaves_the_means_alone():
    layer, values, held_out, group = rows(factors=4)
    values[:, 1] = 0.1  # everywhere; its mean is not exactly that
    values[held_out, 2] = 0.3
    values[:, 3] = np.where(held_out, 1.0, group % 2)
    decoded = decodability.decode({"a": layer}, values, held_out, group)
    for region, unknown in (("id", [0, 1, 0, 0]), ("ood", [0, 1, 1, 1])):
        for name in (region, f"shuffled.{region}"):
            np.testing.assert_array_equal(np.isnan(decoded.scores[name][0]), unknown)
    (mean,) = decodability.means(decoded, "ood")
    score, without = decoded.scores["ood"][0, 0], decoded.without["ood"][0, 0]
    ends = jackknife_interval(score, without, most=1)
    assert mean == {"value": score, "ci95": pytest.approx(ends)}
    assert np.isfinite(decoded.quality).all()


def test_groups_get_the_targets_of_whole_groups():
    """Donors of one size give all their rows; smaller ones repeat; held-out rows keep theirs."""
    group = np.array([5, 5, 5, 1, 1, 2, 9, 9, 1, 5])
    given_to_5 = {5: [0, 1, 2, 9], 1: [3, 4, 8, 3], 2: [5, 5, 5, 5]}
    moved = set()
    for seed in range(20):
        donor = decodability._donors(group, group == 9, np.random.default_rng(seed))
        assert donor[[6, 7]].tolist() == [6, 7]
        of_5 = group[donor[0]]
        assert donor[group == 5].tolist() == given_to_5[of_5]
        assert {of_5, group[donor[3]], group[donor[5]]} == {1, 2, 5}
        moved.add(of_5)
    assert moved == {1, 2, 5}


def test_the_layer_is_chosen_on_id_rows_alone_and_ties_go_to_the_earliest():
    layer, values, held_out, group = rows(noise=0.0)
    noise = np.random.default_rng(3).normal(size=layer.shape)
    only_ood = layer + np.where(held_out[:, None], 0, 2.0) * noise
    layers = {"only_ood": only_ood}
    layers |= {f"{share:g} of noise": layer + share * noise for share in (0.3, 0.01, 0.001)}
    decoded = decodability.decode(layers, values, held_out, group)
    _, less, early, late = (mean["value"] for mean in decodability.means(decoded, "id"))
    assert less < 0.999 * late and early < late and decoded.chosen == "0.01 of noise"


def test_margins_by_hand():
    """Predictions .6 and .2 in the mean: halfway is .4, and beyond .6 or .2 nothing is gained."""
    label = np.array([1, 1, 0, 0, 1, 1, 0, 0.0])
    prediction = np.array([0.5, 0.7, 0.1, 0.3, 0.45, 5.0, -3.0, 0.5])
    held_out = np.arange(8) >= 4
    found = decodability._margin(label[:, None], prediction[:, None], held_out)
    np.testing.assert_allclose(found, [0.2, 0.4, 0.4, 0.2, 0.1, 0.4, 0.4, -0.2], atol=1e-12)
    # of three labels, one that no ID row has is unknown
    onehot = np.eye(3)[[0, 0, 1, 1, 2, 0]]
    found = decodability._margin(onehot, onehot.copy(), np.arange(6) >= 4)
    np.testing.assert_allclose(found, [1, 1, 1, 1, np.nan, 1])


def test_success_correlation_against_ranks_and_loops(rng):
    group = np.repeat(np.arange(15), 4)
    held_out = group >= 3
    quality = rng.integers(0, 9, 60).astype(float)
    success = np.round(np.clip(quality / 9 + 0.5 * rng.normal(size=60), 0, 1), 1)
    quality[20] = np.nan
    found = decodability.success_correlation(quality, success, held_out, group)
    used = held_out & ~np.isnan(quality)
    value, *without = (
        spearmanr(quality[rows], success[rows])[0]
        for rows in (used, *(used & (group != g) for g in range(3, 15)))
    )
    assert found["value"] == pytest.approx(value)
    ends = np.tanh(jackknife_interval(np.arctanh(value), np.arctanh(without)))
    assert found["ci95"] == pytest.approx(ends, rel=1e-5)
    constant = decodability.success_correlation(quality, np.ones(60), held_out)
    assert np.isnan(constant["value"])
