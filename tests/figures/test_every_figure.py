"""Every figure is drawn and readable at its printed width, of runs that stand for its own."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.papers.forced_rendering import bump_presets as papers
from compgen_jax.papers.scale import constructions
from compgen_jax.tasks.task import Factor
from figures import draw_run, plotting
from figures.papers import FIGURES
from tests.figures import stand_ins

LOW_RANK = {"lowrank_none": "lowrank_both", "lowrank_both": "lowrank_both"}
STRIPES = {name: name for name in ("stripes_0_bumps", "stripes_30_bumps")}
# networks that are trained for a second, and the runs that each stands for
TRAINED = {
    **dict.fromkeys(("fig1b", "fig11", "fig12", "fig13", "fig14"), {"bump_cnn": "bump_cnn"}),
    **dict.fromkeys(("fig13_20_epochs", "fig14_20_epochs"), {"bump_cnn": "bump_cnn"}),
    **dict.fromkeys(("fig1", "codes", "fig1d", "fig1e", "fig8", "fig2", "ranks", "fig10",
                     "fig1_epochs", "fig1_authors"), dict.fromkeys(("bump_cnn", "ramp_cnn"))),
    **dict.fromkeys(("fig3", "fig6"), LOW_RANK),
    **dict.fromkeys(("fig4", "fig7"), STRIPES),
    "fig15": STRIPES | {"corner_bumps": "stripes_30_bumps"},
    **{name: dict.fromkeys(FIGURES[name].runs, "bump_cnn")
       for name in ("controls", "ladder", "drawings", "readers", "strip")},
    "apart": dict.fromkeys(FIGURES["apart"].runs, "pixels_apart_middle"),
    "hole": dict.fromkeys(FIGURES["hole"].runs, "bump_cnn_stripes_hole_middle"),
    **{name: dict.fromkeys(FIGURES[name].runs)
       for name in ("composer", "two_objects", "fig9")}
}  # fmt: skip
KNOWN = {
    **dict.fromkeys(("fig4c", "fig4c_epochs"), stand_ins.sweep),
    "holdout_map": stand_ins.holdout_map,
    "sprites": stand_ins.hold_outs,
    "sprites_columns": lambda: stand_ins.hold_outs(FIGURES["sprites_columns"].runs),
    "sprites_remedies": stand_ins.remedies,
    "sprites_pairs": stand_ins.pairs,
}


BOTH = "bump_cnn ramp_cnn"


@pytest.mark.parametrize(
    ("figure", "scale", "names"),
    [
        ("fig1", "paper", BOTH),
        ("fig2", "quick", f"{BOTH} bump_cnn_depth2 bump_cnn_depth6 ramp_cnn_depth2 random_cells"),
        ("fig14_20_epochs", "paper", "ramp_mlp_20_epochs ramp_mlp_20_epochs_depth4 "
         "ramp_mlp_20_epochs_depth5 ramp_mlp_20_epochs_depth6 ramp_mlp_20_epochs_depth7"),
        ("fig4", "quick", "stripes_0_bumps stripes_10_bumps stripes_30_bumps")
    ]
)  # fmt: skip
def test_a_figure_shows_its_runs_in_the_order_of_training(figure, scale, names):
    assert FIGURES[figure].shows(papers.runs(scale), scale) == names.split()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_readable_at_its_printed_width(name, drawn, workdir, monkeypatch):
    figure = FIGURES[name]
    if name in TRAINED:
        runs = {run: stand_ins.trained(like or run, workdir) for run, like in TRAINED[name].items()}
    elif name in KNOWN:
        runs = KNOWN[name]()
    else:
        law = lambda self, name: stand_ins.written_down()
        monkeypatch.setattr(constructions.Constructed, "rows", law)
        students = stand_ins.students()
        runs = {run: students[run] for run in figure.shows(students, "quick")}
        assert runs
    drawn(figure.draw, runs)


def test_the_picture_of_a_run_is_readable(drawn, workdir):
    drawn(draw_run.draw, stand_ins.trained("bump_cnn", workdir))


def test_labels_name_the_values_of_a_factor(drawn):
    """And errors are geometric means over seeds: of 1 and 4, and of 1 and 9."""
    mask, column = np.array([False, True]), np.array([0.0, 1.0])
    cells = SimpleNamespace(held_out=mask, error="mse", scores={"mse": np.array([[1, 1], [4, 9]])})

    def draw(factor):
        figure = plotting.new_figure(plotting.COLUMN, 2)
        axis = figure.subplots()
        axis.set_ylabel(cells.error)
        draw_run.draw_along(axis, factor, column, cells)
        return figure

    (axis,) = drawn(draw, Factor("object", column, False, labels=("cat", "dog"))).axes
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["cat", "dog"]
    assert [line.get_ydata()[0] for line in axis.lines] == pytest.approx([2, 3])
