"""RESULTS.md: the numbers and verdicts of one scale in words."""

import json
import re
from math import isfinite
from pathlib import Path

from compgen_jax.claims import CONTRADICTED, INCONCLUSIVE, READINGS, REPRODUCED
from compgen_jax.config import Config
from compgen_jax.metrics import text
from compgen_jax.papers import robustness
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.presets import PAPERS as PRESETS_OF_PAPERS
from compgen_jax.training import loop

VERDICTS = REPRODUCED, CONTRADICTED, INCONCLUSIVE
CHANCE = 0.025  # that a 95% interval lies wholly on one side of what it should cover
PRESETS = {name: one for presets in PRESETS_OF_PAPERS.values() for name, one in presets.items()}


def settings(folder: Path, judged: list[dict]) -> list[dict]:
    """The rows of folder/settings.json whose criteria are still those of the judged claims."""
    path = folder / "settings.json"
    return robustness.current(json.loads(path.read_text()), judged) if path.exists() else []


def page(scale: str, papers: list[Paper], runs: dict, judged: list[dict], drawn: list[str]) -> str:
    """RESULTS.md.

    Args: runs: by name, what ran (a sweep's value is not looked at); judged: claims; drawn: names
    of figures.
    """
    lines = [
        f"# Results at {scale} scale",
        "",
        "Numbers are means over seeds with 95% intervals (Student's t), computed by `figures.make` "
        "from the runs in `trained/`. This command makes all of it again, pictures included:",
        "",
        f"    python -m figures.make --scale={scale} --workdir=DIR --only={','.join(drawn)}",
        *_verdicts(papers, judged),
    ]
    for paper in papers:
        ran = {name: runs[name] for name, config in paper.runs(scale).items()
               if name in runs and not config.is_sweep}  # fmt: skip
        lines += _part(paper, ran, _of(paper, judged))
    if missing := not_run(scale, papers, runs):
        lines += ["", "## Not run", "", "Not run at this scale, with the cost of all seeds:", ""]
        lines += missing
    return "\n".join(lines) + "\n"


def _verdicts(papers: list[Paper], judged: list[dict]) -> list[str]:
    """What was found, claim by claim, and how much of it chance could give; [] without claims."""
    if not judged:
        return []
    lines = ["", "## Verdicts", ""]
    for paper in papers:
        verdicts = [row["as_stated"]["verdict"] for row in _of(paper, judged)]
        counts = [f"{verdicts.count(one)} are {one}" for one in VERDICTS]
        if verdicts:
            lines += [f"- {paper.title}, {len(verdicts)} verdicts as stated: {', '.join(counts)}."]
    lines += ["", *by_chance(judged), *changed(papers, judged)]
    lines += [
        "",
        "Codes by verdict, as stated. In brackets: how many trained settings give the verdict of "
        "the base, and why nothing is concluded.",
        "",
        f"| claim | statement | {' | '.join(VERDICTS)} |",
        "|---" * (2 + len(VERDICTS)) + "|",
    ]
    table = {}
    for row in judged:
        statement = re.sub(r"^with the \w+ code, ", "", row["statement"])
        cells = table.setdefault((row["claim"], statement), {one: [] for one in VERDICTS})
        cells[row["as_stated"]["verdict"]].append(_code(row))
    for key, cells in table.items():
        shown = (", ".join(cells[verdict]) for verdict in VERDICTS)
        lines.append(f"| {' | '.join([*key, *shown])} |")
    return lines


def _of(paper: Paper, judged: list[dict]) -> list[dict]:
    return [row for row in judged if row["claim"][0] in paper.letters]


def _code(row: dict) -> str:
    """'bump (12 of 15; depends on upright)'."""
    reading = row["as_stated"]
    said = [robustness.share(reading), reading["reason"].partition(":")[0]]
    shown = "; ".join(each for each in said if each)
    return (row["code"] or "all") + (f" ({shown})" if shown else "")


