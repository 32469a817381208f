"""A claim is a function of runs. Its docstring is its sentence, and what it yields decides it.

    CASES = [dict(code=code) for code in ("bump", "ramp")]

    @claim("C6", figure="Fig 2c, d", cases=CASES, runs={"net": "{code}_cnn"})
    def decodability_falls(net):
        '''With the {code} code, linear decodability falls over the layers.'''
        probe = net.late.layers("probe.ood_r2")
        yield learnt(exact_id(net.late.cells))
        yield below(0, probe[..., -2] - probe[..., 0], "probe R², last hidden layer minus code")
        yield note("probe R², code", probe[..., 0])

A claim is `reproduced` if every condition holds on its whole 95% interval, `contradicted` if one
fails on its whole interval, and `inconclusive` otherwise, or if the network did not learn its
training set (`learnt`). Nothing else changes a verdict: the row of claims.json says beside it which
network was judged, at which setting and from which seeds.

Values are (S,), one for each seed; (S, C), by seed and late checkpoint, of which each seed's median
counts; a constant; or {'value', 'ci95'}, a statistic that is no mean over seeds (`unknown`).
"""

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from compgen_jax.metrics import evaluation, text
from compgen_jax.statistics import (
    geometric_mean_with_interval,
    mean_with_interval,
    of_share,
    share_with_interval,
)

REPRODUCED, CONTRADICTED, INCONCLUSIVE = "reproduced", "contradicted", "inconclusive"
HOLDS = {REPRODUCED: True, CONTRADICTED: False, INCONCLUSIVE: None}  # of one condition
TINY = 1e-12  # a smaller ratio counts as this
TRAINED = 0.95  # accuracy on what training showed, below which nothing is concluded
NOT_TRAINED = "not trained"  # how a reason begins that says nothing of the paper
CROSSES = "interval crosses the bound"
NEAR = 0.1  # of an interval's width, between its end and a bound
NUMBER = r"-?[\d.]+(?:e[+-]?\d+)?"
BASE, FRESH = "base", "fresh seeds"  # settings: of the presets, and of seeds not looked at before


class Condition(NamedTuple):
    """`values` lie above a bound, below one, or between both.

    cells: of how many cells the values are shares, or differences of shares (see `of_share`).
    least: the least such value, 0 or for a difference -1. ratio: whether mean and interval are
    those of the logarithm. counted: whether values say which seeds do something. against: what the
    whole interval must lie beyond to contradict, by default the bound.
    """

    name: str
    values: Any
    above: float | None = None
    below: float | None = None
    cells: float = 0
    least: float = 0.0
    ratio: bool = False
    counted: bool = False
    against: float | None = None

    @property
    def bounds(self) -> str:
        """'above 0.5', 'below 1' or 'between 0.5 and 2'."""
        if self.above is not None and self.below is not None:
            return f"between {self.above:g} and {self.below:g}"
        return f"below {self.below:g}" if self.above is None else f"above {self.above:g}"


class Note(NamedTuple):
    """A further number. If its mean is below `gate`, nothing is concluded; without a gate it
    decides nothing."""

    name: str
    values: Any
    gate: float | None = None


note = Note


def above(bound: float, values, name: str, **how) -> Condition:
    """The condition that values lie above a bound; `how` are further fields of `Condition`."""
    return Condition(name, values, above=bound, **how)


def below(bound: float, values, name: str, **how) -> Condition:
    """The condition that values lie below a bound."""
    return Condition(name, values, below=bound, **how)


def between(low: float, high: float, values, name: str, **how) -> Condition:
    """The condition that values lie between two bounds."""
    return Condition(name, values, low, high, **how)


def most_seeds(does, name: str, above: float = 0.5) -> Condition:
    """The condition that the share of seeds that do something lies above a bound, with its exact
    binomial interval. A seed does it if it does so at more than half of its late checkpoints."""
    return Condition(name, np.asarray(does, float), above=above, counted=True)


