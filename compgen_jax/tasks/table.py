"""Images from a file: a scene whose pictures are looked up, in a constant of the program or, if it
is large, by a callback."""

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import demand, number, traced
from compgen_jax.tasks import table_files
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.scene import Scene, SceneTask

# Bytes of a table that is a constant. Each program is compiled with its own copy, at 25 ms per MB
# on a CPU. A callback costs less there, but a program that has one is not kept on disk. An
# accelerator waits for it in every step.
CONSTANT, CONSTANT_ON_ACCELERATOR = 2**24, 2**27


@dataclass(frozen=True)
class ImageTable(SceneTask):
    """The images of the file at `path`, of which `subset` keeps some values of factors, such as
    (('shape', ('square', 'heart')), ('posX', '::4')): labels, places from 0, or a slice. `side`
    makes images smaller (0: as stored)."""

    held_out: str = traced("")
    path: str = ""
    subset: tuple = ()
    side: int = number(0, low=0, high=4096)

    def scene(self) -> Scene:
        """Raises ConfigError for a file that is missing or wrong."""
        demand(self.path, "config.task.path='': must name a file of images")
        table = table_files.read(self.path, self.subset, self.side)
        exists_B, rows_B, images = table.exists_B, table.rows_B, table.images
        # jax has no other floats than float16 and float32, of native order
        is_other = images.dtype.kind == "f" and images.dtype != np.float16
        dtype = np.dtype(np.float32) if is_other else images.dtype
        result = jax.ShapeDtypeStruct(table_files.take(images, 0).shape, dtype)
        n_bytes = len(rows_B) * math.prod(result.shape) * dtype.itemsize

        def look_up(cell):
            # no part of jax may be used here: it could wait for the program that waits for it
            return table_files.take(images, rows_B[np.asarray(cell)]).astype(dtype)

        whole = functools.cache(functools.partial(look_up, range(len(rows_B))))

        def picture(point):
            """The image of the nearest cell, float32 from 0 to 1."""
            cell = tasks.nearest_cell(table.factors, point)
            most = CONSTANT if jax.default_backend() == "cpu" else CONSTANT_ON_ACCELERATOR
            if n_bytes <= most:
                image = jnp.asarray(whole())[cell]
            else:
                image = jax.pure_callback(look_up, result, cell, vmap_method="broadcast_all")
            return image.astype(jnp.float32) / table.white

        return Scene(
            table.factors,
            picture,
            points=None if exists_B.all() else tasks.cells(table.factors)[exists_B],
            anywhere=False,
            background=table.background,
            says=table.says,
        )
