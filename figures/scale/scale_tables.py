"""What RESULTS.md says of the second paper's runs."""

from compgen_jax.metrics import text
from compgen_jax.papers.scale.picks import more

from .. import tables


def baseline(run, predictor: str) -> float:
    """R² OOD of a trivial predictor or, of preferences, its share of right steps."""
    mean = run.summary["mean"]
    if f"ood.{predictor}_miss" in mean:
        return 1 - mean[f"ood.{predictor}_miss"]["value"]
    return 1 - mean[f"ood.{predictor}_mse"]["value"] / mean["ood.variance"]["value"]


def table(runs: dict) -> list[str]:
    """Lines on what every student of modules or preferences scores beside trivial predictors. Only
    the config and the summary of a run are needed."""
    every = runs | more(runs)
    lines = []
    for intro, scores, predictors, kinds in (
        (
            "Students of modules: pooled R² and gain (see below); the share of tasks with an R² of "
            ".95 or more; R² OOD of trivial predictors.",
            {"R² OOD": "r2", "gain OOD": "gain", "task R² ≥ .95 OOD": "task_accuracy"},
            {
                "bilinear": "bilinear",
                "sum of singles": "sum_of_singles",
                "nearest seen": "nearest_seen",
            },
            ("modules_", "few_", "draws_"),
        ),
        (
            "Students of preferences: the share of right steps and of episodes without a wrong "
            "one; right steps of trivial predictors OOD.",
            {"steps OOD": "step_accuracy", "episodes OOD": "episode_accuracy"},
            {"most frequent action": "majority", "nearest plan": "nearest_seen"},
            ("preference_",),
        ),
    ):
        rows = []
        for run in (run for name, run in every.items() if name.startswith(kinds)):
            mean, learnt = run.summary["mean"], f"id.{next(iter(scores.values()))}"
            numbers = [text.with_interval(mean[f"ood.{score}"]) for score in scores.values()]
            trivial = [text.number(baseline(run, name)) for name in predictors.values()]
            rows.append((run.config.name, text.number(mean[learnt]["value"]), *numbers, *trivial))
        if rows:
            head = "run", "ID", *scores, *predictors
            lines += ["", intro, "", *tables.table(head, rows)]
    return lines[1:]
