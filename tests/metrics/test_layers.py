"""All numbers of a layer: known answers for two and three factors, and what has none."""

from itertools import combinations, product

import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import kernels, layers, probes, registry
from compgen_jax.metrics.layers import Layer

SIZES = (6, 5, 3)
CELLS = grids.indices(SIZES)
HELD_OUT = ((CELLS >= [2, 1, 1]) & (CELLS <= [4, 3, 2])).all(axis=1)
OUTPUTS = np.random.default_rng(0).normal(size=(90, 20)) + CELLS[:, :1]


def numbers_of(features, **arrays) -> dict:
    layer = Layer(features, CELLS, HELD_OUT, SIZES, **arrays)
    on_grid = [row for row in registry.METRICS if row.domain == "grid" and not row.of_output]
    return registry.numbers(on_grid, layer)


def test_schmidt_numbers_are_of_the_worst_factor():
    """a (b c + 1): rank one of a against the rest, two of the others."""
    a, b, c = CELLS.T + 1.0
    numbers = numbers_of(np.stack([a * b * c, a], axis=1))
    assert numbers["schmidt.rank"] == 2 and 1 < numbers["schmidt.exp_entropy"] < 2


def test_scores_of_each_factor_on_request():
    names, real = ("x", "y", "object"), (True, True, False)
    numbers = numbers_of(OUTPUTS, real=real, factor_names=names)
    scores = probes.probe(OUTPUTS, CELLS, HELD_OUT, real=real)
    for score in probes.SCORES:
        of_factors = [numbers[f"probe.{name}.{score}"] for name in names]
        np.testing.assert_array_equal(of_factors, scores[score])
    assert numbers["probe.ood_r2"] == np.mean(scores["ood_r2"][:2])
    assert numbers["probe.id_accuracy"] == np.mean(scores["id_accuracy"])


def test_constant_layers_and_missing_arrays_have_no_numbers():
    numbers = numbers_of(np.ones((90, 3)), true_kernel=np.eye(90), factor_names=("x",))
    assert numbers.pop("tuning.active") == 0 and np.isnan(list(numbers.values())).all()
    known = numbers_of(OUTPUTS)
    for name in (*layers.VOLUME_NUMBERS, "cosine.binary", "untrained.tuning.bump"):
        assert np.isnan(known[name])


@pytest.mark.parametrize(("high", "has_one"), [((4, 3, 1), True), ((4, 1, 1), False)])
def test_interaction_over_a_hole_needs_two_factors_that_vary(high, has_one):
    """x y + z, of main effects over a hole whose x and y have means; against loops over pairs."""
    held_out = ((CELLS >= [2, 1, 1]) & (CELLS <= high)).all(axis=1)
    features = (CELLS[:, [0]] * CELLS[:, [1]] + CELLS[:, [2]]).astype(float)
    layer = Layer(features, CELLS, held_out, SIZES)
    shares = layers.interaction_shares(layer)
    for name, cells in (("interaction", held_out | True), ("interaction_ood", held_out)):
        x, y, _ = (CELLS[cells] - CELLS[cells].mean(axis=0)).T
        expected = (x * y).var() / features[cells].var()
        known = has_one or name == "interaction"
        assert shares[name] == pytest.approx(expected if known else np.nan, nan_ok=True)
    held_out[held_out.argmax()] = False
    assert np.isnan(layers.interaction_shares(layer)["interaction_ood"])


def test_agreements_are_over_pairs_of_held_out_cells(rng):
    features, targets = rng.normal(size=(2, 90, 7))
    kernel, true = (kernels.cosine(kernels.gram(each)) for each in (features, targets))
    agreements = lambda cells: layers.agreements(Layer(features, CELLS, cells, true_kernel=true))
    correlations = agreements(HELD_OUT)
    hidden, seen = np.flatnonzero(HELD_OUT), np.flatnonzero(~HELD_OUT)
    sets = {"": list(combinations(hidden, 2)), "cross_": list(product(hidden, seen))}
    for name, pairs in sets.items():
        i, j = np.transpose(pairs)
        shared = (CELLS[i] == CELLS[j]).mean(axis=1)
        ours, theirs = kernel[i, j], true[i, j]
        assert correlations[f"{name}binary"] == pytest.approx(np.corrcoef(ours, shared)[0, 1])
        assert correlations[f"{name}true"] == pytest.approx(np.corrcoef(ours, theirs)[0, 1])
        beyond = [values - np.polyval(np.polyfit(theirs, values, 1), theirs)
                  for values in (ours, shared)]  # fmt: skip
        assert correlations[f"{name}partial"] == pytest.approx(np.corrcoef(*beyond)[0, 1])
    everything = agreements(HELD_OUT | True)
    assert np.isnan(everything["cross_binary"]) and np.isfinite(everything["binary"])
    assert agreements(np.arange(90) < 2) is None
