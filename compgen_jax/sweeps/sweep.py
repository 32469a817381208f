"""A sweep from config to table: trials of any grid, data set and seed, in waves.

    DIR/config.json       what the sweep is            written first
    DIR/trials.csv        a row for each trial         rewritten, atomically, after every wave
    DIR/environment.json  versions, devices, seconds
    DIR/summary.json      thresholds and exponents     written last: the sweep is finished

Cases whose grids share a program (`waves.Bucket`) fill the devices wave by wave, as traced trials.
Of several processes (`processes`) each trains waves of its own, and the first one keeps the
directory.
"""

import contextlib
import sys
import time
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from compgen_jax.config import Config, ConfigError, fingerprint, identity
from compgen_jax.metrics import scaling
from compgen_jax.runs import directory, environment, train_log, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.statistics import mean_with_interval
from compgen_jax.sweeps import plan, processes, table, waves
from compgen_jax.sweeps.table import Case, Table


def run(config: Config, workdir, progress: bool = True) -> dict:
    """Trains what is missing of the sweep in `workdir`; returns its summary.

    Killed and started again, it goes on behind the last finished wave, to the same table: bit for
    bit on the same devices (of GPUs, with XLA_FLAGS=--xla_gpu_deterministic_ops=true). A trial
    whose loss stops being finite is recorded as failed. Raises ConfigError or RunError, before any
    compilation, for a sweep that cannot be, a directory of another config or a damaged table.
    """
    cases = plan.first_cases(config)
    check(config, cases)
    workdir, start = Path(workdir), time.perf_counter()
    with contextlib.ExitStack() as claims:
        results = _start(config, workdir, cases, claims)
        found = len(results)
        if processes.is_first() and not directory.is_finished(workdir):
            train_log.begin(workdir, config)
        buckets = _Buckets(config)
        with _Progress(config, progress) as bar:
            _train(config, workdir, buckets, cases, results, bar)
            for _ in range(config.sweep.search.refinements):
                new = plan.refined_cases(config, {case: results[case] for case in cases})
                _train(config, workdir, buckets, new, results, bar)
                cases = sorted({*cases, *new})
        summary = directory.clean(summarize(config, {case: results[case] for case in cases}))
        if processes.is_first() and (len(results) > found or not directory.is_finished(workdir)):
            seconds = {"seconds_since_last_start": round(time.perf_counter() - start, 1)}
            more = {"processes": processes.count()}
            directory.write_json(
                workdir / "environment.json", environment.describe() | seconds | more
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
    """A finished sweep. Raises RunError."""
    workdir = Path(workdir)
    if not directory.is_finished(workdir):
        raise RunError(f"{workdir}: its sweep is not finished; python -m launch.sweep resumes it")
    config = directory.read_config(workdir)
    rows = table.rows(_read(workdir, config, plan.first_cases(config)), plan.layout(config))
    return FinishedSweep(config, rows)


def check(config: Config, cases: list[Case]):
    """Raises ConfigError for a config that is no sweep, or whose trials cannot be trained."""
    if not config.is_sweep:
        raise ConfigError(
            "config.sweep.axes=(): an empty sweep; name fields and their values, or train the one "
            "run of this config with launch.train"
        )
    layout, search = plan.layout(config), config.sweep.search
    for score in search.scores if search.field else ():
        if f"ood.{score}" not in layout.measures:
            raise ConfigError(
                f"config.sweep.search.scores: {score!r} is no score of the task; it has "
                f"{', '.join(plan.score_names(config))}"
            )
    if search.field and not cases:
        units = sorted(name for name, _ in search.per)
        raise ConfigError(f"config.sweep.search.per: the task names none of {', '.join(units)}")
    for case in {case._replace(seed=config.training.seeds[0]) for case in cases}:
        try:
            waves.single_of(config, case)
        except ConfigError as error:
            raise ConfigError(f"config.sweep: {_describe(case, layout)}: {error}") from error


def _start(config: Config, workdir: Path, cases: list[Case], claims) -> Table:
    """What the table has already; the first process claims the directory, and all get it."""
    _check_alike(config)
    error, text = None, ""
    if processes.is_first():
        try:
            claims.enter_context(directory.claim(workdir, config))
            _begin(workdir, config, cases[0])
            text = _to_text(config, _read(workdir, config, cases))
        except (RunError, OSError) as raised:
            error = raised
    text = _to_all(None if error else text)
    if error:
        raise error
    if text is None:
        raise RunError("the first process cannot work in its --workdir; it says why")
    return table.from_text(text, plan.layout(config), fingerprint(config))[0]


def _begin(workdir: Path, config: Config, case: Case):
    single = waves.single_of(config, case)
    user_code.check(workdir, single.config, single.task)
    user_code.remember(workdir, single.config, single.task)
    directory.begin(workdir, config)


def _to_text(config: Config, results: Table) -> str:
    return table.to_text(results, plan.layout(config), fingerprint(config))


def _check_alike(config: Config):
    """Raises RunError, in every process, unless all have the same config."""
    execution = config.execution.trials_per_device, config.execution.max_padding
    digest = zlib.crc32(f"{identity(config)} {execution}".encode())
    if len(set(processes.gather(np.array([digest], np.uint32).view(np.int32)).ravel())) > 1:
        raise RunError("the processes have different configs; give all of them the same command")


def _to_all(text: str | None) -> str | None:
    """The first process's text, on all of them."""
    own = (text or "").encode()
    (length,) = processes.broadcast(np.array([-1 if text is None else len(own)], np.int32))
    if length < 0:
        return None
    words = np.zeros(-(-length // 4), np.int32)
    if processes.is_first():
        words.view(np.uint8)[:length] = np.frombuffer(own, np.uint8)
    return processes.broadcast(words).tobytes()[:length].decode()


def _read(workdir: Path, config: Config, cases: list[Case]) -> Table:
    """The whole lines of the table. Raises RunError where it is damaged or another's."""
    path = workdir / "trials.csv"
    try:
        text = directory.read_text(path) or ""
        results, cut = table.from_text(text, plan.layout(config), fingerprint(config))
    except table.TableError as error:
        raise RunError(f"{path} is damaged: {error}; move it away to begin anew") from error
    curves = {curve: [case.value for case in own] for curve, own in plan.curves(cases).items()}
    for case in results:
        values = curves.get(case._replace(value=0))
        if not values or not min(values) <= case.value <= max(values):
            shown = _describe(case, plan.layout(config))
            raise RunError(f"{path} holds a trial that this sweep has not: {shown}")
    if cut:
        print(f"{path} ends within a line: its trial is trained again", file=sys.stderr)
    return results


def _describe(case: Case, layout: table.Layout) -> str:
    pairs = zip(layout.names, layout.values(case), strict=True)
    return ", ".join(f"{name}={value!r}" for name, value in pairs)


def _train(config, workdir, buckets, cases, results: Table, bar):
    """Trains the cases that `results` lacks and adds them, wave by wave."""
    missing = [case for case in cases if case not in results]
    bar.expect(missing)
    buckets.add(cases)
    for bucket in buckets.all() if missing else []:
        own = waves.cut(config, waves.cases_of(config, bucket, cases), bucket)
        pending = [wave for wave in own if any(case not in results for case in wave)]
        bar.say_idle(pending, bucket.slots)
        # in step: every process trains one wave, and all hear of all results
        for first in range(0, len(pending), processes.count()):
            together = pending[first : first + processes.count()]
            bar.start(together, results)
            mine = together[processes.index()] if processes.index() < len(together) else None
            gathered = processes.gather(waves.train(bucket, mine, config, bar.advance))
            for wave, values_TxM in zip(together, gathered[: len(together)], strict=True):
                for case, values_M in zip(wave, values_TxM[: len(wave)], strict=True):
                    results.setdefault(case, values_M)
            if processes.is_first():
                directory.write_text(workdir / "trials.csv", _to_text(config, results))
            bar.finish()
            if processes.is_first():
                train_log.write(workdir, f"{bar.done} of {bar.trials} trials")


def summarize(config: Config, results: Table) -> dict:
    """Numbers of trials; of a search, every reading's thresholds and their exponents along each
    numeric axis; else every combination's means over seeds."""
    layout = plan.layout(config)
    rows = table.rows(results, layout)
    failed = [
        _describe(case, layout) for case, values in results.items() if table.status(values) != "ok"
    ]
    summary = {"trials": len(results), "failed": failed}
    if not config.sweep.search.field:
        return summary | {"means": _means(config, results)}
    return summary | {"readings": _readings(config, results, rows)}


def _readings(config: Config, results: Table, rows: list[dict]) -> list[dict]:
    search, axes = config.sweep.search, list(dict(config.sweep.axes))
    found = []
    for along in [*plan.numeric_axes(config)] or [None]:
        others = [name for name in axes if name != along]
        seen = set()
        for case in sorted(results):
            fixed = {n: v for n, v in zip(axes, case.axes, strict=True) if n in others}
            if str(fixed) in seen:
                continue
            seen.add(str(fixed))
            for reading in plan.readings(config, case):
                curve = scaling.thresholds(
                    rows, reading.column, search.target, field=search.field, along=along,
                    fixed=fixed,
                )  # fmt: skip
                found.append(_reading(curve, reading, along))
    return found


def _reading(curve: scaling.Curve, reading: plan.Reading, along: str | None) -> dict:
    thresholds = [
        ({} if along is None else {along: curve.along_K[k].item()})
        | {
            "seed": int(seed),
            "value": float(curve.values_SxK[s, k]),
            "status": str(curve.status_SxK[s, k]),
        }
        for k in range(len(curve.along_K))
        for s, seed in enumerate(curve.seeds_S)
    ]
    exponent = {} if along is None else {"along": along, "exponent": scaling.exponent(curve)}
    return {
        "where": reading.where, "score": reading.score, "target": curve.target, **curve.fixed,
        **exponent, "thresholds": thresholds,
    }  # fmt: skip


def _means(config: Config, results: Table) -> list[dict]:
    """Of every combination of the axes, over seeds: the means of all measures with their intervals;
    NaN where all failed."""
    layout, by_axes = plan.layout(config), {}
    for case, values in sorted(results.items()):
        found = by_axes.setdefault(case.axes, [])
        found += [values] if table.status(values) == "ok" else []
    missing = [np.full(len(layout.measures), np.nan)]
    return [
        dict(zip(layout.axes, axes, strict=True))
        | {
            name: mean_with_interval(column)
            for name, column in zip(layout.measures, np.transpose(values or missing), strict=True)
        }
        for axes, values in by_axes.items()
    ]


class _Buckets:
    """What trains the cases of all rounds: those of the first one and, of later ones, what these
    cannot, whatever of them a killed run has done already."""

    def __init__(self, config: Config):
        self.config, self.found, self.rounds, self.room = config, [], [], {}

    def add(self, cases: list[Case]):
        # a search stays below the largest number that it begins with
        self.room = self.room or waves.capacities(self.config, cases)
        self.rounds.append(cases)

    def all(self) -> list[waves.Bucket]:
        """Made when first asked for: on an accelerator they are compiled to learn their memory."""
        for cases in self.rounds:
            known = {c for bucket in self.found for c in waves.cases_of(self.config, bucket, cases)}
            new = [case for case in cases if case not in known]
            self.found += waves.buckets(self.config, new, self.room)
        self.rounds = []
        return self.found


class _Progress:
    """The bar over trials, whose time left counts each trial by the size of what it gives."""

    def __init__(self, config: Config, shown: bool):
        self.config, self.done, self.trials = config, 0, 0
        self.work = 0.0  # of the wave
        self.bar = tqdm(
            total=0,
            desc=config.name,
            disable=not (shown and processes.is_first()),
            bar_format="{desc}{postfix} {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]",
            mininterval=0.5 if sys.stderr.isatty() else 20,
            dynamic_ncols=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bar.close()

    def expect(self, cases: list[Case]):
        self.trials += len(cases)
        self.bar.total += self._work(cases)
        self._show()

    def say_idle(self, pending, slots: int):
        """Says where devices or processes have nothing of their own to train at the end."""
        idle = slots - len(pending[-1]) if pending else 0
        processes_idle = -len(pending) % processes.count()
        if idle and not self.bar.disable:
            verb = "is" if idle == 1 else "are"
            self.bar.write(
                f"{idle} of the {slots} trials of a program's last wave {verb} idle", sys.stderr
            )
        if processes_idle and not self.bar.disable:
            self.bar.write(
                f"{processes_idle} of {processes.count()} processes idle at a program's last wave",
                sys.stderr,
            )

    def start(self, wave_of_each, results: Table):
        self.new = [case for wave in wave_of_each for case in wave if case not in results]
        self.work = self._work(self.new)

    def advance(self, share: float):
        self.bar.update(min(share * self.work, self.bar.total - self.bar.n))

    def _work(self, cases: list[Case]) -> int:
        return sum(waves.work_of(self.config, case) for case in cases)

    def finish(self):
        self.done += len(self.new)
        self._show()

    def _show(self):
        self.bar.set_postfix_str(f"{self.done}/{self.trials} trials", refresh=False)
