"""docs/reference/presets.md: the page of all presets."""

import numpy as np

from compgen_jax.config import Config, changed
from compgen_jax.metrics import text
from compgen_jax.papers.paper import SCALES
from compgen_jax.papers.preset import Preset
from compgen_jax.papers.presets import PAPERS

from . import committed

HEAD = """# Presets

Which runs come with the package, how long do they take, and what came out?

`--config=NAME` takes a preset from any directory, `--config.KEY=VALUE` changes a field. Times are
of all seeds on 2 CPU cores, unless the row says otherwise. Results are means over seeds with 95%
intervals: the share of images *rendered* or, where that is not measured, the accuracy that is named
([terms](../glossary.md)). Where training shows stripes, most images ID are not among those shown.
`python -m figures.pages` writes this page."""
COLUMNS = ("preset", "command", "time on 2 cores", "result")


def page(papers: dict[str, dict[str, Preset]] = PAPERS) -> str:
    """The page: under the name of each paper a table of its presets."""
    ran = {_unnamed(run.config): run for scale in SCALES for run in committed.runs(scale).values()}
    parts = [HEAD]
    for paper, presets in papers.items():
        rows = [COLUMNS, ["---"] * len(COLUMNS)]
        rows += [(f"`{name}`", f"`{one.command}`", one.takes, _result(one, ran))
                 for name, one in presets.items()]  # fmt: skip
        parts.append("\n".join([f"## {paper}", "", *(f"| {' | '.join(row)} |" for row in rows)]))
    return "\n\n".join(parts) + "\n"


def _result(preset: Preset, ran: dict) -> str:
    """'rendered ID 1, OOD 0.043 [0.027, 0.06]', of the run with its config in docs/results, and
    what the preset says."""
    run = ran.get(_unnamed(preset.config))
    if run is None:
        return preset.result or "not run yet"
    mean = run.summary["mean"]
    score = "rendered" if "ood.rendered" in mean else preset.config.task.make().accuracy
    shares = (f"{region.upper()} {_share(mean[f'{region}.{score}'])}" for region in ("id", "ood"))
    found = f"{score.replace('_', ' ')} {', '.join(shares)}"
    return f"{found}: {preset.result}" if preset.result else found


def _share(measured: dict) -> str:
    """With its interval, which ends at 0 and at 1."""
    inside = {"value": measured["value"], "ci95": np.clip(measured["ci95"], 0, 1)}
    return text.with_interval(inside, digits=2)


def _unnamed(config: Config) -> Config:
    """The config with a fixed name, so that a figure's run equals its preset."""
    return changed(config, {"name": "run"})
