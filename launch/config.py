"""The presets of all papers: `--config=launch/config.py:PRESET`."""

from compgen_jax.config import Config, ConfigError
from launch.presets import forced_rendering, scale

PAPERS = {"Forced rendering": forced_rendering.PRESETS, "Scale": scale.PRESETS}
PRESETS = {name: preset.config for presets in PAPERS.values() for name, preset in presets.items()}


def get_config(preset: str = "") -> Config:
    """The preset of that name. Raises ConfigError, naming those that there are."""
    if preset not in PRESETS:
        raise ConfigError(f"unknown preset {preset!r}; presets: {', '.join(PRESETS)}")
    return PRESETS[preset]
