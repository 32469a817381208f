"""Conditions, verdicts and the rows of claims.json.

Each criterion was fixed before its result was seen (C3's was once revised: see there). A
criterion is a list of conditions on means over seeds, or on another number with an interval over
them; the verdict is `reproduced` if every condition holds on the whole 95% interval,
`contradicted` if some condition fails on the whole of it, and `inconclusive` otherwise, as it is
when a network did not learn what it was shown (mean accuracy on it, exact accuracy ID if a claim
names no other, below `TRAINED`).
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.analysis import evaluation
from compgen_jax.analysis.evaluation import CellResults
from compgen_jax.analysis.statistics import mean_with_interval

REPRODUCED, CONTRADICTED, INCONCLUSIVE = "reproduced", "contradicted", "inconclusive"
TRAINED = 0.95  # accuracy on what training showed, below which nothing is concluded


class Condition(NamedTuple):
    """What is measured must lie on `side` ('above' or 'below') of `bound`: the mean of one value
    per seed, or what has its interval already (see `with_interval`)."""

    measured: np.ndarray | dict
    side: str
    bound: float


def judge(conditions: list[Condition]) -> str:
    """The verdict of conditions that must all hold."""
    verdicts = [_judge_one(condition) for condition in conditions]
    for verdict in (CONTRADICTED, INCONCLUSIVE):
        if verdict in verdicts:
            return verdict
    return REPRODUCED


def _judge_one(condition: Condition) -> str:
    low, high = with_interval(condition.measured)["ci95"]
    if condition.side == "below":
        low, high = -high, -low
    bound = condition.bound if condition.side == "above" else -condition.bound
    return REPRODUCED if low > bound else CONTRADICTED if high <= bound else INCONCLUSIVE


def with_interval(measured) -> dict:
    """{'value', 'ci95': [low, high]}: the mean of one value per seed, or, of a statistic that is
    no mean over seeds, the one given. An interval that is not known is NaN: then nothing is
    concluded."""
    if isinstance(measured, dict):
        return {"value": measured["value"], "ci95": list(measured["ci95"])}
    return mean_with_interval(measured)


def exact_id(results: CellResults):
    """(T,) exact accuracy of every seed on seen combinations."""
    return evaluation.mean_score(results, "exact_accuracy", ~results.held_out)


def entry(
    claim,
    code,
    seeds,
    trained_T,
    *,
    figure,
    statement,
    conditions,
    details,
    verdict=None,
    trained_name="exact accuracy ID",
) -> dict:
    """A row of claims.json. `measured` is the first condition's quantity; `conditions` has them
    all with their bounds, `details` what else a reader would ask, measured as `with_interval`
    takes it. `verdict` overrides that of all conditions together; `trained_name` says what
    `trained_T` is."""
    numbers = {
        name: with_interval(measured) | {"must be": f"{side} {bound:g}"}
        for name, (measured, side, bound) in conditions.items()
    }
    verdict = verdict or judge(list(conditions.values()))
    first = next(iter(numbers.values()))
    return {
        "claim": claim,
        "code": code,
        "statement": statement,
        "figure": figure,
        "criterion": "; ".join(f"{name} {number['must be']}" for name, number in numbers.items()),
        "measured": first["value"],
        "ci95": first["ci95"],
        "seeds": list(seeds),
        "verdict": verdict if np.mean(trained_T) >= TRAINED else INCONCLUSIVE,
        "conditions": numbers,
        "details": {
            name: with_interval(measured)
            for name, measured in ({trained_name: trained_T} | details).items()
        },
    }
