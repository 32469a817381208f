"""The league's table, figures and page on committed and on constructed summaries."""

from types import SimpleNamespace

import pytest

from compgen_jax.papers.league import runs
from figures.league import figures, page, tables
from figures.papers import FIGURES
from tests.figures import committed


@pytest.fixture(scope="module")
def finished():
    names = [f"id_cells.{name}" for name in figures.GEOMETRY]
    return committed.finished(runs.runs("quick"), names, with_tasks=True)


def test_figures_of_finished_runs(drawn, finished):
    for name in ("league", "league_geometry"):
        figure = FIGURES[name]
        assert figure.shows([*finished, "bump_cnn"], "quick") == list(finished)
        assert not figure.by_default
        drawn(figure.draw, finished)


QUICK = {tuple(runs.entry_of(config)): config for config in runs.runs("quick").values()}


def run(model, task, holdout, ood, seen=1.0, half=0.1, interpolated=0.0):
    """A finished run with these shares and intervals of half this width."""
    config = next(c for (m, _, *place), c in QUICK.items() if (m, *place) == (model, task, holdout))
    number = lambda value: {"value": value, "ci95": [value - half, value + half]}
    accuracy = config.task.make().accuracy
    score = accuracy if task == "rotation" else "rendered"
    mean = {f"ood.{score}": number(ood), f"id.{accuracy}": number(seen),
            f"ood.interpolator_{score}": number(interpolated)}  # fmt: skip
    return SimpleNamespace(config=config, summary={"mean": mean})


def test_the_table_has_who_learnt_and_who_composes():
    some = [
        run("conv", "bumps", "block", 0.9, seen=0.94),
        run("MLP", "rotation", "random", 0.9),
        run("MLP", "sizes", "block", 1.0, half=0),
    ]
    cells, columns = tables.cells(some), tables.columns(some)
    assert list(columns) == [("bumps", "block"), ("sizes", "block"), ("rotation", "random")]
    assert not cells["conv"]["bumps", "block"].learnt
    assert not cells["conv"]["bumps", "block"].composes
    digits = cells["MLP"]["rotation", "random"]
    # A mixture of the images beside a single missing angle is right as often.
    assert digits.learnt and digits.trivial == columns["rotation", "random"].trivial["edge_mixture"]
    assert digits.trivial > 0.8 and not digits.composes
    sizes = cells["MLP"]["sizes", "block"]
    assert sizes.composes and sizes.ood["ci95"] == [1 - 1.5 / 300, 1.0]
    assert columns["sizes", "block"].trivial["mean_size"] < 0.4
    alike = run("MLP", "sizes", "block", 1.0, half=0, interpolated=0.999)
    cell = tables.cells([alike])["MLP"]["sizes", "block"]
    assert cell.interpolated == cell.trivial == 0.999 and not cell.composes
    width, pixels, code = 256, 256, 36 + 5
    expected = (code + 1) * width + 2 * (width + 1) * width + (width + 1) * pixels
    assert tables.parameters(some[1:2]) == {"MLP": expected}


def said(*some):
    return "\n".join(page.lines({str(k): run(*one) for k, one in enumerate(some)}, []))


def test_sentences_name_who_composes():
    of_block = [("conv", 0.1), ("conv, stripes shown", 0.97), ("low rank", 0.3),
                ("low rank, penalties", 0.2), ("MLP", 0.05), ("pixelwise", 0.55)]  # fmt: skip
    text = said(*[(model, "bumps", "block", ood) for model, ood in of_block],
                ("additive", "bumps", "block", 0.3, 0.9499))  # fmt: skip
    # .55 is above .5, but not on the whole interval.
    right = "held out: surely more than half composed, and more than by any trivial predictor: "
    assert f"a block {right}`conv, stripes shown` 0.97; the best of the others" in text
    assert "learnt is `pixelwise` 0.55; not learnt by `additive` (0.94)." in text
    assert "`low rank` has 0.3 [0.2, 0.4], with penalties 0.2 [0.1, 0.3]." in text
    assert "shown are 61% of the combinations of two factors" in text
    assert "| *best trivial predictor* | | | 0.00 (" in text
    assert "L1" not in text and "function that all pixels share, one MLP for all pixels" in text


def test_what_a_summary_lacks_is_a_dash():
    old = run("conv", "bumps", "block", 0.9)
    old.summary["mean"] = {"id.exact_accuracy": old.summary["mean"]["id.exact_accuracy"]}
    lines = page.lines({"old": old}, [])
    assert "| – / – / 1 |" in lines[2] and not any("held out: surely" in line for line in lines)
    cell = tables.cells([old])["conv"]["bumps", "block"]
    assert not cell.composes and cell.learnt


def test_sentences_of_little_say_little():
    assert page.lines({}, []) == []
    text = said(("additive", "bumps", "corner", 0.0, 0.3))
    right = "held out: surely more than half composed, and more than by any trivial predictor: "
    assert f"a corner {right}no model; not learnt by `additive` (0.3)." in text
    assert "remedies" not in text and "each pixel's own" not in text
