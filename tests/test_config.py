"""A config is checked as a whole, survives JSON and knows what makes two runs the same; families by
name and in users' own files are loaded once, with errors of one line."""

import json

import pytest

from compgen_jax import config as configs
from compgen_jax import settings
from compgen_jax.config import Config, ConfigError, TrainingConfig
from compgen_jax.models.mlp import MLP
from compgen_jax.presets import PRESETS
from compgen_jax.tasks import task as tasks
from tests.command import refused


def test_every_preset_survives_json():
    for name, preset in PRESETS.items():
        config = configs.from_dict(json.loads(json.dumps(configs.to_dict(preset))))
        assert config == preset and config.name == name


def test_lowrank_preset_shows_and_holds_out_what_the_authors_do():
    task = PRESETS["lowrank"].task.make()
    assert task.examples == 624 and tasks.regions(task)["ood"].sum() == 400


RELEASED = {
    "bump_cnn": "b5218da1", "bump_mlp": "cfab5636", "ramp_mlp": "2a17cc1e", "lowrank": "417989cb",
    "bump_cnn_quick": "fedd401a", "hyperteacher_quick": "1b3fda7a", "data_scaling": "bc545995"
}  # fmt: skip


def test_a_release_does_not_change_the_fingerprints_of_the_last():
    """A preset's settings are those of its paper, and fields added since are at their defaults."""
    assert {name: configs.fingerprint(PRESETS[name]) for name in RELEASED} == RELEASED


def test_another_family_keeps_the_fields_that_both_have():
    config = configs.changed(PRESETS["lowrank"], {"model.name": "mlp"})
    assert config.model == MLP(depth=2, width=2)  # the preset's, not the defaults
    assert config.task == PRESETS["lowrank"].task
    differences = configs.differences(PRESETS["lowrank"], config)
    assert differences["model.dilations"] == ((), configs.ABSENT)
    assert differences["model.name"] == ("lowrank", "mlp") and "name" not in differences
    back = configs.changed(config, {"model.name": "lowrank", "model.dilations": (1, 2)})
    assert (back.model.depth, back.model.width, back.model.dilations) == (2, 2, (1, 2))
    with refused("config.model.dilations: no such field"):
        configs.changed(config, {"model.dilations": ()})


SEARCH = {
    "sweep.search.field": "task.images",
    "sweep.search.start": (10,),
    "sweep.search.scores": ("exact_accuracy",),
}
BAD = [
    ({"model.name": "cnn"}, "config.model.name='cnn': must be one of conv, mlp"),
    ({"task.image.sigma": float("nan")}, "config.task.image.sigma=nan: must be greater than 0"),
    ({"sweep.axes": {"task.grid": (4,)}}, "config.task.grid=4: must be at least 8"),
    ({"sweep.axes": {"task.grid": ()}}, "'task.grid' needs values, each of them once"),
    ({"sweep.axes": {"training.seeds": ((0,),)}}, "='training.seeds': trials cannot differ in it"),
    ({"sweep.axes": (("task.grid", (32,)),) * 2}, "a field is named twice"),
    ({"sweep.search.field": "task.image"}, "is no numeric field"),
    ({"sweep.search.field": "task.code.name"}, "field='task.code.name': is no numeric field"),
    ({"sweep.axes": {"task.images": (10,)}}, "a field is named twice"),
    ({"sweep.search.per": (("cell", 0.25),)}, "must be pairs of a unit's name and its multiples"),
    ({"sweep.search.scores": ()}, "config.sweep.search.scores=(): name one or more"),
]


@pytest.mark.parametrize(("values", "message"), BAD)
def test_a_bad_value_is_one_line(values, message):
    with refused(message, kind=ConfigError):
        configs.changed(PRESETS["lowrank"], SEARCH | values)


def test_a_config_is_checked_when_it_is_read_or_built():
    for values, message in (
        ({"task": 3}, "config.task.name=3: must be one of bump, "),
        ({"training": 3}, "config.training=3: must be a group of fields: epochs, "),
    ):
        with refused(message, kind=ConfigError):
            configs.from_dict(configs.to_dict(Config()) | values)
    with refused("batch_size=0"):
        Config(training=TrainingConfig(batch_size=0))


def test_fingerprint_names_the_result_not_its_execution():
    of = lambda **fields: configs.fingerprint(configs.changed(Config(), fields))
    assert of() == of(**{"execution.chunk_steps": 7}) != of(**{"task.grid": 32})
    other = configs.changed(Config(), {"model.name": "mlp"})
    assert configs.identity(other) == {"config.model.name": "mlp"}


def test_a_field_that_an_older_run_lacks_has_its_default_and_leaves_its_identity():
    config = Config(training=TrainingConfig(weight_decay=0))  # an int for a float
    values = json.loads(json.dumps(configs.to_dict(config)))
    del values["training"]["epochs"], values["task"]["image"]
    older = configs.from_dict(values)
    assert older == config and configs.fingerprint(older) == configs.fingerprint(config)
    assert configs.identity(older) == {"config.training.weight_decay": 0.0}
    values["model"]["initial_weights"] = "flax"
    with refused("config.model.initial_weights: no such field"):
        configs.from_dict(values)


# --- families --------------------------------------------------------------------------------


def test_a_users_file_is_loaded_once_and_survives_json(own_task):
    _, name = own_task
    kind = settings.family("task", name)
    assert kind is settings.family("task", name)  # so that settings of two readings are equal
    config = configs.changed(Config(model=MLP()), {"task.name": name, "task.objects": 4})
    assert config.task == kind(objects=4)
    again = configs.from_dict(json.loads(json.dumps(configs.to_dict(config))))
    assert again == config and type(again.task) is kind


def test_a_file_imports_what_lies_beside_it(own_task):
    path, name = own_task
    (path.parent / "beside_turned.py").write_text("OBJECTS = 7\n")
    text = path.read_text().replace("number(5,", "number(OBJECTS,")
    path.write_text(f"from beside_turned import OBJECTS\n{text}")
    assert settings.family("task", name)().objects == 7


FILES = {
    "syntax": ("import numpy\nclass Turned(\n", ", line 2: SyntaxError: '(' was never closed"),
    "exception": ("def f():\n    return 1 / 0\n\n\nf()\n", ", line 2: ZeroDivisionError: division"),
    "lines": ("raise ValueError('one\\ntwo')\n", ", line 1: ValueError: one"),
    "exit": ("x = 1\nexit()\n", ", line 2: SystemExit: "),
    "missing": ("x = 1\n", "has no dataclass Turned with a method make")
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), FILES.values(), ids=FILES)
def test_a_file_at_fault_is_one_line_with_its_place(tmp_path, text, message):
    path = tmp_path / "turned.py"
    path.write_text(text)
    with refused(str(path), message):
        configs.changed(Config(model=MLP()), {"task.name": f"{path}:Turned"})
