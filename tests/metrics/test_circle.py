"""Gaps on a circle and mixtures of their edges, against SciPy, lstsq and closed forms."""

import numpy as np
import pytest
from scipy.optimize import nnls

from compgen_jax.metrics import circle

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.uniform(size=(2, 40))


def of_angles(hidden, step=30):
    angles = np.arange(0, 360, step)
    return angles[:, None], np.isin(angles, hidden)


def test_a_gap_of_one_object():
    (gap,) = circle.gaps(*of_angles([120, 150, 180]))
    assert gap.label == () and gap.cells.tolist() == [4, 5, 6] and gap.edges == (3, 7)
    np.testing.assert_allclose(gap.place, [0.25, 0.5, 0.75])


def test_a_gap_across_zero_and_cells_in_any_order():
    factors, held_out = of_angles([330, 0])
    order = RNG.permutation(len(factors))
    (gap,) = circle.gaps(factors[order], held_out[order])
    assert factors[order][gap.cells].ravel().tolist() == [330, 0]
    assert factors[order][list(gap.edges)].ravel().tolist() == [300, 30]
    np.testing.assert_allclose(gap.place, [1 / 3, 2 / 3])


def test_a_gap_with_another_period_and_uneven_angles():
    factors = np.array([0, 1, 1.5, 3.5, 4.0])[:, None]
    (gap,) = circle.gaps(factors, factors[:, 0] == 4.0, period=5.0)
    assert gap.edges == (3, 0)
    np.testing.assert_allclose(gap.place, [1 / 3])


def test_one_seen_cell_is_both_edges():
    factors, held_out = of_angles([90, 180, 270], step=90)
    (gap,) = circle.gaps(factors, held_out)
    assert gap.edges == (0, 0)
    np.testing.assert_allclose(gap.place, [0.25, 0.5, 0.75])


def test_gaps_of_several_objects():
    angle, label = (each.ravel() for each in np.meshgrid(np.arange(0, 360, 90), [4, 7, 3]))
    factors = np.stack([angle, label], axis=1)
    held_out = ((label == 7) & (angle == 90)) | ((label == 3) & (angle >= 180))
    of_3, of_7 = circle.gaps(factors, held_out)
    assert (of_3.label, of_7.label) == ((3.0,), (7.0,))
    assert factors[of_3.cells].tolist() == [[180, 3], [270, 3]]
    assert factors[list(of_3.edges)].tolist() == [[90, 3], [0, 3]]
    assert factors[list(of_7.edges)].tolist() == [[0, 7], [180, 7]]


def test_windows_are_as_wide_as_the_gap_and_of_its_object():
    angle, label = (each.ravel() for each in np.meshgrid(np.arange(0, 360, 30), [4, 7]))
    factors = np.stack([angle, label], axis=1)
    held_out = (label == 7) & ((angle == 60) | (angle == 90))
    order = RNG.permutation(len(factors))
    factors, held_out = factors[order], held_out[order]
    (gap,) = circle.gaps(factors, held_out)
    found = circle.windows(gap, factors, held_out)
    cells = [[w.edges[0], *w.cells, w.edges[1]] for w in found]
    angles = [[120, 150, 180, 210], [210, 240, 270, 300], [300, 330, 0, 30]]
    assert [factors[each].tolist() for each in cells] == [[[a, 7] for a in one] for one in angles]
    for window in found:
        np.testing.assert_allclose(window.place, [1 / 3, 2 / 3])
    (wide,) = circle.gaps(*of_angles(range(60, 300, 30)))
    with pytest.raises(ValueError, match="no 10 ID cells"):
        circle.windows(wide, *of_angles(range(60, 300, 30)))


@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        ([], "nothing is held out"),
        ([30, 90], "2 gaps, not one"),
        ([0, 180, 330], "2 gaps, not one"),
        (range(0, 360, 30), "every angle of the object is held out"),
    ],
)
def test_no_gap_and_several_are_refused(hidden, message):
    with pytest.raises(ValueError, match=message):
        circle.gaps(*of_angles(list(hidden)))


def test_every_object_needs_a_seen_angle():
    factors = np.array([[0, 4], [90, 4], [0, 7], [90, 7]])
    with pytest.raises(ValueError, match="every angle of object 7 is held out"):
        circle.gaps(factors, factors[:, 1] == 7)


def test_shapes_are_checked():
    factors, held_out = of_angles([90])
    with pytest.raises(ValueError, match=r"factors \(12,\)"):
        circle.gaps(factors[:, 0], held_out)
    with pytest.raises(ValueError, match=r"held_out \(11,\)"):
        circle.gaps(factors, held_out[1:])


def test_cross_fades_are_linear_in_the_angle():
    found = circle.cross_fade(FIRST.reshape(8, 5), SECOND.reshape(8, 5), [0, 0.25, 1])
    expected = [FIRST, 0.75 * FIRST + 0.25 * SECOND, SECOND]
    np.testing.assert_allclose(found.reshape(3, -1), expected)


def test_weights_and_residuals_are_those_of_least_squares():
    signals = RNG.normal(size=(2, 3, 40))
    weights = circle.edge_weights(signals, FIRST, SECOND)
    residual = circle.residual_share(signals, FIRST, SECOND)
    edges = np.stack([FIRST, SECOND], axis=1)
    for index in np.ndindex(2, 3):
        expected, left, *_ = np.linalg.lstsq(edges, signals[index], rcond=None)
        np.testing.assert_allclose(weights[index], expected)
        np.testing.assert_allclose(residual[index], left[0] / (signals[index] @ signals[index]))


def test_residuals_of_what_is_known():
    aside = RNG.normal(size=40)
    edges = np.stack([FIRST, SECOND], axis=1)
    aside -= edges @ np.linalg.lstsq(edges, aside, rcond=None)[0]
    mixed = FIRST - 2 * SECOND
    aside *= np.linalg.norm(mixed) / np.linalg.norm(aside)
    signals = np.stack([mixed, aside, mixed + aside, mixed + 3 * aside, 0 * mixed])
    found = circle.residual_share(signals, FIRST, SECOND)
    np.testing.assert_allclose(found, [0, 1, 0.5, 0.9, 1], atol=1e-12)
    np.testing.assert_allclose(circle.residual_share(7 * signals, FIRST, SECOND), found, atol=1e-12)


def test_mixing_shares_are_those_of_non_negative_least_squares():
    weights = np.array([[0.7, 0.3], [0.2, 0.6], [0.5, 0.5], [1, 0], [0, 2], [1.5, -0.5], [-1, -2]])
    np.testing.assert_allclose(circle.mixing_share(weights), [0.3, 0.25, 0.5, 0, 0, 0, 0])
    edges = np.stack([FIRST, SECOND], axis=1)
    for signal in RNG.normal(0.3, 1, size=(20, 40)):
        a, b = nnls(edges, signal)[0]
        expected = min(a, b) / (a + b) if a + b else 0
        found = circle.mixing_share(circle.edge_weights(signal, FIRST, SECOND))
        assert found == pytest.approx(expected, abs=1e-12)
