"""RESULTS.md: the numbers and verdicts in words."""

from compgen_jax.config import Config
from compgen_jax.metrics import text
from compgen_jax.old_claims import READINGS
from compgen_jax.papers import presets as launch_config
from compgen_jax.training import loop

PRESETS = {
    name: preset for presets in launch_config.PAPERS.values() for name, preset in presets.items()
}
NOT_RUN = "What of this scale nothing is said of above, and its cost, all seeds together:"


def page(scale: str, papers: list, runs: dict, swept, claims: list, drawn: list) -> str:
    """RESULTS.md of some `papers`. `runs` has what ran by name, each with `role`, `config` and
    `summary`; `swept` the names of the sweeps that did; `claims` of them all; `drawn` the names of
    the figures."""
    lines = [
        f"# Results at {scale} scale",
        "",
        "Means over seeds with 95% intervals (Student's t), computed by `figures.make` from the "
        "runs in `trained/`. All of it again, with the pictures below, is made by",
        "",
        f"    python -m figures.make --scale={scale} --workdir=DIR --only={','.join(drawn)}",
    ]
    for paper in papers:
        own = [runs[n.name] for n in paper.networks(scale) if n.name in runs]
        lines += _part(paper, own, [one for one in claims if one["claim"][0] in paper.letters])
    if not_run := _not_run(scale, papers, runs, swept):
        lines += ["", "## Not run", "", NOT_RUN, ""]
        lines += [f"- {name}: {cost}" for name, cost in not_run.items()]
    for name in drawn:
        lines += ["", f"![{name}](figures/{name}.png)"]
    return "\n".join(lines) + "\n"


def _not_run(scale: str, papers: list, runs: dict, swept) -> dict[str, str]:
    """What was not trained costs, all seeds together: every network, or all of a paper of which
    none was, in optimiser steps; of a preset, and of sweeps, the time as far as it is known."""
    costs = {}
    for paper in papers:
        networks = paper.networks(scale)
        own = {n.name: _steps(n.config) for n in networks if n.name not in runs}
        none = len(own) == len(networks) > 1 and len(papers) > 1
        own = {f"all {len(own)} networks of {paper.title}": sum(own.values())} if none else own
        costs |= {name: f"{steps:,} steps{_time(name, ', ')}" for name, steps in own.items()}
        sweeps = [one.name for key, one in paper.sweeps(scale).items() if key not in swept]
        costs |= {name: _time(name) or "a sweep" for name in sweeps}
    return costs


def _time(name: str, before: str = "") -> str:
    """'about 4 h on 2 cores' of a preset, '' of what is none."""
    return f"{before}{PRESETS[name].takes} on 2 cores" if name in PRESETS else ""


def _steps(config: Config) -> int:
    """Of all seeds together."""
    steps = config.training.steps or loop.total_steps(config, config.task.make())
    return len(config.training.seeds) * steps


def errors_of_images(summaries: dict) -> list[str]:
    """Lines on runs that draw images: errors by region beside trivial predictors, accuracies."""
    lines = [
        "MSE over the image, divided by the MSE of a blank image; *best constant* and *nearest "
        "seen* (the true image of the nearest seen cell) are trivial baselines. Exact accuracy: "
        "the extreme pixel is the requested one; ±1: within one pixel on both axes. Of a turned "
        "digit, exact: the digit, within 5 degrees, and an error below a twentieth of a blank's.",
        "",
        "| network | region | MSE / blank | best constant | nearest seen | exact | ±1 pixel |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, summary in summaries.items():
        lines += [_error_row(name, region, summary["mean"]) for region in ("id", "ood")]
    return lines if summaries else []


def _part(paper, runs: list, claims: list) -> list[str]:
    """What a paper says on the page; [] where it has nothing to say."""
    if not runs and not claims:
        return []
    errors = ["", f"## {paper.title}: errors and baselines", ""]
    lines = [*errors, *shown] if (shown := paper.runs(runs)) else []
    lines += [
        "",
        f"## {paper.title}: claims",
        "",
        paper.note,
        "",
        "| claim | code | reading | condition | measured | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for entry in claims:
        head = entry["claim"], entry["code"]
        same = entry["as_stated"]["conditions"] == entry["stricter"]["conditions"]
        for name in READINGS[-1:] if same else READINGS:
            title = "both" if same else name.replace("_", " ")
            lines += _reading_rows(*head, title, entry[name])
            head = "", ""
    lines += ["", "What was claimed, and what else was measured:", ""]
    for entry in claims:
        details = "; ".join(
            f"{name} {text.with_interval(number)}" for name, number in entry["details"].items()
        )
        lines.append(f"- {entry['claim']}: {entry['statement']}. {details}.")
    return lines + paper.conclude(claims)


def _reading_rows(claim: str, code: str, title: str, reading: dict):
    verdict = f"**{reading['verdict']}**"
    verdict += f" ({reading['reason']})" if reading["reason"] else ""
    for name, number in reading["conditions"].items():
        shown = text.with_interval(number)
        yield f"| {claim} | {code} | {title} | {name} {number['must be']} | {shown} | {verdict} |"
        claim = code = title = verdict = ""


def _error_row(name: str, region: str, mean: dict) -> str:
    blank = mean[f"{region}.blank_mse"]["value"]

    def relative(score):
        number = mean.get(f"{region}.{score}", {"value": None})["value"]
        if score == "nearest_seen_mse" and region == "id":
            number = None  # a seen cell's nearest seen cell is itself
        return text.number(None if number is None else number / blank)

    names = [f"{region}.{score}" for score in ("exact_accuracy", "position_accuracy")]
    shown = [text.with_interval(mean[name]) if name in mean else text.UNKNOWN for name in names]
    return (
        f"| {name} | {region.upper()} | {relative('mse')} | {relative('best_constant_mse')} "
        f"| {relative('nearest_seen_mse')} | {shown[0]} | {shown[1]} |"
    )
