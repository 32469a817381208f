"""Committed runs as the figures and claims of papers ask for them."""

import json
import zlib
from pathlib import Path

import numpy as np

from compgen_jax.runs.run import Run

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "quick"


def claims() -> list[dict]:
    return json.loads((RESULTS / "claims.json").read_text())


def finished(configs: dict, layers=(), outputs=(), with_tasks: bool = False) -> dict:
    """Quick runs by name that have a committed summary. Metrics of four layers, (T, 4), and of
    outputs, (T,), are drawn by the run's name. Tasks take long to make."""
    runs = {}
    for name, config in configs.items():
        summary = RESULTS / "runs" / f"{config.name}.json"
        if not summary.exists():
            continue
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        seeds = config.training.seeds
        runs[name] = Run.known(
            seeds,
            None,
            {metric: rng.random((len(seeds), 4)) for metric in layers},
            {metric: rng.random(len(seeds)) for metric in outputs},
            config=config,
            summary=json.loads(summary.read_text()),
            task=config.task.make() if with_tasks else None,
        )
    return runs
