"""Trains all trials of a sweep, on every device there is; the same command resumes a half-done one.

python -m launch.sweep --config=launch/config.py:data_scaling_quick --workdir=runs/scaling

On several machines the same command runs on each of them: see docs/machines.md.
"""

from absl import flags

from compgen_jax.config import Config
from compgen_jax.metrics import scaling, text
from compgen_jax.sweeps import processes, sweep
from launch import cli

CONFIG = cli.define_config()
WORKDIR = cli.define_workdir()
FOUND = "; found by itself on Slurm, Open MPI, Kubernetes and TPU pods."
ADDRESS = flags.DEFINE_string(
    "coordinator_address", None, f"HOST:PORT at which the first process can be reached{FOUND}"
)
NUMBER = flags.DEFINE_integer("num_processes", None, f"How many processes share the sweep{FOUND}")
ID = flags.DEFINE_integer("process_id", None, f"Which of them this one is, from 0{FOUND}")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def main():
    config, workdir = cli.read_config(CONFIG), cli.require(WORKDIR)
    if NUMBER.value and (ADDRESS.value or "").rpartition(":")[0] in LOOPBACK:
        cli.use_all_cores(NUMBER.value)  # they share this machine's
    processes.start(ADDRESS.value, NUMBER.value, ID.value)
    try:
        summary = sweep.run(config, workdir)
    except BaseException:
        processes.abandon()
        raise
    if processes.is_first():
        _report(config, summary, workdir)


def _report(config: Config, summary: dict, workdir):
    print(f"{summary['trials']} trials, of which {len(summary['failed'])} failed")
    names = [name for name, _ in config.sweep.axes]
    for reading in summary.get("readings", []):
        if "exponent" not in reading or scaling.is_resolved(reading["exponent"]):
            print(_show_reading(reading, names, config.sweep.search.field))
    for entry in summary.get("means", []):
        shown = [name for name in entry if name.startswith("ood.") and name not in names]
        numbers = (f"{name} {text.with_interval(entry[name])}" for name in shown)
        print(f"{_combination(entry, names)}: {', '.join(numbers)}")
    print(f"wrote {workdir}/trials.csv and summary.json")  # which have what is not shown


def _show_reading(reading: dict, names: list[str], field: str) -> str:
    asked = f"{reading['where']} {reading['score']} {reading['target']:g}"
    head = ", ".join(filter(None, [_combination(reading, names), asked]))
    if "exponent" not in reading:
        found = [(each["status"], each["value"]) for each in reading["thresholds"]]
        return f"{head}: {field} {', '.join(f'{s} {text.number(v)}' for s, v in found)}"
    exponent = reading["exponent"]
    counts = [f"{exponent[s]} {s}" for s in ("reached", "above", "below", "unknown") if exponent[s]]
    power = text.with_interval(exponent)
    return f"{head}: {field} ~ ({reading['along']})^{power} ({', '.join(counts)})"


def _combination(entry: dict, names: list[str]) -> str:
    return ", ".join(f"{name} {entry[name]}" for name in names if name in entry)


if __name__ == "__main__":
    cli.run(main)
