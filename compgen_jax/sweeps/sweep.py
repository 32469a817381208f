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
import functools
import sys
import time
import zlib
from pathlib import Path

import numpy as np
from tqdm import tqdm

from compgen_jax.analysis import scaling
from compgen_jax.analysis.statistics import mean_with_interval
from compgen_jax.config import Config, ConfigError, fingerprint, identity
from compgen_jax.runs import directory, environment
from compgen_jax.runs.directory import RunError
from compgen_jax.sweeps import plan, processes, table, waves
from compgen_jax.sweeps.table import Case, Table
from compgen_jax.tasks import supports


def run(config: Config, workdir, progress: bool = True) -> dict:
    """Trains what is missing of the sweep in `workdir`; returns its summary.

    Killed and started again, it goes on behind the last finished wave, to the same table: bit for
    bit on the same devices (of GPUs, with XLA_FLAGS=--xla_gpu_deterministic_ops=true). A trial
    whose loss stops being finite is recorded as failed. Raises ConfigError or RunError, before any
    compilation, for a sweep that cannot be, a directory of another config or a damaged table.
    """
    cases = first = plan.first_cases(config)
    check(config, cases)
    workdir, start = Path(workdir), time.perf_counter()
    with contextlib.ExitStack() as claims:
        results = _start(config, workdir, cases, claims)
        found = len(results)
        # when they are first needed: on an accelerator they are compiled to learn their memory
        buckets = functools.cache(lambda: waves.buckets(config, first))
        with _Progress(config, progress) as bar:
            _train(config, workdir, buckets, cases, results, bar)
            for _ in range(config.sweep.refinements):
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


def load(workdir) -> list[dict]:
    """The rows of a finished sweep (`table.rows`). Raises RunError."""
    workdir = Path(workdir)
    if not directory.is_finished(workdir):
        raise RunError(f"{workdir}: its sweep is not finished; python -m launch.sweep resumes it")
    config = directory.read_config(workdir)
    return table.rows(_read(workdir, config, plan.first_cases(config)))


def check(config: Config, cases: list[Case]):
    """Raises ConfigError for a config that is no sweep, or whose trials cannot be trained."""
    if not config.sweep.grids:
        raise ConfigError(
            "config.sweep.grids=(): an empty sweep; give the grids, or train the one run of this "
            "config with launch.train"
        )
    for case in {case._replace(seed=0, learning_rate=0.1, weight_decay=0.0) for case in cases}:
        try:
            supports.check(plan.config_of(config, case).task)
        except ConfigError as error:
            setting = f"share={case.share:g}, n_data={case.n_data}"
            raise ConfigError(
                f"config.sweep: grid={case.grid}, {case.scheme}, {setting}: {error}"
            ) from error


def _start(config: Config, workdir: Path, cases: list[Case], claims) -> Table:
    """What the table has already; the first process claims the directory, and all get it."""
    _check_alike(config)
    error, text = None, ""
    if processes.is_first():
        try:
            claims.enter_context(directory.claim(workdir, config))
            text = table.to_text(_read(workdir, config, cases), fingerprint(config))
        except (RunError, OSError) as raised:
            error = raised
    text = _to_all(None if error else text)
    if error:
        raise error
    if text is None:
        raise RunError("the first process cannot work in its --workdir; it says why")
    return table.from_text(text, fingerprint(config))[0]


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
        results, cut = table.from_text(directory.read_text(path) or "", fingerprint(config))
    except table.TableError as error:
        raise RunError(f"{path} is damaged: {error}; move it away to begin anew") from error
    curves = {}
    for case in cases:
        curves.setdefault(case._replace(n_data=0), []).append(case.n_data)
    for case in results:
        numbers = curves.get(case._replace(n_data=0))
        if not numbers or not min(numbers) <= case.n_data <= max(numbers):
            raise RunError(f"{path} holds a trial that this sweep has not: {_describe(case)}")
    if cut:
        print(f"{path} ends within a line: its trial is trained again", file=sys.stderr)
    return results


def _describe(case: Case) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in case._asdict().items())


