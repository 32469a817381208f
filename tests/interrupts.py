"""Ctrl-C, as a user presses it."""

import signal
import subprocess


def interrupt(process, again=10, tries=6):
    """(status, output, errors) of a process that is interrupted, and once more every `again`
    seconds: Python drops an interrupt that hits it inside a finalizer or a callback."""
    for _ in range(tries):
        process.send_signal(signal.SIGINT)
        try:
            output, errors = process.communicate(timeout=again)
        except subprocess.TimeoutExpired:
            continue
        return process.returncode, output, errors
    process.kill()
    process.communicate()
    raise AssertionError("the process does not heed an interrupt")
