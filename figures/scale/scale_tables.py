"""What RESULTS.md says of the second paper's runs."""

import itertools

from compgen_jax.metrics import text
from compgen_jax.papers.scale.picks import more

from ..tables import errors_of_images

PREDICTORS = ("bilinear", "sum_of_singles", "nearest_seen")


def baseline(run, predictor: str, region: str = "ood") -> float:
    """R² of a trivial predictor."""
    means = run.summary["mean"]
    error = means[f"{region}.{predictor}_mse"]["value"]
    return 1 - error / means[f"{region}.variance"]["value"]


def table(runs: dict) -> list[str]:
    """Lines on what every student of modules or preferences, and every decoder of bumps, scores
    beside trivial predictors. Only the config and the summary of a run are needed."""
    named = lambda *names: [run for name, run in runs.items() if name.startswith(names)]
    students = named("modules_", "few_", "preference_", "middle_")
    decoders = {run.config.name: run.summary for run in runs.values() if run not in students}
    draws = [run for name, run in more(runs).items() if name.startswith("draws_")]
    parts = (
        _beside_trivial(
            "Students of modules: pooled R² and gain (see below); the share of tasks with an R² of "
            ".95 or more; R² of trivial predictors.",
            "R² | gain | task R² ≥ .95 | R² of: bilinear | sum of singles | nearest seen",
            [*named("modules_", "few_"), *draws],
            ("r2", "gain", "task_accuracy"),
            _r2_of_predictors,
        ),
        _beside_trivial(
            "Students of preferences: the share of right steps and of episodes without a wrong "
            "one; right steps of trivial predictors.",
            "step accuracy | episode accuracy | most frequent action | nearest plan",
            named("preference_"),
            ("step_accuracy", "episode_accuracy"),
            _right_steps_of_predictors,
        ),
        errors_of_images(decoders),
    )
    lines = []
    for part in parts:
        lines += [""] * bool(lines and part) + part
    return lines


def _beside_trivial(says: str, titles: str, runs, scores: tuple, predicted) -> list[str]:
    """A table of scores by run and region, and of what trivial predictors (run, region -> numbers)
    score; [] without runs."""
    lines = [says, "", f"| run | region | {titles} |", "|---" * (3 + titles.count("|")) + "|"]
    for run, region in itertools.product(runs, ("id", "ood")):
        shown = [text.with_interval(run.summary["mean"][f"{region}.{name}"]) for name in scores]
        trivial = map(text.number, predicted(run, region))
        cells = run.config.name, region.upper(), *shown, *trivial
        lines.append(f"| {' | '.join(cells)} |")
    return lines if runs else []


def _r2_of_predictors(run, region: str) -> list:
    return [
        None if (region, name) == ("id", "nearest_seen") else baseline(run, name, region)
        for name in PREDICTORS
    ]


def _right_steps_of_predictors(run, region: str) -> list:
    mean = run.summary["mean"]
    return [1 - mean[f"{region}.{name}_miss"]["value"] for name in ("majority", "nearest_seen")]
