"""Sweeps from the command line: killed, shared by two processes, and one of them lost."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.interrupts import interrupt

TINY = [
    "--config=launch/config.py:data_scaling_quick",
    *(f"--config.{name}={value}" for name, value in {
        "model.name": "mlp", "model.width": "16", "model.depth": "1", "training.steps": "60",
        "training.seeds": "(0,1,2)", "task.support.region": "none",
        "sweep.axes": "(('task.grid',(8,12)),)",
        "sweep.search.per": "(('cell',(0.25,0.5,1.0)),)",
        "sweep.search.refinements": "0", "sweep.real_points": "20",
    }.items()),
]  # fmt: skip
TRIALS = 3 * 2 * 3
SLOWLY = ["--config.training.steps=20000"]  # so that there is time for a kill


def start(*arguments, settings=TINY):
    return subprocess.Popen(
        [sys.executable, "-m", "launch.sweep", *settings, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"JAX_NUM_CPU_DEVICES": "2"},
    )  # fmt: skip


def finish(process, timeout=240):
    output, errors = process.communicate(timeout=timeout)
    return process.returncode, output, errors


def pair(workdir, *arguments, each=()):
    """Two processes over loopback, with two devices each; `each` is said to the second alone."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    shared = [f"--coordinator_address=127.0.0.1:{port}", "--num_processes=2"]
    return [
        start(f"--workdir={workdir}", *shared, f"--process_id={index}", *arguments, *each[:index])
        for index in (0, 1)
    ]


def wait_for_rows(process, workdir, count):
    deadline, path = time.monotonic() + 120, workdir / "trials.csv"
    while not path.exists() or len(path.read_text().splitlines()) <= count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table and the summary of one undisturbed process."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    code, output, errors = finish(start(f"--workdir={workdir}"))
    assert code == 0, errors
    assert (
        f"{TRIALS} trials, of which 0 failed" in output and "task.images ~ (task.grid)^" in output
    )
    assert "1 of the 2 trials of a program's last batch is idle" in errors
    return [(workdir / name).read_bytes() for name in ("trials.csv", "summary.json")]


def test_two_processes_with_two_devices_each_make_the_same_table(whole, tmp_path):
    workdir = tmp_path / "run"
    (code, output, errors), (other_code, other_output, _) = map(finish, pair(workdir))
    assert code == other_code == 0, errors
    assert f"{TRIALS} trials" in output and "trials" not in other_output
    assert "1 of 2 processes idle at a program's last batch" in errors
    assert [(workdir / n).read_bytes() for n in ("trials.csv", "summary.json")] == whole


def test_a_killed_sweep_goes_on_to_the_same_table(whole, tmp_path):
    """Killed after some batches; what it had is not trained again."""
    workdir = tmp_path / "run"
    process = start(f"--workdir={workdir}", "--config.execution.chunk_steps=1")
    wait_for_rows(process, workdir, 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (workdir / "summary.json").exists()
    code, _, errors = finish(start(f"--workdir={workdir}"))
    assert code == 0, errors
    assert f"/{TRIALS} trials" not in errors  # the bar counts what is left
    assert [(workdir / n).read_bytes() for n in ("trials.csv", "summary.json")] == whole


def test_a_lost_process_leaves_a_table_that_the_restart_completes(tmp_path):
    """The survivor ends with an error, and no row is lost or trained twice."""
    workdir = tmp_path / "run"
    first, second = pair(workdir, *SLOWLY)
    wait_for_rows(first, workdir, 1)
    second.send_signal(signal.SIGKILL)
    second.communicate()
    code, _, errors = finish(first)
    assert code != 0 and "lost" in errors, errors
    kept = (workdir / "trials.csv").read_text().splitlines()
    assert 1 < len(kept) < 1 + TRIALS and not (workdir / "summary.json").exists()
    process = start(f"--workdir={workdir}", *SLOWLY, "--config.execution.chunk_steps=10")
    wait_for_rows(process, workdir, len(kept))
    code, _, errors = interrupt(process)
    assert code == 130, errors
    assert errors.splitlines()[-1].startswith("error: interrupted; the same command")
    assert set(kept) < set((workdir / "trials.csv").read_text().splitlines())


def test_processes_with_different_configs_stop(tmp_path):
    first, second = pair(tmp_path / "run", each=["--config.sweep.search.target=0.5"])
    for process in (first, second):
        code, _, errors = finish(process)
        assert code != 0 and "error: the processes have different configs" in errors
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config.sweep.axes=(('task.grid',(8,10)),)"], "must be divisible by 4, not 10"),
        (["--num_processes=2"], "--coordinator_address, --num_processes and --process_id must be"),
    ],
)
def test_a_bad_command_line_is_one_line_and_writes_nothing(tmp_path, arguments, message):
    process = start(*arguments, f"--workdir={tmp_path / 'run'}", settings=TINY[:1])
    code, output, errors = finish(process)
    assert code == 2 and not output, errors
    assert errors.startswith("error: ") and message in errors and "Traceback" not in errors
    assert not (tmp_path / "run").exists()
