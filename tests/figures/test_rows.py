"""Which runs the first paper's figures show."""

import inspect

import pytest

import figures.forced_rendering  # noqa: F401  registers its figures
from compgen_jax.papers.forced_rendering.runs import runs
from figures.figure import FIGURES

BOTH = "bump_cnn ramp_cnn"


@pytest.mark.parametrize(
    ("figure", "scale", "names"),
    [
        ("fig1", "paper", BOTH),
        ("fig2", "quick", f"{BOTH} bump_cnn_depth2 bump_cnn_depth6 ramp_cnn_depth2 random_cells"),
        ("fig13", "quick", "bump_mlp bump_mlp_depth7"),
        ("fig14_20_epochs", "paper", "ramp_mlp_20_epochs ramp_mlp_20_epochs_depth4 "
         "ramp_mlp_20_epochs_depth5 ramp_mlp_20_epochs_depth6 ramp_mlp_20_epochs_depth7"),
        ("fig4", "quick", "stripes_0_bumps stripes_10_bumps stripes_30_bumps"),
        ("fig4", "paper", "stripes_0_bumps stripes_10_bumps stripes_50_bumps stripes_100_bumps"),
        ("fig1_epochs", "paper", "bump_cnn ramp_cnn_50_epochs"),
        ("fig1_authors", "paper", "ramp_cnn_authors bump_cnn_authors_128"),
        ("controls", "paper",
         "bump_cnn wide_bumps random_cells donut_pixelwise donut_stripes"),
        ("pixels", "quick", "pixelwise pixelwise_depth4 transformer"),
        ("fig4c_epochs", "paper", "data_scaling_epochs"),
        ("two_objects", "quick", "two_objects"),
    ],
)  # fmt: skip
def test_a_figure_shows_its_runs_in_the_order_of_training(figure, scale, names):
    assert FIGURES[figure].shows(runs(scale), scale) == names.split()


def test_every_figure_has_runs_and_a_caption():
    for figure in FIGURES.values():
        assert inspect.getdoc(figure.draw)
    first_paper = [f for f in FIGURES.values() if f.draw.__module__.startswith(
        "figures.forced_rendering")]  # fmt: skip
    for figure in first_paper:
        for scale in ("quick", "paper") if not figure.scale else (figure.scale,):
            assert figure.shows(runs(scale), scale), figure.name
