"""Gaps on a circle and mixtures of their edges, against SciPy, lstsq and closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import nnls

from compgen_jax import grids
from compgen_jax.metrics import circle, layers
from compgen_jax.metrics.layers import Layer

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.uniform(size=(2, 40))


@pytest.mark.parametrize(
    ("hidden", "angles", "edges", "place"),
    [
        ([330, 0], range(0, 360, 30), [300, 30], [1 / 3, 2 / 3]),
        ([90, 180, 270], range(0, 360, 90), [0, 0], [0.25, 0.5, 0.75]),  # both edges are one
        ([288], [0, 72, 108, 252, 288], [252, 0], [1 / 3]),
    ],
)
def test_a_gap_of_one_object_whose_cells_are_in_any_order(hidden, angles, edges, place):
    factors = RNG.permutation(angles)[:, None]
    (gap,) = circle.gaps(factors, np.isin(factors[:, 0], hidden))
    assert gap.label == () and factors[gap.cells].ravel().tolist() == hidden
    assert factors[list(gap.edges)].ravel().tolist() == edges
    assert_allclose(gap.place, place)


def test_windows_are_as_wide_as_the_gap_and_of_its_object():
    factors = RNG.permutation(grids.points([np.arange(0, 360, 30), [4, 7]]))
    angle, label = factors.T
    held_out = (label == 7) & ((angle == 60) | (angle == 90))
    (gap,) = circle.gaps(factors, held_out)
    angles = [[120, 150, 180, 210], [210, 240, 270, 300], [300, 330, 0, 30]]
    for window, expected in zip(circle.windows(gap, factors, held_out), angles, strict=True):
        cells = [window.edges[0], *window.cells, window.edges[1]]
        assert factors[cells].tolist() == [[angle, 7] for angle in expected]
        assert_allclose(window.place, [1 / 3, 2 / 3])


def test_fits_are_those_of_least_squares():
    """Residuals by lstsq; mixing shares by non-negative least squares."""
    signals = RNG.normal(0.3, 1, size=(2, 10, 40))
    residual, mixing = circle.edge_fit(signals, FIRST, SECOND)
    edges = np.stack([FIRST, SECOND], axis=1)
    for index in np.ndindex(2, 10):
        signal = signals[index]
        _, left, *_ = np.linalg.lstsq(edges, signal)
        assert_allclose(residual[index], left[0] / (signal @ signal))
        a, b = nnls(edges, signal)[0]
        expected = min(a, b) / (a + b) if a + b else 0
        assert mixing[index] == pytest.approx(expected, abs=1e-12)
    assert circle.edge_fit(0 * FIRST, FIRST, SECOND) == (1, 0)
    fades = circle.cross_fade(FIRST.reshape(8, 5), SECOND.reshape(8, 5), [0, 0.25, 1])
    expected = [FIRST, 0.75 * FIRST + 0.25 * SECOND, SECOND]
    assert_allclose(fades.reshape(3, -1), expected)


def test_the_turning_ratio_of_a_circle_is_1_and_that_of_a_kink_its_angles():
    """Of two objects, in any order; the gap of one goes straight to the centre and back."""
    factors = RNG.permutation(grids.points([np.arange(0, 360, 2), [4, 7]])).astype(float)
    held_out = (factors[:, 1] == 7) & (np.abs(factors[:, 0] - 180) < 20)
    turn, plane = np.deg2rad(factors[:, :1]), np.linalg.qr(RNG.normal(size=(9, 2)))[0].T
    curve, (gap,) = np.hstack([np.cos(turn), np.sin(turn)]), circle.gaps(factors, held_out)
    layer_of = lambda curve: Layer(curve @ plane + 3, factors, held_out, periods=(360.0,))
    assert layers.turning_ratio(layer_of(curve)) == pytest.approx(1)
    nearer = curve[np.array(gap.edges)[np.round(gap.place).astype(int)]]
    curve[gap.cells] = np.abs(1 - 2 * gap.place)[:, None] * nearer
    # from the tangent to the radius at both edges, back but for 40 degrees at the centre
    assert layers.turning_ratio(layer_of(curve)) == pytest.approx((91 + 140 + 91) / (19 + 2) / 2)
