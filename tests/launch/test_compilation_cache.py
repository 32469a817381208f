"""The cache of compiled programs: the same bits, sooner, and never a word or an error."""

import json
import os
from pathlib import Path

import jax
import pytest

from compgen_jax import compilation_cache
from tests.runs.test_damage import output_of

RUN = """
import hashlib, json, sys
from pathlib import Path
from compgen_jax import compilation_cache
directory = compilation_cache.enable()
import jax
jax.config.update("jax_num_cpu_devices", 2)
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event.split("/")[-1]))
from compgen_jax.training.trials import over_trials

def train(n_steps, weights):
    return jax.lax.fori_loop(0, n_steps, lambda _, w: jax.numpy.tanh(w @ w), weights)

def bits():
    results = over_trials(train)(3, jax.random.normal(jax.random.key(0), (2, 8, 8)))
    return hashlib.sha256(jax.device_get(results).tobytes()).hexdigest()

found = {"bits": [bits()], "directory": directory and str(directory)}
found |= {"hits": events.count("cache_hits"), "misses": events.count("cache_misses")}
if "damage" in sys.argv and directory:  # a kill may leave halves of files
    for path in directory.glob("*-cache"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    jax.clear_caches()
    found["bits"].append(bits())
print(json.dumps(found))
"""


def run(cache: Path, *arguments) -> dict:
    environment = {name: value for name, value in os.environ.items() if name[:4] != "JAX_"}
    environment["COMPGEN_JAX_CACHE"] = str(cache)
    return json.loads(output_of(RUN, *arguments, environment=environment))


@pytest.fixture(autouse=True)
def no_cache_yet():
    """Puts the cache of the tests themselves aside."""
    of_tests = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", of_tests)


def test_a_program_has_the_same_bits_cold_cached_and_damaged(tmp_path):
    """On two devices, as a sharded program is kept as well."""
    cold, cached = run(tmp_path), run(tmp_path, "damage")
    if cold["directory"] is None:
        pytest.skip("jaxlib refuses its own programs on this machine")
    assert Path(cold["directory"]).parent == tmp_path / "compilation"
    assert cached["bits"] == 2 * cold["bits"]
    assert cold["misses"] > 0 and cached["misses"] == 0 and cached["hits"] >= cold["misses"]


@pytest.mark.parametrize(
    ("program", "accepted"),
    [
        ("", True),
        ("import sys; print('E0000 cpu_aot_loader.cc:195] ...', file=sys.stderr)", False),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", False),
        ("import time; time.sleep(9)", None),
    ],
)
def test_a_machine_that_refuses_or_crashes_does_without_and_one_that_is_too_slow_is_asked_again(
    tmp_path, monkeypatch, program, accepted
):
    monkeypatch.setenv("COMPGEN_JAX_CACHE", str(tmp_path))
    monkeypatch.setattr(compilation_cache.sys, "platform", "linux")
    monkeypatch.setattr(compilation_cache, "PROBE", program)
    monkeypatch.setattr(compilation_cache, "PROBE_SECONDS", 9 if accepted is not None else 1)
    assert bool(compilation_cache.enable()) == bool(accepted)
    verdicts = [path.read_text() for path in tmp_path.rglob("accepted")]
    assert verdicts == {True: ["yes\n"], False: ["no\n"], None: []}[accepted]


def test_another_cpu_or_jaxlib_has_another_directory(monkeypatch):
    own = compilation_cache.fingerprint()
    assert compilation_cache.fingerprint() == own
    with monkeypatch.context() as patch:
        patch.setattr(compilation_cache.platform, "processor", lambda: "another")
        assert compilation_cache.fingerprint() != own
    monkeypatch.setattr("jaxlib.__version__", "0.0.1")
    assert compilation_cache.fingerprint() != own


def test_the_oldest_programs_go_first(tmp_path):
    for age, name in enumerate(["a/new-cache", "b/newer-than-old-cache", "a/old-cache"]):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 10)
        os.utime(path, (1000 - age, 1000 - age))
    (tmp_path / "a" / "accepted").write_text("yes\n")
    compilation_cache.prune(tmp_path, 20)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")}
    assert left == {"a/new-cache", "b/newer-than-old-cache", "a/accepted"}
