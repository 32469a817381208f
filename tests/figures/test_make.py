"""`figures.make` on a paper of two tiny runs and a sweep: the engine, not the drawings."""

import json
from dataclasses import replace

import pytest
from absl import flags
from absl.testing import flagsaver

from compgen_jax.claims import above, claim, exact_id, learnt
from compgen_jax.config import ConfigError, changed
from compgen_jax.models.mlp import MLP
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.registry import LEAGUE
from compgen_jax.papers.settings import Group, times, to
from compgen_jax.runs import directory, experiment
from compgen_jax.runs.run import Run
from figures import make, plotting
from figures.figure import Figure
from figures.papers import FIGURES
from tests.command import call


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only=fig99",), "--only=fig99: no such figure at quick scale; allowed: fig1b, fig1"),
        (("--scale=huge",), "quick"),
        (("--only=fig1",), "holds results at paper scale, not quick"),
    ],
)
def test_a_wrong_flag_is_one_line_and_leaves_the_directory_alone(
    tmp_path, capsys, arguments, message
):
    (tmp_path / "scale").write_text("paper\n")
    with pytest.raises((ConfigError, SystemExit)) as error:
        call(make, *arguments, f"--workdir={tmp_path}")
    said = capsys.readouterr().err if error.type is SystemExit else f"{error.value}\n"
    assert message in said and len(said.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["scale"]


def draw(runs):
    """A figure of nothing but a title."""
    figure = plotting.new_figure(1, 1)
    figure.suptitle(", ".join(runs))
    return figure


def draw_settings(rows):
    """A figure of nothing but a title."""
    return draw([f"{row['claim']} {row['setting']}" for row in rows])


@claim("X1", runs={"net": "first"})
def is_exact(net):
    """It is exact."""
    yield above(0.0, exact_id(net.cells), "accuracy")


@claim("X2", runs={"net": "first", "other": "wide"})
def both_are_exact(net, other):
    """Both are exact."""
    yield from is_exact.function(net)
    yield above(0.0, exact_id(other.cells), "wide")


@claim("X3", runs={"net": "wide"})
def is_learnt(net):
    """It is learnt."""
    yield learnt(exact_id(net.cells))
    yield from is_exact.function(net)


@pytest.fixture
def figures(tiny, tmp_path, monkeypatch):
    """figures.make on one paper: figures(only) -> the directory."""
    tiny = replace(tiny, model=MLP(depth=1, width=8))
    sweep = changed(tiny, {"name": "tiny_sweep", "sweep.axes": (("training.learning_rate",
                    (1e-3, 1e-2)),), "sweep.real_points": 8})  # fmt: skip
    configs = {
        "first": changed(tiny, {"name": "first_quick"}),
        "again": changed(tiny, {"name": "again_quick", "task.support.samples": 50}),
        "wide": changed(tiny, {"name": "wide_quick", "model.width": 9}),
        "sweep": sweep,
    }
    twice = times("model.width", 2)
    group = Group(("first",), (twice, to("broad", model__width=9)))
    own = {"mine": changed(tiny, {"name": "mine_quick", "model.width": 7})}
    paper = Paper(
        "Tiny", "X", lambda scale: configs, (is_exact, both_are_exact, is_learnt),
        settings=(group,),
        with_models=lambda models: paper._replace(runs=lambda scale: configs | own),
    )  # fmt: skip
    monkeypatch.setattr(make, "PAPERS", (paper,))
    every = [
        Figure("both", draw, ("first", "again"), "", True),
        Figure("wide", draw, ("wide",), "", True),
        Figure("swept", draw, ("sweep",), "", False),
        Figure("large", draw, ("wide",), "paper", True),
        Figure("misspelt", draw, ("frist",), "", False),
        Figure("varied", draw_settings, (), "", False, of_settings=True),
        Figure("rows", draw, ("first", "again", "mine"), "", False, of_summaries=True),
    ]
    monkeypatch.setattr(make, "FIGURES", {one.name: one for one in every})
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["test"])

    def main(only=(), models=(), runs=(), work="work"):
        flags_of = {"only": list(only), "models": list(models), "runs": list(runs)}
        with flagsaver.flagsaver(workdir=str(tmp_path / work), **flags_of):
            make.main()
        return tmp_path / work

    return main


def rows_of(workdir):
    rows = json.loads((workdir / "claims.json").read_text())
    return [(row["claim"], row["setting"]) for row in rows], rows


