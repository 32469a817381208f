"""Draws the figures from real training: trains what is missing, reuses what is there.

    python -m figures.make --scale=quick --workdir=runs/quick [--only=fig1,codes]

Writes DIR/figures/*.png and *.pdf, DIR/claims.json and DIR/RESULTS.md; trained decoders are kept
in DIR/trained/ and sweeps in DIR/sweeps/, one directory for each config, and are never trained
twice. A figure is drawn as soon as its networks are. Figures of sweeps, and those that a registry
marks `asked` (the second paper's, the league's), are drawn where --only names them.
"""

import sys
import time
from pathlib import Path

from absl import flags

from compgen_jax import cli
from compgen_jax.config import Config, ConfigError, fingerprint
from compgen_jax.runs import directory, experiment
from compgen_jax.sweeps import sweep
from figures import plotting, report
from figures.forced_rendering import registry as forced_rendering
from figures.league import registry as league
from figures.paper import Paper
from figures.scale import registry as scale
from figures.studies import Study

PAPERS = (forced_rendering.PAPER, scale.PAPER, league.PAPER)

SCALE = flags.DEFINE_enum("scale", "quick", ["quick", "paper"], "The presets' size.")
ONLY = flags.DEFINE_list("only", [], "Names of figures, comma-separated; all by default.")
MODELS = flags.DEFINE_list("models", [], "Models of your own for the league, FILE.py:CLASS.")
WORKDIR = cli.define_workdir()  # runs/SCALE by default
flags.declare_key_flag("workdir")


def main():
    papers = [_with_models(paper) for paper in PAPERS]
    networks = [network for paper in papers for network in paper.networks(SCALE.value)]
    figures = _chosen({k: v for paper in papers for k, v in paper.figures.items()})
    workdir = Path(WORKDIR.value or f"runs/{SCALE.value}")
    wanted = [n for n in networks if any(figure.shows(n.role) for figure in figures.values())]
    groups = _by_program([network.config for network in wanted])
    sweeps = {k: v for paper in papers for k, v in paper.sweeps(SCALE.value).items()}
    asked = dict.fromkeys(figure.sweep for figure in figures.values() if figure.sweep)
    say = _narrator(len(groups) + len(asked) + len(figures) + 1)
    _keep_scales_apart(workdir)
    studies, waiting = {}, dict(figures)
    for configs in groups:
        _train(workdir, configs, say)
        studies |= _load_finished(workdir, networks, studies)
        for name, shown in _drawable(waiting, wanted, studies).items():
            _draw(workdir, name, waiting.pop(name).draw(shown), say)
    for name in asked:
        _sweep(workdir, sweeps[name], say)
    tables = _load_finished_sweeps(workdir, sweeps)
    for name, figure in waiting.items():
        _draw(workdir, name, figure.draw(*tables[figure.sweep]), say)
    studies |= _load_finished(workdir, networks, studies)  # of sweeps alone none was loaded
    _write_results(workdir, papers, studies, tables)
    say(f"wrote {workdir / 'claims.json'} and {workdir / 'RESULTS.md'}")


def _with_models(paper: Paper) -> Paper:
    """With networks of the user's own models, if there are any and it has a use for them."""
    return paper.with_models(tuple(MODELS.value)) if MODELS.value and paper.with_models else paper


def _chosen(figures: dict):
    """The figures asked for; by default all of this scale but those that wait to be asked for."""
    has = {name: figure for name, figure in figures.items() if figure.scale in ("", SCALE.value)}
    for name in ONLY.value:
        if name not in has:
            raise ConfigError(
                f"--only={name}: no such figure at {SCALE.value} scale; allowed: {', '.join(has)}"
            )
    by_default = [name for name, each in has.items() if not (each.sweep or each.asked)]
    return {name: has[name] for name in ONLY.value or by_default}


def _keep_scales_apart(workdir: Path):
    """Raises ConfigError if `workdir` holds the results of another scale."""
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
    groups = {}
    for config in configs:
        groups.setdefault(experiment.schedule(config, config.task.make()), []).append(config)
    return list(groups.values())


def _run_directory(workdir: Path, config: Config) -> Path:
    kind = "sweeps" if config.is_sweep else "trained"
    return workdir / kind / f"{config.name}-{fingerprint(config)}"


def _train(workdir: Path, configs: list[Config], say):
    paths = [_run_directory(workdir, config) for config in configs]
    names = ", ".join(config.name for config in configs)
    if all(directory.is_finished(path) for path in paths):
        say(f"{names}: already trained")
        return
    say(f"{names}: training {len(configs[0].training.seeds)} seeds each, in {paths[0].parent}")
    experiment.train_together(list(zip(configs, paths, strict=True)))


def _sweep(workdir: Path, config: Config, say):
    path = _run_directory(workdir, config)
    if directory.is_finished(path):
        say(f"{config.name}: already trained")
        return
    say(f"{config.name}: training the trials of a sweep, in {path}")
    sweep.run(config, path)


def _load_finished_sweeps(workdir: Path, configs: dict) -> dict:
    """The rows and the config of every finished sweep, by its name."""
    paths = {name: _run_directory(workdir, config) for name, config in configs.items()}
    return {
        name: (sweep.load(path).rows, configs[name])
        for name, path in paths.items()
        if directory.is_finished(path)
    }


def _load_finished(workdir: Path, networks: list, known: dict) -> dict[str, Study]:
    """The study of every network, by its name, that is not known yet and whose run is finished."""
    pairs = [(n, _run_directory(workdir, n.config)) for n in networks if n.name not in known]
    return {n.name: Study(n, path) for n, path in pairs if directory.is_finished(path)}


def _drawable(waiting: dict, wanted: list, studies: dict) -> dict[str, list[Study]]:
    """Of the figures that wait, those of which every network is trained, and their studies."""
    shown = {
        name: [network.name for network in wanted if figure.shows(network.role)]
        for name, figure in waiting.items()
        if not figure.sweep
    }
    return {
        name: [studies[network] for network in of_figure]
        for name, of_figure in shown.items()
        if studies.keys() >= set(of_figure)
    }


def _draw(workdir: Path, name: str, drawn, say):
    paths = _write_figure(workdir, name, drawn)
    say(f"drew {' and '.join(str(path) for path in paths)}")


def _write_figure(workdir: Path, name: str, drawn):
    paths = []
    for suffix, content in plotting.saved(drawn).items():
        paths.append(workdir / "figures" / f"{name}.{suffix}")
        directory.write_bytes(paths[-1], content)
    plotting.close(drawn)
    return paths


def _write_results(workdir: Path, papers: list, studies: dict, tables: dict):
    """claims.json and RESULTS.md, of all that is finished."""
    networks = [network for paper in papers for network in paper.networks(SCALE.value)]
    ran = [studies[network.name] for network in networks if network.name in studies]
    claims = [one for paper in papers for one in paper.claims(ran, tables)]
    directory.write_json(workdir / "claims.json", claims.rows(claims, SCALE.value))
    drawn = sorted(path.stem for path in (workdir / "figures").glob("*.png"))
    page = report.page(SCALE.value, papers, studies, tables, claims, drawn)
    directory.write_text(workdir / "RESULTS.md", page)


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
