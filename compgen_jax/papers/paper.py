"""A paper, or a study, is its runs and its claims.

Names of runs ('bump_cnn') are the same at every scale; the config behind one may have another
('ramp_cnn_trained'), that of its directory and of its summary.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from compgen_jax.claims import Claim
from compgen_jax.config import Config
from compgen_jax.papers.variations import Group


class Paper(NamedTuple):
    """title: of the paper's parts of a page. runs: scale -> configs by name, sweeps among them, in
    training order. claims: in the order of the page. note: what a reader of its verdicts should
    know. folder: with `claims.md`, objections. settings: what the paper leaves
    open around its base networks. more: finished runs by name -> further runs that are made of
    them, or written down."""

    title: str
    runs: Callable[[str], dict[str, Config]]
    claims: tuple[Claim, ...]
    note: str = ""
    folder: Path | None = None
    settings: tuple[Group, ...] = ()
    more: Callable[[dict], dict] = lambda runs: {}
