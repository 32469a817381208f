"""Compile groups: the trials of a sweep by program, trained in batches as the devices hold them."""

import collections
import functools
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, ConfigError
from compgen_jax.metrics import evaluation
from compgen_jax.models import model as models
from compgen_jax.runs import out_of_memory
from compgen_jax.sweeps import plan, processes
from compgen_jax.sweeps.table import SweepTrial
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.training import contracts, loop, padding, trials
from compgen_jax.training.program import Program

MOST_SIDE_BY_SIDE = 256  # beyond it a device is busy, and a kill would lose more
LOSS_STEPS = 50  # the last ones, over which a training loss is the mean


class SingleRun(NamedTuple):
    """The run that a trial is, whatever its seed."""

    config: Config
    task: tasks.Task
    program: tuple  # see `loop.program`
    steps: int
    capacity: int  # rows of its data set, if that is a table
    work: int  # of one step, in numbers of the model's output


def single_run(config: Config, trial: SweepTrial) -> SingleRun:
    """The run of a trial. Raises ConfigError for an impossible one."""
    return _single_run(config, trial._replace(seed=config.training.seeds[0]))


@functools.lru_cache(maxsize=4096)
def _single_run(config: Config, trial: SweepTrial) -> SingleRun:
    single = plan.config_of(config, trial)
    task = contracts.check(single)
    dataset = jax.eval_shape(task.dataset, jax.eval_shape(jax.random.key, 0))
    return SingleRun(
        single, task, loop.program(single, task), loop.total_steps(single, task),
        sampling.capacity(dataset), models.size(tasks.shapes(task)[1]),
    )  # fmt: skip


def capacities(config: Config, sweep_trials) -> dict:
    """Rows of the largest training set by the values of the axes."""
    rows = collections.defaultdict(int)
    for trial in sweep_trials:
        rows[trial.axes] = max(rows[trial.axes], single_run(config, trial).capacity)
    return dict(rows)


def compile_groups(config: Config, sweep_trials, rows: dict | None = None) -> list["CompileGroup"]:
    """The trials by program. Small grids are padded only where trials train side by side. `rows`:
    of the largest training sets to come, as `capacities`; by default of these trials."""
    rows = rows or capacities(config, sweep_trials)
    singles = {}  # the single run of every program
    for trial in sweep_trials:
        single = single_run(config, trial)
        singles.setdefault(single.program, single)
    side_by_side, alike = _side_by_side(config, 2) > 1, {}  # by grid: what may share a program
    for program, single in singles.items():
        grid = getattr(single.config.task, "grid", 0)
        # rows of a table can be padded, a stream's own shape cannot
        if side_by_side and single.config.model.pads and grid and single.capacity:
            program = tuple(item for item in program[:-1] if item[0] != "config.task.grid")
        alike.setdefault(program, {})[grid] = single
    return [
        CompileGroup(config, [by_grid[grid] for grid in grids], sweep_trials, rows)
        for by_grid in alike.values()
        for grids in padding.group_grids(by_grid, config.execution.max_padding)
    ]