def by_chance(judged: list[dict]) -> list[str]:
    """Lines on how many conditions were judged, and how many chance alone would decide."""
    count = len({condition for row in judged for condition in _measured(row)})
    settings = sum(row["as_stated"].get("settings", {}).get("trained", 0) for row in judged)
    beside = f" Rows have {settings} verdicts at other settings beside them." if settings else ""
    return [
        f"This page judges {count} conditions, each by a 95% interval. If every true value lay at "
        f"its bound, chance alone would have {CHANCE * count:.1f} of them hold ({CHANCE:.1%}) and "
        f"as many fail.{beside}",
    ]


def _measured(row: dict) -> list[tuple]:
    """The conditions of both readings that have an interval."""
    conditions = [item for name in READINGS for item in row[name]["conditions"].items()]
    return [
        (row["claim"], name, one["must be"], one["value"], *one["ci95"])
        for name, one in conditions
        if None not in one["ci95"] and all(map(isfinite, one["ci95"]))
    ]


def changed(papers: list[Paper], judged: list[dict]) -> list[str]:
    """Lines on the criteria that were changed after a verdict of theirs was known."""
    named = {row["claim"] for row in judged}
    claims = [claim for paper in papers for claim in paper.claims]
    found = dict.fromkeys(one.name for one in claims if one.changed and one.name in named)
    if not found:
        return ["", "No criterion was changed after a verdict of it was known."]
    return ["", f"The criteria of {len(found)} claims were changed after a verdict of theirs was "
            f"known: {', '.join(found)}. Their rows (`changed`) and docs/findings/criteria.md say "
            "how."]  # fmt: skip


def _is_same(row: dict) -> bool:
    """Whether both readings ask the same, and answer it."""
    first, second = ([row[name][key] for key in ("criterion", "verdict")] for name in READINGS)
    return first == second


