"""Judges a finished run, and analyses its layers: geometry, kernels, probes, ranks, superposition.

    compgen-jax analyze --workdir=runs/bump_cnn_quick

Prints the verdict (does the network compose what was held out?), then metrics of each layer. Writes
claims.json (verdicts), layers.csv (all numbers), analysis.json (means and intervals) and, of a task
on a grid, analysis.npz (maps). --extend=FILE.py adds metrics of your own (docs/how_to/extend.md).
"""

import os
from pathlib import Path

from absl import flags

from compgen_jax import cli
from compgen_jax.metrics import registry, text
from compgen_jax.runs import judge_run, measure
from compgen_jax.runs.run import Run
from compgen_jax.settings import demand

WORKDIR = cli.define_workdir()
cli.define_trust()
LAYERS = flags.DEFINE_list("layers", [], "The layers to show, comma-separated; all by default.")
METRICS = flags.DEFINE_list("metrics", [], "Only these, such as probe,anova; all by default.")
EXTEND = cli.define_extend()  # a flag of this command, in --help

# a task whose points form no grid has other metrics
PRINTED = {
    "volume, OOD / ID": "volume.log10_ratio",
    "factorization (Eq 7)": "factorization.mean_of_ratios",
    "interaction": "anova.interaction",
    "  over the hole": "anova.interaction_ood",
    "probe R2 ID": "probe.id_r2",
    "probe R2 OOD": "probe.ood_r2",
    "99% rank": "spectrum.energy_rank",
    "units: one factor": "tuning.one_factor",
    "units: product": "tuning.product",
    "factors R2 ID": "decode.id_r2",
    "factors R2 OOD": "decode.ood_r2",
    "  before training": "decode.untrained.ood_r2",
    "  shuffled": "decode.shuffled.ood_r2",
}
GRID_NOTE = """(volume as log10 of the ratio; interaction and ranks of the features' variance; of a
unit's variance, mean over units: in one factor alone, and in one product of two)"""


def main():
    workdir = Path(cli.require(WORKDIR))
    modules = {module.__name__ for module in cli.load_extensions()}
    measured = measure.measure(Run.load(workdir, with_networks=False), families=METRICS.value)
    layers = measured.layers
    for name in LAYERS.value:
        hint = f"no such layer; this decoder has {', '.join(layers)}"
        demand(name in layers, f"--layers={name}: {hint}")
    columns = [layers.index(name) for name in LAYERS.value or layers]
    printed = dict(PRINTED)
    for metric in registry.METRICS:
        if metric.function.__module__ in modules:
            printed |= dict(zip(metric.names, metric.names, strict=True))
    for row in judge_run.judge_directory(workdir):
        print("\n".join(judge_run.lines(row, f"{row['case']}: {row['statement']}")))
    print(f"{'mean over seeds':22}", *(f"{layers[k]:>9}" for k in columns))
    for title, name in printed.items():
        if name in measured.numbers:
            means = measured.numbers[name].mean(axis=0)[columns]
            print(f"{title:22}", *(f"{text.number(value):>9}" for value in means))
    if measured.sizes:
        print(GRID_NOTE)
    for name, values in measured.outputs.items():
        print(f"{name:40} {text.number(values.mean()):>9}")
    if os.access(workdir, os.W_OK):
        maps = ", analysis.npz" if measured.maps else ""
        print(f"wrote {workdir / 'analysis.json'}, layers.csv{maps} and claims.json")


if __name__ == "__main__":
    cli.run(main)
