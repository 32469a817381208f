"""Conditions, verdicts with their reasons, and the rows of claims.json.

A claim has two readings: *as stated*, its sentence in the plainest operational form or the paper's
own measure, and *stricter*, with alternatives and controls excluded. Each is a list of conditions
on means over seeds, or on another number with an interval over them; its verdict is `reproduced` if
every condition holds on the whole 95% interval, `contradicted` if some condition fails on the whole
of it, and `inconclusive` otherwise, as it is when a network did not learn what it was shown (mean
accuracy on it, exact accuracy ID if a claim names no other, below `TRAINED`). Criteria are tried on
maps whose answer is known before they judge a network (docs/criteria.md).

As training ends at a constant rate, its end is a draw too: of a seed with several networks, those
of the evaluations over the last tenth of its training, every number is the median over them.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics import evaluation, text
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.statistics import geometric_mean_with_interval, mean_with_interval

REPRODUCED, CONTRADICTED, INCONCLUSIVE = "reproduced", "contradicted", "inconclusive"
HOLDS = {REPRODUCED: True, CONTRADICTED: False, INCONCLUSIVE: None}  # of one condition
READINGS = ("as_stated", "stricter")
# to either side of a share's mean: seeds that agree to the cell show Student's t no spread at all.
# The least number of half cells with which simulated intervals of shares that are 1 in most seeds
# hold their mean in 93% of samples (docs/criteria.md)
LEAST_CELLS = 1.5
TINY = 1e-12  # a smaller ratio counts as that
TRAINED = 0.95  # accuracy on what training showed, below which nothing is concluded


class Condition(NamedTuple):
    """What is measured must lie on `side` ('above' or 'below') of `bound`, or 'between' two: the
    mean of one value per seed, or what has its interval already (see `with_interval`), from which
    nothing is concluded where it says why, `unless`. Of a share, `cells` is of how many, whose
    interval is never narrower than `LEAST_CELLS` of them. Of a `ratio`, as of an error to another,
    mean and interval are those of its logarithm: the geometric mean."""

    measured: np.ndarray | dict
    side: str
    bound: float | tuple[float, float]
    cells: int = 0
    ratio: bool = False


class Verdict(NamedTuple):
    """verdict: one of three.  reason: why it is none of the other two, where inconclusive; ''."""

    verdict: str
    reason: str = ""


def judge(conditions: dict[str, Condition]) -> Verdict:
    """The verdict of conditions that must all hold."""
    found = {name: _judge_one(condition) for name, condition in conditions.items()}
    for verdict in (CONTRADICTED, INCONCLUSIVE):
        for name, one in found.items():
            if one.verdict == verdict:
                return one._replace(reason=one.reason and f"{one.reason}: {name}")
    return Verdict(REPRODUCED)


def _judge_one(condition: Condition) -> Verdict:
    number = _number(condition)
    if "unless" in number:
        return Verdict(INCONCLUSIVE, number["unless"])
    low, high = number["ci95"]
    least, most = _bounds(condition)
    if (least is None or low > least) and (most is None or high < most):
        return Verdict(REPRODUCED)
    if (least is not None and high <= least) or (most is not None and low >= most):
        return Verdict(CONTRADICTED)
    if np.isnan([low, high]).any():
        return Verdict(INCONCLUSIVE, "no interval" if np.isfinite(number["value"]) else "not known")
    return Verdict(INCONCLUSIVE, "interval crosses the bound")


def _bounds(condition: Condition) -> tuple:
    """Least and most, None where there is none."""
    if condition.side == "between":
        return condition.bound
    return (condition.bound, None) if condition.side == "above" else (None, condition.bound)


def _number(condition: Condition) -> dict:
    if condition.ratio:
        return geometric_mean_with_interval(np.maximum(condition.measured, TINY))
    number = with_interval(condition.measured)
    if condition.cells:
        value, least = number["value"], LEAST_CELLS / condition.cells
        low, high = number["ci95"]
        number["ci95"] = [float(min(low, value - least)), float(max(high, value + least))]
    return number


def with_interval(measured) -> dict:
    """{'value', 'ci95': [low, high]}: the mean of one value per seed, or, of a statistic that is
    no mean over seeds, the one given. An interval that is not known is NaN: then nothing is
    concluded."""
    if isinstance(measured, dict):
        return measured | {"ci95": list(measured["ci95"])}
    return mean_with_interval(measured)


def median_over_checkpoints(values, seeds):
    """(T,): of every seed the median over its networks, which follow one another in `values` and in
    `seeds`. Of values that are one per seed already, these themselves."""
    return np.median(np.reshape(values, (len(dict.fromkeys(seeds)), -1)), axis=1)


def exact_id(results: CellResults):
    """(T,) exact accuracy of every network on seen combinations."""
    return evaluation.mean_score(results, "exact_accuracy", ~results.held_out)


def entry(
    claim,
    code,
    seeds,
    trained_T,
    *,
    figure,
    statement,
    as_stated,
    stricter=None,
    details=None,
    unless="",
    trained_name="exact accuracy ID",
    trained_at=TRAINED,
) -> dict:
    """A claim with both of its readings, which are two rows of claims.json (see `rows`).

    `seeds` has the seed of every network that was measured, in order; `as_stated` and `stricter`
    (by default the same) are conditions by name; `details` what else a reader would ask, measured
    as `with_interval` takes it, or one value per network (see `typical`). Nothing is concluded
    where `unless` gives a reason. `trained_name` says what `trained_T` is, and nothing
    is concluded where its mean is below `trained_at`; None of what needs no training.
    """

    def per_seed(measured):
        return measured if isinstance(measured, dict) else median_over_checkpoints(measured, seeds)

    def reading(conditions):
        of_seeds = {name: one._replace(measured=per_seed(one.measured))
                    for name, one in conditions.items()}  # fmt: skip
        return _reading(of_seeds, unless)

    numbers = {} if trained_T is None else {trained_name: trained_T}
    for measured in numbers.values():
        trained = with_interval(per_seed(measured))["value"]
        if not unless and not trained >= trained_at:
            unless = f"not trained: {trained_name} {text.number(trained)}, {trained_at:g} asked"
    numbers |= details or {}
    return {
        "claim": claim,
        "code": code,
        "statement": statement,
        "figure": figure,
        "seeds": list(dict.fromkeys(seeds)),
        "as_stated": reading(as_stated),
        "stricter": reading(stricter or as_stated),
        "details": {name: with_interval(per_seed(measured)) for name, measured in numbers.items()},
    }


def rows(entries: list[dict], scale: str = "") -> list[dict]:
    """The rows of claims.json: one for each reading of each claim; scale 'quick' or 'paper'."""
    return [
        {name: value for name, value in one.items() if name not in READINGS}
        | {"reading": reading.replace("_", " "), "scale": scale}
        | one[reading]
        for one in entries
        for reading in READINGS
    ]


def entries(rows: list[dict]) -> list[dict]:
    """What `rows` were made of."""
    found, of_reading = [], ("verdict", "reason", "criterion", "measured", "ci95", "conditions")
    for row in rows:
        if row["reading"] == READINGS[0].replace("_", " "):
            apart = *of_reading, "reading", "scale"
            found.append({name: value for name, value in row.items() if name not in apart})
        found[-1][row["reading"].replace(" ", "_")] = {name: row[name] for name in of_reading}
    return found


def _asked(condition: Condition) -> str:
    bounds = " and ".join(f"{bound:g}" for bound in _bounds(condition) if bound is not None)
    return f"{condition.side} {bounds}"


def _reading(conditions: dict[str, Condition], unless: str) -> dict:
    """A reading of a claim. `measured` is the first condition's quantity; `conditions` has them
    all with their bounds, and whether each holds on its whole interval (None: neither it nor its
    contrary does)."""
    numbers = {
        name: _number(condition)
        | {"must be": _asked(condition), "holds": HOLDS[_judge_one(condition).verdict]}
        for name, condition in conditions.items()
    }
    found = Verdict(INCONCLUSIVE, unless) if unless else judge(conditions)
    first = next(iter(numbers.values()))
    return {
        "verdict": found.verdict,
        "reason": found.reason,
        "criterion": "; ".join(f"{name} {number['must be']}" for name, number in numbers.items()),
        "measured": first["value"],
        "ci95": first["ci95"],
        "conditions": numbers,
    }
