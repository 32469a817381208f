"""A claim is a function of runs. Its docstring is its sentence, and what it yields decides it.

    CASES = [dict(code=code) for code in ("bump", "ramp")]

    @claim("C6", figure="Fig 2c, d", cases=CASES, runs={"net": "{code}_cnn"})
    def decodability_falls(net):
        '''With the {code} code, linear decodability falls over the layers.'''
        probe = net.late.layers("probe.ood_r2")
        yield learnt(exact_id(net.late.cells))
        yield below(0, probe[..., -2] - probe[..., 0], "probe R², last hidden layer minus code")
        yield note("probe R², code", probe[..., 0])

A claim is `reproduced` if every condition holds on its whole 95% interval, `contradicted` if some
condition fails on its whole interval, and `inconclusive` otherwise, with a reason. It is also
inconclusive if the network did not learn what it was shown (`learnt`). What excludes another
explanation is a claim of its own, named after what it excludes: `C6.composer`. A claim is judged
only if all of its runs are there.

Values are (S,), one for each seed; (S, C), by seed and late checkpoint; a constant; or
{'value', 'ci95'}, a statistic that is no mean over seeds, or `unknown`. Training ends at a constant
rate, so its end is a draw too: the median over a seed's late checkpoints counts. Where networks do
something or not at all, the number of seeds that do it is judged (`most_seeds`).

*Contradicted* is a strong word. A sentence of a paper is contradicted only if the networks of its
own figure were judged (`Claim.own`), and only if every setting gives it (`with_settings`).

If a claim would be decided once one seed is left out, its reason says so and names every such seed.

A row of claims.json is found by (claim, case, scale, setting). The setting `base` is the claim as
it stands; others change what a paper leaves open (`with_settings`). At `FRESH` seeds, which nobody
has looked at, a verdict is confirmed once, while its criterion is the same
(`criteria_source.fingerprint`).

Criteria are tried on known answers before they judge a network (`Matrix`).
"""

import fnmatch
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from compgen_jax.criteria_source import fingerprint
from compgen_jax.metrics import evaluation, text
from compgen_jax.statistics import (
    geometric_mean_with_interval,
    mean_with_interval,
    share_with_interval,
)

REPRODUCED, CONTRADICTED, INCONCLUSIVE = "reproduced", "contradicted", "inconclusive"
HOLDS = {REPRODUCED: True, CONTRADICTED: False, INCONCLUSIVE: None}  # of one condition
# Seeds that agree to the cell show Student's t no spread, so the interval of a share reaches at
# least this many cells to either side of its mean. It is the least number of half cells with which
# simulated intervals of shares that are 1 in most seeds cover their mean in 93% of samples
# (docs/findings/criteria.md).
LEAST_CELLS = 1.5
TINY = 1e-12  # a smaller ratio counts as this
TRAINED = 0.95  # accuracy on what training showed, below which nothing is concluded
NOT_TRAINED = "not trained"  # how a reason begins that says nothing of the paper
CROSSES, ONE_SEED = "interval crosses the bound", "one seed decides"
BASE, FRESH = "base", "fresh seeds"
NOWHERE = "nowhere"  # the setting of a figure whose own networks are not among the runs
OTHER_NETWORK = "the figure's network was not run"
KEY = ("claim", "case", "scale", "setting")


# --- what a claim yields -----------------------------------------------------------------------


