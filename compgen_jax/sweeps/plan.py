"""Which trials a sweep is made of, and which single run each of them is."""

import dataclasses
from itertools import product
from typing import NamedTuple

import numpy as np

from compgen_jax.config import Config, ConfigError, SweepConfig, changed, field_value
from compgen_jax.metrics import scaling
from compgen_jax.settings import in_own_files
from compgen_jax.sweeps.table import Case, Layout, Table
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

PLACES = ("seen", "unseen", "ood", "real")


class Reading(NamedTuple):
    """Where which score is read."""

    where: str
    score: str

    @property
    def column(self) -> str:
        return f"{self.where}.{self.score}"


def layout(config: Config) -> Layout:
    """The columns of the sweep's table, from its axes and from what its task scores."""
    search = config.sweep.search.field
    kind = type(field_value(config, search)) if search else None
    names = ("train_loss", *(f"{where}.{name}" for where in PLACES for name in score_names(config)))
    return Layout(dict(config.sweep.axes), search, kind, names)


def score_names(config: Config) -> tuple[str, ...]:
    """What the task scores and derives, in alphabetical order."""
    return tasks.number_names(_task_of(config, _any_case(config)))


def first_cases(config: Config) -> list[Case]:
    """Every combination of the axes with every seed, and a search's first values, in order."""
    combinations = product(*(values for _, values in config.sweep.axes))
    return sorted(
        Case(axes, seed, value)
        for axes in combinations
        for value in _first_values(config, axes)
        for seed in config.training.seeds
    )


def _any_case(config: Config) -> Case:
    axes = tuple(values[0] for _, values in config.sweep.axes)
    return Case(axes, config.training.seeds[0], _base_value(config))


def _base_value(config: Config):
    """The searched field's own value, which stands for no other."""
    return field_value(config, config.sweep.search.field) if config.sweep.search.field else 0


def _first_values(config: Config, axes: tuple) -> list:
    search = config.sweep.search
    if not search.field:
        return [0]
    units = _task_of(config, Case(axes, 0, _base_value(config))).units
    found = list(search.start)
    found += [each * units[name] for name, multiples in search.per if name in units
              for each in multiples]  # fmt: skip
    if type(_base_value(config)) is int:
        found = [max(1, round(value)) for value in found]
    return sorted(set(found))


def curves(cases) -> dict[Case, list[Case]]:
    """Cases that differ in the searched value alone, in order, by what they share."""
    found = {}
    for case in sorted(cases):
        found.setdefault(case._replace(value=0), []).append(case)
    return found


def refined_cases(config: Config, results: Table) -> list[Case]:
    """New cases around the crossings of every curve of a search, from results of the earlier ones,
    in order."""
    search, columns = config.sweep.search, layout(config).measures
    found = set()
    for curve, cases in curves(results).items() if search.field else ():
        values = [case.value for case in cases]
        for reading in searched(config, curve):
            column = columns.index(reading.column)
            scores = [float(results[case][column]) for case in cases]
            whole = type(_base_value(config)) is int
            chosen = scaling.refinement(
                values, scores, search.target, search.refine_with, whole,
                lambda value, curve=curve: _can_be(config, curve._replace(value=value)),
            )  # fmt: skip
            found |= {curve._replace(value=value) for value in chosen}
    return sorted(found)


def _can_be(config: Config, case: Case) -> bool:
    try:
        loop.check(config_of(config, case))
    except ConfigError:
        return False
    return True


def searched(config: Config, case: Case) -> list[Reading]:
    """Those around whose thresholds the search puts its values."""
    task = _task_of(config, case._replace(value=_base_value(config)))
    places = scaling.searched_places(bool(np.any(task.held_out(tasks.points(task)))))
    return [Reading(where, score) for score in config.sweep.search.scores for where in places]


def readings(config: Config, case: Case) -> list[Reading]:
    """The target in each of the places that a case leaves to score, by every score that is a share.
    The table answers them all, most finely those that were searched."""
    places = {reading.where for reading in searched(config, case)} | {"unseen", "real"}
    scores = [*config.sweep.search.scores]
    scores += [name for name in score_names(config) if name.endswith("accuracy")]
    return [
        Reading(where, score)
        for score in dict.fromkeys(scores)
        for where in ("unseen", "real", "ood")
        if where in places
    ]


def config_of(config: Config, case: Case) -> Config:
    """The single run that a case is: `launch.train` of it trains the same model."""
    names = [name for name, _ in config.sweep.axes]
    values = dict(zip(names, case.axes, strict=True)) | {"training.seeds": (case.seed,)}
    if config.sweep.search.field:
        values[config.sweep.search.field] = case.value
    shown = [*case.axes, *([case.value] if config.sweep.search.field else [])]
    values["name"] = "_".join([config.name, *(str(each) for each in shown)])
    return changed(dataclasses.replace(config, sweep=SweepConfig()), values)


def _task_of(config: Config, case: Case) -> tasks.Task:
    """Raises ConfigError, with the values of the axes, for a task that cannot be."""
    try:
        single = config_of(config, case)
        with in_own_files(single.task):
            return single.task.make()
    except ConfigError as error:
        pairs = zip(config.sweep.axes, case.axes, strict=True)
        shown = ", ".join(f"{name}={value!r}" for (name, _), value in pairs)
        raise ConfigError(f"config.sweep: {shown}: {error}") from error


def numeric_axes(config: Config) -> list[str]:
    """The axes of several positive numbers: along them a search has an exponent."""
    return [
        name
        for name, values in config.sweep.axes
        if len(values) > 1 and all(type(v) in (int, float) and v > 0 for v in values)
    ]
