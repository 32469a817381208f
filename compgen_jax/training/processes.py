"""Several processes as one: the only module that knows of `jax.distributed`. All of them call
`gather` and `text_of_first` equally often, in the same order and with equal shapes.
"""

import atexit
import os
import re
import socket
import sys
import threading
import time
from collections import Counter

import jax
import numpy as np
from jax.experimental import multihost_utils

from compgen_jax.settings import demand
from compgen_jax.training.checkpoints import RunError

START_SECONDS = 300  # the others may be late: queued, or typed by hand
HEARTBEAT_SECONDS = 60  # after so long a silence of one, jax ends the others
FLAGS = "--coordinator_address, --num_processes and --process_id"


def start(coordinator_address=None, num_processes=None, process_id=None, cluster: bool = False):
    """Joins the processes of the three flags, or of a cluster, before any device is used. Raises
    ConfigError or RunError unless all start in time."""
    flags = {
        "coordinator_address": coordinator_address,
        "num_processes": num_processes,
        "process_id": process_id,
    }
    if any(value is not None for value in flags.values()):
        _check(**flags)
        if num_processes == 1:
            return
        name = f"--coordinator_address={coordinator_address}"
        arguments = flags | {"cluster_detection_method": "deactivate"}
    elif cluster:
        name, arguments = "--cluster", {}
    else:
        return
    # on CPUs a process that is half an hour late would count as lost; the user's flags win
    patience = "--xla_cpu_collective_timeout_seconds=1000000"
    os.environ["XLA_FLAGS"] = f"{patience} {os.environ.get('XLA_FLAGS', '')}"
    _initialize(name, arguments)
    devices = sorted(Counter(device.process_index for device in jax.devices()).values())
    if devices[0] != devices[-1]:
        raise RunError(
            f"processes have {devices[0]} to {devices[-1]} devices, and must have "
            "equally many; on CPUs JAX_NUM_CPU_DEVICES sets them"
        )
    # while all processes are there: on CPUs the first gather waits for 30 seconds, later ones
    # without end
    gather(np.zeros(1, np.int32))


def gather(array) -> np.ndarray:
    """(P, *shape): the arrays (float32 or int32) of all processes. Raises RunError where one was
    lost."""
    array = np.asarray(array)
    if jax.process_count() == 1:
        return array[None]
    try:
        # as integers, since a device may change the bits of a NaN and flush a small number
        return np.array(multihost_utils.process_allgather(array.view(np.int32))).view(array.dtype)
    except RuntimeError as error:
        abandon()
        raise RunError(
            f"another process was lost; the same command completes the table ({_line(error)})"
        ) from error


def text_of_first(text: str | None) -> str | None:
    """The first process's text, on all of them; the others' is of no account."""
    encoded = (text or "").encode()
    length = gather(np.int32(-1 if text is None else len(encoded)))[0]
    if length < 0:
        return None
    characters = np.zeros(length, np.int32)
    if jax.process_index() == 0:
        characters[:] = list(encoded)
    return bytes(gather(characters)[0].tolist()).decode()


def abandon():
    """Lets this process end with status 1, alone: jax would wait for the others, and abort."""
    if jax.distributed.is_initialized():
        # the last to register runs first: before jax's own. jax aborts the others when the first
        # process ends, so it gives them a second to say why they end
        atexit.register(_leave, 1.0 if jax.process_index() == 0 else 0.0)


def _leave(pause=0.0):
    time.sleep(pause)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _check(coordinator_address, num_processes, process_id):
    """Raises ConfigError, or RunError where this process cannot be the coordinator."""
    complete = None not in (coordinator_address, num_processes, process_id)
    demand(complete, f"{FLAGS} must be given together, or not at all")
    address = f"--coordinator_address={coordinator_address}"
    parts = re.fullmatch(r"(\[[^][\s]+\]|[^][:/\s]+):(\d{1,5})", coordinator_address)
    valid = parts and 0 < int(parts[2]) < 2**16
    demand(valid, f"{address}: must be HOST:PORT, such as 10.0.0.1:4321")
    hint = f"must be from 0 to --num_processes - 1, and --num_processes is {num_processes}"
    demand(0 <= process_id < num_processes, f"--process_id={process_id}: {hint}")
    if process_id == 0 and num_processes > 1:
        try:  # where jax cannot listen, it crashes
            socket.create_server(("", int(parts[2]))).close()
        except OSError as error:
            raise RunError(f"{address}: cannot listen there: {error.strerror}") from error


def _initialize(name: str, arguments: dict):
    """Raises RunError if the others do not start. In a thread, as jax itself would abort."""
    errors = []

    def initialize():
        try:
            jax.distributed.initialize(
                **arguments,
                initialization_timeout=START_SECONDS + 60,
                heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            )
        except Exception as error:
            errors.append(error)

    atexit.register(_leave)  # until all have met, jax does not end well
    thread = threading.Thread(target=initialize, daemon=True)
    thread.start()
    thread.join(START_SECONDS)
    if thread.is_alive():
        raise RunError(f"{name}: the processes did not all meet within {START_SECONDS} seconds")
    if errors:
        raise RunError(f"{name}: {_line(errors[0])}; {FLAGS} say it by hand") from errors[0]
    atexit.unregister(_leave)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