class Condition(NamedTuple):
    """`values` lie above a bound, below one, or between both.

    name: what is measured.  cells: of how many cells the values are shares, or differences of
    shares (see `LEAST_CELLS`), 0 for other values.  least: the least such value, 0 for a share and
    -1 for a difference; no interval leaves `least` to 1.  ratio: whether mean and interval are
    those of the logarithm.  counted: whether values say which seeds do something.  against: what
    the whole interval must lie beyond to contradict, by default the bound.
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


class Gate(NamedTuple):
    """How well training was learnt: nothing is concluded if the mean of `values` is below `at`."""

    name: str
    values: Any
    at: float


class Note(NamedTuple):
    """A further number, which decides nothing. Truth values are counted, as in a counted
    `Condition`: the number is the share of seeds with True."""

    name: str
    values: Any

    @property
    def counted(self) -> bool:
        return np.asarray(self.values).dtype == bool


note = Note


class Undecided(NamedTuple):
    """Why nothing can be concluded; '' if there is no reason."""

    reason: str


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
    binomial interval. A seed does it if it does so at more than half of its late checkpoints.

    Where outcomes are all or none, Student's t over 4 seeds covers a mean of .8 in 59% of samples.
    """
    return Condition(name, np.asarray(does, float), above=above, counted=True)


def learnt(values, name: str = "exact accuracy ID", at: float = TRAINED) -> Gate:
    """The claim is inconclusive, *not trained*, if the mean of `values` is below `at`."""
    return Gate(name, values, at)


def unknown(reason: str) -> dict:
    """The values of a condition from which nothing can be concluded."""
    return {"value": np.nan, "ci95": [np.nan, np.nan], "undecided_because": reason}


def exact_id(cells: evaluation.CellResults):
    """Exact accuracy of every network on ID cells."""
    return evaluation.mean_score(cells, "exact_accuracy", ~cells.held_out)


# --- claims and their runs ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim; see the head of this module. Made by `claim`.

    name: such as 'C6' or 'C6.composer'.  function: runs by argument, and those fields of the case
    that it names -> conditions, gates, notes and reasons.  figure: of the paper.  cases: fields by
    which names of runs and the sentence are filled in. The field `case`, or else all values but
    that of `setting`, is the case of the row; the field `setting` is its setting. Networks of a
    case with `as_trained` are judged as the paper trained them, whatever they learnt.  runs:
    argument -> name of a run. One with a '*' stands for the list of all runs that match.  own: the
    setting at which the networks of the paper's figure are judged at the papers' size, or
    `NOWHERE`; None for a sentence of ours. A case may have its own.
    """

    name: str
    function: Callable
    figure: str = ""
    cases: tuple[dict, ...] = ({},)
    runs: dict[str, str] | None = None
    own: str | None = None

    def statement(self, case: dict) -> str:
        sentence = " ".join(inspect.getdoc(self.function).split()).removesuffix(".")
        return sentence.format(**case)

    def named_runs(self, case: dict) -> dict[str, str]:
        return {argument: name.format(**case) for argument, name in self.runs.items()}


def claim(name: str, *, figure: str = "", cases: Iterable[dict] = ({},), runs: dict,
          own: str | None = None) -> Callable:  # fmt: skip
    """Makes a `Claim` of a function."""
    return lambda function: Claim(name, function, figure, tuple(cases), runs, own)


NO_LABEL = "setting", "own", "as_trained"  # fields of a case that do not name it


def label(case: dict) -> str:
    """'bump, depth 2'."""
    values = [str(v) for name, v in case.items() if name not in NO_LABEL and v != ""]
    return case.get("case", ", ".join(values))


def missing(claim: Claim, case: dict, runs: Iterable[str]) -> list[str]:
    """The names and patterns of a claim's runs that are not among `runs`."""
    names = list(runs)
    return [name for name in claim.named_runs(case).values() if not fnmatch.filter(names, name)]


def judge_all(claims, runs: dict, scale: str = "", setting: str = "", every=()) -> list[dict]:
    """The rows of all claims whose runs are among `runs`, a dict by name.

    At a `setting` of the runs, `every` has the names of all base runs, so that a claim on all runs
    of a pattern is judged only if all of them are at the setting.
    """
    rows = []
    for one in claims:
        for case in one.cases:
            names = one.named_runs(case)
            patterns = [name for name in names.values() if "*" in name]
            left = any(set(fnmatch.filter(every, name)) - runs.keys() for name in patterns)
            if missing(one, case, runs) or left:
                continue
            chosen = {
                argument: [runs[each] for each in fnmatch.filter(runs, name)]
                if "*" in name
                else runs[name]
                for argument, name in names.items()
            }
            row = judge(one, chosen, case, scale)
            if row is not None:
                rows.append(row | ({"setting": setting} if setting else {}))
    return rows


