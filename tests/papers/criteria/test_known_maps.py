"""Known maps do what they say."""

import numpy as np
import pytest

from compgen_jax.metrics import reference_images
from tests.papers.criteria import known_maps


@pytest.mark.parametrize("region", ["donut", "corner"])
def test_known_maps_draw_what_they_say(region):
    _, empty = known_maps.scorer_of(known_maps.bumps(region))
    true, held_out = empty.truths, empty.held_out
    world = reference_images.world_of(true, held_out)
    cells = empty.factors.round().astype(int)
    drawn = {name: known_maps.images(name, world) for name in known_maps.MAPS}
    at = {tuple(cell): image for cell, image in zip(cells.tolist(), true, strict=True)}
    profile = lambda c: np.exp(-((np.arange(16) - c) ** 2) / 2)
    low, high = world.low, world.high
    for (x, y), index in zip(cells[held_out].tolist(), np.flatnonzero(held_out), strict=True):
        ends = {(low - 1, y): x - low + 1, (x, low - 1): y - low + 1}
        if high < 15:
            ends |= {(high + 1, y): high + 1 - x, (x, high + 1): high + 1 - y}
        weights = {cell: 1 / distance for cell, distance in ends.items()}
        near = sum(weight * at[cell] for cell, weight in weights.items()) / sum(weights.values())
        seen = [c for c in range(16) if not low <= c <= high]
        expected = {
            "bump": at[x, y],
            "plus-0.4": profile(x)[None, :] + profile(y)[:, None] - 0.4,
            "superposer": near,
            "sum": sum(at[c, y] + at[x, c] for c in seen),
            "edge": at[x, y] if min(ends.values()) <= 1 else near,
        }
        for name, image in expected.items():
            np.testing.assert_allclose(drawn[name][index], image, atol=1e-5, err_msg=name)
        nearest = [at[cell] for cell in ends if ends[cell] == min(ends.values())]
        assert min(np.abs(image - drawn["lookup"][index]).max() for image in nearest) < 1e-6


def test_maps_need_a_square():
    for held_out in (np.zeros(64, bool), np.arange(64) % 3 == 0, np.arange(64) == 1):
        with pytest.raises(ValueError, match="square on the diagonal"):
            reference_images.world_of(np.zeros((64, 8, 8)), held_out)
