"""A sweep from config to table: trials of any grid, data set and seed, in batches. `trials.csv` is
rewritten after each, `summary.json` is written last.
"""

import contextlib
import functools
import time
import zlib
from collections import Counter
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, ConfigError, identity
from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory, logs, sweep_table, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.study import seed_trials
from compgen_jax.runs.sweep_summary import summarize
from compgen_jax.runs.sweep_table import SweepTrial, Table, single_run
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.training import contracts, loop, padding, processes
from compgen_jax.training.loop import Trial
from compgen_jax.training.program import Program
from compgen_jax.training.trials import split, trials_side_by_side

MOST_SIDE_BY_SIDE = 256  # beyond it a device is busy, and a kill would lose more
FILLED = 7 / 8  # of the memory
LOSS_STEPS = 50  # the last ones, over which a training loss is the mean


def run(config: Config, workdir, progress: bool = True) -> dict:
    """Trains what is missing of the sweep in `workdir`, to the same table; returns its summary.
    Raises ConfigError or RunError before any compilation."""
    trials = sweep_table.first_trials(config)
    sweep_table.check(config, trials)
    workdir, start = Path(workdir), time.perf_counter()
    with contextlib.ExitStack() as claims:
        results = _start(config, workdir, trials, claims)
        known, groups = len(results), []
        writes = jax.process_index() == 0
        with logs.Bar(
            total=0,
            desc=config.name,
            disable=not (progress and writes),
            bar_format="{desc}{postfix} {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]",
        ) as bar:
            for refinement in range(1 + config.sweep.search.refinements):
                new = trials
                if refinement:
                    new = sweep_table.refined_trials(config, {key: results[key] for key in trials})
                # also for trials that are in the table: a resumed sweep compiles the same programs
                trained = {program for group in groups for program in group.programs}
                unknown = [t for t in new if single_run(config, t).program not in trained]
                groups += trial_groups(config, unknown)
                _train(config, workdir, groups, new, results, bar)
                trials = sorted({*trials, *new})
        summary = directory.clean(summarize(config, {key: results[key] for key in trials}))
        if writes and (len(results) > known or not directory.is_finished(workdir)):
            seconds = {"seconds_since_last_start": round(time.perf_counter() - start, 1)}
            facts = logs.environment() | seconds | {"processes": jax.process_count()}
            directory.write_json(workdir / "environment.json", facts)
            directory.write_json(workdir / "summary.json", summary)
        return summary


class FinishedSweep(NamedTuple):
    """A finished sweep: its config, and its table as `sweep_table.rows`."""

    config: Config
    rows: list[dict]

    @property
    def seeds(self) -> tuple:
        return self.config.training.seeds


def load(workdir) -> FinishedSweep:
    """A finished sweep. Raises RunError, also for one whose table lacks trials."""
    workdir = Path(workdir)
    config = directory.read_config(workdir)
    if not config.is_sweep:
        raise RunError(f"{workdir}: holds one run, not a sweep")
    if not directory.is_finished(workdir):
        raise RunError(f"{workdir}: its sweep is not finished; compgen-jax sweep resumes it")
    table = _read(workdir, config)
    if len(table) < (trained := directory.read_json(workdir / "summary.json")["trials"]):
        raise RunError(
            f"{workdir}/trials.csv has {len(table)} trials of {trained}; remove summary.json, and "
            "compgen-jax sweep trains the others"
        )
    return FinishedSweep(config, sweep_table.rows(config, table))


def _start(config: Config, workdir: Path, trials: list[SweepTrial], claims) -> Table:
    """What the table has already, for all processes: the first claims the directory."""
    execution = config.execution.trials_per_device, config.execution.max_padding
    digest = np.int32(zlib.crc32(f"{identity(config)} {execution}".encode()) >> 1)
    if len(set(processes.gather(digest).tolist())) > 1:
        raise RunError("the processes have different configs; give all of them the same command")
    error, text = None, None
    if jax.process_index() == 0:
        try:
            claims.enter_context(directory.claim(workdir, config))
            single = single_run(config, trials[0])
            code = user_code.check(workdir, single.config, single.task)
            directory.begin(workdir, config, code)
            text = sweep_table.to_text(config, _read(workdir, config))
        except (RunError, OSError) as raised:
            error = raised
    text = processes.text_of_first(text)
    if text is None:
        raise error or RunError("the first process cannot work in its --workdir; it says why")
    return sweep_table.from_text(config, text)