def test_runs_are_trained_once_by_program_and_claims_follow_what_is_there(
    figures, monkeypatch, capsys
):
    trained, train_together = [], experiment.train_together

    def train(jobs):
        trained.append([config.name for config, _ in jobs])
        return train_together(jobs)

    monkeypatch.setattr(experiment, "train_together", train)
    workdir = figures(["both"])
    assert trained == [["first_quick", "again_quick"]]
    pictures = {path.name for path in (workdir / "figures").iterdir()}
    assert pictures == {"both.png", "both.pdf"}
    page = (workdir / "RESULTS.md").read_text()
    assert "--scale=quick --workdir=DIR --only=both\n" in page
    assert "| wide_quick | 1 | 24 steps |\n" in page and "| tiny_sweep | 1 | a sweep |\n" in page
    assert rows_of(workdir)[0] == [("X1", "base")]
    picture = (workdir / "figures" / "both.png").read_bytes()
    assert b"first, again" in picture  # it names its runs

    figures()
    assert trained[1:] == [["wide_quick"]]
    assert {path.stem for path in (workdir / "figures").glob("*.png")} == {"both", "wide"}
    assert (workdir / "figures" / "both.png").read_bytes() == picture
    said = capsys.readouterr().err
    assert "first_quick, again_quick: already trained" in said and "judging" in said
    assert said.index("drew") < said.index("wide_quick: training")  # as soon as it can be
    names, rows = rows_of(workdir)
    assert [name for name, _ in names] == ["X1", "X2", "X3"]
    assert rows[2]["reason"].startswith("not trained: exact accuracy ID ")
    assert "## Not run\n\nNot run at this scale" in (workdir / "RESULTS.md").read_text()

    other = figures(["wide"], runs=[workdir], work="other")  # runs of another directory serve too
    assert not (other / "trained").exists() and len(rows_of(other)[0]) == 3


def test_a_figure_of_no_run_is_one_line_before_anything_trains(figures, tmp_path):
    with pytest.raises(ConfigError) as error:
        figures(["both", "misspelt"])
    assert str(error.value) == "--only=misspelt: no run at quick scale is named frist"
    assert not (tmp_path / "work").exists()


def test_a_sweep_is_trained_only_for_a_figure_that_is_named(figures, capsys):
    """And nothing where only claims are judged."""
    assert not (figures(["claims"]) / "trained").exists()
    workdir = figures(["swept"])
    assert {path.stem for path in (workdir / "figures").glob("*.p*")} == {"swept"}
    assert len(list((workdir / "sweeps").iterdir())) == 1 and not (workdir / "trained").exists()
    assert json.loads((workdir / "claims.json").read_text()) == []
    figures(["swept"])
    assert "tiny_sweep: already trained" in capsys.readouterr().err


def test_settings_are_trained_and_judged_for_a_figure_that_is_named(figures, capsys):
    """A setting that is a run of the paper already is that run; other commands keep the rows."""
    workdir = figures(["varied"])
    names = {path.name.rpartition("-")[0] for path in (workdir / "trained").iterdir()}
    assert names == {"first_quick", "first_width_x2_quick", "wide_quick"}
    keys = [(name, setting) for setting in ("base", "width x2", "broad") for name in ("X1", "X2")]
    there = [key for key in keys if key != ("X2", "width x2") and key != ("X2", "broad")]
    names, rows = rows_of(workdir)
    assert [key for key in names if key[0] != "X3"] == there
    assert {path.stem for path in (workdir / "figures").glob("*.p*")} == {"varied"}
    figures(["wide"])
    said = capsys.readouterr().err
    assert "first_quick: already trained" not in said and "wide_quick: already trained" in said
    after = rows_of(workdir)[1]
    assert [row for row in after if row["setting"] != "base"] == [
        row for row in rows if row["setting"] != "base"
    ]
    agree = [
        row["verdict"] == rows[0]["settings"]["verdict"] for row in rows if row["claim"] == "X1"
    ]
    assert after[0]["settings"]["agree"] == sum(agree[1:])


def test_models_of_ones_own_are_trained_alone_and_drawn_beside_what_is_there(figures, monkeypatch):
    shown = []
    monkeypatch.setattr(make, "save", lambda work, figure, drawn, names, clock: shown.append(names))
    with pytest.raises(ConfigError, match="--models: .* say --only=league, or no --only"):
        figures(["wide"], models=["mine.py:Mine"])
    workdir = figures(models=["mine.py:Mine"])
    names = {path.name.rpartition("-")[0] for path in (workdir / "trained").iterdir()}
    assert names == {"mine_quick"} and shown == [["mine"]]
    (run,) = report_of(workdir)
    monkeypatch.setattr(make.committed, "runs", lambda scale: {"first": run})
    figures(models=["mine.py:Mine"])
    assert shown[1:] == [["first", "mine"]]


def report_of(workdir):
    """The runs there, as committed ones."""
    for path in (workdir / "trained").iterdir():
        yield Run.of_summary(directory.read_config(path), directory.read_summary(path))


def test_a_model_that_cannot_be_in_the_league_is_one_line_before_anything_trains(
    figures, tmp_path, monkeypatch
):
    path = tmp_path / "wide.py"
    path.write_text(WIDE)
    monkeypatch.setattr(make, "PAPERS", (LEAGUE,))
    monkeypatch.setattr(make, "FIGURES", FIGURES)
    with pytest.raises(ConfigError) as error:
        figures(models=[f"{path}:Wide"])
    message = f"league_bumps_block_wide_wide: {path}:Wide: its output is (257,), and the task asks"
    assert str(error.value).startswith(message) and "\n" not in str(error.value)
    assert not (tmp_path / "work").exists()


WIDE = """
from dataclasses import dataclass

from flax import linen as nn

from compgen_jax.models.model import Model


class Layer(nn.Module):
    outputs: int

    @nn.compact
    def __call__(self, code):
        return nn.Dense(self.outputs)(code), {"layer_00": code}


@dataclass(frozen=True)
class Wide(Model):
    def make(self, shapes):
        return Layer(shapes.output.size + 1)
"""