def _part(paper: Paper, runs: dict, judged: list[dict]) -> list[str]:
    """What a paper says on the page; [] if it has nothing to say."""
    if not runs and not judged:
        return []
    table = paper.table(runs)
    lines = ["", f"## {paper.title}: errors and baselines", "", *table] if table else []
    if not judged:
        return lines
    lines += [
        "",
        f"## {paper.title}: claims",
        "",
        paper.note,
        "",
        "| claim | code | reading | condition | measured | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for row in judged:
        head = row["claim"], row["code"]
        for name in READINGS[-1:] if _is_same(row) else READINGS:
            title = "both" if _is_same(row) else name.replace("_", " ")
            lines += _reading_lines(*head, title, row[name])
            head = "", ""
    lines += ["", "What was claimed, and what else was measured:", ""]
    for row in judged:
        details = "; ".join(
            f"{name} {text.with_interval(number)}" for name, number in row["details"].items()
        )
        lines.append(f"- {row['claim']}: {row['statement']}. {details}.")
    return lines + paper.conclude(judged)


def _reading_lines(claim: str, code: str, title: str, reading: dict):
    said = [reading["reason"], _of_settings(reading)]
    said = "; ".join(each for each in said if each)
    verdict = f"**{reading['verdict']}**" + (f" ({said})" if said else "")
    for name, number in reading["conditions"].items():
        shown = text.with_interval(number)
        yield f"| {claim} | {code} | {title} | {name} {number['must be']} | {shown} | {verdict} |"
        claim = code = title = verdict = ""


def _of_settings(reading: dict) -> str:
    """'reproduced in 12 of 15 trained settings, 2 did not learn', or ''."""
    settings = reading.get("settings")
    if not settings:
        return ""
    trained = f"{settings['verdict']} in {robustness.share(reading)} trained settings"
    said = [trained] if settings["trained"] else []
    said += [f"{settings['quick']} of them quick"] if settings["quick"] else []
    said += [f"{settings['untrained']} did not learn"] if settings["untrained"] else []
    return ", ".join(said)


def not_run(scale: str, papers: list[Paper], runs: dict) -> list[str]:
    """A table of what was not trained, with its cost; [] if there is nothing. Networks of the same
    cost whose names differ in numbers alone are one row."""
    rows = {}
    for name, cost in _costs(scale, papers, runs).items():
        rows.setdefault((re.sub(r"\d+", "", name), cost), []).append(name)
    lines = [
        f"| {names[0]} to {names[-1]} | {len(names)} | {cost} each |" if len(names) > 1
        else f"| {names[0]} | 1 | {cost} |"
        for (_, cost), names in rows.items()
    ]  # fmt: skip
    return ["| network or sweep | number | cost |", "|---|---|---|", *lines] if lines else []


def _costs(scale: str, papers: list[Paper], runs: dict) -> dict[str, str]:
    """The cost of what was not trained: optimiser steps of all seeds, and the time of a preset. A
    paper of which nothing ran is one line."""
    costs = {}
    for paper in papers:
        missing = {n: one for n, one in paper.runs(scale).items() if n not in runs}
        steps = {one.name: _steps(one) for one in missing.values() if not one.is_sweep}
        if len(missing) == len(paper.runs(scale)) > 1 and len(papers) > 1:
            steps = {f"all {len(steps)} networks of {paper.title}": sum(steps.values())}
        costs |= {name: f"{count:,} steps{_time(name, ', ')}" for name, count in steps.items()}
        sweeps = [one.name for one in missing.values() if one.is_sweep]
        costs |= {name: _time(name) or "a sweep" for name in sweeps}
    return costs


def _time(name: str, before: str = "") -> str:
    """'about 4 h on 2 cores' for a preset, else ''; a time by FLOPs may be that of a GPU."""
    takes = PRESETS[name].takes if name in PRESETS else ""
    return before + takes + " on 2 cores" * ("FLOPs" not in takes) if takes else ""


def _steps(config: Config) -> int:
    """Of all seeds together."""
    steps = config.training.steps or loop.total_steps(config, config.task.make())
    return len(config.training.seeds) * steps


def errors_of_images(summaries: dict[str, dict]) -> list[str]:
    """Lines on runs that draw images: shares rendered, errors by region beside trivial predictors,
    accuracies."""
    if not summaries:
        return []
    return [
        "Rendered: the share of images that show what is asked, at any level (squared correlation "
        "at least .75, gain between .5 and 2, and more like the asked image than like that of the "
        "nearest ID cell). By interpolation: the same of a kernel ridge regression on the codes "
        "and images that a seed was shown. MSE over the image, divided by the MSE of a blank "
        "image; *best constant* and *nearest seen* (the true image of the nearest ID cell) are "
        "trivial predictors. Exact accuracy: the extreme pixel is the requested one; ±1: within "
        "one pixel on both axes. For a turned digit, exact means the digit, within 5 degrees, and "
        "an error below a twentieth of a blank image's.",
        "",
        "| network | region | rendered | by interpolation | MSE / blank | best constant "
        "| nearest seen | exact | ±1 pixel |",
        "|---" * 9 + "|",
        *(
            _error_line(name, region, summary["mean"])
            for name, summary in summaries.items()
            for region in ("id", "ood")
        ),
    ]


def _error_line(name: str, region: str, mean: dict) -> str:
    blank = mean[f"{region}.blank_mse"]["value"]

    def relative(score):
        number = mean.get(f"{region}.{score}", {"value": None})["value"]
        if score == "nearest_seen_mse" and region == "id":
            number = None  # the nearest ID cell of an ID cell is the cell itself
        return text.number(None if number is None else number / blank)

    def share(score):
        number = mean.get(f"{region}.{score}")
        return text.with_interval(number) if number else text.UNKNOWN

    errors = map(relative, ("mse", "best_constant_mse", "nearest_seen_mse"))
    rendered = map(share, ("rendered", "interpolator_rendered"))
    accuracies = map(share, ("exact_accuracy", "position_accuracy"))
    return f"| {' | '.join((name, region.upper(), *rendered, *errors, *accuracies))} |"
