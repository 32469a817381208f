"""The share rendered beside that of interpolation, in figures and in the table of RESULTS.md."""

import numpy as np
import pytest

from compgen_jax.config import Config
from compgen_jax.papers.forced_rendering import known
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.supports import SupportConfig
from figures import report
from figures.forced_rendering import codes, controls, fig1
from tests.figures.panels import axis_of, lines_of, means, title_of

N = 8
HOLE = SupportConfig(region="donut", low=3, high=5)


def known_run(network: str, interpolator: str, code: str = "bump"):
    """A run whose images, and whose interpolator's, are those of known maps."""
    settings = Bump(grid=N, code=CodeConfig(name=code), support=HOLE)
    task = settings.make()
    score = results.scorer(task)
    empty = score(np.zeros((1, N * N, N, N), np.float32))
    world = known.world_of(empty.truths, empty.held_out)
    drawn, by_kernel = (
        score(known.jittered(known.images(name, world), 2))
        for name in (network, interpolator)
    )
    return Run.known(
        (0, 1), drawn, config=Config(task=settings), task=task, interpolator=by_kernel,
        error_at=lambda points: np.full((2, len(points)), 0.01),
    )  # fmt: skip


@pytest.fixture(scope="module")
def runs():
    return {
        "bump_cnn": known_run("plus", "bump"),
        "ramp_cnn": known_run("edge", "plus", "ramp"),
    }


EDGE = 8 / 9  # of the hole, which the edge map draws rightly


def test_figure_1_says_what_is_rendered_and_what_is_interpolated(drawn, runs):
    figure = drawn(fig1.draw, runs)
    titles = [title_of(axis) for axis in figure.axes]
    shares = "{} code: {:.0%} of held-out cells rendered, by interpolation {:.0%}"
    assert shares.format("bump", 0, 1) in titles and shares.format("ramp", EDGE, 0) in titles


def test_the_codes_have_their_interpolators(drawn, runs):
    figure = drawn(codes.draw, runs)
    share = axis_of(figure, "a")
    diamonds = [
        line.get_xydata()[0].tolist() for line in lines_of(share, "D") if len(line.get_xydata())
    ]
    assert diamonds == [[-0.3, 1.0], [0.7, 0.0]]
    shown = [y for _, y in means(share)]
    assert sorted(shown) == pytest.approx([0, EDGE])
    by_distance = lines_of(axis_of(figure, "b"), "None")[:2]
    assert [line.get_ydata().tolist() for line in by_distance] == [[1, 1], [0, 0]]


def test_the_controls_have_their_interpolators(drawn, runs):
    names = ("wide_bumps", "random_cells", "donut_pixelwise", "donut_stripes")
    shown = runs | {name: known_run("bump", "edge") for name in names}
    del shown["ramp_cnn"]
    share = axis_of(drawn(controls.draw, shown), "a")
    diamonds = [line.get_xydata()[0] for line in lines_of(share, "D") if len(line.get_xydata())]
    assert [x for x, _ in diamonds] == pytest.approx([1, *[EDGE] * 4])


def test_the_table_has_both_shares_or_a_dash():
    number = lambda value: {"value": value, "ci95": [value - 0.125, value + 0.125]}
    old = {f"{region}.{name}": number(0.5) for region in ("id", "ood")
           for name in ("mse", "blank_mse", "exact_accuracy")}  # fmt: skip
    new = old | {"ood.rendered": number(0.25), "ood.interpolator_rendered": number(0.375)}
    lines = report.errors_of_images({"old": {"mean": old}, "new": {"mean": new}})
    header, _, *rows = lines[2:]
    assert header.startswith("| network | region | rendered | by interpolation | MSE / blank |")
    assert rows[1].startswith("| old | OOD | – | – | 1 |")
    assert rows[3].startswith("| new | OOD | 0.25 [0.125, 0.375] | 0.375 [0.25, 0.5] | 1 |")
    assert all(row.count("|") == header.count("|") for row in rows)
