import json

import pytest

from compgen_jax import config as configs
from compgen_jax.config import Config, ConfigError, SearchConfig, SweepConfig, TrainingConfig
from compgen_jax.models.mlp import MLP
from compgen_jax.papers.presets import PRESETS, get_config
from compgen_jax.tasks import supports
from compgen_jax.tasks.bump import Bump, support

PAPER = (
    "bump_cnn", "ramp_cnn", "onehot_cnn", "positional_cnn", "bump_mlp", "ramp_mlp", "lowrank",
    "stripes", "stripes_bumps", "pixelwise", "data_scaling", "holdout_map", "three_factors",
)  # fmt: skip


@pytest.mark.parametrize("name", [f"{name}{scale}" for name in PAPER for scale in ("", "_quick")])
def test_preset_survives_json_and_can_serve(name):
    values = configs.to_dict(get_config(name))
    config = configs.from_dict(json.loads(json.dumps(values)))
    assert config == PRESETS[name] and config.name == name
    assert config.is_sweep == name.startswith(("data_scaling", "holdout_map"))
    config.task.make()


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
    assert supports.n_samples(grid) == 624
    assert supports.is_held_out(supports.cells(grid), grid).sum() == 400
    assert (training.epochs, training.batch_size, training.weight_decay) == (1000, 32, 1e-4)
    assert (config.model.penalty.entropy, config.model.penalty.variance) == (0.1, 0.01)


def test_runs_of_the_first_release_are_still_theirs():
    """Fields added since are at their defaults, so directories keep their names."""
    first = {"bump": (60, "1e047d96"), "ramp": (160, "3a737980")}
    for code, (epochs, fingerprint) in first.items():
        then = {"training.epochs": epochs, "training.evaluate_every": 10}
        then |= {"training.seeds": (0, 1, 2)}
        config = configs.changed(PRESETS[f"{code}_cnn_quick"], then)
        assert configs.fingerprint(config) == fingerprint


def test_changed_sets_fields_by_name():
    config = configs.changed(
        PRESETS["stripes"], {"task.support.samples": 7, "training.seeds": (1,), "name": "mine"}
    )
    assert config.task.support.samples == 7 and config.training.seeds == (1,)
    assert config.name == "mine" and PRESETS["stripes"].task.support.samples == 0
    assert configs.changed(config, {}) == config
    with pytest.raises(ConfigError, match=r"config\.task\.gird: no such field"):
        configs.changed(config, {"task.gird": 8})
    with pytest.raises(ConfigError, match=r"config\.task: no such field"):
        configs.changed(config, {"task": 8})
    with pytest.raises(ConfigError, match="at least 8 and at most 128"):
        configs.changed(config, {"task.grid": 4})


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


@pytest.mark.parametrize(
    ("preset", "values", "message"),
    [
        ("lowrank", {"task.code.name": "bump"}, "config.task.code.name='bump': must be 'onehot'"),
        ("lowrank", {"model.rank": 129}, "config.model.rank=129: must be at least 0 and at"),
        ("bump_cnn", {"model.penalty.entropy": 0.1}, "config.model.penalty.entropy: no such"),
        ("pixelwise", {"model.width": 30}, "config.model.width=30: must be divisible by 4"),
        ("stripes", {"task.stripes.copies": 0}, "config.task.support.samples=0: leaves nothing"),
        ("stripes", {"task.stripes.amplitude": 0.0}, "amplitude=0.0: must be greater than 0"),
        ("lowrank", {"model.penalty.variance": -1.0}, "variance=-1.0: must be at least 0"),
        ("lowrank", {"model.vectors": "qr"}, "must be one of unit, orthonormal"),
    ],
)
def test_conditions_of_the_remedies_are_named(preset, values, message):
    with pytest.raises(ConfigError) as error:
        configs.changed(PRESETS[preset], values)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("task.grid", 4, "config.task.grid=4: must be at least 8 and at most 128"),
        ("task.grid", "28", "config.task.grid='28': must be of type int"),
        ("task.grid", True, "config.task.grid=True: must be of type int"),
        ("model.depth", 11, "config.model.depth=11: must be at least 2 and at most 10"),
        ("model.depth", 1, "config.model.depth=1: must be at least 2 and at most 10"),
        ("task.code.name", "gray", "config.task.code.name='gray': must be one of bump, ramp"),
        ("task.image.sigma", 0.0, "config.task.image.sigma=0.0: must be greater than 0"),
        ("task.image.sigma", float("nan"), "config.task.image.sigma=nan: must be greater than 0"),
        ("task.support.share", 1.5, "share=1.5: must be at least 0 and at most 1"),
        ("task", 3, "config.task=3: must be a Family"),
        (
            "training.learning_rate",
            float("inf"),
            "config.training.learning_rate=inf: must be at most 1e+06",
        ),
        ("training.seeds", (), "config.training.seeds=(): must be one or more integers"),
        ("training.seeds", (1, 1), "config.training.seeds=(1, 1): must not repeat a seed"),
        ("training.seeds", (0.5,), "config.training.seeds=(0.5,): must be one or more integers"),
    ],
)
def test_bad_value_is_named(replace_in, field, value, message):
    with pytest.raises(ConfigError) as error:
        replace_in(Config(), field, value)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_unknown_family_and_unknown_and_malformed_fields_are_named():
    with pytest.raises(ConfigError, match="config.model.name='cnn': must be one of conv, mlp"):
        configs.changed(Config(), {"model.name": "cnn"})
    values = configs.to_dict(Config())
    values["task"]["gird"] = 28
    with pytest.raises(
        ConfigError, match=r"config\.task\.gird: no such field; .*config\.task\.grid"
    ):
        configs.from_dict(values)
    with pytest.raises(ConfigError, match=r"config\.training=3: must be a group of fields"):
        configs.from_dict(configs.to_dict(Config()) | {"training": 3})
    with pytest.raises(ConfigError, match=r"config\.task\.name=3: must be one of bump, .*or FILE"):
        configs.from_dict(configs.to_dict(Config()) | {"task": 3})


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
    found = [
        configs.changed(Config(model=MLP()), {"task.name": each, "task.gain": 2.0})
        for each in (name, f"{moved}:Turned")
    ]
    identities = [configs.identity(config) for config in found]
    assert (
        identities[0]
        == identities[1]
        == {
            "config.model.name": "mlp",
            "config.task.gain": 2.0,
            "config.task.name": "turned.py:Turned",
        }
    )
    assert found[0] != found[1] and str(tmp_path) not in json.dumps(identities)


