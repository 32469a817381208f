"""DIR/train.log: what was run in a directory, and how it went; plain text for its reader.

    2026-11-23 06:40:01 python -m launch.train --config=bump_cnn_quick --workdir=runs/one
    2026-11-23 06:40:01 config fedd401a, compgen_jax 0.3.0, python 3.11.9, jax 0.10.2, 2 cpu
    2026-11-23 06:40:09 step 100: loss 1.2e-03, exact ID 0.93 OOD 0.08
    2026-11-23 06:41:00 ended after 59.1 s

Each start appends its lines. A log that cannot be written stops no run.
"""

import contextlib
import shlex
import sys
import time
from pathlib import Path

import compgen_jax
from compgen_jax.config import Config, fingerprint
from compgen_jax.runs import environment

NAME = "train.log"


def begin(workdir: Path, config: Config):
    """Appends the command, the config's fingerprint, the versions and the devices."""
    write(workdir, shlex.join(["python", *sys.orig_argv[1:]]))
    this = environment.describe()
    write(
        workdir,
        f"config {fingerprint(config)}, compgen_jax {compgen_jax.__version__}, python "
        f"{this['python']}, jax {this['jax']}, {this['device_count']} {this['device']}",
    )


def write(workdir: Path, line: str):
    """Appends one line with its time."""
    with contextlib.suppress(OSError), open(workdir / NAME, "a") as file:
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")


@contextlib.contextmanager
def outcome(workdir: Path):
    """Appends how the work inside ended, with its seconds, if the work has logged anything."""
    path, start = workdir / NAME, time.perf_counter()
    size = lambda: path.stat().st_size if path.exists() else 0
    before, how = size(), "ended"
    try:
        yield
    except BaseException as error:
        first_line = (str(error).splitlines() or [""])[0]
        how = f"{type(error).__name__}: {first_line}".removesuffix(": ")
        raise
    finally:
        if size() > before:
            write(workdir, f"{how} after {time.perf_counter() - start:.1f} s")
