"""compgen_jax: a laboratory for compositional generalization.

Data flows one way: tasks -> models -> training -> metrics -> claims -> figures, and every room
imports only the rooms to its left. Functions are written for one point, one seed, one trial;
batches, seeds, trials and devices are `vmap` and `pmap` on top.

Shape legend, used as a suffix where it helps (`codes_BxE`, `image_HxW`):

    B  points (a batch, or every cell of the grid)     F  factors
    E  code length                                     V  values of a factor, (V_1, ..., V_F)
    C  channels                                        D  flattened features of a layer
    L  layers                                          T  trials (seeds count as trials)
    N  side of a square image, in pixels               H, W  image height and width

A point is a vector of factor values (F,); cells are all combinations of the factors' values
(`grids`). In image tasks the factors x (the column) and y (the row) are in pixels, pixel centres
lie at the integers 0..N-1, and a pixel is addressed as `image[y, x]`.

`import compgen_jax as cg` has what a notebook needs, imported when it is first used (`api`).
"""

from typing import TYPE_CHECKING

__version__ = "0.3.0"

__all__ = (
    "train",
    "sweep",
    "load",
    "analyze",
    "judge",
    "held_out",
    "examples",
    "score",
    "probe",
    "free_score",
    "explore",
    "geometry",
    "Run",
    "Sweep",
    "ConfigError",
    "RunError",
)

if TYPE_CHECKING:  # for editors and type checkers, which do not call `__getattr__`
    from compgen_jax.api import (
        ConfigError,
        Run,
        RunError,
        Sweep,
        analyze,
        examples,
        explore,
        free_score,
        geometry,
        held_out,
        judge,
        load,
        probe,
        score,
        sweep,
        train,
    )


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module 'compgen_jax' has no attribute {name!r}")
    from compgen_jax import api

    return getattr(api, name)


def __dir__():
    return sorted({*globals(), *__all__})
