import json
import subprocess
import sys

import pytest

from compgen_jax import config as configs
from compgen_jax.config import Config, ConfigError
from compgen_jax.tasks import supports
from launch.config import PRESETS, get_config

PAPER = (
    "bump_cnn", "ramp_cnn", "onehot_cnn", "positional_cnn", "bump_mlp", "ramp_mlp", "lowrank",
    "stripes", "stripes_bumps", "pixelwise",
)  # fmt: skip


@pytest.mark.parametrize("name", [f"{name}{scale}" for name in PAPER for scale in ("", "_quick")])
def test_preset_survives_json_and_can_serve(name):
    config = configs.from_dict(json.loads(json.dumps(get_config(name).to_dict())))
    assert config == PRESETS[name] and config.name == name
    supports.check(config.task)


def test_paper_presets_have_the_papers_settings():
    config = PRESETS["bump_cnn"]
    assert (config.task.grid, config.decoder.width, config.decoder.depth) == (28, 64, 4)
    assert (config.task.support.samples, config.training.epochs) == (2000, 50)
    assert (config.training.learning_rate, config.training.weight_decay) == (1e-3, 0.01)
    assert (PRESETS["bump_mlp"].decoder.width, PRESETS["ramp_mlp"].decoder.width) == (256, 128)


def test_lowrank_preset_has_the_authors_settings():
    task, training = PRESETS["lowrank"].task, PRESETS["lowrank"].training
    assert (task.grid, task.image.sigma, task.image.polarity) == (32, 1.5, "upright")
    assert supports.n_samples(task) == 624 and supports.held_out_mask(task).sum() == 400
    assert (training.epochs, training.batch_size, training.weight_decay) == (1000, 32, 1e-4)
    assert (training.penalty.entropy, training.penalty.variance) == (0.1, 0.01)


def test_runs_of_the_first_release_are_still_theirs():
    """Fields added since are at their defaults, so directories keep their names."""
    first = {"bump": (60, "1e047d96"), "ramp": (160, "3a737980")}
    for code, (epochs, fingerprint) in first.items():
        config = configs.changed(PRESETS[f"{code}_cnn_quick"], {"training.epochs": epochs})
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
    with pytest.raises(ConfigError, match="must be divisible by 4"):
        configs.changed(config, {"task.grid": 30})


@pytest.mark.parametrize(
    ("preset", "values", "message"),
    [
        ("lowrank", {"task.code.name": "bump"}, "config.task.code.name='bump': must be 'onehot'"),
        ("lowrank", {"decoder.rank": 33}, "config.decoder.rank=33: must be at most the grid's"),
        ("bump_cnn", {"training.penalty.entropy": 0.1}, "config.training.penalty.entropy=0.1: on"),
        ("pixelwise", {"decoder.width": 30}, "config.decoder.width=30: must be divisible by 4"),
        ("stripes", {"task.stripes.copies": 0}, "config.task.support.samples=0: leaves nothing"),
        ("stripes", {"task.stripes.amplitude": 0.0}, "amplitude=0.0: must be greater than 0"),
        ("lowrank", {"training.penalty.variance": -1.0}, "variance=-1.0: must be at least 0"),
        ("lowrank", {"decoder.vectors": "qr"}, "must be one of unit, orthonormal"),
    ],
)
def test_conditions_of_the_remedies_are_named(preset, values, message):
    with pytest.raises(ConfigError) as error:
        configs.changed(PRESETS[preset], values)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("task.grid", 30, "config.task.grid=30: must be divisible by 4"),
        ("task.grid", 4, "config.task.grid=4: must be at least 8 and at most 128"),
        ("task.grid", "28", "config.task.grid='28': must be of type int"),
        ("task.grid", True, "config.task.grid=True: must be of type int"),
        ("decoder.depth", 11, "config.decoder.depth=11: must be at least 1 and at most 10"),
        ("decoder.depth", 1, "config.decoder.depth=1: must be at least 2 for conv"),
        ("decoder.name", "cnn", "config.decoder.name='cnn': must be one of conv, mlp"),
        ("task.code.name", "gray", "config.task.code.name='gray': must be one of bump, ramp"),
        ("task.image.sigma", 0.0, "config.task.image.sigma=0.0: must be greater than 0"),
        ("task.image.sigma", float("nan"), "config.task.image.sigma=nan: must be greater than 0"),
        ("task.support.share", 1.5, "share=1.5: must be at least 0 and at most 1"),
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


def test_unknown_and_malformed_fields_are_named():
    values = configs.to_dict(Config())
    values["task"]["gird"] = 28
    with pytest.raises(
        ConfigError, match=r"config\.task\.gird: no such field; .*config\.task\.grid"
    ):
        configs.from_dict(values)
    with pytest.raises(ConfigError, match=r"config\.task=3: must be a group of fields"):
        configs.from_dict(configs.to_dict(Config()) | {"task": 3})


def test_fingerprint_names_the_result_not_its_execution(replace_in):
    base = Config()
    assert configs.fingerprint(base) == configs.fingerprint(
        replace_in(base, "execution.chunk_steps", 7)
    )
    assert configs.fingerprint(base) != configs.fingerprint(replace_in(base, "task.grid", 32))


def test_a_field_that_an_older_run_lacks_has_its_default_and_leaves_its_identity(replace_in):
    config = replace_in(Config(), "training.weight_decay", 0)  # an int for a float
    values = json.loads(json.dumps(configs.to_dict(config)))
    del values["training"]["epochs"], values["task"]["image"]
    older = configs.from_dict(values)
    assert older == config and configs.fingerprint(older) == configs.fingerprint(config)
    assert configs.identity(older) == {"config.training.weight_decay": 0.0}


def test_config_imports_no_jax():
    code = "import sys, compgen_jax.config, launch.config; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
