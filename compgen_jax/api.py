"""The laboratory in Python; the commands in `launch` call the same functions.

    import compgen_jax as cg

    run = cg.train("bump_cnn_quick", "runs/first", {"training.seeds": (0, 1)})
    run.predict([[8.0, 7.5]])  # (2, 1, 16, 16): the image that each seed draws
    run.draw(8, 7.5)           # a figure: target, output, and their difference
    run.metrics()              # a DataFrame; also run.cell_table() and run.layers()

`cg.load("runs/first")` is the same run.
"""

from dataclasses import dataclass, field
from pathlib import Path

import jax
import pandas

from compgen_jax import cli, compilation_cache, settings
from compgen_jax import config as configs
from compgen_jax.config import Config
from compgen_jax.config import ConfigError as ConfigError  # exported
from compgen_jax.papers import verdicts as papers_judge
from compgen_jax.runs import directory, judge_run, study, sweeps
from compgen_jax.runs.directory import RunError as RunError  # exported
from compgen_jax.runs.run import Run as Run
from compgen_jax.tasks.holdouts import held_out as held_out  # exported

COLUMNS = ["claim", "case", "scale", "setting", "statement", "verdict", "reason", "criterion"]


@dataclass(frozen=True)
class Sweep:
    """A finished sweep: its directory, its config, and the numbers of `summary.json`."""

    path: Path
    config: Config = field(repr=False)
    summary: dict = field(repr=False)

    def trials(self):
        """DataFrame: a row for each trial, with its axes, seed, status and scores."""
        return pandas.read_csv(self.path / "trials.csv")


def train(config, workdir, overrides: dict | None = None, progress: bool = True) -> Run:
    """Trains all seeds of a config in `workdir`, and goes on after the last checkpoint.

    Args:
      config: a preset's name, 'FILE.py:NAME' for a file of your own, or a `Config`.
      workdir: the directory of the run; it belongs to one config.
      overrides: new values by dotted field, such as {"training.epochs": 20}.

    Raises ConfigError or RunError, one line, before anything is trained; RunError if a loss stops
    being finite.
    """
    study.train(_resolve(config, overrides), workdir, progress)
    return Run.load(workdir, with_networks=False)


def sweep(config, workdir, overrides: dict | None = None, progress: bool = True) -> Sweep:
    """Trains all trials of a sweep, as `train`; one whose loss stops being finite is recorded as
    failed."""
    config = _resolve(config, overrides)
    return Sweep(Path(workdir), config, sweeps.run(config, workdir, progress))


def load(workdir) -> Run | Sweep:
    """The finished run, or sweep, in a directory. Raises RunError, naming what is missing or
    damaged."""
    workdir = Path(workdir)
    config = directory.read_config(workdir)
    if config.is_sweep:
        sweeps.load(workdir)  # raises for an unfinished or damaged one
        return Sweep(workdir, config, directory.read_json(workdir / "summary.json"))
    return Run.load(workdir)


def analyze(workdir, progress: bool = True):
    """Measures every layer of a finished run and returns the DataFrame of `Run.layers`; writes
    layers.csv, analysis.json and analysis.npz where it may. Raises RunError."""
    return Run.load(workdir, with_networks=False).layers(progress=progress)


def judge(*workdirs):
    """Judges every claim whose finished runs are in some directories, each a run or a directory of
    runs. Returns a DataFrame with a row for each claim and case: the verdict with its reason, the
    first condition's `value` with its 95% interval from `low` to `high`, and the number of `seeds`.
    Raises RunError for a directory without a finished run."""
    rows, _ = judge_folders(workdirs)
    first = [next(iter(row["conditions"].values())) for row in rows]
    table = pandas.DataFrame(rows, columns=COLUMNS)
    table["value"] = [number["value"] for number in first]
    table["low"], table["high"] = ([number["ci95"][end] for number in first] for end in (0, 1))
    table["seeds"] = [len(row["seeds"]) for row in rows]
    return table


def judge_folders(workdirs) -> tuple[list[dict], dict]:
    """The rows of `judge`, and {(claim, case): the runs that it lacks}. Verdicts on a single run
    are written to its claims.json."""
    from compgen_jax.catalog import PAPERS  # half a second to import

    paths = [Path(workdir) for workdir in workdirs if (Path(workdir) / "config.json").exists()]
    single = [path for path in paths if not directory.read_config(path).is_sweep]
    rows = [row for path in single for row in judge_run.judge_directory(path)]
    of_papers, lacking = papers_judge.judge_folders(PAPERS, workdirs)
    rows += of_papers
    if of_papers and len(single) == len(workdirs) == 1:
        with directory.kept_where_possible(single[0]):
            directory.write_json(single[0] / "claims.json", rows)
    return rows, lacking


def explore(workdir) -> Path:
    """Writes DIR/explorer.html, one page that needs no other file, and returns its path. Raises
    RunError for a sweep and for an unfinished run."""
    return settings.beside("launch.explore").explore(workdir)


def _resolve(config, overrides: dict | None) -> Config:
    """The config with its overrides, after what every command does first."""
    if jax.config.jax_num_cpu_devices == -1:  # neither the user nor a command has said how many
        cli.use_all_cores()
    compilation_cache.enable()
    if isinstance(config, str):
        config = cli.load_config(config, flag="config=")
    hint = "give a preset's name, 'FILE.py:NAME' of your own, or a Config"
    settings.demand(isinstance(config, Config), f"config={config!r}: {hint}")
    return configs.changed(config, overrides) if overrides else config
