import numpy as np


def indices(sizes):
    return np.stack([c.ravel() for c in np.indices(tuple(sizes)[::-1])[::-1]], axis=1)


def distance_to_seen(held_out_B, sizes, ordered=None, periods=None):
    p = indices(sizes).astype(float)
    s = p[~held_out_B]
    return np.sqrt(np.min(((p[:, None] - s[None]) ** 2).sum(-1), axis=1))


def nearest_seen(held_out_B, sizes, ordered=None, periods=None):
    p = indices(sizes)
    seen = np.flatnonzero(~held_out_B)
    return seen[np.argmin(((p[:, None] - p[seen][None]) ** 2).sum(-1), axis=1)]
