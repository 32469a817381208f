"""What docs/results holds: the summaries, verdicts and pictures that were taken over there."""

import json
from collections.abc import Iterable
from pathlib import Path

from compgen_jax.claims import BASE
from compgen_jax.runs.run import Run
from compgen_jax.statistics import in_range

from .papers import FIGURES, PAPERS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"


def configs(scale: str) -> dict:
    """All runs and sweeps of all papers, by name."""
    return {name: config for paper in PAPERS for name, config in paper.runs(scale).items()}


def rows(scale: str) -> list[dict]:
    """The rows of claims.json in docs/results, [] without. Some numbers are of a version
    that did not cut the intervals of shares."""
    path = RESULTS / scale / "claims.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    for row in rows:
        notes = row["notes"].items()
        row["notes"] = {name: in_range(name, number) for name, number in notes}
    return rows


def key_of(row: dict) -> tuple:
    return row["claim"], row["case"], row["scale"], row["setting"]


def merged(before: Iterable[dict], rows: list[dict]) -> list[dict]:
    """The rows, and those of other settings from before whose base is among them with the same
    criterion."""
    keys = {key_of(row) for row in rows}
    criteria = {key_of(row)[:3]: row["criterion"] for row in rows if row["setting"] == BASE}
    return rows + [
        row
        for row in before
        if key_of(row) not in keys and criteria.get(key_of(row)[:3]) == row["criterion"]
    ]


def runs(scale: str) -> dict[str, Run]:
    """The runs whose summaries are in docs/results, by name."""
    runs = {}
    for name, config in configs(scale).items():
        path = RESULTS / scale / "runs" / f"{config.name}.json"
        if path.exists():
            summary = json.loads(path.read_text())
            mean = summary["mean"].items()
            summary["mean"] = {name: in_range(name, number) for name, number in mean}
            runs[name] = Run(config, seeds=config.training.seeds, summary=summary)
    return runs


def drawn(scale: str) -> list[str]:
    """The names of the figures in docs/results."""
    paths = (RESULTS / scale / "figures").glob("*.png")
    return sorted(path.stem for path in paths if path.stem in FIGURES)
