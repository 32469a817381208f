"""Verdicts of every claim whose runs lie in some directories, whoever trained them.

A run is known by its config, whatever its directory is called.
"""

import fnmatch
import itertools
from functools import partial
from pathlib import Path

from compgen_jax import claims
from compgen_jax.config import Config, fingerprint
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.variations import SCALES
from compgen_jax.runs import directory, measure, sweeps
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run

CONFIGS = "config.json", "*/config.json", "trained/*/config.json", "sweeps/*/config.json"


def finished(folders) -> dict[str, Path]:
    """{fingerprint: directory} of the finished runs and sweeps in some directories; of several with
    the same config the first. Raises RunError where a config.json is damaged."""
    paths = {}
    for folder, pattern in itertools.product(folders, CONFIGS):
        for path in (file.parent for file in sorted(Path(folder).glob(pattern))):
            if directory.is_finished(path):
                paths.setdefault(fingerprint(directory.read_config(path)), path)
    return paths


def load(configs: dict[str, Config], paths: dict[str, Path]) -> dict:
    """The runs and sweeps by name whose configs are among the finished ones."""
    runs = {}
    for name, config in configs.items():
        if path := paths.get(fingerprint(config)):
            runs[name] = sweeps.load(path) if config.is_sweep else Run.load(path)
    return runs


def judge_all(every_claim, runs: dict, scale: str = "", setting: str = "", every=()) -> list[dict]:
    """The rows of all claims whose runs are among `runs`, a dict by name. At a `setting`, a claim
    on all runs of a pattern needs all those of `every`, the base runs."""
    questions, pairs = [], [(claim, case) for claim in every_claim for case in claim.cases]
    for claim, case in pairs:
        chosen = {}
        for argument, name in claim.named_runs(case).items():
            matches = fnmatch.filter(runs, name)
            if not matches or ("*" in name and {*fnmatch.filter(every, name)} - {*matches}):
                break
            chosen[argument] = [runs[match] for match in matches] if "*" in name else runs[name]
        else:
            questions.append(partial(claims.judge, claim, chosen, case, scale, setting))
    return [row for row in measure.together(questions) if row is not None]


def judge(papers: tuple[Paper, ...], runs: dict, scale: str) -> tuple[list[dict], dict]:
    """The rows of all claims whose runs are there, and {(claim, case): the runs that it lacks} of
    others that some run is named by."""
    rows, lacking = [], {}
    for paper in papers:
        more = paper.more(runs)
        known = runs | more
        rows += judge_all(paper.claims, known, scale)
        for claim in paper.claims:
            for case in claim.cases:
                named = claim.named_runs(case).values()
                names = [name for name in named if not fnmatch.filter(known, name)]
                if names and {*named} - {*names} - more.keys():
                    lacking[claim.name, claims.label(case)] = names
    return rows, lacking


def judge_folders(papers: tuple[Paper, ...], folders) -> tuple[list[dict], dict]:
    """What `judge` says of the runs that lie in these directories, at each scale. Raises RunError
    for a directory without a finished run."""
    rows, lacking, paths = [], {}, finished(folders)
    if not paths:
        raise RunError(f"{', '.join(map(str, folders))}: no finished run in it")
    for scale in SCALES:
        configs = {name: one for paper in papers for name, one in paper.runs(scale).items()}
        if runs := load(configs, paths):
            rows_at_scale, lacking_at_scale = judge(papers, runs, scale)
            rows += rows_at_scale
            lacking |= lacking_at_scale
    judged = {(row["claim"], row["case"]) for row in rows}
    return rows, {key: names for key, names in lacking.items() if key not in judged}
