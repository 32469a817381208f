"""Draws the figures from real training: trains what is missing, reuses what is there.

    compgen-jax figures --scale=quick --workdir=runs/quick [--only=fig1,codes]

Writes DIR/figures/*.png and *.pdf, DIR/claims.json, DIR/RESULTS.md and, of four networks together,
DIR/explorer.html. Trained networks stay in DIR/trained/ and sweeps in DIR/sweeps/, one directory
for each config; none is trained twice. A figure is drawn as soon as its runs are trained. Figures
that take long are drawn only if `--only` names them. `--only=robustness` trains what the papers
leave open, setting by setting, judges every claim there and writes DIR/settings.json.
`--only=claims` judges what is there and trains nothing. `--only=explorer` writes the page alone.
`--models=FILE.py:CLASS` trains a model of yours on the league's tasks, and draws it beside the rows
that are trained in DIR or committed in docs/results.
"""

import contextlib
import sys
import time
from pathlib import Path

from absl import flags

from compgen_jax import claims, cli
from compgen_jax.config import Config, ConfigError, fingerprint
from compgen_jax.papers import robustness, settings
from compgen_jax.papers.paper import SCALES, Paper
from compgen_jax.runs import directory, experiment
from compgen_jax.runs.run import Run
from compgen_jax.sweeps import sweep
from compgen_jax.training import loop

from . import committed, digests, plotting, report
from .explorer import page
from .figure import Figure
from .papers import FIGURES, PAPERS

SCALE = flags.DEFINE_enum("scale", "quick", SCALES, "The presets' size.")
ONLY = flags.DEFINE_list("only", [], "Names of figures, comma-separated, explorer, or claims.")
EXTEND = cli.define_extend()
MODELS = flags.DEFINE_list("models", [], "Models of your own for the league, FILE.py:CLASS.")
WORKDIR = cli.define_workdir()  # runs/SCALE by default
flags.declare_key_flag("workdir")
# one network of each kind; how many bumps join the stripes differs between the scales
EXPLORED = ("bump_cnn", "ramp_cnn", "lowrank_both", "stripes_30_bumps", "stripes_50_bumps")


def main():
    scale, workdir = SCALE.value, Path(WORKDIR.value or f"runs/{SCALE.value}")
    own = [_own(module) for module in cli.load_extensions(EXTEND)]
    papers = [*(_with_models(paper) for paper in PAPERS), *own]
    configs = {name: one for paper in papers for name, one in paper.runs(scale).items()}
    chosen = _chosen(scale)
    for one in chosen:
        if one.name in ONLY.value and not (one.of_settings or one.shows(configs, scale)):
            asked = ", ".join(one.runs(scale) if callable(one.runs) else one.runs)
            raise ConfigError(f"--only={one.name}: no run at {scale} scale is named {asked}")
    beside = _beside_own(workdir, scale, chosen) if MODELS.value else {}
    groups = _groups(papers, own, configs) if any(one.of_settings for one in chosen) else ()
    varied = settings.configs(groups, configs)
    waiting = {
        one: [n for n in one.shows(configs, scale) if not (one.of_summaries and n in beside)]
        for one in chosen
        if not one.of_settings
    }
    wanted_page = "explorer" in ONLY.value or not (ONLY.value or MODELS.value)
    explored = [name for name in EXPLORED if name in configs and wanted_page]
    shown = {name for names in waiting.values() for name in names} | {base for base, _ in varied}
    shown |= set(explored)
    wanted = {name: one for name, one in configs.items() if name in shown}
    there = list(wanted.values())
    wanted |= {one.name: one for one in varied.values() if one not in there}
    programs = _by_program(wanted)
    _keep_scales_apart(workdir, scale)
    clock, finished = _Clock(len(programs) + len(chosen) + bool(explored) + 1), {}
    for program in programs:
        _train(workdir, program, clock)
        finished |= _load(workdir, {name: one for name, one in program.items() if name in configs})
        for figure in [one for one, names in waiting.items() if finished.keys() >= set(names)]:
            waiting.pop(figure)
            runs = beside | finished if figure.of_summaries else finished
            names = [name for name in figure.shows(configs, scale) if runs.get(name)]
            _draw(workdir, figure, {name: runs[name] for name in names}, clock)
    finished |= _load(workdir, {n: one for n, one in configs.items() if n not in finished})
    with clock.spending("judging claims"):
        judged = [row for paper in papers for row in claims.judge_all(paper.claims, finished)]
    if varied:
        rows = _judge_settings(workdir, papers, configs, finished, judged, groups, varied, clock)
        for figure in [one for one in chosen if one.of_settings]:
            _draw(workdir, figure, {}, clock, rows)
    if explored:
        with clock.spending("measuring and drawing"):
            rows = [row for row in claims.rows(judged, scale) if {*row["runs"]} & {*explored}]
            runs = {name: finished[name] for name in explored}
            path = page.write(runs, workdir / "explorer.html", rows)
        clock.say(f"wrote {path}")
    _write_results(workdir, scale, papers, finished, judged, clock)


