"""Draws the figures from real training: trains what is missing, reuses what is there.

    compgen-jax figures --scale=quick --workdir=runs/quick [--only=fig1,codes,K10]

Writes DIR/figures/*.png and *.pdf (their numbers as *.csv), DIR/claims.json, DIR/RESULTS.md
and, of four networks together, DIR/explorer.html. Trained networks stay in DIR/trained/ and sweeps
in DIR/sweeps/, one directory for each config; none is trained twice. `--runs=DIR,...` names
directories whose finished runs are used as well. A figure is drawn as soon as its runs are trained.
Figures that take long are drawn only if `--only` names them; without it, at most four seeds of a
quick network are trained. It takes the name of a claim, too, and trains that claim's runs, and the
name of a run or a pattern: `--only=league_*` trains the benchmark. `--only=settings` trains what
the papers leave open, setting by setting, and judges every claim there; `--only=confirm` does so at
fresh seeds. `--only=claims` judges what is there and trains nothing. `--only=explorer` writes the
page alone.
"""

import fnmatch
import itertools
import re
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pandas
from absl import flags

from compgen_jax import claims, cli
from compgen_jax.claims import near_bounds
from compgen_jax.config import Config, ConfigError, changed, fingerprint
from compgen_jax.papers import verdicts
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.variations import SCALES, Preset
from compgen_jax.runs import directory, study, sweeps
from compgen_jax.settings import demand
from compgen_jax.training import contracts

from . import committed, pages, plotting, quoted
from .explorer import page
from .papers import FIGURES, PAPERS

SCALE = flags.DEFINE_enum("scale", "quick", SCALES, "The presets' size.")
ONLY = flags.DEFINE_list("only", [], "Figures, claims and runs; claims, explorer, confirm.")
RUNS = flags.DEFINE_list("runs", [], "Directories whose finished runs are used as well.")
EXTEND = cli.define_extend()  # a flag of this command, in --help
WORKDIR = cli.define_workdir()  # runs/SCALE by default
cli.define_trust()
flags.declare_key_flag("workdir")
SETTINGS, CONFIRM = "settings", "confirm"  # of `--only`
NO_FIGURES = SETTINGS, CONFIRM, "claims", "explorer"  # what `--only` takes as well
EXPLORED = quoted.read("explored")  # a sentence on each network of the explorer's page
SEEDS = 4  # of each network of the main job and of the explorer's page


class Plan(NamedTuple):
    """What the flags ask for; figures with the runs that each shows, and runs of the explorer."""

    scale: str
    workdir: Path
    papers: list[Paper]
    configs: dict[str, Config]
    figures: dict[str, list[str]]
    to_train: dict[str, Config]
    varied: dict[tuple[str, str], Config]
    explored: list[str]


def main():
    plan = make_plan()
    programs, workdir = by_program(plan.to_train, plan.figures), plan.workdir
    mark = workdir / "scale"
    before = mark.read_text().strip() if mark.exists() else plan.scale
    hint = f"holds results at {before} scale, not {plan.scale}; choose another directory"
    demand(before == plan.scale, f"--workdir={workdir}: {hint}")
    for folder in RUNS.value:
        demand(Path(folder).is_dir(), f"--runs={folder}: there is no such directory")
    paths = verdicts.finished([workdir, *RUNS.value])
    directory.write_text(mark, plan.scale + "\n")
    steps = len(programs) + len(plan.figures) + bool(plan.explored) + 1
    start, step = time.monotonic(), itertools.count(1)

    def say(text: str):
        minutes, seconds = divmod(round(time.monotonic() - start), 60)
        line = f"[{next(step)}/{steps}, {minutes}:{seconds:02d}] {text}"
        print(line, file=sys.stderr, flush=True)

    runs, undrawn = {}, dict(plan.figures)
    for program in programs:
        say(train(workdir, program, paths))
        configs = {name: config for name, config in program.items() if name in plan.configs}
        runs |= verdicts.load(configs, paths)
        for name in [name for name, names in undrawn.items() if {*names} <= runs.keys()]:
            figure, of_figure = FIGURES[name], {run: runs[run] for run in undrawn.pop(name)}
            also = {run: plan.configs[run] for run in figure.also if run in plan.configs}
            of_figure |= verdicts.load(also, paths)
            stem = workdir / "figures" / name
            about = {"Title": name, "Source": ", ".join(of_figure)}
            plotting.write(figure.draw(of_figure), stem, about)
            say(f"drew {stem}.png and .pdf")
    others = {name: config for name, config in plan.configs.items() if name not in runs}
    runs |= verdicts.load(others, paths)
    whole = {name: run for name, run in runs.items() if run.config == plan.configs[name]}
    rows = judged(plan, whole, paths)
    if plan.explored:
        about = EXPLORED["trained"] | EXPLORED["if_trained"]
        explored = {name: runs[name] for name in about if name in runs}
        path = workdir / "explorer.html"
        page.write(explored, path, page.on(rows, explored), range(SEEDS), about)
        say(f"wrote {path}")
    drawn = sorted(path.stem for path in (workdir / "figures").glob("*.png"))
    results = pages.results(plan.scale, plan.papers, runs, rows, drawn)
    directory.write_text(workdir / "RESULTS.md", results)
    say(f"wrote {workdir / 'claims.json'} and RESULTS.md")
    for line in ending(plan, runs, rows):
        print(line)