def _train(config, workdir, buckets, cases, results: Table, bar):
    """Trains the cases that `results` lacks and adds them, wave by wave."""
    missing = [case for case in cases if case not in results]
    bar.expect(missing)
    for bucket in buckets() if missing else []:
        own = [case for case in cases if case.grid in bucket.grids]
        pending = [
            wave for wave in waves.cut(own, bucket) if any(case not in results for case in wave)
        ]
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
                directory.write_text(
                    workdir / "trials.csv", table.to_text(results, fingerprint(config))
                )
            bar.finish()


def summarize(config: Config, results: Table) -> dict:
    """Numbers of trials, and every reading's thresholds and exponent by scheme."""
    rows = table.rows(results)
    failed = [_describe(case) for case, values in results.items() if table.status(values) != "ok"]
    summary = {"trials": len(results), "failed": failed}
    if config.sweep.data != "search":
        return summary | {"errors": _errors(results)}
    curves = [
        (reading, scheme, settings)
        for reading in plan.readings(config)
        for scheme in config.sweep.schemes
        for settings in plan.settings(results, reading.region)
    ]
    return summary | {"readings": [_reading(rows, *curve) for curve in curves]}


def _reading(rows, reading, scheme: str, settings: dict) -> dict:
    curve = scaling.thresholds(rows, reading, scheme, **settings)
    thresholds = [
        {
            "grid": int(grid),
            "seed": int(seed),
            "images": float(curve.values_SxK[s, k]),
            "status": str(curve.status_SxK[s, k]),
        }
        for k, grid in enumerate(curve.grids_K)
        for s, seed in enumerate(curve.seeds_S)
    ]
    return {
        **reading._asdict(),
        "scheme": scheme,
        **settings,
        "exponent": scaling.exponent(curve),
        "thresholds": thresholds,
    }


def _errors(results: Table) -> list[dict]:
    """Of every case with a held-out region, over seeds: the error there relative to a blank
    image's; NaN where all failed."""
    error, blank = (table.MEASURES.index(f"ood.{name}") for name in ("mse", "blank_mse"))
    by_case = {}
    for case, values in sorted(results.items()):
        if case.region != "none":
            found = by_case.setdefault(case._replace(seed=0), [])
            found += [values[error] / values[blank]] if table.status(values) == "ok" else []
    return [
        {name: value for name, value in case._asdict().items() if name not in ("seed", "n_data")}
        | {"images": case.n_data, "ood_relative_error": mean_with_interval(values or [np.nan])}
        for case, values in by_case.items()
    ]


class _Progress:
    """The bar over trials, whose time left counts each trial by its grid's pixels."""

    def __init__(self, config: Config, shown: bool):
        self.done, self.trials, self.steps = 0, 0, config.training.steps
        self.share = 0.0  # of the work of a wave that one step is
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
        self.bar.total += sum(case.grid**2 for case in cases)
        self._show()

    def say_idle(self, pending, slots: int):
        """Says where devices or processes have nothing of their own to train at the end."""
        idle = slots - len(pending[-1]) if pending else 0
        processes_idle = -len(pending) % processes.count()
        grids = ", ".join(str(grid) for grid in sorted({case.grid for case in sum(pending, [])}))
        if idle and not self.bar.disable:
            verb = "is" if idle == 1 else "are"
            self.bar.write(
                f"grid {grids}: {idle} of the last wave's {slots} trials {verb} idle", sys.stderr
            )
        if processes_idle and not self.bar.disable:
            self.bar.write(
                f"grid {grids}: {processes_idle} of {processes.count()} processes idle at the "
                "last wave", sys.stderr
            )  # fmt: skip

    def start(self, wave_of_each, results: Table):
        self.new = [case for wave in wave_of_each for case in wave if case not in results]
        self.share = sum(case.grid**2 for case in self.new) / self.steps

    def advance(self, n_steps: int):
        self.bar.update(min(n_steps * self.share, self.bar.total - self.bar.n))

    def finish(self):
        self.done += len(self.new)
        self._show()

    def _show(self):
        self.bar.set_postfix_str(f"{self.done}/{self.trials} trials", refresh=False)
