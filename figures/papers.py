"""The papers: their runs, claims, known answers and what RESULTS.md says of them; all figures."""

from compgen_jax.papers.forced_rendering import calibrations as forced_rendering_known
from compgen_jax.papers.forced_rendering import claims as forced_rendering_claims
from compgen_jax.papers.forced_rendering import runs as forced_rendering_runs
from compgen_jax.papers.league import claims as league_claims
from compgen_jax.papers.league import runs as league_runs
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.scale import calibrations as scale_known
from compgen_jax.papers.scale import claims as scale_claims
from compgen_jax.papers.scale import runs as scale_runs
from figures.figure import FIGURES
from figures.forced_rendering import tables as forced_rendering_tables
from figures.league import tables as league_tables
from figures.scale import tables as scale_tables
