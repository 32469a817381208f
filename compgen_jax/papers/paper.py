"""A paper is rows: its runs, its claims, and the known answers that its criteria are tried on.

    RUNS      scale -> {name: Config}, in the order in which they are trained
    CLAIMS    a tuple of `claims.Claim`
    CALIBRATIONS  a tuple of `calibration.Calibration`

Names of runs are the same at every scale ('bump_cnn'); the config behind a name may have another
name ('bump_cnn_quick', 'ramp_cnn_trained'), which is that of its directory and of its summary.
"""

from collections.abc import Callable
from typing import NamedTuple

from compgen_jax.calibration import Calibration
from compgen_jax.claims import Claim
from compgen_jax.config import Config
from compgen_jax.papers.settings import Group

SCALES = "quick", "paper"


class Paper(NamedTuple):
    """title: of the paper's parts of a page.  letters: with which its claims' names begin.
    runs: scale -> configs by name, sweeps among them (`config.is_sweep`), in training order.
    claims: its rows, in the order of the page.  calibrations: see `calibration`.  note: what a
    reader of its verdicts should know.  table: finished runs by name -> lines of RESULTS.md on what
    they score.  conclude: judged claims -> further lines.  settings: what the paper leaves open
    around its base networks (`papers.settings`).  with_models: names of a user's own models -> the
    paper with runs of them too; None of a paper that has no use for them."""

    title: str
    letters: str
    runs: Callable[[str], dict[str, Config]]
    claims: tuple[Claim, ...]
    calibrations: tuple[Calibration, ...] = ()
    note: str = ""
    table: Callable = lambda runs: []
    conclude: Callable = lambda judged: []
    settings: tuple[Group, ...] = ()
    with_models: Callable | None = None
