import numpy as np
import pytest

from compgen_jax.metrics import probes, readout
from tests.metrics.test_decodability import plain_r2


def explicit_ridge(features, targets, penalty):
    """Weights and intercept from the normal equations, the intercept unpenalised."""
    design = np.column_stack([features, np.ones(len(features))])
    penalties = penalty * np.diag([1.0] * features.shape[1] + [0.0])
    solved = np.linalg.solve(design.T @ design + penalties, design.T @ targets)
    return solved[:-1], solved[-1]


def test_three_factors_one_of_them_discrete(rng):
    cells = np.array([(a, b, c) for c in (0, 10, 20, 30) for b in range(3) for a in range(8)])
    a, b, c = cells.T
    held_out = (a >= 3) & (a <= 5) & (c == 10)
    features = np.column_stack([a, np.eye(3)[b], c**2]) @ rng.normal(size=(5, 40))
    scores = probes.probe(features, cells, held_out, real=(True, False, True))
    for name, value in scores.items():
        assert np.isnan(value[1]) == name.endswith("r2")
    assert scores["id_r2"][0] > 0.999 and scores["ood_r2"][0] > 0.999
    assert 0.5 < scores["id_r2"][2] < 0.99  # a square is no line
    assert scores["id_accuracy"][1] == scores["ood_accuracy"][1] == 1
    assert np.isnan(probes.probe(features, cells, held_out & False)["ood_r2"]).all()


def test_an_angle_is_probed_as_cosine_and_sine(rng):
    angle = np.arange(0.0, 360.0, 15.0)
    turn = np.radians(angle)
    features = np.stack([np.cos(turn), np.sin(turn), np.cos(2 * turn)], axis=1)
    features = features @ rng.normal(size=(3, 4)) + 0.2 * rng.normal(size=(24, 4))
    cells = np.stack([angle, rng.permutation(24)], axis=1)
    held_out = (angle >= 150) & (angle <= 225)
    found = probes.probe(features, cells, held_out, periods=(360.0, np.inf))
    targets = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    fold = readout.folds_of(np.arange(24), held_out, 5, np.random.default_rng(0))
    (predicted,) = readout.cross_fitted(readout.compact(features), [targets], fold, 5)
    for name, mask in (("id_r2", ~held_out), ("ood_r2", held_out)):
        assert found[name][0] == pytest.approx(plain_r2(targets[mask], predicted[mask]))
