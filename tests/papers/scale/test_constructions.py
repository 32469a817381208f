"""Networks by construction against the teacher as loops in float64."""

from functools import cache, partial

import jax
import numpy as np
import pytest

from compgen_jax.papers.scale import constructions
from compgen_jax.tasks.modules import Modules
from tests.tasks.test_modules import by_hand


def draw_teacher(key, *sizes):
    draw = jax.jit(lambda key: constructions.draw_teacher(key, *sizes)[:3])
    return constructions.Teacher(*jax.device_get(draw(key)), sizes[-1])


def draw_tasks(key, teacher, count, law):
    return jax.device_get(jax.jit(lambda k: constructions.draw_tasks(k, teacher, count, law))(key))


@cache
def case(modules, size, law):
    teacher = draw_teacher(jax.random.key(modules), modules, size, size, size, 3)
    return teacher, *draw_tasks(jax.random.key(7), teacher, 40, law)


def answers(teacher, z_BxM, x_BxI):
    """(B, O) the teacher's, by its definition in float64."""
    pairs = zip(z_BxM, x_BxI, strict=True)
    return np.array([by_hand(teacher, z, x[None])[0] for z, x in pairs])


def errors(function, teacher, z_BxM, x_BxI):
    true = answers(teacher, z_BxM, x_BxI)
    return np.abs(np.float64(jax.jit(jax.vmap(function))(z_BxM, x_BxI)) - true)


def test_no_entry_of_a_drawn_teacher_is_beyond_the_largest():
    """The law itself: tests/tasks/test_modules.py."""
    assert constructions.SCALE == Modules().scale  # as of the tasks' teacher
    largest = constructions.LARGEST / 16**0.5
    assert (
        0.97 * largest
        < np.abs(draw_teacher(jax.random.key(0), 64, 16, 32, 24, 3).weights).max()
        <= largest
    )


@pytest.mark.parametrize(("modules", "active"), [(2, 2), (8, 3)])
@pytest.mark.parametrize("law", constructions.LAWS)
def test_tasks_have_weights_of_the_law_on_every_set_alike(law, modules, active):
    z_BxM, x_BxI = draw_tasks(jax.random.key(3), case(modules, 4, law)[0], 2000, law)
    assert ((z_BxM > 0).sum(1) == active).all()
    assert np.abs((z_BxM > 0).mean(0) - active / modules).max() < 0.05
    assert np.allclose(np.unique(z_BxM[z_BxM > 0]), constructions.LAWS[law])
    assert x_BxI.min() >= -1 and x_BxI.max() <= 1 and np.ptp(x_BxI) > 1.98


@pytest.mark.parametrize(("modules", "size"), [(4, 8), (32, 16)])
def test_k_hot_is_exact_with_neurons_linear_in_the_modules(modules, size):
    teacher, z_BxM, x_BxI = case(modules, size, "khot")
    network = constructions.k_hot(teacher)
    # at the corners gates are nearest to opening
    for inputs in (x_BxI, np.where(x_BxI > 0, np.float32(1), np.float32(-1))):
        assert errors(partial(constructions.apply, network), teacher, z_BxM, inputs).max() < 1e-5
    widths = [modules + size, 2 * modules * size, size, size]
    assert [kernel.shape for kernel, _ in network] == [*zip(widths, widths[1:], strict=False)]


def test_gates_of_k_hot_are_closed_by_the_least_bound():
    """At z = 0 the greatest u over the inputs' corners brings a gate to 0, and no higher."""
    teacher = draw_teacher(jax.random.key(0), 2, 3, 4, 2, 2)
    kernel, bias = constructions.k_hot(teacher)[0]
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    before = corners @ np.asarray(kernel)[2:] + bias[None]
    np.testing.assert_allclose(before.max(axis=0), 0.0, atol=1e-6)


def guarantee(teacher, knots, largest=None):
    """(O,) what no error of `graded` exceeds. An interpolated square is too large by spacing² / 4
    at most, so a product is wrong by spacing² / 16 of half its weight's range."""
    weights_MxHxI, _, readout_OxH, most = (np.asarray(part, np.float64) for part in teacher)
    ordered = np.sort(weights_MxHxI, axis=0)
    top, bottom = ordered[-int(most) :].clip(0).sum(0), ordered[: int(most)].clip(None, 0).sum(0)
    half_HxI = (top - bottom) / 2 / most**0.5
    if largest is not None:
        half_HxI = np.full_like(half_HxI, largest * most**0.5)
    spacing = 4 / (knots + 1)
    return np.abs(readout_OxH) @ half_HxI.sum(-1) * spacing**2 / 16


@pytest.mark.parametrize("largest", [None, constructions.LARGEST / 8**0.5])
@pytest.mark.parametrize("modules", [2, 32])
def test_graded_is_near_the_teacher_within_its_guarantee(modules, largest):
    for law in constructions.LAWS:
        teacher, z_BxM, x_BxI = case(modules, 8, law)
        for knots in (1, 8, 64):
            network = constructions.graded(teacher, knots, largest)
            error = errors(partial(constructions.apply, network), teacher, z_BxM, x_BxI).max()
            guaranteed = guarantee(teacher, knots, largest).max()
            assert guaranteed / 200 < error < guaranteed
            assert sum(len(bias) for _, bias in network[:2]) == 2 * 8 * 8 * knots + 2 * 8


def test_slopes_and_neurons_of_a_known_table():
    known = [
        {"modules": m, "knots": k, "neurons": 10 * k, "seed": 5, "rmse": m / k**2,
         "r2": 1 - (m / k**2) ** 2}
        for m in (8, 32)
        for k in (16, 4, 8)
    ]  # fmt: skip
    slopes, needed = constructions.scaling(known, 8 / 36)
    assert slopes[8, 5] == pytest.approx(-2)
    assert needed[8, 5] == pytest.approx(60) and needed[32, 5] == pytest.approx(120)
    assert np.isnan(constructions.scaling(known, 9.0)[1][8, 5])


def test_rows_are_of_the_errors_over_all_tasks():
    (row,) = constructions.table("discrete", (8,), (5,), (3,), size=8, count=40)
    keys = jax.random.split(jax.random.key(5))
    teacher = draw_teacher(keys[0], 8, 8, 8, 8, 3)
    tasks = draw_tasks(keys[1], teacher, 40, "discrete")
    error = errors(partial(constructions.apply, constructions.graded(teacher, 3)), teacher, *tasks)
    assert row["neurons"] == 2 * 8 * 8 * 3 + 2 * 8
    assert row["max_error"] == pytest.approx(error.max(), abs=1e-5)
    assert row["rmse"] == pytest.approx(np.mean(error**2) ** 0.5, rel=1e-3)
    variance = answers(teacher, *tasks).var(axis=0).mean()
    assert row["r2"] == pytest.approx(1 - np.mean(error**2) / variance, abs=1e-5)
