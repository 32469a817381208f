"""A sweep from config to table: trials of any grid, data set and seed, in batches.

    DIR/config.json       what the sweep is            written first
    DIR/trials.csv        a row for each trial         rewritten, atomically, after every batch
    DIR/environment.json  versions, devices, seconds
    DIR/summary.json      thresholds and exponents     written last: the sweep is finished

Trials that share a program (`groups.CompileGroup`) fill the devices batch by batch. Each of several
processes (`processes`) trains batches of its own, and the first one keeps the directory.
"""

import contextlib
import sys
import time
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compgen_jax.config import Config, ConfigError, fingerprint, identity
from compgen_jax.runs import directory, environment, train_log, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.progress import Bar
from compgen_jax.settings import demand, require
from compgen_jax.sweeps import groups, plan, processes, table
from compgen_jax.sweeps.summary import summarize
from compgen_jax.sweeps.table import SweepTrial, Table
from compgen_jax.tasks import task as tasks


def run(config: Config, workdir, progress: bool = True) -> dict:
    """Trains what is missing of the sweep in `workdir`; returns its summary.

    Killed and started again, it goes on after the last finished batch, to the same table: bit for
    bit on the same devices (GPUs need XLA_FLAGS=--xla_gpu_deterministic_ops=true). A trial whose
    loss stops being finite is recorded as failed. Raises ConfigError or RunError, before any
    compilation, for an impossible sweep, a directory of another config or a damaged table.
    """
    trials = plan.first_trials(config)
    check(config, trials)
    workdir, start = Path(workdir), time.perf_counter()
    with contextlib.ExitStack() as claims:
        results = _start(config, workdir, trials, claims)
        known, compile_groups = len(results), []
        if processes.is_first() and not directory.is_finished(workdir):
            train_log.begin(workdir, config)
        rows = groups.capacities(config, trials)  # a search stays below its first largest number
        with _Progress(config, progress) as bar:
            for refinement in range(1 + config.sweep.search.refinements):
                new = trials
                if refinement:
                    new = plan.refined_trials(config, {trial: results[trial] for trial in trials})
                # also for trials that are in the table: a resumed sweep compiles the same programs
                unknown = [
                    trial for trial in new if not any(each.trains(trial) for each in compile_groups)
                ]
                compile_groups += groups.compile_groups(config, unknown, rows)
                _train(config, workdir, compile_groups, new, results, bar)
                trials = sorted({*trials, *new})
        summary = directory.clean(summarize(config, {trial: results[trial] for trial in trials}))
        if processes.is_first() and (len(results) > known or not directory.is_finished(workdir)):
            seconds = {"seconds_since_last_start": round(time.perf_counter() - start, 1)}
            directory.write_json(
                workdir / "environment.json",
                environment.describe() | seconds | {"processes": processes.count()},
            )
            directory.write_json(workdir / "summary.json", summary)
        return summary


class FinishedSweep(NamedTuple):
    """A finished sweep: its config, and its table as `table.rows`."""

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
    found, _ = _read(workdir, config, plan.first_trials(config))
    if len(found) < (trained := directory.read_json(workdir / "summary.json")["trials"]):
        raise RunError(
            f"{workdir}/trials.csv has {len(found)} trials of {trained}; remove summary.json, and "
            "compgen-jax sweep trains the others"
        )
    return FinishedSweep(config, table.rows(found, plan.layout(config)))


def check(config: Config, trials: list[SweepTrial]):
    """Raises ConfigError for a config that is no sweep, or whose trials cannot be trained."""
    hint = "name fields and their values, or train the one run of this config with compgen-jax"
    require(config.is_sweep, "sweep.axes", (), f"an empty sweep; {hint} train")
    layout = plan.layout(config)
    if config.sweep.search.field:
        plan.check_search(config)
    scores = plan.score_names(config)
    for trial in sorted({trial._replace(seed=config.training.seeds[0]) for trial in trials}):
        try:
            single = groups.single_run(config, trial)
        except ConfigError as error:
            raise ConfigError(f"config.sweep: {layout.describe(trial)}: {error}") from error
        hint = "one sweep has one table, so give it a sweep of its own"
        what = f"{layout.describe(trial)}: has other scores than the first trial; {hint}"
        demand(tasks.number_names(single.task) == scores, f"config.sweep: {what}")


