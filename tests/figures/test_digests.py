"""Digests of what a figure was drawn by: which code counts, and that the committed pictures are
those of their lines."""

import pytest

from compgen_jax.papers.paper import SCALES
from figures import committed, digests
from figures.figure import Figure

HELPERS = '''
from . import shared
from .shared import WIDTH as WIDE, scaled
OTHER = 1
def draw(runs):
    """The caption."""
    figure = scaled(WIDE)
    return _label(figure)
def _label(figure):  # a comment counts
    return shared.name(figure)
def unused():
    return OTHER
'''
SHARED = '''
WIDTH = 3
def scaled(value):
    """What it does."""
    return value * FACTOR
FACTOR = 2
def name(one):
    return str(one)
def unused():
    return 0
'''


@pytest.fixture
def code(tmp_path, monkeypatch):
    """code(drawing, shared): the sources that `draw` stands on in a package of these modules."""
    monkeypatch.setattr(digests, "ROOT", tmp_path)
    (tmp_path / "figures").mkdir()

    def sources(drawing=HELPERS, shared=SHARED):
        for function in ("_definitions", "_imports", "_parsed", "_path"):
            getattr(digests, function).cache_clear()
        (tmp_path / "figures" / "drawing.py").write_text(drawing)
        (tmp_path / "figures" / "shared.py").write_text(shared)
        return digests.sources("figures.drawing", "draw")

    yield sources
    for function in ("_definitions", "_imports", "_parsed", "_path"):
        getattr(digests, function).cache_clear()


def test_the_code_of_a_figure_is_all_that_it_uses_by_name(code):
    found = code()
    assert found.keys() == {
        "figures.drawing.draw", "figures.drawing._label", "figures.shared.WIDTH",
        "figures.shared.scaled", "figures.shared.FACTOR", "figures.shared.name",
    }  # fmt: skip
    assert found["figures.shared.scaled"] == "def scaled(value):\n    return value * FACTOR"


def test_what_it_does_not_use_and_docstrings_do_not_count(code):
    before = code()
    assert code(HELPERS.replace("return OTHER", "return 5")) == before
    assert code(HELPERS.replace("The caption.", "Two\n    lines.")) == before
    assert code(shared=SHARED.replace("FACTOR = 2", "FACTOR = 3")) != before
    assert code(HELPERS.replace("shared.name(figure)", "shared.name(0)")) != before


def test_changes_are_told_apart():
    def draw(runs):
        """A caption."""

    figure, other = Figure("one", draw, (), "", True), lambda runs: None
    other.__doc__, other.__name__ = "Another caption.", "draw"
    line = digests.line_of(figure, b"png", {"run": b"1"})
    assert digests.changes(line, figure, {"run": b"1"}) == []
    assert digests.changes(line, figure, {"run": b"2"}) == ["runs"]
    assert digests.changes(line, figure, {"run": b"1", "more": b"1"}) == ["runs"]
    changed = figure._replace(draw=other)
    assert digests.changes(line, changed, {"run": b"1"}) == ["caption"]
    assert digests.changes(line | {"code": ""}, figure, {"run": b"1"}) == ["code"]
    assert digests.changes(None, figure, {}) == ["no digest"]


def test_a_line_without_its_picture_is_wrong(tmp_path):
    assert digests.wrong(tmp_path) == []
    (tmp_path / "digests.json").write_text('{"lost": {"png": "0"}}')
    assert digests.wrong(tmp_path) == ["lost.png is in digests.json but not there"]


@pytest.mark.parametrize("scale", SCALES)
def test_committed_pictures_are_those_of_their_lines(scale):
    assert digests.wrong(committed.RESULTS / scale / "figures") == []
