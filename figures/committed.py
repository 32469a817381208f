"""What docs/results holds: the summaries, verdicts and pictures that were taken over there."""

import json
from pathlib import Path

from compgen_jax.claims import from_rows
from compgen_jax.runs.run import Run

from . import digests, report
from .papers import FIGURES, PAPERS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"


def configs(scale: str) -> dict:
    """All runs and sweeps of all papers, by name."""
    return {name: config for paper in PAPERS for name, config in paper.runs(scale).items()}


def claims(scale: str) -> list[dict]:
    """The judged claims in docs/results, [] for a scale without."""
    path = RESULTS / scale / "claims.json"
    return from_rows(json.loads(path.read_text())) if path.exists() else []


def runs(scale: str) -> dict[str, Run]:
    """The runs whose summaries are in docs/results, by name."""
    every, folder = configs(scale), RESULTS / scale / "runs"
    paths = {name: folder / f"{config.name}.json" for name, config in every.items()}
    return {
        name: Run.of_summary(every[name], json.loads(path.read_text()))
        for name, path in paths.items()
        if path.exists()
    }


def drawn(scale: str) -> list[str]:
    """The names of the figures in docs/results."""
    there = (path.stem for path in (RESULTS / scale / "figures").glob("*.png"))
    return sorted(name for name in there if name in FIGURES)


def changes_since(scale: str) -> dict[str, list[str]]:
    """For every figure in docs/results, what has changed since it was drawn (`digests.changes`)."""
    lines, every, found = digests.read(RESULTS / scale / "figures"), configs(scale), {}
    for name in drawn(scale):
        shown = [every[run].name for run in FIGURES[name].shows(every, scale)]
        paths = [RESULTS / scale / "runs" / f"{run}.json" for run in shown]
        if FIGURES[name].of_settings:
            paths = [RESULTS / scale / "settings.json"]
        summaries = {path.stem: path.read_bytes() for path in paths if path.exists()}
        found[name] = digests.changes(lines.get(name), FIGURES[name], summaries)
    return found


def page(scale: str) -> str:
    """RESULTS.md, made of what else is in docs/results."""
    return report.page(scale, PAPERS, ran(scale), claims(scale), drawn(scale))


def ran(scale: str) -> dict:
    """The runs whose summaries are there, and the sweeps (None) of which a figure is there."""
    every = configs(scale)
    shown = {name for figure in drawn(scale) for name in FIGURES[figure].shows(every, scale)}
    return runs(scale) | {name: None for name in shown if every[name].is_sweep}


def settings(scale: str) -> list[dict]:
    """The rows of settings.json in docs/results whose criteria still hold."""
    return report.settings(RESULTS / scale, claims(scale))
