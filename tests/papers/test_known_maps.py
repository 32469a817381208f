"""The yardstick on known maps: which of them render what is held out."""

import numpy as np
import pytest

from figures import criteria

PLACES = [place for place in criteria.RENDERED_AT if place[0] <= 16]  # more: make docs-check
WIDE = (20, 1.5, "corner", (8,))


@pytest.mark.parametrize("place", [*PLACES, WIDE], ids=str)
def test_only_the_bump_is_rendered(place):
    """The edge map draws true bumps on the outermost held-out cells, and nowhere else."""
    grid, sigma, region, (low, *high) = place
    shares = criteria.rendered_at(place)
    side = (high[0] if high else grid - 1) - low + 1
    ring = 4 * (side - 1) if region == "donut" else 2 * side - 1
    expected = dict.fromkeys(shares, 0.0) | {"bump": 1.0, "edge": ring / side**2}
    # a wide bump next to the asked one passes where another seen cell is as near
    ties = {"lookup": 4 / side**2} if sigma > 1 else {}
    for name, share in shares.items():
        assert share <= expected[name] + ties.get(name, 0.0) + 1e-9, name
    assert shares["bump"] == 1.0
    assert shares["edge"] == pytest.approx(expected["edge"])


def squared_correlations(grid, sigma, low, high):
    """{map: r^2 of what it draws with what is asked}, (held-out cells,) each, from profiles."""
    profile = np.exp(-((np.arange(grid)[:, None] - np.arange(grid)) ** 2) / (2 * sigma**2))
    bump = lambda x, y: np.outer(profile[y], profile[x])
    drawn = {"faint": [], "plus": [], "lookup": [], "superposer": []}
    for y in range(low, high + 1):
        for x in range(low, high + 1):
            asked = bump(x, y)
            beside = [((low - 1, y), x - low + 1), ((x, low - 1), y - low + 1)]
            if high < grid - 1:
                beside += [((high + 1, y), high + 1 - x), ((x, high + 1), high + 1 - y)]
            weights = np.array([1 / apart for _, apart in beside])
            images = np.array([bump(*cell) for cell, _ in beside])
            by_map = {
                "faint": 0.01 * asked,
                "plus": profile[y][:, None] + profile[x][None, :],
                "lookup": images[np.argmax(weights)],
                "superposer": np.tensordot(weights / weights.sum(), images, axes=1),
            }
            for name, image in by_map.items():
                drawn[name].append(np.corrcoef(image.ravel(), asked.ravel())[0, 1] ** 2)
    return {name: np.array(values) for name, values in drawn.items()}


@pytest.mark.parametrize(
    ("grid", "sigma", "low", "high", "plus", "above"),
    [(16, 1.0, 3, 12, 0.36, 0.0), (28, 1.0, 6, 22, 0.22, 0.0), (32, 1.5, 12, 31, 0.27, 0.10)],
)
def test_the_correlation_alone_tells_most_maps(grid, sigma, low, high, plus, above):
    """At least .75 is reached by a faint bump, and by wide bumps next to a seen one. The gain ends
    the first, the nearest ID image the second."""
    found = squared_correlations(grid, sigma, low, high)
    assert found["plus"].mean() == pytest.approx(plus, abs=0.006)
    assert (found["faint"] > 0.999).all() and (found["plus"] < 0.75).all()
    for name in ("lookup", "superposer"):
        assert np.mean(found[name] >= 0.75) == pytest.approx(above, abs=0.005)
