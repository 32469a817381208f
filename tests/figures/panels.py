"""Parts of a drawn figure, and what all figures have."""

import re

from matplotlib.text import Text

from figures import plotting

NUMBER = re.compile(r"[\d.,+\-\N{MINUS SIGN}e%]+")


def axis_of(figure, letter):
    """The axis that has this panel letter."""
    (text,) = [text for axis in figure.axes for text in axis.texts
               if text.get_fontweight() == "bold" and text.get_text() == letter]  # fmt: skip
    return text.axes


def means(axis):
    """(x, y) of the middles of intervals, in order of x."""
    points = [bar[0].get_xydata()[0] for bar in axis.containers if bar[0].get_marker() == "o"]
    return sorted(map(tuple, points))


def lines_of(axis, marker, color=None):
    """Lines with this marker and, if given, of this colour."""
    return [line for line in axis.lines
            if line.get_marker() == marker and color in (None, line.get_color())]  # fmt: skip


def title_of(axis) -> str:
    """In one line; '' if it has none."""
    return " ".join(axis.get_title(loc="left").split())


def assert_readable(figure):
    """At the width at which it is printed: no small text, no label cut off, no panel empty, and
    every axis of numbers named. The figure is drawn."""
    assert figure.get_figwidth() in (plotting.WIDTH, plotting.COLUMN)
    shown = [axis for axis in figure.axes if axis.axison and axis.get_visible()]
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text.axes in (None, *shown):
            assert text.get_fontsize() >= plotting.SMALL, text
            if re.search(r"\$.*[\^_]", text.get_text()):
                assert 0.7 * text.get_fontsize() >= plotting.SMALL, text  # of the exponent
    paper = figure.bbox.padded(4)
    for axis in shown:
        assert axis.has_data(), axis
        words = axis._left_title, axis.title, axis.xaxis.label, axis.yaxis.label, *axis.texts
        for part in [text for text in words if text.get_text()] + [axis.get_legend()]:
            box = part.get_window_extent() if part else paper
            assert paper.x0 <= box.x0 and box.x1 <= paper.x1, part
            assert paper.y0 <= box.y0 and box.y1 <= paper.y1, part
        for along in "xy":
            ticks = getattr(axis, f"get_{along}ticklabels")()
            texts = [one.get_text() for one in ticks if one.get_visible()]
            same = getattr(axis, f"get_shared_{along}_axes")().get_siblings(axis)
            named = any(getattr(one, f"get_{along}label")() for one in same)
            assert named or not any(map(NUMBER.fullmatch, texts)), (axis, along)
