"""What a paper brings to `figures.make`: its figures, its networks and what it claims."""

from collections.abc import Callable
from typing import NamedTuple


class Figure(NamedTuple):
    """draw: the studies that are shown, in order, -> matplotlib figure; of a sweep, its rows and
    its config.  shows: the role of a network, of any paper, -> whether it is shown.  sweep: the
    name of the sweep that is shown instead.  scale: at which alone it is drawn, if not at both.
    asked: whether it is drawn only where it is asked for by name, as those of sweeps are."""

    draw: Callable
    shows: Callable = lambda role: False
    sweep: str = ""
    scale: str = ""
    asked: bool = False


class Paper(NamedTuple):
    """title: of the paper's parts of a page.  letters: with which its claims' names begin.
    figures: by name.  networks: scale -> list of records with `name`, `config` and `role`, in the
    order in which they are trained.  sweeps: scale -> configs by name.  claims: studies, and
    (rows, config) of finished sweeps by name -> rows of claims.json.  note: what a reader of the
    verdicts should know.  runs: of its own networks those that ran, of which no more is asked than
    role, config and summary -> lines of RESULTS.md on what they score.  conclude: claims -> lines
    of RESULTS.md.  with_models: names of a user's own models -> the paper with networks of them
    too; None of a paper that has no use for them."""

    title: str
    letters: str
    figures: dict
    networks: Callable
    sweeps: Callable
    claims: Callable
    note: str
    runs: Callable
    conclude: Callable = lambda rows: []
    with_models: Callable | None = None
