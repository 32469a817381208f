"""L1, ours: what layers do on seen combinations tells which networks compose the others.

Networks of many models, on many tasks, compete; nothing of a held-out combination, and no name of a
model, enters the prediction (`analysis.prediction`).
"""

import numpy as np

from compgen_jax.analysis import prediction
from compgen_jax.analysis.prediction import Networks
from compgen_jax.claims.verdicts import TRAINED, Condition, entry

# of the last hidden layer, on seen combinations alone (`analysis.seen`)
GEOMETRY = ("interaction", "probe", "log10_volume_spread")
LEARNT = "exact accuracy ID"


def predicts_composition(networks: Networks, seeds) -> dict:
    """L1, as stated: over all networks, the ranks of a fit to other model families' geometry go
    with OOD accuracy inside a task and a hold-out; stricter: so do those of networks that learnt
    what they were shown, well (above .5), and beyond how exactly they did.

    `networks` has the predictors `GEOMETRY` and `LEARNT`; a network's outcome is its mean OOD
    accuracy over `seeds`.
    """
    every = _rank(networks)
    learnt = _rank(_kept(networks, networks.predictors[LEARNT] >= TRAINED))
    details = {
        f"{name}, alone": prediction.rank_correlation(networks, name, within=True)
        for name in (*GEOMETRY, LEARNT)
    }
    return entry(
        "L1",
        "all models",
        seeds,
        None,
        figure="league",
        statement="geometry on seen combinations tells which networks compose the others",
        as_stated={"rank correlation, left-out families": Condition(every[0], "above", 0.0)},
        stricter={
            "rank correlation, networks that learnt": Condition(learnt[0], "above", 0.5),
            "beyond accuracy ID": Condition(learnt[1], "above", 0.0),
        },
        details={name: _number(found) for name, found in details.items()}
        | {"networks": {"value": float(len(networks.outcome)), "ci95": [np.nan, np.nan]}},
    )


def _rank(networks: Networks):
    """The pooled rank correlation of families left out, and what is beyond that of `LEARNT`, as
    numbers with intervals; not known where fewer than three families are."""
    sets = {"geometry": GEOMETRY, "learnt": (LEARNT,)}
    try:
        found = prediction.compare(networks, sets, within=True)["geometry"]
    except ValueError:
        return ({"value": np.nan, "ci95": [np.nan, np.nan]},) * 2
    return _number(found["pooled"]), _number(found["beyond"]["learnt"]["pooled"])


def _number(found: dict) -> dict:
    return {"value": found["value"], "ci95": list(found["ci95"])}


def _kept(networks: Networks, kept) -> Networks:
    predictors = {name: values[kept] for name, values in networks.predictors.items()}
    return Networks(*(column[kept] for column in networks[:3]), predictors)


# --- leagues whose answer is known -------------------------------------------------------------

FAMILIES, GROUPS = 8, 8
KNOWN = {
    "tells": "interaction falls as composition rises, in every family",
    "noise": "predictors are drawn apart from the outcome",
    "tells the task": "predictors differ between tasks and hold-outs alone, as outcomes do",
    "tells the family": "predictors are a family's own, as outcomes are, without order",
    "tells what was learnt": "predictors go with accuracy ID, which goes with the outcome",
}
SHOULD = {"tells": ("reproduced", "reproduced")}  # and no other is


def known(name: str, seed: int = 1) -> Networks:
    """A league of 8 families and 8 tasks whose answer is `KNOWN`."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(FAMILIES), GROUPS).astype(str)
    group = np.tile(np.arange(GROUPS), FAMILIES).astype(str)
    own, of_group = (np.repeat(rng.random(FAMILIES), GROUPS), np.tile(rng.random(GROUPS), FAMILIES))
    noise = lambda: rng.normal(size=len(family))
    learnt = 1 - 0.03 * rng.random(len(family))
    outcome = np.clip(0.5 * own + 0.5 * of_group + 0.1 * noise(), 0, 1)
    telling = {
        "tells": lambda: outcome + 0.05 * noise(),
        "noise": noise,
        "tells the task": lambda: of_group + 0.1 * noise(),
        "tells the family": lambda: np.repeat(rng.permutation(FAMILIES), GROUPS) + 0.1 * noise(),
        "tells what was learnt": lambda: learnt + 0.003 * noise(),
    }
    if name == "tells what was learnt":
        outcome = np.clip(0.2 + 25 * (learnt - learnt.min()) + 0.02 * noise(), 0, 1)
    predictors = {key: -telling[name]() for key in GEOMETRY} | {LEARNT: learnt}
    return Networks(family, group, outcome, predictors)


def known_verdicts() -> dict:
    """{claim: {known league: (as stated, stricter)}}"""
    rows = {name: predicts_composition(known(name), (0, 1, 2, 3)) for name in KNOWN}
    return {
        "L1": {
            name: (row["as_stated"]["verdict"], row["stricter"]["verdict"])
            for name, row in rows.items()
        }
    }
