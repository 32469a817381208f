"""What RESULTS.md says of the paper's runs."""

from compgen_jax.metrics import text
from compgen_jax.tasks import baselines

from .. import tables
from . import authors

OF_BUMPS = {"id.blank_mse", "id.position_accuracy"}  # what summaries of images of bumps have


def table(runs: dict) -> list[str]:
    """Lines of RESULTS.md on finished runs by name: what decoders of bumps score, beside what the
    authors' own did, and all other networks."""
    runs = {name: run for name, run in runs.items() if not run.config.is_sweep}
    of_bumps = {
        run.config.name: run.summary
        for run in runs.values()
        if run.summary["mean"].keys() >= OF_BUMPS
    }
    others = [run for run in runs.values() if run.config.name not in of_bumps]
    lines = tables.errors_of_images(of_bumps) + authors.table(runs)
    if not others:
        return lines
    intro = (
        "Exact: an encoder's coordinates are all right; a turned image's angle and error are. "
        "±1: each coordinate is within one pixel. The best trivial predictor is the one of "
        "least error over the region, except those that know the truth of ID combinations."
    )
    head = "network", "region", "exact", "±1 pixel", "MSE", "MSE / best trivial predictor"
    rows = [_row(run, region) for run in others for region in ("id", "ood")]
    return lines + (
        ["", "### Other tasks", "", intro, "", *tables.table(head, rows)] if rows else []
    )


def _row(run, region: str) -> tuple[str, ...]:
    mean, task = run.summary["mean"], run.config.task.make()
    accuracies = (mean.get(f"{region}.{score}") for score in (task.accuracy, "position_accuracy"))
    words = [text.with_interval(number) if number else text.UNKNOWN for number in accuracies]
    error = mean[f"{region}.{task.error}"]
    trivial = {
        name: mean[key]["value"]
        for name in (*task.baselines, *baselines.FROM_CODES)
        if (key := f"{region}.{name}_{task.error}") in mean
        and not (region == "id" and baselines.knows_id(name))
    }
    # others that know the truth of an ID combination have no error there but rounding
    least = 1e-6 * max(trivial.values())
    best = min((name for name, value in trivial.items() if value > least), key=trivial.get)
    ratio = f"{text.number(error['value'] / trivial[best])} ({best.replace('_', ' ')})"
    return run.config.name, region.upper(), *words, text.with_interval(error), ratio
