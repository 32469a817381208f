"""L1, ours: does what layers do on ID cells tell which networks compose?

Networks of many models on many tasks are ranked together. The prediction for an architecture comes
from a fit to all other architectures, so no OOD accuracy of its own networks has a part in it.
"""

import numpy as np

from compgen_jax.claims import TRAINED, Claim, Condition, once
from compgen_jax.metrics import prediction
from compgen_jax.metrics.prediction import Networks
from compgen_jax.papers.league.runs import entry_of

# They are measured in the last hidden layer, on ID cells alone (`metrics.id_cells`). The volume's
# spread is taken, as its mean changes with the scale of a layer's units.
GEOMETRY = ("interaction", "probe", "log10_volume_spread")
OF_ANY_CODE = GEOMETRY[:2]  # one-hot codes have no derivative, so no volume
LAST_HIDDEN = -2  # of the layers; the prediction is the last
LEARNT = "accuracy on seen combinations"
ABOVE = 0.5  # rank correlation that the stricter reading asks for
UNKNOWN = {"value": np.nan, "ci95": [np.nan, np.nan]}
NOTE = (
    "L1 is ours: whether what layers do on seen combinations alone tells, for a model family that "
    "the fit never met, which networks compose the others."
)


def networks_of(runs) -> Networks:
    """One row for every run, means over seeds: the share of OOD combinations that it composes
    (`Entry.score`) is the outcome, `GEOMETRY` and `LEARNT` are the predictors."""
    entries = [entry_of(run.config) for run in runs]
    mean = lambda run, score: run.summary["mean"].get(score, UNKNOWN)["value"]
    predictors = {
        name: np.array([run.layers(f"id_cells.{name}")[:, LAST_HIDDEN].mean() for run in runs])
        for name in GEOMETRY
    }
    return Networks(
        np.array([entry.architecture for entry in entries]),
        np.array([entry.group for entry in entries]),
        np.array(
            [
                mean(run, f"ood.{entry.score(run.task.accuracy)}")
                for run, entry in zip(runs, entries, strict=True)
            ]
        ),
        predictors | {LEARNT: np.array([mean(run, f"id.{run.task.accuracy}") for run in runs])},
    )


def left_out(networks: Networks, names: tuple = GEOMETRY) -> dict:
    """How a fit to all other architectures ranks the runs of one, inside a task and hold-out.

    rank: the pooled rank correlation with the outcome.  beyond: that less the one of `LEARNT`. Both
    have intervals, and are unknown for fewer than three architectures.  networks, families,
    dropped: counts.
    """
    sets = {"geometry": names, "learnt": (LEARNT,)}
    try:
        answer = prediction.compare(networks, sets)["geometry"]
    except ValueError:
        counts = dict.fromkeys(("networks", "families", "dropped"), np.nan)
        return {"rank": UNKNOWN, "beyond": UNKNOWN} | counts
    return answer | {"rank": answer["pooled"], "beyond": answer["beyond"]["learnt"]["pooled"]}


@once
def every_network(e) -> Networks:
    return networks_of(e.league)


@once
def of_all(e) -> dict:
    return left_out(every_network(e))


@once
def of_those_that_learnt(e) -> dict:
    networks = every_network(e)
    return left_out(prediction.select(networks, networks.predictors[LEARNT] >= TRAINED))


def number(measured: dict) -> dict:
    return {"value": measured["value"], "ci95": measured["ci95"]}


def details(e) -> dict:
    networks = every_network(e)
    alone = {
        f"{name}, alone": number(prediction.rank_correlation(networks, name))
        for name in (*GEOMETRY, LEARNT)
    }
    counts = {
        f"{what}{of}": UNKNOWN | {"value": float(answer[what])}
        for of, answer in (("", of_all(e)), (" that learnt", of_those_that_learnt(e)))
        for what in ("networks", "families", "dropped")
    }
    without_volume = number(left_out(networks, OF_ANY_CODE)["rank"])
    return {"without volume": without_volume} | alone | counts


CLAIMS = (
    Claim(
        "L1",
        "geometry on seen combinations tells which networks compose the others",
        figure="league_geometry",
        code="all models",
        runs={"league": "league_*"},
        when=lambda e: len({entry_of(run.config).architecture for run in e.league}) >= 3,
        trained=None,
        as_stated=Condition(
            "rank correlation, families left out",
            lambda e: number(of_all(e)["rank"]),
            above=0.0,
        ),
        stricter=(
            Condition(
                "rank correlation, those that learnt",
                lambda e: number(of_those_that_learnt(e)["rank"]),
                above=ABOVE,
            ),
            Condition(
                "beyond accuracy on seen combinations",
                lambda e: number(of_those_that_learnt(e)["beyond"]),
                above=0.0,
            ),
        ),
        details=details,
        objection=(
            "Networks that learnt more of what they were shown also compose more, and a fit may "
            "tell the task from the layers. So ranks are taken inside a task and hold-out, the "
            "stricter reading takes networks that learnt alone, and it asks for more than their "
            "accuracy on seen combinations tells."
        ),
        changed=(
            "The outcome was exact accuracy OOD, and its verdicts were known. Where a task has the "
            "share rendered, the outcome is that."
        ),
    ),
)
