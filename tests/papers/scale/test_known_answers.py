"""Known students, constructions and readings do what they say."""

from math import comb

import numpy as np
import pytest

from compgen_jax.papers.scale import (
    constructions,
    known_constructions,
    known_school,
    known_students,
    neurons,
)
from compgen_jax.papers.scale.known_readings import READINGS, runs_of
from compgen_jax.papers.scale.quantities import score


@pytest.fixture(scope="module")
def school():
    return known_school.school("random", 8, 69)


def test_known_students_answer_what_they_say(school):
    rng, seen, width = np.random.default_rng(0), school.known, 256
    answer = lambda name: known_students.STUDENTS[name].answer(school, width, rng)
    active = school.latents > 0
    shown = {tuple(row) for row in school.sets[school.seen]}
    assert [tuple(row) in shown for row in active] == seen.tolist()
    assert set(np.unique(school.latents)) == {0.0, *constructions.LAWS["discrete"]}
    assert school.truths.std() > 0.3
    for name in ("composer", "memorizer", "nearest", "approacher"):
        np.testing.assert_allclose(answer(name)[seen], school.truths[seen], atol=1e-5)
    single = active.sum(axis=1) == 1
    assert single.any() and not single.all()
    np.testing.assert_allclose(school.singles[single], school.truths[single], atol=1e-5)
    left = (answer("learner") - school.truths) / (school.bilinear - school.truths)
    np.testing.assert_allclose(left[seen], 0.8 * left[~seen][0, 0], rtol=1e-6)
    assert 0 < left[~seen].min() and left[~seen].max() < 1
    np.testing.assert_allclose(answer("memorizer")[~seen], school.bilinear[~seen])


def test_the_bilinear_map_is_the_best_of_its_kind(school):
    error = np.square(school.bilinear - school.truths)[school.known].mean()
    variance = school.truths[school.known].var(axis=0).mean()
    assert 0.8 < 1 - error / variance < 0.9
    bilinear = known_students.student("bilinear", 64)
    np.testing.assert_allclose(score(bilinear, "ood.gain"), 0, atol=0.05)
    np.testing.assert_allclose(score(bilinear, "id.r2"), 1 - error / variance, atol=0.02)


@pytest.mark.parametrize(
    "support, share", [("random", (1, 1)), ("disconnected", (0, 0)), ("unpopular", (0, 0.3))]
)
def test_covered_tasks_by_a_loop(support, share):
    school = known_school.school(support, 8, 44)
    covered = known_school.covered(school)
    shown = [set(np.flatnonzero(row)) for row in school.sets[school.seen]]
    for latent, one in list(zip(school.latents, covered, strict=True))[::37]:
        members = set(np.flatnonzero(latent))
        reached = {min(members)}
        for _ in range(8):
            reached |= {m for each in shown if each & reached for m in each}
        often = all(sum(m in each for each in shown) >= 3 for m in members)
        assert one == (often and members <= reached)
    low, high = share
    assert low <= covered[~school.known].mean() <= high


def test_a_bank_per_task_is_exact_and_a_small_bound_is_not():
    rows = {name: known_constructions.exact(name).exact for name in known_constructions.EXACT}
    errors = {name: max(row["max_error"] for row in own) for name, own in rows.items()}
    assert errors["k-hot gates"] < 1e-5 and errors["bank per task"] < 1e-5
    assert errors["small bound"] > 0.1 and errors["graded"] > 1e-4
    for row in rows["bank per task"]:
        assert row["neurons"] == comb(row["modules"], 3) * 8


def test_scaled_rows_have_the_error_that_they_say():
    rows = {name: known_constructions.graded(name).graded for name in known_constructions.GRADED}
    slopes = constructions.error_slopes(rows["steps"])
    plain = constructions.error_slopes(rows["graded"])
    for case, slope in slopes.items():
        assert slope == pytest.approx(plain[case] + 0.8, abs=1e-6)
    ratios = constructions.neuron_ratios(rows["bank per module"], neurons.ERROR)
    assert all(3.8 < ratio < 4.2 for ratio in ratios.values())


def test_known_readings_recover_as_much_as_they_say():
    for name, sign in (("at the bound", 0), ("tells", 1), ("below", -1)):
        assert name in READINGS
        for run in runs_of(name):
            recovery = run.outputs("decode.recovery")
            apart = recovery - (1 - np.sqrt(1 - score(run, "ood.task_accuracy")))
            assert (np.sign(np.round(apart, 12)) == sign).all() or (recovery == 0).all()
