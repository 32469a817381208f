"""The command lines as a user types them, in processes of their own."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from absl import flags
from absl.testing import flagsaver

from compgen_jax.config import changed
from compgen_jax.runs import experiment
from compgen_jax.training import checkpoints
from figures import make
from figures.forced_rendering import networks, verdicts

ROOT = Path(__file__).parent.parent
TINY = [
    "--config=launch/config.py:bump_cnn_quick",
    "--config.task.grid=8",
    "--config.task.support.high=4",
    "--config.task.support.samples=96",
    "--config.decoder.width=4",
    "--config.decoder.depth=2",
    "--config.training.seeds=(0,3)",
    "--config.training.evaluate_every=20",
]


def start(module, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(module, *arguments):
    process = start(module, *arguments)
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


def wait_for_checkpoint(process, workdir, after=0):
    """Until a checkpoint of a step beyond `after` is finished; returns its step."""
    deadline = time.monotonic() + 120
    while (checkpoints.latest_step(workdir / "checkpoints") or 0) <= after:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return checkpoints.latest_step(workdir / "checkpoints")


def test_killed_run_started_again_ends_with_the_same_bits(tmp_path):
    command = [*TINY, "--config.training.epochs=600"]
    code, output, _ = run("launch.train", *command, f"--workdir={tmp_path / 'whole'}")
    assert code == 0 and "exact_accuracy" in output and "summary.json" in output
    step = 0
    for delay in (0.0, 0.005):  # the kills hit a step, or the writing of the files behind it
        process = start("launch.train", *command, f"--workdir={tmp_path / 'killed'}")
        step = wait_for_checkpoint(process, tmp_path / "killed", after=step)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not (tmp_path / "killed" / "summary.json").exists()
    code, _, errors = run("launch.train", *command, f"--workdir={tmp_path / 'killed'}")
    assert code == 0, errors
    for name in ("metrics.csv", "summary.json"):
        whole, killed = ((tmp_path / run / name).read_bytes() for run in ("whole", "killed"))
        assert whole == killed
    records = [
        (tmp_path / run / "checkpoints" / "1800" / "record.json").read_text()
        for run in ("whole", "killed")
    ]
    assert records[0] == records[1]


def test_interrupt_ends_in_one_line_and_says_how_to_go_on(tmp_path):
    process = start(
        "launch.train", *TINY, "--config.training.epochs=100000", f"--workdir={tmp_path / 'run'}"
    )
    wait_for_checkpoint(process, tmp_path / "run")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("error: interrupted; the same command resumes")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--config is missing; say --config=launch/config.py:PRESET; presets: bump_cnn"),
        (["--config=launch/config.py:bmp"], "unknown preset 'bmp'; presets: bump_cnn, ramp_cnn"),
        (["--config", "launch/config.py:bmp"], "unknown preset 'bmp'"),
        (["--config.task.grid=16"], "--config.task.grid needs --config=launch/config.py:PRESET"),
        (["--config=setup.cfg:bump_cnn"], ""),
        (["--config=launch/cli.py:bump_cnn"], "get_config"),
        (["--config=nowhere.py:bump_cnn"], "there is no file 'nowhere.py'"),
        ([TINY[0], "--config.task.gird=8"], "--config.task.gird: no such field; allowed: --"),
        ([TINY[0], "--config.task.grid", "x"], "--config.task.grid=x: invalid literal for int()"),
        ([TINY[0], "--config.task.grid=30"], "config.task.grid=30: must be divisible by 4"),
        ([TINY[0], "--config.decoder.depth=1"], "depth=1: must be at least 2 for conv"),
        ([TINY[0], "--config.task.support.low=13"], "low=13, high=12: holds out no cell"),
        ([TINY[0], "--config.task.support.region=cross"], "no training point has x in"),
        ([TINY[0], "--workdri=x"], "Unknown command line flag 'workdri'"),
        ([TINY[0], "stray"], "'stray' is not a flag"),
        ([TINY[0]], "--workdir is missing"),
    ],
)  # fmt: skip
def test_bad_command_line_is_one_line_and_writes_nothing(tmp_path, arguments, message):
    workdir = [] if arguments == [TINY[0]] else [f"--workdir={tmp_path / 'run'}"]
    code, output, errors = run("launch.train", *arguments, *workdir)
    assert code == 2 and not output, errors
    assert errors.startswith("error: ") and message in errors and "Traceback" not in errors
    assert len(errors.strip().splitlines()) <= 2  # absl adds its hint about --help
    assert not (tmp_path / "run").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("mine")
    code, _, errors = run("launch.train", TINY[0], f"--workdir={tmp_path / 'file' / 'sub'}")
    assert code == 1 and "Traceback" not in errors and "Not a directory" in errors


def test_full_coverage_trains_and_has_no_ood_numbers(tmp_path):
    command = [*TINY, "--config.training.epochs=2", "--config.task.support.region=none"]
    code, output, errors = run("launch.train", *command, f"--workdir={tmp_path / 'run'}")
    assert code == 0 and "OOD  mse none" in output, errors
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["mean"]["ood.mse"]["value"] is None and summary["mean"]["id.mse"]["value"] > 0


def test_analyze_prints_the_layers_asked_for_and_names_unknown_ones(tmp_path):
    workdir = f"--workdir={tmp_path / 'run'}"
    code, _, errors = run("launch.analyze", workdir)
    assert code == 1 and "holds no run" in errors and "Traceback" not in errors
    run("launch.train", *TINY, "--config.training.epochs=2", workdir)
    code, output, errors = run("launch.analyze", workdir, "--layers=layer_01,output")
    assert code == 0, errors
    assert output.splitlines()[0].split()[-2:] == ["layer_01", "output"]
    assert (tmp_path / "run" / "analysis.json").exists()
    code, _, errors = run("launch.analyze", workdir, "--layers=layer_9")
    assert code == 2 and "--layers=layer_9: no such layer; this decoder has layer_00" in errors


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
