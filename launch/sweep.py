"""Trains all trials of a sweep, on every device there is; the same command resumes a half-done one.

python -m launch.sweep --config=launch/config.py:data_scaling_quick --workdir=runs/scaling

On several machines the same command runs on each of them: see the README.
"""

from absl import flags

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
    from compgen_jax.sweeps import processes, sweep

    if NUMBER.value and (ADDRESS.value or "").rpartition(":")[0] in LOOPBACK:
        cli.use_all_cores(NUMBER.value)  # they share this machine's
    processes.start(ADDRESS.value, NUMBER.value, ID.value)
    try:
        summary = sweep.run(config, workdir)
    except BaseException:
        processes.abandon()
        raise
    if processes.is_first():
        _report(summary, workdir)


def _report(summary, workdir):
    from compgen_jax.analysis import scaling

    print(f"{summary['trials']} trials, of which {len(summary['failed'])} failed")
    for reading in summary.get("readings", []):
        if scaling.is_resolved(reading["exponent"]):  # summary.json has the others
            print(_show(reading))
    for entry in summary.get("errors", []):
        print(_show_error(entry))
    print(f"wrote {workdir}/trials.csv and summary.json")


def _show(reading) -> str:
    exponent = reading["exponent"]
    counts = [f"{exponent[s]} {s}" for s in ("reached", "above", "below", "unknown") if exponent[s]]
    return (
        f"{reading['scheme']:>8}, {reading['region']:>6} held out, {reading['where']:>6} points "
        f"{reading['score']} {reading['target']:g}: images ~ N^{_number(exponent['value'])} "
        f"[{', '.join(_number(end) for end in exponent['ci95'])}] ({', '.join(counts)})"
    )


def _show_error(entry) -> str:
    number = entry["ood_relative_error"]
    return (
        f"N {entry['grid']:3}, {entry['scheme']}, {entry['region']} of {entry['share']:.2f} N held "
        f"out, {entry['images']} images: error / blank {_number(number['value'])} "
        f"[{', '.join(_number(end) for end in number['ci95'])}]"
    )


def _number(value) -> str:
    return "?" if value is None or value != value else f"{value:.2f}"


if __name__ == "__main__":
    cli.run(main)