def learnt(values, name: str = "exact accuracy ID", at: float = TRAINED) -> Note:
    """The claim is inconclusive, *not trained*, if the mean of `values` is below `at`."""
    return Note(name, values, at)


def unknown(reason: str) -> dict:
    """The values of a condition from which nothing can be concluded."""
    return {"value": np.nan, "ci95": [np.nan, np.nan], "undecided_because": reason}


def exact_id(cells: evaluation.CellResults):
    """Exact accuracy of every network on ID cells."""
    return evaluation.mean_score(cells, "exact_accuracy", ~cells.held_out)


@dataclass(frozen=True, eq=False)
class Claim:
    """A sentence with its criterion; made by `claim`.

    function: runs by argument, and those fields of the case that it names -> conditions and notes.
    cases: fields by which names of runs and the sentence are filled in. The field `case`, or else
    all values but those of `NO_LABEL`, is the case of the row; `setting` is its setting. Networks
    of a case with `as_trained` are judged whatever they learnt. runs: argument -> name of a run;
    one with a '*' stands for the list of all runs that match. network: whose the runs are at the
    papers' size, unless the case says so. after: whether the criterion was written when networks of
    its kind had been looked at. sentence: by default the docstring of the function.
    """

    name: str
    function: Callable
    figure: str = ""
    cases: tuple[dict, ...] = ({},)
    runs: dict[str, str] | None = None
    network: str = "text"
    after: bool = False
    sentence: str = ""

    def statement(self, case: dict) -> str:
        sentence = self.sentence or inspect.getdoc(self.function)
        return " ".join(sentence.split()).removesuffix(".").format(**case)

    def variant(self, name: str, sentence: str, cases=None, after=None, **fields):
        """A claim by the same function on other runs or cases, or with more fields of each case."""
        others = {key: fields.pop(key) for key in ("runs", "figure") if key in fields}
        after = self.after if after is None else after
        cases = tuple(case | fields for case in cases or self.cases)
        return replace(self, name=name, sentence=sentence, cases=cases, after=after, **others)

    def named_runs(self, case: dict) -> dict[str, str]:
        return {argument: name.format(**case) for argument, name in (self.runs or {}).items()}


def claim(name: str, *, runs: dict, cases: Iterable[dict] = ({},), **fields) -> Callable:
    """Makes a `Claim` of a function; `fields` are `figure`, `network` and `after`."""
    return lambda function: Claim(name, function, runs=runs, cases=tuple(cases), **fields)


NO_LABEL = "setting", "network", "as_trained"  # fields of a case that do not name it


def label(case: dict) -> str:
    """'bump, depth 2'."""
    values = [str(value) for name, value in case.items() if name not in NO_LABEL and value != ""]
    return case.get("case", ", ".join(values))


