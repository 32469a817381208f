"""A config is checked as a whole, survives JSON and knows what makes two runs the same."""

import json

import pytest

from compgen_jax import config as configs
from compgen_jax.config import Config, ConfigError, SweepConfig, TrainingConfig
from compgen_jax.models.mlp import MLP
from compgen_jax.papers.presets import PRESETS
from compgen_jax.tasks.bump import Bump, support
from compgen_jax.tasks.supports import SupportConfig

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


def test_paper_presets_have_the_papers_settings():
    config = PRESETS["bump_cnn"]
    assert (config.task.grid, config.model.width, config.model.depth) == (28, 64, 4)
    assert (config.task.support.samples, config.training.epochs) == (2000, 50)
    assert (config.training.learning_rate, config.training.weight_decay) == (1e-3, 0.01)
    assert (PRESETS["bump_mlp"].model.width, PRESETS["ramp_mlp"].model.width) == (256, 128)


def test_lowrank_preset_has_the_authors_settings():
    config = PRESETS["lowrank"]
    task, training, grid = config.task, config.training, support(config.task)
    assert (task.grid, task.image.sigma, task.image.polarity) == (32, 1.5, "upright")
    assert grid.n_samples() == 624 and grid.held_out.sum() == 400
    assert (training.epochs, training.batch_size, training.weight_decay) == (1000, 32, 1e-4)
    assert (config.model.penalty.entropy, config.model.penalty.variance) == (0.1, 0.01)


def test_a_release_does_not_change_the_fingerprints_of_the_last():
    """Fields added since are at their defaults. 0.2.0 renamed fields, so they begin there."""
    released = {"bump_cnn_quick": "fedd401a", "hyperteacher_quick": "1b3fda7a"}
    assert {name: configs.fingerprint(PRESETS[name]) for name in released} == released


def test_fields_that_a_release_took_away_may_have_their_defaults():
    values = configs.to_dict(Config())
    values["task"]["support"] |= {"fresh": "no", "corner": "top_right"}
    values["task"]["code"]["scale"] = "pixels"
    assert configs.from_dict(values) == Config()
    for other in ("cells", None):
        values["task"]["support"]["fresh"] = other
        with pytest.raises(ConfigError, match="config.task.support.fresh: no such field"):
            configs.from_dict(values)


def test_changed_sets_fields_by_name():
    config = configs.changed(
        PRESETS["stripes"], {"task.support.samples": 7, "training.seeds": (1,), "name": "mine"}
    )
    assert config.task.support.samples == 7 and config.training.seeds == (1,)
    assert config.name == "mine" and PRESETS["stripes"].task.support.samples == 0
    assert configs.changed(config, {}) == config


def test_another_family_keeps_the_fields_that_both_have():
    config = configs.changed(PRESETS["lowrank"], {"model.name": "mlp"})
    assert config.model == MLP(depth=2, width=2)  # the preset's, not the defaults
    assert config.task == PRESETS["lowrank"].task
    back = configs.changed(config, {"model.name": "lowrank", "model.rank": 3})
    assert (back.model.depth, back.model.width, back.model.rank) == (2, 2, 3)
    assert back.model.penalty.entropy == 0.0  # which an MLP has not: the default
    same = configs.changed(PRESETS["lowrank"], {"model.name": "lowrank"})
    assert same == PRESETS["lowrank"]
    with pytest.raises(ConfigError, match=r"config\.model\.rank: no such field"):
        configs.changed(config, {"model.rank": 3})


