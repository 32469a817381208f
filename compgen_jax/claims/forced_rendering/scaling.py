"""C11: how many images are enough, by the grid's side N (Figure 4c).

Functions of a sweep's table (`analysis.scaling` says what a row is). The paper gives the two
exponents, but not which accuracy is enough or where, so each reading of it has a verdict.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.analysis import scaling
from compgen_jax.analysis.scaling import UNKNOWN, Curve, Reading
from compgen_jax.claims.verdicts import INCONCLUSIVE, Condition, entry

MARGIN = 0.5  # on either side of the paper's exponent
SAME_NUMBER = 1e-9  # relative: a threshold at a measured number of images differs by rounding


class Scheme(NamedTuple):
    """A way to make data sets: its name in words and the paper's exponent."""

    title: str
    exponent: int


SCHEMES = {"bumps": Scheme("bumps alone", 3), "stripes": Scheme("stripes and bumps", 1)}
STATUS_TITLES = {
    "reached": "thresholds reached",
    "above": "thresholds above the most images",
    "below": "thresholds at or below the fewest images",
    "unknown": "thresholds unknown",
    "coarse": "thresholds known to a factor above 2 only",
}


def needs_images(code: str, rows, readings, **settings) -> list[dict]:
    """C11: bumps alone need images in proportion to N^3, stripes and bumps in proportion to N.

    A row of claims.json for every reading and scheme of the table. The exponent and its interval
    over seeds are `analysis.scaling.exponent`'s; where it is not identified or not resolved nothing
    is concluded.
    Learning is asked of the decoders at the thresholds: see `seen_accuracy`.

    Args:
      code: the name of the decoders' code.  rows: the table.  readings: `Reading`s.
      settings: `share`, `learning_rate` or `weight_decay`, where the table has several.

    Raises ValueError as `analysis.scaling.thresholds` does.
    """
    found = []
    for reading in readings:
        present = {row["scheme"] for row in rows if row["region"] == reading.region}
        for scheme in SCHEMES:
            if scheme in present:
                curve = scaling.thresholds(rows, reading, scheme, **settings)
                trained = seen_accuracy(rows, curve, **settings)
                found.append(_needs_images(code, curve, trained, settings))
    return found


def _needs_images(code: str, curve: Curve, trained_S, settings: dict) -> dict:
    reading, scheme = curve.reading, SCHEMES[curve.scheme]
    number = scaling.exponent(curve)
    power = "N" if scheme.exponent == 1 else f"N^{scheme.exponent}"
    asked = f"{reading.score} accuracy {reading.target:g} at {scored_place(reading)}"
    asked += "".join(f", {name.replace('_', ' ')} {value:g}" for name, value in settings.items())
    finite_S = trained_S[np.isfinite(trained_S)]
    return entry(
        "C11",
        code,
        curve.seeds_S.tolist(),
        finite_S if finite_S.size else np.array([np.nan]),
        figure="Fig 4c",
        statement=f"{scheme.title} need images in proportion to {power} for {asked}",
        trained_name=f"{reading.score} accuracy on seen cells, at the thresholds",
        conditions={
            f"exponent of N, {scheme.title}, {asked}": Condition(
                number, "above", scheme.exponent - MARGIN
            ),
            "the same exponent": Condition(number, "below", scheme.exponent + MARGIN),
        },
        details={title: _count(number[status]) for status, title in STATUS_TITLES.items()},
        verdict=None if scaling.is_resolved(number) else INCONCLUSIVE,
    )


def seen_accuracy(rows, curve: Curve, **settings) -> np.ndarray:
    """(S,) accuracy on seen cells by the reading's score, mean over grid sizes, of the decoders at
    the thresholds.

    At a threshold is the smallest number of images at or above it, and of a threshold that is
    above all of them the largest: decoders that cannot draw what they were shown would say
    nothing about how many images are needed. Stripes alone show no cell, so that numbers without
    a seen cell are passed over. Unknown thresholds do not count; NaN for a seed without others.
    """
    key = f"seen.{curve.reading.score}_accuracy"
    wanted = settings | {"scheme": curve.scheme, "region": curve.reading.region}
    pairs = {}
    for row in rows:
        if row["status"] == "ok" and all(row[name] == value for name, value in wanted.items()):
            if np.isfinite(row[key]):
                pair = row["n_data"], row[key]
                pairs.setdefault((row["seed"], row["grid"]), []).append(pair)
    found_S = []
    for s, seed in enumerate(curve.seeds_S):
        accuracies = [
            _at(curve.values_SxK[s, k], pairs[seed, grid])
            for k, grid in enumerate(curve.grids_K)
            if curve.status_SxK[s, k] != UNKNOWN and (seed, grid) in pairs
        ]
        found_S.append(np.mean(accuracies) if accuracies else np.nan)
    return np.array(found_S)


def _at(images: float, pairs) -> float:
    """The accuracy at the smallest number at or above `images`, or else at the largest."""
    pairs = sorted(pairs)
    enough = (pair for pair in pairs if pair[0] >= images * (1 - SAME_NUMBER))
    return next(enough, pairs[-1])[1]


def scored_place(reading: Reading) -> str:
    """Where the reading is scored, and what was held out, in words."""
    if reading.where == "ood":
        return f"the held-out {reading.region}"
    points = {"seen": "seen cells", "unseen": "unseen cells", "real": "points between cells"}
    held_out = "" if reading.region == "none" else f", {reading.region} held out"
    return points[reading.where] + held_out


def _count(number: int) -> dict:
    """A count over all seeds, which has no interval."""
    return {"value": number, "ci95": [np.nan, np.nan]}