def _read(workdir: Path, config: Config) -> Table:
    """Raises RunError for a damaged table."""
    path = workdir / "trials.csv"
    try:
        return sweep_table.from_text(config, path.read_text() if path.exists() else "")
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}; move it away to begin anew") from error


def _train(config, workdir, groups, trials, results: Table, bar):
    """Trains the trials that `results` lacks and adds them, batch by batch."""
    missing = {trial for trial in trials if trial not in results}
    bar.total += len(missing)
    for group in groups if missing else ():
        pending = [batch for batch in group.batches(trials) if missing.intersection(batch)]
        # in step: every process trains one batch, and all hear of all results
        for first in range(0, len(pending), jax.process_count()):
            batches = pending[first : first + jax.process_count()]
            count = sum(trial in missing for batch in batches for trial in batch)
            mine = batches[jax.process_index()] if jax.process_index() < len(batches) else []
            measured = processes.gather(group.train(mine, bar, count))
            for batch, values_TxM in zip(batches, measured[: len(batches)], strict=True):
                for trial, values_M in zip(batch, values_TxM[: len(batch)], strict=True):
                    results.setdefault(trial, values_M)
            bar.set_postfix_str(f"{bar.n:.0f}/{bar.total} trials", refresh=False)
            if jax.process_index() == 0:
                text = sweep_table.to_text(config, results)
                directory.write_text(workdir / "trials.csv", text)
                logs.write(workdir, f"{len(results)} trials")


def trial_groups(config: Config, trials) -> list["TrialGroup"]:
    """The trials by program. Small grids are padded where trials train side by side."""
    alike = {}  # a run of each program, by what may share a program, by grid
    pads = trials_side_by_side(2, config.execution.trials_per_device) > 1
    for single in [single_run(config, trial) for trial in trials]:
        program, grid = single.program, getattr(single.config.task, "grid", 0)
        # rows of a table can be padded, a stream's own shape cannot
        if pads and single.config.model.pads and grid and single.capacity:
            program = tuple(item for item in program[:-1] if item[0] != "config.task.grid")
        alike.setdefault(program, {}).setdefault(grid, single)
    return [
        TrialGroup(config, [by_grid[grid] for grid in grids], trials)
        for by_grid in alike.values()
        for grids in padding.group_grids(by_grid, config.execution.max_padding)
    ]


