"""The presets of all papers: `--config=launch/config.py:PRESET`."""

from compgen_jax.papers.presets import get_config

__all__ = ["get_config"]
