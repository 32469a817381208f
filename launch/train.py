"""Trains all seeds of a config in one program; the same command resumes an interrupted run.

python -m launch.train --config=bump_cnn_quick --workdir=runs/bump_cnn_quick
"""

from compgen_jax import api, cli
from compgen_jax.metrics import text

CONFIG = cli.define_config()
WORKDIR = cli.define_workdir()


def main():
    config, workdir = cli.read_config(CONFIG), cli.require(WORKDIR)
    means = api.train(config, workdir).summary["mean"]
    for region in ("id", "ood"):
        scores = [
            f"{name.removeprefix(f'{region}.')} {text.number(mean['value'], 4)}"
            for name, mean in means.items()
            if name.startswith(f"{region}.")
        ]
        print(f"{region.upper():>4}", *scores, sep="  ")
    print(f"wrote {workdir}/summary.json, metrics.csv and checkpoints/")


if __name__ == "__main__":
    cli.run(main)