# --- judging -----------------------------------------------------------------------------------


def judge(claim: Claim, runs: dict, case: dict | None = None, scale: str = "") -> dict | None:
    """The row of a claim, judged by runs by argument; None if it yields no condition.

    `conditions` has each condition's value, interval and bounds, by seed as well where it is a mean
    over seeds, and whether it holds; `notes` has further numbers.
    """
    case, first = case or {}, next(iter(runs.values()))
    seeds = list((first[0] if isinstance(first, list) else first).seeds)
    fields = (case.keys() & inspect.signature(claim.function).parameters.keys()) - runs.keys()
    said = list(claim.function(**runs, **{name: case[name] for name in fields}))
    conditions = [each for each in said if isinstance(each, Condition)]
    if not conditions:
        return None
    because, notes = "", {}
    for each in said:
        if isinstance(each, Gate):
            notes[each.name] = _number(each, _by_seed(each.values, seeds))
            if not case.get("as_trained"):
                because = because or _not_trained(each, notes[each.name])
        elif isinstance(each, Note):
            notes[each.name] = _number(each, _by_seed(each.values, seeds, each.counted))
        elif isinstance(each, Undecided):
            because = because or each.reason
    measured = [_by_seed(each.values, seeds, each.counted) for each in conditions]
    numbers = [_number(*pair) for pair in zip(conditions, measured, strict=True)]
    verdict, reason = (INCONCLUSIVE, because) if because else _together(conditions, numbers)
    if reason.startswith(CROSSES):
        decides = _one_seed(conditions, measured, seeds)
        reason = f"{decides} ({reason})" if decides else reason
    return {
        "claim": claim.name,
        "case": label(case),
        "scale": scale,
        "setting": case.get("setting") or BASE,
        "statement": claim.statement(case),
        "figure": claim.figure,
        "own": case.get("own", claim.own),
        "source": fingerprint(claim.function, case, claim.runs or {}),
        "seeds": seeds,
        "runs": list(claim.named_runs(case).values()) if claim.runs else [],
        "verdict": verdict,
        "reason": reason,
        "criterion": "; ".join(f"{each.name} {each.bounds}" for each in conditions),
        "conditions": {
            each.name: number
            | ({} if isinstance(values, dict) else {"per_seed": values.tolist()})
            | {"must be": each.bounds, "holds": HOLDS[_decide(each, number)[0]]}
            for each, number, values in zip(conditions, numbers, measured, strict=True)
        },
        "notes": notes,
    }


def _by_seed(values, seeds, counted: bool = False):
    """(S,) the median over late checkpoints, `counted` ones 0 or 1, or {'value', 'ci95'} as it
    is."""
    if isinstance(values, dict):
        return values | {"ci95": list(values["ci95"])}
    values = np.asarray(values, np.float64)
    if values.ndim == 0:
        return np.full(len(seeds), values)
    medians = median_over_checkpoints(values)
    return (medians > 0.5).astype(float) if counted else medians


def median_over_checkpoints(values):
    """(S,) of values (S,) or, by seed and late checkpoint, (S, C)."""
    return np.median(values, axis=1) if np.ndim(values) == 2 else np.asarray(values)


def _number(said, values) -> dict:
    """{'value', 'ci95'} of what `_by_seed` gives."""
    if isinstance(values, dict):
        return values
    if getattr(said, "counted", False):
        return share_with_interval(values)
    if not isinstance(said, Condition):
        return mean_with_interval(values, said.name)
    if said.ratio:
        return geometric_mean_with_interval(np.maximum(values, TINY))
    number = mean_with_interval(values)
    return of_share(number, said.cells, said.least) if said.cells else number


