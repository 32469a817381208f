"""The authors' own numbers, of networks that they published or printed, beside those of ours.

authors.csv: one network each, by our run of the same settings. `blank` is a blank image's error on
the authors' images of the region, where known; `source`, on a network's first line, says where its
numbers are from, and what exactly was measured.
"""

import csv
from pathlib import Path

from compgen_jax.config import Config, to_dict
from compgen_jax.metrics import text
from compgen_jax.papers.forced_rendering.bump_presets import runs as paper_runs
from compgen_jax.settings import flat

SCORES = {
    "mse": "MSE",
    "exact_accuracy": "exact accuracy",
    "position_accuracy": "accuracy within 1 pixel",
    "train_loss": "training loss",
}
ALIKE = "task", "model", "training"  # groups of a config that say what is learnt, and how
UNLIKE = "training.seeds", "training.evaluate_every"
HEAD = """
### Beside the authors' numbers

Theirs are of one network each, so that no interval is known. Where ours has other settings, as \
named with theirs in brackets, errors are over that of a blank image.

| network | score | here | authors | our settings | what theirs is |
|---|---|---|---|---|---|"""

AUTHORS = {}  # {network: {score: its line}}
with Path(__file__).with_name("authors.csv").open(newline="", encoding="utf-8") as file:
    for line in csv.DictReader(file):
        numbers = {name: float(line[name]) if line[name] else None for name in ("value", "blank")}
        AUTHORS.setdefault(line["network"], {})[line["score"]] = line | numbers


def table(runs: dict) -> list[str]:
    """Lines of RESULTS.md on the runs for which the authors give numbers, on their settings or on
    others, which are named; none without any. It needs configs and summaries."""
    theirs = paper_runs("paper")
    rows = [
        row
        for counterpart, lines in AUTHORS.items()
        for name, run in runs.items()
        if name.removesuffix("_begun") == counterpart
        for row in _rows(run, lines, _differences(run.config, theirs[counterpart]))
    ]
    return [*HEAD.split("\n"), *rows] if rows else []


def _rows(run, lines: dict, differences: str):
    mean, source = run.summary["mean"], next(iter(lines.values()))["source"]
    beside = run.config.name, differences or "theirs", source
    for score, line in lines.items():
        (region, _, name), here, value = score.rpartition("."), mean[score], line["value"]
        title = f"{SCORES[name]} {region.upper()}".strip()  # the training loss has no region
        if name == "mse" and differences:
            if not line["blank"]:
                continue
            title, blank = f"MSE / blank {region.upper()}", mean[f"{region}.blank_mse"]["value"]
            ends = [end if end is None else end / blank for end in here["ci95"]]
            here = {"value": here["value"] / blank, "ci95": ends}
            value /= line["blank"]
        numbers = f"{text.with_interval(here)} | {text.number(value)}"
        yield f"| {beside[0]} | {title} | {numbers} | {beside[1]} | {beside[2]} |"
        beside = "", "", ""


def _differences(ours: Config, theirs: Config) -> str:
    """'`task.grid` 16 (28), ...': the settings that are not theirs, theirs in brackets."""
    values, others = (
        {path: value for group in ALIKE for path, value in flat(tree[group], group).items()}
        for tree in (to_dict(ours), to_dict(theirs))
    )
    return ", ".join(
        f"`{path}` {value} ({others[path]})"
        for path, value in values.items()
        if path not in UNLIKE and value != others[path]
    )
