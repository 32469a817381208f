"""`figures.make` on a paper of two tiny runs and a sweep: the engine, not the drawings."""

import json
from dataclasses import replace

import pytest

from compgen_jax.claims import above, claim, exact_id, learnt
from compgen_jax.config import ConfigError, changed
from compgen_jax.models.mlp import MLP
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.variations import FRESH_SEEDS, Group, fresh, times
from compgen_jax.runs import directory, study
from figures import make, plotting
from figures.figure import Figure
from tests.command import call, refused


def draw(runs):
    """A figure of nothing but a title."""
    figure = plotting.new_figure(1, 1)
    figure.suptitle(", ".join(runs))
    return figure


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
    fields = {
        "first": {},
        "again": {"task.support.samples": 50},
        "wide": {"model.width": 9},
        "sweep": {"sweep.axes": (("training.learning_rate", (1e-3, 1e-2)),),
                  "sweep.real_points": 8}
    }  # fmt: skip
    configs = {name: changed(tiny, {"name": f"{name}_quick"} | each)
               for name, each in fields.items()}  # fmt: skip
    group = Group(("first",), {"width x2": times("model.width", 2), "broad": {"model.width": 9}})
    paper = Paper(
        "Tiny", lambda scale: configs, (is_exact, both_are_exact, is_learnt),
        settings=(group, fresh("first"))
    )  # fmt: skip
    monkeypatch.setattr(make, "PAPERS", (paper,))
    every = [
        Figure("both", draw, ("first", "again"), "", True),
        Figure("wide", draw, ("wide",), "", True, also=("sweep",)),
        Figure("swept", draw, ("sweep",), "", False),
        Figure("large", draw, ("wide",), "paper", True),
        Figure("misspelt", draw, ("frist",), "", False),
    ]
    monkeypatch.setattr(make, "FIGURES", {one.name: one for one in every})

    def main(*arguments, work="work"):
        call(make, *arguments, f"--workdir={tmp_path / work}")
        return tmp_path / work

    return main


def rows_of(workdir):
    rows = json.loads((workdir / "claims.json").read_text())
    return [(row["claim"], row["setting"]) for row in rows], rows


def pictures(workdir):
    return {path.name for path in (workdir / "figures").iterdir()}


def trained_in(workdir):
    return {path.name.rpartition("-")[0] for path in (workdir / "trained").iterdir()}


def test_runs_are_trained_once_by_program_and_claims_follow_what_is_there(
    figures, monkeypatch, capsys
):
    trained, train_together = [], study.train_all

    def train(jobs):
        trained.append([config.name for config, _ in jobs])
        return train_together(jobs)

    monkeypatch.setattr(study, "train_all", train)
    workdir = figures("--only=both")
    printed = capsys.readouterr().out
    assert "not judged; --only=NAME trains what is missing: X2\n" in printed
    assert trained == [["first_quick", "again_quick"]]
    assert pictures(workdir) == {"both.png", "both.pdf"}
    page = (workdir / "RESULTS.md").read_text()
    assert "--scale=quick --workdir=DIR --only=both\n" in page
    assert "| wide_quick | 1 | 24 steps |\n" in page and "| sweep_quick | 1 | a sweep |\n" in page
    assert rows_of(workdir)[0] == [("X1", "base")]
    picture = (workdir / "figures" / "both.png").read_bytes()
    assert b"first, again" in picture  # it names its runs

    monkeypatch.setattr(make, "near_bounds", lambda row: row["claim"] != "X2")
    figures()
    assert trained[1:] == [["wide_quick"]]
    assert pictures(workdir) == {"both.png", "both.pdf", "wide.png", "wide.pdf"}
    assert (workdir / "figures" / "both.png").read_bytes() == picture
    printed, said = capsys.readouterr()
    assert "first_quick, again_quick: already trained" in said
    assert said.index("drew") < said.index("wide_quick: training")  # as soon as it can be
    names, rows = rows_of(workdir)
    assert [name for name, _ in names] == ["X1", "X2", "X3"]
    assert rows[2]["reason"].startswith("not trained: exact accuracy ID ")
    verdicts = [row["verdict"] for row in rows]
    head, below, *table = printed.splitlines()[:5]
    assert head.split() == ["verdict", *sorted(set(verdicts))] and below.split() == ["claim"]
    for line, name, verdict in zip(table, ("X1", "X2", "X3"), verdicts, strict=True):
        is_said = [name] + [str(int(verdict == said)) for said in head.split()[1:]]
        assert line.split() == is_said
    assert "near its bound: X1, X3\n" in printed
    assert "figures that show more, by --only: wide,sweep\n" in printed
    assert "## Not run\n\nNot run at this scale" in (workdir / "RESULTS.md").read_text()

    other = figures("--only=wide", f"--runs={workdir}", work="other")  # these serve, too
    assert not (other / "trained").exists() and len(rows_of(other)[0]) == 3