def of_share(number: dict, cells: float, least: float = 0.0) -> dict:
    """{'value', 'ci95'} of a share of so many cells; see `LEAST_CELLS`. No end of the interval is
    below `least` or above 1."""
    value, (low, high), half = number["value"], number["ci95"], LEAST_CELLS / max(cells, 1)
    ends = max(min(low, value - half), least), min(max(high, value + half), 1.0)
    return number | {"ci95": [float(end) for end in ends]}


def _not_trained(gate: Gate, number: dict) -> str:
    """Why nothing is concluded from a network that did not learn what it was shown, or ''."""
    if number["value"] >= gate.at:
        return ""
    reached = f"{NOT_TRAINED}: {gate.name} {text.number(number['value'])}, {gate.at:g} asked"
    return number.get("undecided_because", reached)


def _together(conditions, numbers) -> tuple[str, str]:
    """Verdict and reason of conditions that must all hold."""
    decided = [_decide(*pair) for pair in zip(conditions, numbers, strict=True)]
    for wanted in (CONTRADICTED, INCONCLUSIVE):
        for condition, (verdict, reason) in zip(conditions, decided, strict=True):
            if verdict == wanted:
                return verdict, reason and f"{reason}: {condition.name}"
    return REPRODUCED, ""


def _decide(condition: Condition, number: dict) -> tuple[str, str]:
    """(verdict, reason) of one condition, given its number with interval."""
    if number.get("undecided_because"):
        return INCONCLUSIVE, number["undecided_because"]
    low, high = number["ci95"]
    least, most = condition.above, condition.below
    if (least is None or low > least) and (most is None or high < most):
        return REPRODUCED, ""
    least, most = (end if end is None or condition.against is None else condition.against
                   for end in (least, most))  # fmt: skip
    if (least is not None and high <= least) or (most is not None and low >= most):
        return CONTRADICTED, ""
    if np.isnan([low, high]).any():
        return INCONCLUSIVE, "no interval" if np.isfinite(number["value"]) else "not known"
    return INCONCLUSIVE, CROSSES


def _one_seed(conditions, measured, seeds) -> str:
    """Every seed without which an inconclusive claim would be decided, by the verdict it would then
    have; '' if there is none. Numbers that are not one per seed stay as they are, and those of
    the first seeds stay without a later one."""
    without = {}
    for index, seed in enumerate(seeds if len(seeds) > 2 else ()):
        left = lambda v, index=index: isinstance(v, dict) or index >= len(v)
        others = [v if left(v) else np.delete(v, index) for v in measured]
        numbers = [_number(*pair) for pair in zip(conditions, others, strict=True)]
        verdict, _ = _together(conditions, numbers)
        if verdict != INCONCLUSIVE:
            without.setdefault(verdict, []).append(f"seed {seed}")
    named = [f"{verdict} without {' or '.join(names)}" for verdict, names in without.items()]
    return f"{ONE_SEED}: {', '.join(named)}" if named else ""


# --- verdicts that survive their settings ------------------------------------------------------


def key_of(row: dict) -> tuple:
    return tuple(row[name] for name in KEY)


def of_settings(before: list[dict], added: list[dict], rows: list[dict]) -> list[dict]:
    """The rows of other settings of the claims in `rows`: those judged before by the criterion that
    the base has now, and added ones, which take the place of those of the same key. At fresh seeds
    the first verdict of a criterion stays."""
    bases = {(row["claim"], row["case"]): row for row in rows}
    base = lambda row: bases.get((row["claim"], row["case"]), {})
    field = lambda row: "source" if row["setting"] == FRESH else "criterion"
    same = lambda row: base(row) and row.get(field(row)) == base(row).get(field(row))
    kept = [row for row in before if row["setting"] != BASE and same(row)]
    new = [row | {"criterion": base(row)["criterion"]} for row in added if base(row)]
    first = [row for row in kept if row["setting"] == FRESH]
    here = {key_of(row) for row in rows}
    by_key = {key_of(row): row for row in (*kept, *new, *first)}
    return [row for key, row in by_key.items() if key not in here]


