"""Verdicts on one finished run, whatever its task.

DIR/claims.json   does it compose what was held out?, and what its task's own `claims` ask
"""

from functools import partial
from pathlib import Path

import numpy as np

from compgen_jax.claims import above, below, claim, judge, learnt, note
from compgen_jax.metrics import text
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.runs import directory, measure
from compgen_jax.runs.run import Run
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks

RIGHT = 0.9  # of the held-out combinations
HALF = 0.5  # of the best trivial predictor's error


def shares(task: tasks.Task, scores: dict) -> set[str]:
    """The scores that are right or wrong at every cell, so that their means are shares."""
    return {name for name in scores.keys() - {task.error} if np.isin(scores[name], (0, 1)).all()}


@claim("composition", cases=[{"case": ""}], runs={"run": "run"})
def composes(run: Run):
    """The network composes what was held out."""
    # Any task is judged by this. A task of images that scores `rendered` is judged by this share,
    # and by that of the best trivial predictor, an interpolator of the inputs among them. Another
    # one is judged by its score of right and wrong, if it has one, and by its error. Without such a
    # score a seed is trained if its error on ID points is at most half of the best predictor's.
    cells, accuracy, error = run.late.cells, run.task.accuracy, run.task.error
    count = cells.held_out.sum()
    id_means = {name: mean_score(cells, name, ~cells.held_out) for name in cells.scores}
    ood_means = {name: mean_score(cells, name, cells.held_out) for name in cells.scores}
    renders = "rendered" in cells.scores
    if accuracy:
        yield learnt(id_means[accuracy], f"{accuracy} ID")
    else:
        name = "seeds with half of the best trivial predictor's error ID, or less"
        relative = id_means[error] / best_trivial_error(run, ood=False)
        yield learnt((relative <= HALF).astype(np.float64), name)
    if renders:
        share, name = ood_means["rendered"], "share rendered OOD"
        yield above(RIGHT, share, name, cells=count)
        trivial = [means["ood", "rendered"] for means in run.trivial.values()]
        name = f"{name}, less the best trivial predictor's"
        yield above(0, share - max(trivial, default=np.nan), name, cells=count, least=-1)
    else:
        if accuracy:
            yield above(RIGHT, ood_means[accuracy], f"{accuracy} OOD", cells=count)
        relative = ood_means[error] / best_trivial_error(run, ood=True)
        yield below(HALF, relative, "error OOD / the best trivial predictor's", ratio=True)
    yield note("error ID", id_means[error])
    yield note("error OOD", ood_means[error])
    if renders:
        yield note(f"{accuracy} OOD", ood_means[accuracy])


def best_trivial_error(run: Run, ood: bool) -> float:
    """NaN without any. Those that know the answers of ID points are no predictors there."""
    region = "ood" if ood else "id"
    predictors = [name for name in run.trivial if ood or not baselines.knows_id(name)]
    return min((run.trivial[name][region, run.task.error] for name in predictors), default=np.nan)


def judge_run(run: Run) -> list[dict]:
    """The rows of `composes` and of the task family's own `claims()`."""
    of_task = getattr(run.config.task, "claims", tuple)
    claims = composes, *of_task()
    case = {"case": run.name}
    return measure.together([partial(judge, claim, {"run": run}, case) for claim in claims])


def lines(row: dict, statement: str) -> list[str]:
    """The verdict of a row, and what was measured for each condition."""
    conditions = [
        f"  {name}: {text.with_interval(number)}, must be {number['must be']}"
        for name, number in row["conditions"].items()
    ]
    why = f", {row['reason']}" if row["reason"] else ""
    return [f"{statement}: {row['verdict']}{why}", *conditions]


def judge_directory(workdir) -> list[dict]:
    """`judge_run` of a finished run, also written to claims.json where that is possible."""
    rows = judge_run(Run.load(workdir))
    with directory.kept_where_possible(Path(workdir)):
        directory.write_json(Path(workdir) / "claims.json", rows)
    return rows
