"""A sweep's trials, the single run that each of them is, and their table."""

import contextlib
import csv
import dataclasses
import functools
import io
from itertools import groupby, product, zip_longest
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from compgen_jax.config import Config, ConfigError, SweepConfig, changed, fingerprint
from compgen_jax.metrics import scaling
from compgen_jax.settings import demand, require
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import contracts, loop

REGIONS = "seen", "unseen", "ood", "real"


class SweepTrial(NamedTuple):
    """What distinguishes a trial from the others of its sweep; all but `value` name its curve."""

    axes: tuple  # the values of the sweep's axes, in their order
    seed: int
    value: Any = 0  # of the searched field; 0 where nothing is searched


Table = dict[SweepTrial, np.ndarray]  # the measures, float32; all NaN for a trial that failed


class SingleRun(NamedTuple):
    """The run that a trial is, whatever its seed."""

    config: Config
    task: Task
    program: tuple  # see `loop.program`
    steps: int
    capacity: int  # rows of its data set, if that is a table


def single_run(config: Config, trial: SweepTrial) -> SingleRun:
    """The run of a trial, with the first seed. Raises ConfigError for an impossible one."""
    return _single_run(config, trial._replace(seed=config.training.seeds[0]))


@functools.lru_cache(maxsize=4096)
def _single_run(config: Config, trial: SweepTrial) -> SingleRun:
    single = config_of(config, trial)
    try:
        task = contracts.check(single)
    except ConfigError as error:
        raise ConfigError(f"config.sweep: {describe(config, trial)}: {error}") from error
    steps = loop.schedule_of(single, task).total
    return SingleRun(single, task, loop.program(single, task), steps, loop.capacity(task))


def config_of(config: Config, trial: SweepTrial) -> Config:
    """The single run that a trial is: `launch.train` of it trains the same model."""
    own = values(config, trial)
    seeds, name = (own.pop("seed"),), "_".join([config.name, *map(str, own.values())])
    single = dataclasses.replace(config, sweep=SweepConfig())
    return changed(single, own | {"training.seeds": seeds, "name": name})


def task_of(config: Config, axes: tuple) -> Task:
    """The task at these values of the axes."""
    search = config.sweep.search.field
    value = attrgetter(search)(config) if search else 0
    return single_run(config, SweepTrial(axes, 0, value)).task


# --- the trials ------------------------------------------------------------------------------


def combinations(config: Config) -> list[tuple]:
    """The values of the axes, in every combination."""
    return list(product(*(values for _, values in config.sweep.axes)))


def first_trials(config: Config) -> list[SweepTrial]:
    """Every combination of the axes with every seed, and a search's first values, in order."""
    return sorted(
        SweepTrial(axes, seed, value)
        for axes in combinations(config)
        for value in _first_values(config, axes)
        for seed in config.training.seeds
    )


def _first_values(config: Config, axes: tuple) -> list:
    search = config.sweep.search
    if not search.field:
        return [0]
    units = task_of(config, axes).units
    sizes = ((units.get(name), multiples) for name, multiples in search.per)
    multiples = [factor * size for size, factors in sizes if size for factor in factors]
    values = [*search.start, *multiples]
    if type(attrgetter(search.field)(config)) is int:
        values = [max(1, round(value)) for value in values]
    return sorted(set(values))


def refined_trials(config: Config, results: Table) -> list[SweepTrial]:
    """New trials around the crossings of every curve of a search, ascending."""
    search, names, refined = config.sweep.search, measures(config), set()
    if not search.field:
        return []
    is_whole = type(attrgetter(search.field)(config)) is int
    for curve, group in groupby(sorted(results), lambda trial: trial._replace(value=0)):
        trials = list(group)  # that differ in the searched value alone

        def is_possible(value, curve=curve):
            with contextlib.suppress(ConfigError):
                return bool(single_run(config, curve._replace(value=value)))

        for region, score in product(searched(config, curve.axes), search.scores):
            column = names.index(f"{region}.{score}")
            refined |= {
                curve._replace(value=value)
                for value in scaling.refinement(
                    [trial.value for trial in trials],
                    [float(results[trial][column]) for trial in trials],
                    search.target,
                    search.refine_with,
                    is_whole,
                    is_possible,
                )
            }
    return sorted(refined)


def searched(config: Config, axes: tuple) -> tuple[str, ...]:
    """The regions around whose thresholds the search puts its values."""
    task = task_of(config, axes)
    return scaling.SEARCHED[bool(np.any(task.held_out(tasks.points(task))))]


