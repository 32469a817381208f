"""Trains all trials of a sweep on all devices; the same command resumes an interrupted sweep.

compgen-jax sweep --config=data_scaling_quick --workdir=runs/scaling

On several machines the same command runs on each of them: see docs/how_to/machines.md.
--print_config shows the complete config, --dry_run what it would cost; neither writes anything.
"""

from absl import flags

from compgen_jax import api, cli
from compgen_jax.metrics import text
from compgen_jax.sweeps import cost, processes
from compgen_jax.sweeps.summary import combination, describe_search

CONFIG = cli.define_config()
WORKDIR = cli.define_workdir()
PRINT_CONFIG, DRY_RUN = cli.define_print_config(), cli.define_dry_run()
AUTOMATIC = "; automatic on Slurm, Open MPI, Kubernetes and TPU pods."
ADDRESS = flags.DEFINE_string(
    "coordinator_address", None, f"HOST:PORT where the others reach the first process{AUTOMATIC}"
)
NUMBER = flags.DEFINE_integer("num_processes", None, f"How many processes share it{AUTOMATIC}")
ID = flags.DEFINE_integer("process_id", None, f"The number of this process, from 0{AUTOMATIC}")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def main():
    config = cli.read_config(CONFIG)
    if cli.only_describes(config, cost.describe):
        return
    workdir = cli.require(WORKDIR)
    if NUMBER.value and (ADDRESS.value or "").rpartition(":")[0] in LOOPBACK:
        cli.use_all_cores(NUMBER.value)  # the processes share this machine's cores
    processes.start(ADDRESS.value, NUMBER.value, ID.value)
    try:
        summary = api.sweep(config, workdir).summary
    except BaseException:
        processes.abandon()
        raise
    if not processes.is_first():
        return
    print(f"{summary['trials']} trials, of which {len(summary['failed'])} failed")
    for line in describe_search(config, summary.get("readings", [])):
        print(line)
    axes = [name for name, _ in config.sweep.axes]
    for mean in summary.get("means", []):
        scores = [
            f"{name} {text.with_interval(mean[name])}"
            for name in mean
            if name.startswith("ood.") and name not in axes
        ]
        print(f"{combination(mean, axes)}: {', '.join(scores)}")
    print(f"wrote {workdir}/trials.csv and summary.json")


if __name__ == "__main__":
    cli.run(main)
