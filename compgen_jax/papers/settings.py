"""Settings that a paper leaves open, each changed alone around a base network.

A verdict that holds at one setting may fail at another. So a group of base networks is trained
again at every setting of its list, and its claims are judged there once more:

    SETTINGS = (Group(("bump_cnn",), (times("training.learning_rate", 3), to("depth 2", ...))),)

A setting has the same name in every group: claims that compare networks of two groups are judged
where both have it.
"""

import itertools
import re
from collections.abc import Callable
from typing import NamedTuple

from compgen_jax.config import Config, changed, field_value


class Setting(NamedTuple):
    """name: in words, such as 'learning rate x3'.  values: base config -> what it changes."""

    name: str
    values: Callable[[Config], dict]


class Group(NamedTuple):
    """bases: names of runs that are changed together, as claims compare them.  settings: the list,
    each setting changed alone."""

    bases: tuple[str, ...]
    settings: tuple[Setting, ...]


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


def configs(groups, base_runs: dict[str, Config]) -> dict[tuple[str, str], Config]:
    """{(base, setting): config} for every setting of every base that is among `base_runs`. A
    setting that is among these already keeps that run's name, and so its directory."""
    names = {changed(config, {"name": "any"}): config.name for config in base_runs.values()}
    found = {}
    for group in groups:
        for base, setting in itertools.product(group.bases, group.settings):
            if base not in base_runs:
                continue
            config = base_runs[base]
            values = setting.values(config)
            alike = changed(config, {"name": "any", **values})
            name = names.get(alike) or _name(config, setting)
            found[base, setting.name] = changed(config, {"name": name, **values})
    return found


def _name(config: Config, setting: Setting) -> str:
    stem = config.name.removesuffix("_quick")
    words = re.sub(r"[^\w.]+", "_", setting.name)
    return f"{stem}_{words}" + "_quick" * (stem != config.name)


def _shown(factor: float) -> str:
    return f"1/{round(1 / factor)}" if factor < 1 else f"{factor:g}"
