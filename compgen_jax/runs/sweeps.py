"""A sweep from config to table: trials of any grid, data set and seed, in batches.

DIR/config.json       what the sweep is            written first
DIR/trials.csv        a row for each trial         rewritten, atomically, after every batch
DIR/environment.json  versions, devices, seconds
DIR/summary.json      thresholds and exponents     written last: the sweep is finished
"""

import contextlib
import functools
import sys
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
from compgen_jax.runs.results import seed_keys
from compgen_jax.runs.study import seed_trials
from compgen_jax.runs.sweep_summary import summarize
from compgen_jax.runs.sweep_table import SweepTrial, Table, single_run
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.training import contracts, loop, padding, processes
from compgen_jax.training.loop import Trial
from compgen_jax.training.program import Program, side_by_side
from compgen_jax.training.trials import split

MOST_SIDE_BY_SIDE = 256  # beyond it a device is busy, and a kill would lose more
LOSS_STEPS = 50  # the last ones, over which a training loss is the mean


def run(config: Config, workdir, progress: bool = True) -> dict:
    """Trains what is missing of the sweep in `workdir`; returns its summary. A killed sweep goes on
    after its last batch, to the same table. Raises ConfigError or RunError before any
    compilation."""
    trials = sweep_table.first_trials(config)
    sweep_table.check(config, trials)
    workdir, start = Path(workdir), time.perf_counter()
    with contextlib.ExitStack() as claims:
        results = _start(config, workdir, trials, claims)
        known, groups = len(results), []
        writes = jax.process_index() == 0
        if writes and not directory.is_finished(workdir):
            logs.begin(workdir, config)
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
                unknown = [
                    trial for trial in new if not any(group.trains(trial) for group in groups)
                ]
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
    table, _ = _read(workdir, config)
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
            directory.begin(workdir, config)
            user_code.remember(workdir, code)
            table, cut = _read(workdir, config)
            if cut:
                print(
                    f"{workdir}/trials.csv ends within a line: its trial is trained again",
                    file=sys.stderr,
                )
            text = sweep_table.to_text(config, table)
        except (RunError, OSError) as raised:
            error = raised
    text = processes.text_of_first(text)
    if text is None:
        raise error or RunError("the first process cannot work in its --workdir; it says why")
    return sweep_table.from_text(config, text)[0]


def _read(workdir: Path, config: Config) -> tuple[Table, str]:
    """The table, and its last line if that is cut off. Raises RunError for a damaged one."""
    path = workdir / "trials.csv"
    try:
        return sweep_table.from_text(config, path.read_text() if path.exists() else "")
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}; move it away to begin anew") from error


