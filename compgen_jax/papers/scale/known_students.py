"""Students whose answers are known: what a criterion must decide rightly.

Each answers real tasks of a teacher (`known_school`), at any width and with any sets seen.
"""

import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from compgen_jax.config import SweepConfig, changed
from compgen_jax.papers.scale import presets
from compgen_jax.papers.scale.known_school import MOST, covered, school
from compgen_jax.runs.run import Run
from compgen_jax.tasks import module_supports

QUICK = replace(presets.HYPERTEACHER_QUICK, sweep=SweepConfig())
SEEDS = (0, 1, 2, 3)
GAIN, NOISE, TRUST = 0.005, 0.03, 0.02  # a seed's jitter: of the gain, of answers, of the trust
NARROW = 16  # the width at which a learner has come half of its way
PER_MODULE, SHARE = 8.0, 0.8  # seen sets for each module, and of all, to come 1 - 1/e of the way


def known_run(scores: dict, layers=None, outputs=None, *, model="task_mlp", **fields):
    """A known student in place of a quick run. scores: (T,) by name, as in a run's summary.
    layers, outputs: as of `Run.known`. fields: of the config."""
    names = {"modules": "task.modules", "seen": "task.support.seen", "width": "model.width",
             "support": "task.support.name"}  # fmt: skip
    values = {names[name]: value for name, value in fields.items()}
    config = changed(QUICK, {"model.name": model} | values)
    summary = {
        "seeds": {str(s): {name: each[s] for name, each in scores.items()} for s in SEEDS},
        "task": {"sets": module_supports.n_sets(config.task.modules, MOST), "code_r2": 1.0},
    }
    return Run.known(SEEDS, None, layers, outputs, config=config, summary=summary)


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
    way = _by_share(school) * width / (width + NARROW)
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
def student(name, width=256, seen=69, support="random", modules=8) -> Run:
    """A known student after training."""
    lesson = school(support, modules, seen)
    by_seed = []
    for seed in SEEDS:
        drawn = f"{name} {lesson.sets.shape} {seen} {width} {support}  {seed}"
        rng = np.random.default_rng(zlib.crc32(drawn.encode()))
        answers = STUDENTS[name].answer(lesson, width, rng)
        answers = answers * (1 + GAIN * rng.normal())
        noise = NOISE * np.exp(0.2 * rng.normal()) * lesson.truths.std()
        by_seed.append(_scores(answers + noise * rng.normal(size=answers.shape), lesson))
    scores = {key: np.array([one[key] for one in by_seed]) for key in by_seed[0]}
    return known_run(scores, modules=modules, seen=seen, width=width, support=support)


def _scores(answers_BxO, school) -> dict:
    found, mean = {}, school.truths.mean(axis=0)
    for region, rows in (("id", school.known), ("ood", ~school.known)):
        true = school.truths[rows]
        mse = np.square(answers_BxO[rows] - true).mean()
        found[f"{region}.mse"] = mse
        found[f"{region}.r2"] = 1 - mse / np.square(true - mean).mean()
        found[f"{region}.gain"] = 1 - mse / np.square(school.bilinear[rows] - true).mean()
    return found
