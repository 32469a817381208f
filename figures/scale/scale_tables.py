"""What RESULTS.md says of the second paper's runs."""

import itertools

from compgen_jax.metrics import text
from compgen_jax.papers.scale.picks import more

from .. import tables


def baseline(run, predictor: str, region: str = "ood") -> float | None:
    """R² of a trivial predictor or, of preferences, its share of right steps; None for the nearest
    set of modules of an ID one."""
    mean = run.summary["mean"]
    if f"{region}.{predictor}_miss" in mean:
        return 1 - mean[f"{region}.{predictor}_miss"]["value"]
    if (region, predictor) == ("id", "nearest_seen"):
        return None
    return 1 - mean[f"{region}.{predictor}_mse"]["value"] / mean[f"{region}.variance"]["value"]


def table(runs: dict) -> list[str]:
    """Lines on what every student of modules or preferences scores beside trivial predictors. Only
    the config and the summary of a run are needed."""
    every = runs | more(runs)
    lines = []
    for intro, scores, predictors, kinds in (
        (
            "Students of modules: pooled R² and gain (see below); the share of tasks with an R² of "
            ".95 or more; R² of trivial predictors.",
            {"R²": "r2", "gain": "gain", "task R² ≥ .95": "task_accuracy"},
            {
                "R² of: bilinear": "bilinear",
                "sum of singles": "sum_of_singles",
                "nearest seen": "nearest_seen",
            },
            ("modules_", "few_", "draws_"),
        ),
        (
            "Students of preferences: the share of right steps and of episodes without a wrong "
            "one; right steps of trivial predictors.",
            {"step accuracy": "step_accuracy", "episode accuracy": "episode_accuracy"},
            {"most frequent action": "majority", "nearest plan": "nearest_seen"},
            ("preference_",),
        ),
    ):
        rows = []
        students = [run for name, run in every.items() if name.startswith(kinds)]
        for run, region in itertools.product(students, ("id", "ood")):
            numbers = [run.summary["mean"][f"{region}.{name}"] for name in scores.values()]
            trivial = [text.number(baseline(run, name, region)) for name in predictors.values()]
            name = run.config.name, region.upper()
            rows.append((*name, *map(text.with_interval, numbers), *trivial))
        if rows:
            head = "run", "region", *scores, *predictors
            lines += ["", intro, "", *tables.table(head, rows)]
    return lines[1:]
