"""The authors' own numbers, of networks that they published or printed, beside those of ours.

authors.csv: one network each. `blank` is a blank image's error on the authors' images of the
region; `source`, on a network's first line, says where its numbers are from. agreement.csv: how
far their code and ours differ.
"""

from pathlib import Path

import pandas as pd

from compgen_jax.config import Config, differences
from compgen_jax.metrics import text
from compgen_jax.papers.forced_rendering.bump_presets import runs as paper_runs

from .. import tables

SCORES = {
    "mse": "MSE",
    "exact_accuracy": "exact accuracy",
    "position_accuracy": "accuracy within 1 pixel",
    "train_loss": "training loss",
}
UNLIKE = "training.seeds", "training.evaluate_every"  # say nothing of what is learnt, and how
INTRO = (
    "Theirs are of one network each, so that no interval is known. Where ours has other settings, "
    "as named with theirs in brackets, errors are over that of a blank image."
)
HEAD = "network", "score", "here", "authors", "our settings", "what theirs is"
AUTHORS = pd.read_csv(Path(__file__).with_name("authors.csv")).groupby("network", sort=False)
AGREEMENT = pd.read_csv(Path(__file__).with_name("agreement.csv"), comment="#")


def table(runs: dict) -> list[str]:
    """Lines of RESULTS.md on the runs for which the authors give numbers, on their settings or on
    others, which are named; none without any. It needs configs and summaries."""
    theirs = paper_runs("paper")
    rows = [
        row
        for counterpart, numbers in AUTHORS
        for name, run in runs.items()
        if name.removesuffix("_begun") == counterpart
        for row in _rows(run, numbers, theirs[counterpart])
    ]
    head = ["", "### Beside the authors' numbers", "", INTRO, ""]
    code = [
        "",
        "### Beside the authors' code",
        "",
        *tables.table(list(AGREEMENT), AGREEMENT.values),
    ]
    return [*code, *head, *tables.table(HEAD, rows)] if rows else []


def _rows(run, numbers: pd.DataFrame, theirs: Config):
    """Settings that are not theirs have theirs in brackets: '`task.grid` 16 (28)'."""
    mean = run.summary["mean"]
    unlike = ", ".join(
        f"`{path}` {value} ({other})"
        for path, (value, other) in differences(run.config, theirs).items()
        if path not in UNLIKE
    )
    first, last = (run.config.name,), (unlike or "theirs", numbers.source.iloc[0])
    for row in numbers.itertuples():
        (region, _, name), here, value = row.score.rpartition("."), mean[row.score], row.value
        title = f"{SCORES[name]} {region.upper()}".strip()  # the training loss has no region
        if name == "mse" and unlike:
            if pd.isna(row.blank):
                continue
            title, blank = f"MSE / blank {region.upper()}", mean[f"{region}.blank_mse"]["value"]
            ends = [end if end is None else end / blank for end in here["ci95"]]
            here = {"value": here["value"] / blank, "ci95": ends}
            value /= row.blank
        yield *first, title, text.with_interval(here), text.number(value), *last
        first, last = ("",), ("", "")
