"""Arrays of tasks on small grids, padded to the largest grid.

A smaller grid lies in a corner of the largest. Inputs, targets and parameters are padded with
zeros. A model that is told its grid masks what lies beyond it after every nonlinearity, so that its
convolutions meet the zeros of 'SAME' padding where they would meet them alone. Padded parameters
start at zero, get no gradient and stay there: a padded run is the unpadded one, to float rounding.
"""

import jax.numpy as jnp

from compgen_jax.models.model import split


def group_grids(grids, max_waste: float) -> list[tuple]:
    """The grids, largest first, cut into groups that waste less than `max_waste` of their work
    where every grid has as many trials; each in ascending order. 0 leaves each by itself."""
    groups = []
    for grid in sorted(set(grids), reverse=True):
        if groups and waste((*groups[-1], grid)) < max_waste:
            groups[-1] = (grid, *groups[-1])
        else:
            groups.append((grid,))
    return groups


def waste(grids) -> float:
    """Share of the work that padding `grids` to their largest adds, the work of a model being
    proportional to its pixels."""
    return 1 - sum((grid / max(grids)) ** 2 for grid in grids) / len(grids)


def pad_code(code, parts, parts_like):
    """A code (E,) of one part per factor, of these lengths, with zeros behind each part."""
    pairs = zip(split(code, parts), parts_like, strict=True)
    return jnp.concatenate([jnp.pad(part, (0, length - len(part))) for part, length in pairs])


def pad(array, shape):
    """The array with zeros at its ends."""
    return jnp.pad(array, [(0, n - m) for m, n in zip(array.shape, shape, strict=True)])


def crop(array, shape):
    """The inverse of `pad`."""
    return array[tuple(slice(0, n) for n in shape)]
