"""The hold-out atlas: what published splits are worth before anything is trained.

    python -m figures.holdout_atlas

Measures the splits that docs/results/holdout_atlas.json lacks, one after the other;
`python -m figures.pages` makes the page of it.
"""

import json
import re

import numpy as np

from compgen_jax import cli
from compgen_jax.config import changed
from compgen_jax.metrics import text
from compgen_jax.presets import get_config
from compgen_jax.runs import directory, free_score
from compgen_jax.tasks import holdouts
from compgen_jax.tasks.task import Factor, cells

from . import committed
from .tables import table

PATH = committed.RESULTS / "holdout_atlas.json"
# few enough combinations for a minute a split; the turn has angles that `leave1out` names
SPRITES = {
    "task.side": 24,
    "task.turn": "whole",
    "task.counts.orientation": 5,
    "task.counts.posX": 8,
    "task.counts.posY": 8,
    "training.seeds": (0,),
}
HUES = [f"{name}_hue" for name in ("floor", "wall", "object")]
# of github.com/google-deepmind/3d-shapes and rr-learning/disentanglement_dataset
GRIDS = {
    "3dshapes": (
        *(Factor(name, np.arange(10) / 10, period=1.0) for name in HUES),
        Factor("scale", np.linspace(0.75, 1.25, 8)),
        Factor("shape", np.arange(4), False, labels=("cube", "cylinder", "sphere", "pill")),
        Factor("orientation", np.linspace(-30, 30, 15)),
    ),
    "mpi3d": (
        Factor("object_color", np.arange(6), False),
        Factor("object_shape", np.arange(6), False),
        Factor("object_size", np.arange(2)),
        Factor("camera_height", np.arange(3)),
        Factor("background_color", np.arange(3), False),
        Factor("horizontal_axis", np.arange(40)),
        Factor("vertical_axis", np.arange(40)),
    ),
}
SPLITS = {
    "Schott": ("random()", "composition()", "interpolation()", "extrapolation()"),
    "Wiedemer": ("slices()",),
    "Liang": ("block(posX, posY)", "cross(posX, posY)"),
    "Camposampiero": tuple(f"orthotope(seen={seen})" for seen in range(4)),
    "Montero": (
        "corner(posX, posY)",
        "recombination_to_element(shape, posX)",
        "recombination_to_range(shape, posX)",
        *(name for name in holdouts.PUBLISHED if "twoshapes" not in name),  # of unpublished hues
    ),
}
SOURCES = {split: source for source, splits in SPLITS.items() for split in splits}
BASELINES = {  # title: of these the best
    "nearest": "nearest_(?!shifted)",
    "KRR": "interpolator",
    "NTK": "wide_network",
    "additive": "additive",
    "shifted": "nearest_shifted",
}
HEAD = (
    *("split", "of", "held out", "values", "pairs", "triples", "cells", "factors", "joined"),
    *BASELINES,
)


def measured(split: str) -> dict:
    """`FreeScore.numbers`, on a published grid without baselines."""
    _, name, *_ = f"{split} ".split(" ")
    if name in GRIDS:
        factors, points = GRIDS[name], cells(GRIDS[name])
        held_out_B = holdouts.held_out_points(split, factors, points)
        return free_score.of_support(factors, points, held_out_B)
    config = changed(get_config("sprites_quick"), SPRITES | {"task.held_out": split})
    return free_score.of_config(config).numbers


def lines() -> list[str]:
    """The table of the page: sprites with the splits that baselines get most of first."""
    rows = []
    for split, numbers in json.loads(PATH.read_text()).items():
        counts, baselines = numbers["combinations"], numbers.get("baselines", {})
        shares = [
            max(
                (of["rendered"] for name, of in baselines.items() if re.match(start, name)),
                default=-1,
            )
            for start in BASELINES.values()
        ]
        share = 100 * counts["held_out"] / sum(counts.values())
        columns = [
            f"`{split}`",
            SOURCES[split],
            f"{text.number(share, 2)}%",
            *(text.number(numbers["coverage"][order]["mean"], 2) for order in "123"),
            text.number(numbers["distance"]["mean"], 2),
            str(numbers["changes"]["max"]),
            "yes" if numbers["support"]["connects"] else "no",
            *(f"{share:.0%}" if share >= 0 else text.UNKNOWN for share in shares),
        ]
        rows.append((-max(shares[:-1]), columns))
    return table(HEAD, [columns for _, columns in sorted(rows)])


def main():
    known = json.loads(PATH.read_text()) if PATH.exists() else {}
    for split in SOURCES:
        if split not in known:
            known[split] = measured(split)
            directory.write_json(PATH, {name: known[name] for name in SOURCES if name in known})
            print(split, flush=True)


if __name__ == "__main__":
    cli.run(main)