def run_directory(workdir: Path, config: Config) -> Path:
    """Where the run or the sweep of a config lies in a directory of `figures.make`."""
    kind = "sweeps" if config.is_sweep else "trained"
    return workdir / kind / f"{config.name}-{fingerprint(config)}"


def _with_models(paper: Paper) -> Paper:
    """With runs of the user's own models, if there are any and the paper has a use for them."""
    return paper.with_models(tuple(MODELS.value)) if MODELS.value and paper.with_models else paper


def _beside_own(workdir: Path, scale: str, chosen: list[Figure]) -> dict:
    """What figures of summaries draw beside the user's own models: the papers' runs that are
    finished in `workdir` or committed, None for others."""
    configs = {name: one for paper in PAPERS for name, one in paper.runs(scale).items()}
    names = {n for one in chosen if one.of_summaries for n in one.shows(configs, scale)}
    known = committed.runs(scale) | _load(workdir, {name: configs[name] for name in names})
    return {name: known.get(name) for name in names}


def _own(module) -> Paper:
    """The claims (`CLAIMS`), runs (`runs(scale)`) and settings (`SETTINGS`) of a user's file."""
    rows = tuple(getattr(module, "CLAIMS", ()))
    letters = "".join({claim.name[0] for claim in rows})
    runs = getattr(module, "runs", lambda scale: {})
    groups = tuple(getattr(module, "SETTINGS", ()))
    return Paper(Path(module.__file__).stem, letters, runs, rows, settings=groups)


def _groups(papers: list[Paper], own: list[Paper], configs: dict) -> list[settings.Group]:
    """The user's own settings or, without any, those of all papers."""
    groups = [group for paper in own for group in paper.settings]
    groups = groups or [group for paper in papers for group in paper.settings]
    if unknown := {base for group in groups for base in group.bases} - configs.keys():
        raise ConfigError(f"SETTINGS: no such run: {', '.join(sorted(unknown))}")
    return groups


def _chosen(scale: str) -> list[Figure]:
    """The figures that `--only` names; without it, those that are drawn by default. 'claims' and
    'explorer' name none of them."""
    drawn = {name: one for name, one in FIGURES.items() if one.scale in ("", scale)}
    for name in ONLY.value:
        if name not in drawn and name not in ("claims", "explorer"):
            allowed = ", ".join([*drawn, "explorer", "claims"])
            raise ConfigError(f"--only={name}: no such figure at {scale} scale; allowed: {allowed}")
    default = "of_summaries" if MODELS.value else "by_default"
    names = ONLY.value or [name for name, one in drawn.items() if getattr(one, default)]
    chosen = [drawn[name] for name in dict.fromkeys(names) if name in drawn]
    if MODELS.value and not any(one.of_summaries for one in chosen):
        raise ConfigError("--models: are rows of the league; say --only=league, or no --only")
    return chosen


def _keep_scales_apart(workdir: Path, scale: str):
    """Raises ConfigError if `workdir` holds the results of another scale."""
    mark = workdir / "scale"
    there = mark.read_text().strip() if mark.exists() else scale
    if there != scale:
        raise ConfigError(
            f"--workdir={workdir}: holds results at {there} scale, not {scale}; "
            "choose another directory"
        )
    directory.write_text(mark, scale + "\n")


def _by_program(configs: dict[str, Config]) -> list[dict[str, Config]]:
    """Configs that train as one program together, in the order of their first; then each sweep."""
    groups, sweeps = {}, []
    for name, config in configs.items():
        if config.is_sweep:
            sweeps.append({name: config})
        else:
            try:
                task = loop.check(config)
            except ConfigError as error:
                raise ConfigError(f"{name}: {error}") from error
            program = experiment.schedule(config, task)
            groups.setdefault(program, {})[name] = config
    return [*groups.values(), *sweeps]


