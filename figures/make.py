"""Draws the figures from real training: trains what is missing, reuses what is there.

    python -m figures.make --scale=quick --workdir=runs/quick [--only=fig1,codes]

Writes DIR/figures/*.png and *.pdf, DIR/claims.json and DIR/RESULTS.md; trained decoders are kept
in DIR/trained/, one directory for each config, and are never trained twice.
"""

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from absl import flags

from compgen_jax.config import ConfigError, fingerprint
from launch import cli
from launch.config import CODES, PRESETS

SCALE = flags.DEFINE_enum("scale", "quick", ["quick", "paper"], "The presets' size.")
ONLY = flags.DEFINE_list("only", [], "Names of figures, comma-separated; all by default.")
WORKDIR = flags.DEFINE_string("workdir", None, "Where runs and figures go; runs/SCALE by default.")


class Figure(NamedTuple):
    codes: tuple  # of the convolutional decoders that it shows
    draw: Callable  # CellResults by code -> matplotlib figure


def registry() -> dict[str, Figure]:
    from figures import codes, fig1

    return {
        "fig1": Figure(("bump", "ramp"), fig1.draw),
        "codes": Figure(CODES, codes.draw),
    }


def main():
    figures = _chosen(registry())
    workdir = Path(WORKDIR.value or f"runs/{SCALE.value}")
    wanted = [code for code in CODES if any(code in figure.codes for figure in figures.values())]
    say = _narrator(len(wanted) + len(figures) + 1)
    _keep_scales_apart(workdir)
    for code in wanted:
        _train(workdir, _preset(code), say)
    results, summaries = _load_finished(workdir)
    for name, figure in figures.items():
        paths = _write_figure(workdir, name, figure, results)
        say(f"drew {' and '.join(str(path) for path in paths)}")
    _write_claims(workdir, results, summaries)
    say(f"wrote {workdir / 'claims.json'} and {workdir / 'RESULTS.md'}")


def _chosen(figures):
    for name in ONLY.value:
        if name not in figures:
            raise ConfigError(f"--only={name}: no such figure; allowed: {', '.join(figures)}")
    return {name: figures[name] for name in ONLY.value or figures}


def _keep_scales_apart(workdir: Path):
    """Raises ConfigError if `workdir` holds the results of another scale."""
    from compgen_jax import runs

    mark = workdir / "scale"
    found = mark.read_text().strip() if mark.exists() else SCALE.value
    if found != SCALE.value:
        raise ConfigError(
            f"--workdir={workdir}: holds results at {found} scale, not {SCALE.value}; "
            "choose another directory"
        )
    runs.write_text(mark, SCALE.value + "\n")


def _preset(code: str):
    return PRESETS[f"{code}_cnn" + ("_quick" if SCALE.value == "quick" else "")]


def _run_directory(workdir: Path, config) -> Path:
    return workdir / "trained" / f"{config.name}-{fingerprint(config)}"


def _train(workdir: Path, config, say):
    from compgen_jax import experiment, runs

    path = _run_directory(workdir, config)
    if runs.is_finished(path):
        say(f"{config.name}: already trained, in {path}")
        return
    say(f"{config.name}: training {len(config.training.seeds)} seeds, in {path}")
    experiment.train(config, path)


def _load_finished(workdir: Path):
    """CellResults and summaries, by code, of every code whose run is finished."""
    from compgen_jax import experiment, runs

    results, summaries = {}, {}
    for code in CODES:
        path = _run_directory(workdir, _preset(code))
        if runs.is_finished(path):
            run = experiment.load(path)
            results[code], summaries[code] = experiment.evaluate_cells(run), run.summary
    return results, summaries


def _write_figure(workdir: Path, name: str, figure: Figure, results):
    from compgen_jax import plotting, runs

    drawn = figure.draw({code: results[code] for code in figure.codes})
    paths = []
    for suffix in ("png", "pdf"):
        # no date in the file: the same runs give the same bytes
        content, undated = io.BytesIO(), {"CreationDate": None} if suffix == "pdf" else {}
        drawn.savefig(content, format=suffix, metadata=undated)
        paths.append(workdir / "figures" / f"{name}.{suffix}")
        runs.write_bytes(paths[-1], content.getvalue())
    plotting.close(drawn)
    return paths


def _write_claims(workdir: Path, results, summaries):
    from compgen_jax import claims, runs
    from figures import report

    found = [claim(code, results[code]) for claim in claims.FIGURE_1 for code in results]
    runs.write_json(workdir / "claims.json", found)
    runs.write_text(workdir / "RESULTS.md", report.render(SCALE.value, found, summaries))


def _narrator(total: int):
    """say(text): numbers the steps and tells the time since the start."""
    start, count = time.monotonic(), 0

    def say(text):
        nonlocal count
        count += 1
        minutes, seconds = divmod(round(time.monotonic() - start), 60)
        print(f"[{count}/{total}, {minutes}:{seconds:02d}] {text}", file=sys.stderr, flush=True)

    return say


if __name__ == "__main__":
    cli.run(main)
