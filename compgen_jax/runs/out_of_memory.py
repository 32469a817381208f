"""One-line errors for memory that runs out."""

import contextlib
import re

import jax

from compgen_jax.runs.directory import RunError

# "Out of memory allocating 123 bytes" of XLA on a CPU, "while trying to allocate 51.20GiB" on a
# GPU, "Unable to allocate 128. GiB" of NumPy
ASKED = re.compile(r"\ballocat(?:e|ing) (\d+\.?\d*) ?(bytes|KiB|MiB|GiB|TiB)\b")
BYTES = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@contextlib.contextmanager
def explained(advice: str):
    """Raises RunError, one line that ends in `advice`, if a device or NumPy runs out of memory
    inside; other errors are left alone.

    Devices compute while Python goes on, so results must be fetched inside as well.
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        size, asked = ASKED.search(str(error)), ""
        if size:
            asked = f" (asked for {float(size[1]) * BYTES[size[2]] / 2**30:.3g} GiB)"
        raise RunError(f"out of memory{asked}: {advice}") from error
