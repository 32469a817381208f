"""`figures.make` on tiny networks: trains what is missing, draws all figures, states all claims."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from absl import flags
from absl.testing import flagsaver

from compgen_jax.config import changed, fingerprint
from compgen_jax.old_claims import entries
from compgen_jax.papers.forced_rendering import runs as networks
from compgen_jax.runs import experiment
from figures import make
from figures.forced_rendering import registry

ROOT = Path(__file__).parent.parent.parent
ASKED = "three_factors", "encoder", "pixels"  # groups of figures that wait to be asked for
SMALL = {"task.grid": 8, "task.support.low": 3, "task.support.high": 5}


def run(*arguments):
    command = [sys.executable, "-m", "figures.make", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def test_unknown_figure_is_named(tmp_path):
    code, _, errors = run("--only=fig99", f"--workdir={tmp_path}")
    assert (
        code == 2 and "--only=fig99: no such figure at quick scale; allowed: fig1b, fig1" in errors
    )
    code, _, errors = run("--scale=huge")
    assert code == 2 and "Traceback" not in errors and "quick" in errors


def test_results_of_another_scale_are_left_alone(tmp_path):
    (tmp_path / "scale").write_text("paper\n")
    code, _, errors = run("--only=fig1", f"--workdir={tmp_path}")
    assert code == 2 and "holds results at paper scale, not quick" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["scale"]


def shrunk(network, depth=2):
    """A network at grid 8, with a few steps, 2 seeds and another depth; its name stays."""
    config, role = network.config, network.role
    if role.group == "rotation":
        small = {
            "task.side": 8,
            "task.angles": 72,
            "task.samples": 24,
            "model.width": 2,
            "training.epochs": 2,
            "training.evaluate_every": 2,
            "training.seeds": (0, 1),
        }
        return network._replace(config=changed(config, small))  # fmt: skip
    support, lengths = config.task.support, {"training.epochs": 2, "training.evaluate_every": 2}
    if config.training.steps:
        lengths = {"training.steps": 6, "training.evaluate_every": 3}
    small = SMALL | {
        "task.support.low": 4 if support.region == "corner" else 3,
        "task.support.samples": min(support.samples, 60),
        "model.depth": depth,
        "model.width": min(config.model.width, 4),
        "training.seeds": (0, 1),
    }
    if support.sampling == "without_replacement":
        small["task.support.sampling"] = "with_replacement"
    return network._replace(
        config=changed(config, small | lengths), role=role._replace(depth=depth)
    )


def tiny_networks(scale):
    """Of every code and decoder the preset, of the two codes one other depth of the CNN; of what is
    drawn without being asked for."""
    shown = [n for n in networks.networks(scale) if n.role.group not in ASKED]
    chosen = [n for n in shown if n.role.base or n.role.group != "bumps"]
    deep = [n for n in shown if n.role.model == "conv" and not n.role.base
            and n.role.group == "bumps" and n.role.depth == 2]  # fmt: skip
    found = [shrunk(network) for network in chosen]
    return [*found[:4], *(shrunk(network, depth=3) for network in deep), *found[4:]]


def tiny_sweeps(scale):
    small = {
        "model.name": "mlp",
        "model.width": 16,
        "training.steps": 20,
        "training.seeds": (0, 1),
        "sweep.search.refinements": 0,
        "sweep.real_points": 20,
    }
    found = {}
    for name, config in networks.sweeps(scale).items():
        axes = dict(config.sweep.axes) | {"task.grid": (8, 12)}
        found[name] = changed(config, small | {"sweep.axes": tuple(axes.items())})
    return found


@pytest.fixture
def tiny_figures(tmp_path, monkeypatch):
    """figures.make on tiny networks instead of the presets."""
    paper = registry.PAPER._replace(networks=tiny_networks, sweeps=tiny_sweeps)
    monkeypatch.setattr(make, "PAPERS", (paper,))
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["test"])

    def draw(only=()):
        with flagsaver.flagsaver(workdir=str(tmp_path / "work"), only=list(only)):
            make.main()
        return tmp_path / "work"

    return draw


def test_figures_train_what_is_missing_once_and_claims_are_complete(
    tiny_figures, monkeypatch, capsys
):
    workdir = tiny_figures(["fig1"])
    assert {p.name for p in (workdir / "figures").iterdir()} == {"fig1.png", "fig1.pdf"}
    page = (workdir / "RESULTS.md").read_text()
    assert "## Not run" in page and "- onehot_cnn_quick: 8 steps, 45 s on 2" in page
    assert "\n- data_scaling_quick: 16 min on 2 cores\n" in page
    assert "--scale=quick --workdir=DIR --only=fig1\n" in page
    assert len(list((workdir / "trained").iterdir())) == 2
    picture = (workdir / "figures" / "fig1.png").read_bytes()
    trained = []
    train_together = experiment.train_together

    def train(jobs):
        trained.append([config.name for config, _ in jobs])
        return train_together(jobs)

    monkeypatch.setattr(experiment, "train_together", train)
    tiny_figures()
    assert sorted(trained) == [
        ["bump_cnn_depth2_quick"], ["bump_cnn_quick", "random_cells_quick"], ["bump_mlp_quick"],
        ["donut_pixelwise_quick"],
        [f"lowrank_{name}_quick" for name in ("none", "entropy", "variance", "both")],
        ["onehot_cnn_quick"], ["positional_cnn_quick"], ["ramp_cnn_depth2_quick"],
        ["ramp_mlp_quick"], ["rotation_objects_quick"], ["rotation_quick"],
        [*(f"stripes_{n}_bumps_quick" for n in (0, 10, 30)), "donut_stripes_quick"],
        ["wide_bumps_quick"],
    ]  # fmt: skip
    said = capsys.readouterr().err
    assert "ramp_cnn_quick: already trained" in said
    assert said.index("fig1b.png") < said.index("ramp_cnn_quick: already trained")
    assert said.index("fig1.png") < said.index("onehot_cnn_quick: training")  # as soon as it can be
    assert (workdir / "figures" / "fig1.png").read_bytes() == picture
    names = {name for name, figure in registry.FIGURES.items()
             if not (figure.sweep or figure.asked or figure.scale == "paper")}  # fmt: skip
    assert {p.stem for p in (workdir / "figures").glob("*.png")} == names
    assert all(p.stat().st_size > 15_000 for p in (workdir / "figures").glob("*.p*"))
    claims = entries(json.loads((workdir / "claims.json").read_text()))
    codes = ["bump", "ramp", "onehot", "positional"]
    assert [(c["claim"], c["code"]) for c in claims] == [
        *(("C1", code) for code in codes),
        *(("C2", code) for code in codes if code != "onehot"),  # which is the control
        *(("C3", code) for code in codes),
        ("C4", "bump"), ("C4", "ramp"),
        ("C5", "bump"), ("C5", "ramp"), ("C5", "bump, ramp"),
        ("C6", "bump"), ("C6", "ramp"), ("C6", "ramp"),
        ("C7", "bump"), ("C7", "ramp"), ("C7", "bump"), ("C7", "ramp"),
        *[("C8", "onehot")] * 3, ("C9", "bump"), ("C10", "bump"), ("C12", "bump"), ("C13", "bump"),
        ("C14", "cos_sin"),
        ("K1", "bump"), ("K2", "bump"), ("K3", "bump"), ("K4", "onehot"), ("K5", "bump"),
        ("K6", "cos_sin"),
    ]  # fmt: skip
    for entry in claims:  # a decoder of 12 steps has learnt nothing, and nothing is concluded
        assert entry["seeds"] == [0, 1]
        for reading in (entry["as_stated"], entry["stricter"]):
            assert reading["verdict"] == "inconclusive" and len(reading["ci95"]) == 2
            assert reading["reason"].startswith("not trained: ")
    results = (workdir / "RESULTS.md").read_text()
    assert "| bump_cnn_quick | OOD |" in results and "**inconclusive** (not trained" in results
    assert " steps" not in results.partition("## Not run")[2]  # but sweeps
    assert "![fig14](figures/fig14.png)" in results
    assert "**Decoders of wide bumps, which light every pixel, did not learn them." in results


def _job(workdir, network):
    path = workdir / "trained" / f"{network.name}-{fingerprint(network.config)}"
    return network.config, path


def test_figures_of_sweeps_are_drawn_where_they_are_named(tiny_figures, capsys):
    names = ["fig4c", "exponents", "holdout_map"]
    workdir = tiny_figures(names)
    assert {p.stem for p in (workdir / "figures").iterdir()} == set(names)
    experiment.train_together([_job(workdir, tiny_networks("quick")[2])])
    assert len(list((workdir / "sweeps").iterdir())) == 2
    claims = entries(json.loads((workdir / "claims.json").read_text()))
    assert [(c["claim"], c["code"]) for c in claims] == [("C11", "bump")] * 2
    assert [len(c["as_stated"]["conditions"]) for c in claims] == [2] * 2
    assert [len(c["stricter"]["conditions"]) for c in claims] == [2 * (2 + 1)] * 2
    assert {c["stricter"]["verdict"] for c in claims} == {"inconclusive"}  # nothing was learnt
    capsys.readouterr()
    before = [path.read_bytes() for path in sorted(workdir.rglob("*.png"))]
    assert tiny_figures(names) == workdir
    assert "data_scaling_quick: already trained" in capsys.readouterr().err
    # networks that were trained meanwhile are claimed of, though no figure shows them
    claims = entries(json.loads((workdir / "claims.json").read_text()))
    assert [c["claim"] for c in claims] == ["C1", "C3", "C11", "C11"]
    assert [path.read_bytes() for path in sorted(workdir.rglob("*.png"))] == before
