"""Trains all seeds of a config in one program; the same command resumes an interrupted run.

compgen-jax train --config=bump_cnn_quick --workdir=runs/bump_cnn_quick

--print_config shows the complete config, --dry_run what it would cost; neither writes anything.
"""

from compgen_jax import api, claims, cli
from compgen_jax.runs import judge_run
from compgen_jax.tasks import task as tasks

from . import cost

CONFIG = cli.define_config()
WORKDIR = cli.define_workdir()
PRINT_CONFIG, DRY_RUN = cli.define_print_config(), cli.define_dry_run()


def main():
    config = cli.read_config(CONFIG)
    if cli.only_describes(config, cost.describe):
        return
    workdir = cli.require(WORKDIR)
    run = api.train(config, workdir)
    print(judge_run.score_table(run))
    if tasks.regions(run.task)["ood"].any():
        verdict = claims.judge(judge_run.composes, {"run": run})
        print("\n".join(judge_run.lines(verdict, verdict["statement"])))
    print(f"wrote {workdir}/summary.json (all scores), metrics.csv and checkpoints/")


if __name__ == "__main__":
    cli.run(main)
