"""A task of the user's own: trained, resumed and analysed from its directory, and never silently
another task than the one that was trained."""

import shutil

import numpy as np
import pytest

from compgen_jax import config as configs
from compgen_jax import settings
from compgen_jax.config import Config, ConfigError, TrainingConfig, changed
from compgen_jax.models.mlp import MLP
from compgen_jax.runs import directory, experiment, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from tests.conftest import OWN_TASK

BASE = Config(
    name="turned",
    model=MLP(depth=2, width=8),
    training=TrainingConfig(steps=6, evaluate_every=3, batch_size=8, seeds=(0, 1)),
)


@pytest.fixture
def config(own_task):
    return changed(BASE, {"task.name": own_task[1]})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run of the task, and the name that its config has it by."""
    path = tmp_path_factory.mktemp("own") / "turned.py"
    path.write_text(OWN_TASK.lstrip())
    workdir, name = tmp_path_factory.mktemp("trained") / "run", f"{path}:Turned"
    experiment.train(changed(BASE, {"task.name": name}), workdir, progress=False)
    return workdir, name


@pytest.fixture
def workdir(trained, own_task, tmp_path):
    """A copy of the finished run, whose task lies in this test's own file."""
    copy = tmp_path / "run"
    shutil.copytree(trained[0], copy)
    text = (copy / "config.json").read_text()
    assert trained[1] in text
    (copy / "config.json").write_text(text.replace(trained[1], own_task[1]))
    return copy


def another_process(path):
    """Forgets the module, as a new process would."""
    import sys

    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == str(path):
            del sys.modules[name]


def rewrite(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new) + "\n# " + "x" * len(text))  # no stale bytecode
    another_process(path)


def test_a_directory_remembers_what_its_task_made(config, workdir):
    summary = directory.read_summary(workdir)
    assert {"id.mse", "ood.mse", "ood.nearest_seen_mse"} <= set(summary["mean"])
    saved = dict(np.load(workdir / "task.npz", allow_pickle=False))
    assert saved["factors.object"].tolist() == [0, 1, 2, 3, 4]
    assert saved["factors.angle"].tolist() == list(range(0, 360, 45))
    assert saved["held_out"].sum() == 2 and saved["inputs.0"].shape == (16, 7)
    assert saved["targets.0"].shape == (16, 12)
    run = Run.load(workdir)
    assert run.config == config and run.task.factors[0].name == "object"
    assert experiment.train(config, workdir, progress=False) == summary


def test_tasks_of_the_package_are_not_remembered(tiny, tmp_path):
    user_code.remember(tmp_path, tiny, tiny.task.make())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("gain * jnp", "gain * 1.5 * jnp", "targets.0"),
        ("jnp.concatenate([label, wave])", "jnp.concatenate([wave, label])", "inputs.0"),
        (">= 292", ">= 250", "held_out"),
        ("360.0, 45.0", "360.0, 40.0", "factors.angle"),
        ('Factor("angle"', 'Factor("turn"', "factors.angle"),
    ],
)
def test_a_file_that_makes_another_task_is_noticed(config, own_task, tmp_path, old, new, what):
    path, name = own_task
    user_code.remember(tmp_path, config, config.task.make())
    rewrite(path, old, new)
    other = changed(config, {"task.name": name})
    with pytest.raises(RunError, match=f"no longer makes the task that was .*{what}"):
        user_code.check(tmp_path, other, other.task.make())


def test_a_run_of_another_task_is_neither_loaded_nor_resumed_in_one_line(config, own_task, workdir):
    path, name = own_task
    kept = (workdir / "task.npz").read_bytes()
    rewrite(path, "gain * jnp", "gain * 1.5 * jnp")
    other = changed(config, {"task.name": name})
    resume = lambda: experiment.train(other, workdir, progress=False)
    for use in (lambda: Run.load(workdir), resume):  # though it is finished
        with pytest.raises(RunError, match=r"^[^\n]*no longer makes the task that was[^\n]*$"):
            use()
    (workdir / "summary.json").unlink()
    with pytest.raises(RunError, match="restore the file, or choose another --workdir"):
        resume()
    assert (workdir / "task.npz").read_bytes() == kept
    rewrite(path, "gain * 1.5 * jnp", "gain * jnp")
    experiment.train(changed(config, {"task.name": name}), workdir, progress=False)
    assert Run.load(workdir).summary


