"""The presets of all papers by name."""

from compgen_jax.config import Config, ConfigError
from compgen_jax.papers.forced_rendering import presets as forced_rendering
from compgen_jax.papers.scale import presets as scale

PAPERS = {"Forced rendering": forced_rendering.PRESETS, "Scale": scale.PRESETS}
PRESETS = {name: preset.config for presets in PAPERS.values() for name, preset in presets.items()}


def get_config(preset: str = "") -> Config:
    """The preset of that name. Raises ConfigError, naming those that there are."""
    if preset not in PRESETS:
        raise ConfigError(f"unknown preset {preset!r}; presets: {', '.join(PRESETS)}")
    return PRESETS[preset]
