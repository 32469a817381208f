"""A config is checked as a whole, survives JSON and knows what makes two runs the same."""

import json

import pytest

from compgen_jax import config as configs
from compgen_jax.config import Config, ConfigError, SweepConfig, TrainingConfig
from compgen_jax.models.mlp import MLP
from compgen_jax.papers.presets import PRESETS
from compgen_jax.tasks import supports
from compgen_jax.tasks.bump import Bump, support
from tests.command import refused

PAPER = (
    "bump_cnn", "ramp_cnn", "onehot_cnn", "positional_cnn", "bump_mlp", "ramp_mlp", "lowrank",
    "stripes", "stripes_bumps", "pixelwise", "data_scaling", "holdout_map", "hyperteacher",
)  # fmt: skip


def test_every_preset_survives_json():
    assert {f"{name}{scale}" for name in PAPER for scale in ("", "_quick")} <= set(PRESETS)
    for name, preset in PRESETS.items():
        config = configs.from_dict(json.loads(json.dumps(configs.to_dict(preset))))
        assert config == preset and config.name == name
    sweeps = ("data_scaling", "holdout_map", "hyperteacher")
    assert all(PRESETS[name].is_sweep == (name in sweeps) for name in PAPER)


def test_lowrank_preset_shows_and_holds_out_what_the_authors_do():
    grid = support(PRESETS["lowrank"].task)
    assert supports.n_samples(grid) == 624
    assert supports.is_held_out(supports.cells(grid), grid).sum() == 400


RELEASED = {
    "bump_cnn": "b5218da1", "bump_mlp": "cfab5636", "ramp_mlp": "2a17cc1e", "lowrank": "417989cb",
    "bump_cnn_quick": "fedd401a", "hyperteacher_quick": "1b3fda7a", "data_scaling": "bc545995",
}  # fmt: skip


def test_a_release_does_not_change_the_fingerprints_of_the_last():
    """A preset's settings are those of its paper, and fields added since are at their defaults."""
    assert {name: configs.fingerprint(PRESETS[name]) for name in RELEASED} == RELEASED


def test_changed_sets_fields_by_name():
    values = {"task.support.samples": 7, "training.seeds": (1,), "name": "mine"}
    config = configs.changed(PRESETS["stripes"], values)
    assert {path: configs.field_value(config, path) for path in values} == values
    assert PRESETS["stripes"].task.support.samples == 0 and configs.changed(config, {}) == config


def test_another_family_keeps_the_fields_that_both_have():
    config = configs.changed(PRESETS["lowrank"], {"model.name": "mlp"})
    assert config.model == MLP(depth=2, width=2)  # the preset's, not the defaults
    assert config.task == PRESETS["lowrank"].task
    back = configs.changed(config, {"model.name": "lowrank", "model.rank": 3})
    assert (back.model.depth, back.model.width, back.model.rank) == (2, 2, 3)
    assert back.model.penalty.entropy == 0.0  # which an MLP has not: the default
    with refused("config.model.rank: no such field"):
        configs.changed(config, {"model.rank": 3})


BAD = [
    ({"task.code.name": "bump"}, "config.task.code.name='bump': must be 'onehot'"),
    ({"model.rank": 129}, "config.model.rank=129: must be at least 0 and at most 128"),
    ({"model.name": "cnn"}, "config.model.name='cnn': must be one of conv, mlp"),
    ({"model.name": "conv", "model.penalty.entropy": 0.1}, "config.model.penalty.entropy: no such"),
    ({"model.name": "pixelwise", "model.width": 30}, "config.model.width=30: must be divisible by"),
    ({"task.gird": 8}, "config.task.gird: no such field; allowed: config.task.grid"),
    ({"task": 8}, "config.task: no such field; allowed: "),
    ({"task.grid": 4}, "config.task.grid=4: must be at least 8 and at most 128"),
    ({"task.grid": True}, "config.task.grid=True: must be of type int"),
    ({"task.image.sigma": float("nan")}, "config.task.image.sigma=nan: must be greater than 0"),
    ({"training.learning_rate": float("inf")}, "learning_rate=inf: must be at most 1e+06"),
    ({"training.seeds": ()}, "config.training.seeds=(): must be one or more integers"),
    ({"training.seeds": (1, 1)}, "config.training.seeds=(1, 1): must not repeat a seed"),
    ({"training.seeds": (0.5,)}, "config.training.seeds=(0.5,): must be one or more integers"),
    ({"sweep.axes": {"task.grid": (4,)}}, "config.task.grid=4: must be at least 8"),
    ({"sweep.axes": {"task.grid": (32, 32)}}, "'task.grid' needs values, each of them once"),
    ({"sweep.axes": {"task.grid": ()}}, "'task.grid' needs values, each of them once"),
    ({"sweep.axes": {"training.seeds": ((0,),)}}, "='training.seeds': trials cannot differ in it"),
    ({"sweep.axes": {"sweep.real_points": (1, 2)}}, "trials cannot differ in it"),
    ({"sweep.axes": {"name": ("a", "b")}}, "config.sweep.axes='name': trials cannot differ in it"),
    ({"sweep.axes": ((3, (1, 2)),)}, "config.sweep.axes=3: trials cannot differ in it"),
    ({"sweep.axes": (("task.grid", (32,)),) * 2}, "names a field twice"),
    ({"sweep.axes": ("task.grid",)}, "must be pairs of a field's name and its values"),
    ({"sweep.axes": (("task.grid", 8),)}, "must be pairs of a field's name and its values"),
    ({"sweep.search.field": "task.image"}, "config.task.image: no such field"),
    ({"sweep.search.field": "task.code.name"}, "field='task.code.name': is not a number"),
    ({"sweep.search.field": "sweep.real_points"}, "trials cannot differ in it"),
    ({"sweep.search.field": "model.width", "sweep.axes": {"model.width": (4,)}}, "is an axis too"),
    ({"sweep.search.per": (("cell", 0.25),)}, "must be pairs of a unit's name and its multiples"),
    ({"sweep.search.per": ("cell", (0.25,))}, "must be pairs of a unit's name and its multiples"),
    ({"sweep.search.start": ()}, "start=(): start and per need positive numbers to begin with"),
    ({"sweep.search.start": (0, 3)}, "start=(0, 3): start and per need positive numbers"),
    ({"sweep.search.per": (("cell", (-1.0,)),)}, "start and per need positive numbers"),
    ({"sweep.search.scores": ()}, "config.sweep.search.scores=(): name one or more"),
    ({"sweep.search.target": float("nan")}, "config.sweep.search.target=nan: must be finite"),
]


