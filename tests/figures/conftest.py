"""What tests of figures share."""

import pytest

from figures import plotting
from tests.figures.panels import assert_readable


@pytest.fixture
def drawn():
    """drawn(draw, runs): the figure, laid out and readable, and closed at the end."""
    figures = []

    def draw(function, runs):
        figures.append(function(runs))
        figures[-1].canvas.draw()
        assert_readable(figures[-1])
        return figures[-1]

    yield draw
    for figure in figures:
        plotting.plt.close(figure)


@pytest.fixture(scope="session")
def workdir(tmp_path_factory):
    """Where tiny networks are trained, once for all tests."""
    return tmp_path_factory.mktemp("stand_ins")
