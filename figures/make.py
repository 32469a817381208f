"""Draws the figures from real training: trains what is missing, reuses what is there.

    compgen-jax figures --scale=quick --workdir=runs/quick [--only=fig1,codes,K10]

Writes DIR/figures/*.png and *.pdf (the numbers of some as *.csv), DIR/claims.json, DIR/RESULTS.md
and, of four networks together, DIR/explorer.html. Trained networks stay in DIR/trained/ and sweeps
in DIR/sweeps/, one directory for each config; none is trained twice. `--runs=DIR,...` names
directories whose finished runs are used as well. A figure is drawn as soon as its runs are trained.
Figures that take long are drawn only if `--only` names them. The name of a claim trains that
claim's runs. `--only=settings` trains what the papers leave open, setting by setting, and judges
every claim there; `--only=confirm` does so at fresh seeds. `--only=claims` judges what is there and
trains nothing. `--only=explorer` writes the page alone.
`--models=FILE.py:CLASS` trains a model of yours on the league's tasks, and draws it beside the rows
that are trained in DIR or committed in docs/results.
"""

import contextlib
import fnmatch
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from absl import flags

from compgen_jax import claims, cli
from compgen_jax.config import Config, ConfigError, fingerprint
from compgen_jax.papers import variations, verdicts
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.variations import SCALES
from compgen_jax.runs import directory, experiment
from compgen_jax.runs.run import Run
from compgen_jax.settings import demand
from compgen_jax.sweeps import sweep
from compgen_jax.training import contracts

from . import claim_rows, committed, pages, plotting
from .explorer import page
from .figure import Figure
from .papers import FIGURES, PAPERS

SCALE = flags.DEFINE_enum("scale", "quick", SCALES, "The presets' size.")
ONLY = flags.DEFINE_list("only", [], "Figures and claims by name, claims, explorer, confirm.")
RUNS = flags.DEFINE_list("runs", [], "Directories whose finished runs are used as well.")
EXTEND = cli.define_extend()
MODELS = flags.DEFINE_list("models", [], "Models of your own for the league, FILE.py:CLASS.")
WORKDIR = cli.define_workdir()  # runs/SCALE by default
flags.declare_key_flag("workdir")
SETTINGS, CONFIRM = "settings", "confirm"  # of `--only`
BESIDES = SETTINGS, CONFIRM, "claims", "explorer"  # what `--only` takes that is no figure
# one network of each kind; how many bumps join the stripes differs between the scales
STRIPES = "Trained on single-factor images (stripes) and a few bumps, none in the outlined corner."
EXPLORED = {
    "bump_cnn": "It draws a bump at column x and row y. Training has none in the outlined block.",
    "ramp_cnn": "As bump_cnn, but with another input encoding of x and y, the ramp.",
    "lowrank_both": "A low-rank decoder with two penalties. Training has no bump in the corner.",
    "stripes_30_bumps": STRIPES,
    "stripes_50_bumps": STRIPES,
}
OF_EACH = 4  # seeds
IF_TRAINED = {
    "rotation": "It draws a digit turned by an angle. Training has no angle in the outlined gap.",
    "sprites_range": "It draws a shape by size, turn and place. Training has none in the outline.",
}


class Plan(NamedTuple):
    """What is made in a directory.

    papers, configs: all runs by name.  figures: what is drawn, with the runs that each shows.
    of_claims: runs of the claims that are asked for.  beside: runs of which the summary is enough,
    where it is committed.  varied: (base, setting) -> config.  explored: the runs of the explorer's
    page.
    """

    scale: str
    workdir: Path
    papers: list[Paper]
    configs: dict[str, Config]
    figures: dict[Figure, list[str]]
    of_claims: set[str]
    beside: dict[str, Run]
    varied: dict[tuple[str, str], Config]
    explored: list[str]

    def wanted(self) -> dict[str, Config]:
        """The configs to train by name, in order. A setting has the name of its config."""
        names = {name for of_figure in self.figures.values() for name in of_figure}
        names = names - self.beside.keys() | {*self.explored} | {base for base, _ in self.varied}
        names |= self.of_claims
        wanted = {name: config for name, config in self.configs.items() if name in names}
        there = list(wanted.values())
        return wanted | {one.name: one for one in self.varied.values() if one not in there}


