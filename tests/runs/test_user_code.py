"""A task of the user's own: trained, resumed and analysed from its directory, and never silently
another task than the one that was trained."""

import os
import sys
from pathlib import Path

import jax
import pytest

from compgen_jax import cli, settings
from compgen_jax.config import Config, ConfigError, TrainingConfig, changed
from compgen_jax.models.mlp import MLP
from compgen_jax.runs import directory, study, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from tests.command import refused
from tests.command import run as command

BASE = Config(
    name="turned",
    model=MLP(depth=2, width=8),
    training=TrainingConfig(steps=6, evaluate_every=3, batch_size=8, seeds=(0, 1)),
)


@pytest.fixture
def config(own_task):
    return changed(BASE, {"task.name": own_task[1]})


@pytest.fixture
def workdir(config, tmp_path):
    """A finished run of the task."""
    study.train(config, tmp_path / "run")
    return tmp_path / "run"


def another_process(path):
    """Forgets the module, as a new process would."""
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == str(path):
            del sys.modules[name]


def rewrite(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new) + "\n# " + "x" * len(text))  # no stale bytecode
    another_process(path)


def test_a_file_that_a_directory_names_is_announced_and_one_of_another_user_is_refused(
    own_task, workdir, monkeypatch, capsys
):
    path, _ = own_task

    def load(flag=""):
        settings.LOADED.discard(str(path))
        another_process(path)
        capsys.readouterr()
        main = lambda: Run.load(workdir, with_networks=False)
        loaded = command(f"compgen-jax judge {flag}", main)
        return loaded.config.task.objects, capsys.readouterr().err

    note = f"note: {workdir}/config.json imports '{path}'\n"
    assert load() == (5, note)
    assert Run.load(workdir).config.task.objects == 5 and not capsys.readouterr().err  # once
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    text = path.read_text()
    path.write_text(f"raise ValueError('imported')\n{text}")
    with refused(f"{workdir}/config.json imports '{path}' and is another user's; ", "--trust"):
        load()
    path.write_text(text)
    assert load("--trust") == (5, note)
    monkeypatch.delattr(os, "getuid")  # as on Windows
    assert load() == (5, note)


def test_a_file_that_makes_another_task_is_noticed(config, own_task, tmp_path):
    path, name = own_task
    directory.begin(tmp_path, config, user_code.check(tmp_path, config, config.task.make()))
    for old, new, what in (
        ("jnp.concatenate([label, wave])", "jnp.concatenate([wave, label])", "inputs.0"),
        (">= 292", ">= 250", "held_out"),
        ("360.0, 45.0", "360.0, 40.0", "factors.angle"),
    ):
        rewrite(path, old, new)
        other = changed(config, {"task.name": name})
        with pytest.raises(RunError, match=f"no longer makes the task that was .*{what}"):
            user_code.check(tmp_path, other, other.task.make())
        rewrite(path, new, old)


def test_a_run_of_another_task_is_neither_loaded_nor_resumed_in_one_line(config, own_task, workdir):
    path, name = own_task
    kept = (workdir / "task.npz").read_bytes()
    rewrite(path, "gain * jnp", "gain * 1.5 * jnp")
    other = changed(config, {"task.name": name})
    with pytest.raises(RunError, match=r"^[^\n]*no longer makes the task that was[^\n]*$"):
        Run.load(workdir)
    with pytest.raises(RunError, match="restore the file, or choose another --workdir"):
        study.train(other, workdir)  # though it is finished
    assert (workdir / "task.npz").read_bytes() == kept
    rewrite(path, "gain * 1.5 * jnp", "gain * jnp")
    study.train(changed(config, {"task.name": name}), workdir)
    assert Run.load(workdir).summary


def test_a_file_that_makes_another_model_is_noticed(tmp_path):
    path = tmp_path / "own_sums.py"
    path.write_text((Path(__file__).parents[1] / "own_addition.py").read_text())
    config = changed(cli.load_config(f"{path}:own"), {"training.seeds": (0,)})
    study.train(config, tmp_path / "run")
    rewrite(path, "nn.relu", "nn.tanh")
    with pytest.raises(RunError, match=r"^[^\n]*TwoTowers no longer makes the model that"):
        Run.load(tmp_path / "run")
    rewrite(path, "nn.tanh", "nn.relu")
    assert Run.load(tmp_path / "run").summary  # though it has another comment


def test_the_rounding_of_another_version_is_no_change(config, tmp_path):
    task = config.task.make()
    directory.begin(tmp_path, config, user_code.check(tmp_path, config, task))

    def times(factor):
        made = lambda *at: jax.tree.map(lambda leaf: leaf * factor, task.example(*at))
        return task._replace(example=made)

    user_code.check(tmp_path, config, times(1 + 2e-7))
    with pytest.raises(RunError, match="differ"):
        user_code.check(tmp_path, config, times(1.01))


def test_a_file_that_is_gone_or_broken_is_one_line_and_can_be_put_back(
    own_task, workdir, tmp_path, monkeypatch
):
    path, _ = own_task
    text = path.read_text()
    path.unlink()
    another_process(path)
    gone = r"^[^\n]*config.json cannot be used: config.task.name='[^\n]*': "
    gone += r"there is no file [^\n]*turned.py[^\n]*$"
    with pytest.raises(RunError, match=gone):
        Run.load(workdir)
    (moved := tmp_path / "moved").mkdir()
    (moved / path.name).write_text(text)
    monkeypatch.chdir(moved)
    run = Run.load(workdir)
    assert run.config.task.name == f"{moved / path.name}:Turned"
    assert study.train(run.config, workdir) == run.summary


def test_a_name_of_pythons_own_modules_is_one_line(own_task):
    path, _ = own_task
    path.rename(wave := path.with_name("wave.py"))
    with pytest.raises(ConfigError, match="wave.py: Python has a module wave of its own, .*rename"):
        settings.load_file(wave)