def test_a_comment_and_the_rounding_of_another_version_are_no_change(config, own_task, tmp_path):
    user_code.remember(tmp_path, config, config.task.make())
    rewrite(own_task[0], "A task of two factors", "A task of 2 factors")
    other = changed(config, {"task.name": own_task[1]})
    task = other.task.make()

    def times(factor):
        def example(key, point):
            made = task.example(key, point)
            return made._replace(target=made.target * factor)

        return task._replace(example=example)

    for factor in (1, 1 + 2e-7):
        user_code.check(tmp_path, other, times(factor))
    with pytest.raises(RunError, match="targets.0 differ"):
        user_code.check(tmp_path, other, times(1.01))


def test_a_file_that_is_gone_or_broken_is_one_line_and_can_be_put_back(
    own_task, workdir, tmp_path, monkeypatch
):
    path, _ = own_task
    text = path.read_text()
    path.unlink()
    another_process(path)
    gone = r"^[^\n]*config.json cannot be used: there is no file [^\n]*turned.py; put[^\n]*$"
    with pytest.raises(RunError, match=gone):
        Run.load(workdir)
    path.write_text(text + "\nimport nowhere_to_be_found\n")
    line = len(text.splitlines()) + 2
    broken = rf"^[^\n]*turned.py, line {line}: ModuleNotFoundError[^\n]*$"
    with pytest.raises(RunError, match=broken):
        Run.load(workdir)
    path.unlink()
    (moved := tmp_path / "moved").mkdir()
    (moved / path.name).write_text(text)
    monkeypatch.chdir(moved)
    run = Run.load(workdir)
    assert run.config.task.name == f"{moved / path.name}:Turned"
    assert experiment.train(run.config, workdir, progress=False) == run.summary


def test_a_renamed_file_serves_its_run_by_its_new_name(own_task, workdir):
    path, name = own_task
    path.rename(renamed := path.with_name("spun.py"))
    another_process(path)
    with pytest.raises(RunError, match="or write its new name into this config.json"):
        Run.load(workdir)
    text = (workdir / "config.json").read_text()
    (workdir / "config.json").write_text(text.replace(str(path), str(renamed)))
    run = Run.load(workdir)
    assert run.config.task.name == f"{renamed}:Turned"
    assert experiment.train(run.config, workdir, progress=False) == run.summary


def test_a_name_of_pythons_own_modules_is_one_line(own_task):
    """The file itself, or one that it imports from beside it."""
    path, _ = own_task
    path.rename(wave := path.with_name("wave.py"))
    with pytest.raises(ConfigError, match="wave.py: Python has a module wave of its own, .*rename"):
        settings.load_file(wave)
    other = path.with_name("other.py")
    other.write_text("import json\nfrom wave import Turned\n")
    with pytest.raises(ConfigError, match="line 2: .*; wave.py beside it is hidden by .*: rename"):
        settings.load_file(other)


def test_a_damaged_memory_is_named(config, tmp_path):
    (tmp_path / "task.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(RunError, match=r"task\.npz is damaged"):
        user_code.check(tmp_path, config, config.task.make())


def test_a_class_that_lost_its_name_is_one_line(config, own_task, tmp_path):
    directory.write_json(tmp_path / "config.json", configs.to_dict(config))
    rewrite(own_task[0], "class Turned", "class Rotated")
    with pytest.raises(RunError, match="has no dataclass Turned with a method make"):
        Run.load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("objects: int = number(5, low=2, high=9)", "objects: int", "objects"),
        ("gain: float = number(1.0, above=0)", "gain: list = None", "gain"),
    ],
)
def test_a_field_without_a_default_or_of_another_type_is_one_line(own_task, old, new, field):
    rewrite(own_task[0], old, new)
    with pytest.raises(ConfigError, match=f"its field {field} needs a default, and the type bool"):
        settings.family("task", own_task[1])


def test_settings_of_the_file_are_fields_like_any_other(own_task):
    config = changed(Config(model=MLP()), {"task.name": own_task[1], "task.objects": 3})
    assert len(config.task.make().factors[0].values) == 3
    with pytest.raises(ConfigError, match="config.task.objects=1: must be at least 2"):
        changed(config, {"task.objects": 1})
    assert settings.family("task", own_task[1])().objects == 5
