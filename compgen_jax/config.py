"""What a run is: a task, a model, their training and, for a sweep, the fields that vary.

Frozen dataclasses, checked when the `Config` is built; tasks and models bring their own settings.
"""

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from pathlib import Path

from compgen_jax import settings
from compgen_jax.settings import ConfigError as ConfigError  # exported
from compgen_jax.settings import Family, choice, family, flat, number, require, to_dict

ROOT = "config"
UNIDENTIFIED = (f"{ROOT}.execution.", f"{ROOT}.training.keep")  # they decide no number
ABSENT = object()  # the value of a field that a family lacks, where None may be a value


@dataclass(frozen=True)
class TrainingConfig:
    """AdamW on the task's loss; a row of metrics and a checkpoint every `evaluate_every` epochs and
    at the end. `steps`, unless 0, replaces `epochs`, and `evaluate_every` then counts steps, too.
    Points that are drawn afresh need `steps`.

    The learning rate is constant, falls to 0 along half a `cosine`, or halves on a `plateau`, down
    to 1e-6. A plateau is 6 epochs in a row whose mean training loss was not below the best by a
    ten-thousandth. `decay` says whether weight decay acts on all parameters or on matrices alone. A
    gradient longer than `clip`, unless that is 0, is scaled to it.

    `precision` is that of the convolutions of a training step; all else is float32.

    A run keeps its parameters at `keep` steps, from 1/512 of training to its end in equal ratios.
        This is no part of its identity."""

    epochs: int = number(50, low=1, high=10**7)
    steps: int = number(0, low=0, high=10**9)
    batch_size: int = number(32, low=1, high=2**16)
    learning_rate: float = number(1e-3, above=0, high=1e6, traced=True)
    weight_decay: float = number(0.01, low=0, high=1e6, traced=True)
    schedule: str = choice("constant", "constant", "cosine", "plateau")
    decay: str = choice("all", "all", "matrices")
    clip: float = number(0.0, low=0, high=1e6)
    seeds: tuple = settings.traced((0, 1, 2, 3, 4))
    evaluate_every: int = number(5, low=1)
    precision: str = choice("float32", "float32", "bfloat16")
    keep: int = number(10, low=0, high=1000)


@dataclass(frozen=True)
class SearchConfig:
    """Finds the value of a numeric `field`, '' for none, at which rising scores reach a target.

    `start` are the first values, and the multiples `per`, such as (('cell', (0.25, 2.0)),). Each of
    `refinements` rounds tries `refine_with` more around each crossing. The mean of each of `scores`
    must reach `target`: on held-out points or, without any, on points not drawn and between the
    cells.
    """

    field: str = ""
    start: tuple = ()
    per: tuple = ()
    scores: tuple = ()
    target: float = number(0.75)
    refinements: int = number(2, low=0, high=20)
    refine_with: int = number(1, low=1, high=100)


@dataclass(frozen=True)
class SweepConfig:
    """Every combination of `axes` with each of `training.seeds`. `axes` is a dict (or pairs) of
    field names and values, such as {'task.grid': (24, 28), 'model.width': (32, 64)}. `real_points`
    is the number of points between the cells that are scored, too.
    """

    axes: tuple = ()
    search: SearchConfig = SearchConfig()
    real_points: int = number(256, low=1, high=10**6)

    def __post_init__(self):
        if isinstance(self.axes, dict):
            object.__setattr__(self, "axes", settings.as_tuple(list(self.axes.items())))


@dataclass(frozen=True)
class ExecutionConfig:
    """How a run is carried out.

    `trials_per_device` trials are trained side by side, the others in turn (0: the backend
    decides); results change by rounding at most. The progress bar moves every `chunk_steps` steps.
    `max_padding` is the largest share of work that a sweep may waste by padding small grids to
    train beside large ones.
    """

    trials_per_device: int = number(0, low=0)
    chunk_steps: int = number(50, low=1, high=10**6)
    max_padding: float = number(0.3, low=0, high=0.9)


@dataclass(frozen=True)
class Config:
    """A run or a sweep: a task, a model, their training, what varies, and how it is carried out."""

    name: str = "unnamed"
    task: Family = field(default_factory=lambda: family("task", "bump")())
    model: Family = field(default_factory=lambda: family("model", "conv")())
    training: TrainingConfig = TrainingConfig()
    sweep: SweepConfig = SweepConfig()
    execution: ExecutionConfig = ExecutionConfig()

    def __post_init__(self):
        settings.check_fields(self, ROOT)
        seeds, limit = self.training.seeds, 2**31
        valid = bool(seeds) and all(type(seed) is int and 0 <= seed < limit for seed in seeds)
        require(valid, "training.seeds", seeds, "must be one or more integers from 0 to 2**31-1")
        require(len(set(seeds)) == len(seeds), "training.seeds", seeds, "must not repeat a seed")
        self.task.check(self)
        self.model.check(self)
        if self.is_sweep:
            _check_sweep(self)

    @property
    def is_sweep(self) -> bool:
        return bool(self.sweep.axes or self.sweep.search.field)


