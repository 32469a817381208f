import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import kernels, probes, readout
from tests.metrics.test_decodability import plain_r2


def explicit_ridge(features, targets, penalty):
    """Weights and intercept from the normal equations, the intercept unpenalised."""
    design = np.column_stack([features, np.ones(len(features))])
    penalties = penalty * np.diag([1.0] * features.shape[1] + [0.0])
    solved = np.linalg.solve(design.T @ design + penalties, design.T @ targets)
    return solved[:-1], solved[-1]


def test_an_angle_a_label_and_a_number_against_cross_fitted_ridges(rng):
    """An angle is probed as cosine and sine, a label by accuracies alone."""
    step, label, number = cells = grids.indices((12, 3, 2)).T
    turn = np.radians(30 * step)
    around, onehot = np.stack([np.cos(turn), np.sin(turn)], axis=1), np.eye(3)[label]
    features = np.column_stack([around, np.cos(2 * turn), onehot, number]) @ rng.normal(size=(7, 5))
    features += 0.3 * rng.normal(size=features.shape)
    held_out = (label == 1) & (step >= 4) & (step <= 7)
    how = {"real": (True, False, True), "periods": (360.0, np.inf, np.inf)}
    found = probes.probe(features, cells.T * [30, 1, 1], held_out, **how)
    fold = readout.folds_of(np.arange(72), held_out, 5, np.random.default_rng(0))
    targets = [around, onehot, number[:, None] * 1.0]
    gram = kernels.gram(features, center=True)
    turned, named, counted = readout.cross_fitted(gram, targets, fold, 5, 5)
    for region, mask in (("id", ~held_out), ("ood", held_out)):
        of_number = plain_r2(targets[2][mask], counted[mask])
        r2 = plain_r2(around[mask], turned[mask]), np.nan, of_number
        np.testing.assert_allclose(found[f"{region}_r2"], r2)
        hits = named[mask].argmax(axis=1) == label[mask]
        assert found[f"{region}_accuracy"][1] == hits.mean()
    assert np.isnan(probes.probe(features, cells.T, held_out & False)["ood_r2"]).all()
