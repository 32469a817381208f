"""The league of models: its figures, and what its networks claim together."""

from functools import partial

from compgen_jax.papers.league import claims
from compgen_jax.papers.league import runs as networks
from compgen_jax.papers.league.runs import Match
from figures import report
from figures.league import figures, table
from figures.paper import Figure, Paper

NOTE = (
    "L1 is ours: whether what layers do on seen combinations alone tells, for a model family that "
    "the fit never met, which networks compose the others."
)


def is_match(role) -> bool:
    return isinstance(role, Match)


FIGURES = {
    "league": Figure(figures.draw, is_match, asked=True),
    "league_geometry": Figure(figures.draw_prediction, is_match, asked=True),
}


def all_claims(studies, tables) -> list[dict]:
    """L1, where enough was played."""
    played = [study for study in studies if is_match(study.role)]
    if len({study.role.family for study in played}) < 3:
        return []
    return [claims.predicts_composition(table.networks(played), played[0].run.seeds)]


def _runs(studies) -> list[str]:
    return report.errors_of_images({study.config.name: study.summary for study in studies})


def _with_models(own: tuple) -> Paper:
    """With rows for models of a user's own, FILE.py:CLASS."""
    return PAPER._replace(networks=partial(networks.networks, own=own))


PAPER = Paper(
    title="League",
    letters="L",
    figures=FIGURES,
    networks=networks.networks,
    sweeps=lambda scale: {},
    claims=all_claims,
    note=NOTE,
    runs=_runs,
    with_models=_with_models,
)
