"""Compiled programs kept on disk between runs, by jax's persistent compilation cache.

They lie in ~/.cache/compgen_jax/compilation (or under XDG_CACHE_HOME), in a directory for each
jaxlib and kind of CPU. COMPGEN_JAX_CACHE=DIR moves them, COMPGEN_JAX_CACHE=off does without; who
has set jax's own cache (JAX_COMPILATION_CACHE_DIR) keeps it. No number depends on any of it.
"""

import contextlib
import hashlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

VARIABLE = "COMPGEN_JAX_CACHE"
MOST_BYTES = 2**30  # of all directories together; the oldest programs go first
PROBE_SECONDS = 120
# of /proc/cpuinfo, on x86 and ARM: what machine code depends on
CPU_LINES = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features",
             "CPU implementer", "CPU architecture", "CPU variant", "CPU part")  # fmt: skip

# Compiles a program, forgets it and loads it: the cache is of use where jax counts a hit, and
# may be used where nothing is said about it. A refusal is said; no hit alone has other reasons.
NO_HIT = 3
PROBE = """
import sys, jax
hits = []
jax.monitoring.register_event_listener(
    lambda event, **_: hits.append(event) if event.endswith("/cache_hits") else None)
use = {"compilation_cache_dir": sys.argv[1], "persistent_cache_min_compile_time_secs": 0,
       "persistent_cache_min_entry_size_bytes": -1}
for name, value in use.items():
    jax.config.update("jax_" + name, value)
for _ in range(2):
    jax.jit(lambda x: (x @ x)[::2].sum())(jax.numpy.ones((8, 8))).block_until_ready()
    jax.clear_caches()
sys.exit(0 if hits else int(sys.argv[2]))
"""


def enable() -> Path | None:
    """Makes jax keep what it compiles from now on; the directory, None where it does not.

    To be called before anything is compiled; starts no device. Never fails and says nothing: a
    place that cannot be written, or is full, costs the gain and no more.
    """
    import jax

    root = folder("compilation")
    theirs = jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache
    # On macOS the loading of a large program overflows the stack of an LLVM thread, and the
    # process dies: see https://github.com/uwplasma/vmex/pull/142, of jaxlib 0.9.
    if root is None or theirs or sys.platform == "darwin":
        return None
    directory = root / fingerprint()
    with contextlib.suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK) or not _accepts(directory):
            return None
        prune(root, MOST_BYTES)
        jax.config.update("jax_compilation_cache_dir", str(directory))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        about = "Error (reading|writing) persistent compilation cache entry"
        warnings.filterwarnings("ignore", message=about)
        return directory
    return None


def fingerprint() -> str:
    """A name for this jaxlib on this kind of CPU: a program of another may not run here."""
    import jaxlib

    cpu = "\n".join([sys.platform, platform.machine(), *_cpu()])
    digest = hashlib.sha256(cpu.encode()).hexdigest()[:16]
    return f"jaxlib-{jaxlib.__version__}-{platform.machine()}-{digest}"


def prune(root: Path, most_bytes: int):
    """Removes the oldest programs below `root` until the others have `most_bytes` or less."""
    programs, kept = [], 0
    for path in root.glob("*/*-cache"):
        with contextlib.suppress(FileNotFoundError):  # another process prunes as well
            programs.append((path.stat().st_mtime_ns, path.stat().st_size, path))
    for _, size, path in sorted(programs, reverse=True):
        kept += size
        if kept > most_bytes:
            path.unlink(missing_ok=True)


def folder(name: str) -> Path | None:
    """Where files of one kind are kept between runs; None where the user wants none, or has no
    home."""
    wanted = os.environ.get(VARIABLE)
    if wanted == "off":
        return None
    if wanted:
        return Path(wanted).expanduser().absolute() / name
    base = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    # a user without a home has a relative one, and the XDG specification ignores those
    return base / "compgen_jax" / name if base.is_absolute() else None


def _cpu() -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return [platform.processor()]
    return sorted({line for line in lines if line.partition(":")[0].strip() in CPU_LINES})


def _accepts(directory: Path) -> bool:
    """Whether jaxlib loads here what it stored here: found out once, and remembered there.

    On some Intel CPUs it takes hints for its own code generator for features that the CPU lacks,
    refuses all its entries and says so, in many lines, on stderr:
    https://github.com/jax-ml/jax/issues/38445.
    """
    verdict = directory / "accepted"
    if not verdict.exists():
        temporary = directory / f".accepted.{os.getpid()}.tmp"
        temporary.write_text("yes\n" if _probe() else "no\n")
        os.replace(temporary, verdict)
    return verdict.read_text() == "yes\n"


def _probe() -> bool:
    """In a process of its own, as this one may not start jax's devices yet, and what C++ says is
    not to be seen. Raises TimeoutError where the process could not tell: it was too slow, or
    killed, or had no room to write in."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "1"}
    with tempfile.TemporaryDirectory() as directory:
        try:
            found = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", PROBE, directory, str(NO_HIT)],
                env=environment, capture_output=True, timeout=PROBE_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise TimeoutError from error
    if found.returncode in (NO_HIT, -signal.SIGKILL) and not found.stderr:
        raise TimeoutError
    return found.returncode == 0 and not found.stderr
