"""Predictions of any framework at a task's cells, scored and judged as a run is.

A file of predictions, .npz: `predictions` (S, B, ...), or (B, ...) of one network, at every cell;
optional `seeds` (S,), on whose examples each was trained.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pandas

from compgen_jax import claims
from compgen_jax.config import Config, ConfigError, changed
from compgen_jax.metrics import evaluation, text
from compgen_jax.runs import directory, judge_run, results, user_code
from compgen_jax.runs.run import Run
from compgen_jax.settings import demand, in_own_files, is_own
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import contracts

NAMES = "predictions", "seeds"
COLUMNS = "predictor", "region", "score", "value", "low", "high", "seeds"


@dataclass(frozen=True, repr=False)
class ScoreReport:
    """Scores of S networks on a task; prints as a table.

    task: its name.  seeds: {seed: {'REGION.SCORE': mean}}; regions are id and ood.
    mean: {'REGION.SCORE': {'value', 'ci95'}} over seeds.
    trivial: {baseline: {'REGION.SCORE': mean}}.
    verdict: whether the held-out cells are composed: 'verdict', 'reason', 'conditions' and others.
    decisive: the scores that say so.
    """

    task: str
    seeds: dict
    mean: dict
    trivial: dict
    verdict: dict
    decisive: tuple

    def __repr__(self) -> str:
        printed = {"ID": {}, "OOD": {}}
        for name, number in self.mean.items():
            region, _, score = name.partition(".")
            printed[region.upper()][score] = text.with_interval(number)
        baselines = {
            name: {score: text.number(means.get(f"ood.{score}")) for score in self.decisive}
            for name, means in self.trivial.items()
        }
        lines = [
            f"seeds {', '.join(map(str, self.seeds))} on {self.task}",
            *judge_run.lines(self.verdict, "the held-out cells are composed"),
            "mean over seeds",
            pandas.DataFrame(printed).to_string(),
            "baselines that do not compose, OOD",
            pandas.DataFrame(baselines).T.to_string(),
        ]
        return "\n".join(lines)

    def to_frame(self) -> pandas.DataFrame:
        """A row for each predictor (`network`, or a baseline), region and score: its mean `value`,
        the network's with a 95% interval from `low` to `high`, and the number of `seeds`."""
        numbers = [
            ("network", name, mean["value"], *mean["ci95"]) for name, mean in self.mean.items()
        ]
        for baseline, means in self.trivial.items():
            numbers += [(baseline, name, value, None, None) for name, value in means.items()]
        rows = [(who, *name.split(".", 1), *ends, len(self.seeds)) for who, name, *ends in numbers]
        return pandas.DataFrame(rows, columns=COLUMNS)


def score(run: Run) -> ScoreReport:
    """The scores of a run without a directory, such as `run_of`."""
    task, per_seed = run.task, numbers(run)
    mean = judge_run.over_seeds(task, per_seed, judge_run.shares(task, run.cells.scores))
    trivial = {
        name: {".".join(key): value for key, value in means.items()}
        for name, means in run.trivial.items()
    }
    verdict = claims.judge(judge_run.composes, {"run": run}, {"case": run.name})
    decisive = tuple(dict.fromkeys(filter(None, (tasks.headline(task), task.error))))
    return ScoreReport(run.config.name, per_seed, mean, trivial, verdict, decisive)


def numbers(run: Run) -> dict:
    """{seed: {'REGION.SCORE': mean}}, with what the task derives from them."""
    masks = tasks.regions(run.task)
    by_seed = {}
    for index, seed in enumerate(run.seeds):
        scores = {name: values[index] for name, values in run.cells.scores.items()}
        means = evaluation.region_means(scores, masks, run.task.derived)
        by_seed[seed] = {name: float(value) for name, value in means.items()}
    return by_seed