def test_traced_fields_are_data_and_the_others_a_program():
    config = PRESETS["lowrank"]
    traced = configs.traced_fields(config)
    assert {
        "task.images", "task.stripes.copies", "task.stripes.order", "task.support.region",
        "task.support.samples", "task.support.side", "training.learning_rate", "training.seeds",
        "training.weight_decay", "model.penalty.entropy", "model.penalty.variance",
    } <= set(traced)  # fmt: skip
    for name in ("task.grid", "task.code.name", "task.image.sigma", "task.stripes.amplitude",
                 "task.support.fresh", "model.width", "model.penalty.tokens",
                 "training.epochs", "training.batch_size"):  # fmt: skip
        assert name not in traced
    assert f"config.{traced[0]}" in configs.field_names(config)


AXES = {"task.grid": (8, 12), "model.width": (4, 8)}


def test_axes_are_a_dict_or_pairs_and_survive_json():
    as_dict, as_pairs = SweepConfig(axes=AXES), SweepConfig(axes=tuple(AXES.items()))
    assert as_dict == as_pairs
    task = Bump(grid=8, support=supports.SupportConfig(region="none"))
    config = Config(task=task, sweep=as_dict)
    assert configs.from_dict(json.loads(json.dumps(configs.to_dict(config)))) == config
    assert config.is_sweep and not Config().is_sweep


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"task.gird": (8,)}, r"config\.task\.gird: no such field"),
        ({"task.grid": (4,)}, r"config\.task\.grid=4: must be at least 8"),
        ({"task.grid": (8.0,)}, r"config\.task\.grid=8\.0: must be of type int"),
        ({"task.grid": (8, 8)}, r"config\.sweep\.axes: 'task\.grid' needs values, each of them"),
        ({"task.grid": ()}, r"config\.sweep\.axes: 'task\.grid' needs values"),
        ({"training.seeds": ((0,), (1,))}, "'training.seeds' is no field that trials differ in"),
        ({"execution.chunk_steps": (1, 2)}, "is no field that trials differ in"),
        ({"sweep.real_points": (1, 2)}, "is no field that trials differ in"),
        ({"name": ("a", "b")}, "'name' is no field that trials differ in"),
        ({"model.name": ("cnn",)}, "config.model.name='cnn': must be one of"),
        ((("task.grid", (8,)), ("task.grid", (12,))), "names a field twice"),
        (("task.grid",), "must be pairs of a field's name and its values"),
        (((3, (1, 2)),), "3 is no field that trials differ in"),
        ((("task.grid", 8),), "must be pairs of a field's name and its values"),
    ],
)
def test_axes_that_cannot_be_are_one_line(axes, message):
    with pytest.raises(ConfigError, match=message) as error:
        Config(sweep=SweepConfig(axes=axes))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"field": "task.image"}, r"config\.task\.image: no such field"),
        ({"field": "task.code.name"}, "field='task.code.name': is no number"),
        ({"field": "task.support.in_proportion"}, "is no number"),
        ({"field": "model.width"}, "field='model.width': is an axis too"),
        ({"field": "sweep.real_points"}, "'sweep.real_points' is no field that trials differ in"),
        ({"per": (("cell", 0.25),)}, "per=.*: must be pairs of a unit's name and its multiples"),
        ({"per": ("cell", (0.25,))}, "per=.*: must be pairs of a unit's name and its multiples"),
        ({"start": (), "per": ()}, "needs values to begin with, in start or per"),
        ({"scores": ()}, r"config\.sweep\.search\.scores=\(\): name one or more"),
        ({"start": (0, 3)}, "start and per must be positive numbers"),
        ({"start": ("a",)}, "start and per must be positive numbers"),
        ({"per": (("cell", (-1.0,)),)}, "start and per must be positive numbers"),
        ({"target": float("nan")}, "config.sweep.search.target=nan: must be finite"),
        ({"refinements": -1}, "refinements=-1: must be at least 0"),
    ],
)
def test_searches_that_cannot_be_are_one_line(values, message):
    known = {"field": "task.images", "start": (10,), "scores": ("exact_accuracy",)}
    with pytest.raises(ConfigError, match=message) as error:
        Config(sweep=SweepConfig({"model.width": (4, 8)}, SearchConfig(**(known | values))))
    assert "\n" not in str(error.value)


def test_a_config_is_checked_when_it_is_built():
    with pytest.raises(ConfigError, match="batch_size=0"):
        Config(training=TrainingConfig(batch_size=0))
