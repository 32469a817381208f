"""Figures as a user makes them, from training to claims."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from absl import flags
from absl.testing import flagsaver

from compgen_jax.config import changed
from compgen_jax.runs import experiment
from figures import make
from figures.forced_rendering import networks, verdicts

ROOT = Path(__file__).parent.parent


def start(module, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(module, *arguments):
    process = start(module, *arguments)
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


def test_unknown_figure_is_named(tmp_path):
    code, _, errors = run("figures.make", "--only=fig99", f"--workdir={tmp_path}")
    assert code == 2 and "--only=fig99: no such figure; allowed: fig1, codes" in errors
    code, _, errors = run("figures.make", "--scale=huge")
    assert code == 2 and "Traceback" not in errors and "quick" in errors


def shrunk(config):
    """A remedy or control at grid 8, with a few steps; its name stays."""
    support, lengths = config.task.support, {"training.epochs": 2}
    if config.training.steps:
        lengths = {"training.steps": 6, "training.evaluate_every": 3}
    low = 3 if support.region == "donut" else 4
    sampling = "every_cell" if support.sampling == "every_cell" else "with_replacement"
    small = {
        "task.grid": 8,
        "task.support.low": low,
        "task.support.high": 5,
        "task.support.sampling": sampling,
        "task.support.samples": min(support.samples, 60),
        "decoder.depth": 2,
        "decoder.width": min(config.decoder.width, 4),
        "training.seeds": (0, 1, 2),
    }
    return changed(config, small | lengths)


@pytest.fixture
def tiny_figures(tmp_path, tiny, replace_in, monkeypatch):
    """figures.make on tiny decoders instead of the presets."""

    depths, base = {"conv": (2, 3), "mlp": (2,)}, {"conv": 2, "mlp": 2}

    def config_of(key, scale):
        if isinstance(key, str):
            return shrunk(networks.remedies(scale)[key])
        name = f"{key.code}_{key.decoder}{key.depth}_tiny"
        config = replace_in(replace_in(tiny, "name", name), "task.code.name", key.code)
        config = replace_in(
            replace_in(config, "decoder.name", key.decoder), "decoder.depth", key.depth
        )
        return replace_in(config, "training.seeds", (0, 1, 2))

    monkeypatch.setattr(make, "config_of", config_of)
    monkeypatch.setattr(make, "DEPTHS", {"quick": depths})
    for module in (make, verdicts):
        monkeypatch.setattr(module, "BASE_DEPTH", base)
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
        ["bump_conv3_tiny"], ["bump_mlp2_tiny"], ["donut_pixelwise_quick"],
        ["donut_stripes_quick"],
        [f"lowrank_{name}_quick" for name in ("none", "entropy", "variance", "both")],
        ["onehot_conv2_tiny"], ["positional_conv2_tiny"], ["ramp_conv3_tiny"], ["ramp_mlp2_tiny"],
        ["random_cells_quick"],
        [f"stripes_{n}_bumps_quick" for n in (0, 10, 30, 100)],
        ["wide_bumps_quick"],
    ]  # fmt: skip
    assert "bump_conv2_tiny: already trained" in capsys.readouterr().err
    assert (workdir / "figures" / "fig1.png").read_bytes() == picture
    names = {name for name, figure in make.registry("quick").items() if not figure.sweep}
    assert {p.stem for p in (workdir / "figures").glob("*.png")} == names
    assert all(p.stat().st_size > 15_000 for p in (workdir / "figures").glob("*.p*"))
    claims = json.loads((workdir / "claims.json").read_text())
    codes = ["bump", "ramp", "onehot", "positional"]
    assert [(c["claim"], c["code"]) for c in claims] == [
        *((claim, code) for claim in ("C1", "C2", "C3") for code in codes),
        ("C4", "bump"), ("C4", "ramp"),
        ("C5", "bump"), ("C5", "ramp"), ("C5", "bump, ramp"),
        ("C6", "bump"), ("C6", "ramp"), ("C6", "ramp"),
        ("C7", "bump"), ("C7", "ramp"), ("C7", "bump"), ("C7", "ramp"),
        *[("C8", "onehot")] * 3, ("C9", "bump"), ("C10", "bump"), ("C12", "bump"), ("C13", "bump"),
        ("K1", "bump"), ("K2", "bump"), ("K3", "bump"), ("K4", "onehot"), ("K5", "bump"),
    ]  # fmt: skip
    for entry in claims:  # a decoder of 12 steps has learnt nothing, and nothing is concluded
        assert entry["verdict"] == "inconclusive" and entry["seeds"] == [0, 1, 2]
        assert len(entry["ci95"]) == 2
    results = (workdir / "RESULTS.md").read_text()
    assert "| bump_conv2_tiny | OOD |" in results and "**inconclusive**" in results
    assert "![fig14.png](figures/fig14.png)" in results
    assert "**Decoders of wide bumps, which light every pixel, did not learn them." in results


def test_figures_of_sweeps_are_drawn_where_they_are_named(tiny_figures, monkeypatch, capsys):
    small = {
        "decoder.name": "mlp",
        "decoder.width": 16,
        "training.steps": 20,
        "training.seeds": (0, 1),
        "sweep.grids": (8, 12),
        "sweep.refinements": 0,
        "sweep.real_points": 20,
    }
    monkeypatch.setattr(
        make, "sweep_of", lambda name, scale: changed(networks.sweep_of(name, scale), small)
    )
    names = ["fig4c", "exponents", "holdout_map"]
    workdir = tiny_figures(names)
    assert {p.stem for p in (workdir / "figures").iterdir()} == set(names)
    assert len(list((workdir / "sweeps").iterdir())) == 2
    claims = json.loads((workdir / "claims.json").read_text())
    assert [(c["claim"], c["code"]) for c in claims] == [("C11", "bump")] * 2 * 3 * (2 + 3)
    assert {c["verdict"] for c in claims} == {"inconclusive"}  # nothing was learnt
    capsys.readouterr()
    before = [path.read_bytes() for path in sorted(workdir.rglob("*.png"))]
    assert tiny_figures(names) == workdir
    assert "data_scaling_quick: already trained" in capsys.readouterr().err
    assert [path.read_bytes() for path in sorted(workdir.rglob("*.png"))] == before


def test_results_of_another_scale_are_left_alone(tmp_path):
    (tmp_path / "scale").write_text("paper\n")
    code, _, errors = run("figures.make", "--only=fig1", f"--workdir={tmp_path}")
    assert code == 2 and "holds results at paper scale, not quick" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["scale"]
