"""Any function of the factors is measured as the laboratory's own models are."""

from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import function, layers

AXES = [np.arange(8.0), np.arange(6.0)]
Size = namedtuple("Size", "x y")


def held_out(points):
    return ((points >= 2) & (points <= 4)).all(axis=1)


def profile(values, point):
    return jnp.exp(-((values - point) ** 2) / 2)


def bumps_and_stripes(point):
    x, y = profile(jnp.arange(8.0), point[0]), profile(jnp.arange(6.0), point[1])
    return {"a stripe": jnp.concatenate([x, y]), "bump": y[:, None] * x[None, :]}


def test_numbers_are_those_of_closed_forms():
    found = function.measure(bumps_and_stripes, AXES, held_out)
    assert list(found) == ["a stripe", "bump"]
    assert found["bump"]["schmidt.rank"] == 1
    # the volume of a stripe code is the product of two lengths
    points = grids.points(AXES)
    apart = [np.arange(size) - points[:, [f]] for f, size in enumerate((8, 6))]
    lengths = [np.sqrt(np.sum((d * np.exp(-(d**2) / 2)) ** 2, axis=1)) for d in apart]
    logs, hidden = np.log10(np.prod(lengths, axis=0)), held_out(points)
    expected = logs[hidden].mean() - logs[~hidden].mean()
    assert found["a stripe"]["volume.log10_ratio"] == pytest.approx(expected, abs=1e-5)
    assert np.isnan(found["bump"]["cosine.true"])  # no true outputs are given


def test_contrast_is_low_where_each_unit_reads_one_factor():
    """Turned by 45 degrees both do, with tangents as orthogonal as before: |J_df| = 1 / sqrt 2."""
    turn = np.float32([[1, 1], [1, -1]]) / np.sqrt(2)
    layers_of = lambda p: {"apart": 3 * p, "turned": 3 * turn @ p, "product": p[:1] * p[1:]}
    numbers = function.measure(layers_of, [1 + axis for axis in AXES], held_out)
    read = lambda name: [numbers[name][f"contrast.{kind}"] for kind in ("normalized", "published")]
    assert read("apart") == [0, 0]
    assert read("turned") == pytest.approx([1, 9], rel=1e-5)
    x, y = grids.points([1 + axis for axis in AXES]).T
    assert read("product") == pytest.approx([np.mean(2 * x * y / (x**2 + y**2)), np.mean(x * y)])
    assert numbers["apart"]["factorization.mean_of_ratios"] == pytest.approx(1)
    assert numbers["turned"]["factorization.mean_of_ratios"] == pytest.approx(1)
    assert numbers["turned"]["subspaces.largest_cosine"] == pytest.approx(0, abs=1e-5)


def test_layers_are_named_by_their_places_in_the_tree():
    network = lambda point: {"b": [point, {"__call__": (2 * point,)}], "a": Size(point, point)}
    numbers = function.measure(network, AXES, held_out, differentiable=False)
    assert list(numbers) == ["a.x", "a.y", "b.0", "b.1.__call__.0"]


def test_agreements_need_true_outputs_and_geometry_a_derivative():
    bump = lambda point: bumps_and_stripes(point)["bump"]
    true = jax.jit(jax.vmap(bump))(grids.points(AXES))
    numbers = function.measure(bump, AXES, held_out, true, differentiable=False)[""]
    assert numbers["cosine.true"] == pytest.approx(1, abs=1e-5)
    assert np.isnan([numbers[name] for name in layers.VOLUME_NUMBERS]).all()
    assert np.isfinite(numbers["probe.ood_r2"])