def make_plan() -> Plan:
    scale, only = SCALE.value, list(dict.fromkeys(ONLY.value))
    extensions = [
        Paper(
            title=Path(module.__file__).stem,
            runs=getattr(module, "runs", lambda scale: {}),
            claims=tuple(getattr(module, "CLAIMS", ())),
            settings=tuple(getattr(module, "SETTINGS", ())),
        )
        for module in cli.load_extensions()
    ]
    papers = [*PAPERS, *extensions]
    configs = {name: config for paper in papers for name, config in paper.runs(scale).items()}
    by_name = {claim.name: claim for paper in papers for claim in paper.claims}

    # figures: those that --only names; without it, those that are drawn by default
    figures = {
        name: figure.shows(configs, scale)
        for name, figure in FIGURES.items()
        if figure.scale in ("", scale)
    }
    figures = {name: names for name, names in figures.items() if names}
    allowed = ", ".join([*figures, *NO_FIGURES, "or the name of a claim or a run"])
    for name in only:
        known = {name} & {*figures, *NO_FIGURES, *by_name} or fnmatch.filter(configs, name)
        demand(known, f"--only={name}: no such figure at {scale} scale; allowed: {allowed}")
    drawn = only or [name for name in figures if FIGURES[name].by_default]
    figures = {name: names for name, names in figures.items() if name in drawn}
    explored = [name for name in EXPLORED["trained"] if name in configs]
    explored = explored if "explorer" in only or not only else []

    # settings: those of a user's file alone, if it has any
    with_settings = [paper for paper in extensions if paper.settings] or papers
    groups = []
    for group in (group for paper in with_settings for group in paper.settings):
        settings = {
            name: values
            for name, values in group.settings.items()
            if (CONFIRM if name == claims.FRESH else SETTINGS) in only
        }
        groups += [group._replace(settings=settings)] if settings else []
    unknown = {base for group in groups for base in group.bases} - configs.keys()
    demand(not unknown, f"SETTINGS: no such run: {', '.join(sorted(unknown))}")
    varied = configs_at_settings(groups, configs)

    # runs: those of figures, pages, settings and claims, and those that --only names
    patterns = [*itertools.chain(*figures.values()), *explored, *(base for base, _ in varied)]
    for name in only:
        cases = by_name[name].cases if name in by_name else ()
        patterns += [run for case in cases for run in by_name[name].named_runs(case).values()]
        patterns += [name] if name not in FIGURES else []
    names = {name for pattern in patterns for name in fnmatch.filter(configs, pattern)}
    in_order = dict.fromkeys([*itertools.chain(*figures.values()), *configs])
    to_train = {name: configs[name] for name in in_order if name in names}
    if scale == "quick" and not only:  # a claim that needs more seeds is asked for by its name
        first = lambda config: {"training.seeds": config.training.seeds[:SEEDS]}
        to_train = {name: changed(config, first(config)) for name, config in to_train.items()}
    others = [config for config in varied.values() if config not in to_train.values()]
    to_train |= {config.name: config for config in others}
    workdir = Path(WORKDIR.value or f"runs/{scale}")
    return Plan(scale, workdir, papers, configs, figures, to_train, varied, explored)


