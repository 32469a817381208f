"""Which trials a sweep is made of, and which single run each of them is."""

import dataclasses
import functools
from itertools import product

import jax
import numpy as np

from compgen_jax.config import Config, ConfigError, SweepConfig, changed, field_value
from compgen_jax.metrics import scaling
from compgen_jax.settings import demand
from compgen_jax.sweeps.table import Layout, SweepTrial, Table
from compgen_jax.tasks import task as tasks
from compgen_jax.training import contracts

PLACES = ("seen", "unseen", "ood", "real")


def layout(config: Config) -> Layout:
    """The columns of the sweep's table, from its axes and its task's scores."""
    search = config.sweep.search.field
    kind = type(field_value(config, search)) if search else None
    names = ("train_loss", *(f"{where}.{name}" for where in PLACES for name in score_names(config)))
    return Layout(dict(config.sweep.axes), search, kind, names)


def score_names(config: Config) -> tuple[str, ...]:
    """What the task scores and derives, in alphabetical order."""
    return tasks.number_names(task_of(config, _combinations(config)[0]))


def first_trials(config: Config) -> list[SweepTrial]:
    """Every combination of the axes with every seed, and a search's first values, in order."""
    return sorted(
        SweepTrial(axes, seed, value)
        for axes in _combinations(config)
        for value in _first_values(config, axes)
        for seed in config.training.seeds
    )


def check_search(config: Config):
    """Raises ConfigError for a score or a unit that no task of a search has, and for a score that
    cannot reach the target, as one that falls when a model gets better."""
    search, combinations = config.sweep.search, _combinations(config)
    task, of_search = task_of(config, combinations[0]), "config.sweep.search"
    units = {name for axes in combinations for name in task_of(config, axes).units}
    per = [name for name, _ in search.per]
    for field, kind, names, known in (
        ("scores", "score", search.scores, tasks.number_names(task)),
        ("per", "unit", per, sorted(units)),
    ):
        for name in names:
            hint = f"is no {kind} of the task; it has {', '.join(known) or 'none'}"
            demand(name in known, f"{of_search}.{field}: {name!r} {hint}")
    for score in search.scores:
        if score in tasks.score_names(task) and (best := _best(task, score)) < search.target:
            raise ConfigError(
                f"{of_search}.scores: {score!r} is {best:g} for a perfect model, below the target "
                f"{search.target:g}: a search needs a score that rises, as a share does"
            )
    if not any(_first_values(config, axes) for axes in combinations):
        raise ConfigError(f"{of_search}.per: the task has a size for none of {', '.join(per)}")


def _best(task: tasks.Task, score: str) -> float:
    """The score of a perfect prediction at the first seen point."""
    point = tasks.points(task)[tasks.regions(task)["id"]][0]

    @jax.jit
    def perfect(point):
        truth = tasks.truth(task, task.example(jax.random.key(0), point).target)
        return task.scores(truth, truth, point)[score]

    return float(perfect(point))


def _combinations(config: Config) -> list[tuple]:
    """The values of the axes, in every combination."""
    return list(product(*(values for _, values in config.sweep.axes)))


def _first_values(config: Config, axes: tuple) -> list:
    search = config.sweep.search
    if not search.field:
        return [0]
    units = task_of(config, axes).units
    sizes = ((units.get(name), multiples) for name, multiples in search.per)
    values = [*search.start, *(each * size for size, many in sizes if size for each in many)]
    if type(field_value(config, search.field)) is int:
        values = [max(1, round(value)) for value in values]
    return sorted(set(values))


def curves(trials) -> dict[SweepTrial, list[SweepTrial]]:
    """Trials that differ in the searched value alone, in order, by what they share."""
    by_curve = {}
    for trial in sorted(trials):
        by_curve.setdefault(trial._replace(value=0), []).append(trial)
    return by_curve


def refined_trials(config: Config, results: Table) -> list[SweepTrial]:
    """New trials around the crossings of every curve of a search, from the earlier results, in
    order."""
    search, columns, refined = config.sweep.search, layout(config).measures, set()
    if not search.field:
        return []
    whole = type(field_value(config, search.field)) is int
    for curve, trials in curves(results).items():
        values = [trial.value for trial in trials]
        for where, score in searched(config, curve):
            column = columns.index(f"{where}.{score}")
            scores = [float(results[trial][column]) for trial in trials]
            chosen = scaling.refinement(
                values, scores, search.target, search.refine_with, whole,
                lambda value, curve=curve: _is_possible(config, curve._replace(value=value)),
            )  # fmt: skip
            refined |= {curve._replace(value=value) for value in chosen}
    return sorted(refined)


def _is_possible(config: Config, trial: SweepTrial) -> bool:
    try:
        contracts.check(config_of(config, trial))
    except ConfigError:
        return False
    return True


def searched(config: Config, trial: SweepTrial) -> list[tuple[str, str]]:
    """The (place, score) around whose thresholds the search puts its values."""
    task = task_of(config, trial.axes)
    places = scaling.searched_places(bool(np.any(task.held_out(tasks.points(task)))))
    return [(where, score) for score in config.sweep.search.scores for where in places]


def readings(config: Config, trial: SweepTrial) -> list[tuple[str, str]]:
    """(place, score) for every score that is a share, in each of the places where the trial has
    points. The table answers them all, most finely the searched ones."""
    places = {"unseen": 0, "real": 0} | dict(searched(config, trial))
    shares = [name for name in score_names(config) if name.endswith("accuracy")]
    scores = dict.fromkeys([*config.sweep.search.scores, *shares])
    return [(where, score) for score in scores for where in places]


def config_of(config: Config, trial: SweepTrial) -> Config:
    """The single run that a trial is: `launch.train` of it trains the same model."""
    values = dict(zip(dict(config.sweep.axes), trial.axes, strict=True))
    if config.sweep.search.field:
        values[config.sweep.search.field] = trial.value
    name = "_".join([config.name, *map(str, values.values())])
    values |= {"training.seeds": (trial.seed,), "name": name}
    return changed(dataclasses.replace(config, sweep=SweepConfig()), values)


@functools.lru_cache(maxsize=256)
def task_of(config: Config, axes: tuple) -> tasks.Task:
    """The task at these values of the axes, with the searched field as the config has it. Raises
    ConfigError, with the values of the axes, for an impossible task."""
    search = config.sweep.search.field
    value = field_value(config, search) if search else 0
    try:
        return contracts.check(config_of(config, SweepTrial(axes, config.training.seeds[0], value)))
    except ConfigError as error:
        pairs = zip(config.sweep.axes, axes, strict=True)
        shown = ", ".join(f"{name}={value!r}" for (name, _), value in pairs)
        raise ConfigError(f"config.sweep: {shown}: {error}") from error


def numeric_axes(config: Config) -> list[str]:
    """The axes of several positive numbers: along them a search has an exponent."""
    return [
        name
        for name, values in config.sweep.axes
        if len(values) > 1 and all(type(v) in (int, float) and v > 0 for v in values)
    ]
