"""Trains all trials of a sweep on all devices; the same command resumes an interrupted sweep.

compgen-jax sweep --config=data_scaling_quick --workdir=runs/scaling

On several machines the same command runs on each of them: see docs/how_to/machines.md.
--print_config shows the complete config, --dry_run what it would cost; neither writes anything.
"""

import jax
from absl import flags

from compgen_jax import api, cli
from compgen_jax.runs import sweep_summary
from compgen_jax.training import processes

from . import cost

CONFIG = cli.define_config()
WORKDIR = cli.define_workdir()
PRINT_CONFIG, DRY_RUN = cli.define_print_config(), cli.define_dry_run()
CLUSTER = flags.DEFINE_bool(
    "cluster", False, "Join the processes that Slurm, Open MPI, Kubernetes or a TPU pod started."
)
ADDRESS = flags.DEFINE_string(
    "coordinator_address", None, "HOST:PORT where the others reach the first process."
)
NUMBER = flags.DEFINE_integer("num_processes", None, "How many processes share it.", lower_bound=1)
ID = flags.DEFINE_integer("process_id", None, "The number of this process, from 0.", lower_bound=0)
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def main():
    config = cli.read_config(CONFIG)
    if cli.only_describes(config, cost.describe):
        return
    workdir = cli.require(WORKDIR)
    if NUMBER.value and (ADDRESS.value or "").rpartition(":")[0] in LOOPBACK:
        cli.use_all_cores(NUMBER.value)  # the processes share this machine's cores
    processes.start(ADDRESS.value, NUMBER.value, ID.value, CLUSTER.value)
    try:
        summary = api.sweep(config, workdir).summary
    except BaseException:
        processes.abandon()
        raise
    if jax.process_index() == 0:
        print(f"{summary['trials']} trials, of which {len(summary['failed'])} failed")
        print(*sweep_summary.describe(config, summary), sep="\n")
        print(f"wrote {workdir}/trials.csv and summary.json")


if __name__ == "__main__":
    cli.run(main)