def configs_at_settings(groups, base_runs: dict[str, Config]) -> dict[tuple[str, str], Config]:
    """{(base, setting): config} for every setting of every base that is among `base_runs`. A
    setting that is among these already keeps that run's name, and so its directory."""
    unnamed = lambda config: changed(config, {"name": "any"})
    names = {unnamed(config): config.name for config in base_runs.values()}
    varied = {}
    for group in groups:
        for base, setting in itertools.product(group.bases, group.settings):
            if base in base_runs:
                config = Preset(base_runs[base], group.settings[setting]).config("paper")
                stem, words = config.name.removesuffix("_quick"), re.sub(r"[^\w.]+", "_", setting)
                name = config.name.replace(stem, f"{stem}_{words}", 1)
                name = names.get(unnamed(config), name)
                varied[base, setting] = changed(config, {"name": name})
    return varied


def by_program(
    configs: dict[str, Config], figures: dict[str, list[str]]
) -> list[dict[str, Config]]:
    """Configs that train as one program together, in the order of their first; then each sweep.
    Those of the first figure train by themselves, so that it is there soon."""
    groups, sweeps, first = {}, [], next(iter(figures.values()), [])
    for name, config in configs.items():
        if config.is_sweep:
            sweeps.append({name: config})
            continue
        try:
            task = contracts.check(config)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from error
        groups.setdefault((name in first, study.group_key(config, task)), {})[name] = config
    return [*groups.values(), *sweeps]


def run_directory(workdir: Path, config: Config) -> Path:
    """Where the run or the sweep of a config is trained in a directory of `figures.make`."""
    kind = "sweeps" if config.is_sweep else "trained"
    return workdir / kind / f"{config.name}-{fingerprint(config)}"


def train(workdir: Path, configs: dict[str, Config], paths: dict[str, Path]) -> str:
    """Trains what `paths` lacks of a group, and adds it there. Returns what was done."""
    missing = [config for config in configs.values() if fingerprint(config) not in paths]
    names = ", ".join(config.name for config in missing or configs.values())
    if not missing:
        return f"{names}: already trained"
    print(f"{names}: training", file=sys.stderr, flush=True)
    jobs = [(config, run_directory(workdir, config)) for config in missing]
    if missing[0].is_sweep:
        sweeps.run(*jobs[0])
    else:
        study.train_all(jobs)
    paths |= {fingerprint(config): path for config, path in jobs}
    return f"{names}: trained, in {jobs[0][1].parent}"


def ending(plan: Plan, runs: dict, rows: list[dict]) -> list[str]:
    """How many cases of each claim on the planned runs have which verdict; what completes claims
    and figures."""
    planned = runs.keys() & (plan.to_train or plan.configs)
    is_planned = lambda names: any(fnmatch.filter(planned, name) for name in names)
    rows = [row for row in rows if row["setting"] == claims.BASE and is_planned(row["runs"])]
    verdicts = pandas.DataFrame(rows, columns=["claim", "verdict"])
    counts = pandas.crosstab(verdicts.claim, verdicts.verdict)
    parts = {
        "near its bound": [
            f"{row['claim']} {row['case']}".strip() for row in rows if near_bounds(row)
        ],
        "not judged; --only=NAME trains what is missing": [
            claim.name
            for paper in plan.papers
            for claim in paper.claims
            if claim.name not in counts.index
            and any(is_planned(claim.named_runs(case).values()) for case in claim.cases)
        ],
        "figures that show more, by --only": [
            f"{name},{run}"
            for name in plan.figures
            for run in FIGURES[name].also
            if run in plan.configs.keys() - runs.keys()
        ],
    }
    lines = [f"{title}: {', '.join(names)}" for title, names in parts.items() if names]
    return lines if counts.empty else [counts.to_string(), *lines]


def judged(plan: Plan, runs: dict, paths: dict[str, Path]) -> list[dict]:
    """Writes and returns the rows of claims.json: every claim whose runs are there, at the base and
    at planned settings; other settings stay as they were judged, here or in docs/results."""
    path = plan.workdir / "claims.json"
    rows, _ = verdicts.judge(plan.papers, runs, plan.scale)
    every_claim = [claim for paper in plan.papers for claim in paper.claims]
    for setting in dict.fromkeys(setting for _, setting in plan.varied):
        at_base = {base: config for (base, name), config in plan.varied.items() if name == setting}
        names = list(at_base if setting == claims.FRESH else plan.configs)
        at_setting = verdicts.load(at_base, paths)
        rows += verdicts.judge_all(every_claim, at_setting, plan.scale, setting, names)
    before = committed.rows(plan.scale) + (directory.read_json(path) if path.exists() else [])
    rows = committed.merged(before, rows)
    directory.write_json(path, rows)
    return rows


if __name__ == "__main__":
    cli.run(main)
