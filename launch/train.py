"""Trains all seeds of a config at once; the same command resumes a half-done run.

python -m launch.train --config=launch/config.py:bump_cnn_quick --workdir=runs/bump_cnn_quick
"""

from launch import cli

CONFIG = cli.define_config()
WORKDIR = cli.define_workdir()


def main():
    config, workdir = cli.read_config(CONFIG), cli.require(WORKDIR)
    from compgen_jax import experiment

    summary = experiment.train(config, workdir)
    for region in ("id", "ood"):
        numbers = {
            name: summary["mean"][f"{region}.{name}"]
            for name in ("mse", "blank_mse", "exact_accuracy", "position_accuracy")
        }
        print(
            f"{region.upper():>4}",
            *(f"{name} {number['value']:.4g}" for name, number in numbers.items()),
            sep="  ",
        )
    print(f"wrote {workdir}/summary.json, metrics.csv and checkpoints/")


if __name__ == "__main__":
    cli.run(main)
