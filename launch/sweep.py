"""Trains all trials of a sweep on all devices; the same command resumes an interrupted sweep.

python -m launch.sweep --config=data_scaling_quick --workdir=runs/scaling

On several machines the same command runs on each of them: see docs/how_to/machines.md.
--print_config shows the complete config, --dry_run what it would cost; neither writes anything.
"""

from absl import flags

from compgen_jax import api, cli
from compgen_jax.config import Config
from compgen_jax.metrics import scaling, text
from compgen_jax.sweeps import cost, processes

CONFIG = cli.define_config()
WORKDIR = cli.define_workdir()
PRINT_CONFIG = cli.define_print_config()
DRY_RUN = cli.define_dry_run()
AUTOMATIC = "; automatic on Slurm, Open MPI, Kubernetes and TPU pods."
ADDRESS = flags.DEFINE_string(
    "coordinator_address", None, f"HOST:PORT where the others reach the first process{AUTOMATIC}"
)
NUMBER = flags.DEFINE_integer("num_processes", None, f"How many processes share it{AUTOMATIC}")
ID = flags.DEFINE_integer("process_id", None, f"The number of this process, from 0{AUTOMATIC}")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def main():
    config = cli.read_config(CONFIG)
    if PRINT_CONFIG.value:
        return cli.print_config(config)
    if DRY_RUN.value:
        return print("\n".join(cost.describe(config)))
    workdir = cli.require(WORKDIR)
    if NUMBER.value and (ADDRESS.value or "").rpartition(":")[0] in LOOPBACK:
        cli.use_all_cores(NUMBER.value)  # the processes share this machine's cores
    processes.start(ADDRESS.value, NUMBER.value, ID.value)
    try:
        summary = api.sweep(config, workdir).summary
    except BaseException:
        processes.abandon()
        raise
    if processes.is_first():
        _print_summary(config, summary)
        print(f"wrote {workdir}/trials.csv and summary.json")


def _print_summary(config: Config, summary: dict):
    """Prints failures and, of a search, its readings; exponents only where they are resolved.
    Without a search it prints the OOD means of every combination of the axes."""
    axes = [name for name, _ in config.sweep.axes]
    print(f"{summary['trials']} trials, of which {len(summary['failed'])} failed")
    for reading in summary.get("readings", []):
        if "exponent" not in reading or scaling.is_resolved(reading["exponent"]):
            print(_describe_reading(reading, axes, config.sweep.search.field))
    for mean in summary.get("means", []):
        scores = [
            f"{name} {text.with_interval(mean[name])}"
            for name in mean
            if name.startswith("ood.") and name not in axes
        ]
        print(f"{_combination(mean, axes)}: {', '.join(scores)}")


def _describe_reading(reading: dict, axes: list[str], field: str) -> str:
    target = f"{reading['where']} {reading['score']} {reading['target']:g}"
    head = ", ".join(filter(None, [_combination(reading, axes), target]))
    if "exponent" not in reading:
        values = [
            f"{each['status']} {text.number(each['value'])}" for each in reading["thresholds"]
        ]
        return f"{head}: {field} {', '.join(values)}"
    exponent = reading["exponent"]
    counts = [f"{exponent[s]} {s}" for s in ("reached", "above", "below", "unknown") if exponent[s]]
    power = text.with_interval(exponent)
    return f"{head}: {field} ~ ({reading['along']})^{power} ({', '.join(counts)})"


def _combination(values: dict, axes: list[str]) -> str:
    return ", ".join(f"{name} {values[name]}" for name in axes if name in values)


if __name__ == "__main__":
    cli.run(main)
