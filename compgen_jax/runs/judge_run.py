"""Verdicts on one finished run, whatever its task.

DIR/claims.json   does it compose what was held out?, and what its task's own `claims` ask
"""

from pathlib import Path

import numpy as np

from compgen_jax.claims import Claim, Condition, Evidence, judge, rows
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.runs import directory
from compgen_jax.runs.run import Run
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks

RIGHT = 0.9  # of the held-out combinations
HALF = 0.5  # of the best trivial predictor's error


def headline(task: tasks.Task) -> str:
    """The score that says whether a cell is answered rightly: `rendered`, else the task's accuracy;
    '' for a task with an error alone."""
    return "rendered" if "rendered" in tasks.score_names(task) else task.accuracy


def shares(task: tasks.Task, scores: dict) -> set[str]:
    """The scores of one checkpoint, by name at every cell, that are right or wrong there, so that
    their means are shares."""
    return {name for name in scores.keys() - {task.error} if np.isin(scores[name], (0, 1)).all()}


def composes(run: Run) -> Claim:
    """The claim that any task has: held-out combinations are answered rightly, and better than by
    any trivial predictor, an interpolator of the inputs among them.

    A task of images that scores `rendered` is judged by this share, and by that of the best trivial
    predictor. Another one is judged by its score of right and wrong, if it has one, and by its
    error. Without such a score a seed is trained if its error on ID points is at most half of the
    best trivial predictor's.
    """
    accuracy, error = run.task.accuracy, run.task.error
    cells = lambda e: e.run.late.cells.held_out.sum()

    def score(name, ood):
        return lambda e: mean_score(e.run.late.cells, name, e.run.late.cells.held_out == ood)

    def relative_error(ood):
        return lambda e: score(error, ood)(e) / best_trivial_error(e.run, ood)

    details = {"error ID": score(error, False), "error OOD": score(error, True)}
    if headline(run.task) == "rendered":
        more = lambda e: score("rendered", True)(e) - best_trivial_share(e.run)
        shown = Condition("share rendered OOD", score("rendered", True), above=RIGHT, cells=cells)
        name = "share rendered OOD, less the best trivial predictor's"
        conditions = shown, Condition(name, more, above=0, cells=cells, least=-1)
        details |= {f"{accuracy} OOD": score(accuracy, True)}
    else:
        right = Condition(f"{accuracy} OOD", score(accuracy, True), above=RIGHT, cells=cells)
        name = "error OOD / the best trivial predictor's"
        small = Condition(name, relative_error(True), below=HALF, ratio=True)
        conditions = (right, small) if accuracy else (small,)
    trained = lambda e: (relative_error(False)(e) <= HALF).astype(np.float64)
    trained_name = "seeds with half of the best trivial predictor's error ID, or less"
    if accuracy:
        trained, trained_name = score(accuracy, False), f"{accuracy} ID"
    return Claim(
        "composition",
        f"{run.name} composes what was held out",
        conditions,
        code=run.name,
        details=details,
        trained=trained,
        trained_name=trained_name,
    )


def best_trivial_error(run: Run, ood: bool) -> float:
    """The least error of a trivial predictor; NaN without any. Those that know the answers of ID
    points are no predictors there."""
    region = "ood" if ood else "id"
    predictors = [name for name in run.trivial if ood or not baselines.knows_id(name)]
    return min((run.trivial[name][region, run.task.error] for name in predictors), default=np.nan)


def best_trivial_share(run: Run) -> float:
    """The greatest share of held-out points that a trivial predictor renders."""
    return max((means["ood", "rendered"] for means in run.trivial.values()), default=np.nan)


def judge_directory(workdir) -> list[dict]:
    """The claims of `claims.json`, judged and written. A task family's method `claims()`, if it has
    one, returns rows of its own (`claims.Claim`), whose evidence is `e.run`, the finished run.

    Raises RunError for a run that is not finished.
    """
    run = Run.load(workdir)
    own = getattr(run.config.task, "claims", tuple)
    judged = [judge(claim, Evidence({"run": run})) for claim in (composes(run), *own())]
    directory.write_json(Path(workdir) / "claims.json", rows(judged))
    return judged