def _train(config, workdir, groups, trials, results: Table, bar):
    """Trains the trials that `results` lacks and adds them, batch by batch."""
    missing = sum(trial not in results for trial in trials)
    bar.total += missing
    for group in groups if missing else ():
        pending = [
            batch for batch in group.batches(trials) if any(trial not in results for trial in batch)
        ]
        # in step: every process trains one batch, and all hear of all results
        for first in range(0, len(pending), jax.process_count()):
            batches = pending[first : first + jax.process_count()]
            new = [trial for batch in batches for trial in batch if trial not in results]
            mine = batches[jax.process_index()] if jax.process_index() < len(batches) else None
            measured = processes.gather(group.train(mine, bar, len(new)))
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
    programs, alike = {}, {}  # what may share a program, by grid
    for trial in trials:
        single = single_run(config, trial)
        programs.setdefault(single.program, single)
    pads = side_by_side(config, 2) > 1
    for program, single in programs.items():
        grid = getattr(single.config.task, "grid", 0)
        # rows of a table can be padded, a stream's own shape cannot
        if pads and single.config.model.pads and grid and single.capacity:
            program = tuple(item for item in program[:-1] if item[0] != "config.task.grid")
        alike.setdefault(program, {})[grid] = single
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
        self.trials = [trial for trial in trials if self.trains(trial)]
        self.measures = sweep_table.measures(config)
        # a search stays below its first largest number
        axes = {trial.axes for trial in self.trials}
        first = [trial for trial in sweep_table.first_trials(config) if trial.axes in axes]
        self.rows = max(single_run(config, trial).capacity for trial in first)
        cells = [len(tasks.points(single_run(config, trial).task)) for trial in self.trials]
        self.points = max(cells) + config.sweep.real_points

    def trains(self, trial: SweepTrial) -> bool:
        return single_run(self.config, trial).program in self.programs

    @cached_property
    def program_and_width(self) -> tuple[Program, int]:
        """The program, and how many trials it trains side by side on a device."""
        devices, derived = jax.local_devices(), self.singles[0].task.derived
        # the trials of a batch take as many steps, see `batches`
        steps = Counter(single_run(self.config, trial).steps for trial in self.trials)
        per_device = -(-max(steps.values()) // (len(devices) * jax.process_count()))
        width = min(side_by_side(self.config, MOST_SIDE_BY_SIDE), per_device)

        def measure(scores, masks):
            means = evaluation.region_means(scores, masks, derived)
            return jnp.stack([means[name] for name in self.measures[1:]])

        members = tuple(single.task for single in self.singles)
        program = Program(self.singles[0].config, members, width, measure)
        if width > 1 and not self.config.execution.trials_per_device:
            fit = program.trials_that_fit(self._trial(self.trials[0]), devices[0])
            # every process cuts the same batches, whatever memory it has
            widths = processes.gather(np.array([min(width, fit or width)], np.int32))
            width = int(widths.min())
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
        for trial in filter(self.trains, trials):
            by_steps.setdefault(single_run(self.config, trial).steps, []).append(trial)
        return [
            alike[i : i + self.size]
            for alike in by_steps.values()
            for i in range(0, len(alike), self.size)
        ]

    def train(self, batch: list[SweepTrial] | None, bar: logs.Bar, count: int):
        """(size, M) float32 measures of a batch's trials; NaN where a loss stopped being finite,
        and beyond the batch. Raises RunError where memory runs out."""
        if batch is None:
            return np.full((self.size, len(self.measures)), np.nan, np.float32)
        program, width = self.program_and_width
        advice = f"say --config.execution.trials_per_device={width // 2}, not {width}"
        if width == 1:
            advice = "lower config.training.batch_size or config.model.width"
        with logs.memory_explained(advice):
            single, idle = single_run(self.config, batch[0]), self.size - len(batch)
            trials = [self._trial(trial) for trial in batch + [batch[-1]] * idle]
            trials = split(jax.tree.map(lambda *leaves: jnp.stack(leaves), *trials))
            state, losses = program.advance(
                trials,
                program.init(trials),
                single.steps,
                self.size,
                lambda losses: bar.update(count * losses.shape[1] / single.steps),
            )
            loss = losses[:, -LOSS_STEPS:].mean(axis=1, keepdims=True)
            measured = program.score(trials, state, self.size)
        values = np.concatenate([loss, measured], axis=1).astype(np.float32)
        # a model that diverged at its last step has a finite loss, and no finite error anywhere
        errors = [name.endswith(f".{single.task.error}") for name in self.measures]
        values[~np.isfinite(values[:, 0]) | ~np.isfinite(values[:, errors]).any(axis=1)] = np.nan
        return values

    def _trial(self, trial: SweepTrial) -> Trial:
        """A trial, scored at all cells, then at padding, then at real points."""
        single, keys = single_run(self.config, trial), seed_keys([trial.seed])
        index = self.programs.index(single.program)
        draws = _draws(single.config, index, self.rows, self.config.sweep.real_points)
        trials, real = (draw(keys) for draw in draws)
        trained = jax.tree.map(itemgetter(0), trials)
        dataset, real = trained.dataset, np.asarray(real)
        try:
            contracts.check_dataset(single.task, trial.seed, dataset)
        except ConfigError as error:
            columns = sweep_table.describe(self.config, trial)
            raise ConfigError(f"config.sweep: {columns}: {error}") from error
        cells = tasks.points(single.task)
        held_out = np.asarray(single.task.held_out(cells))
        seen = _seen(single.task, dataset, held_out)
        beyond = self.points - len(cells)
        masks = {"seen": seen, "unseen": ~seen & ~held_out, "ood": held_out}
        masks = {region: jnp.asarray(np.pad(mask, (0, beyond))) for region, mask in masks.items()}
        masks["real"] = jnp.arange(self.points) >= self.points - len(real)
        padded = np.repeat(cells[:1], beyond - len(real), axis=0)
        points = jnp.asarray(np.concatenate([cells, padded, real]))
        nearest = jnp.asarray(single.task.nearest(points)) if single.task.nearest else None
        return trained._replace(points=points, masks=masks, nearest=nearest)


@functools.lru_cache(maxsize=4096)
def _draws(single: Config, index: int, rows: int, real_points: int):
    """Jitted keys (1,) -> a trial (1, ...), and -> real points (R, F) of the ID region."""
    task = single.task.make()

    def real_points_of(keys):
        return tasks.real_points(task, loop.stream(keys[0], "test"), real_points)

    trials_of = functools.partial(seed_trials, single, task, capacity=rows, task_index=index)
    return jax.jit(trials_of), jax.jit(real_points_of)


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
