"""Speed on this machine, as ratios to a peer in the same run.

    python -m launch.benchmark --suite=train      against PyTorch
    python -m launch.benchmark --suite=geometry   against a forward pass
    python -m launch.benchmark --suite=measure    the same, and against SciPy and scikit-learn
    python -m launch.benchmark --suite=judge      against forward passes
    python -m launch.benchmark --suite=sweep      many trials at once, against one by one

Prints a table, and one JSON line per row. `make bench` installs the peers.
"""

import importlib.util

from absl import flags

from compgen_jax import cli
from compgen_jax.config import ConfigError

from . import speed

SUITES = {
    "train": speed.train,
    "geometry": speed.geometry,
    "measure": speed.metrics,
    "judge": speed.judge,
    "sweep": speed.sweep,
}
PEERS = {"train": "PyTorch", "sweep": "PyTorch", "measure": "scikit-learn"}
MODULES = {"PyTorch": "torch", "scikit-learn": "sklearn"}
SUITE = flags.DEFINE_enum("suite", "all", ["all", *SUITES], "What to measure.")
ROUNDS = flags.DEFINE_integer("rounds", 7, "Turns of each contender.", lower_bound=1)


def main():
    suites = list(SUITES) if SUITE.value == "all" else [SUITE.value]
    for peer in (PEERS[name] for name in suites if name in PEERS):
        if importlib.util.find_spec(MODULES[peer]) is None:
            raise ConfigError(f"{peer} is not installed; run make bench")
    for name in suites:
        table = SUITES[name](ROUNDS.value)
        print(table.to_string(index=False, na_rep="-", float_format="{:.3g}".format), end="\n\n")
        print(table.assign(suite=name).to_json(orient="records", lines=True))


if __name__ == "__main__":
    cli.run(main)
