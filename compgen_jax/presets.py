"""The presets of all papers by name."""

import itertools
from typing import NamedTuple

from compgen_jax.config import Config, ConfigError
from compgen_jax.papers.forced_rendering import bump_presets as forced_rendering
from compgen_jax.papers.scale import scale_presets as scale
from compgen_jax.papers.variations import SCALES
from compgen_jax.settings import nearest_or_all
from compgen_jax.studies.benchmark import benchmark_presets as benchmark
from compgen_jax.studies.real_factors import real_factors_presets as real_factors
from compgen_jax.studies.why_not import why_not_presets


class Public(NamedTuple):
    """A preset at one scale, with the time that it takes."""

    config: Config
    takes: str


def public(*tables: dict) -> dict[str, Public]:
    """What can be named by `--config`, by name of the config: quick ones first."""
    listed = [
        Public(preset.config(scale, name), takes)
        for scale, table in itertools.product(SCALES, tables)
        for name, preset in table.items()
        for trained, takes in zip(preset.scales, preset.takes, strict=False)
        if trained == scale
    ]
    return {preset.config.name: preset for preset in listed}


PAPERS = {
    "Forced rendering": public(forced_rendering.RUNS, forced_rendering.PRESETS),
    "Why not": public(why_not_presets.RUNS),
    "Scale": public(scale.PRESETS),
    "Real factors": public(real_factors.PRESETS),
}
PRESETS = {name: preset.config for presets in PAPERS.values() for name, preset in presets.items()}


def get_config(preset: str = "") -> Config:
    """The preset of that name, or the benchmark's run. Raises ConfigError, which suggests close
    names."""
    known = PRESETS
    if preset.startswith("league_"):
        known = {run.name: run for scale in SCALES for run in benchmark.runs(scale).values()}
    if preset not in known:
        raise ConfigError(f"no preset {preset!r}; {nearest_or_all(preset, known)}")
    return known[preset]
