"""Every figure is drawn and readable at its printed width, of runs that stand for its own."""

from fnmatch import fnmatchcase
from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.papers.scale import constructions
from compgen_jax.tasks.task import Factor
from figures import committed, draw_run, plotting
from figures.papers import FIGURES
from tests.figures import stand_ins

OWN = ("random_cells", "donut_stripes", "two_objects", "rotation", "rotation_objects",
       "stripes_0_bumps")  # fmt: skip
# {pattern of runs: the network, trained for a second, that stands for them}, the first that fits
LIKE = {name: name for name in OWN} | {
    "stripes_*": "stripes_30_bumps",
    "corner_*": "stripes_30_bumps",
    "ramp_*": "ramp_cnn",
    "lowrank_*": "lowrank_both",
    "*_stripes_*": "bump_cnn_stripes_hole_middle",
    "pixels_apart_*": "pixels_apart_middle",
    "*": "bump_cnn",
}
KNOWN = {
    **dict.fromkeys(("fig4c", "fig4c_epochs"), stand_ins.sweep),
    "holdout_map": stand_ins.holdout_map,
    "sprites": stand_ins.hold_outs,
    "sprites_columns": lambda: stand_ins.hold_outs(FIGURES["sprites_columns"].runs),
    "sprites_remedies": stand_ins.remedies,
    "sprites_pairs": stand_ins.pairs,
}


@pytest.mark.parametrize(
    ("figure", "scale", "names"),
    [
        ("fig2", "quick", "bump_cnn ramp_cnn bump_cnn_depth2 bump_cnn_depth6 ramp_cnn_depth2"),
        ("fig14", "paper", "ramp_mlp_20_epochs ramp_mlp_20_epochs_depth4 "
         "ramp_mlp_20_epochs_depth5 ramp_mlp_20_epochs_depth6 ramp_mlp_20_epochs_depth7"),
        ("fig4", "quick", "stripes_0_bumps stripes_10_bumps stripes_30_bumps")
    ]
)  # fmt: skip
def test_a_figure_shows_its_runs_in_the_order_of_training(figure, scale, names):
    assert FIGURES[figure].shows(committed.configs(scale), scale) == names.split()


def stand_in(run, workdir):
    students = stand_ins.students()
    if run in students:
        return students[run]
    like = next(LIKE[pattern] for pattern in LIKE if fnmatchcase(run, pattern))
    return stand_ins.trained(like, workdir)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_readable_at_its_printed_width(name, drawn, workdir, monkeypatch):
    figure = FIGURES[name]
    scale = figure.scale or "quick"
    if name in KNOWN:
        runs = KNOWN[name]()
    else:
        law = lambda self, name: stand_ins.written_down()
        monkeypatch.setattr(constructions.Constructed, "rows", law)
        names = figure.shows(committed.configs(scale), scale)
        # one depth: where there are several, only the lowest row names its layers
        runs = {run: stand_in(run, workdir) for run in names if "_depth" not in run}
        assert runs
    drawn(figure.draw, runs)


def test_the_picture_of_a_run_is_readable(drawn, workdir):
    drawn(draw_run.draw, stand_ins.trained("bump_cnn", workdir))


def test_labels_name_the_values_of_a_factor():
    """And errors are geometric means over seeds: of 1 and 4, and of 1 and 9."""
    mask, column = np.array([False, True]), np.array([0.0, 1.0])
    cells = SimpleNamespace(held_out=mask, error="mse", scores={"mse": np.array([[1, 1], [4, 9]])})
    factor = Factor("object", column, False, labels=("cat", "dog"))
    axis = plotting.new_figure(plotting.COLUMN, 2).subplots()
    draw_run.draw_along(axis, factor, column, cells)
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["cat", "dog"]
    assert [line.get_ydata()[0] for line in axis.lines] == pytest.approx([2, 3])
    plotting.plt.close(axis.figure)
