"""All papers: whose claims are judged, and whose runs are known by name."""

from functools import partial
from pathlib import Path

from compgen_jax.papers.forced_rendering import claims as forced_rendering_claims
from compgen_jax.papers.forced_rendering import known as forced_rendering_known
from compgen_jax.papers.forced_rendering import known_networks, known_turns
from compgen_jax.papers.forced_rendering import runs as forced_rendering_runs
from compgen_jax.papers.forced_rendering import settings as forced_rendering_settings
from compgen_jax.papers.league import runs as league_runs
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.real_factors import claims as real_factors_claims
from compgen_jax.papers.real_factors import known as real_factors_known
from compgen_jax.papers.real_factors import runs as real_factors_runs
from compgen_jax.papers.real_factors import settings as real_factors_settings
from compgen_jax.papers.scale import claims as scale_claims
from compgen_jax.papers.scale import known as scale_known
from compgen_jax.papers.scale import runs as scale_runs
from compgen_jax.papers.scale import settings as scale_settings

HERE = Path(__file__).parent

FORCED_RENDERING = Paper(
    title="Forced rendering",
    letters="CK",
    runs=forced_rendering_runs.runs,
    claims=forced_rendering_claims.CLAIMS,
    matrices=(
        *forced_rendering_known.MATRICES,
        *known_networks.MATRICES,
        *known_turns.MATRICES,
    ),
    note=forced_rendering_claims.NOTE,
    folder=HERE / "forced_rendering",
    settings=forced_rendering_settings.GROUPS,
)
SCALE = Paper(
    title="Scale",
    letters="S",
    runs=scale_runs.runs,
    claims=scale_claims.CLAIMS,
    matrices=scale_known.MATRICES,
    note=scale_claims.NOTE,
    folder=HERE / "scale",
    settings=scale_settings.GROUPS,
    more=scale_runs.more,
)
LEAGUE = Paper(
    title="League",
    letters="L",
    runs=league_runs.runs,
    claims=(),
    with_models=lambda models: LEAGUE._replace(runs=partial(league_runs.runs, own=tuple(models))),
)
REAL_FACTORS = Paper(
    title="Real factors",
    letters="F",
    runs=real_factors_runs.runs,
    claims=real_factors_claims.CLAIMS,
    matrices=real_factors_known.MATRICES,
    note=real_factors_claims.NOTE,
    folder=HERE / "real_factors",
    settings=real_factors_settings.GROUPS,
)
PAPERS = FORCED_RENDERING, SCALE, LEAGUE, REAL_FACTORS
