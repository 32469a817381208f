"""Does a run compose? The verdict on models whose answer is known, for every family of tasks: right
for one that always is, and never for one that repeats what it was shown."""

import functools
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from compgen_jax import cli
from compgen_jax.claims import REPRODUCED, judge
from compgen_jax.config import Config, TrainingConfig
from compgen_jax.runs import judge_run
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, ImageConfig
from compgen_jax.tasks.inverse import Inverse
from compgen_jax.tasks.module_supports import ModuleSupportConfig
from compgen_jax.tasks.modules import Modules
from compgen_jax.tasks.preference import Preference
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.tasks.supports import SupportConfig
from tests import scoring

SEEDS = (0, 1, 2)
ROOT = Path(__file__).parents[2]


HOLE = SupportConfig(region="donut", low=2, high=7, sampling="every_cell")
GAP = GapConfig(low=120.0, high=240.0, of=(4,))
SETS = {"modules": 5, "most": 2, "tests": 24, "support": ModuleSupportConfig(seen=9)}
TASKS = {
    "bumps": Bump(grid=10, support=HOLE, image=ImageConfig(sigma=1.0)),
    "coordinates": Inverse(grid=10, support=HOLE, answer="coordinates"),
    "codes": Inverse(grid=10, support=HOLE, answer="code"),
    "turned": Rotation(side=10, objects=(4, 7), angles=72, samples=72, gap=GAP),
    "modules": Modules(inputs=4, hidden=4, outputs=4, samples=4, **SETS),
    "preference": Preference(features=5, objects=2, **SETS),
    "sums": replace(cli.load_config(f"{ROOT / 'tests' / 'own_addition.py'}:quick").task, p=25),
    "sprites": cli.load_config(f"{ROOT / 'docs' / 'tutorials' / 'own_task.py'}:quick").task,
}


@functools.cache
def asked_at(name):
    """(run, scorer, query): of all models of a task; the run without networks has its trivial
    predictors, and the query is what they are given."""
    settings = TASKS[name]
    config = Config(name="known", task=settings, training=TrainingConfig(seeds=SEEDS))
    task = settings.make()
    query = jax.device_get(jax.jit(functools.partial(tasks.query, task))(jax.random.key(0)))
    return Run(config, task, SEEDS), scoring.scorer(task, query.truths), query


def lookups(name):
    """{name: (B, ...)}: what models say that repeat what was shown; the last ones move one factor
    alone."""
    run, _, query = asked_at(name)
    answers = {"nearest": query.nearest, "nearest, same labels": query.same_labels}
    for predictor, predict in tasks.with_lookups_along_factors(run.task).baselines.items():
        if predictor.startswith("nearest_along"):
            answers[predictor] = predict(query)
    return answers


def test_what_is_rendered_is_held_against_the_best_trivial_predictor():
    run, scorer, query = asked_at("bumps")
    cells = scorer(np.asarray(query.truths)[None].repeat(len(SEEDS), 0))
    trivial = {name: {("ood", "rendered"): share} for name, share in (("a", 0.2), ("b", 0.5))}
    known = Run.known(SEEDS, cells, name="known", task=run.task, trivial=trivial)
    conditions = judge(judge_run.composes, {"run": known})["conditions"]
    name = "share rendered OOD, less the best trivial predictor's"
    assert conditions[name]["value"] == 0.5


def verdict(name, answers_Bx):
    """On three seeds that say this, each with a gain of its own: errors of 0 have no logarithm."""
    run, scorer, _ = asked_at(name)
    gains = 1 + 2e-6 * (2 + np.arange(len(SEEDS))).reshape(-1, *(1,) * np.ndim(answers_Bx))
    cells = scorer(gains * np.asarray(answers_Bx)[None])
    known = Run.known(SEEDS, cells, name="known", task=run.task, trivial=run.trivial)
    return judge(judge_run.composes, {"run": known})["verdict"]


@pytest.mark.usefixtures("numpy_rules")  # for a task of the documentation
@pytest.mark.parametrize("name", TASKS)
def test_whoever_is_right_composes_and_no_lookup_does(name):
    assert verdict(name, asked_at(name)[2].truths) == REPRODUCED
    for lookup, answers in lookups(name).items():
        assert verdict(name, answers) != REPRODUCED, lookup
    # seven tenths of the best trivial predictor's squared error are too much
    run, _, asked = asked_at(name)
    error = run.trivial["nearest_seen"]["ood", run.task.error]
    share = (0.7 * judge_run.best_baseline(run, run.task.error)[1] / error) ** 0.5
    truths = np.asarray(asked.truths)
    assert verdict(name, truths + share * (asked.nearest - truths)) != REPRODUCED
