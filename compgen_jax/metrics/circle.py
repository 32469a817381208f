"""A gap on a circle, a run of held-out angles: do outputs in it mix the seen ones at its edges?"""

from typing import NamedTuple

import numpy as np

PERIOD = 360.0  # degrees


class Gap(NamedTuple):
    """One object's gap: cells (Q,) by rising angle; the seen cells at its edges; place (Q,) between
    them, from 0 to 1."""

    label: tuple
    cells: np.ndarray
    edges: tuple[int, int]
    place: np.ndarray


def gaps(factors_BxF, held_out_B) -> list[Gap]:
    """The gaps of all objects; of the factors the first is the angle. ValueError if there is none,
    if an object has several, or if nothing of it is seen."""
    factors, held_out = np.asarray(factors_BxF, np.float64), np.asarray(held_out_B, bool)
    angles, gaps = factors[:, 0] % PERIOD, []
    for label in sorted(set(map(tuple, factors[:, 1:].tolist()))):
        name = f"object {label[0]:g}" if label else "the object"
        cells = np.flatnonzero((factors[:, 1:] == np.array(label)[None]).all(axis=1))
        cells = cells[np.argsort(angles[cells])]
        hidden = held_out[cells]
        if not hidden.any():
            continue
        if hidden.all():
            raise ValueError(f"every angle of {name} is held out, so its gap has no edges")
        starts = np.flatnonzero(hidden & ~np.roll(hidden, 1))
        if len(starts) > 1:
            raise ValueError(f"{name} has {len(starts)} gaps, not one")
        cells = np.roll(cells, 1 - starts[0])  # the edge before the gap comes first
        around = cells[np.arange(hidden.sum() + 2) % len(cells)]
        gaps.append(_from_edge_to_edge(label, around, angles))
    if not gaps:
        raise ValueError("nothing is held out, so there is no gap")
    return gaps


def _from_edge_to_edge(label, cells, angles_B) -> Gap:
    before, *inside, after = cells.tolist()
    width = (angles_B[after] - angles_B[before]) % PERIOD or PERIOD
    fraction = (angles_B[inside] - angles_B[before]) % PERIOD / width
    return Gap(label, np.array(inside), (before, after), fraction)


def windows(gap: Gap, factors_BxF, held_out_B) -> list[Gap]:
    """Stretches of ID cells of the gap's object and size, from its end on. ValueError without room
    for one."""
    factors, held_out = np.asarray(factors_BxF, np.float64), np.asarray(held_out_B, bool)
    angles = factors[:, 0] % PERIOD
    same = (factors[:, 1:] == np.array(gap.label)[None]).all(axis=1)
    seen = np.flatnonzero(same & ~held_out)
    seen = seen[np.argsort((angles[seen] - angles[gap.edges[1]]) % PERIOD)]
    step = len(gap.cells) + 1
    stretches = [
        _from_edge_to_edge(gap.label, seen[start : start + step + 1], angles)
        for start in range(0, len(seen) - step, step)
    ]
    if not stretches:
        raise ValueError(f"no {step + 1} ID cells of the object follow one another")
    return stretches


def cross_fade(first_x, second_x, fraction_Q):
    """(Q, ...): 1 - fraction of the first edge's image and `fraction` of the second's."""
    fraction = np.asarray(fraction_Q, np.float64).reshape(-1, *(1,) * np.ndim(first_x))
    return (1 - fraction) * np.asarray(first_x)[None] + fraction * np.asarray(second_x)[None]


def edge_fit(signals_xP, first_P, second_P) -> tuple:
    """Of each signal's least-squares fit by both edges' images: (...) the share of its squared norm
    outside their span, 1 of a blank one, and (...) min(a, b) / (a + b) of the weights, from 0, one
    edge alone, to a half; 0 unless both are above 0."""
    signals = np.asarray(signals_xP, np.float64)
    edges_2xP = np.stack([first_P, second_P]).astype(np.float64)
    weights = signals @ np.linalg.pinv(edges_2xP.T).T
    total = np.square(signals).sum(axis=-1)
    squared = np.square(signals - weights @ edges_2xP).sum(axis=-1)
    residual_share = np.where(total > 0, squared / np.where(total > 0, total, 1), 1.0)
    least = weights.min(axis=-1)
    both = least > 0
    mixing_share = np.where(both, least, 0.0) / np.where(both, weights.sum(axis=-1), 1.0)
    return residual_share, mixing_share
