"""Students whose answers are known: what a criterion must decide rightly.

Each answers real tasks of a teacher, on sets of modules that it has seen and on held-out ones, at
any width and with any sets seen. Dimensions: M modules, T sets of them, I inputs, O outputs, B
tasks, those of seen sets first, then those of held-out ones.
"""

import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import jax
import numpy as np

from compgen_jax.calibration import KnownRun
from compgen_jax.config import SweepConfig, changed
from compgen_jax.papers.scale import constructions, presets
from compgen_jax.tasks import module_supports
from compgen_jax.tasks.module_supports import ModuleSupportConfig

QUICK = replace(presets.HYPERTEACHER_QUICK, sweep=SweepConfig())
SEEDS = (0, 1, 2, 3)
MOST, SIZE = 3, 8  # modules active at once; inputs, hidden units and outputs, as in quick runs
TASKS = 512  # asked of each region
FITTED = 2048  # seen tasks, to which a bilinear map is fitted
GAIN, NOISE, TRUST = 0.005, 0.03, 0.02  # a seed's jitter: of the gain, of answers, of the trust
NARROW = 16  # the width at which a learner has come half of its way
PER_MODULE, SHARE = 8.0, 0.8  # seen sets for each module, and of all, to come 1 - 1/e of the way
LEAST = 3  # seen sets of a module without which a learner does not know it


def known_run(scores: dict, layers=None, outputs=None, *, model="task_mlp", **fields):
    """A known student in place of a quick run. scores: (T,) by name, as in a run's summary.
    layers, outputs: as of `KnownRun`. fields: of the config."""
    names = {"modules": "task.modules", "seen": "task.support.seen", "width": "model.width",
             "support": "task.support.name"}  # fmt: skip
    values = {names[name]: value for name, value in fields.items()}
    config = changed(QUICK, {"model.name": model} | values)
    summary = {
        "seeds": {str(s): {name: each[s] for name, each in scores.items()} for s in SEEDS},
        "task": {"sets": module_supports.n_sets(config.task.modules, MOST), "code_r2": 1.0},
    }
    return KnownRun(SEEDS, None, layers, outputs, config=config, summary=summary)


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


# --- what students answer ----------------------------------------------------------------------


def _by_module(school, rate=PER_MODULE):
    return (1 - np.exp(-school.seen.sum() / school.sets.shape[1] / rate)) * covered(school)


def _by_share(school):
    return 1 - np.exp(-school.seen.mean() / SHARE)


def _learner(school, width, rng, of_sets=_by_module, reverse=False):
    """The bilinear map's answers, moved towards the truth: the further the wider the student is and
    the more sets it has seen; a fifth of what is left less on seen sets."""
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


@cache
def student(
    name, width=256, seen=69, support="random", modules=8, model="task_mlp", draw=""
) -> KnownRun:
    """A known student after training. `draw` tells apart students whose jitter is drawn apart."""
    lesson = school(support, modules, seen)
    by_seed = []
    for seed in SEEDS:
        drawn = f"{name} {lesson.sets.shape} {seen} {width} {support} {draw} {seed}"
        rng = np.random.default_rng(zlib.crc32(drawn.encode()))
        answers = STUDENTS[name].answer(lesson, width, rng)
        answers = answers * (1 + GAIN * rng.normal())
        noise = NOISE * np.exp(0.2 * rng.normal()) * lesson.truths.std()
        by_seed.append(_scores(answers + noise * rng.normal(size=answers.shape), lesson))
    scores = {key: np.array([one[key] for one in by_seed]) for key in by_seed[0]}
    where = {"modules": modules, "seen": seen, "width": width, "support": support}
    return known_run(scores, model=model, **where)


def _scores(answers_BxO, school) -> dict:
    found, mean = {}, school.truths.mean(axis=0)
    for region, rows in (("id", school.known), ("ood", ~school.known)):
        true = school.truths[rows]
        mse = np.square(answers_BxO[rows] - true).mean()
        found[f"{region}.mse"] = mse
        found[f"{region}.r2"] = 1 - mse / np.square(true - mean).mean()
        found[f"{region}.gain"] = 1 - mse / np.square(school.bilinear[rows] - true).mean()
    return found
