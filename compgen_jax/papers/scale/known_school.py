"""The tasks that known students are asked about, with what simple maps answer.

Dimensions: M modules, T sets of them, I inputs, O outputs, B tasks, those of seen sets first, then
those of held-out ones.
"""

from functools import cache, partial
from typing import NamedTuple

import jax
import numpy as np

from compgen_jax.papers.scale import constructions
from compgen_jax.tasks import module_supports
from compgen_jax.tasks.module_supports import ModuleSupportConfig

MOST, SIZE = 3, 8  # modules active at once; inputs, hidden units and outputs, as in quick runs
TASKS = 512  # asked of each region
FITTED = 2048  # seen tasks, to which a bilinear map is fitted
LEAST = 3  # seen sets of a module without which a learner does not know it


class School(NamedTuple):
    """The tasks that students are asked about, and what simple maps answer.

    sets (T, M) and seen (T,), both bool.  latents (B, M), truths (B, O) and known (B,) bool: tasks
    of seen sets.  bilinear, singles, nearest (B, O): the best bilinear map, the sum of what single
    modules answer, the answer of the nearest seen set."""

    sets: np.ndarray
    seen: np.ndarray
    latents: np.ndarray
    truths: np.ndarray
    known: np.ndarray
    bilinear: np.ndarray
    singles: np.ndarray
    nearest: np.ndarray


_respond = jax.jit(jax.vmap(constructions.respond, in_axes=(None, 0, 0)))


def _answers(teacher, latents_BxM, inputs_BxI):
    given = (np.asarray(part, np.float32) for part in (latents_BxM, inputs_BxI))
    return np.asarray(_respond(teacher, *given), np.float64)


@cache
def school(support: str, modules: int, seen: int) -> School:
    """Fresh tasks for one teacher, the same for all supports of so many modules."""
    sets_TxM = module_supports.all_sets(modules, MOST)
    settings = ModuleSupportConfig(name=support, seen=seen)
    seen_T = module_supports.split(settings, modules, MOST)
    sizes, rng = (modules, SIZE, SIZE, SIZE, MOST), np.random.default_rng(0)
    teacher = constructions.draw_teacher(jax.random.key(modules), *sizes)
    answers = partial(_answers, teacher)

    def draw(region_T, count):
        active = sets_TxM[np.resize(rng.permutation(np.flatnonzero(region_T)), count)]
        weights = rng.choice(constructions.LAWS["discrete"], active.shape)
        return active * weights, rng.uniform(-1, 1, (count, SIZE))

    shown = draw(seen_T, FITTED)
    pairs = zip(draw(seen_T, TASKS), draw(~seen_T, TASKS), strict=True)
    latents, inputs = map(np.concatenate, pairs)
    products = _products(*shown)
    fitted = np.linalg.pinv(products.T @ products, 1e-10) @ (products.T @ answers(*shown))
    alone = [answers(latents * (np.arange(modules) == m), inputs) for m in range(modules)]
    return School(
        sets_TxM,
        seen_T,
        latents,
        answers(latents, inputs),
        np.arange(2 * TASKS) < TASKS,
        _products(latents, inputs) @ fitted,
        np.sum(alone, axis=0),
        answers(_moved(latents, sets_TxM[seen_T]), inputs),
    )


def _products(latents_BxM, inputs_BxI):
    """(B, (1 + M) (1 + I)) of (1, z) x (1, x)."""
    with_one = lambda values: np.concatenate([np.ones((len(values), 1)), values], axis=1)
    products = with_one(latents_BxM)[:, :, None] * with_one(inputs_BxI)[:, None, :]
    return products.reshape(len(products), -1)


def _moved(latents_BxM, seen_SxM):
    """Latents of the nearest seen sets, which differ in the fewest modules; a module that is new
    has the mean weight."""
    apart = ((latents_BxM > 0)[:, None, :] != seen_SxM[None]).sum(axis=-1)
    nearest = seen_SxM[apart.argmin(axis=1)]
    mean = np.mean(constructions.LAWS["discrete"])
    return nearest * np.where(latents_BxM > 0, latents_BxM, mean)


def covered(school: School):
    """(B,) bool: tasks whose modules all occur in `LEAST` seen sets and are linked by seen sets."""
    together = school.sets[school.seen].astype(int)
    linked = together.T @ together > 0
    for _ in range(len(linked)):
        linked = linked.astype(int) @ linked > 0
    rare = together.sum(axis=0) < LEAST
    active = school.latents > 0
    strange = np.einsum("bm,mn,bn->b", active.astype(int), (~linked).astype(int), active)
    return ~(active & rare).any(axis=1) & (strange == 0)
