"""Draws the figures from real training: trains what is missing, reuses what is there.

    python -m figures.make --scale=quick --workdir=runs/quick [--only=fig1,codes]

Writes DIR/figures/*.png and *.pdf, DIR/claims.json and DIR/RESULTS.md; trained decoders are kept
in DIR/trained/ and sweeps in DIR/sweeps/, one directory for each config, and are never trained
twice. Figures of sweeps, which take as long as all others, are drawn where --only names them.
"""

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from absl import flags

from compgen_jax.config import Config, ConfigError, fingerprint
from figures.forced_rendering.networks import (
    ABLATIONS,
    BASE_DEPTH,
    BUMPS,
    CONTROLS,
    DEPTHS,
    FEW,
    HOLDOUT_MAP,
    SCALING,
    Key,
    config_of,
    in_order,
    sweep_of,
)
from launch import cli
from launch.config import CODES

SCALE = flags.DEFINE_enum("scale", "quick", ["quick", "paper"], "The presets' size.")
ONLY = flags.DEFINE_list("only", [], "Names of figures, comma-separated; all by default.")
WORKDIR = flags.DEFINE_string("workdir", None, "Where runs and figures go; runs/SCALE by default.")


class Figure(NamedTuple):
    keys: tuple  # of the networks that it shows
    draw: Callable  # studies by key -> matplotlib figure; of a sweep, its rows and its config
    sweep: str = ""  # the sweep that it shows instead


def registry(scale: str) -> dict[str, Figure]:
    from figures.forced_rendering import (
        codes,
        controls,
        depth,
        embeddings,
        fig1,
        holdout,
        layers,
        lowrank,
        mechanism,
        scaling,
        stripes,
        units,
    )

    def base(*names, decoder="conv"):
        return tuple(Key(code, decoder, BASE_DEPTH[decoder]) for code in names)

    def by_depth(*names, decoder="conv"):
        return tuple(Key(code, decoder, d) for code in names for d in DEPTHS[scale][decoder])

    def by_code(draw):
        return lambda studies: draw({key.code: study for key, study in studies.items()})

    def volumes(code, decoder):
        draw = lambda studies: layers.draw_volumes(studies, code, decoder)
        return Figure(by_depth(code, decoder=decoder), draw)

    def of_bumps(studies):
        return {name: study for name, study in studies.items() if name != base_key}

    both, few = ("bump", "ramp"), FEW[scale]
    ablations = tuple(f"lowrank_{name}" for name in ABLATIONS)
    by_bumps = tuple(f"stripes_{n}" for n in BUMPS[scale])
    (base_key,) = base("bump")
    return {
        "fig1": Figure(base(*both), by_code(fig1.draw)),
        "codes": Figure(base(*CODES), by_code(codes.draw)),
        "fig1d": Figure(base(*both), mechanism.draw_superposition),
        "fig1e": Figure(base(*both), mechanism.draw_kernels),
        "fig2": Figure(by_depth(*both), layers.draw_layers),
        "fig8": Figure(base(*both), mechanism.draw_similarities),
        "fig10": Figure(by_depth(*both), depth.draw),
        "fig11": volumes("bump", "conv"),
        "fig12": volumes("ramp", "conv"),
        "fig13": volumes("bump", "mlp"),
        "fig14": volumes("ramp", "mlp"),
        "ranks": Figure(by_depth(*both), layers.draw_ranks),
        "fig3": Figure(ablations, lowrank.draw_low_rank),
        "fig6": Figure(ablations, embeddings.draw_embeddings),
        "fig4": Figure(by_bumps, lambda studies: stripes.draw_stripes(studies, few)),
        "fig7": Figure(by_bumps, stripes.draw_bumps),
        "fig15": Figure(by_bumps, units.draw_tuning),
        "controls": Figure(
            (base_key, *CONTROLS),
            lambda studies: controls.draw(studies[base_key], of_bumps(studies)),
        ),
        "fig4c": Figure((), scaling.draw_thresholds, SCALING),
        "exponents": Figure((), scaling.draw_exponents, SCALING),
        "holdout_map": Figure((), holdout.draw_holdout_map, HOLDOUT_MAP),
    }


def main():
    figures = _chosen(registry(SCALE.value))
    workdir = Path(WORKDIR.value or f"runs/{SCALE.value}")
    wanted = in_order((key for figure in figures.values() for key in figure.keys), SCALE.value)
    groups = _by_program([config_of(key, SCALE.value) for key in wanted])
    sweeps = dict.fromkeys(figure.sweep for figure in figures.values() if figure.sweep)
    say = _narrator(len(groups) + len(sweeps) + len(figures) + 2)
    _keep_scales_apart(workdir)
    for configs in groups:
        _train(workdir, configs, say)
    for name in sweeps:
        _sweep(workdir, sweep_of(name, SCALE.value), say)
    say("analysing what is trained")
    studies, tables = _load_finished(workdir), _load_finished_sweeps(workdir)
    for name, figure in figures.items():
        shown = tables[figure.sweep] if figure.sweep else [{k: studies[k] for k in figure.keys}]
        paths = _write_figure(workdir, name, figure.draw(*shown))
        say(f"drew {' and '.join(str(path) for path in paths)}")
    _write_claims(workdir, studies, tables)
    say(f"wrote {workdir / 'claims.json'} and {workdir / 'RESULTS.md'}")