def test_a_claim_that_needs_more_seeds_than_the_main_job_is_judged_where_it_is_named(
    figures, monkeypatch
):
    monkeypatch.setattr(make, "SEEDS", 1)
    workdir = figures()
    assert "wide.png" in pictures(workdir) and rows_of(workdir)[1] == []
    (row,) = rows_of(figures("--only=X3"))[1]
    assert len(row["seeds"]) == 2


@pytest.mark.parametrize(
    ("names", "trained", "claim"),
    [("X3", {"wide_quick"}, "X3"), ("agai*,first", {"again_quick", "first_quick"}, "X1")],
)
def test_claims_and_runs_are_named_or_match_a_pattern(figures, names, trained, claim):
    workdir = figures(f"--only={names}")
    assert trained_in(workdir) == trained and not (workdir / "figures").exists()
    assert rows_of(workdir)[0] == [(claim, "base")]


def test_claims_are_judged_at_fresh_seeds(figures):
    figures("--only=both")
    workdir = figures("--only=confirm")
    assert "first_fresh_seeds_quick" in trained_in(workdir)
    names, rows = rows_of(workdir)
    assert names == [("X1", "base"), ("X1", "fresh seeds")]
    assert rows[1]["seeds"] == list(FRESH_SEEDS)
    assert rows_of(figures("--only=claims"))[1] == rows  # other commands keep them


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only=fig99"], "--only=fig99: no such figure at quick scale; allowed: both, wide"),
        (["--scale=huge"], "quick"),
        (["--scale=paper", "--runs=none"], "--runs=none: there is no such directory"),
        (["--only=both"], "holds results at paper scale, not quick"),
        (["--only=both,misspelt"], "--only=misspelt: no such figure at quick scale"),
    ],
)
def test_a_wrong_flag_is_one_line_and_leaves_the_directory_alone(
    figures, tmp_path, capsys, arguments, message
):
    directory.write_text(tmp_path / "work" / "scale", "paper\n")
    with pytest.raises((ConfigError, SystemExit)) as error:
        figures(*arguments)
    text = capsys.readouterr().err if error.type is SystemExit else f"{error.value}\n"
    assert message in text and len(text.splitlines()) == 1
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["scale"]


def test_a_sweep_is_trained_only_for_a_figure_that_is_named(figures, capsys):
    """And nothing where only claims are judged."""
    assert not (figures("--only=claims") / "trained").exists()
    workdir = figures("--only=swept")
    assert pictures(workdir) == {"swept.png", "swept.pdf"}
    assert len(list((workdir / "sweeps").iterdir())) == 1 and not (workdir / "trained").exists()
    assert rows_of(workdir)[1] == []
    figures("--only=swept")
    assert "sweep_quick: already trained" in capsys.readouterr().err
    figures("--only=wide")  # it shows the sweep where that is finished
    assert b"wide, sweep" in (workdir / "figures" / "wide.png").read_bytes()


def test_settings_are_trained_and_judged_where_they_are_named(figures, capsys):
    """A setting that is a run of the paper already is that run; other commands keep the rows."""
    workdir = figures("--only=settings")
    assert trained_in(workdir) == {"first_quick", "first_width_x2_quick", "wide_quick"}
    names, rows = rows_of(workdir)
    assert [key for key in names if key[0] != "X3"] == [
        ("X1", "base"), ("X2", "base"), ("X1", "width x2"), ("X1", "broad")
    ]  # fmt: skip
    figures("--only=wide")
    said = capsys.readouterr().err
    assert "first_quick: already trained" not in said and "wide_quick: already trained" in said
    after = rows_of(workdir)[1]
    at_settings = [[row for row in each if row["setting"] != "base"] for each in (rows, after)]
    assert at_settings[0] == at_settings[1]


def test_a_run_that_cannot_train_is_one_line_before_anything_trains(figures, tmp_path, monkeypatch):
    path = tmp_path / "wide.py"
    path.write_text(WIDE)
    (paper,) = make.PAPERS
    own = changed(paper.runs("quick")["first"], {"model.name": f"{path}:Wide"})
    monkeypatch.setattr(make, "PAPERS", (paper._replace(runs=lambda scale: {"own": own}),))
    with refused(f"own: {path}:Wide: its output is ("):
        figures("--only=own")
    assert not (tmp_path / "work").exists()


WIDE = """
from dataclasses import dataclass

from compgen_jax.models.mlp import MLP, MLPDecoder


@dataclass(frozen=True)
class Wide(MLP):
    def make(self, shapes):
        return MLPDecoder(depth=1, width=8, shape=(shapes.output.size + 1,))
"""
