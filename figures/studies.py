"""What a figure is drawn from: a finished run, and what is made of it."""

import json
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from compgen_jax.config import Config
from compgen_jax.runs import measure, results


class Summary(NamedTuple):
    """Of a run no more than what it is for and what it scores: enough for tables."""

    role: NamedTuple
    config: Config
    summary: dict


def committed(folder: Path, networks: list) -> dict[str, Summary]:
    """Of every network whose summary is in the folder, by its name."""
    return {
        network.name: Summary(network.role, network.config, json.loads(path.read_text()))
        for network in networks
        if (path := folder / f"{network.name}.json").exists()
    }


class Study:
    """A network's finished run in its directory; everything else is made when it is first asked
    for. `role` says what the network is for, as its paper has it."""

    def __init__(self, network, path: Path):
        self.role, self.path = network.role, path
        self.run = results.load(path)
        self.config, self.summary = self.run.config, self.run.summary

    @cached_property
    def results(self):
        """What it says at every cell: `analysis.evaluation.CellResults`."""
        return self.run.cells

    @cached_property
    def last_run(self):
        """Its run with the networks of all evaluations over the last tenth of training, of which
        claims take the median by seed."""
        return results.over_last_evaluations(self.run, self.path)

    @cached_property
    def last_results(self):
        """What these say at every cell."""
        return self.last_run.cells

    @cached_property
    def inspection(self):
        """What every layer does, kept in its directory: `measure.Measured`."""
        return measure.measure_directory(self.path)
