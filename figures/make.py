"""Draws the figures from real training: trains what is missing, reuses what is there.

    compgen-jax figures --scale=quick --workdir=runs/quick [--only=fig1,codes,K10]

Writes DIR/figures/*.png and *.pdf (the numbers of some as *.csv), DIR/claims.json, DIR/RESULTS.md
and, of four networks together, DIR/explorer.html. Trained networks stay in DIR/trained/ and sweeps
in DIR/sweeps/, one directory for each config; none is trained twice. `--runs=DIR,...` names
directories whose finished runs are used as well. A figure is drawn as soon as its runs are trained.
Figures that take long are drawn only if `--only` names them. It takes the name of a claim, too, and
trains that claim's runs, and the name of a run or a pattern: `--only=league_*` trains the
benchmark. `--only=settings` trains what the papers leave open, setting by setting, and judges every
claim there; `--only=confirm` does so at fresh seeds. `--only=claims` judges what is there and
trains nothing. `--only=explorer` writes the page alone.
"""

import fnmatch
import itertools
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
from compgen_jax.runs import directory, study, sweeps
from compgen_jax.settings import demand, load_file
from compgen_jax.training import contracts

from . import committed, pages, plotting
from .explorer import page
from .figure import Figure
from .papers import FIGURES, PAPERS

SCALE = flags.DEFINE_enum("scale", "quick", SCALES, "The presets' size.")
ONLY = flags.DEFINE_list("only", [], "Figures, claims and runs; claims, explorer, confirm.")
RUNS = flags.DEFINE_list("runs", [], "Directories whose finished runs are used as well.")
EXTEND = cli.define_extend()
WORKDIR = cli.define_workdir()  # runs/SCALE by default
flags.declare_key_flag("workdir")
SETTINGS, CONFIRM = "settings", "confirm"  # of `--only`
NO_FIGURES = SETTINGS, CONFIRM, "claims", "explorer"  # what `--only` takes as well
# one network of each kind; how many bumps join the stripes differs between the scales
STRIPES = "Trained on single-factor images (stripes) and a few bumps, none in the outlined corner."
EXPLORED = {
    "bump_cnn": "It draws a bump at column x and row y. Training has none in the outlined block.",
    "ramp_cnn": "As bump_cnn, but with another input encoding of x and y, the ramp.",
    "lowrank_both": "A low-rank decoder with two penalties. Training has no bump in the corner.",
    "stripes_30_bumps": STRIPES,
    "stripes_50_bumps": STRIPES,
}
SEEDS_EXPLORED = 4  # of each
IF_TRAINED = {
    "rotation": "It draws a digit turned by an angle. Training has no angle in the outlined gap.",
    "sprites_range": "It draws a shape by size, turn and place. Training has none in the outline.",
}


class Plan(NamedTuple):
    """What is made in a directory.

    papers, configs: all runs by name.  figures: what is drawn, with the names of the runs that each
    shows.  to_train: configs by name.  varied: (base, setting) -> config.  explored: the runs of
    the explorer's page.
    """

    scale: str
    workdir: Path
    papers: list[Paper]
    configs: dict[str, Config]
    figures: dict[Figure, list[str]]
    to_train: dict[str, Config]
    varied: dict[tuple[str, str], Config]
    explored: list[str]


def main():
    plan = make_plan()
    programs = by_program(plan.to_train)
    mark = plan.workdir / "scale"
    before = mark.read_text().strip() if mark.exists() else plan.scale
    hint = f"holds results at {before} scale, not {plan.scale}; choose another directory"
    demand(before == plan.scale, f"--workdir={plan.workdir}: {hint}")
    directory.write_text(mark, plan.scale + "\n")
    steps = len(programs) + len(plan.figures) + bool(plan.explored) + 1
    start, step = time.monotonic(), itertools.count(1)

    def say(text: str):
        minutes, seconds = divmod(round(time.monotonic() - start), 60)
        line = f"[{next(step)}/{steps}, {minutes}:{seconds:02d}] {text}"
        print(line, file=sys.stderr, flush=True)

    runs, paths = {}, verdicts.finished([plan.workdir, *RUNS.value])
    undrawn = dict(plan.figures)
    for program in [*programs, {}]:  # the last for figures that need no run
        if program:
            say(train(plan.workdir, program, paths))
        configs = {name: config for name, config in program.items() if name in plan.configs}
        runs |= verdicts.load(configs, paths)
        for figure, names in list(undrawn.items()):
            if {*names} <= runs.keys():
                undrawn.pop(figure)
                runs_of_figure = {name: runs[name] for name in names}
                say(draw_figure(plan.workdir, figure, runs_of_figure))
    others = {name: config for name, config in plan.configs.items() if name not in runs}
    runs |= verdicts.load(others, paths)
    rows = judged(plan, runs, paths)
    if plan.explored:
        explored = {name: runs[name] for name in (*plan.explored, *IF_TRAINED) if name in runs}
        path, about = plan.workdir / "explorer.html", EXPLORED | IF_TRAINED
        page.write(explored, path, page.on(rows, explored), range(SEEDS_EXPLORED), about)
        say(f"wrote {path}")
    drawn = sorted(path.stem for path in (plan.workdir / "figures").glob("*.png"))
    results = pages.results(plan.scale, plan.papers, runs, rows, drawn)
    directory.write_text(plan.workdir / "RESULTS.md", results)
    say(f"wrote {plan.workdir / 'claims.json'} and RESULTS.md")


# --- plan --------------------------------------------------------------------------------------


