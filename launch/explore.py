"""Writes a page to explore a finished run in a browser: what each seed draws, and why.

    compgen-jax explore --workdir=runs/bump_cnn_quick [--seeds=0,1]

Writes DIR/explorer.html, which opens from disk and needs no network, and measures the layers of the
run if that was not done yet. Its verdicts are those that `compgen-jax judge DIR` left; without them
it says whether the run composes what was held out.
"""

from pathlib import Path

from absl import flags

from compgen_jax import cli, settings
from compgen_jax.config import ConfigError
from compgen_jax.runs import directory, judge_run
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run

WORKDIR = cli.define_workdir()
SEEDS = flags.DEFINE_list(
    "seeds", [], "The seeds to show, comma-separated; by default the first 8."
)


def explore(workdir, seeds=()) -> Path:
    """Writes the explorer of a finished run, or of some of its seeds, and returns its path. Raises
    RunError where there is no finished run."""
    workdir = Path(workdir)
    if not workdir.is_dir():
        raise RunError(f"--workdir={workdir}: there is no such directory")
    run = Run.load(workdir)
    claims = workdir / "claims.json"
    verdicts = directory.read_json(claims) if claims.exists() else judge_run.judge_run(run)
    page = settings.beside("figures.explorer.page")
    return page.write({run.name: run}, workdir / "explorer.html", verdicts, seeds)


def main():
    workdir = Path(cli.require(WORKDIR))
    if not all(seed.isdigit() for seed in SEEDS.value):
        raise ConfigError(f"--seeds={','.join(SEEDS.value)}: must be numbers, comma-separated")
    print(f"wrote {explore(workdir, [int(seed) for seed in SEEDS.value])}")


if __name__ == "__main__":
    cli.run(main)
