"""The cache of compiled programs: the same bits, sooner, and never a word or an error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from compgen_jax import compilation_cache

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

def train(n_steps, key):
    x = jax.random.normal(key, (16, 8))
    loss = lambda w: jax.numpy.mean((jax.numpy.tanh(x @ w) - x) ** 2)
    step = lambda _, w: w - 0.1 * jax.grad(loss)(w)
    return jax.lax.fori_loop(0, n_steps, step, jax.random.normal(key, (8, 8)))

def bits():
    keys = jax.vmap(jax.random.key)(jax.numpy.arange(2))
    return hashlib.sha256(jax.device_get(over_trials(train)(3, keys)).tobytes()).hexdigest()

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
    process = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], cwd=Path(__file__).parents[2],
        env=environment | {"COMPGEN_JAX_CACHE": str(cache)}, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert process.returncode == 0 and process.stderr == "", process.stderr
    return json.loads(process.stdout)


@pytest.fixture(autouse=True)
def no_cache_yet():
    """Puts the cache of the tests themselves aside."""
    of_tests = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", of_tests)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where the cache will lie, with a probe that must not run."""
    monkeypatch.setenv("COMPGEN_JAX_CACHE", str(tmp_path / "place"))
    monkeypatch.setattr(compilation_cache.sys, "platform", "linux")
    monkeypatch.setattr(compilation_cache, "_probe", lambda: pytest.fail("was probed"))
    return tmp_path / "place"


def test_a_program_has_the_same_bits_cold_cached_and_damaged(tmp_path):
    """On two devices, as a pmapped program is kept as well."""
    cold, cached = run(tmp_path), run(tmp_path, "damage")
    if cold["directory"] is None:
        pytest.skip("jaxlib refuses its own programs on this machine")
    assert Path(cold["directory"]).parent == tmp_path / "compilation"
    assert cached["bits"] == 2 * cold["bits"]
    assert cold["misses"] > 0 and cached["misses"] == 0 and cached["hits"] >= cold["misses"]


def test_the_machine_is_asked_once_whether_it_takes_its_own_programs(place, monkeypatch):
    answers = [False]
    monkeypatch.setattr(compilation_cache, "_probe", answers.pop)
    assert compilation_cache.enable() is None
    assert compilation_cache.enable() is None and answers == []
    assert jax.config.jax_compilation_cache_dir is None


@pytest.mark.parametrize(
    ("program", "accepted"),
    [
        ("", True),
        ("import sys; print('E0000 cpu_aot_loader.cc:195] ...', file=sys.stderr)", False),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", False),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", None),  # out of memory, say
        ("import sys; sys.exit(3)", None),  # it had no room, say
    ],
)
def test_a_machine_that_refuses_or_crashes_does_without_and_one_that_cannot_tell_is_asked_again(
    tmp_path, monkeypatch, program, accepted
):
    monkeypatch.setenv("COMPGEN_JAX_CACHE", str(tmp_path))
    monkeypatch.setattr(compilation_cache.sys, "platform", "linux")
    monkeypatch.setattr(compilation_cache, "PROBE", program)
    assert bool(compilation_cache.enable()) == bool(accepted)
    verdicts = [path.read_text() for path in tmp_path.rglob("accepted")]
    assert verdicts == {True: ["yes\n"], False: ["no\n"], None: []}[accepted]


def test_where_it_cannot_be_or_is_not_wanted_it_is_off(place, monkeypatch):
    jax.config.update("jax_compilation_cache_dir", "own")  # the user's, which stays
    assert compilation_cache.enable() is None
    assert jax.config.jax_compilation_cache_dir == "own"
    jax.config.update("jax_compilation_cache_dir", None)
    with monkeypatch.context() as patch:  # where loading crashes
        patch.setattr(compilation_cache.sys, "platform", "darwin")
        assert compilation_cache.enable() is None and not place.exists()
    place.write_text("a file")
    assert compilation_cache.enable() is None


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"COMPGEN_JAX_CACHE": "off"}, None),
        ({"COMPGEN_JAX_CACHE": "/fast"}, "/fast/compilation"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/compgen_jax/compilation"),
        ({"XDG_CACHE_HOME": "relative"}, None),
        ({"HOME": "/home/me"}, "/home/me/.cache/compgen_jax/compilation"),
    ],
)
def test_where_it_lies(monkeypatch, variables, expected):
    for name in ("COMPGEN_JAX_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert compilation_cache._root() == (expected and Path(expected))


def test_another_cpu_or_jaxlib_has_another_directory(monkeypatch):
    own = compilation_cache.fingerprint()
    assert compilation_cache.fingerprint() == own
    with monkeypatch.context() as patch:
        patch.setattr(compilation_cache, "_cpu", lambda: ["flags : sse2"])
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
