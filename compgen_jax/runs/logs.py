"""What a training says while it goes on: a progress bar, DIR/train.log."""

import contextlib
import os
import platform
import shlex
import sys
import time
from pathlib import Path

import jax
from tqdm import tqdm

import compgen_jax
from compgen_jax.config import Config, fingerprint
from compgen_jax.training.checkpoints import RunError


class Bar(tqdm):
    """A progress bar, drawn often where somebody looks at it: elsewhere each update is a line."""

    def __init__(self, **settings):
        in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
        seconds = 0.5 if in_notebook or sys.stderr.isatty() else 20
        super().__init__(mininterval=seconds, dynamic_ncols=True, **settings)

    def say(self, text: str):
        """Shows what is being done."""
        self.set_postfix_str(text, refresh=not self.disable and self.mininterval < 1)


def environment() -> dict:
    """The machine: for the reader of a directory, not part of its run's identity."""
    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "device": jax.local_devices()[0].device_kind,
        "device_count": jax.local_device_count(),
        "cpu_count": os.cpu_count(),
    }


def begin(workdir: Path, config: Config):
    """Appends the command, the config's fingerprint, the versions and the devices."""
    write(workdir, shlex.join(["python", *sys.orig_argv[1:]]))
    facts = ", ".join(f"{name} {value}" for name, value in environment().items())
    write(workdir, f"config {fingerprint(config)}, compgen_jax {compgen_jax.__version__}, {facts}")


def write(workdir: Path, line: str):
    """Appends one line with its time."""
    with contextlib.suppress(OSError), open(workdir / "train.log", "a") as file:
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")


@contextlib.contextmanager
def outcome(workdir: Path):
    """Appends how the work inside ended, if there is a log."""
    how = "ended"
    try:
        yield
    except BaseException as error:
        how = f"{type(error).__name__}: {str(error).partition(os.linesep)[0]}".removesuffix(": ")
        raise
    finally:
        if (workdir / "train.log").exists():
            write(workdir, how)


@contextlib.contextmanager
def memory_explained(advice: str):
    """Raises RunError if memory runs out inside, where results must be fetched too."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
            raise RunError(f"out of memory: {advice}") from error
        raise
