"""What a figure is drawn from: finished runs by code, decoder and depth."""

from typing import NamedTuple

from compgen_jax.analysis.evaluation import CellResults
from compgen_jax.config import Config
from compgen_jax.inspection import Inspection


class Key(NamedTuple):
    code: str  # 'bump', 'ramp', ...
    decoder: str  # 'conv' or 'mlp'
    depth: int


class Study(NamedTuple):
    config: Config
    summary: dict
    results: CellResults
    inspection: Inspection


BASE_DEPTH = {"conv": 4, "mlp": 3}  # of the presets
