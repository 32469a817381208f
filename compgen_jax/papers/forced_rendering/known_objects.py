"""Maps from a cell to an image of two objects whose answer is known.

ID cells show both bumps as they are. At a held-out cell the first bump is drawn as a known map of
one object draws it (`known_maps`), and the second one in a way of its own.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from compgen_jax.papers.forced_rendering import known_maps


class KnownPair(NamedTuple):
    """first: a name of `known_maps.MAPS`.  second: true images (B, N, N) of the second bumps ->
    what is drawn of them.  draws: what, in words."""

    first: str
    second: Callable
    draws: str


def _true(seconds):
    return seconds


def _misplaced(seconds):
    return np.roll(seconds, seconds.shape[-1] // 2, axis=-1)


PAIRS = {
    "both": KnownPair("bump", _true, "both bumps as they are asked for"),
    "first blank": KnownPair("blank", _true, "the second bump alone"),
    "first looked up": KnownPair("lookup", _true, "the second bump, and the nearest seen first"),
    "first superposed": KnownPair(
        "superposer", _true, "the second bump, and the seen firsts next on the row and column"
    ),
    "first summed": KnownPair(
        "sum", _true, "the second bump, and all seen firsts on the row and on the column"
    ),
    "first a plus": KnownPair("plus", _true, "the second bump, and the first one's two stripes"),
    "second blank": KnownPair("bump", np.zeros_like, "the first bump alone"),
    "second misplaced": KnownPair(
        "bump", _misplaced, "the first bump, and the second half a grid beside its place"
    ),
    "both blank": KnownPair("blank", np.zeros_like, "nothing"),
    "both wrong": KnownPair(
        "lookup", _misplaced, "the nearest seen first, and the second half a grid beside its place"
    ),
    "noise": KnownPair("noise", np.zeros_like, "independent uniform pixels"),
}
# what the seeds draw where they differ: (that of the first one, that of the others)
MIXED = {"both blank in one seed": ("both blank", "first looked up")}
DOES = {name: one.draws for name, one in PAIRS.items()} | {
    name: f"*{first}* in one seed, *{others}* in the others"
    for name, (first, others) in MIXED.items()
}


def images(name: str, truths_BxNxN, firsts_BxNxN, held_out_B):
    """(B, N, N) of a pair at every cell, from the true images of both bumps and of the first one.
    ValueError as `known_maps.world_of`."""
    pair, world = PAIRS[name], known_maps.world_of(firsts_BxNxN, held_out_B)
    drawn = known_maps.images(pair.first, world) + pair.second(truths_BxNxN - firsts_BxNxN)
    return np.where(held_out_B[:, None, None], drawn, truths_BxNxN)
