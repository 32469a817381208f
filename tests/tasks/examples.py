"""A task of every kind, small; and examples of a task at points, by one program."""

from functools import cache

import jax
import numpy as np

from compgen_jax.tasks.bump import Bump, ImageConfig, SizeConfig, StripesConfig
from compgen_jax.tasks.encodings import CodeConfig, CodesConfig
from compgen_jax.tasks.inverse import Inverse
from compgen_jax.tasks.marginals import MarginalsConfig
from compgen_jax.tasks.module_codes import LatentCodeConfig
from compgen_jax.tasks.module_supports import ModuleSupportConfig
from compgen_jax.tasks.modules import Modules
from compgen_jax.tasks.preference import Preference
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.tasks.sprites import CountsConfig, Sprites
from compgen_jax.tasks.supports import SupportConfig

KEY = jax.random.key(3)
DONUT = SupportConfig(low=3, high=4, samples=90, require_marginals=False)
SIZE = SizeConfig(values=3, smallest=0.8, largest=1.8, low=1, high=1)
FEW = CountsConfig(2, 2, 1, 4, 4)

TASKS = {
    "bump": Bump(grid=8, support=DONUT),
    "sized": Bump(grid=8, size=SIZE, support=SupportConfig("corner", 5, sampling="every_cell")),
    "random": Bump(grid=8, support=SupportConfig("random", sampling="real"), bumps=2),
    "stripes": Bump(
        grid=8,
        image=ImageConfig(polarity="upright"),
        code=CodeConfig("onehot", missing="off_canvas"),
        support=SupportConfig("donut", 2, 6, of=("x",), sampling="without_replacement", samples=9),
        stripes=StripesConfig(1, "shuffled"),
    ),
    "inverse": Inverse(grid=8, support=DONUT),
    "coordinates": Inverse(grid=8, support=DONUT, size=SIZE, answer="coordinates"),
    "rotation": Rotation(side=16, angles=24, samples=48),
    "digits": Rotation(
        side=16, angles=24, samples=24, objects=(4, 7), gap=GapConfig("random", share=0.4, of=(4,))
    ),
    "sprites": Sprites(
        side=16, counts=FEW, held_out="shape == 'square' and posX > .5", loss="bernoulli",
        marginals=MarginalsConfig("mean"), code=CodesConfig(missing="mask"), samples=40,
    ),
    "reading": Sprites(side=16, counts=FEW, asks="factors", measured=9),
    "modules": Modules(modules=6, most=2, inputs=5, hidden=7, outputs=3, samples=4, tests=40),
    "shown again": Modules(modules=6, most=2, inputs=5, samples=4, tests=40, tasks=30),
    "tokens": Modules(
        modules=6, most=2, samples=4, tests=9, weights="khot", code=LatentCodeConfig("tokens"),
        support=ModuleSupportConfig("popular", held_out_share=0.4),
    ),
    "preference": Preference(modules=4, most=2, features=6, objects=3, horizon=5, tests=12),
}  # fmt: skip


@cache
def made(name: str):
    return TASKS[name].make()


def scores_at(task, signals, truths, points, *nearest):
    """{score: (B,) NumPy}."""
    scores = jax.jit(jax.vmap(task.scores))(signals, truths, points, *nearest)
    return jax.device_get(scores)


def predicted(task, baseline: str, query):
    """(B, ...) NumPy, by a trivial predictor of the task."""
    return np.asarray(jax.jit(task.baselines[baseline])(query))


def as_sets(latents_BxM) -> list[frozenset]:
    """The active modules of each latent."""
    return [frozenset(np.flatnonzero(latent).tolist()) for latent in latents_BxM]


def batches(task, steps, size=32):
    """(steps, size, ...) points of these steps and whether they count, compiled as one program."""
    dataset = task.dataset(KEY)
    draw = jax.vmap(lambda step: task.next_batch(KEY, step, dataset, size))
    return jax.device_get(jax.jit(draw)(np.asarray(steps)))


def examples_at(task, points, key=KEY):
    """Leaves (B, ...) NumPy, all drawn by one key."""
    examples = jax.jit(jax.vmap(task.example, (None, 0)))
    return jax.device_get(examples(key, np.asarray(points, np.float32)))
