"""The presets of all papers: `--config=NAME`, or `--config=launch/config.py:NAME`."""

from compgen_jax.presets import get_config

__all__ = ["get_config"]
