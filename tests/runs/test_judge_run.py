"""Does a run compose? The verdict on models whose answer is known, for every family of tasks: right
for one that always is, and never for one that repeats what it was shown."""

import functools
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import cli
from compgen_jax.claims import CONTRADICTED, REPRODUCED, judge
from compgen_jax.config import Config, TrainingConfig
from compgen_jax.runs import judge_run, results
from compgen_jax.runs.run import Run
from compgen_jax.settings import Family
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, ImageConfig, SizeConfig
from compgen_jax.tasks.inverse import Inverse
from compgen_jax.tasks.module_supports import ModuleSupportConfig
from compgen_jax.tasks.modules import Modules
from compgen_jax.tasks.preference import Preference
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.tasks.task import Example, Factor, over_cells

SEEDS = (0, 1, 2)
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Tones(Family):
    """A frequency, which is a label, and a phase: a quarter of the phases of one frequency is held
    out."""

    phases: int = 24

    def make(self):
        frequency = Factor("frequency", np.arange(1.0, 5), real=False)
        phase = Factor("phase", np.arange(self.phases) * (360 / self.phases), period=360.0)
        held_out = lambda at: (at[..., 0] == 4) & (at[..., 1] >= 90) & (at[..., 1] < 180)
        times = jnp.arange(16) * (2 * jnp.pi / 16)

        def example(key, point):
            angle = jnp.radians(point[1])
            one_of = (jnp.arange(1, 5) == point[0]).astype(jnp.float32)
            code = jnp.concatenate([one_of, jnp.stack([jnp.cos(angle), jnp.sin(angle)])])
            return Example(code, jnp.sin(point[0] * times + angle))

        return over_cells((frequency, phase), held_out, example)


@dataclass(frozen=True)
class Waves(Family):
    """Two ordered factors of different weight, of which the corner is held out."""

    steps: int = 6

    def make(self):
        values = np.linspace(1.0, 6.0, self.steps)
        held_out = lambda points: (points[..., 0] > 4) & (points[..., 1] > 4)
        time = jnp.linspace(0.0, 3.0, 16)
        wave = lambda key, point: Example(point, point[1] * jnp.sin(point[0] * time))
        return over_cells((Factor("frequency", values), Factor("height", values)), held_out, wave)


def bumps(grid, **others):
    hole = SupportConfig(region="donut", low=grid // 4, high=3 * grid // 4, sampling="every_cell")
    return Bump(grid=grid, support=hole, image=ImageConfig(sigma=grid / 10), **others)


def inverse(grid, answer):
    hole = SupportConfig(region="donut", low=grid // 4, high=3 * grid // 4, sampling="every_cell")
    return Inverse(grid=grid, support=hole, answer=answer)


def turned(angles):
    gap = GapConfig(low=120.0, high=240.0, of=(4,))
    return Rotation(side=10, objects=(4, 7), angles=angles, samples=angles, gap=gap)


SETS = {"modules": 5, "most": 2, "tests": 24, "support": ModuleSupportConfig(seen=9)}
TASKS = {
    "tones": Tones(24),
    "more tones": Tones(96),
    "waves": Waves(6),
    "bumps": bumps(10),
    "bumps with sizes": bumps(8, size=SizeConfig(values=5, low=1, high=3)),
    "coordinates": inverse(10, "coordinates"),
    "codes": inverse(10, "code"),
    "turned": turned(72),
    "modules": Modules(inputs=4, hidden=4, outputs=4, samples=4, **SETS),
    "preference": Preference(features=5, objects=2, **SETS),
    "sums": replace(cli.load_config(f"{ROOT / 'tests' / 'own_addition.py'}:quick").task, p=25),
    "sprites": cli.load_config(f"{ROOT / 'docs' / 'tutorials' / 'own_task.py'}:quick").task,
}


@functools.cache
def asked_at(name):
    """(run, scorer, question): of all models of a task; the run without networks has its trivial
    predictors, and the question is what they are told."""
    settings = TASKS[name]
    config = Config(name="known", task=settings, training=TrainingConfig(seeds=SEEDS))
    task = settings.make()

    @jax.jit
    def question(key):
        told = []
        capture = {"told": lambda asked: told.append(asked) or asked.truths}
        tasks.trivial_scores(task._replace(baselines=capture), key)
        return told[0]._replace(grid=None)

    asked = jax.device_get(question(jax.random.key(0)))
    scorer = results.scorer(task, asked.truths)
    return Run(config, task, SEEDS), scorer, asked


def lookups(name):
    """{name: (B, ...)}: what models say that repeat what was shown; the last ones move one factor
    alone."""
    (run, _, asked) = asked_at(name)
    task = run.task
    answers = {"nearest": asked.nearest, "nearest, same labels": asked.same_labels}
    if not tasks.has_grid(task):
        return answers
    points, seen = tasks.points(task), ~asked.held_out
    for index, factor in enumerate(task.factors):
        others = np.delete(points, index, axis=1)
        chosen = tasks.nearest_seen(task, asked.held_out)[0]
        for cell in np.flatnonzero(asked.held_out):
            line = np.flatnonzero(seen & (others == others[cell]).all(axis=1))
            if len(line):
                apart = np.abs(points[line, index] - points[cell, index])
                apart = np.minimum(apart, factor.period - apart)
                chosen[cell] = line[np.argmin(apart)]
        answers[f"nearest along {factor.name}"] = asked.truths[chosen]
    return answers


def known_run(name, answers_Bx):
    """A run of three seeds that say this, each with a gain of its own: errors of 0 have no log."""
    run, scorer, _ = asked_at(name)
    gains = 1 + 2e-6 * (2 + np.arange(len(SEEDS))).reshape(-1, *(1,) * np.ndim(answers_Bx))
    cells = scorer(gains * np.asarray(answers_Bx)[None])
    return Run.known(SEEDS, cells, name="known", task=run.task, trivial=run.trivial)


def composition(run):
    return judge(judge_run.composes, {"run": run})


@pytest.fixture(autouse=True)
def numpy_rules():
    """A task of the documentation broadcasts as NumPy does."""
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.parametrize("name", TASKS)
def test_whoever_is_right_composes_and_no_lookup_does(name):
    judged = composition(known_run(name, asked_at(name)[2].truths))
    assert judged["verdict"] == REPRODUCED, judged
    for lookup, answers in lookups(name).items():
        judged = composition(known_run(name, answers))
        assert judged["verdict"] != REPRODUCED, (lookup, judged)


@pytest.mark.parametrize("name", ["tones", "more tones"])
def test_the_nearest_phase_shown_is_no_composition(name):
    """The nearest cell swaps the frequency, which is a greater error than the nearest phase. So
    beside it alone, a model that answers with the nearest phase would compose."""
    answers = lookups(name)["nearest along phase"]
    run = known_run(name, answers)
    error = np.square(np.asarray(answers) - run.cells.truths)[run.cells.held_out].mean()
    trivial = {name: means["ood", "mse"] for name, means in run.trivial.items()}
    assert error < 0.5 * min(trivial["nearest_seen"], trivial["best_constant"])
    assert error == pytest.approx(trivial["nearest_same_labels"], rel=1e-5)
    judged = composition(run)
    (ratio,) = (one["value"] for name, one in judged["conditions"].items() if "error OOD" in name)
    assert ratio == pytest.approx(1, rel=1e-3) or ratio > 1
    assert judged["verdict"] == CONTRADICTED
