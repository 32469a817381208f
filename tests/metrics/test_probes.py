import numpy as np
import pytest

from compgen_jax.metrics import probes
from tests.metrics.test_kernels import CELLS, HOLE, PROFILES, rotated


def random_problem(points=14, features=5, targets=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(points, features)) + 3, rng.normal(size=(points, targets)) - 5


def explicit_ridge(features, targets, penalty):
    """Weights and intercept from the normal equations, the intercept unpenalised."""
    design = np.column_stack([features, np.ones(len(features))])
    penalties = penalty * np.diag([1.0] * features.shape[1] + [0.0])
    solved = np.linalg.solve(design.T @ design + penalties, design.T @ targets)
    return solved[:-1], solved[-1]


@pytest.mark.parametrize("features", [5, 40])
def test_ridge_against_normal_equations_and_refits(features):
    """Fewer and more features than points; the leave-one-out error is that of actual refits."""
    points, targets = random_problem(features=features)
    found = probes.ridge(probes.decompose(points), targets)
    weights, intercept = explicit_ridge(points, targets, found.penalty)
    np.testing.assert_allclose(found.weights, weights, atol=1e-8)
    np.testing.assert_allclose(found.intercept, intercept, atol=1e-7)
    np.testing.assert_allclose(found(points[:3]), points[:3] @ weights + intercept, atol=1e-7)
    errors = []
    for i in range(len(points)):
        kept = np.arange(len(points)) != i
        weights, intercept = explicit_ridge(points[kept], targets[kept], found.penalty)
        errors.append(np.mean((points[i] @ weights + intercept - targets[i]) ** 2))
    assert found.loo_mse == pytest.approx(np.mean(errors))


def test_penalty_follows_the_leave_one_out_error():
    """The least for an exactly linear target, a strong one for a target that is only noise."""
    points, noise = random_problem(points=60, features=30)
    design = probes.decompose(points)
    mean_square = np.mean(design.scales**2)
    exact = probes.ridge(design, points @ np.ones((30, 1)))
    assert exact.penalty == pytest.approx(1e-8 * mean_square) and exact.loo_mse < 1e-10
    assert probes.ridge(design, noise).penalty > mean_square


@pytest.mark.parametrize("features", [6, 30])
def test_compact_features_have_the_same_inner_products(features):
    points, _ = random_problem(features=features)
    centred = points - points.mean(axis=0)
    small = probes.compact(points)
    assert small.shape[1] <= min(points.shape)
    np.testing.assert_allclose(small @ small.T, centred @ centred.T, atol=1e-10)