BAD = [
    ({"task.code.name": "bump"}, "config.task.code.name='bump': must be 'onehot'"),
    ({"model.rank": 129}, "config.model.rank=129: must be at least 0 and at most 128"),
    ({"model.penalty.variance": -1.0}, "variance=-1.0: must be at least 0"),
    ({"model.vectors": "qr"}, "must be one of unit, orthonormal"),
    ({"model.name": "cnn"}, "config.model.name='cnn': must be one of conv, mlp"),
    ({"model.name": "conv", "model.penalty.entropy": 0.1}, "config.model.penalty.entropy: no such"),
    ({"model.name": "pixelwise", "model.width": 30}, "config.model.width=30: must be divisible by"),
    ({"task.support.samples": -1}, "config.task.support.samples=-1: must be at least 0"),
    ({"task.stripes.copies": 1, "task.image.amplitude": 0.0}, "=0.0: must be greater than 0"),
    ({"task.gird": 8}, "config.task.gird: no such field; allowed: config.task.grid"),
    ({"task": 8}, "config.task: no such field; allowed: "),
    ({"task.grid": 4}, "config.task.grid=4: must be at least 8 and at most 128"),
    ({"task.grid": "28"}, "config.task.grid='28': must be of type int"),
    ({"task.grid": True}, "config.task.grid=True: must be of type int"),
    ({"task.image.sigma": float("nan")}, "config.task.image.sigma=nan: must be greater than 0"),
    ({"training.learning_rate": float("inf")}, "learning_rate=inf: must be at most 1e+06"),
    ({"training.seeds": ()}, "config.training.seeds=(): must be one or more integers"),
    ({"training.seeds": (1, 1)}, "config.training.seeds=(1, 1): must not repeat a seed"),
    ({"training.seeds": (0.5,)}, "config.training.seeds=(0.5,): must be one or more integers"),
    ({"sweep.axes": {"task.gird": (8,)}}, "config.task.gird: no such field"),
    ({"sweep.axes": {"task.grid": (4,)}}, "config.task.grid=4: must be at least 8"),
    ({"sweep.axes": {"task.grid": (8.0,)}}, "config.task.grid=8.0: must be of type int"),
    ({"sweep.axes": {"task.grid": (32, 32)}}, "'task.grid' needs values, each of them once"),
    ({"sweep.axes": {"task.grid": ()}}, "'task.grid' needs values, each of them once"),
    ({"sweep.axes": {"training.seeds": ((0,),)}}, "='training.seeds': trials cannot differ in it"),
    ({"sweep.axes": {"execution.chunk_steps": (1, 2)}}, "trials cannot differ in it"),
    ({"sweep.axes": {"sweep.real_points": (1, 2)}}, "trials cannot differ in it"),
    ({"sweep.axes": {"name": ("a", "b")}}, "config.sweep.axes='name': trials cannot differ in it"),
    ({"sweep.axes": ((3, (1, 2)),)}, "config.sweep.axes=3: trials cannot differ in it"),
    ({"sweep.axes": {"model.name": ("cnn",)}}, "config.model.name='cnn': must be one of"),
    ({"sweep.axes": (("task.grid", (32,)),) * 2}, "names a field twice"),
    ({"sweep.axes": ("task.grid",)}, "must be pairs of a field's name and its values"),
    ({"sweep.axes": (("task.grid", 8),)}, "must be pairs of a field's name and its values"),
    ({"sweep.search.field": "task.image"}, "config.task.image: no such field"),
    ({"sweep.search.field": "task.code.name"}, "field='task.code.name': is not a number"),
    ({"sweep.search.field": "task.support.in_proportion"}, "is not a number"),
    ({"sweep.search.field": "sweep.real_points"}, "trials cannot differ in it"),
    ({"sweep.search.field": "model.width", "sweep.axes": {"model.width": (4,)}}, "is an axis too"),
    ({"sweep.search.per": (("cell", 0.25),)}, "must be pairs of a unit's name and its multiples"),
    ({"sweep.search.per": ("cell", (0.25,))}, "must be pairs of a unit's name and its multiples"),
    ({"sweep.search.start": ()}, "start=(): start and per need positive numbers to begin with"),
    ({"sweep.search.start": (0, 3)}, "start=(0, 3): start and per need positive numbers"),
    ({"sweep.search.start": ("a",)}, "start=('a',): start and per need positive numbers"),
    ({"sweep.search.per": (("cell", (-1.0,)),)}, "start and per need positive numbers"),
    ({"sweep.search.scores": ()}, "config.sweep.search.scores=(): name one or more"),
    ({"sweep.search.target": float("nan")}, "config.sweep.search.target=nan: must be finite"),
    ({"sweep.search.refinements": -1}, "refinements=-1: must be at least 0"),
]


@pytest.mark.parametrize(("values", "message"), BAD, ids=lambda value: str(value)[:50])
def test_a_bad_value_is_one_line(values, message):
    search = {"field": "task.images", "start": (10,), "scores": ("exact_accuracy",)}
    searches = any(name.startswith("sweep.search") for name in values)
    known = {f"sweep.search.{name}": value for name, value in search.items()} if searches else {}
    if isinstance(axes := values.get("sweep.axes"), dict):
        values = values | {"sweep.axes": tuple(axes.items())}
    with pytest.raises(ConfigError) as error:
        configs.changed(PRESETS["lowrank"], known | values)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": 3}, "config.task.name=3: must be one of bump, "),
        ({"training": 3}, "config.training=3: must be a group of fields: epochs, "),
        ({"decoder": {"name": "conv"}}, "config.decoder: written by compgen_jax 0.1.0, which"),
    ],
)
def test_a_malformed_or_old_dict_is_one_line(values, message):
    with pytest.raises(ConfigError) as error:
        configs.from_dict(configs.to_dict(Config()) | values)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_config_is_checked_when_it_is_built():
    with pytest.raises(ConfigError, match="batch_size=0"):
        Config(training=TrainingConfig(batch_size=0))
    with pytest.raises(ConfigError, match="config.task=3: must be a Family"):
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
    for name in ("task.grid", "task.code.name", "task.image.sigma", "model.width",
                 "model.penalty.tokens", "training.epochs", "training.batch_size"):  # fmt: skip
        assert name not in traced


AXES = {"task.grid": (8, 12), "model.width": (4, 8)}


def test_axes_are_a_dict_or_pairs_and_survive_json():
    as_dict, as_pairs = SweepConfig(axes=AXES), SweepConfig(axes=tuple(AXES.items()))
    assert as_dict == as_pairs
    task = Bump(grid=8, support=SupportConfig(region="none"))
    config = Config(task=task, sweep=as_dict)
    assert configs.from_dict(json.loads(json.dumps(configs.to_dict(config)))) == config
    assert config.is_sweep and not Config().is_sweep
