"""Sweeps from the command line: shared by two processes, of which one is killed."""

import signal
import socket

from tests.interrupts import wait_until
from tests.launch.test_command_lines import start

TINY = [
    "--config=launch/config.py:data_scaling_quick",
    *(f"--config.{name}={value}" for name, value in {
        "model.name": "mlp", "model.width": "16", "model.depth": "1", "training.steps": "600",
        "training.seeds": "(0,1,2)", "task.support.region": "none",
        "sweep.axes": "(('task.grid',(8,)),)",
        "sweep.search.per": "(('cell',(0.25,0.5,1.0)),)",
        "sweep.search.refinements": "0", "sweep.real_points": "20",
    }.items()),
]  # fmt: skip
TRIALS = 3 * 3
SLOWLY = "--config.execution.chunk_steps=1"  # so that there is time for a kill
ENVIRONMENT = {"JAX_NUM_CPU_DEVICES": "2", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}


def sweep(workdir, *arguments):
    return start("launch.sweep", *TINY, f"--workdir={workdir}", *arguments, **ENVIRONMENT)


def finish(process):
    output, errors = process.communicate(timeout=240)
    return process.returncode, output, errors


def pair(workdir, *arguments):
    """Two processes over loopback, with two devices each."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    shared = [f"--coordinator_address=127.0.0.1:{port}", "--num_processes=2", *arguments]
    return [sweep(workdir, *shared, f"--process_id={index}") for index in (0, 1)]


def test_two_processes_complete_what_two_began_of_which_one_was_killed(tmp_path):
    """The survivor ends with an error; the restart keeps every row, and the table is that of one
    undisturbed process."""
    workdir = tmp_path / "run"
    first, second = pair(workdir, SLOWLY)
    path = workdir / "trials.csv"
    wait_until(lambda: path.exists() and len(path.read_text().splitlines()) > 1, first)
    second.send_signal(signal.SIGKILL)
    second.communicate()
    code, _, errors = finish(first)
    assert code == 1 and "lost; the same command completes the table" in errors, errors
    kept = path.read_text().splitlines()
    assert 1 < len(kept) < 1 + TRIALS and not (workdir / "summary.json").exists()
    (code, output, errors), (other_code, other_output, _) = map(finish, pair(workdir))
    assert code == other_code == 0, errors
    assert f"{TRIALS} trials" in output and "trials" not in other_output
    assert f"/{TRIALS} trials" not in errors  # the bar counts what is left
    assert set(kept) < set(path.read_text().splitlines())
    code, output, errors = finish(sweep(tmp_path / "whole"))
    assert code == 0 and f"{TRIALS} trials, of which 0 failed" in output, errors
    for name in ("trials.csv", "summary.json"):
        assert (workdir / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
