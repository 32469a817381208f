import jax
import numpy as np
import pytest
from scipy import ndimage

from compgen_jax.papers.forced_rendering import signals
from tests.papers.decoders import N, draw

find_peaks = jax.jit(signals.find_peaks, static_argnames="share")


def test_peaks_are_relative_to_the_image_and_plateaus_count_once():
    signal = draw(3, 3) + 0.15 * draw(8, 8)
    for size in (1.0, 0.1, 7.0):
        assert np.sum(find_peaks(size * signal)) == 1
        assert np.sum(find_peaks(size * signal, share=0.1)) == 2
    plateau = np.zeros((N, N), np.float32)
    plateau[4:6, 4:7] = 1
    assert np.argwhere(np.asarray(find_peaks(plateau))).tolist() == [[4, 4]]
    assert not np.any(find_peaks(0.04 * signal))  # to be seen by no one


@pytest.mark.parametrize(("saddle", "count"), [(0.7, 1), (0.5, 2)])
def test_a_peak_rises_above_the_way_to_a_brighter_one(saddle, count):
    ridge = np.zeros((N, N), np.float32)
    ridge[6, 2:10], ridge[6, 3], ridge[6, 8] = saddle, 1, 0.8
    assert np.sum(find_peaks(ridge)) == count


def test_an_image_is_flooded_as_by_one_dilation_after_another():
    images = np.random.default_rng(0).random((20, 9, 12)).astype(np.float32)
    for image, step in zip(images, np.linspace(0.05, 0.9, 20, dtype=np.float32), strict=True):
        levels, before = image - step, None
        while not np.array_equal(levels, before):
            before, dilated = levels, ndimage.maximum_filter(levels, 3, mode="constant", cval=-9)
            levels = np.minimum(image, dilated)
        np.testing.assert_array_equal(signals._flooded(image, image - step), levels)
