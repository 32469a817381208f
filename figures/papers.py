"""The papers, with their tables of RESULTS.md, and all figures."""

from compgen_jax.catalog import PAPERS as PAPERS

from . import (  # noqa: F401, I001
    forced_rendering,
    real_factors,
    scale,
    why_not,
)
from .benchmark import benchmark_tables
from .figure import FIGURES as FIGURES
from .forced_rendering import forced_rendering_tables
from .real_factors import real_factors_tables
from .scale import scale_tables

# {title of the paper: finished runs by name -> lines on what they score}
TABLES = {
    "Forced rendering": forced_rendering_tables.table,
    "Why not": forced_rendering_tables.table,
    "Scale": scale_tables.table,
    "Benchmark": benchmark_tables.with_errors,
    "Real factors": real_factors_tables.table,
}