def _start(config: Config, workdir: Path, trials: list[SweepTrial], claims) -> Table:
    """What the table has already. The first process claims the directory, and all get the table.
    Raises RunError, in every process, unless all have the same config."""
    execution = config.execution.trials_per_device, config.execution.max_padding
    digest = np.int32(zlib.crc32(f"{identity(config)} {execution}".encode()) >> 1)
    if len(set(processes.gather(digest).tolist())) > 1:
        raise RunError("the processes have different configs; give all of them the same command")
    error, text, layout = None, "", plan.layout(config)
    if processes.is_first():
        try:
            claims.enter_context(directory.claim(workdir, config))
            single = groups.single_run(config, trials[0])
            made = user_code.check(workdir, single.config, single.task)
            directory.begin(workdir, config)
            user_code.remember(workdir, made)
            results, cut = _read(workdir, config, trials)
            if cut:
                print(f"{workdir}/trials.csv ends within a line: its trial is trained again",
                      file=sys.stderr)  # fmt: skip
            text = table.to_text(results, layout, fingerprint(config))
        except (RunError, OSError) as raised:
            error = raised
    text = processes.text_of_first(None if error else text)
    if text is None:
        raise error or RunError("the first process cannot work in its --workdir; it says why")
    return table.from_text(text, layout, fingerprint(config))[0]


def _read(workdir: Path, config: Config, trials: list[SweepTrial]) -> tuple[Table, bool]:
    """The whole lines of the table, and whether it ends within one. Raises RunError for a damaged
    one, or another sweep's."""
    path, layout = workdir / "trials.csv", plan.layout(config)
    try:
        text = directory.read_text(path) or ""
        results, cut = table.from_text(text, layout, fingerprint(config))
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}; move it away to begin anew") from error
    curves = plan.curves(trials)
    for trial in results:
        values = [each.value for each in curves.get(trial._replace(value=0), ())]
        if not values or not min(values) <= trial.value <= max(values):
            shown = layout.describe(trial)
            raise RunError(f"{path} holds a trial that this sweep has not: {shown}")
    return results, cut


def _train(config, workdir, compile_groups, trials, results: Table, bar):
    """Trains the trials that `results` lacks and adds them, batch by batch."""
    missing = [trial for trial in trials if trial not in results]
    if not missing:
        return
    bar.count(expected=missing)
    for group in compile_groups:
        pending = [
            batch for batch in group.batches(trials) if any(trial not in results for trial in batch)
        ]
        bar.say_idle(pending, group)
        # in step: every process trains one batch, and all hear of all results
        for first in range(0, len(pending), processes.count()):
            batches = pending[first : first + processes.count()]
            new = [trial for batch in batches for trial in batch if trial not in results]
            mine = batches[processes.index()] if processes.index() < len(batches) else None
            measured = processes.gather(group.train(mine, bar.advances_by(new)))
            for batch, values_TxM in zip(batches, measured[: len(batches)], strict=True):
                for trial, values_M in zip(batch, values_TxM[: len(batch)], strict=True):
                    results.setdefault(trial, values_M)
            if processes.is_first():
                text = table.to_text(results, plan.layout(config), fingerprint(config))
                directory.write_text(workdir / "trials.csv", text)
                train_log.write(workdir, f"{bar.done + len(new)} of {bar.trials} trials")
            bar.count(len(new))


class _Progress(Bar):
    """The bar over trials, whose time left counts each trial by the size of what it gives."""

    def __init__(self, config: Config, shown: bool):
        super().__init__(
            total=0,
            desc=config.name,
            disable=not (shown and processes.is_first()),
            bar_format="{desc}{postfix} {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]",
        )
        self.config, self.done, self.trials = config, 0, 0

    def count(self, trained: int = 0, expected=()):
        """Shows that so many more trials are trained, and that others are to come."""
        self.done, self.trials = self.done + trained, self.trials + len(expected)
        self.total += self._work(expected)
        self.set_postfix_str(f"{self.done}/{self.trials} trials", refresh=False)

    def say_idle(self, pending, group: groups.CompileGroup):
        """Says how many places for trials have nothing of their own to train in the last round."""
        idle = -len(pending) % processes.count() * group.size
        idle += group.size - len(pending[-1]) if pending else 0
        if idle and not self.disable:
            places = f"{group.size * processes.count()} places for trials"
            self.write(f"{idle} of {places} idle in a program's last round", sys.stderr)

    def advances_by(self, trials: list[SweepTrial]):
        """A function that moves the bar by a share of these trials' work."""
        work = self._work(trials)
        return lambda share: self.update(min(share * work, self.total - self.n))

    def _work(self, trials) -> int:
        """What trials cost, in numbers that their models give in training."""
        singles = [groups.single_run(self.config, trial) for trial in trials]
        return sum(single.steps * single.work for single in singles)
