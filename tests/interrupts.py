"""Ctrl-C, as a user presses it, and kills at chosen moments."""

import contextlib
import signal
import subprocess

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


def interrupt(process, again=10, tries=6):
    """(status, output, errors) of a process that is interrupted, and again every `again` seconds:
    Python drops an interrupt inside a finalizer or a callback."""
    for _ in range(tries):
        process.send_signal(signal.SIGINT)
        try:
            output, errors = process.communicate(timeout=again)
        except subprocess.TimeoutExpired:
            continue
        return process.returncode, output, errors
    process.kill()
    process.communicate()
    raise AssertionError("the process ignores interrupts")
