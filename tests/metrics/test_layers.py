"""All numbers of a layer: known answers for two and three factors, and what has none."""

import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import kernels, layers, probes
from compgen_jax.metrics.layers import GridLayer
from compgen_jax.metrics.registry import layer_numbers

SIZES = (6, 5, 3)
CELLS = grids.indices(SIZES)
HELD_OUT = ((CELLS >= [2, 1, 1]) & (CELLS <= [4, 3, 2])).all(axis=1)
REAL = (True, True, False)


def numbers_of(features, factors, held_out, sizes, true_kernel=None, **arrays) -> dict:
    border = np.zeros(len(factors), bool)
    layer = GridLayer(features=features, factors=factors, held_out=held_out, sizes=sizes,
                      border=border, true_kernel=true_kernel, **arrays)  # fmt: skip
    return layer_numbers(layer, "grid")


OUTPUTS = np.random.default_rng(0).normal(size=(90, 20)) + CELLS[:, :1]


def test_schmidt_numbers_are_of_the_worst_factor():
    """a (b c + 1): rank one of a against the rest, two of the others."""
    a, b, c = CELLS.T + 1.0
    found = numbers_of(np.stack([a * b * c, a], axis=1), CELLS, HELD_OUT, SIZES)
    assert found["schmidt.rank"] == 2 and 1 < found["schmidt.exp_entropy"] < 2


def test_scores_of_each_factor_on_request():
    names = ("x", "y", "object")
    found = numbers_of(OUTPUTS, CELLS, HELD_OUT, SIZES, real=REAL, factor_names=names)
    scores = probes.probe(OUTPUTS, CELLS, HELD_OUT, real=REAL)
    for score in layers.PROBE_SCORES:
        of_factors = [found[f"probe.{name}.{score}"] for name in names]
        np.testing.assert_array_equal(of_factors, scores[score])
    assert found["probe.ood_r2"] == np.mean(scores["ood_r2"][:2])
    assert found["probe.id_accuracy"] == np.mean(scores["id_accuracy"])


def test_constant_layers_and_missing_arrays_have_no_numbers():
    found = numbers_of(np.ones((90, 3)), CELLS, HELD_OUT, SIZES, np.eye(90), factor_names=("x",))
    assert found.pop("tuning.active") == 0 and np.isnan(list(found.values())).all()
    known = numbers_of(OUTPUTS, CELLS, HELD_OUT, SIZES)
    for name in (*layers.VOLUME_NUMBERS, "cosine.binary", "untrained.tuning.bump"):
        assert np.isnan(known[name])
    for name, value in numbers_of(OUTPUTS, CELLS, HELD_OUT, SIZES, untrained=OUTPUTS).items():
        if name.startswith("untrained."):
            assert value == known[name.removeprefix("untrained.")]


@pytest.mark.parametrize(
    ("low", "high", "has_one"),
    [((2, 1, 1), (4, 3, 2), True), ((2, 1, 1), (4, 3, 1), True), ((2, 1, 1), (4, 1, 1), False)],
)
def test_interaction_over_a_hole_needs_two_factors_that_vary(low, high, has_one):
    """x y + z, of main effects over a hole whose x and y have means; against loops over pairs."""
    held_out = ((CELLS >= low) & (CELLS <= high)).all(axis=1)
    features = (CELLS[:, [0]] * CELLS[:, [1]] + CELLS[:, [2]]).astype(float)
    found = layers.interaction_over_hole(kernels.gram(features), held_out, SIZES)
    if not has_one:
        assert np.isnan(found)
        return
    inside = CELLS[held_out] - CELLS[held_out].mean(axis=0)
    product = inside[:, 0] * inside[:, 1]
    assert found == pytest.approx(product.var() / features[held_out].var())
    held_out[np.flatnonzero(held_out)[0]] = False
    assert np.isnan(layers.interaction_over_hole(kernels.gram(features), held_out, SIZES))


def test_agreements_are_over_pairs_of_held_out_cells():
    rng = np.random.default_rng(0)
    kernel, true = (kernels.cosine(kernels.gram(rng.normal(size=(90, 7)))) for _ in range(2))
    found = layers.agreements(kernel, CELLS, HELD_OUT, true)
    hidden, seen = np.flatnonzero(HELD_OUT), np.flatnonzero(~HELD_OUT)
    within = [(i, j) for n, i in enumerate(hidden) for j in hidden[n + 1 :]]
    across = [(i, j) for i in hidden for j in seen]
    for name, pairs in (("", within), ("cross_", across)):
        shared = np.array([np.mean(CELLS[i] == CELLS[j]) for i, j in pairs])
        ours, theirs = (np.array([each[pair] for pair in pairs]) for each in (kernel, true))
        assert found[f"{name}binary"] == pytest.approx(np.corrcoef(ours, shared)[0, 1])
        assert found[f"{name}true"] == pytest.approx(np.corrcoef(ours, theirs)[0, 1])
        left = [each - np.polyval(np.polyfit(theirs, each, 1), theirs) for each in (ours, shared)]
        assert found[f"{name}partial"] == pytest.approx(np.corrcoef(*left)[0, 1])
    everything = layers.agreements(kernel, CELLS, np.ones(90, bool), true)
    assert np.isnan(everything["cross_binary"]) and np.isfinite(everything["binary"])
    few = np.arange(90) < 2
    assert np.isnan(list(layers.agreements(kernel, CELLS, few, true).values())).all()


def test_angles_of_every_pair_of_tangents_seen_and_held_out_apart():
    """Unit tangents of x and y at 60 degrees, 120 where held out; z at right angles to both."""
    metrics = np.tile(np.eye(3), (len(HELD_OUT), 1, 1))
    metrics[:, 0, 1] = metrics[:, 1, 0] = np.where(HELD_OUT, -0.5, 0.5)
    metrics[~HELD_OUT, 1, 2] = metrics[~HELD_OUT, 2, 1] = 0.25
    scale = np.array([2.0, 3.0, 0.5])  # lengths do not matter
    metrics = jnp.asarray(metrics * scale[:, None] * scale[None])
    names = ("x", "y", "z")
    found = layers.angles(metrics, HELD_OUT, names)
    expected = {"x-y": (0.5, 0.5), "x-z": (0, 0), "y-z": (0.25, 0)}
    for pair, means in expected.items():
        for region, mean in zip(("id", "ood"), means, strict=True):
            assert found[f"angle.{pair}.{region}"] == pytest.approx(mean, abs=1e-6)
    assert np.isnan(layers.angles(metrics, np.zeros_like(HELD_OUT), names)["angle.x-y.ood"])
