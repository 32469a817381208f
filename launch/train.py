"""Trains all seeds of a config in one program; the same command resumes a half-done run.

python -m launch.train --config=launch/config.py:bump_cnn_quick --workdir=runs/bump_cnn_quick
"""

from launch import cli

CONFIG = cli.define_config()
WORKDIR = cli.define_workdir()


SHOWN = ("mse", "blank_mse", "exact_accuracy", "position_accuracy")


def main():
    config, workdir = cli.read_config(CONFIG), cli.require(WORKDIR)
    from compgen_jax.runs import experiment

    summary = experiment.train(config, workdir)
    for region in ("id", "ood"):
        print(f"{region.upper():>4}", *(_show(summary, region, name) for name in SHOWN), sep="  ")
    print(f"wrote {workdir}/summary.json, metrics.csv and checkpoints/")


def _show(summary, region, name) -> str:
    value = summary["mean"][f"{region}.{name}"]["value"]
    return f"{name} {'none' if value is None else format(value, '.4g')}"


if __name__ == "__main__":
    cli.run(main)
