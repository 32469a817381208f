"""What tests of figures share."""

import pytest

from figures import plotting


@pytest.fixture
def drawn():
    """drawn(draw, runs): the figure, laid out, and closed at the end."""
    figures = []

    def draw(function, runs):
        figures.append(function(runs))
        figures[-1].canvas.draw()
        return figures[-1]

    yield draw
    for figure in figures:
        plotting.close(figure)
