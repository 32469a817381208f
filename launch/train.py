"""Trains all seeds of a config in one program; the same command resumes a half-done run.

python -m launch.train --config=launch/config.py:bump_cnn_quick --workdir=runs/bump_cnn_quick
"""

from compgen_jax.metrics import text
from compgen_jax.runs import experiment
from launch import cli

CONFIG = cli.define_config()
WORKDIR = cli.define_workdir()


def main():
    config, workdir = cli.read_config(CONFIG), cli.require(WORKDIR)
    summary = experiment.train(config, workdir)
    for region in ("id", "ood"):
        names = [name for name in summary["mean"] if name.startswith(f"{region}.")]
        print(f"{region.upper():>4}", *(_show(summary, name) for name in names), sep="  ")
    print(f"wrote {workdir}/summary.json, metrics.csv and checkpoints/")


def _show(summary, name) -> str:
    return f"{name.partition('.')[2]} {text.number(summary['mean'][name]['value'], 4)}"


if __name__ == "__main__":
    cli.run(main)
