"""Verdicts on one finished run, whatever its task.

DIR/claims.json   does it compose what was held out?, and what its task's own `claims` ask
"""

from functools import partial
from operator import itemgetter
from pathlib import Path

import numpy as np
import pandas as pd

from compgen_jax.claims import above, below, claim, judge, learnt, near_bounds, note
from compgen_jax.metrics import text
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.runs import directory, measure
from compgen_jax.runs.run import Run
from compgen_jax.statistics import mean_with_interval, of_share
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks

RIGHT = 0.9  # of the held-out combinations
HALF = 0.5  # of the best trivial predictor's error


def shares(task: tasks.Task, scores: dict) -> set[str]:
    """The scores that are right or wrong at every cell, so that their means are shares."""
    return {name for name in scores.keys() - {task.error} if np.isin(scores[name], (0, 1)).all()}


def over_seeds(task: tasks.Task, by_seed: dict, shares) -> dict:
    """{'REGION.SCORE': {'value', 'ci95'}} of {seed: {'REGION.SCORE': number}}; `shares` are scores
    whose interval is that of a share; a number of no region is none. None is NaN."""
    masks, means = tasks.regions(task), {}
    for name in next(iter(by_seed.values())):
        region, _, score = name.partition(".")
        values = np.array([numbers[name] for numbers in by_seed.values()], float)
        means[name] = mean_with_interval(values, name)
        if region in masks and score in shares:
            means[name] = of_share(means[name], masks[region].sum())
    return means


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
        relative = id_means[error] / best_baseline(run, error, "id")[1]
        yield learnt((relative <= HALF).astype(np.float64), name)
    if renders:
        share, name = ood_means["rendered"], "share rendered OOD"
        yield above(RIGHT, share, name, cells=count)
        name = f"{name}, less the best trivial predictor's"
        less = share - best_baseline(run, "rendered")[1]
        yield above(0, less, name, cells=count, least=-1)
    else:
        if accuracy:
            yield above(RIGHT, ood_means[accuracy], f"{accuracy} OOD", cells=count)
        relative = ood_means[error] / best_baseline(run, error)[1]
        yield below(HALF, relative, "error OOD / the best trivial predictor's", ratio=True)
    score = "rendered" if renders else accuracy or error
    name, mean = best_baseline(run, score)
    yield note(f"{score} OOD of the best baseline, {name}", {"value": mean, "ci95": [np.nan] * 2})
    yield note("error ID", id_means[error])
    yield note("error OOD", ood_means[error])
    if renders:
        yield note(f"{accuracy} OOD", ood_means[accuracy])


def best_baseline(run: Run, score: str, region: str = "ood") -> tuple[str, float]:
    """The trivial predictor that scores best, and its mean over seeds; ('', NaN) without any. Those
    that know the answers of ID points are no predictors there."""
    means = {
        name: of_predictor.get((region, score), np.nan)
        for name, of_predictor in run.trivial.items()
        if region == "ood" or not baselines.knows_id(name)
    }
    known = [(name, mean) for name, mean in means.items() if not np.isnan(mean)]
    best = min if score == run.task.error else max
    return best(known, key=itemgetter(1), default=("", np.nan))


def judge_run(run: Run) -> list[dict]:
    """The rows of `composes` and of the task family's own `claims()`."""
    of_task = getattr(run.config.task, "claims", tuple)
    claims = composes, *of_task()
    case = {"case": run.name}
    return measure.together([partial(judge, claim, {"run": run}, case) for claim in claims])


def score_table(run: Run) -> str:
    """The score of right answers and the error of a finished run, means over seeds of medians over
    late evaluations with 95% intervals, and the best baseline's."""
    headline, columns = tasks.headline(run.task), {}
    means = over_seeds(run.task, run.summary["seeds"], {headline})
    for score in dict.fromkeys(filter(None, (headline, run.task.error))):
        column = columns[score] = {
            f"{region}, late median": text.with_interval(means[f"{region.lower()}.{score}"])
            for region in ("ID", "OOD")
        }
        name, mean = best_baseline(run, score)
        column["OOD, best baseline"] = f"{text.number(mean)} {name}".strip()
    return pd.DataFrame(columns).to_string()


def lines(row: dict, statement: str) -> list[str]:
    """The verdict of a row, and what was measured for each condition."""
    conditions, near = [], near_bounds(row)
    for name, number in row["conditions"].items():
        ends = " (near its bound)" if name in near else ""
        measured = f"{text.with_interval(number)}, must be {number['must be']}"
        conditions.append(f"  {name}: {measured}{ends}")
    why = f", {row['reason']}" if row["reason"] else ""
    return [f"{statement}: {row['verdict']}{why}", *conditions]


def judge_directory(workdir) -> list[dict]:
    """`judge_run` of a finished run, also written to claims.json where that is possible."""
    rows = judge_run(Run.load(workdir))
    with directory.kept_where_possible(Path(workdir)):
        directory.write_json(Path(workdir) / "claims.json", rows)
    return rows
