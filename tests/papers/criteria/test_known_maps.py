"""The images that claims compare with are what they say."""

import numpy as np
import pytest

from compgen_jax.metrics import reference_images
from tests.papers.criteria import known_maps


@pytest.mark.parametrize("region", ["donut", "corner"])
def test_reference_images_are_those_of_the_nearest_seen_cells(region):
    _, empty = known_maps.scorer_of(known_maps.bumps(region))
    world = reference_images.world_of(empty.truths, empty.held_out)
    drawn = {name: known_maps.images(name, world) for name in ("bump", "lookup", "superposer")}
    np.testing.assert_allclose(drawn["bump"], empty.truths, atol=1e-5)
    cells = [tuple(cell) for cell in empty.factors.round().astype(int).tolist()]
    at, low, high = dict(zip(cells, empty.truths, strict=True)), world.low, world.high
    for index in np.flatnonzero(empty.held_out):
        x, y = cells[index]
        ends = {(low - 1, y): x - low + 1, (x, low - 1): y - low + 1}
        if high < 15:
            ends |= {(high + 1, y): high + 1 - x, (x, high + 1): high + 1 - y}
        weights = [1 / distance for distance in ends.values()]
        mean = np.average([at[cell] for cell in ends], axis=0, weights=weights)
        np.testing.assert_allclose(drawn["superposer"][index], mean, atol=1e-5)
        nearest = [at[cell] for cell in ends if ends[cell] == min(ends.values())]
        assert min(np.abs(image - drawn["lookup"][index]).max() for image in nearest) < 1e-6


def test_maps_need_a_square():
    for held_out in (np.zeros(64, bool), np.arange(64) % 3 == 0, np.arange(64) == 1):
        with pytest.raises(ValueError, match="square on the diagonal"):
            reference_images.world_of(np.zeros((64, 8, 8)), held_out)
