"""A claim is a row: what it says, which runs it needs, and the conditions that decide it.

    CLAIM = Claim(
        "C6",
        "with the {code} code, linear decodability falls with depth",
        figure="Fig 2c, d",
        each={"code": ("bump", "ramp")},
        runs={"net": "{code}_cnn"},
        as_stated=(
            Condition("slope", lambda e: slope(e.net.late.layers("probe.ood_r2")), below=0),
        ),
    )

A claim has two readings: *as stated*, its sentence in the plainest operational form or the paper's
own measure, and *stricter*, with alternatives and controls excluded. A reading is `reproduced` if
every condition holds on its whole 95% interval, `contradicted` if some condition fails on its whole
interval, and `inconclusive` otherwise. It is also inconclusive if the network did not learn what
it was shown (`Claim.trained` below `Claim.trained_at`). Criteria are tried on known answers before
they judge a network (`calibration`, docs/findings/criteria.md).

A quantity is

    (S,), (S, C)    one value per seed, or per seed and late checkpoint
    a number        a constant
    {value, ci95}   a statistic that is no mean over seeds. It may also say why nothing can be
                    concluded from it, `undecided_because`.

Training ends at a constant rate, so its end is a draw too: of a seed's late checkpoints the median
counts.

A reading may be inconclusive because an interval crosses its bound. If it would be decided once one
seed is left out, its reason says so: one seed decides. Every such seed is named. The reading stays
inconclusive.
"""

import fnmatch
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from compgen_jax.metrics import evaluation, text
from compgen_jax.statistics import geometric_mean_with_interval, mean_with_interval, reaching

REPRODUCED, CONTRADICTED, INCONCLUSIVE = "reproduced", "contradicted", "inconclusive"
HOLDS = {REPRODUCED: True, CONTRADICTED: False, INCONCLUSIVE: None}  # of one condition
READINGS = ("as_stated", "stricter")
# Seeds that agree to the cell show Student's t no spread, so the interval of a share reaches at
# least this many cells to either side of its mean. It is the least number of half cells with which
# simulated intervals of shares that are 1 in most seeds cover their mean in 93% of samples
# (docs/findings/criteria.md).
LEAST_CELLS = 1.5
TINY = 1e-12  # a smaller ratio counts as this
TRAINED = 0.95  # accuracy on what training showed, below which nothing is concluded
NOT_TRAINED, NOT_RUN = "not trained", "not run"  # how reasons begin that say nothing of a network
CROSSES, ONE_SEED = "interval crosses the bound", "one seed decides"


class Condition(NamedTuple):
    """One condition of a reading: `quantity` lies above a bound, below one, or between both.

    name: says what is measured; `{code}` and other fields of the claim are filled in.
    quantity: what is measured (see above), or evidence -> that.
    cells: of how many cells the quantity is a share, or a difference of two shares, or evidence ->
        that; see `LEAST_CELLS`.
    least: the least value of such a quantity: 0 for a share, -1 for a difference. No interval
        leaves `least` to 1.
    ratio: whether mean and interval are those of the logarithm (a geometric mean).
    """

    name: str
    quantity: Any
    above: float | None = None
    below: float | None = None
    cells: Any = None
    least: float = 0.0
    ratio: bool = False

    @property
    def bounds(self) -> str:
        """'above 0.5', 'below 1' or 'between 0.5 and 2'."""
        if self.above is not None and self.below is not None:
            return f"between {self.above:g} and {self.below:g}"
        return f"below {self.below:g}" if self.above is None else f"above {self.above:g}"


class Reading(NamedTuple):
    """A reading with a training gate of its own, as where it is judged by another run.

    conditions: as in `Claim.as_stated`.  trained, trained_name: as there.
    """

    conditions: tuple | Callable
    trained: Callable | None
    trained_name: str


