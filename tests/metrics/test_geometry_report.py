"""Metric tensors of any framework have the numbers that the laboratory's own layers have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import compgen_jax as cg
from compgen_jax.metrics import layers

RADII, ANGLES = (axis.ravel() for axis in np.meshgrid(np.arange(1.0, 6), np.arange(4.0)))
HELD_OUT = RADII > 3
POLAR = np.stack([np.ones(20), RADII**2], axis=1)[:, :, None] * np.eye(2)  # of (r cos t, r sin t)


def test_polar_coordinates_in_closed_form():
    """The volume element is r, and both tangents are orthogonal."""
    report = cg.geometry(POLAR, HELD_OUT)
    np.testing.assert_allclose(report.volume["layer"], RADII, rtol=1e-6)
    np.testing.assert_allclose(report.log10_volume["layer"], np.log10(RADII), atol=1e-6)
    row = report.to_frame().loc["layer"]
    ratio = np.log10([4, 5]).mean() - np.log10([1, 2, 3]).mean()
    assert row["volume.log10_ratio"] == pytest.approx(ratio, abs=1e-6)
    assert row["volume.ood_spread"] == pytest.approx(np.log10(5 / 4) / 2, abs=1e-6)
    assert row["factorization.mean_of_ratios"] == pytest.approx(1)
    assert not any(name.startswith("volume.inner") for name in row.index)
    assert "layer" in repr(report) and f"{ratio:.3g}" in repr(report)
    assert list(cg.geometry(POLAR).numbers["layer"]) == list(layers.FACTORIZATIONS)


def test_numbers_are_those_of_layers_for_jax_and_several_layers(rng):
    jacobians = rng.normal(size=(20, 7, 3))
    tensors = jax.jit(lambda j: jnp.einsum("bdf,bdg->bfg", j, j))(jacobians)
    report = cg.geometry({"a": tensors, "b": POLAR}, jnp.asarray(HELD_OUT))
    border = np.zeros(20, bool)
    for name, array in (("a", tensors), ("b", POLAR)):
        layer = layers.Layer(None, None, HELD_OUT, border=border, costly={"tensors": array}.get)
        expected = layers.geometry_numbers(layer)
        assert report.numbers[name].items() <= expected.items() and len(report.numbers[name]) == 4
    assert list(report.to_frame().index) == ["a", "b"]


def test_tensors_of_pytorch_that_need_a_gradient():
    torch = pytest.importorskip("torch")
    tensors = torch.tensor(POLAR, requires_grad=True)
    report = cg.geometry(tensors, torch.tensor(HELD_OUT))
    assert report.numbers == cg.geometry(POLAR, HELD_OUT).numbers


@pytest.mark.parametrize(
    ("tensors", "held_out", "message"),
    [
        (POLAR[0], None, r"tensors of layer \(2, 2\) float64: must be \(B, F, F\)"),
        (
            {"a": POLAR, "b": POLAR[:, :1]},
            None,
            r"tensors of b \(20, 1, 2\) float64: must be \(B, F, F\)",
        ),
        (POLAR * np.nan, None, "tensors of layer: NaN or infinite values at points"),
        (POLAR + np.triu(np.ones((2, 2)), 1), None, "tensors of layer: must be symmetric"),
        (POLAR.astype(str), None, r"tensors of layer \(20, 2, 2\) <U32: must be .* real numbers"),
        (POLAR, HELD_OUT[1:], r"held_out \(19,\) bool: must be \(20,\) bool"),
        (POLAR, RADII, r"held_out \(20,\) float64: must be \(20,\) bool"),
        ({}, None, "at least one layer"),
    ],
)
def test_what_is_no_metric_tensor_is_one_line(tensors, held_out, message):
    with pytest.raises(ValueError, match=message) as error:
        cg.geometry(tensors, held_out)
    assert "\n" not in str(error.value)