class CompileGroup:
    """Trials that share a compiled program.

    runs: the single runs of its tasks, whatever their seeds, the largest last.  sweep_trials: the
    first trials, of which it trains some.  rows: of the largest training sets, as `capacities`.
    """

    def __init__(self, config: Config, runs: list[SingleRun], sweep_trials, rows: dict):
        self.config, self.runs = config, runs
        self.programs = tuple(single.program for single in runs)
        self.sweep_trials = [trial for trial in sweep_trials if self.trains(trial)]
        self.measures = plan.layout(config).measures
        self.rows = max(rows[trial.axes] for trial in self.sweep_trials)
        cells = [len(tasks.points(single_run(config, trial).task)) for trial in self.sweep_trials]
        self.points = max(cells) + config.sweep.real_points

    def trains(self, trial: SweepTrial) -> bool:
        return single_run(self.config, trial).program in self.programs

    @cached_property
    def _program_and_width(self) -> tuple[Program, int]:
        """The program, and how many trials it trains side by side on a device.

        Made when first asked for: on an accelerator it is compiled to learn its need of memory.
        """
        devices, derived = jax.local_devices(), self.runs[0].task.derived
        # the trials of a batch take as many steps, see `batches`
        steps = [single_run(self.config, trial).steps for trial in self.sweep_trials]
        alike = max(collections.Counter(steps).values())
        per_device = -(-alike // (len(devices) * processes.count()))
        width = min(_side_by_side(self.config, MOST_SIDE_BY_SIDE), per_device)
        width = balanced(width, per_device)

        def measure(scores, masks):
            means = evaluation.region_means(scores, masks, derived)
            return jnp.stack([means[name] for name in self.measures[1:]])

        members = tuple(single.task for single in self.runs)
        program = Program(self.runs[0].config, members, width, measure)
        if width > 1 and not self.config.execution.trials_per_device:
            fit = program.trials_that_fit(self._slot(self.sweep_trials[0]), devices[0])
            # every process cuts the same batches, whatever memory it has
            widths = processes.gather(np.array([min(width, fit or width)], np.int32))
            width = balanced(int(widths.min()), per_device)
        program.spread_over_devices(width)
        return program, width

    @property
    def size(self) -> int:
        """How many trials make a batch."""
        return self._program_and_width[1] * len(jax.local_devices())

    def batches(self, sweep_trials) -> list[list[SweepTrial]]:
        """Those of the trials that this program trains, in batches of as many steps."""
        by_steps = {}
        for trial in filter(self.trains, sweep_trials):
            by_steps.setdefault(single_run(self.config, trial).steps, []).append(trial)
        return [
            alike[i : i + self.size]
            for alike in by_steps.values()
            for i in range(0, len(alike), self.size)
        ]

    def train(self, batch_of_trials: list[SweepTrial] | None, on_share):
        """(size, M) float32 measures of a batch's trials, trained to their end.

        NaN where a loss stopped being finite, and beyond the batch, or everywhere without one.
        `on_share` is called with every share of the trials' work that is done. Raises RunError
        where the device's memory does not hold them.
        """
        if batch_of_trials is None:
            return np.full((self.size, len(self.measures)), np.nan, np.float32)
        program, width = self._program_and_width
        advice = f"say --config.execution.trials_per_device={width // 2}, not {width}"
        if width == 1:
            advice = "lower config.training.batch_size or config.model.width"
        with out_of_memory.explained(advice):
            slots = self._slots(batch_of_trials)
            single = single_run(self.config, batch_of_trials[0])
            state, losses = program.advance(
                slots, program.init(slots), single.steps, self.size,
                lambda losses: on_share(losses.shape[1] / single.steps),
            )  # fmt: skip
            loss = losses[:, -LOSS_STEPS:].mean(axis=1, keepdims=True)
            measured = program.score(slots, state, self.size)
        values = np.concatenate([loss, measured], axis=1).astype(np.float32)
        # a model that diverged at its last step has a finite loss, and no finite error anywhere
        errors = [self.measures.index(f"{where}.{single.task.error}") for where in plan.PLACES]
        values[~np.isfinite(values[:, 0]) | ~np.isfinite(values[:, errors]).any(axis=1)] = np.nan
        return values

    def rehearse(self, batch_of_trials: list[SweepTrial]) -> tuple[Program, loop.Trial]:
        """The program, and what it is given to train a batch."""
        return self._program_and_width[0], self._slots(batch_of_trials)

    def _slots(self, batch_of_trials: list[SweepTrial]) -> loop.Trial:
        """The trials of a batch, the last one repeated to fill it, split over the devices."""
        idle = [batch_of_trials[-1]] * (self.size - len(batch_of_trials))
        slots = [self._slot(trial) for trial in batch_of_trials + idle]
        return trials.split(jax.tree.map(lambda *leaves: jnp.stack(leaves), *slots))

    def _slot(self, trial: SweepTrial) -> loop.Trial:
        """A trial, scored at all cells, then at padding, then at real points."""
        single, key = single_run(self.config, trial), jax.random.key(trial.seed)
        draws = _draws(single.config, self.config.sweep.real_points)
        dataset, real = (draw(key) for draw in draws)
        try:
            contracts.check_dataset(single.task, dataset, trial.seed)
        except ConfigError as error:
            shown = plan.layout(self.config).describe(trial)
            raise ConfigError(f"config.sweep: {shown}: {error}") from error
        cells = tasks.points(single.task)
        held_out = np.asarray(single.task.held_out(cells))
        seen = _seen(single.task, dataset, held_out)
        beyond = self.points - len(cells)
        masks = {"seen": seen, "unseen": ~seen & ~held_out, "ood": held_out}
        masks = {where: jnp.asarray(np.pad(mask, (0, beyond))) for where, mask in masks.items()}
        masks["real"] = jnp.arange(self.points) >= self.points - len(real)
        padded = np.repeat(cells[:1], beyond - len(real), axis=0)
        hyper, dataset = loop.hyper_of(single.config), sampling.padded(dataset, self.rows)
        task_index = jnp.int32(self.programs.index(single.program))
        points = jnp.asarray(np.concatenate([cells, padded, real]))
        nearest = jnp.asarray(single.task.nearest(points)) if single.task.nearest else None
        return loop.Trial(key, hyper, dataset, task_index, points, masks, nearest)


def _side_by_side(config: Config, count: int) -> int:
    """How many of `count` trials train side by side on a device, memory aside."""
    platform = jax.local_devices()[0].platform
    return trials.trials_side_by_side(count, config.execution.trials_per_device, platform)


def balanced(width: int, count: int) -> int:
    """The least width that needs no more batches for `count` trials: fewer are idle in the last."""
    return -(-count // -(-count // width))


@functools.lru_cache(maxsize=4096)
def _draws(single: Config, n_points: int):
    """The functions key -> data set and key -> real points (R, F) of the ID region, jitted; R is 0
    where no factor is real.

    They are two programs: data sets of other sizes have the same real points, whose program then
    comes from jax's compilation cache.
    """
    task = single.task.make()

    def real_points(key):
        return tasks.real_points(task, loop.stream(key, "test"), n_points)

    return jax.jit(functools.partial(loop.dataset_of, task)), jax.jit(real_points)


def _seen(task: tasks.Task, dataset, held_out):
    """(B,) bool: the cells of the points that a trial is trained on; for a stream, all cells that
    are not held out."""
    if not isinstance(dataset, sampling.Table) or not task.examples:
        return ~held_out
    points = np.asarray(dataset.points)[: int(dataset.count)]
    points = points[~np.isnan(points).any(axis=1)]
    if not tasks.has_grid(task):
        return (tasks.points(task)[:, None] == points[None]).all(axis=2).any(axis=1)
    seen = np.zeros(len(held_out), bool)
    seen[tasks.nearest_cell(task.factors, points)] = True
    return seen