def with_settings(rows: list[dict]) -> list[dict]:
    """The rows of one scale, those of the base with what other settings say beside their verdict.

    `settings` then has the verdict and reason at the base, at how many trained settings it is the
    same, of how many, how many were not trained, and which differ. A verdict that depends on a
    setting becomes inconclusive: the base is one guess among all settings that a paper's text
    allows. *Reproduced* stands if at least half of the trained settings agree and none contradicts;
    *contradicted* if all agree and, for a sentence of a paper, if they include its figure's own
    networks (`Claim.own`), which are of the papers' size. `confirmed` is 'yes' or 'no' where the
    same criterion was judged at fresh seeds, and '' otherwise, also where the verdict is undone.
    """
    every = [at_base(row) for row in rows]
    return [_beside(row, every) if row["setting"] == BASE else _of_setting(row) for row in every]


def at_base(row: dict) -> dict:
    """A row with the verdict of its own setting alone."""
    settings = row.get("settings", {})
    own = {name: settings[name] for name in ("verdict", "reason") if settings}
    left = {name: v for name, v in row.items() if name not in ("settings", "confirmed")}
    return left | own


def _of_setting(row: dict) -> dict:
    """A setting alone does not contradict a paper, unless it is that of the figure's networks."""
    own = row.get("own")
    if row["verdict"] != CONTRADICTED or own is None or own == row["setting"]:
        return row
    return _undone(row, OTHER_NETWORK, 0, 0, 0, [])


def _undone(row: dict, reason: str, agree: int, trained: int, untrained: int, differ: list) -> dict:
    """The row with a reason, if there is one, that undoes its own verdict."""
    settings = {"verdict": row["verdict"], "reason": row["reason"], "agree": agree,
                "trained": trained, "untrained": untrained, "differ": differ}  # fmt: skip
    undone = {"verdict": INCONCLUSIVE, "reason": reason} if reason else {}
    return row | {"settings": settings} | undone


def _beside(row: dict, rows: list[dict]) -> dict:
    """The row of a base beside the rows of settings."""
    others = [other for other in rows if other["case"] == row["case"] and other["setting"] != BASE]
    same = [other for other in others if other["claim"] == row["claim"]]
    fresh = [other for other in same if other["setting"] == FRESH]
    same = [other for other in same if other["setting"] != FRESH]
    parent = [other for other in others if other["setting"] != FRESH
              and other["claim"] == row["claim"].partition(".")[0] != row["claim"]]  # fmt: skip
    trained = [other for other in same if not other["reason"].startswith(NOT_TRAINED)]
    differ = [other["setting"] for other in trained if other["verdict"] != row["verdict"]]
    against = {other["setting"] for other in trained if other["verdict"] == CONTRADICTED}
    of_figure = row.get("own") in {BASE, *(other["setting"] for other in same)}
    reason = ""
    if row["verdict"] == REPRODUCED and (against or 2 * len(differ) > len(trained)):
        reason = f"depends on {first_of([one for one in differ if one in against] or differ)}"
    elif row["verdict"] == CONTRADICTED and differ:
        reason = f"depends on {first_of(differ)}"
    elif not trained:
        reason = _beside_parent(row, parent)
    if row["verdict"] == CONTRADICTED and row.get("own") and not reason:
        reason = "" if of_figure and row["scale"] != "quick" else OTHER_NETWORK
    row = row | {"confirmed": "" if reason else _confirmed(row, fresh)}
    if not (same or reason):
        return row
    count = len(trained)
    return _undone(row, reason, count - len(differ), count, len(same) - count, differ)


