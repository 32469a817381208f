"""Strict settings for every test, two virtual CPU devices, and quick compiling: tests compile far
more than they compute."""

import gc
import os
import shutil
import signal
import tempfile

import chex
import jax
import pytest

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.models.mlp import MLP
from compgen_jax.runs import study
from compgen_jax.runs.run import Run
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.training import trials

chex.set_n_cpu_devices(2)
jax.config.update("jax_numpy_rank_promotion", "raise")
gc.set_threshold(100_000, 20, 50)  # tracing makes many objects, of which few are cyclic garbage
# little work for the compiler here; the command lines' processes run what users run
jax.config.update("jax_disable_most_optimizations", True)
trials.LITTLE_EFFORT = None  # which is more than that, and would give other bits
# small programs then compile in a third of the time, and large ones in half of it; two compilations
# of one step once differed in their last bits with 0.11, when they were not yet in one piece
with pytest.MonkeyPatch.context() as patch:
    emitters = "--xla_backend_extra_options=xla_cpu_disable_new_fusion_emitters"
    options = f"{emitters} --xla_cpu_parallel_codegen_split_count=1"
    patch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} {options}")
    jax.devices()  # reads it

# the files that take longest, in this order
LONGEST = ("test_sweep_processes", "test_sweeps", "test_command_lines", "test_measure",
           "test_own_task", "test_directory", "test_together", "test_loop", "test_pages",
           "test_padding", "test_make")  # fmt: skip
PROGRAMS = "COMPGEN_JAX_TEST_PROGRAMS"  # a directory of all workers, for this run of the tests


def pytest_configure(config):
    """What one test has compiled another loads, in this process or in a command line's. These heed
    an interrupt also where the tests run in the background of a shell, which has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        directory = tempfile.TemporaryDirectory()
        config.add_cleanup(directory.cleanup)
        os.environ[PROGRAMS] = directory.name
        os.environ["COMPGEN_JAX_CACHE"] = os.path.join(directory.name, "of_command_lines")
    jax.config.update("jax_compilation_cache_dir", os.environ[PROGRAMS])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


def pytest_collection_modifyitems(items):
    """The longest files first, so that no worker is left with one at the end."""
    order = {stem: place for place, stem in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """The programs of 60 files would take 5 GB, and more mappings of memory than Linux gives."""
    yield
    jax.clear_caches()


@pytest.fixture
def numpy_rules():
    """What lies outside the package broadcasts as NumPy does."""
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture(scope="session")
def tiny() -> Config:
    """A run of a second: grid 8, an MLP (convolutions take twice as long to compile), 12 steps for
    2 seeds."""
    return Config(
        name="tiny",
        task=Bump(grid=8, support=SupportConfig(region="donut", low=3, high=5, samples=60)),
        model=MLP(depth=3, width=8),
        training=TrainingConfig(epochs=6, batch_size=32, seeds=(0, 7), evaluate_every=2),
    )


@pytest.fixture(scope="session")
def tiny_run(tiny, tmp_path_factory):
    """(directory, summary) of the finished tiny run, for tests that only read it."""
    workdir = tmp_path_factory.mktemp("tiny") / "run"
    return workdir, study.train(tiny, workdir, progress=False)


@pytest.fixture(scope="session")
def run(tiny_run):
    """The finished tiny run, loaded once."""
    return Run.load(tiny_run[0])


@pytest.fixture
def copy(tiny_run, tmp_path):
    """The directory of the finished tiny run, for tests that change its files."""
    return shutil.copytree(tiny_run[0], tmp_path / "copy")


OWN_TASK = '''
"""A task of two factors: an object, which is a label, and an angle; the target is a vector."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import Family, number
from compgen_jax.tasks.task import Example, Factor, Task, over_cells


@dataclass(frozen=True)
class Turned(Family):
    objects: int = number(5, low=2, high=9)
    gain: float = number(1.0, above=0)

    def make(self) -> Task:
        objects = Factor("object", np.arange(self.objects), real=False)
        angle = Factor("angle", np.arange(0.0, 360.0, 45.0), period=360.0)

        def held_out(points):
            return (points[..., 0] >= self.objects - 2) & (points[..., 1] % 360 >= 292)

        def example(key, point):
            label = (jnp.arange(self.objects) == point[0]).astype(jnp.float32)
            turn = point[1] * jnp.pi / 180
            wave = jnp.stack([jnp.cos(turn), jnp.sin(turn)])
            target = self.gain * jnp.concatenate([label * wave[0], label * wave[1], wave])
            return Example(jnp.concatenate([label, wave]), target)

        return over_cells((objects, angle), held_out, example)
'''


@pytest.fixture
def own_task(tmp_path):
    """The file of a task of a user's own, and its name as config.task.name has it."""
    path = tmp_path / "own" / "turned.py"
    path.parent.mkdir()
    path.write_text(OWN_TASK.lstrip())
    return path, f"{path}:Turned"
