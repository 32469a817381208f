"""Which factors can be read off activations of yours, of any model, and does success go with it?

    compgen-jax probe --activations=FILE.npz

Writes probe.json beside the file, or into --workdir. What the file holds, and how to draw the
report, is in docs/how_to/probe.md.
"""

from pathlib import Path

from absl import flags

from compgen_jax import cli
from compgen_jax.config import ConfigError
from compgen_jax.metrics import probe_report
from compgen_jax.runs import directory

ACTIVATIONS = flags.DEFINE_string("activations", None, "The file of activations, a .npz.")
WORKDIR = cli.define_workdir()


def main():
    path = Path(cli.require(ACTIVATIONS))
    workdir = Path(WORKDIR.value or path.parent)
    arrays = directory.read_npz(path, "--activations=")
    try:
        report = probe_report.probe(probe_report.checked(arrays))
    except ValueError as error:
        raise ConfigError(f"--activations={path}: {error}") from error
    numbers = {name: value for name, value in vars(report).items() if value is not None}
    directory.write_json(workdir / "probe.json", numbers)
    print(report)
    print(f"wrote {workdir / 'probe.json'}")


if __name__ == "__main__":
    cli.run(main)
