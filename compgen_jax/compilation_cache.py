"""Compiled programs kept on disk between runs, by jax's persistent compilation cache.

They lie in ~/.cache/compgen_jax/compilation (or under XDG_CACHE_HOME). COMPGEN_JAX_CACHE=DIR moves
them, COMPGEN_JAX_CACHE=off does without; JAX_COMPILATION_CACHE_DIR wins.
"""

import contextlib
import hashlib
import os
import platform
import subprocess
import sys
import warnings
from pathlib import Path

MOST_BYTES = 2**30  # of all directories together; the oldest programs go first
PROBE_SECONDS = 120
PROBE = """
import sys, jax
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
for _ in range(2):
    jax.jit(lambda x: (x @ x)[::2].sum())(jax.numpy.ones((8, 8))).block_until_ready()
    jax.clear_caches()
"""


def enable() -> Path | None:
    """Makes jax keep what it compiles from now on; the directory, or None where it does not. Never
    fails."""
    import jax

    chosen = os.environ.get("COMPGEN_JAX_CACHE")
    theirs = jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache
    # On macOS the loading of a large program overflows the stack of an LLVM thread, and the
    # process dies: see https://github.com/uwplasma/vmex/pull/142, of jaxlib 0.9.
    if chosen == "off" or theirs or sys.platform == "darwin":
        return None
    base = chosen or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/compgen_jax"
    base = Path(os.path.expanduser(base))
    # a user without a home has a relative one, and the XDG specification ignores those
    if not (chosen or base.is_absolute()):
        return None
    root = base.absolute() / "compilation"
    directory = root / fingerprint()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK):
            return None
        # Whether jaxlib loads here what it stored here, found out once in another process: on some
        # Intel CPUs it refuses all its entries (https://github.com/jax-ml/jax/issues/38445).
        verdict = directory / "accepted"
        if not verdict.exists():
            command = [sys.executable, "-W", "ignore", "-c", PROBE, str(directory)]
            environment = os.environ | {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "1"}
            process = subprocess.run(
                command, env=environment, capture_output=True, timeout=PROBE_SECONDS
            )
            verdict.write_text("no\n" if process.returncode or process.stderr else "yes\n")
        if verdict.read_text() != "yes\n":
            return None
        prune(root, MOST_BYTES)
    except (OSError, subprocess.TimeoutExpired):
        return None
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    return directory


def fingerprint() -> str:
    """A name for this jaxlib on this kind of CPU: a program of another may not run here."""
    import jaxlib

    info, cpu = Path("/proc/cpuinfo"), {platform.processor()}
    if info.exists():
        names = "vendor_id", "model", "stepping", "flags", "Features", "CPU "  # on x86 and ARM
        cpu |= {line for line in info.read_text().splitlines() if line.startswith(names)}
    digest = hashlib.sha256("\n".join(sorted(cpu)).encode()).hexdigest()[:16]
    return f"jaxlib-{jaxlib.__version__}-{sys.platform}-{platform.machine()}-{digest}"


def prune(root: Path, most_bytes: int):
    """Removes the oldest programs below `root` until the others have `most_bytes` or less."""
    total = 0
    with contextlib.suppress(FileNotFoundError):  # another process prunes as well
        for path in sorted(root.glob("*/*-cache"), key=os.path.getmtime, reverse=True):
            total += path.stat().st_size
            if total > most_bytes:
                path.unlink()
