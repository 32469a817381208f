"""L1, ours: what layers do on seen combinations tells which networks compose the others.

Networks of many models, on many tasks, compete. A family's prediction is made by a fit to the other
families: no held-out combination that its own networks were asked for has a part in it.
"""

import numpy as np

from compgen_jax.calibration import decided
from compgen_jax.metrics import prediction
from compgen_jax.metrics.prediction import Networks
from compgen_jax.old_claims import READINGS, REPRODUCED, TRAINED, Condition, entry

# of the last hidden layer, on seen combinations alone (`analysis.seen`), at the end of training; of
# volume the spread, as its mean changes with the scale of a layer's units
GEOMETRY = ("interaction", "probe", "log10_volume_spread")
OF_ANY_CODE = GEOMETRY[:2]  # a one-hot code has no derivative, so no volume
LEARNT = "accuracy on seen combinations"
ABOVE = 0.5  # rank correlation of the stricter reading


def predicts_composition(networks: Networks, seeds) -> dict:
    """L1, as stated: the ranks of a fit to other model families' geometry go with OOD accuracy
    inside a task and a hold-out; stricter: so they do, above .5, among networks that learnt what
    they were shown, and beyond how exactly they did. Networks without a volume have no part in it;
    `details` has the first number without the volume, of all networks.

    `networks` has the predictors `GEOMETRY` and `LEARNT`; a network's outcome is its mean OOD
    accuracy over `seeds`.
    """
    learnt = networks.predictors[LEARNT] >= TRAINED
    every, of_learnt = _left_out(networks), _left_out(prediction.select(networks, learnt))
    alone = {
        f"{name}, alone": _number(prediction.rank_correlation(networks, name))
        for name in (*GEOMETRY, LEARNT)
    }
    counts = {
        f"{what}{which}": {"value": float(found[what]), "ci95": [np.nan, np.nan]}
        for which, found in (("", every), (" that learnt", of_learnt))
        for what in ("networks", "families", "dropped")
    }
    return entry(
        "L1",
        "all models",
        seeds,
        None,
        figure="league_geometry",
        statement="geometry on seen combinations tells which networks compose the others",
        as_stated={"rank correlation, families left out": Condition(every["rank"], "above", 0.0)},
        stricter={
            "rank correlation, those that learnt": Condition(of_learnt["rank"], "above", ABOVE),
            "beyond accuracy on seen combinations": Condition(of_learnt["beyond"], "above", 0.0),
        },
        details={"without volume": _left_out(networks, OF_ANY_CODE)["rank"]} | alone | counts,
    )


def _left_out(networks: Networks, names: tuple = GEOMETRY) -> dict:
    """`rank`: the pooled rank correlation of families left out, `beyond`: less that of `LEARNT`,
    with intervals, not known where fewer than three families are; and counts."""
    sets = {"geometry": names, "learnt": (LEARNT,)}
    try:
        found = prediction.compare(networks, sets)["geometry"]
    except ValueError:
        unknown = {"value": np.nan, "ci95": [np.nan, np.nan]}
        return {"rank": unknown, "beyond": unknown} | dict.fromkeys(
            ("networks", "families", "dropped"), np.nan
        )
    ranks = {"rank": found["pooled"], "beyond": found["beyond"]["learnt"]["pooled"]}
    return found | {name: _number(number) for name, number in ranks.items()}


def _number(found: dict) -> dict:
    return {"value": found["value"], "ci95": list(found["ci95"])}


# --- leagues whose answer is known -------------------------------------------------------------

KNOWN = {
    "tells": "all three numbers fall as composition rises",
    "one tells": "one of them does, the others are drawn apart",
    "noise": "all are drawn apart from the outcome",
    "tells the task": "they differ between tasks and hold-outs alone, as outcomes do",
    "tells the family": "they are a family's own, drawn once, as outcomes are, without relation",
    "tells what was learnt": "they go with accuracy on seen combinations, as outcomes do",
}
SHOULD = {"tells": READINGS, "one tells": READINGS[:1]}
# what goes with the outcome by way of what was learnt is told, too, and the stricter asks for more
MAY = {"tells what was learnt": READINGS[:1], "one tells": READINGS}


def known(name: str, family=None, group=None, seed: int = 1) -> Networks:
    """A league whose answer is `KNOWN`, of these families and groups (N,), by default eight of
    each and one network in every group."""
    family = np.repeat(np.arange(8), 8) if family is None else np.asarray(family)
    group = np.tile(np.arange(8), 8) if group is None else np.asarray(group)
    rng = np.random.default_rng(seed)

    def draw(labels):
        """A number for every label."""
        _, index = np.unique(labels, return_inverse=True)
        return rng.random(index.max() + 1)[index]

    noise = lambda size: size * rng.normal(size=len(family))
    learnt = 1 - 0.03 * rng.random(len(family))
    of_group = draw(group)
    outcome = np.clip(0.5 * draw(family) + 0.5 * of_group + noise(0.1), 0, 1)
    if name == "tells what was learnt":
        outcome = np.clip(0.2 + 25 * (learnt - learnt.min()) + noise(0.02), 0, 1)
    telling = {
        "tells": lambda: outcome + noise(0.05),
        "one tells": lambda: outcome + noise(0.05),
        "noise": lambda: noise(1.0),
        "tells the task": lambda: of_group + noise(0.1),
        "tells the family": lambda: draw(family) + noise(0.02),
        "tells what was learnt": lambda: learnt + noise(0.003),
    }[name]
    predictors = {key: -telling() for key in GEOMETRY}
    if name == "one tells":
        predictors |= {key: noise(1.0) for key in GEOMETRY[1:]}
    return Networks(family.astype(str), group.astype(str), outcome, predictors | {LEARNT: learnt})


def known_verdicts(family=None, group=None) -> dict:
    """{claim: {known league: (as stated, stricter)}}"""
    rows = {name: predicts_composition(known(name, family, group), (0, 1, 2, 3)) for name in KNOWN}
    return {"L1": {name: decided(row) for name, row in rows.items()}}


def wrongly_decided(table: dict) -> list[str]:
    """What of `known_verdicts` is not as `SHOULD` and `MAY` ask, in words."""
    return [
        f"L1 {reading}: {name} is {verdict}"
        for name, verdicts in table["L1"].items()
        for reading, verdict in zip(READINGS, verdicts, strict=True)
        if (verdict == REPRODUCED) != (reading in SHOULD.get(name, ()))
        and not (verdict == REPRODUCED and reading in MAY.get(name, ()))
    ]