def check(config: Config, trials: list[SweepTrial]):
    """Raises ConfigError for a config that is no sweep, or with an impossible search or trial."""
    hint = "name fields and their values, or train the one run of this config with compgen-jax"
    require(config.is_sweep, "sweep.axes", (), f"an empty sweep; {hint} train")
    search, flag = config.sweep.search, "config.sweep.search"
    if search.field:
        every = [task_of(config, axes) for axes in combinations(config)]
        task, per = every[0], [name for name, _ in search.per]
        units = sorted({name for task in every for name in task.units})
        for field, kind, names, known in (
            ("scores", "score", search.scores, tasks.number_names(task)),
            ("per", "unit", per, units),
        ):
            for name in names:
                hint = f"is no {kind} of the task; it has {', '.join(known) or 'none'}"
                demand(name in known, f"{flag}.{field}: {name!r} {hint}")
        hint = "falls when a model gets better: a search needs a score that rises, as a share does"
        demand(task.error not in search.scores, f"{flag}.scores: {task.error!r} {hint}")
        has_values = any(_first_values(config, axes) for axes in combinations(config))
        demand(has_values, f"{flag}.per: the task has a size for none of {', '.join(per)}")
    for trial in trials:
        hint = "has other scores than the first trial; give it a sweep, and so a table, of its own"
        alike = tasks.number_names(single_run(config, trial).task) == score_names(config)
        demand(alike, f"config.sweep: {describe(config, trial)}: {hint}")


# --- the table -------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def score_names(config: Config) -> tuple[str, ...]:
    """What the task scores and derives, in alphabetical order."""
    return tasks.number_names(task_of(config, combinations(config)[0]))


def measures(config: Config) -> tuple[str, ...]:
    """The names of the measured numbers."""
    names = product(REGIONS, score_names(config))
    return ("train_loss", *(f"{region}.{score}" for region, score in names))


def values(config: Config, trial: SweepTrial) -> dict:
    """The values in a trial's columns."""
    names = *dict(config.sweep.axes), "seed", config.sweep.search.field
    pairs = zip(names, (*trial.axes, trial.seed, trial.value), strict=True)
    return {name: value for name, value in pairs if name}


def describe(config: Config, trial: SweepTrial) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values(config, trial).items())


def rows(config: Config, table: Table) -> list[dict]:
    """The table as dicts of axes, `seed`, the searched field, `status` and measures, in order."""
    return [
        values(config, trial)
        | {"status": status(numbers)}
        | dict(zip(measures(config), numbers.tolist(), strict=True))
        for trial, numbers in sorted(table.items())
    ]


def status(numbers) -> str:
    """A trial has failed if its training loss is not finite."""
    return "ok" if np.isfinite(numbers[0]) else "failed"


def to_text(config: Config, table: Table) -> str:
    """CSV in the order of the trials, which reads back exactly; NaN is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = values(config, SweepTrial(combinations(config)[0], 0))
    writer.writerow(("config", *columns, "status", *measures(config)))
    for trial, numbers in sorted(table.items()):
        cells = ["" if np.isnan(number) else str(number) for number in numbers.astype(np.float32)]
        row = fingerprint(config), *values(config, trial).values(), status(numbers), *cells
        writer.writerow(row)
    return text.getvalue()


def from_text(config: Config, text: str) -> Table:
    """The table, without a last line that is cut off. Raises ValueError for another line that
    `to_text` does not make."""
    lines, search, table = text.rpartition("\n")[0].splitlines(), config.sweep.search.field, {}
    every = product(combinations(config), config.training.seeds)
    trials = {tuple(map(str, (*axes, seed))): SweepTrial(axes, seed) for axes, seed in every}
    for _, *record in list(csv.reader(lines))[1:]:
        count = 1 + len(config.sweep.axes)
        with contextlib.suppress(KeyError, ValueError, IndexError):  # leaves a gap, see below
            trial = trials[tuple(record[:count])]
            if search:
                value = type(attrgetter(search)(config))(record[count])
                trial = trial._replace(value=value)
                first = _first_values(config, trial.axes)
                if not first[0] <= value <= first[-1]:
                    continue
            numbers = [float(number or "nan") for number in record[-len(measures(config)) :]]
            table[trial] = np.array(numbers, np.float32)
    expected = to_text(config, table).splitlines() if lines else []
    for number, (line, wanted) in enumerate(zip_longest(lines, expected), start=1):
        if line != wanted:
            raise ValueError(f"line {number} is no line of this sweep's table")
    return table