def main():
    plan = make_plan()
    programs = by_program(plan.wanted())
    keep_scales_apart(plan.workdir, plan.scale)
    clock = Clock(len(programs) + len(plan.figures) + bool(plan.explored) + 1)
    runs, paths = {}, verdicts.finished([plan.workdir, *RUNS.value])
    waiting = dict(plan.figures)
    for program in [*programs, {}]:  # the last for figures that need no run
        train(plan.workdir, program, paths, clock)
        runs |= verdicts.load({n: one for n, one in program.items() if n in plan.configs}, paths)
        shown = plan.beside | runs
        for figure in [one for one, names in waiting.items() if shown.keys() >= set(names)]:
            names = waiting.pop(figure)
            with clock.spending("measuring and drawing"):
                drawn = figure.draw({name: shown[name] for name in names})
                if figure.numbers:
                    path = plan.workdir / "figures" / f"{figure.name}.csv"
                    numbers = figure.numbers({name: shown[name] for name in names})
                    directory.write_text(path, pd.DataFrame(numbers).to_csv(index=False))
            save(plan.workdir, figure, drawn, names, clock)
    left = {name: one for name, one in plan.configs.items() if name not in runs}
    runs |= verdicts.load(left, paths)
    rows = judged(plan, runs, paths, clock)
    if plan.explored:
        with clock.spending("measuring and drawing"):
            explored = {name: runs[name] for name in (*plan.explored, *IF_TRAINED) if name in runs}
            shown, about = page.on(rows, explored), EXPLORED | IF_TRAINED
            path = plan.workdir / "explorer.html"
            page.write(explored, path, shown, seeds=range(OF_EACH), about=about)
        clock.say(f"wrote {path}")
    drawn = sorted(path.stem for path in (plan.workdir / "figures").glob("*.png"))
    results = pages.results(plan.scale, plan.papers, runs, rows, drawn)
    directory.write_text(plan.workdir / "RESULTS.md", results)
    clock.say(f"wrote {plan.workdir / 'claims.json'} and RESULTS.md; {clock.spent()}")


# --- plan --------------------------------------------------------------------------------------


def make_plan() -> Plan:
    """What the flags ask for. Raises ConfigError for a wrong one."""
    scale, workdir = SCALE.value, Path(WORKDIR.value or f"runs/{SCALE.value}")
    with_models = lambda one: MODELS.value and one.with_models
    papers = [one.with_models(tuple(MODELS.value)) if with_models(one) else one for one in PAPERS]
    own = [_of_module(module) for module in cli.load_extensions(EXTEND)]
    papers += own
    configs = {name: one for paper in papers for name, one in paper.runs(scale).items()}
    every = {claim.name: claim for paper in papers for claim in paper.claims}
    chosen, asked = _chosen(scale, every), [every[name] for name in ONLY.value if name in every]
    of_claims = {
        name
        for claim in asked
        for case in claim.cases
        for pattern in claim.named_runs(case).values()
        for name in fnmatch.filter(configs, pattern)
    }
    figures = {figure: figure.shows(configs, scale) for figure in chosen}
    for figure, names in figures.items():
        if figure.name in ONLY.value and not names:
            asked = ", ".join(figure.runs(scale) if callable(figure.runs) else figure.runs)
            raise ConfigError(f"--only={figure.name}: no run at {scale} scale is named {asked}")
    beside = {}
    if MODELS.value:  # the papers' own rows of the league need not be trained
        shown = {name for figure in chosen if figure.of_summaries for name in figures[figure]}
        theirs = {n: c for paper in PAPERS for n, c in paper.runs(scale).items() if n in shown}
        there = verdicts.load(theirs, verdicts.finished([workdir]))
        beside = {n: run for n, run in (committed.runs(scale) | there).items() if n in theirs}
        left = theirs.keys() - beside.keys()  # neither trained nor committed: not drawn
        figures = {one: [n for n in names if n not in left] for one, names in figures.items()}
    varied, groups = {}, []
    theirs = own if any(paper.settings for paper in own) else papers
    for group in (group for paper in theirs for group in paper.settings):
        asked = {name: name in ONLY.value for name in (SETTINGS, CONFIRM)}
        wanted = tuple(
            setting
            for setting in group.settings
            if asked[CONFIRM if setting.name == claims.FRESH else SETTINGS]
        )
        groups += [group._replace(settings=wanted)] if wanted else []
    if groups:
        if unknown := {base for group in groups for base in group.bases} - configs.keys():
            raise ConfigError(f"SETTINGS: no such run: {', '.join(sorted(unknown))}")
        varied = variations.configs(groups, configs)
    wanted_page = "explorer" in ONLY.value or not (ONLY.value or MODELS.value)
    explored = [name for name in EXPLORED if name in configs and wanted_page]
    return Plan(scale, workdir, papers, configs, figures, of_claims, beside, varied, explored)


def _of_module(module) -> Paper:
    """The claims (`CLAIMS`), runs (`runs(scale)`) and settings (`SETTINGS`) of a user's file."""
    rows = tuple(getattr(module, "CLAIMS", ()))
    runs = getattr(module, "runs", lambda scale: {})
    groups = tuple(getattr(module, "SETTINGS", ()))
    return Paper(Path(module.__file__).stem, runs, rows, settings=groups)