class TrialGroup:
    """Those of some trials that share a program. singles: the runs of its tasks, the largest
    last."""

    def __init__(self, config: Config, singles: list[sweep_table.SingleRun], trials):
        self.config, self.singles = config, singles
        self.programs = tuple(single.program for single in singles)
        self.measures = sweep_table.measures(config)
        self.trials = [t for t in trials if single_run(config, t).program in self.programs]
        runs = [single_run(config, trial) for trial in self.trials]
        # the trials of a batch take as many steps, see `batches`
        self.most = max(Counter(run.steps for run in runs).values())
        self.points = max(len(tasks.points(run.task)) for run in runs) + config.sweep.real_points
        # a search stays below its first largest number
        axes, first = {trial.axes for trial in self.trials}, sweep_table.first_trials(config)
        self.rows = max(single_run(config, t).capacity for t in first if t.axes in axes)

    @cached_property
    def program_and_width(self) -> tuple[Program, int]:
        """The program, and how many trials it trains side by side on a device."""
        devices, derived = jax.local_devices(), self.singles[0].task.derived
        per_device = -(-self.most // (len(devices) * jax.process_count()))
        wanted = self.config.execution.trials_per_device
        width = min(trials_side_by_side(MOST_SIDE_BY_SIDE, wanted), per_device)

        def measure(scores, masks):
            means = evaluation.region_means(scores, masks, derived)
            return jnp.stack([means[name] for name in self.measures[1:]])

        members = tuple(single.task for single in self.singles)
        program = Program(self.singles[0].config, members, width, measure)
        if width > 1 and not wanted:
            if limit := (devices[0].memory_stats() or {}).get("bytes_limit"):
                program.spread_over_devices(1)
                trial = jax.tree.map(lambda leaf: leaf[None], self._trial(self.trials[0]))
                program.compile(trial, with_init=False)
                width = min(width, max(1, int(FILLED * limit / program.memory())))
            # every process cuts the same batches, whatever memory it has
            width = int(processes.gather(np.array([width], np.int32)).min())
        # the least width that needs no more batches: fewer trials are idle in the last
        width = -(-per_device // -(-per_device // width))
        program.spread_over_devices(width)
        return program, width

    @property
    def size(self) -> int:
        """How many trials make a batch."""
        return self.program_and_width[1] * len(jax.local_devices())

    def batches(self, trials) -> list[list[SweepTrial]]:
        """Those of the trials that this program trains, in batches of as many steps."""
        by_steps = {}
        for trial in trials:
            single = single_run(self.config, trial)
            if single.program in self.programs:
                by_steps.setdefault(single.steps, []).append(trial)
        return [
            alike[i : i + self.size]
            for alike in by_steps.values()
            for i in range(0, len(alike), self.size)
        ]

    def train(self, batch: list[SweepTrial], bar: logs.Bar, count: int):
        """(size, M) float32 measures of a batch's trials; NaN where a loss stopped being finite,
        and beyond the batch."""
        values = np.full((self.size, len(self.measures)), np.nan, np.float32)
        if not batch:
            return values
        program, width = self.program_and_width
        advice = f"say --config.execution.trials_per_device={width // 2}, not {width}"
        if width == 1:
            advice = "lower config.training.batch_size or config.model.width"
        single = single_run(self.config, batch[0])

        def after_chunk(losses):
            bar.update(min(count * losses.shape[1] / single.steps, bar.total - bar.n))

        with logs.memory_explained(advice):
            idle = [batch[-1]] * (self.size - len(batch))
            trials = [self._trial(trial) for trial in batch + idle]
            trials = split(jax.tree.map(lambda *leaves: jnp.stack(leaves), *trials))
            state = program.init(trials)
            state, losses = program.advance(trials, state, single.steps, self.size, after_chunk)
            values[:, 0] = losses[:, -LOSS_STEPS:].mean(axis=1)
            values[:, 1:] = program.score(trials, state, self.size)
        # a model that diverged at its last step has a finite loss, and no finite error anywhere
        errors = [name.endswith(f".{single.task.error}") for name in self.measures]
        values[~np.isfinite(values[:, 0]) | ~np.isfinite(values[:, errors]).any(axis=1)] = np.nan
        return values

    def _trial(self, trial: SweepTrial) -> Trial:
        """A trial, scored at all cells, then at padding, then at real points."""
        single, key = single_run(self.config, trial), jax.random.key(trial.seed)
        task, index = single.task, self.programs.index(single.program)
        trained, real = _drawn(single.config, index, self.rows, self.config.sweep.real_points, key)
        try:
            contracts.check_dataset(task, trial.seed, trained.dataset)
        except ConfigError as error:
            columns = sweep_table.describe(self.config, trial)
            raise ConfigError(f"config.sweep: {columns}: {error}") from error
        cells = tasks.points(task)
        held_out = np.asarray(task.held_out(cells))
        seen = _seen(task, trained.dataset, held_out)
        beyond = self.points - len(cells)
        masks = {"seen": seen, "unseen": ~seen & ~held_out, "ood": held_out}
        masks = {region: jnp.asarray(np.pad(mask, (0, beyond))) for region, mask in masks.items()}
        masks["real"] = jnp.arange(self.points) >= self.points - len(real)
        padded = np.repeat(cells[:1], beyond - len(real), axis=0)
        points = jnp.asarray(np.concatenate([cells, padded, real]))
        nearest = jnp.asarray(task.nearest(points)) if task.nearest else None
        return trained._replace(points=points, masks=masks, nearest=nearest)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _drawn(single: Config, index: int, rows: int, real_points: int, key):
    """The trial of a key, and real points (R, F) of the ID region."""
    task = single.task.make()
    trials = seed_trials(single, task, key[None], rows, index)
    points = tasks.real_points(task, loop.stream(key, "test"), real_points)
    return jax.tree.map(itemgetter(0), trials), points


def _seen(task: tasks.Task, dataset, held_out):
    """(B,) bool: the cells that a trial is trained on; of a stream, all that are not held out."""
    if not isinstance(dataset, sampling.Table) or not task.examples:
        return ~held_out
    points = np.asarray(dataset.points)[: int(dataset.count)]
    points = points[~np.isnan(points).any(axis=1)]
    if not tasks.has_grid(task):
        return (tasks.points(task)[:, None] == points[None]).all(axis=2).any(axis=1)
    seen = np.zeros(len(held_out), bool)
    seen[tasks.nearest_cell(task.factors, points)] = True
    return seen
