"""The command lines as a user types them, in processes of their own."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compgen_jax.training import checkpoints

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
