"""Images from a file: a scene whose pictures are looked up, in a constant of the program or, if it
is large, by a callback."""

import functools
import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import choice, demand, number, traced
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
    makes images smaller (0: as stored).

    Where a combination has several images, each example has one at random. Drawn images are scored
    `against` the nearest of them, or their mean.
    """

    held_out: str = traced("")
    path: str = ""
    subset: tuple = ()
    side: int = number(0, low=0, high=4096)
    against: str = choice("nearest", "nearest", "mean")

    def scene(self) -> Scene:
        """Raises ConfigError for a file that is missing or wrong."""
        demand(self.path, "config.task.path='': must name a file of images")
        table = table_files.read(self.path, self.subset, self.side)
        images, rows_n, exists_B = table.images, table.rows_n, table.exists_B
        # jax has no other floats than float16 and float32, of native order
        is_other = images.dtype.kind == "f" and images.dtype != np.float16
        dtype = np.dtype(np.float32) if is_other else images.dtype
        shape, several = table_files.take(images, 0).shape, int(table.count_B.max())

        # in these two no part of jax may be used: it could wait for the program that waits for it
        def take(index):
            return table_files.take(images, rows_n[np.asarray(index)]).astype(dtype)

        def take_means(cell):
            firsts, counts = table.first_B[np.asarray(cell)], table.count_B[np.asarray(cell)]
            rows = map(np.arange, firsts.ravel(), (firsts + counts).ravel())
            means = [take(some).mean(axis=0, dtype=np.float32) for some in rows]
            return np.reshape(means, (*firsts.shape, *shape))

        image = _looked_up(take, len(rows_n), jax.ShapeDtypeStruct(shape, dtype), table.white)
        of_means = jax.ShapeDtypeStruct(shape, jnp.float32)
        mean_image = _looked_up(take_means, len(exists_B), of_means, table.white)

        def nearest_cell(point):
            """The nearest cell, the first of its images, and how many it has."""
            cell = tasks.nearest_cell(table.factors, point)
            return cell, *(jnp.asarray(of_B)[cell] for of_B in (table.first_B, table.count_B))

        def picture(point):
            cell, first, _ = nearest_cell(point)
            return mean_image(cell) if several > 1 else image(first)

        def sampled(key, point):
            _, first, count = nearest_cell(point)
            return image(first + jax.random.randint(key, (), 0, count))

        def compared(signal, point):
            if self.against == "mean":
                return picture(point)
            _, first, count = nearest_cell(point)

            def closer(index, best):
                other = image(first + index % count)
                error = jnp.mean(jnp.square(signal - other))
                return jax.tree.map(partial(jnp.where, error < best[0]), (error, other), best)

            return jax.lax.fori_loop(0, several, closer, (jnp.inf, image(first)))[1]

        return Scene(
            table.factors,
            picture,
            anywhere=False,
            background=table.background,
            says=table.says,
            rows_B=table.count_B * exists_B,
            sampled=sampled if several > 1 else None,
            compared=compared if several > 1 else None,
        )


def _looked_up(take, count: int, result, white: float):
    """index -> the image, float32 from 0 to 1, of the `count` that `take(indices)` gives."""
    n_bytes = count * math.prod(result.shape) * result.dtype.itemsize
    whole = functools.cache(partial(take, np.arange(count)))

    def image(index):
        most = CONSTANT if jax.default_backend() == "cpu" else CONSTANT_ON_ACCELERATOR
        if n_bytes <= most:
            stored = jnp.asarray(whole())[index]
        else:
            stored = jax.pure_callback(take, result, index, vmap_method="broadcast_all")
        return stored.astype(jnp.float32) / white

    return image