def first_exact_id(evidence):
    """(S, C) exact accuracy on ID cells of the first run that the claim names."""
    return exact_id(evidence.first.late.cells)


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim as a row.

    name: such as 'C6'.  statement: the sentence; fields of `each` are filled in ('{code}').
    figure: of the paper.  each: values by field; the claim is judged for every combination of them.
        Or the combinations themselves, as a tuple of dicts.
    runs: argument -> name of a run. Fields are filled in; a name that ends in '?' is optional; one
        with a '*' stands for the list of all runs that match. A claim without its required runs is
        not judged. A quantity that asks for a missing optional run is undecided. A function takes
        all runs by name, and the fields, and gives what stands for the run. Any other
        value stands for itself, such as numbers of constructed networks.
    when: evidence -> whether its runs are enough to judge the claim at all.
    as_stated, stricter: a condition or several, or a function evidence -> conditions, or a
        `Reading`. `stricter` is the same as `as_stated` unless given.
    details: further numbers, which decide nothing: name -> quantity (a function of the evidence or
        what it would give), or a function evidence -> such a dict.
    code: the column `code` of claims.json, or evidence -> that. What follows a comma is a setting:
        'bump, upright' is the claim on 'bump' at another setting of what the paper leaves open.
    trained: evidence -> (S,) or (S, C), how well what training showed was learnt; None if nothing
        is trained. Nothing is concluded if its mean is below `trained_at`. `trained_name` says what
        it is.
    undecided_because: evidence -> why nothing can be concluded, or ''.
    objection: the strongest objection to the verdict, and what answers it, for
        docs/findings/claims.md.
    changed: which criterion was changed after a verdict of it was known, and how; '' for none.
    """

    name: str
    statement: str
    as_stated: Condition | tuple | Callable | Reading
    stricter: Condition | tuple | Callable | Reading = ()
    figure: str = ""
    runs: dict = field(default_factory=dict)
    when: Callable = lambda evidence: True
    each: dict | tuple = field(default_factory=dict)
    details: dict | Callable = field(default_factory=dict)
    code: str | Callable = "{code}"
    trained: Callable | None = first_exact_id
    trained_name: str = "exact accuracy ID"
    trained_at: float = TRAINED
    undecided_because: Callable = lambda evidence: ""
    objection: str = ""
    changed: str = ""

    def __post_init__(self):
        both = self.runs.keys() & {name for fields in _combinations(self) for name in fields}
        if both:
            raise ValueError(f"{self.name}: {', '.join(both)}: is a run and a field of `each`")


class Undecided(LookupError):
    """Raised by a quantity from which nothing can be concluded; the message says why."""


class Evidence:
    """What a claim is judged by: its runs and the fields of `each`, as attributes. `names` has the
    names of runs by argument.

    Raises Undecided for the attribute of an optional run that is missing.
    """

    def __init__(self, runs: dict[str, Any], fields: dict | None = None, names=None):
        self.runs, self.fields, self.names, self.once = runs, fields or {}, names or {}, {}

    def __getattr__(self, name):
        if name in self.fields:
            return self.fields[name]
        if name not in self.runs:
            raise AttributeError(f"the claim names no run {name!r}; it has {', '.join(self.runs)}")
        if self.runs[name] is None:
            raise Undecided(f"{NOT_RUN}: {self.names.get(name, name).rstrip('?')}")
        return self.runs[name]

    def has(self, name: str) -> bool:
        return self.runs.get(name) is not None

    @property
    def first(self):
        """The first run that the claim names; of a list of runs its first."""
        found = next(iter(self.runs.values()))
        return found[0] if isinstance(found, list) else found


def once(function: Callable) -> Callable:
    """function(evidence), computed once for each evidence."""

    def cached(evidence):
        if function not in evidence.once:
            evidence.once[function] = function(evidence)
        return evidence.once[function]

    return cached


# --- which runs a claim is judged by -----------------------------------------------------------


def judge_all(claims, runs: dict[str, Any]) -> list[dict]:
    """The judged rows of all claims whose required runs are among `runs`, a dict by name."""
    return [judge(claim, evidence) for claim in claims for evidence in evidences(claim, runs)]


def evidences(claim: Claim, runs: dict[str, Any]) -> list[Evidence]:
    """One for every combination of the fields of `each` whose required runs are there."""
    found = (evidence_of(claim, fields, runs) for fields in _combinations(claim))
    return [evidence for evidence in found if evidence]


def evidence_of(claim: Claim, fields: dict, runs: dict[str, Any]) -> Evidence | None:
    """What the claim is judged by for one combination of its fields; None without required runs."""
    optional = {argument for argument, name in claim.runs.items() if str(name).endswith("?")}
    named = {argument: _filled(name, fields) for argument, name in claim.runs.items()}
    chosen = {argument: _choose(name, runs, fields) for argument, name in named.items()}
    evidence = Evidence(chosen, fields, named)
    whole = all(chosen[argument] for argument in chosen.keys() - optional)
    return evidence if whole and claim.when(evidence) else None


def possible(claim: Claim) -> list[tuple[str, str, dict]]:
    """(name, statement, criterion by reading) for every combination of the claim's fields. Readings
    whose conditions depend on the runs have none."""
    found = []
    for fields in _combinations(claim):
        criteria = {}
        for name in READINGS:
            reading = getattr(claim, name) or claim.as_stated
            conditions = reading.conditions if isinstance(reading, Reading) else reading
            if not callable(conditions):
                criteria[name] = _criterion(_several(conditions), fields)
        found.append((claim.name, claim.statement.format(**fields), criteria))
    return found


def _combinations(claim: Claim) -> tuple[dict, ...]:
    """The values of the fields, for every time that the claim is judged."""
    if isinstance(claim.each, tuple):
        return claim.each
    values = itertools.product(*claim.each.values())
    return tuple(dict(zip(claim.each, one, strict=True)) for one in values)


def _filled(name, fields: dict):
    """The name of a run with the fields filled in; what is no name as it is."""
    return name.format(**fields).rstrip("?") if isinstance(name, str) else name


def _choose(name, runs: dict[str, Any], fields: dict):
    if callable(name):
        return name(runs, **fields)
    if not isinstance(name, str):
        return name
    if "*" in name:
        return [run for each, run in runs.items() if fnmatch.fnmatchcase(each, name)]
    return runs.get(name)


# --- judging -----------------------------------------------------------------------------------


def judge(claim: Claim, evidence: Evidence) -> dict:
    """A judged claim: name, code, statement, figure, seeds, names of runs, both readings and
    details.

    A reading has its verdict, the reason if it is inconclusive, the criterion in words, the first
    condition's value and interval, and all conditions with their values, by seed as well where they
    are means over seeds, and bounds.
    """
    fields, seeds = evidence.fields, _seeds(evidence)
    numbers, readings = {}, {}
    for name in READINGS:
        readings[name], gate = judge_reading(claim, evidence, name)
        numbers |= gate
    details = claim.details(evidence) if callable(claim.details) else claim.details
    numbers |= {
        name.format(**fields): _number(_measured(quantity, evidence, seeds), None, evidence)
        for name, quantity in details.items()
    }
    runs = [name.rstrip("?") for name in evidence.names.values() if isinstance(name, str)]
    return heading(claim, evidence) | {
        "seeds": seeds,
        "runs": runs,
        **readings,
        "details": numbers,
    }


def heading(claim: Claim, evidence: Evidence) -> dict:
    """Name, code, statement and figure of a row."""
    fields = evidence.fields
    code = claim.code(evidence) if callable(claim.code) else claim.code
    return {
        "claim": claim.name,
        "code": code if callable(claim.code) else code.format(**{"code": ""} | fields),
        "statement": claim.statement.format(**fields),
        "figure": claim.figure,
    }


def judge_reading(claim: Claim, evidence: Evidence, name: str) -> tuple[dict, dict]:
    """One of the `READINGS` of a claim, as in `judge`; and by its name the number that says how
    well training was learnt, nothing if nothing is trained."""
    seeds, gate = _seeds(evidence), {}
    reading = getattr(claim, name) or claim.as_stated
    if not isinstance(reading, Reading):
        reading = Reading(reading, claim.trained, claim.trained_name)
    because = claim.undecided_because(evidence)
    if reading.trained is not None:
        trained = _measured(reading.trained, evidence, seeds)
        number = gate[reading.trained_name] = _number(trained, None, evidence)
        because = because or _not_trained(reading.trained_name, number, claim.trained_at)
    return _judged(reading.conditions, evidence, seeds, because), gate


def _seeds(evidence: Evidence) -> list:
    return list(evidence.first.seeds)


def _not_trained(name: str, number: dict, least: float) -> str:
    """Why nothing is concluded from a network that did not learn what it was shown, or ''."""
    if number["value"] >= least:
        return ""
    shown = f"{NOT_TRAINED}: {name} {text.number(number['value'])}, {least:g} asked"
    return number.get("undecided_because", shown)


def _judged(conditions, evidence: Evidence, seeds, because: str) -> dict:
    conditions = _several(_of(evidence, conditions))
    names = [condition.name.format(**evidence.fields) for condition in conditions]
    measured = [_measured(condition.quantity, evidence, seeds) for condition in conditions]
    found = [_number(*pair, evidence) for pair in zip(measured, conditions, strict=True)]
    decided = [decide(*pair) for pair in zip(conditions, found, strict=True)]
    numbers = {
        name: number
        | ({} if isinstance(values, dict) else {"per_seed": np.asarray(values, float).tolist()})
        | {"must be": condition.bounds, "holds": HOLDS[verdict]}
        for name, number, values, condition, (verdict, _) in zip(
            names, found, measured, conditions, decided, strict=True
        )
    }
    verdict, reason = (INCONCLUSIVE, because) if because else _together(decided, names)
    if reason.startswith(CROSSES):
        decides = _one_seed(conditions, measured, names, evidence, seeds)
        reason = f"{decides} ({reason})" if decides else reason
    first = next(iter(numbers.values()))
    return {
        "verdict": verdict,
        "reason": reason,
        "criterion": _criterion(conditions, evidence.fields),
        "measured": first["value"],
        "ci95": first["ci95"],
        "conditions": numbers,
    }


def _one_seed(conditions, measured, names, evidence: Evidence, seeds) -> str:
    """Why one seed decides: without it an inconclusive reading would be reproduced or contradicted.
    Every such seed is named. '' if no single seed does. Numbers that are not one per seed stay as
    they are."""
    without = {}  # verdict -> the seeds without which it is reached
    for index, seed in enumerate(seeds if len(seeds) > 2 else ()):
        others = [
            np.delete(values, index) if np.shape(values) == (len(seeds),) else values
            for values in measured
        ]
        found = [_number(*pair, evidence) for pair in zip(others, conditions, strict=True)]
        decided = [decide(*pair) for pair in zip(conditions, found, strict=True)]
        verdict, _ = _together(decided, names)
        if verdict != INCONCLUSIVE:
            without.setdefault(verdict, []).append(f"seed {seed}")
    said = [f"{verdict} without {' or '.join(named)}" for verdict, named in without.items()]
    return f"{ONE_SEED}: {', '.join(said)}" if said else ""


def _several(conditions) -> tuple[Condition, ...]:
    return (conditions,) if isinstance(conditions, Condition) else conditions


def _criterion(conditions: tuple[Condition, ...], fields: dict) -> str:
    """'exact accuracy OOD below 0.5; ...'."""
    return "; ".join(f"{one.name.format(**fields)} {one.bounds}" for one in conditions)


def _together(decided: list[tuple[str, str]], names: list[str]) -> tuple[str, str]:
    """Verdict and reason of conditions that must all hold."""
    for wanted in (CONTRADICTED, INCONCLUSIVE):
        for name, (verdict, reason) in zip(names, decided, strict=True):
            if verdict == wanted:
                return verdict, reason and f"{reason}: {name}"
    return REPRODUCED, ""


def decide(condition: Condition, number: dict) -> tuple[str, str]:
    """(verdict, reason) of one condition, given its number with interval."""
    if number.get("undecided_because"):
        return INCONCLUSIVE, number["undecided_because"]
    low, high = number["ci95"]
    above, below = condition.above, condition.below
    if (above is None or low > above) and (below is None or high < below):
        return REPRODUCED, ""
    if (above is not None and high <= above) or (below is not None and low >= below):
        return CONTRADICTED, ""
    if np.isnan([low, high]).any():
        return INCONCLUSIVE, "no interval" if np.isfinite(number["value"]) else "not known"
    return INCONCLUSIVE, CROSSES


def _measured(quantity, evidence: Evidence, seeds):
    """A quantity's value for every seed, (S,), or {'value', 'ci95'} if it is no mean over seeds."""
    try:
        measured = _of(evidence, quantity)
    except Undecided as why:
        return {"value": np.nan, "ci95": [np.nan, np.nan], "undecided_because": str(why)}
    if isinstance(measured, dict):
        return measured | {"ci95": list(measured["ci95"])}
    if np.ndim(measured) == 0:
        measured = np.full(len(seeds), measured)
    return median_over_checkpoints(measured)


