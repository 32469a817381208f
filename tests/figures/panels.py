"""Parts of a drawn figure."""


def axis_of(figure, letter):
    """The axis that has this panel letter."""
    (axis,) = [axis for axis in figure.axes
               if any(text.get_text() == letter and text.get_fontweight() == "bold"
                      for text in axis.texts)]  # fmt: skip
    return axis


def means(axis, marker="o", color=None):
    """(x, y) of the middles of intervals, in order of x."""
    points = [bar[0].get_xydata()[0] for bar in axis.containers
              if bar[0].get_marker() == marker and color in (None, bar[0].get_color())]  # fmt: skip
    return sorted(map(tuple, points))


def lines_of(axis, marker, color=None):
    """Lines with this marker and, if given, of this colour."""
    return [line for line in axis.lines
            if line.get_marker() == marker and color in (None, line.get_color())]  # fmt: skip


def images_of(figure):
    return [axis.images[0].get_array() for axis in figure.axes if axis.images]
