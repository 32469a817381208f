"""The papers, with their tables of RESULTS.md, and all figures."""

from compgen_jax.papers.registry import PAPERS
from compgen_jax.papers.settings import SCALES

from . import forced_rendering, scale, league, real_factors, robustness, overview  # isort: skip  # noqa: F401  (registers figures)
from .figure import FIGURES
from .forced_rendering import tables as forced_rendering_tables
from .league import tables as league_tables
from .real_factors import tables as real_factors_tables
from .scale import tables as scale_tables

__all__ = ["FIGURES", "PAPERS", "SCALES", "TABLES"]

# {title of the paper: finished runs by name -> lines on what they score}
TABLES = {
    "Forced rendering": forced_rendering_tables.table,
    "Scale": scale_tables.table,
    "League": league_tables.table,
    "Real factors": real_factors_tables.table,
}
