"""Maps whose volume element is smooth or rough: what the criterion of C15 must decide rightly.

Each draws ID cells of a decoder of low-rank embeddings as they are, and held-out ones as one of
`known` does, or as a bump in a place that differs from cell to cell.
"""

import numpy as np

from compgen_jax.papers.forced_rendering import known
from compgen_jax.papers.forced_rendering.known import World

DISPLACED = "displaced"
MAPS = {
    name: known.MAPS[name].draws
    for name in ("bump", "plus", "lookup", "superposer", "blank", "noise")
} | {DISPLACED: "the bump that is asked for, moved at random by up to a pixel along each axis"}


def images(name: str, world: World):
    """(B, N, N) of a map at every cell, x varying fastest."""
    return _displaced(world) if name == DISPLACED else known.images(name, world)


def _displaced(world: World):
    true, last = known.images("bump", world), world.grid - 1
    moves = np.random.default_rng(0).integers(-1, 2, size=(world.grid**2, 2))
    y, x = np.divmod(np.arange(world.grid**2), world.grid)
    inside = (np.minimum(x, y) >= world.low) & (np.maximum(x, y) <= world.high)
    moved = np.clip(np.stack([x, y], axis=1) + moves * inside[:, None], 0, last)
    return true[moved[:, 1] * world.grid + moved[:, 0]]
