"""Students whose answers are known: what a criterion must decide rightly.

Each answers real tasks of a teacher, of sets of modules that it has seen and of held-out ones, at
any width and with any sets seen. Dimensions: M modules, T sets of them, I inputs, O outputs,
B tasks, of seen sets first, of held-out ones then.
"""

import zlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from compgen_jax.papers.scale import constructions

MOST, SIZE = 3, 8  # modules active at once; inputs, hidden units and outputs, as in quick runs
TASKS = 512  # asked of each region
FITTED = 2048  # seen tasks, to which a bilinear map is fitted
GAIN, NOISE, TRUST = 0.005, 0.03, 0.02  # a seed's jitter: of the gain, of answers, of the trust
NARROW = 16  # the width at which a learner has come half of its way
PER_MODULE, SHARE = 8.0, 0.8  # seen sets for each module, and of all, to come 1 - 1/e of the way
LEAST = 3  # seen sets of a module without which a learner does not know it


class School(NamedTuple):
    """sets (T, M) and seen (T,), both bool; latents (B, M), truths (B, O) and known (B,) bool: of
    seen sets; bilinear, singles and nearest (B, O): what these predict."""

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


def school(sets_TxM, seen_T) -> School:
    """One teacher for each number of modules, asked about fresh tasks."""
    modules, rng = sets_TxM.shape[1], np.random.default_rng(0)
    sizes = modules, SIZE, SIZE, SIZE, MOST
    teacher = constructions.draw_teacher(jax.random.key(modules), *sizes)
    answers = partial(_answers, teacher)

    def draw(region_T, count):
        active = sets_TxM[np.resize(rng.permutation(np.flatnonzero(region_T)), count)]
        weights = rng.choice(constructions.LAWS["discrete"], active.shape)
        return active * weights, rng.uniform(-1, 1, (count, SIZE))

    shown = draw(seen_T, FITTED)
    latents, inputs = map(np.concatenate, zip(draw(seen_T, TASKS), draw(~seen_T, TASKS),
                                              strict=True))  # fmt: skip
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
    z, x = (np.concatenate([np.ones((len(one), 1)), one], axis=1)
            for one in (latents_BxM, inputs_BxI))  # fmt: skip
    return (z[:, :, None] * x[:, None, :]).reshape(len(z), -1)


def _moved(latents_BxM, seen_SxM):
    """Latents of the nearest seen sets, by the modules in one of both alone; a module that is new
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


def _by_module(school, rate=PER_MODULE):
    return (1 - np.exp(-school.seen.sum() / school.sets.shape[1] / rate)) * covered(school)


def _by_share(school):
    return 1 - np.exp(-school.seen.mean() / SHARE)


def _learner(school, width, rng, of_sets=_by_module, reverse=False):
    """The bilinear map's answers, and the more of the way to the truth the wider it is and the more
    sets it has seen; a fifth of what is left less on seen sets."""
    trust = np.minimum(of_sets(school) * width / (width + NARROW) * (1 + TRUST * rng.normal()), 1)
    left = (trust if reverse else 1 - trust) * np.where(school.known, 0.8, 1.0)
    return school.truths + left[:, None] * (school.bilinear - school.truths)


def _memorizer(school, width, rng, of):
    return np.where(school.known[:, None], school.truths, of(school, width))


def _approaching(school, width):
    mean = school.truths.mean(axis=0)
    way = (1 - np.exp(-school.seen.mean() / SHARE)) * width / (width + NARROW)
    return mean + way * (school.bilinear - mean)


class KnownStudent(NamedTuple):
    """answer: school, width, random generator of a seed -> (B, O).  does: what, in words."""

    answer: Callable
    does: str


STUDENTS = {
    "composer": KnownStudent(
        lambda s, w, rng: s.truths, "the teacher itself, at every width and with any sets seen"
    ),
    "learner": KnownStudent(
        _learner,
        "between the bilinear map and the teacher, nearer to it the wider it is and the more sets "
        "it has seen of each module, in sets whose modules it has seen often enough and linked",
    ),
    "quick learner": KnownStudent(
        partial(_learner, of_sets=partial(_by_module, rate=PER_MODULE / 2)),
        "a learner that needs half as many sets",
    ),
    "by share": KnownStudent(
        partial(_learner, of_sets=_by_share),
        "a learner by the share of all sets that it has seen, whichever these are",
    ),
    "reversed": KnownStudent(
        partial(_learner, reverse=True),
        "the worse the wider it is and the more sets it has seen",
    ),
    "bilinear": KnownStudent(
        lambda s, w, rng: s.bilinear, "the best map bilinear in (1, latent) and (1, input)"
    ),
    "sum of singles": KnownStudent(
        lambda s, w, rng: s.singles, "the sum of what each active module answers alone"
    ),
    "nearest": KnownStudent(
        lambda s, w, rng: s.nearest, "what the nearest seen set answers, so right on seen ones"
    ),
    "memorizer": KnownStudent(
        partial(_memorizer, of=lambda s, w: s.bilinear),
        "right on seen sets, the bilinear map on held-out ones",
    ),
    "approacher": KnownStudent(
        partial(_memorizer, of=_approaching),
        "right on seen sets; on held-out ones from the mean answer to the bilinear map, the "
        "further the wider it is and the more sets it has seen",
    ),
    "noise": KnownStudent(
        lambda s, w, rng: s.truths.std() * rng.normal(size=s.truths.shape),
        "answers that do not depend on the task",
    ),
}


def numbers(name: str, school: School, width: int, seeds: int, case="") -> dict:
    """What `composing` asks of a run, (T,) each: 'id.r2', 'ood.gain' and so on. `case` is in the
    draw of the seeds' jitter, with the name, the width and the sets seen."""
    found = []
    for seed in range(seeds):
        drawn = f"{name} {school.sets.shape} {school.seen.sum()} {width} {case} {seed}"
        rng = np.random.default_rng(zlib.crc32(drawn.encode()))
        answers = STUDENTS[name].answer(school, width, rng)
        answers = answers * (1 + GAIN * rng.normal())
        noise = NOISE * np.exp(0.2 * rng.normal()) * school.truths.std()
        found.append(_scores(answers + noise * rng.normal(size=answers.shape), school))
    return {key: np.array([one[key] for one in found]) for key in found[0]}


def _scores(answers_BxO, school) -> dict:
    found, mean = {}, school.truths.mean(axis=0)
    for region, rows in (("id", school.known), ("ood", ~school.known)):
        true = school.truths[rows]
        mse = np.square(answers_BxO[rows] - true).mean()
        found[f"{region}.mse"] = mse
        found[f"{region}.r2"] = 1 - mse / np.square(true - mean).mean()
        found[f"{region}.gain"] = 1 - mse / np.square(school.bilinear[rows] - true).mean()
    return found
