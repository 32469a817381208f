"""Verdicts of every claim whose runs lie in some directories, whoever trained them.

A run is known by its config, whatever its directory is called.
"""

from pathlib import Path

from compgen_jax import claims
from compgen_jax.config import Config, fingerprint
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.variations import SCALES
from compgen_jax.runs import directory, sweeps
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run

PLACES = "", "*", "trained/*", "sweeps/*"  # of runs in a directory


def finished(folders) -> dict[str, Path]:
    """{fingerprint: directory} of the finished runs and sweeps in some directories; of several with
    the same config the first. Raises RunError where a config.json is damaged."""
    paths = [
        path.parent
        for folder in folders
        for place in PLACES
        for path in sorted(Path(folder).glob(f"{place}/config.json".lstrip("/")))
    ]
    found = {}
    for path in paths:
        if directory.is_finished(path):
            found.setdefault(fingerprint(directory.read_config(path)), path)
    return found


def load(configs: dict[str, Config], paths: dict[str, Path]) -> dict:
    """The runs and sweeps by name whose configs are among the finished ones."""
    there = {name: paths.get(fingerprint(config)) for name, config in configs.items()}
    return {
        name: sweeps.load(path) if configs[name].is_sweep else Run.load(path)
        for name, path in there.items()
        if path is not None
    }


def judge(papers: tuple[Paper, ...], runs: dict, scale: str) -> list[dict]:
    """The rows of all claims whose runs are there."""
    rows = []
    for paper in papers:
        more = paper.more(runs)
        rows += claims.judge_all(paper.claims, runs | more, scale)
    return rows


def judge_folders(papers: tuple[Paper, ...], folders) -> tuple[list[dict], dict]:
    """The rows of all claims whose runs lie in these directories, at each scale, and what claims on
    some of them lack (`not_judged`). Raises RunError for a directory without a finished run."""
    rows, lacking, paths = [], {}, finished(folders)
    if not paths:
        raise RunError(f"{', '.join(map(str, folders))}: no finished run in it")
    for scale in SCALES:
        configs = {name: one for paper in papers for name, one in paper.runs(scale).items()}
        if runs := load(configs, paths):
            rows += judge(papers, runs, scale)
            lacking |= not_judged(papers, runs)
    judged = {(row["claim"], row["case"]) for row in rows}
    return rows, {key: names for key, names in lacking.items() if key not in judged}


def not_judged(papers: tuple[Paper, ...], runs: dict) -> dict[tuple[str, str], list[str]]:
    """{(claim, case): the runs that it lacks} of the claims that some run is named by."""
    found = {}
    for paper in papers:
        more = paper.more(runs)
        names = runs.keys() | more.keys()
        for claim in paper.claims:
            for case in claim.cases:
                lacking = claims.missing(claim, case, names)
                there = set(claim.named_runs(case).values()) - {*lacking} - more.keys()
                if lacking and there:
                    found[claim.name, claims.label(case)] = lacking
    return found
