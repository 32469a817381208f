"""Speed on this machine, as ratios to a peer in the same run.

    python -m launch.benchmark --suite=train      against PyTorch, which comes with `make bench`
    python -m launch.benchmark --suite=geometry   against a forward pass
    python -m launch.benchmark --suite=sweep      many trials at once, against one by one
    python -m launch.benchmark --suite=students   small MLPs of tasks that are drawn at each step
    python -m launch.benchmark --suite=table      a decoder of 64-pixel images from a file

Prints a table, and one JSON line per row.
"""

import importlib
import importlib.util
import json

from absl import flags

from compgen_jax import cli
from compgen_jax.config import ConfigError

SUITES = ("train", "geometry", "sweep", "students", "table")
NEED_TORCH = ("train", "sweep", "students")
SUITE = flags.DEFINE_enum("suite", "all", ["all", *SUITES], "What to measure.")
ROUNDS = flags.DEFINE_integer("rounds", 7, "Turns of each contender.", lower_bound=1)


def main():
    suites = SUITES if SUITE.value == "all" else (SUITE.value,)
    if set(suites) & set(NEED_TORCH) and importlib.util.find_spec("torch") is None:
        raise ConfigError("PyTorch is not installed; run make bench")
    from .suites import timing

    for name in suites:
        rows = importlib.import_module(f".suites.{name}", __package__).run(ROUNDS.value)
        print(timing.table(rows), end="\n\n")
        print("\n".join(json.dumps({"suite": name} | row) for row in rows), end="\n\n")


if __name__ == "__main__":
    cli.run(main)
