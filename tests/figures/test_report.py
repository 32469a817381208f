"""What RESULTS.md says above its tables: verdicts, their settings, and what chance would give."""

from compgen_jax.claims import Claim, Condition
from compgen_jax.papers.paper import Paper
from figures import report

CLAIMS = (
    Claim("X1", "", Condition("", 1.0, above=0), changed="its bound went from 1 to 2"),
    Claim("X2", "", Condition("", 1.0, above=0), changed="not on this page"),
)
PAPER = Paper("Tiny", "X", lambda scale: {}, CLAIMS)


def judged(code, verdict, reason="", stricter=("a", "b"), **more):
    """A judged claim whose stricter reading has these conditions."""
    value = float(len(code))
    number = {"value": value, "ci95": [0.9, 11], "must be": "above 0", "holds": True}
    stated = {"verdict": verdict, "reason": reason, "criterion": "a", "conditions": {"a": number}}
    apart = {"criterion": "; ".join(stricter), "conditions": dict.fromkeys(stricter, number)}
    return {"claim": "X1", "code": code, "statement": f"with the {code} code, it falls",
            "figure": "", "seeds": [0, 1], "as_stated": stated | more,
            "stricter": stated | apart, "details": {}}  # fmt: skip


SETTINGS = {"verdict": "contradicted", "reason": "", "agree": 3, "trained": 4, "quick": 2,
            "untrained": 1, "differ": ["upright"]}  # fmt: skip
ROWS = [
    judged("bump", "inconclusive", "depends on upright", settings=SETTINGS),
    judged("ramp", "reproduced", stricter=("a",)),
    judged("onehot", "inconclusive", "not trained: exact accuracy ID 0.5, 0.95 asked"),
]


def test_the_page_begins_with_verdicts_and_their_share_of_settings():
    page = report.page("quick", [PAPER], {}, ROWS, [])
    assert "- Tiny, 3 verdicts as stated: 1 are reproduced, 0 are contradicted, 2 are" in page
    row = "| X1 | it falls | ramp |  | bump (3 of 4; depends on upright), onehot (not trained) |"
    assert row in page and page.index(row) < page.index("## Tiny: claims")
    verdict = "**inconclusive** (depends on upright; contradicted in 3 of 4 trained settings, "
    assert verdict + "2 of them quick, 1 did not learn) |" in page


def test_the_page_counts_its_conditions_and_names_changed_criteria():
    """Each once, though both readings ask it or another row has it, and none without a number: 2,
    none, 2 and 1."""
    not_run = judged("positional", "inconclusive")
    unknown = {"value": None, "ci95": [None, None], "must be": "above 0", "holds": None}
    not_run["stricter"]["conditions"] |= {"b": unknown}
    page = report.page("quick", [PAPER], {}, [*ROWS, not_run], [])
    assert "judges 5 conditions" in page and "would have 0.1 of them hold (2.5%)" in page
    assert "The criteria of 1 claims were changed after a verdict of theirs was known: X1." in page
    unchanged = PAPER._replace(claims=CLAIMS[1:])
    assert "No criterion was changed after" in report.page("quick", [unchanged], {}, ROWS, [])
    assert "Verdicts" not in report.page("quick", [PAPER], {}, [], [])
