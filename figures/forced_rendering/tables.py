"""What RESULTS.md says of the paper's runs and claims, in tables and words."""

from compgen_jax.claims import CONTRADICTED, INCONCLUSIVE, REPRODUCED
from compgen_jax.metrics import text
from compgen_jax.papers.forced_rendering import controls
from compgen_jax.tasks import baselines

from ..tables import errors_of_images
from . import authors

NOTE = (
    "C are the paper's claims, K controls of our own. Each has two readings: as stated, and "
    "stricter, with alternatives and controls excluded. Intervals are Student's t over seeds. A "
    "verdict needs every condition on its whole interval, and says why where it is inconclusive. "
    "What a seed draws, and what its layers do (C4 to C7, C12, C13), is judged by its median over "
    "five evaluations in the last tenth of training. "
    "docs/findings/criteria.md has the maps on which criteria were tried, and those that were "
    "withdrawn."
)
OF_BUMPS = {"id.blank_mse", "id.position_accuracy"}  # what summaries of images of bumps have


def table(runs: dict) -> list[str]:
    """Lines of RESULTS.md from finished runs by name: what decoders of bumps score, beside what the
    authors' own did, and what all other networks score. It needs their configs and summaries."""
    runs = {name: run for name, run in runs.items() if not run.config.is_sweep}
    of_bumps = {
        run.config.name: run.summary
        for run in runs.values()
        if run.summary["mean"].keys() >= OF_BUMPS
    }
    others = [run for run in runs.values() if run.config.name not in of_bumps]
    lines = [*errors_of_images(of_bumps), *authors.table(runs)]
    if others:
        lines += [
            "",
            "### Other tasks",
            "",
            "Exact: an encoder's coordinates are all right; a turned image's angle and error are. "
            "±1: each coordinate is within one pixel. The best trivial predictor is the one of "
            "least error over the region, except those that know the truth of ID combinations.",
            "",
            "| network | region | exact | ±1 pixel | MSE | MSE / best trivial predictor |",
            "|---|---|---|---|---|---|",
        ]
    return lines + [_row(run, region) for run in others for region in ("id", "ood")]


def _row(run, region: str) -> str:
    mean, task = run.summary["mean"], run.config.task.make()
    accuracies = (mean.get(f"{region}.{score}") for score in (task.accuracy, "position_accuracy"))
    shown = [text.with_interval(each) if each else text.UNKNOWN for each in accuracies]
    error = mean[f"{region}.{task.error}"]
    trivial = {
        name: mean[key]["value"]
        for name in (*task.baselines, "interpolator")
        if (key := f"{region}.{name}_{task.error}") in mean
        and not (region == "id" and baselines.knows_id(name))
    }
    # others that know the truth of an ID combination have no error there but rounding
    least = 1e-6 * max(trivial.values())
    best = min((name for name, value in trivial.items() if value > least), key=trivial.get)
    over = f"{text.number(error['value'] / trivial[best])} ({best.replace('_', ' ')})"
    return (
        f"| {run.config.name} | {region.upper()} | {' | '.join(shown)} "
        f"| {text.with_interval(error)} | {over} |"
    )


def conclude(judged: list[dict]) -> list[str]:
    """Lines of RESULTS.md on what the judged controls say together, and on exponents; none without
    such claims."""
    lines = exponents(judged)
    if lines:
        lines = ["", "## How many images are enough?", "", *lines]
    judged = [claim for claim in judged if claim["claim"] in controls.SENTENCES]
    if not judged:
        return lines
    lines += [
        "",
        "## Composition, or the lighting of pixels?",
        "",
        "A block hold-out leaves pixels that training never lights, and a decoder whose pixels "
        "share no weights cannot learn to; stripes light them. The controls (K1 to K5) take one "
        "explanation away each.",
        "",
        f"**{controls.conclude(judged)}**",
        "",
    ]
    for claim in judged:
        reading = claim["stricter"]
        name, number = next(iter(reading["conditions"].items()))
        measured = f"{name} {text.with_interval(number)}"
        if within := claim["details"].get("accuracy OOD within 1 pixel"):
            measured += f", within 1 pixel {text.with_interval(within)}"
        lines.append(
            f"- {claim['claim']}, {reading['verdict']}: {claim['statement']} ({measured})."
        )
    return lines


def exponents(judged: list[dict]) -> list[str]:
    """By every reading of C11 (how many images are enough) the exponent of each scheme with its
    interval, and whether that is the paper's; [] without it."""
    judged = [claim for claim in judged if claim["claim"] == "C11"]
    if not judged:
        return []
    conditions = [claim["stricter"]["conditions"] for claim in judged]
    lines = [
        f"| | {' | '.join(claim['statement'] for claim in judged)} |",
        "|---" * (1 + len(judged)) + "|",
    ]
    for name in {name: None for of_scheme in conditions for name in of_scheme}:
        cells = [_exponent(of_scheme.get(name)) for of_scheme in conditions]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _exponent(number: dict | None) -> str:
    if number is None:
        return ""
    why = number.get("undecided_because", "").partition(":")[0]
    why = why or "the interval crosses a bound"
    verdict = {True: REPRODUCED, False: CONTRADICTED, None: f"{INCONCLUSIVE}: {why}"}
    return f"{text.with_interval(number, 2)} {verdict[number['holds']]}"