def _confirmed(row: dict, fresh: list[dict]) -> str:
    """Whether fresh seeds gave the verdict of the base, by the same criterion; '' if not asked."""
    asked = [one for one in fresh if one["source"] == row.get("source")]
    if not asked or row["verdict"] == INCONCLUSIVE:
        return ""
    return "yes" if asked[0]["verdict"] == row["verdict"] else "no"


def _beside_parent(row: dict, parent: list[dict]) -> str:
    """Why settings of the claim without its dot undo a row that was asked at the base alone,
    'C4.ideal' beside 'C4'; '' if they do not. If it asks all that the other asks, it fails where
    that does. And it is not contradicted unless the other is so at every setting, as it may hold
    there."""
    asks_all = lambda other: {*other["criterion"].split("; ")} <= {*row["criterion"].split("; ")}
    fails = [one["setting"] for one in parent if one["verdict"] == CONTRADICTED and asks_all(one)]
    others = [one["setting"] for one in parent if one["verdict"] != CONTRADICTED
              and not one["reason"].startswith(NOT_TRAINED)]  # fmt: skip
    if row["verdict"] == REPRODUCED and fails:
        return f"depends on {first_of(fails)}"
    if row["verdict"] == CONTRADICTED and others:
        return f"not asked at {first_of(others)}"
    return ""


def first_of(settings: list[str], most: int = 2) -> str:
    """The first settings' names, and the number of the others."""
    more = [f"{len(settings) - most} more"] if len(settings) > most else []
    return "; ".join([*settings[:most], *more])


def share(row: dict) -> str:
    """'12 of 15' trained settings that give the verdict of the base; '' if there is none."""
    settings = row.get("settings", {"trained": 0})
    return f"{settings['agree']} of {settings['trained']}" if settings["trained"] else ""


# --- known answers -----------------------------------------------------------------------------


class Matrix(NamedTuple):
    """What criteria must say of known answers.

    title: such as 'N = 16, donut'.  does: what each known answer does, in words, by name.
    make: () -> known answers by name, and whatever else `beside` asks for.
    rows: {claim: {known answer: letter}}: 'R' must be reproduced; '-' must not; 'r' is reproduced
      though it is not what the sentence says, so the criterion cannot tell it. What follows a comma
      in the name of a claim tells its rows apart: 'C7.mlp, beside a fading CNN'.
    beside: {claim: (name, known answers) -> runs by argument}; by default the answer is `net`.
    """

    title: str
    does: dict[str, str]
    make: Callable[[], dict[str, Any]]
    rows: dict[str, dict[str, str]]
    beside: dict[str, Callable] = {}


def letters(names: Iterable[str], left: Iterable[str] = (), **named) -> dict[str, str]:
    """A row of a `Matrix`: `R` and `r` name the known answers of that letter, the others have '-'.
    Those that are `left` out are not asked."""
    row = dict.fromkeys(names, "-")
    for letter, of_letter in named.items():
        row |= dict.fromkeys(of_letter, letter)
    return {name: letter for name, letter in row.items() if name not in left}


def tried(matrix: Matrix, claims) -> dict[str, dict[str, str]]:
    """{claim: {known answer: verdict}} of every row of a matrix."""
    by_name, known, table = {one.name: one for one in claims}, matrix.make(), {}
    for row, names in matrix.rows.items():
        one = by_name[row.partition(",")[0]]
        runs = matrix.beside.get(row, lambda name, known: {"net": known[name]})
        table[row] = {
            name: judge(one, runs(name, known), one.cases[0])["verdict"] for name in names
        }
    return table


def wrongly_decided(table: dict, matrix: Matrix) -> list[str]:
    """What of `tried` differs from the matrix, in words."""
    return [
        f"{matrix.title}: {row}: {name} is {verdict}, and must be {matrix.rows[row][name]}"
        for row, verdicts in table.items()
        for name, verdict in verdicts.items()
        if (verdict == REPRODUCED) != (matrix.rows[row][name] in "Rr")
    ]
