"""Ctrl-C, as a user presses it, and kills at chosen moments."""

import contextlib
import signal
import subprocess
import time

import pytest

from compgen_jax.runs import directory


@contextlib.contextmanager
def interrupted_after_a_save(after=lambda workdir, step: True):
    """Training inside ends as by Ctrl-C after the first save for which `after(workdir, step)`."""
    save = directory.save

    def save_and_stop(workdir, step, *rest):
        save(workdir, step, *rest)
        if after(workdir, step):
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(directory, "save", save_and_stop)
        yield


def wait_until(reached, process):
    """Waits, two minutes at most, while a process runs."""
    deadline = time.monotonic() + 120
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def interrupt(process):
    """(errors, output, status) of a process that is interrupted, and again every 10 seconds: Python
    drops an interrupt inside a finalizer or a callback."""
    for _ in range(6):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return *reversed(process.communicate(timeout=10)), process.returncode
    process.kill()
    raise AssertionError("the process ignores interrupts")
