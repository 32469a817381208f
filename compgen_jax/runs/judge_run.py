"""Verdicts on one finished run, whatever its task.

DIR/claims.json   does it compose what was held out?, and what its task's own `claims` ask
"""

from pathlib import Path

import numpy as np

from compgen_jax.claims import Claim, Condition, Evidence, judge, rows
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.runs import directory, results

RIGHT = 0.9  # of the held-out combinations
HALF = 0.5  # of the best trivial predictor's error


def composes(run: results.FinishedRun) -> Claim:
    """The claim that any task has: held-out combinations are answered rightly, if its task has a
    score of right and wrong, and better than by any trivial predictor.

    Without such a score, a seed is trained if its error on ID points is at most half of the best
    trivial predictor's.
    """
    accuracy, error = run.task.accuracy, run.task.error

    def score(name, ood):
        return lambda e: mean_score(e.run.late.cells, name, e.run.late.cells.held_out == ood)

    def relative_error(ood):
        return lambda e: score(error, ood)(e) / best_trivial_error(e.run, ood)

    conditions = (
        Condition(
            "error OOD / the best trivial predictor's", relative_error(True), below=HALF, ratio=True
        ),
    )
    trained = lambda e: (relative_error(False)(e) <= HALF).astype(np.float64)
    trained_name = "seeds with half of the best trivial predictor's error ID, or less"
    if accuracy:
        cells = lambda e: e.run.late.cells.held_out.sum()
        right = Condition(f"{accuracy} OOD", score(accuracy, True), above=RIGHT, cells=cells)
        conditions = (right, *conditions)
        trained, trained_name = score(accuracy, False), f"{accuracy} ID"
    return Claim(
        "composition",
        f"{run.name} composes what was held out",
        conditions,
        code=run.name,
        details={"error ID": score(error, False), "error OOD": score(error, True)},
        trained=trained,
        trained_name=trained_name,
    )


def best_trivial_error(run: results.FinishedRun, ood: bool) -> float:
    """The least error of a trivial predictor; NaN for a task without any. Among ID points the
    nearest one is the point itself, so `nearest_seen` is no predictor there."""
    region = "ood" if ood else "id"
    return min(
        (
            run.summary["mean"][f"{region}.{name}_{run.task.error}"]["value"]
            for name in run.task.baselines
            if ood or name != "nearest_seen"
        ),
        default=np.nan,
    )


def judge_directory(workdir) -> list[dict]:
    """The claims of `claims.json`, judged and written. A task family's method `claims()`, if it has
    one, returns rows of its own (`claims.Claim`), whose evidence is `e.run`, the finished run.

    Raises RunError for a run that is not finished.
    """
    run = results.load(workdir)
    own = getattr(run.config.task, "claims", tuple)
    judged = [judge(claim, Evidence({"run": run})) for claim in (composes(run), *own())]
    directory.write_json(Path(workdir) / "claims.json", rows(judged))
    return judged