def _chosen(figures):
    for name in ONLY.value:
        if name not in figures:
            raise ConfigError(f"--only={name}: no such figure; allowed: {', '.join(figures)}")
    by_default = [name for name, figure in figures.items() if not figure.sweep]
    return {name: figures[name] for name in ONLY.value or by_default}


def _keep_scales_apart(workdir: Path):
    """Raises ConfigError if `workdir` holds the results of another scale."""
    from compgen_jax.runs import directory

    mark = workdir / "scale"
    found = mark.read_text().strip() if mark.exists() else SCALE.value
    if found != SCALE.value:
        raise ConfigError(
            f"--workdir={workdir}: holds results at {found} scale, not {SCALE.value}; "
            "choose another directory"
        )
    directory.write_text(mark, SCALE.value + "\n")


def _by_program(configs: list[Config]) -> list[list[Config]]:
    """Configs that train as one program together, in the order of their first."""
    from compgen_jax.training import loop

    groups = {}
    for config in configs:
        groups.setdefault(loop.program(config), []).append(config)
    return list(groups.values())


def _run_directory(workdir: Path, config: Config) -> Path:
    return workdir / "trained" / f"{config.name}-{fingerprint(config)}"


def _train(workdir: Path, configs: list[Config], say):
    from compgen_jax.runs import directory, experiment

    paths = [_run_directory(workdir, config) for config in configs]
    names = ", ".join(config.name for config in configs)
    if all(directory.is_finished(path) for path in paths):
        say(f"{names}: already trained")
        return
    say(f"{names}: training {len(configs[0].training.seeds)} seeds each, in {paths[0].parent}")
    experiment.train_together(list(zip(configs, paths, strict=True)))


def _sweep(workdir: Path, config: Config, say):
    from compgen_jax.runs import directory
    from compgen_jax.sweeps import sweep

    path = _sweep_directory(workdir, config)
    if directory.is_finished(path):
        say(f"{config.name}: already trained")
        return
    say(f"{config.name}: training the trials of a sweep, in {path}")
    sweep.run(config, path)


def _sweep_directory(workdir: Path, config: Config) -> Path:
    return workdir / "sweeps" / f"{config.name}-{fingerprint(config)}"


def _load_finished_sweeps(workdir: Path) -> dict:
    """The rows and the config of every finished sweep, by its name."""
    from compgen_jax.runs import directory
    from compgen_jax.sweeps import sweep

    configs = {name: sweep_of(name, SCALE.value) for name in (SCALING, HOLDOUT_MAP)}
    paths = {name: _sweep_directory(workdir, config) for name, config in configs.items()}
    return {
        name: (sweep.load(path), configs[name])
        for name, path in paths.items()
        if directory.is_finished(path)
    }


def _load_finished(workdir: Path) -> dict:
    """The study of every network of any figure whose run is finished, by its key."""
    from compgen_jax.runs import directory
    from figures.studies import Study

    keys = [key for figure in registry(SCALE.value).values() for key in figure.keys]
    paths = {
        key: _run_directory(workdir, config_of(key, SCALE.value))
        for key in in_order(keys, SCALE.value)
    }
    return {key: Study(path) for key, path in paths.items() if directory.is_finished(path)}


def _write_figure(workdir: Path, name: str, drawn):
    from compgen_jax.runs import directory
    from figures import plotting

    paths = []
    for suffix in ("png", "pdf"):
        # no date in the file: the same runs give the same bytes
        content, undated = io.BytesIO(), {"CreationDate": None} if suffix == "pdf" else {}
        drawn.savefig(content, format=suffix, metadata=undated)
        paths.append(workdir / "figures" / f"{name}.{suffix}")
        directory.write_bytes(paths[-1], content.getvalue())
    plotting.close(drawn)
    return paths


def _write_claims(workdir: Path, studies, tables):
    from compgen_jax.runs import directory
    from figures import report
    from figures.forced_rendering import verdicts

    found = verdicts.all_claims(studies, FEW[SCALE.value], tables.get(SCALING))
    directory.write_json(workdir / "claims.json", found)
    summaries = {study.config.name: study.summary for study in studies.values()}
    drawn = sorted(path.name for path in (workdir / "figures").glob("*.png"))
    directory.write_text(
        workdir / "RESULTS.md", report.render(SCALE.value, found, summaries, drawn)
    )


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