def from_dict(values: dict) -> Config:
    """The `Config` that `to_dict` (or its JSON) describes; a missing field has its default. Raises
    ConfigError."""
    return settings.build(Config, values, ROOT)


def changed(config: Config, values: dict, read=None) -> Config:
    """The config with new values for fields named as in 'task.support.low'; with `read`, each is
    `read(its text, the value that the field has)`. A new 'model.name' or 'task.name' keeps the
    values of shared fields. Raises ConfigError."""
    tree = to_dict(config)
    for group in settings.FAMILIES:
        if f"{group}.name" in values:
            kind, before = family(group, values[f"{group}.name"]), getattr(config, group)
            shared = settings.types(kind).items() & settings.types(type(before)).items()
            old = {name: tree[group][name] for name, _ in shared if name in tree[group]}
            tree[group] = to_dict(kind()) | old
    known = list(flat(tree, ROOT))
    for path, value in values.items():
        if f"{ROOT}.{path}" not in known:
            raise settings.unknown_field(f"{ROOT}.{path}", known)
        *groups, name = path.split(".")
        node = reduce(getitem, groups, tree)
        node[name] = read(value, node[name]) if read else value
    return from_dict(tree)


def identity(config: Config) -> dict:
    """Dotted name and value of every field that is not at its default, but for `UNIDENTIFIED` ones:
    a field added later does not change it. A user's family is known by its file's name."""
    defaults, values = to_dict(Config()), to_dict(config)
    for group in settings.FAMILIES:
        current = getattr(config, group)
        defaults[group] = to_dict(type(current)()) | {"name": defaults[group]["name"]}
        values[group]["name"] = Path(current.name).name
    defaults, values = flat(defaults, ROOT), flat(values, ROOT)
    names = [name for name in values if not name.startswith(UNIDENTIFIED)]
    return {name: values[name] for name in names if values[name] != defaults[name]}


def differences(a: Config, b: Config) -> dict:
    """{field: (its value in `a`, in `b`)} where these differ, but for name and `UNIDENTIFIED`
    fields; `ABSENT` in a family that lacks it."""
    of_a, of_b = flat(to_dict(a), ROOT), flat(to_dict(b), ROOT)
    pairs = {name: (of_a.get(name, ABSENT), of_b.get(name, ABSENT)) for name in of_a | of_b}
    return {
        name.removeprefix(f"{ROOT}."): pair
        for name, pair in pairs.items()
        if pair[0] != pair[1] and not name.startswith((*UNIDENTIFIED, f"{ROOT}.name"))
    }


def fingerprint(config: Config) -> str:
    """Eight hex digits of the identity: configs that share them train alike."""
    text = json.dumps(identity(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def traced_fields(config: Config) -> list[str]:
    """The fields, as 'training.learning_rate', in which trials of one program may differ."""
    leaves = settings.leaves(config, ROOT)
    return [name.partition(".")[2] for name, _, _, metadata in leaves if metadata["traced"]]


def _check_sweep(config: Config):
    """Raises ConfigError unless axes and search name fields that trials can differ in, with
    possible values."""
    axes, search = config.sweep.axes, config.sweep.search
    examples = (
        ("axes", axes, "a field's name and its values, as in (('task.grid', (8, 16)),)"),
        ("search.per", search.per, "a unit's name and its multiples, as in (('cell', (0.5, 1)),)"),
    )
    for field_name, pairs, example in examples:
        are_pairs = all(
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], tuple)
            for pair in pairs
        )
        require(are_pairs, f"sweep.{field_name}", pairs, f"must be pairs of {example}")
    varied = [*(name for name, _ in axes), *filter(None, [search.field])]
    require(len(set(varied)) == len(varied), "sweep.axes", axes, "a field is named twice")
    fixed = ("sweep.", "execution.", "training.keep", "training.seeds", "name")
    for name in varied:
        varies = type(name) is str and not name.startswith(fixed)
        require(varies, "sweep.axes", name, "trials cannot differ in it")
    single = dataclasses.replace(config, sweep=SweepConfig())
    for name, values in axes:
        distinct = 0 < len(values) == len(set(values))
        require(distinct, "sweep.axes", axes, f"{name!r} needs values, each of them once")
        for value in values:
            with settings.naming("config.sweep.axes"):
                changed(single, {name: value})
    if not search.field:
        return
    value = flat(to_dict(config), ROOT).get(f"{ROOT}.{search.field}")
    is_number = type(value) in (int, float)
    require(is_number, "sweep.search.field", search.field, "is no numeric field")
    require(search.scores, "sweep.search.scores", (), "name one or more of the task's scores")
    numbers = [*search.start, *(multiple for _, multiples in search.per for multiple in multiples)]
    positive = numbers and all(type(x) in (int, float) and 0 < x < math.inf for x in numbers)
    hint = "start and per need positive numbers to begin with"
    require(positive, "sweep.search.start", search.start, hint)
