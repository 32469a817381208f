"""Runs at their scales, and the settings that are changed around them.

A run has the same name at both scales. A group of base networks is trained again at every setting
of its list, and its claims are judged there once more:

    SETTINGS = (Group(("bump_cnn",), {"depth 2": {"model.depth": 2}, "width x2": times(...)}),)

Claims that compare networks of two groups are judged where both have the setting.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

from compgen_jax.claims import FRESH
from compgen_jax.config import Config, changed

FRESH_SEEDS = tuple(range(100, 108))  # looked at once, to confirm verdicts
SCALES = "quick", "paper"
Values = dict | Callable[[Config], dict]  # fields with their values, perhaps computed from a config


class Preset(NamedTuple):
    """What a run is at each scale.

    base: a config, or the preset that this one is a variant of.  values: what is changed at every
    scale.  quick, paper: what is changed at one; a config is named after its run, '..._quick' at
    quick scale, unless these set its name.  scales: those at which the run exists.  takes: the time
    of training on 2 CPU cores at each of these; only a preset with times can be named by
    `--config`.
    """

    base: "Config | Preset"
    values: Values = {}
    quick: Values = {}
    paper: Values = {}
    scales: tuple[str, ...] = SCALES
    takes: tuple[str, ...] = ()

    def config(self, scale: str, name: str = "") -> Config:
        """The config at a scale. Without a name, it keeps that of its base."""
        config = self.base.config(scale) if isinstance(self.base, Preset) else self.base
        fields = {"name": {"quick": f"{name}_quick", "paper": name}[scale]} if name else {}
        for values in (self.values, getattr(self, scale)):
            fields |= values(config) if callable(values) else values
        return changed(config, fields)


def at_scale(table: dict[str, Preset], scale: str) -> dict[str, Config]:
    """The configs of a table by name of the run."""
    presets = table.items()
    return {name: preset.config(scale, name) for name, preset in presets if scale in preset.scales}


class Group(NamedTuple):
    """bases: names of runs that are changed together, as claims compare them.  settings: what is
    changed, each setting alone, by its name."""

    bases: tuple[str, ...]
    settings: dict[str, Values]


def times(field: str, factor: float) -> Values:
    """A number multiplied; a whole one stays whole, and at least 1."""

    def values(config):
        value = attrgetter(field)(config)
        is_whole = isinstance(value, int)
        return {field: max(1, round(factor * value)) if is_whole else factor * value}

    return values


def training_time(factor: float) -> Values:
    """Epochs or steps multiplied, whichever the config counts, with as many evaluations."""

    def values(config):
        counted = "training.steps" if config.training.steps else "training.epochs"
        return times(counted, factor)(config) | times("training.evaluate_every", factor)(config)

    return values


def fresh(*bases: str) -> Group:
    """These runs at seeds that nobody had looked at."""
    return Group(bases, {FRESH: {"training.seeds": FRESH_SEEDS}})