def _number(per_seed, condition: Condition | None, evidence: Evidence) -> dict:
    """{'value', 'ci95'} of what `_measured` gives."""
    if isinstance(per_seed, dict):
        return per_seed
    if condition is not None and condition.ratio:
        return geometric_mean_with_interval(np.maximum(per_seed, TINY))
    number = mean_with_interval(per_seed)
    if condition is not None and condition.cells is not None:
        return of_share(number, _of(evidence, condition.cells), condition.least)
    return number


def of_share(number: dict, cells, least: float = 0.0) -> dict:
    """{'value', 'ci95'} of a share of so many cells; see `LEAST_CELLS`. No end of the interval is
    below `least` or above 1."""
    low, high = reaching(number, LEAST_CELLS / max(cells, 1))["ci95"]
    return number | {"ci95": [float(max(low, least)), float(min(high, 1.0))]}


def _of(evidence: Evidence, quantity):
    return quantity(evidence) if callable(quantity) else quantity


def median_over_checkpoints(values):
    """(S,): for every seed the median over its late checkpoints, of values (S, C). Those that are
    one per seed, (S,), stay as they are."""
    return np.median(np.reshape(values, (len(values), -1)), axis=1)


def exact_id(cells: evaluation.CellResults):
    """(...) exact accuracy of every network on ID cells."""
    return evaluation.mean_score(cells, "exact_accuracy", ~cells.held_out)


# --- claims.json -------------------------------------------------------------------------------

# columns that each reading has; 'settings' where the claim was judged at other settings
OF_READING = ("verdict", "reason", "criterion", "measured", "ci95", "conditions", "settings")


def rows(judged: list[dict], scale: str = "") -> list[dict]:
    """The rows of claims.json: one for each reading of each claim; scale 'quick' or 'paper'."""
    return [
        {name: value for name, value in one.items() if name not in READINGS}
        | {"reading": reading.replace("_", " "), "scale": scale}
        | one[reading]
        for one in judged
        for reading in READINGS
    ]


def from_rows(rows: list[dict]) -> list[dict]:
    """The inverse of `rows`."""
    found = []
    for row in rows:
        if row["reading"] == READINGS[0].replace("_", " "):
            apart = *OF_READING, "reading", "scale"
            found.append({name: value for name, value in row.items() if name not in apart})
        reading = {name: row[name] for name in OF_READING if name in row}
        found[-1][row["reading"].replace(" ", "_")] = reading
    return found