def judge(
    claim: Claim, runs: dict, case: dict | None = None, scale: str = "", setting: str = ""
) -> dict | None:
    """The row of a claim, judged by runs by argument; None if it yields no condition. `network` is
    'figure' for the networks of the paper's figure, 'text' for others of the paper's text, 'longer'
    for these trained until they are right, else 'ours'."""
    case, first = case or {}, next(iter(runs.values()))
    seeds = list((first[0] if isinstance(first, list) else first).seeds)
    fields = (case.keys() & inspect.signature(claim.function).parameters.keys()) - runs.keys()
    yielded = list(claim.function(**runs, **{name: case[name] for name in fields}))
    conditions, notes, decided, untrained = {}, {}, [], ""
    for part in yielded:
        number = _number(part, len(seeds))
        if isinstance(part, Condition):
            verdict, reason = _decide(part, number)
            decided.append((verdict, reason and f"{reason}: {part.name}"))
            conditions[part.name] = number | {"must be": part.bounds, "holds": HOLDS[verdict]}
        else:
            number.pop("per_seed", None)
            notes[part.name] = number
            if part.gate is not None and not (untrained or number["value"] >= part.gate):
                value = text.number(number["value"])
                reason = f"{NOT_TRAINED}: {part.name} {value}, {part.gate:g} needed"
                untrained = number.get("undecided_because", reason)
    if not conditions:
        return None
    verdict, reason = min(decided, key=itemgetter(0))  # verdicts stand in alphabetical order
    if untrained and not case.get("as_trained"):
        verdict, reason = INCONCLUSIVE, untrained
    holding = [name for name, number in conditions.items() if number["holds"]]
    if verdict == CONTRADICTED and holding:
        reason = f"holds: {', '.join(holding)}"
    of_case = case.get("setting", BASE)
    setting = setting or of_case
    network = "ours"
    if scale == "paper" and setting == of_case:
        network = case.get("network", claim.network)
    criterion = [f"{name} {number['must be']}" for name, number in conditions.items()]
    return {
        "claim": claim.name,
        "case": label(case),
        "scale": scale,
        "setting": setting,
        "network": network,
        "statement": claim.statement(case),
        "figure": claim.figure,
        "seeds": seeds,
        "runs": list(claim.named_runs(case).values()),
        "verdict": verdict,
        "reason": reason,
        "criterion": "; ".join(criterion),
        "after": claim.after,
        "conditions": conditions,
        "notes": notes,
    }


def near_bounds(row: dict) -> list[str]:
    """The conditions of a row that decide its verdict and whose interval ends within `NEAR` of its
    width from a bound: rounding on another machine may change that verdict."""
    names = []
    for name, number in row["conditions"].items():
        ends = np.array(number["ci95"], float)  # None is NaN
        bounds = np.array(re.findall(NUMBER, number["must be"]), float)
        distance = np.abs(bounds[:, None] - ends).min()
        if number["holds"] == HOLDS[row["verdict"]] and distance <= NEAR * np.ptp(ends) < np.inf:
            names.append(name)
    return [] if row["reason"].startswith(NOT_TRAINED) else names


def median_over_checkpoints(values):
    """(S,) of values (S,) or, by seed and late checkpoint, (S, C)."""
    return np.median(values, axis=1) if np.ndim(values) == 2 else np.asarray(values)


def _number(part: Condition | Note, count: int) -> dict:
    """{'value', 'ci95', 'per_seed'} over so many seeds; a statistic is as it was given."""
    if isinstance(part.values, dict):
        return part.values | {"ci95": list(part.values["ci95"])}
    values = np.asarray(part.values)
    is_condition = isinstance(part, Condition)
    counted = part.counted if is_condition else values.dtype == bool and part.gate is None
    values = values.astype(np.float64)
    by_seed = np.full(count, values) if values.ndim == 0 else median_over_checkpoints(values)
    if counted:
        by_seed = (by_seed > 0.5).astype(float)
        number = share_with_interval(by_seed)
    elif is_condition and part.ratio:
        number = geometric_mean_with_interval(np.maximum(by_seed, TINY))
    else:
        number = mean_with_interval(by_seed, "" if is_condition else part.name)
    if is_condition and part.cells and not (counted or part.ratio):
        number = of_share(number, part.cells, part.least)
    return number | {"per_seed": by_seed.tolist()}


def _decide(condition: Condition, number: dict) -> tuple[str, str]:
    """(verdict, reason) of one condition, given its number with interval."""
    if number.get("undecided_because"):
        return INCONCLUSIVE, number["undecided_because"]
    low, high = number["ci95"]
    least, most = condition.above, condition.below
    if (least is None or low > least) and (most is None or high < most):
        return REPRODUCED, ""
    if condition.against is not None:
        least, most = (bound if bound is None else condition.against for bound in (least, most))
    if (least is not None and high <= least) or (most is not None and low >= most):
        return CONTRADICTED, ""
    if np.isnan([low, high]).any():
        return INCONCLUSIVE, "no interval" if np.isfinite(number["value"]) else "not known"
    return INCONCLUSIVE, CROSSES
