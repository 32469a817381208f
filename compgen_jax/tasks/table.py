"""Images from a file: a scene whose pictures are looked up. `table_files` says which files.

A picture is looked up within the compiled step. A small table is a constant of the program. A large
one stays in memory, or in the file, and is asked by a callback. There is no loader of our own nor
another's (grain): the lookup of a batch takes half a millisecond, 1% of a step of a decoder of 64 x
64 pixels, and the order of a batch is a pure function of the key, so that a run resumes to the bit.
"""

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import ConfigError, number, traced
from compgen_jax.tasks import table_files
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.scene import Scene, SceneTask

# Bytes of a table that is a constant. Each program is compiled with its own copy, at 25 ms per MB
# on a CPU. A callback costs less there, but a program that has one is not kept on disk. An
# accelerator waits for it in every step.
CONSTANT, CONSTANT_ON_ACCELERATOR = 2**24, 2**27


@dataclass(frozen=True)
class ImageTable(SceneTask):
    """The images of the file at `path`. `subset` keeps some values of factors, such as
    (('shape', ('square', 'heart')), ('posX', '::4')): labels, places from 0, or a slice. `side`
    makes images smaller (0: as stored). See `tasks.table_files.read`.

    Without a sentence nothing is held out.
    """

    held_out: str = traced("")
    path: str = ""
    subset: tuple = ()
    side: int = number(0, low=0, high=4096)

    def scene(self) -> Scene:
        """Raises ConfigError for a file that is missing or wrong."""
        if not self.path:
            raise ConfigError("config.task.path='': must name a file of images")
        table = table_files.read(self.path, self.subset, self.side)
        exists_B = table.exists_B
        return Scene(
            table.factors,
            _lookup(table),
            points=None if exists_B.all() else tasks.cells(table.factors)[exists_B],
            anywhere=False,
            background=table.background,
            says=table.says,
        )


def _lookup(table: table_files.TableFile):
    """point (F,) -> image (H, W) or (H, W, C), float32 from 0 to 1: that of the nearest cell."""
    images, rows_B, shape = table.images, table.rows_B, table.images.shape[1:]
    dtype = table.images.dtype  # jax has no other floats than float16 and float32, of native order
    dtype = np.dtype(np.float32) if dtype.kind == "f" and dtype != np.float16 else dtype

    def look_up(cell):
        # no part of jax may be used here: it could wait for the program that waits for it
        return np.asarray(images[rows_B[np.asarray(cell)]], dtype)

    @functools.cache
    def whole():
        return look_up(np.arange(len(rows_B)))

    def picture(point):
        cell = tasks.nearest_cell(table.factors, point)
        most = CONSTANT if jax.default_backend() == "cpu" else CONSTANT_ON_ACCELERATOR
        if len(rows_B) * math.prod(shape) * dtype.itemsize <= most:
            image = jnp.asarray(whole())[cell]
        else:
            result = jax.ShapeDtypeStruct(shape, dtype)
            image = jax.pure_callback(look_up, result, cell, vmap_method="broadcast_all")
        return image.astype(jnp.float32) / table.white

    return picture
