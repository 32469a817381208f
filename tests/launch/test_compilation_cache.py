"""The cache of compiled programs: the same bits, sooner, and never a word or an error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from compgen_jax import compilation_cache

ROOT = Path(__file__).parents[2]

TRAIN = """
import hashlib, json
from launch import compilation_cache
directory = compilation_cache.enable()
import jax
import numpy as np
jax.config.update("jax_num_cpu_devices", 2)
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event.split("/")[-1]))
from compgen_jax.config import Config, changed
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials
config = changed(Config(), {"task.grid": 8, "model.name": "mlp", "model.width": 4,
                            "model.depth": 2, "task.support.low": 3, "task.support.high": 5})
trainer, task = loop.make_trainer(config, trials=2), loop.check(config)
def train(n_steps, key):
    trial = loop.Trial(key, loop.hyper_of(config), loop.source_of(task, key), 0)
    return trainer.advance(trial, trainer.init(key), n_steps)
state, losses = over_trials(train)(np.int32(3), jax.vmap(jax.random.key)(np.arange(2)))
bits = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves((state, losses)))
print(json.dumps({"directory": directory and str(directory), "loss": float(losses[0, 2]),
                  "bits": hashlib.sha256(bits).hexdigest(),
                  "hits": events.count("cache_hits"), "misses": events.count("cache_misses")}))
"""


def train(cache: str) -> dict:
    own = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    process = subprocess.run(
        [sys.executable, "-c", TRAIN], cwd=ROOT, env=own | {"COMPGEN_JAX_CACHE": cache},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert process.returncode == 0 and process.stderr == "", process.stderr
    return json.loads(process.stdout)


@pytest.fixture(autouse=True)
def no_cache_yet():
    """The tests' own is put aside."""
    own = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", own)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where the cache is to be, on a machine that takes no probe to judge."""
    monkeypatch.setenv("COMPGEN_JAX_CACHE", str(tmp_path / "place"))
    monkeypatch.setattr(compilation_cache.sys, "platform", "linux")
    monkeypatch.setattr(compilation_cache, "_probe", lambda: pytest.fail("was probed"))
    return tmp_path / "place"


def test_training_has_the_same_bits_cold_cached_and_without(tmp_path):
    """On two devices, as a pmapped program is kept as well. A kill may leave halves of files."""
    cold, cached, without = train(str(tmp_path)), train(str(tmp_path)), train("off")
    assert cold["bits"] == cached["bits"] == without["bits"] and cold["loss"] > 0
    assert without["directory"] is None and without["hits"] == without["misses"] == 0
    if cold["directory"] is None:
        pytest.skip("jaxlib refuses its own programs on this machine")
    assert Path(cold["directory"]).parent == tmp_path / "compilation"
    assert cold["misses"] > 0 and cached["misses"] == 0 and cached["hits"] >= cold["misses"]
    for path in Path(cold["directory"]).glob("*-cache"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert train(str(tmp_path))["bits"] == cold["bits"]


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
    ],
)
def test_a_machine_that_refuses_complains_or_crashes_does_without(monkeypatch, program, accepted):
    monkeypatch.setattr(compilation_cache, "PROBE", program)
    assert compilation_cache._probe() is accepted


@pytest.mark.parametrize(
    "program",
    ["import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "import sys; sys.exit(3)"],
)
def test_a_probe_that_was_killed_or_had_no_room_is_no_answer(tmp_path, monkeypatch, program):
    place = tmp_path / "place"
    monkeypatch.setenv("COMPGEN_JAX_CACHE", str(place))
    monkeypatch.setattr(compilation_cache.sys, "platform", "linux")
    monkeypatch.setattr(compilation_cache, "PROBE", program)
    assert compilation_cache.enable() is None
    assert not list(place.rglob("accepted"))


def test_a_place_that_cannot_be_is_no_error(place):
    place.write_text("a file")
    assert compilation_cache.enable() is None


def test_the_users_own_cache_is_left_alone(place, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    assert compilation_cache.enable() is None
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "own")
    assert not place.exists()


def test_it_is_off_where_loading_crashes(place, monkeypatch):
    monkeypatch.setattr(compilation_cache.sys, "platform", "darwin")
    assert compilation_cache.enable() is None and not place.exists()


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