def test_primal_and_dual_agree():
    """Zero features make the problem dual without changing it; so does a rotation."""
    features = np.concatenate([PROFILES[CELLS[:, 0]], PROFILES[CELLS[:, 1]]], axis=1)
    features += 0.3 * np.random.default_rng(0).normal(size=features.shape)
    primal = probes.probe(features, CELLS, HOLE)
    dual = probes.probe(np.pad(features, ((0, 0), (0, 300))), CELLS, HOLE)
    turned = probes.probe(rotated(features), CELLS, HOLE)
    assert features.shape[1] < len(features) and 0.2 < primal["id_accuracy"][0] < 0.98
    for name, value in primal.items():
        np.testing.assert_allclose(dual[name], value, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(turned[name], value, atol=1e-6, err_msg=name)


def test_in_sample_r2_is_1_by_construction():
    """As many noise features as points decode anything in sample, and nothing out of it."""
    many = np.random.default_rng(0).normal(size=(256, 400))
    scores = probes.probe(many, CELLS, HOLE)
    np.testing.assert_allclose(scores["in_sample_r2"], 1)
    assert (np.abs(scores["id_r2"]) < 0.1).all() and (scores["ood_r2"] < 0.1).all()
    assert (scores["id_accuracy"] < 0.15).all()
    few = probes.probe(many[:, :64], CELLS, HOLE)["in_sample_r2"]
    assert (np.abs(few - 64 / 255) < 0.1).all()  # each noise feature explains 1 / (B - 1)


def test_scores_come_from_points_that_the_fit_has_not_seen():
    """Twins with features of their own: only a fit that has seen a twin knows the point."""
    twins = np.repeat(np.random.default_rng(0).normal(size=(128, 400)), 2, axis=0)
    scores = probes.probe(twins, np.repeat(CELLS[::2], 2, axis=0), np.arange(256) >= 192)
    assert (scores["id_r2"] > 0.5).all() and (scores["id_r2"] < 0.95).all()
    assert (scores["ood_r2"] < 0.2).all() and (scores["ood_accuracy"] < 0.3).all()


def test_a_linear_map_is_decoded_everywhere():
    features = CELLS @ np.random.default_rng(0).normal(size=(2, 500)) + 4
    scores = probes.probe(features, CELLS, HOLE)
    for name in ("in_sample_r2", "id_r2", "ood_r2"):
        np.testing.assert_allclose(scores[name], 1, atol=1e-6)
    assert (scores["shuffled.id_r2"] < 0.1).all() and (scores["shuffled.ood_r2"] < 0.2).all()


def test_x_and_y_are_scored_apart_x_first():
    scores = probes.probe(PROFILES[CELLS[:, 0]], CELLS, HOLE)
    assert scores["id_r2"][0] > 0.99 and scores["ood_r2"][0] > 0.99
    assert scores["id_accuracy"][0] == scores["ood_accuracy"][0] == 1
    for name in ("id_r2", "ood_r2", "in_sample_r2"):
        assert scores[name][1] < 0.1
    assert scores["id_accuracy"][1] < 0.2 and scores["ood_accuracy"][1] < 0.35
    assert (scores["shuffled.id_accuracy"] < 0.2).all()


@pytest.mark.parametrize("features", [3, 300])
def test_constant_features_decode_nothing(features):
    scores = probes.probe(np.full((256, features), 0.3, np.float32), CELLS, HOLE)
    assert all(np.isfinite(value).all() for value in scores.values())
    np.testing.assert_allclose(scores["in_sample_r2"], 0, atol=1e-12)
    assert (scores["id_r2"] <= 0).all() and (scores["id_accuracy"] < 0.2).all()


def test_without_ood_points_or_variance_scores_are_nan():
    scores = probes.probe(CELLS * 1.0, CELLS, np.zeros(256, bool))
    assert np.isnan(scores["ood_r2"]).all() and np.isnan(scores["ood_accuracy"]).all()
    np.testing.assert_allclose(scores["id_r2"], 1, atol=1e-6)
    flat_y = np.where([True, False], CELLS, 4)
    scores = probes.probe(CELLS * 1.0, flat_y, HOLE)
    assert np.isnan(scores["id_r2"][1]) and scores["id_accuracy"][1] == 1


def three_factors():
    cells = np.array([(a, b, c) for c in (0, 10, 20, 30) for b in range(3) for a in range(8)])
    held_out = ((cells[:, 0] >= 3) & (cells[:, 0] <= 5)) & (cells[:, 2] == 10)
    features = np.column_stack([cells[:, 0], np.eye(3)[cells[:, 1]], cells[:, 2] ** 2])
    return features @ np.random.default_rng(0).normal(size=(5, 40)), cells, held_out


def test_three_factors_one_of_them_discrete():
    features, cells, held_out = three_factors()
    scores = probes.probe(features, cells, held_out, real=(True, False, True))
    assert all(value.shape == (3,) for value in scores.values())
    for name, value in scores.items():
        assert np.isnan(value[1]) == name.endswith("r2")
    assert scores["id_r2"][0] > 0.999 and scores["ood_r2"][0] > 0.999
    assert 0.5 < scores["id_r2"][2] < 0.99  # a square is no line
    assert scores["id_accuracy"][1] == scores["ood_accuracy"][1] == 1
    everything = probes.probe(features, cells, held_out)
    for name, value in scores.items():  # nothing else depends on what counts as real
        known = ~np.isnan(value)
        np.testing.assert_array_equal(value[known], everything[name][known])


def angle_scores_by_loops(features, angle, period, held_out, folds=5, seed=0):
    """R^2 over cosine and sine together of the cross-validated ID points and of the OOD points: the
    penalty with the least leave-one-out error by actual refits, one fit at a time."""
    targets = np.array([(np.cos(2 * np.pi * a / period), np.sin(2 * np.pi * a / period))
                        for a in angle])  # fmt: skip
    seen = np.flatnonzero(~held_out)
    fold = np.random.default_rng(seed).permutation(len(seen)) % folds

    def fitted(fit, new):
        unit = np.linalg.svd(features[fit] - features[fit].mean(axis=0), compute_uv=False) ** 2
        best = None
        for penalty in np.mean(unit) * np.logspace(-8, 4, 25):
            missed = []
            for left in fit:
                rest = fit[fit != left]
                weights, intercept = explicit_ridge(features[rest], targets[rest], penalty)
                missed.append(np.sum((features[left] @ weights + intercept - targets[left]) ** 2))
            if best is None or np.mean(missed) < best[0]:
                best = np.mean(missed), penalty
        weights, intercept = explicit_ridge(features[fit], targets[fit], best[1])
        return features[new] @ weights + intercept

    predicted = np.empty_like(targets)
    for k in range(folds):
        predicted[seen[fold == k]] = fitted(seen[fold != k], seen[fold == k])
    predicted[held_out] = fitted(seen, np.flatnonzero(held_out))
    r2 = {}
    for name, mask in (("id_r2", ~held_out), ("ood_r2", held_out)):
        mean = targets[mask].mean(axis=0)
        error = sum(np.sum((targets[i] - predicted[i]) ** 2) for i in np.flatnonzero(mask))
        r2[name] = 1 - error / sum(np.sum((targets[i] - mean) ** 2) for i in np.flatnonzero(mask))
    return r2


def test_an_angle_is_probed_as_cosine_and_sine():
    angle = np.arange(0.0, 360.0, 15.0)
    rng = np.random.default_rng(6)
    turn = np.radians(angle)
    features = np.stack([np.cos(turn), np.sin(turn), np.cos(2 * turn)], axis=1)
    features = features @ rng.normal(size=(3, 4)) + 0.2 * rng.normal(size=(24, 4))
    cells = np.stack([angle, rng.permutation(24)], axis=1)
    held_out = (angle >= 150) & (angle <= 225)
    found = probes.probe(features, cells, held_out, periods=(360.0, np.inf))
    for name, expected in angle_scores_by_loops(features, angle, 360.0, held_out).items():
        assert found[name][0] == pytest.approx(expected, rel=1e-6)
    # the other factor, and every accuracy, are as without a period
    plain = probes.probe(features, cells, held_out)
    for name, value in plain.items():
        np.testing.assert_array_equal(value[1], found[name][1])
        assert name.endswith("r2") or value[0] == found[name][0]
    # whole turns change nothing, and a pure angle is read everywhere, also where it jumps
    wound = cells + np.stack([360.0 * rng.integers(-2, 3, 24), np.zeros(24)], axis=1)
    pure = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    again = probes.probe(pure, wound, held_out, periods=(360.0, np.inf))
    for name in ("id_r2", "ood_r2", "in_sample_r2"):
        assert again[name][0] == pytest.approx(1, abs=1e-6)
    assert plain["id_r2"][0] < 0.95
    with pytest.raises(ValueError, match="one above 0 each"):
        probes.probe(pure, cells, held_out, periods=(360.0,))


def test_means_leave_discrete_factors_out_and_keep_the_rest():
    scores = {
        "id_r2": np.array([0.5, np.nan, 0.9]),
        "shuffled.ood_r2": np.array([0.0, 0.5, np.nan]),
        "id_accuracy": np.array([1.0, 0.25, 0.25]),
    }
    means = probes.mean_over_factors(scores, (True, False, True))
    assert means["id_r2"] == pytest.approx(0.7) and means["id_accuracy"] == 0.5
    assert np.isnan(means["shuffled.ood_r2"])  # of a real factor without variance
    assert np.isnan(probes.mean_over_factors(scores)["id_r2"])
    none = probes.mean_over_factors(scores, (False,) * 3)
    assert np.isnan(none["id_r2"]) and none["id_accuracy"] == 0.5


def test_bad_input_is_named():
    features = np.ones((256, 4))
    with pytest.raises(ValueError, match="the features have 256 points"):
        probes.probe(features, CELLS[:-1], HOLE)
    with pytest.raises(ValueError, match="9 ID points: 5 folds need at least 10"):
        probes.probe(features, CELLS, np.arange(256) >= 9)
    for count in (4, 400):
        features = np.ones((256, count))
        features[7, 2] = np.nan
        with pytest.raises(ValueError, match=r"features: NaN or infinite values at points \[7\]"):
            probes.probe(features, CELLS, HOLE)
