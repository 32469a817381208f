"""The settings that the paper leaves open, each changed alone around a base network (quick scale).

A verdict that holds at one setting may fail at another. So each base network is trained again at
every setting of its list, and its claims are judged there once more (`claims.SettingVerdict`).
"""

import itertools
import re
from collections.abc import Callable
from typing import NamedTuple

from compgen_jax.config import Config, changed, field_value

THIRD, THRICE = 1 / 3, 3.0  # of the learning rate


class Setting(NamedTuple):
    """name: in words, such as 'learning rate x3'.  values: base config -> what it changes.
    in_paper: whether the paper's text allows the setting."""

    name: str
    values: Callable[[Config], dict]
    in_paper: bool = True


class Group(NamedTuple):
    """bases: names of runs that are changed together, as claims compare them.  settings: the list,
    each setting changed alone."""

    bases: tuple[str, ...]
    settings: tuple[Setting, ...]


def _shown(factor: float) -> str:
    return f"1/{round(1 / factor)}" if factor < 1 else f"{factor:g}"


def times(field: str, factor: float, words: str = "") -> Setting:
    """A number multiplied; `words` names it."""

    def values(config):
        value = factor * field_value(config, field)
        return {field: round(value) if isinstance(field_value(config, field), int) else value}

    words = words or field.rpartition(".")[2].replace("_", " ")
    return Setting(f"{words} x{_shown(factor)}", values)


def training_time(factor: float) -> Setting:
    """Epochs or steps multiplied, whichever the config counts, with as many evaluations."""

    def values(config):
        training = config.training
        field = "steps" if training.steps else "epochs"
        count = round(factor * getattr(training, field))
        every = max(1, round(factor * training.evaluate_every))
        return {f"training.{field}": count, "training.evaluate_every": every}

    return Setting(f"training time x{_shown(factor)}", values)


def to(name: str, **values) -> Setting:
    """Fields set to values; '__' stands for a dot: `to('upright', task__image__polarity=...)`."""
    fixed = {field.replace("__", "."): value for field, value in values.items()}
    return Setting(name, lambda config: fixed)


def on_grid(grid: int) -> Setting:
    """Another N, with as large a share of it held out."""

    def values(config):
        ratio = grid / config.task.grid
        support = config.task.support
        bounds = {
            f"task.support.{name}": round(getattr(support, name) * ratio)
            for name in ("low", "high")
        }
        return {"task.grid": grid} | bounds

    return Setting(f"N = {grid}", values)


RATES = times("training.learning_rate", THIRD), times("training.learning_rate", THRICE)
TIMES = training_time(0.5), training_time(2.0)
UPRIGHT = to("upright", task__image__polarity="upright")
CORNER = to("corner", task__support__region="corner", task__support__low=7)
BUMPS_ALONE = Group(
    ("bump_cnn",),
    (
        *RATES,
        *TIMES,
        times("model.width", 0.5),
        times("model.width", 2),
        to("depth 2", model__depth=2),
        to("depth 6", model__depth=6),
        times("task.image.sigma", 1.5),
        UPRIGHT,
        times("training.batch_size", 0.5),
        times("training.weight_decay", 0.1),
        CORNER,
        on_grid(12),
        on_grid(20),
        times("task.code.width", 3, "code width"),
    ),
)
RAMP = Group(("ramp_cnn",), (*RATES, *TIMES, UPRIGHT, CORNER))
LOW_RANK = Group(
    tuple(f"lowrank_{name}" for name in ("none", "entropy", "variance", "both")),
    (
        *RATES,
        *TIMES,
        times("model.penalty.entropy", THIRD, "entropy penalty"),
        times("model.penalty.entropy", THRICE, "entropy penalty"),
        times("model.penalty.variance", THIRD, "variance penalty"),
        times("model.penalty.variance", THRICE, "variance penalty"),
    ),
)
OFF_GRID, OFF_CANVAS = ({"task__code__missing": name} for name in ("off_grid", "off_canvas"))
STRIPES = Group(
    ("stripes_0_bumps", "stripes_30_bumps"),
    (
        UPRIGHT,
        to("missing factor off the grid", **OFF_GRID),
        to("upright, missing factor off the grid", task__image__polarity="upright", **OFF_GRID),
        to("label off the canvas", **OFF_CANVAS),
        to("upright, label off the canvas", task__image__polarity="upright", **OFF_CANVAS),
        *TIMES,
        *RATES,
        times("model.width", 0.5),
    ),
)
GROUPS = BUMPS_ALONE, RAMP, LOW_RANK, STRIPES


def runs(base_runs: dict[str, Config], groups=GROUPS) -> dict[tuple[str, str], Config]:
    """{(base, setting): config} for every setting of every base network. A setting that is among
    `base_runs` already keeps that run's name, and so its directory."""
    names = {changed(config, {"name": "any"}): config.name for config in base_runs.values()}
    configs = {}
    for group in groups:
        for base, setting in itertools.product(group.bases, group.settings):
            config = base_runs[base]
            values = setting.values(config)
            alike = changed(config, {"name": "any", **values})
            name = names.get(alike) or _name(config, setting)
            configs[base, setting.name] = changed(config, {"name": name, **values})
    return configs


def _name(config: Config, setting: Setting) -> str:
    stem = config.name.removesuffix("_quick")
    words = re.sub(r"[^\w.]+", "_", setting.name)
    return f"{stem}_{words}" + "_quick" * (stem != config.name)
