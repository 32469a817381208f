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
    """Lines on what every student of modules or preferences, and every decoder of bumps, scores
    beside trivial predictors. Only the config and the summary of a run are needed."""
    groups = {"modules": [], "preference": [], "middle": [], "decoders": []}
    for name, run in runs.items():
        kind = name.partition("_")[0].replace("few", "modules")
        groups[kind if kind in groups else "decoders"].append(run)
    draws = [run for name, run in more(runs).items() if name.startswith("draws_")]
    parts = (
        _beside_trivial(
            "Students of modules: pooled R² and gain (see below); the share of tasks with an R² of "
            ".95 or more; R² of trivial predictors.",
            {"R²": "r2", "gain": "gain", "task R² ≥ .95": "task_accuracy"},
            {
                "R² of: bilinear": "bilinear",
                "sum of singles": "sum_of_singles",
                "nearest seen": "nearest_seen",
            },
            [*groups["modules"], *draws],
        ),
        _beside_trivial(
            "Students of preferences: the share of right steps and of episodes without a wrong "
            "one; right steps of trivial predictors.",
            {"step accuracy": "step_accuracy", "episode accuracy": "episode_accuracy"},
            {"most frequent action": "majority", "nearest plan": "nearest_seen"},
            groups["preference"],
        ),
        tables.errors_of_images({run.config.name: run.summary for run in groups["decoders"]}),
    )
    return [line for part in parts if part for line in ("", *part)][1:]


def _beside_trivial(intro: str, scores: dict, predictors: dict, runs) -> list[str]:
    """A table of scores by run and region, and of what predictors score, by title; [] without
    runs."""
    rows = [
        (
            run.config.name,
            region.upper(),
            *(
                text.with_interval(run.summary["mean"][f"{region}.{name}"])
                for name in scores.values()
            ),
            *(text.number(baseline(run, name, region)) for name in predictors.values()),
        )
        for run, region in itertools.product(runs, ("id", "ood"))
    ]
    return [intro, "", *tables.table(("run", "region", *scores, *predictors), rows)] if rows else []