def make_plan() -> Plan:
    """What the flags ask for. Raises ConfigError for a wrong one."""
    scale, only = SCALE.value, list(dict.fromkeys(ONLY.value))
    workdir = Path(WORKDIR.value or f"runs/{scale}")
    extensions = [
        Paper(
            title=Path(module.__file__).stem,
            runs=getattr(module, "runs", lambda scale: {}),
            claims=tuple(getattr(module, "CLAIMS", ())),
            settings=tuple(getattr(module, "SETTINGS", ())),
        )
        for module in map(load_file, EXTEND.value)
    ]
    papers = [*PAPERS, *extensions]
    configs = {name: config for paper in papers for name, config in paper.runs(scale).items()}
    by_name = {claim.name: claim for paper in papers for claim in paper.claims}

    # figures: those that --only names; without it, those that are drawn by default
    figures = {name: figure for name, figure in FIGURES.items() if figure.scale in ("", scale)}
    allowed = ", ".join([*figures, *NO_FIGURES, "or the name of a claim or a run"])
    for name in only:
        known = {name} & {*figures, *NO_FIGURES, *by_name} or fnmatch.filter(configs, name)
        demand(known, f"--only={name}: no such figure at {scale} scale; allowed: {allowed}")
    drawn_runs = {}
    for name, figure in figures.items():
        if name in only or (figure.by_default and not only):
            drawn_runs[figure] = figure.shows(configs, scale)
            demand(
                drawn_runs[figure] or name not in only,
                f"--only={name}: no such run at {scale} scale",
            )

    # settings: those of a user's file alone, if it has any
    varied, groups = {}, []
    with_settings = [paper for paper in extensions if paper.settings] or papers
    for group in (group for paper in with_settings for group in paper.settings):
        settings = {
            name: values
            for name, values in group.settings.items()
            if (CONFIRM if name == claims.FRESH else SETTINGS) in only
        }
        groups += [group._replace(settings=settings)] if settings else []
    if groups:
        if unknown := {base for group in groups for base in group.bases} - configs.keys():
            raise ConfigError(f"SETTINGS: no such run: {', '.join(sorted(unknown))}")
        varied = variations.configs(groups, configs)

    with_page = "explorer" in only or not only
    explored = [name for name in EXPLORED if name in configs and with_page]
    names = {name for names in drawn_runs.values() for name in names}
    names |= {*explored} | {base for base, _ in varied}
    patterns = [name for name in only if name not in FIGURES]
    for claim in (by_name[name] for name in only if name in by_name):
        patterns += [run for case in claim.cases for run in claim.named_runs(case).values()]
    for pattern in patterns:
        names |= {*fnmatch.filter(configs, pattern)}
    to_train = {name: config for name, config in configs.items() if name in names}
    others = [config for config in varied.values() if config not in to_train.values()]
    to_train |= {config.name: config for config in others}
    return Plan(scale, workdir, papers, configs, drawn_runs, to_train, varied, explored)


# --- train, draw, judge ------------------------------------------------------------------------


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
        groups.setdefault(study.group_key(config, task), {})[name] = config
    return [*groups.values(), *sweeps]


def run_directory(workdir: Path, config: Config) -> Path:
    """Where the run or the sweep of a config is trained in a directory of `figures.make`."""
    kind = "sweeps" if config.is_sweep else "trained"
    return workdir / kind / f"{config.name}-{fingerprint(config)}"


def train(workdir: Path, configs: dict[str, Config], paths: dict[str, Path]) -> str:
    """Trains one group of runs, or one sweep, where `paths` has no finished one; adds it there.
    Returns what was done."""
    missing = {
        config: run_directory(workdir, config)
        for config in configs.values()
        if fingerprint(config) not in paths
    }
    names = ", ".join(config.name for config in missing or configs.values())
    if not missing:
        return f"{names}: already trained"
    print(f"{names}: training", file=sys.stderr, flush=True)
    first, path = next(iter(missing.items()))
    if first.is_sweep:
        sweeps.run(first, path)
    else:
        study.train_all(list(missing.items()))
    paths |= {fingerprint(config): path for config, path in missing.items()}
    return f"{names}: trained, in {path.parent}"


def draw_figure(workdir: Path, figure: Figure, runs: dict) -> str:
    """Writes a figure of these runs, named in its PNG, and its numbers. Returns what was done."""
    stem = workdir / "figures" / figure.name
    about = {"Title": figure.name, "Source": ", ".join(runs)}
    plotting.write(figure.draw(runs), stem, about)
    if figure.numbers:
        table = pd.DataFrame(figure.numbers(runs)).to_csv(index=False)
        directory.write_text(Path(f"{stem}.csv"), table)
    return f"drew {stem}.png and .pdf"


def judged(plan: Plan, runs: dict, paths: dict[str, Path]) -> list[dict]:
    """Judges every claim whose runs are there, at the base and at every setting that was planned;
    beside these stand settings that were judged before, here or in docs/results. Writes
    claims.json and returns its rows."""
    path = plan.workdir / "claims.json"
    rows, _ = verdicts.judge(plan.papers, runs, plan.scale)
    every_claim = [claim for paper in plan.papers for claim in paper.claims]
    for setting in dict.fromkeys(setting for _, setting in plan.varied):
        changed = {base: config for (base, name), config in plan.varied.items() if name == setting}
        names = list(changed if setting == claims.FRESH else plan.configs)
        at_setting = verdicts.load(changed, paths)
        rows += claims.judge_all(every_claim, at_setting, plan.scale, setting, names)
    before = committed.rows(plan.scale) + (directory.read_json(path) if path.exists() else [])
    rows = committed.merged(before, rows)
    directory.write_json(path, rows)
    return rows


if __name__ == "__main__":
    cli.run(main)
