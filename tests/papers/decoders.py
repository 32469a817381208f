"""Decoders whose answer is known: bumps on a grid of 12, the square 4 to 7 held out."""

import functools
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np

from compgen_jax.claims import judge
from compgen_jax.runs.run import Run
from compgen_jax.tasks import bump
from compgen_jax.tasks.bump import Bump, ImageConfig
from compgen_jax.tasks.supports import SupportConfig
from tests import scoring

N = 12
CELLS = [(x, y) for y in range(N) for x in range(N)]
HOLE = [(x, y) for x, y in CELLS if 4 <= x <= 7 and 4 <= y <= 7]
SETTINGS = Bump(grid=N, support=SupportConfig(region="donut", low=4, high=7))
TASK = SETTINGS.make()
JITTER = np.array([-0.01, 0.0, 0.01])


@functools.cache
def draw(x, y):
    return np.asarray(bump.bump(jnp.float32(x), jnp.float32(y), N, ImageConfig()))


def blank(x, y):
    return 0 * draw(x, y)


@functools.cache
def _scorer():
    return scoring.scorer(TASK, np.stack([draw(*cell) for cell in CELLS]))


def cell_results(signals_by_seed, targets=None):
    """CellResults of given signals (T, B, N, N), by default of the task's own targets."""
    score = _scorer() if targets is None else scoring.scorer(TASK, targets)
    return score(signals_by_seed)


def decoder(render):
    """CellResults of three equal seeds that are right on seen cells and `render` on others."""
    images = [render(x, y) if (x, y) in HOLE else draw(x, y) for x, y in CELLS]
    return cell_results(np.stack([np.stack(images)] * 3))


def run(cells=None, numbers=None, outputs=None, **others):
    """A run of three seeds. `numbers`: values by layer, and `outputs`: values, by metric, with a
    small spread over seeds. Without `cells` it is one that draws everything right; without an
    `interpolator` and a `wide_network` that render nothing."""
    by_layer = lambda values: np.array(values) + JITTER[:, None] * np.arange(1, len(values) + 1)
    return Run.known(
        (0, 1, 2),
        decoder(draw) if cells is None else cells,
        {name: by_layer(values) for name, values in (numbers or {}).items()},
        {f"output.{name}": value + JITTER for name, value in (outputs or {}).items()},
        **{
            "config": SimpleNamespace(task=SETTINGS),
            "task": TASK,
            "interpolator": decoder(blank),
            "wide_network": decoder(blank),
        }
        | others,
    )


def named(claims, name: str):
    """The claim of that name."""
    return next(claim for claim in claims if claim.name == name)


def judged(claim, case=None, **runs):
    """The row of a claim, at its first case unless another is given."""
    return judge(claim, runs, claim.cases[0] if case is None else case)
