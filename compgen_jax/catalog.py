"""All papers: whose claims are judged, and whose runs are known by name."""

from pathlib import Path

from compgen_jax.papers.forced_rendering import bump_claims as forced_rendering_claims
from compgen_jax.papers.forced_rendering import bump_presets as forced_rendering_runs
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.scale import picks as scale_picks
from compgen_jax.papers.scale import scale_claims
from compgen_jax.papers.scale import scale_presets as scale_runs
from compgen_jax.studies.benchmark import benchmark_presets
from compgen_jax.studies.real_factors import real_factors_claims
from compgen_jax.studies.real_factors import real_factors_presets as real_factors_runs
from compgen_jax.studies.why_not import why_not_claims, why_not_presets


def _paper(title: str, runs, claims, **more) -> Paper:
    """The paper of some modules."""
    return Paper(
        title,
        runs.runs,
        claims.CLAIMS,
        note=claims.NOTE,
        folder=Path(claims.__file__).parent,
        settings=runs.SETTINGS,
        **more,
    )


FORCED_RENDERING = _paper("Forced rendering", forced_rendering_runs, forced_rendering_claims)
WHY_NOT = _paper("Why not", why_not_presets, why_not_claims)
SCALE = _paper("Scale", scale_runs, scale_claims, more=scale_picks.more)
BENCHMARK = Paper("Benchmark", benchmark_presets.runs, claims=())
REAL_FACTORS = _paper("Real factors", real_factors_runs, real_factors_claims)
PAPERS = FORCED_RENDERING, WHY_NOT, SCALE, BENCHMARK, REAL_FACTORS
