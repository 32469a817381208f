"""The papers, with what RESULTS.md says of them, and all figures."""

from functools import partial

from compgen_jax.papers.forced_rendering import calibrations as forced_rendering_known
from compgen_jax.papers.forced_rendering import claims as forced_rendering_claims
from compgen_jax.papers.forced_rendering import runs as forced_rendering_runs
from compgen_jax.papers.forced_rendering import settings as forced_rendering_settings
from compgen_jax.papers.league import runs as league_runs
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.real_factors import calibrations as real_factors_known
from compgen_jax.papers.real_factors import claims as real_factors_claims
from compgen_jax.papers.real_factors import runs as real_factors_runs
from compgen_jax.papers.real_factors import settings as real_factors_settings
from compgen_jax.papers.scale import calibrations as scale_known
from compgen_jax.papers.scale import claims as scale_claims
from compgen_jax.papers.scale import runs as scale_runs
from compgen_jax.papers.scale import settings as scale_settings

from . import forced_rendering, scale, league, real_factors, robustness  # isort: skip  # noqa: F401  (registers figures)
from .figure import FIGURES
from .forced_rendering import tables as forced_rendering_tables
from .league import tables as league_tables
from .real_factors import tables as real_factors_tables
from .scale import tables as scale_tables

__all__ = ["FIGURES", "PAPERS"]

FORCED_RENDERING = Paper(
    title="Forced rendering",
    letters="CK",
    runs=forced_rendering_runs.runs,
    claims=forced_rendering_claims.CLAIMS,
    calibrations=forced_rendering_known.CALIBRATIONS,
    note=forced_rendering_tables.NOTE,
    table=forced_rendering_tables.table,
    conclude=forced_rendering_tables.conclude,
    settings=forced_rendering_settings.GROUPS,
)
SCALE = Paper(
    title="Scale",
    letters="S",
    runs=scale_runs.runs,
    claims=scale_claims.CLAIMS,
    calibrations=scale_known.CALIBRATIONS,
    note=scale_claims.NOTE,
    table=scale_tables.table,
    settings=scale_settings.GROUPS,
)
LEAGUE = Paper(
    title="League",
    letters="L",
    runs=league_runs.runs,
    claims=(),
    table=league_tables.table,
    with_models=lambda models: LEAGUE._replace(runs=partial(league_runs.runs, own=tuple(models))),
)
REAL_FACTORS = Paper(
    title="Real factors",
    letters="F",
    runs=real_factors_runs.runs,
    claims=real_factors_claims.CLAIMS,
    calibrations=real_factors_known.CALIBRATIONS,
    note=real_factors_claims.NOTE,
    table=real_factors_tables.table,
    settings=real_factors_settings.GROUPS,
)
PAPERS = FORCED_RENDERING, SCALE, LEAGUE, REAL_FACTORS
