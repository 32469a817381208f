"""Several processes: real ones over loopback, and what a cluster would be asked."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import pytest

from compgen_jax.config import ConfigError
from compgen_jax.training import processes
from tests.command import refused

SECONDS = 60  # more than a slow machine needs for one process of the scripts below

PREAMBLE = """
import sys, time
import jax, numpy as np
from compgen_jax.training import processes
port, me = sys.argv[1], int(sys.argv[2])
jax.config.update("jax_num_cpu_devices", 2)

def meet():
    try:
        processes.start("127.0.0.1:" + port, 2, me)
    except processes.RunError as error:
        sys.exit(f"error: {error}")
"""

WORK = """
meet()
assert (jax.process_count(), jax.process_index()) == (2, me)
assert len(jax.local_devices()) == 2 and jax.device_count() == 4
# not a number in all its kinds, infinities, minus zero, the smallest number, and the process's own
bits = np.array([0x7FC00001, 0x7F800001, 0xFFC12345, 0x7F800000, 0xFF800000, 1 << 31, 1, me],
                np.uint32).reshape(2, 4)
got = processes.gather(bits.view(np.float32))
assert got.dtype == np.float32 and got.shape == (2, 2, 4)
for process, row in enumerate(got.view(np.uint32)):
    assert (row.ravel()[:7] == bits.ravel()[:7]).all() and row[1, 3] == process, got
whole = processes.gather(np.array([-(2**31), 2**31 - 1, me], np.int32))
assert whole.tolist() == [[-(2**31), 2**31 - 1, 0], [-(2**31), 2**31 - 1, 1]]
assert processes.gather(np.float32(me)).tolist() == [0, 1]
for text in ("", "of seven", None):
    assert processes.text_of_first(text if me == 0 else "another") == text
time.sleep(2 * me)  # the first one is finished earlier
print("finished", me)
"""


def finish(process):
    """(status, stdout, stderr) of a process; of one that is late, after it is killed."""
    try:
        output = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output = process.communicate()
    return process.returncode, *output


def run_processes(script: str, who=(0, 1)):
    """[(status, stdout, stderr)] of the processes `who`, run at the same time."""
    unset = ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + script, port, str(me)], text=True,
            cwd=Path(__file__).parents[2], env=environment | {"JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for me in who
    ]  # fmt: skip
    with ThreadPoolExecutor() as pool:  # a process that waits for room in its pipe holds up others
        return list(pool.map(finish, started))


def test_two_processes_tell_each_other_everything_and_end_quietly():
    ends = run_processes(WORK)
    for me, (status, stdout, stderr) in enumerate(ends):
        assert status == 0 and f"finished {me}" in stdout, ends
        assert not [line for line in stderr.splitlines() if "[Gloo]" not in line], ends


@pytest.mark.parametrize(
    ("script", "who", "message"),
    [
        ("jax.config.update('jax_num_cpu_devices', 1 + me)\nmeet()", (0, 1), "1 to 2 devices"),
        ("processes.START_SECONDS = 2; meet()", (1,), "did not all meet within 2 seconds"),
    ],
)
def test_processes_that_cannot_start_together_say_so_in_one_line_each(script, who, message):
    ends = run_processes(script, who)
    for status, _, stderr in ends:
        assert status == 1 and message in stderr and len(stderr.splitlines()) == 1, ends


@pytest.fixture
def initialized(monkeypatch):
    """The calls of `jax.distributed.initialize`."""
    calls = []
    monkeypatch.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))
    monkeypatch.setattr(jax.distributed, "initialize", lambda **options: calls.append(options))
    return calls


LIMITS = {
    "initialization_timeout": processes.START_SECONDS + 60,
    "heartbeat_timeout_seconds": processes.HEARTBEAT_SECONDS,
}


@pytest.mark.parametrize("cluster", [False, True])
def test_a_cluster_is_joined_and_a_single_process_starts_nothing(initialized, monkeypatch, cluster):
    gathered, before = [], os.environ["XLA_FLAGS"]
    monkeypatch.setattr(processes, "gather", gathered.append)
    processes.start(cluster=cluster)
    assert initialized == [LIMITS] * cluster
    # a first gather that some reach half a minute late would fail
    assert len(gathered) == cluster
    assert (os.environ["XLA_FLAGS"] == before) == (not cluster)


def test_flags_win_over_the_cluster(initialized, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_collective_timeout_seconds=9")
    processes.start("n1:4321", 2, 1, cluster=True)
    flags = {"coordinator_address": "n1:4321", "num_processes": 2, "process_id": 1}
    assert initialized == [LIMITS | flags | {"cluster_detection_method": "deactivate"}]
    name, own = "--xla_cpu_collective_timeout_seconds=", os.environ["XLA_FLAGS"].split()
    assert own == [f"{name}1000000", f"{name}9"]  # the last one counts


ADDRESSES = ("n1", ":4321", "n1:65536", "http://n1:4321")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("n1:4321", 2, None), "together"),
        *(((address, 2, 0), f"address={address}: must be HOST:PORT") for address in ADDRESSES),
        (("n1:4321", 2, 2), "--process_id=2: must be from 0 to --num_processes - 1"),
        (("n1:4321", 0, 0), "--num_processes is 0"),
    ],
)  # fmt: skip
def test_flags_that_make_no_sense_are_one_line(initialized, flags, message):
    with refused(message, kind=ConfigError):
        processes.start(*flags)
    assert initialized == []