def task_of(config: Config, argument: str) -> Task:
    """The task of a config, checked if it is a user's own. Raises ConfigError, which names the
    `argument` of a sweep."""
    demand(not config.is_sweep, f"{argument}: is a sweep, whose trials have their own tasks")
    with in_own_files(config.task):
        task = config.task.make()
        if is_own(config.task):
            contracts.check_task(config.task.name, task)
            user_code.check_error(config.task.name, task)
    return task


def examples(config: Config, task: Task, seed: int, drawn: int) -> dict[str, np.ndarray]:
    """The arrays that predictions are made from, as docs/how_to/score.md lists them; `drawn`: how
    many examples of a stream."""
    ((training, cells),) = results.training_examples(config, task, (seed,), drawn)
    (points, counts, codes, truths), (cell_codes, cell_truths) = training, cells
    code, _ = tasks.shapes(task)
    if isinstance(code, jax.ShapeDtypeStruct):  # several inputs stay one row of numbers
        codes = codes.reshape(-1, *code.shape)
        cell_codes = cell_codes.reshape(-1, *code.shape)
    return {
        "points": tasks.points(task),
        "codes": cell_codes,
        "targets": cell_truths,
        "names": np.array([factor.name for factor in task.factors]),
        "held_out": tasks.regions(task)["ood"],
        "train_points": points[counts],
        "train_codes": codes[counts],
        "train_targets": truths[counts],
    }


def shape_of(task: Task) -> tuple[int, ...]:
    """(B, ...): of what one network predicts at all cells."""
    truth = jax.eval_shape(partial(tasks.truth, task), tasks.example_shapes(task)[1].target)
    return len(tasks.points(task)), *truth.shape


def load(path, config: Config, task: Task) -> Run:
    """The predictions of a file. Raises ConfigError for one that does not fit the task."""
    arrays = directory.read_npz(Path(path))
    names = ", ".join(arrays) or "nothing"
    known = "predictions" in arrays and arrays.keys() <= {*NAMES}
    demand(known, f"{path}: lacks predictions, or holds others than {', '.join(NAMES)}: {names}")
    try:
        return run_of(config, task, Path(path).stem, **arrays)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def run_of(config: Config, task: Task, name: str, predictions, seeds=None) -> Run:
    """The run, without a directory, of arrays of NAMES. Raises ConfigError for those that do not
    fit the task."""
    shape = shape_of(task)
    sizes = ", ".join(map(str, shape))
    expected = f"predictions {predictions.dtype} {predictions.shape}"
    expected += f": must be (S, {sizes}) or ({sizes}) of real numbers"
    predictions = predictions.reshape(-1, *shape) if predictions.shape == shape else predictions
    fits = predictions.shape[1:] == shape and len(predictions) and predictions.dtype.kind in "biuf"
    demand(fits, expected)
    for network, cell, *_ in np.argwhere(~np.isfinite(predictions))[:1]:
        point = tasks.in_words(task.factors, tasks.points(task)[cell])
        demand(False, f"predictions: NaN or infinite in network {network} at {point}")
    seeds = np.arange(len(predictions)) if seeds is None else seeds
    fits = seeds.shape == predictions.shape[:1] and seeds.dtype.kind in "iu"
    fits = fits and len(np.unique(seeds)) == len(seeds)
    expected = f"must be {len(predictions)} integers, one for each network"
    demand(fits, f"seeds {seeds.shape} {seeds.dtype}: {expected}")
    seeds = tuple(seeds.tolist())
    config, predictions = changed(config, {"training.seeds": seeds}), predictions.astype(np.float32)
    truths = np.stack([t for _, (_, t) in results.training_examples(config, task, seeds)])
    scores_at = jax.jit(jax.vmap(jax.vmap(task.scores), (0, 0, None)))
    scores = jax.device_get(scores_at(predictions, truths, tasks.points(task)))
    run = Run(config, task, seeds, summary={})
    run.cells = results.at_cells(task, seeds, predictions, truths[0], scores)
    run.name = name
    return run