@pytest.mark.parametrize(("values", "message"), BAD, ids=lambda value: str(value)[:50])
def test_a_bad_value_is_one_line(values, message):
    search = {"field": "task.images", "start": (10,), "scores": ("exact_accuracy",)}
    searches = any(name.startswith("sweep.search") for name in values)
    known = {f"sweep.search.{name}": value for name, value in search.items()} if searches else {}
    if isinstance(axes := values.get("sweep.axes"), dict):
        values = values | {"sweep.axes": tuple(axes.items())}
    with refused(message, kind=ConfigError):
        configs.changed(PRESETS["lowrank"], known | values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": 3}, "config.task.name=3: must be one of bump, "),
        ({"training": 3}, "config.training=3: must be a group of fields: epochs, "),
        ({"decoder": {"name": "conv"}}, "config.decoder: no such field; allowed: "),
    ],
)
def test_a_malformed_or_old_dict_is_one_line(values, message):
    with refused(message, kind=ConfigError):
        configs.from_dict(configs.to_dict(Config()) | values)


def test_a_config_is_checked_when_it_is_built():
    with refused("batch_size=0"):
        Config(training=TrainingConfig(batch_size=0))
    with refused("config.task=3: must be a Family"):
        Config(task=3)


def test_fingerprint_names_the_result_not_its_execution(replace_in):
    base = Config()
    assert configs.fingerprint(base) == configs.fingerprint(
        replace_in(base, "execution.chunk_steps", 7)
    )
    assert configs.fingerprint(base) != configs.fingerprint(replace_in(base, "task.grid", 32))
    other = configs.changed(base, {"model.name": "mlp"})
    assert configs.identity(other) == {"config.model.name": "mlp"}


def test_a_field_that_an_older_run_lacks_has_its_default_and_leaves_its_identity(replace_in):
    config = replace_in(Config(), "training.weight_decay", 0)  # an int for a float
    values = json.loads(json.dumps(configs.to_dict(config)))
    del values["training"]["epochs"], values["task"]["image"]
    older = configs.from_dict(values)
    assert older == config and configs.fingerprint(older) == configs.fingerprint(config)
    assert configs.identity(older) == {"config.training.weight_decay": 0.0}


def test_identity_knows_a_users_file_by_its_name_wherever_it_lies(own_task, tmp_path):
    path, name = own_task
    moved = tmp_path / "elsewhere" / path.name
    moved.parent.mkdir()
    moved.write_text(path.read_text())
    first, second = (
        configs.changed(Config(model=MLP()), {"task.name": each, "task.gain": 2.0})
        for each in (name, f"{moved}:Turned")
    )
    identity = {"config.model.name": "mlp", "config.task.name": "turned.py:Turned"}
    assert configs.identity(first) == identity | {"config.task.gain": 2.0}
    assert configs.identity(first) == configs.identity(second) and first != second


def test_traced_fields_are_data_and_the_others_a_program():
    config = PRESETS["lowrank"]
    traced = configs.traced_fields(config)
    assert {
        "task.images", "task.stripes.copies", "task.stripes.order", "task.support.region",
        "task.support.samples", "task.support.side", "training.learning_rate", "training.seeds",
        "training.weight_decay", "model.penalty.entropy", "model.penalty.variance",
    } <= set(traced)  # fmt: skip
    for name in ("task.grid", "task.code.name", "task.image.sigma", "task.stripes.amplitude",
                 "model.width", "model.penalty.tokens",
                 "training.epochs", "training.batch_size"):  # fmt: skip
        assert name not in traced


AXES = {"task.grid": (8, 12), "model.width": (4, 8)}


def test_axes_are_a_dict_or_pairs_and_survive_json():
    as_dict, as_pairs = SweepConfig(axes=AXES), SweepConfig(axes=tuple(AXES.items()))
    assert as_dict == as_pairs
    task = Bump(grid=8, support=supports.SupportConfig(region="none"))
    config = Config(task=task, sweep=as_dict)
    assert configs.from_dict(json.loads(json.dumps(configs.to_dict(config)))) == config
    assert config.is_sweep and not Config().is_sweep