def _chosen(scale: str, claims_by_name) -> list[Figure]:
    """The figures that `--only` names; without it, those that are drawn by default. `BESIDES` and
    claims name none of them."""
    drawn = {name: one for name, one in FIGURES.items() if one.scale in ("", scale)}
    allowed = ", ".join([*drawn, *BESIDES, "or a claim's name"])
    for name in ONLY.value:
        known = name in drawn or name in BESIDES or name in claims_by_name
        demand(known, f"--only={name}: no such figure at {scale} scale; allowed: {allowed}")
    default = "of_summaries" if MODELS.value else "by_default"
    names = ONLY.value or [name for name, one in drawn.items() if getattr(one, default)]
    chosen = [drawn[name] for name in dict.fromkeys(names) if name in drawn]
    if MODELS.value and not any(one.of_summaries for one in chosen):
        raise ConfigError("--models: are rows of the league; say --only=league, or no --only")
    return chosen


def keep_scales_apart(workdir: Path, scale: str):
    """Raises ConfigError if `workdir` holds the results of another scale."""
    mark = workdir / "scale"
    there = mark.read_text().strip() if mark.exists() else scale
    hint = f"holds results at {there} scale, not {scale}; choose another directory"
    demand(there == scale, f"--workdir={workdir}: {hint}")
    directory.write_text(mark, scale + "\n")


# --- train -------------------------------------------------------------------------------------


def by_program(configs: dict[str, Config]) -> list[dict[str, Config]]:
    """Configs that train as one program together, in the order of their first; then each sweep."""
    groups, sweeps = {}, []
    for name, config in configs.items():
        if config.is_sweep:
            sweeps.append({name: config})
            continue
        try:
            task = contracts.check(config)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from error
        groups.setdefault(experiment.schedule(config, task), {})[name] = config
    return [*groups.values(), *sweeps]


def run_directory(workdir: Path, config: Config) -> Path:
    """Where the run or the sweep of a config is trained in a directory of `figures.make`."""
    kind = "sweeps" if config.is_sweep else "trained"
    return workdir / kind / f"{config.name}-{fingerprint(config)}"


def train(workdir: Path, configs: dict[str, Config], paths: dict[str, Path], clock):
    """Trains one group of runs, or one sweep, where `paths` has no finished one; adds it there."""
    left = [config for config in configs.values() if fingerprint(config) not in paths]
    names = ", ".join(config.name for config in left or configs.values())
    if not configs:
        return
    places = [run_directory(workdir, config) for config in left]
    if not left:
        clock.say(f"{names}: already trained")
    elif left[0].is_sweep:
        clock.say(f"{names}: training the trials of a sweep, in {places[0]}")
        with clock.spending("training"):
            sweep.run(left[0], places[0])
    else:
        seeds = sum(len(config.training.seeds) for config in left)
        clock.say(f"{names}: training {seeds} networks, in {places[0].parent}")
        with clock.spending("training"):
            experiment.train_together(list(zip(left, places, strict=True)))
    paths |= {fingerprint(config): path for config, path in zip(left, places, strict=True)}


# --- draw --------------------------------------------------------------------------------------


def save(workdir: Path, figure: Figure, drawn, names, clock):
    """Writes and closes a drawn figure; its PNG names the runs that it shows."""
    about, paths = {"Title": figure.name, "Source": ", ".join(names)}, []
    for suffix, content in plotting.saved(drawn, about).items():
        paths.append(workdir / "figures" / f"{figure.name}.{suffix}")
        directory.write_bytes(paths[-1], content)
    clock.say(f"drew {' and '.join(map(str, paths))}")


# --- judge -------------------------------------------------------------------------------------


def judged(plan: Plan, runs: dict, paths: dict[str, Path], clock) -> list[dict]:
    """Judges every claim whose runs are there, at the base and at every setting that was planned;
    beside these stand settings that were judged before, here or in docs/results. Writes
    claims.json and returns its rows."""
    path = plan.workdir / "claims.json"
    with clock.spending("judging"):
        rows = verdicts.judge(plan.papers, runs, plan.scale)
        every = [claim for paper in plan.papers for claim in paper.claims]
        names, at_settings = list(plan.configs), []
        for setting in dict.fromkeys(setting for _, setting in plan.varied):
            changed = {base: one for (base, name), one in plan.varied.items() if name == setting}
            there = verdicts.load(changed, paths)
            wanted = list(changed) if setting == claims.FRESH else names
            at_settings += claims.judge_all(every, there, plan.scale, setting, wanted)
        before = committed.rows(plan.scale) + (directory.read_json(path) if path.exists() else [])
        rows = claim_rows.merged(before, rows + at_settings)
    directory.write_json(path, rows)
    return rows


class Clock:
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
