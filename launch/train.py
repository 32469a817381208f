"""Trains all seeds of a config in one program; the same command resumes an interrupted run.

compgen-jax train --config=bump_cnn_quick --workdir=runs/bump_cnn_quick

--print_config shows the complete config, --dry_run what it would cost; neither writes anything.
"""

from compgen_jax import api, cli
from compgen_jax.metrics import text

from . import cost

CONFIG = cli.define_config()
WORKDIR = cli.define_workdir()
PRINT_CONFIG, DRY_RUN = cli.define_print_config(), cli.define_dry_run()


def main():
    config = cli.read_config(CONFIG)
    if cli.only_describes(config, cost.describe):
        return
    workdir = cli.require(WORKDIR)
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
