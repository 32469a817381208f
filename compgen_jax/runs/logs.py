"""What a training says while it goes on: a progress bar, DIR/train.log, curves for TensorBoard, and
one line for memory that runs out. A log that cannot be written stops no run.
"""

import contextlib
import math
import os
import platform
import re
import shlex
import sys
import time
from pathlib import Path

import jax
from tqdm import tqdm

import compgen_jax
from compgen_jax.config import Config, fingerprint
from compgen_jax.training.checkpoints import RunError

# "Out of memory allocating 123 bytes" of XLA on a CPU, "while trying to allocate 51.20GiB" on a
# GPU, "Unable to allocate 128. GiB" of NumPy
ALLOCATION = re.compile(r"\ballocat(?:e|ing) (\d+\.?\d*) ?(bytes|KiB|MiB|GiB|TiB)\b")
BYTES = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


class Bar(tqdm):
    """A progress bar, drawn often where somebody looks at it: elsewhere each update is a line."""

    def __init__(self, **settings):
        in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
        seconds = 0.5 if in_notebook or sys.stderr.isatty() else 20
        super().__init__(mininterval=seconds, dynamic_ncols=True, **settings)

    def say(self, text: str):
        """Shows what is being done."""
        self.set_postfix_str(text, refresh=not self.disable and self.mininterval < 1)


# --- train.log -------------------------------------------------------------------------------


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
    this = environment()
    write(
        workdir,
        f"config {fingerprint(config)}, compgen_jax {compgen_jax.__version__}, python "
        f"{this['python']}, jax {this['jax']}, {this['device_count']} {this['device']}",
    )


def write(workdir: Path, line: str):
    """Appends one line with its time."""
    with contextlib.suppress(OSError), open(workdir / "train.log", "a") as file:
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")


@contextlib.contextmanager
def outcome(workdir: Path):
    """Appends how the work inside ended, with its seconds, if the work has logged anything."""
    path, start = workdir / "train.log", time.perf_counter()
    size = path.stat().st_size if path.exists() else 0
    how = "ended"
    try:
        yield
    except BaseException as error:
        first_line = (str(error).splitlines() or [""])[0]
        how = f"{type(error).__name__}: {first_line}".removesuffix(": ")
        raise
    finally:
        if path.exists() and path.stat().st_size > size:
            write(workdir, f"{how} after {time.perf_counter() - start:.1f} s")


# --- TensorBoard -----------------------------------------------------------------------------


@contextlib.contextmanager
def tensorboard(workdirs):
    """Gives write(workdir, rows), which adds rows of metrics to WORKDIR/tensorboard/seed_SEED, if
    the directory is among `workdirs`."""
    writers = {}

    def write_rows(workdir: Path, rows: list[dict]):
        for row in rows if workdir in workdirs else ():
            folder = workdir / "tensorboard" / f"seed_{row['seed']}"
            if folder not in writers:
                from tensorboardX import SummaryWriter  # an extra

                writers[folder] = stack.enter_context(SummaryWriter(str(folder)))
            for name, value in row.items():
                is_metric = name not in ("step", "epoch", "seed")
                if is_metric and value is not None and math.isfinite(value):
                    writers[folder].add_scalar(name.replace(".", "/"), value, row["step"])
            writers[folder].flush()

    with contextlib.ExitStack() as stack:
        yield write_rows


# --- memory ----------------------------------------------------------------------------------


@contextlib.contextmanager
def memory_explained(advice: str):
    """Raises RunError, one line that ends in `advice`, if memory runs out inside, where results
    must be fetched too."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        size, needed = ALLOCATION.search(str(error)), ""
        if size:
            needed = f" (asked for {float(size[1]) * BYTES[size[2]] / 2**30:.3g} GiB)"
        raise RunError(f"out of memory{needed}: {advice}") from error
