"""Speed on this machine, as ratios to a peer in the same run.

    python -m launch.benchmark --suite=train

Prints a table, and one JSON line per row. PyTorch comes with the extra `bench` (`make bench`).
"""

import json

from absl import flags

from compgen_jax.config import ConfigError
from launch import cli

SUITE = flags.DEFINE_enum("suite", "all", ["all", "train"], "What to measure.")
ROUNDS = flags.DEFINE_integer("rounds", 7, "Turns of each contender.", lower_bound=1)


def main():
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ConfigError("PyTorch is not installed; say: make bench") from error
    from launch.suites import timing, train

    for name, suite in {"train": train.run}.items():
        if SUITE.value in ("all", name):
            rows = suite(ROUNDS.value)
            print(timing.table(rows), end="\n\n")
            print("\n".join(json.dumps({"suite": name} | row) for row in rows))


if __name__ == "__main__":
    cli.run(main)
