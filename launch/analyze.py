"""Analyses every layer of a finished run: geometry, kernels, probes, ranks, superposition.

    python -m launch.analyze --workdir=runs/bump_cnn_quick

Writes analysis.json (numbers per seed and layer, means with intervals), analysis.npz (maps; not of
a task whose points form no grid) and claims.json (verdicts: does it compose what was held out?).
"""

from pathlib import Path

from absl import flags

from compgen_jax import cli
from compgen_jax.config import ConfigError
from compgen_jax.metrics import text
from compgen_jax.runs import decoding, judge_run

WORKDIR = cli.define_workdir()
LAYERS = flags.DEFINE_list("layers", [], "The layers to show, comma-separated; all by default.")

SHOWN = {
    "volume, OOD / ID": "volume.log10_ratio",
    "factorization (Eq 7)": "factorization.mean_of_ratios",
    "interaction": "anova.interaction",
    "  over the hole": "anova.interaction_ood",
    "probe R2 ID": "probe.id_r2",
    "probe R2 OOD": "probe.ood_r2",
    "99% rank": "spectrum.energy_rank",
    "units: one factor": "tuning.one_factor",
    "units: product": "tuning.product",
}


GRID_NOTE = """(volume as log10 of the ratio; interaction and ranks of the features' variance; of a
unit's variance, mean over units: in one factor alone, and in one product of two)"""
# of a task whose points form no grid
DECODED = {
    "factors R2 ID": "id_r2",
    "factors R2 OOD": "ood_r2",
    "  before training": "untrained.ood_r2",
    "  shuffled": "shuffled.ood_r2",
}


def main():
    workdir = Path(cli.require(WORKDIR))
    found = decoding.measure_directory(workdir)
    grid = not isinstance(found, decoding.Decoding)
    for name in LAYERS.value:
        if name not in found.layers:
            raise ConfigError(
                f"--layers={name}: no such layer; this decoder has {', '.join(found.layers)}"
            )
    columns = [found.layers.index(name) for name in LAYERS.value or found.layers]
    print(f"{'mean over seeds':22}", *(f"{found.layers[k]:>9}" for k in columns))
    for title, name in (SHOWN if grid else DECODED).items():
        print(f"{title:22}", *(_show(value) for value in found.numbers[name].mean(axis=0)[columns]))
    if grid:
        print(GRID_NOTE)
    for name, values in found.outputs.items():
        print(f"{name:40} {_show(values.mean())}")
    for row in judge_run.judge_directory(workdir):
        found = row["stricter"]
        why = f", {found['reason']}" if found["reason"] else ""
        print(f"{row['statement']}: {found['verdict']}{why} (asked: {found['criterion']})")
    maps = ", analysis.npz" * grid
    print(f"wrote {workdir / 'analysis.json'}{maps} and claims.json")


def _show(value) -> str:
    return f"{text.number(value):>9}"


if __name__ == "__main__":
    cli.run(main)