def _train(workdir: Path, configs: dict[str, Config], clock):
    """Trains one group of runs, or one sweep."""
    paths = [run_directory(workdir, config) for config in configs.values()]
    first, *_ = configs.values()
    names = ", ".join(config.name for config in configs.values())
    if all(directory.is_finished(path) for path in paths):
        clock.say(f"{names}: already trained")
    elif first.is_sweep:
        clock.say(f"{names}: training the trials of a sweep, in {paths[0]}")
        with clock.spending("training"):
            sweep.run(first, paths[0])
    else:
        seeds = len(first.training.seeds)
        clock.say(f"{names}: training {seeds} seeds each, in {paths[0].parent}")
        with clock.spending("training"):
            experiment.train_together(list(zip(configs.values(), paths, strict=True)))


def _load(workdir: Path, configs: dict[str, Config]) -> dict:
    """Those of the runs and sweeps that are finished."""
    paths = {name: run_directory(workdir, config) for name, config in configs.items()}
    return {
        name: (sweep if configs[name].is_sweep else Run).load(path)
        for name, path in paths.items()
        if directory.is_finished(path)
    }


def _draw(workdir: Path, figure: Figure, runs: dict, clock, rows: list[dict] | None = None):
    """Draws a figure of runs, or of rows of settings.json."""
    with clock.spending("measuring and drawing"):
        drawn = figure.draw(rows if figure.of_settings else runs)
        summaries = {run.name: run.path / "summary.json" for run in runs.values()
                     if isinstance(run, Run)}  # fmt: skip
        if figure.of_settings:
            summaries = {"settings": workdir / "settings.json"}
        paths = save(workdir / "figures", figure, drawn, summaries)
    clock.say(f"drew {' and '.join(str(path) for path in paths)}")


def save(folder: Path, figure: Figure, drawn, summaries: dict, formats=("png", "pdf")) -> list:
    """Writes and closes a drawn figure, with its digest of `summaries` ({name: path}). Returns the
    paths of its files."""
    paths = []
    for suffix, content in plotting.saved(drawn).items():
        if suffix in formats:
            paths.append(folder / f"{figure.name}.{suffix}")
            directory.write_bytes(paths[-1], content)
    plotting.close(drawn)
    contents = {name: path.read_bytes() for name, path in summaries.items()}
    digests.note(folder / f"{figure.name}.png", figure, contents)
    return paths


def _judge_settings(workdir, papers, configs, finished, judged, groups, varied, clock):
    """Judges every claim at every setting, whose runs are loaded for as long as that takes. Writes
    settings.json and returns its rows."""
    in_paper = {one.name: one.in_paper for group in groups for one in group.settings}
    every, rows = [claim for paper in papers for claim in paper.claims], []
    for setting, allowed in in_paper.items():
        changed = {base: config for (base, name), config in varied.items() if name == setting}
        with clock.spending("judging settings"):
            there = _load(workdir, changed)
            rows += robustness.at_setting(every, judged, finished, there, configs, setting, allowed)
    added = [*robustness.bases_of(rows, judged), *rows]
    rows = robustness.merged(report.settings(workdir, judged), added)
    directory.write_json(workdir / "settings.json", rows)
    return rows


def _write_results(workdir: Path, scale: str, papers, finished: dict, judged: list[dict], clock):
    """claims.json and RESULTS.md, of all that is finished."""
    quick = committed.settings("quick") if scale == "paper" else []
    judged = robustness.with_settings(judged, report.settings(workdir, judged), quick)
    directory.write_json(workdir / "claims.json", claims.rows(judged, scale))
    drawn = sorted(path.stem for path in (workdir / "figures").glob("*.png"))
    page = report.page(scale, papers, finished, judged, drawn)
    directory.write_text(workdir / "RESULTS.md", page)
    clock.say(f"wrote {workdir / 'claims.json'} and {workdir / 'RESULTS.md'}; {clock.spent()}")


class _Clock:
    """Numbers the steps and tells the time since the start and what it was spent on."""

    def __init__(self, steps: int):
        self.steps, self.step, self.start, self.seconds = steps, 0, time.monotonic(), {}

    def say(self, text: str):
        self.step += 1
        since = _minutes(time.monotonic() - self.start)
        print(f"[{self.step}/{self.steps}, {since}] {text}", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def spending(self, on: str):
        start = time.monotonic()
        yield
        self.seconds[on] = self.seconds.get(on, 0.0) + time.monotonic() - start

    def spent(self) -> str:
        return ", ".join(f"{_minutes(seconds)} {on}" for on, seconds in self.seconds.items())


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


if __name__ == "__main__":
    cli.run(main)
