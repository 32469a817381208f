"""Writes a page to explore a finished run in a browser: what each seed draws, and why.

    compgen-jax explore --workdir=runs/bump_cnn_quick [--seeds=0,1]

Writes DIR/explorer.html, which opens from disk and needs no network. Its verdicts are those that
`compgen-jax judge DIR` left; without them it says whether the run composes what was held out.
"""

from pathlib import Path

from absl import flags

from compgen_jax import cli, settings
from compgen_jax.runs import directory, judge_run
from compgen_jax.runs.run import Run

WORKDIR = cli.define_workdir()
cli.define_trust()
SEEDS = flags.DEFINE_list(
    "seeds", [], "The seeds to show, comma-separated; by default the first 8."
)


def explore(workdir, seeds=()) -> Path:
    """Writes the page and returns its path; see `api.explore`."""
    workdir = Path(workdir)
    run, claims = Run.load(workdir), workdir / "claims.json"
    verdicts = directory.read_json(claims) if claims.exists() else judge_run.judge_run(run)
    page = settings.beside("figures.explorer.page")
    return page.write({run.name: run}, workdir / "explorer.html", verdicts, seeds)


def main():
    workdir, seeds = cli.require(WORKDIR), SEEDS.value
    are_numbers = all(seed.isdecimal() for seed in seeds)
    settings.demand(are_numbers, f"--seeds={','.join(seeds)}: must be numbers, comma-separated")
    print(f"wrote {explore(workdir, list(map(int, seeds)))}")


if __name__ == "__main__":
    cli.run(main)
