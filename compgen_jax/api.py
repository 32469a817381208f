"""The laboratory in Python; the commands in `launch` call the same functions.

    import compgen_jax as cg

    run = cg.train("bump_cnn_quick", "runs/first", {"training.seeds": (0, 1)})
    run.predict([[8.0, 7.5]])  # (2, 1, 16, 16): the image that each seed draws
    run.draw(8, 7.5)           # a figure: target, output, and their difference
    run.metrics()              # a DataFrame; also run.cell_table() and run.layers()

`cg.load("runs/first")` is the same run.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import jax
import numpy as np
import pandas

from compgen_jax import cli, compilation_cache, settings
from compgen_jax import config as configs
from compgen_jax.config import Config
from compgen_jax.config import ConfigError as ConfigError  # exported
from compgen_jax.metrics import geometry_report, probe_report
from compgen_jax.metrics.geometry_report import GeometryReport
from compgen_jax.metrics.probe_report import ProbeReport
from compgen_jax.papers import verdicts as papers_judge
from compgen_jax.runs import directory, judge_run, results, study, sweeps
from compgen_jax.runs import free_score as worth
from compgen_jax.runs import predictions as scoring
from compgen_jax.runs.directory import RunError as RunError  # exported
from compgen_jax.runs.free_score import FreeScore
from compgen_jax.runs.predictions import ScoreReport
from compgen_jax.runs.run import Run as Run
from compgen_jax.tasks import holdouts
from compgen_jax.tasks.holdouts import held_out as held_out  # exported

COLUMNS = ["claim", "case", "scale", "setting", "statement", "verdict", "reason", "criterion"]


@dataclass(frozen=True)
class Sweep:
    """A finished sweep: its directory, its config, and the numbers of `summary.json`."""

    path: Path
    config: Config = field(repr=False)
    summary: dict = field(repr=False)

    def trials(self):
        """DataFrame: a row for each trial, with its axes, seed, status and scores. Raises RunError
        for a damaged file."""
        sweeps.load(self.path)
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


def free_score(
    data, sentence: str | None = None, overrides: dict | None = None, progress: bool = True
) -> FreeScore:
    """What a hold-out is worth before anything is trained: what of it is seen, how far it lies
    from what is seen, and what baselines get right without learning.

    Args:
      data: a config as `train` takes; a file of images, .npz or .h5; or a DataFrame or dict of
        arrays (n,) with a column for each factor and, for baselines, `images` (n, H, W[, C]).
      sentence: what is held out (docs/how_to/hold_out.md); None: what the config says.
      overrides: as in `train`; of arrays, those of the preset `table`.

    Raises ConfigError, one line, before anything is computed.
    """
    if isinstance(data, dict | pandas.DataFrame):
        return _free_score_of_arrays(dict(data), sentence, overrides, progress)
    config = _resolve(data, overrides)
    if sentence is not None:
        group = "task" if hasattr(config.task, "held_out") else "task.support"
        config = configs.changed(config, {f"{group}.held_out": sentence})
    return worth.of_config(config, progress)


def _free_score_of_arrays(columns: dict, sentence, overrides, progress: bool) -> FreeScore:
    settings.demand(columns.keys() - {"images"}, "data has no column of a factor")
    settings.demand(sentence, "sentence is missing: say what is held out, as in 'posX > .5'")
    if "images" not in columns:
        factors, points_BxF, combination_n = holdouts.combinations(columns)
        held_out_B = holdouts.held_out_points(sentence, factors, points_BxF)
        numbers = worth.of_support(factors, points_BxF, held_out_B, np.bincount(combination_n))
        return FreeScore(numbers)
    arrays = {name: np.array(list(column)) for name, column in columns.items()}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "data.npz"
        directory.write_npz(path, arrays)
        return free_score(path, sentence, overrides, progress)


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


def examples(
    task, seed: int = 0, drawn: int = results.DRAWN, overrides: dict | None = None
) -> dict[str, np.ndarray]:
    """What to train a network of any framework on, and what it is scored at.

    Args:
      task: a preset's name, 'FILE.py:NAME' for a file of your own, or a `Config`.
      seed: whose training set.
      drawn: how many examples of a task that draws new ones at each step.
      overrides: new values by dotted field, such as {"task.grid": 28}.

    Returns `train_codes` and `train_targets` (n, ...) and their `train_points` (n, F), NaN where a
    factor is missing; `codes` and `targets` (B, ...), `points` (B, F) and `held_out` (B,) of all
    cells; and the factors' `names` (F,). Raises ConfigError.
    """
    for name, value, least in (("seed", seed, 0), ("drawn", drawn, 1)):
        is_count = isinstance(value, int | np.integer) and value >= least
        settings.demand(is_count, f"{name}={value!r}: must be an integer of at least {least}")
    return scoring.examples(*_task_of(task, overrides), int(seed), int(drawn))


def score(predictions, task, seeds=None, overrides: dict | None = None) -> ScoreReport:
    """Scores predictions of any framework at a task's cells, and judges whether the held-out ones
    are composed.

    Args:
      predictions: (S, B, ...) of S networks, or (B, ...) of one, at the `points` of `examples`;
        NumPy, JAX or PyTorch.
      task, overrides: as in `examples`.
      seeds: (S,) integers, whose training set each network has seen; by default 0, 1, ...

    The result prints as a table and has `to_frame()`. Raises ConfigError for predictions that do
    not fit the task.
    """
    seeds = None if seeds is None else _numpy("seeds", seeds)
    array = _numpy("predictions", predictions)
    return scoring.score(scoring.run_of(*_task_of(task, overrides), "predictions", array, seeds))


def probe(
    activations, factors, held_out, groups=None, success=None, names=None, classes=None
) -> ProbeReport:
    """Linear decodability of each factor from each layer, on ID and held-out rows.

    Args:
      activations: {layer: (B, ...)}, or (B, ...) of one layer; NumPy, JAX or PyTorch, as all else.
      factors: (B, F) numbers, or a DataFrame or dict of columns (B,), where text is a label.
      held_out: (B,) bool; False where the combination is in the training set.
      groups: (B,), equal for rows that belong together; by default each row is alone.
      success: (B,) from 0 to 1, how well the network did on each row.
      names: (F,) of the factors.
      classes: (F,) bool, whether a factor is a label; by default if it has two values.

    R^2 of numbers and AUC of labels, by ridge regressions with 95% jackknife intervals over groups
    (`compgen_jax.metrics.decodability`). The result prints as a table and has `to_frame()`. Raises
    ValueError for rows that cannot be probed.
    """
    layers = activations if isinstance(activations, dict) else {"layer": activations}
    settings.demand(layers, "activations: must have at least one layer")
    arrays = {f"layers.{name}": values for name, values in layers.items()}
    if isinstance(factors, dict | pandas.DataFrame):
        arrays |= probe_report.columns_of(pandas.DataFrame(factors))
    else:
        arrays["factors"] = factors
    others = {"held_out": held_out, "groups": groups, "success": success}
    others |= {"names": names, "classes": classes}
    arrays |= {name: values for name, values in others.items() if values is not None}
    arrays = {name: _numpy(name, values) for name, values in arrays.items()}
    return probe_report.probe(probe_report.checked(arrays))


def geometry(tensors, held_out=None) -> GeometryReport:
    """Volume and factorization of layers from their metric tensors g = J^T J (paper Eq 5-7), where
    J (D, F) is the derivative of a layer's D units by F factors.

    Args:
      tensors: {layer: (B, F, F)} at B points, or (B, F, F) of one layer; NumPy, JAX or PyTorch.
      held_out: (B,) bool; False where the combination is in the training set. Without it, volumes
        are not compared.

    The numbers are those of `analyze`, without those that need a grid; `volume` and `log10_volume`
    of the result are (B,) by layer, and `to_frame()` has a row for each layer. Raises ValueError
    for tensors that are not (B, F, F), finite and symmetric.
    """
    layers = tensors if isinstance(tensors, dict) else {"layer": tensors}
    arrays = {name: _numpy(f"tensors of {name}", values) for name, values in layers.items()}
    mask = None if held_out is None else _numpy("held_out", held_out)
    return geometry_report.report(arrays, mask)


def _task_of(task, overrides: dict | None):
    """The config and its task."""
    config = _resolve(task, overrides, "task")
    return config, scoring.task_of(config, f"task={config.name}")


def _numpy(name: str, values) -> np.ndarray:
    """An array of any framework as NumPy's. Raises ConfigError for what is no array."""
    if hasattr(values, "detach"):  # a tensor of PyTorch
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
    try:
        values = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {str(error).splitlines()[0]}") from error
    kinds = {"bfloat16": np.float32, "object": str}  # of JAX, of pandas
    return values.astype(kinds.get(values.dtype.name, values.dtype))


def _resolve(config, overrides: dict | None, argument: str = "config") -> Config:
    """The config with its overrides, after what every command does first."""
    if jax.config.jax_num_cpu_devices == -1:  # neither the user nor a command has said how many
        cli.use_all_cores()
    compilation_cache.enable()
    if isinstance(config, str | Path):
        config = cli.load_config(str(config), flag=f"{argument}=")
    hint = "give a preset's name, 'FILE.py:NAME' of your own, or a Config"
    settings.demand(isinstance(config, Config), f"{argument}={config!r}: {hint}")
    return configs.changed(config, overrides) if overrides else config
