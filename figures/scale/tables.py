"""What RESULTS.md says of the second paper's runs."""

from compgen_jax.metrics import text
from compgen_jax.papers.scale.runs import of_draws

from .. import report

HEAD = (
    "| run | region | R² | gain | task R² ≥ .95 | R² of: bilinear | sum of singles | nearest seen |"
)
PREDICTORS = ("bilinear", "sum_of_singles", "nearest_seen")


def baseline(run, predictor: str, region: str = "ood") -> float:
    """R² of a trivial predictor."""
    means = run.summary["mean"]
    error = means[f"{region}.{predictor}_mse"]["value"]
    return 1 - error / means[f"{region}.variance"]["value"]


def table(runs: dict) -> list[str]:
    """Lines on what every student of modules or preferences, and every decoder of bumps, scores
    beside trivial predictors. Only the config and the summary of a run are needed."""
    named = lambda beginning: [run for name, run in runs.items() if name.startswith(beginning)]
    students = named("modules_") + list(of_draws(runs).values())
    preferences = named("preference_")
    others = ("modules_", "preference_", "middle_")
    decoders = {
        run.config.name: run.summary
        for name, run in runs.items() if not name.startswith(others)
    }  # fmt: skip
    parts = (
        _students(students) if students else [],
        _preferences(preferences) if preferences else [],
        report.errors_of_images(decoders),
    )
    lines = []
    for part in parts:
        lines += [""] * bool(lines and part) + part
    return lines


def _students(runs) -> list[str]:
    lines = [
        "Students of modules: pooled R² and gain (see below); the share of tasks with an R² of "
        ".95 or more; R² of trivial predictors.",
        "",
        HEAD,
        "|---" * 8 + "|",
    ]
    for run in runs:
        mean = run.summary["mean"]
        for region in ("id", "ood"):
            shown = [text.with_interval(mean[f"{region}.{name}"])
                     for name in ("r2", "gain", "task_accuracy")]  # fmt: skip
            trivial = [
                "–" if (region, name) == ("id", "nearest_seen")
                else text.number(baseline(run, name, region)) for name in PREDICTORS
            ]  # fmt: skip
            cells = [run.config.name, region.upper(), *shown, *trivial]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _preferences(runs) -> list[str]:
    lines = [
        "Students of preferences: the share of right steps and of episodes without a wrong one; "
        "right steps of trivial predictors.",
        "",
        "| run | region | step accuracy | episode accuracy | most frequent action | nearest plan |",
        "|---" * 6 + "|",
    ]
    for run in runs:
        mean = run.summary["mean"]
        for region in ("id", "ood"):
            shown = [text.with_interval(mean[f"{region}.{name}_accuracy"])
                     for name in ("step", "episode")]  # fmt: skip
            trivial = [text.number(1 - mean[f"{region}.{name}_miss"]["value"])
                       for name in ("majority", "nearest_seen")]  # fmt: skip
            cells = [run.config.name, region.upper(), *shown, *trivial]
            lines.append(f"| {' | '.join(cells)} |")
    return lines
