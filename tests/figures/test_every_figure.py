"""Every figure of trained bump decoders, on five tiny networks that the figures share."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.config import changed
from compgen_jax.papers.forced_rendering import runs as papers
from compgen_jax.runs import experiment
from compgen_jax.runs.run import Run
from compgen_jax.tasks.task import Factor
from figures import plotting, run
from figures.papers import FIGURES

TINY = {"task.grid": 8, "model.depth": 2, "model.width": 4, "training.epochs": 1,
        "training.steps": 8, "training.evaluate_every": 4, "training.seeds": (0, 1)}  # fmt: skip
HOLES = {"donut": {"task.support.low": 3, "task.support.high": 5},
         "corner": {"task.support.low": 4}}  # fmt: skip
TRAINED = "bump_cnn", "ramp_cnn", "stripes_0_bumps", "stripes_30_bumps", "lowrank_both"
# a network that stands for others, by their names
AS = {"lowrank_none": "lowrank_both", "corner_bumps": "stripes_30_bumps"}
BY_FIGURE = {
    "fig1b": TRAINED[:1],
    **dict.fromkeys(("fig11", "fig13"), TRAINED[:1]),
    **dict.fromkeys(("fig1", "codes", "fig1d", "fig1e", "fig8", "fig2", "ranks", "fig10"),
                    TRAINED[:2]),
    **dict.fromkeys(("fig3", "fig6"), ("lowrank_none", "lowrank_both")),
    **dict.fromkeys(("fig4", "fig7"), TRAINED[2:4]),
    "additive": TRAINED[2:3],
    "fig15": ("corner_bumps", *TRAINED[2:4]),
    "training": (*TRAINED, "lowrank_none"),
}  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    configs, runs = papers.runs("quick"), {}
    for name in TRAINED:
        tiny = changed(configs[name], TINY | HOLES[configs[name].task.support.region])
        if name.endswith("cnn"):  # convolutions take longer to compile; Figure 15 shows theirs
            tiny = changed(tiny, {"model.name": "mlp"})
        path = tmp_path_factory.mktemp(name) / "run"
        experiment.train(tiny, path, progress=False)
        runs[name] = Run.load(path)
    return runs | {name: runs[like] for name, like in AS.items()}


@pytest.mark.parametrize("name", BY_FIGURE)
def test_a_figure_is_readable_at_its_printed_width(name, drawn, trained):
    drawn(FIGURES[name].draw, {run: trained[run] for run in BY_FIGURE[name]})


def test_the_picture_of_a_run_is_readable(drawn, trained):
    drawn(run.draw, trained["bump_cnn"])


def test_labels_name_the_values_of_a_factor(drawn):
    """And errors are geometric means over seeds: of 1 and 4, and of 1 and 9."""
    mask, column = np.array([False, True]), np.array([0.0, 1.0])
    cells = SimpleNamespace(held_out=mask, error="mse", scores={"mse": np.array([[1, 1], [4, 9]])})

    def draw(factor):
        figure = plotting.new_figure(plotting.COLUMN, 2)
        axis = figure.subplots()
        axis.set_ylabel(cells.error)
        run._draw_along(axis, factor, column, cells)
        return figure

    (axis,) = drawn(draw, Factor("object", column, False, labels=("cat", "dog"))).axes
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["cat", "dog"]
    assert [line.get_ydata()[0] for line in axis.lines] == pytest.approx([2, 3])


def test_every_figure_of_the_first_paper_is_drawn_by_a_test():
    elsewhere = {"controls", "two_objects", "three_factors", "fig9", "encoders", "pixels",
                 "pixels_begun", "fig4c", "exponents", "holdout_map"}  # fmt: skip
    draws = {FIGURES[name].draw for name in {*BY_FIGURE, *elsewhere}}
    missing = [name for name, figure in FIGURES.items() if figure.draw not in draws
               and figure.draw.__module__.startswith("figures.forced_rendering")]  # fmt: skip
    assert set(missing) <= {"fig1_epochs", "fig1_authors"}  # which call fig1's
