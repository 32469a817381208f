"""The bump task reversed, against loops over its points."""

from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, ImageConfig, SizeConfig, StripesConfig
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.inverse import Inverse, inverse, mean_answer
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.tasks.task import Example, Factor, over_cells
from tests.tasks.examples import KEY, examples_at

N = 8
SUPPORT = SupportConfig(region="donut", low=3, high=4, samples=40)
SIZE = SizeConfig(values=3, smallest=0.8, largest=1.8, low=1, high=1)


def fields(code="bump", **others):
    return {"grid": N, "code": CodeConfig(name=code), "support": SUPPORT} | others


@pytest.mark.parametrize(("answer", "polarity"), [("code", "inverted"), ("coordinates", "upright")])
def test_the_image_is_given_and_the_point_asked_for(answer, polarity):
    """Image, row y and column x, and answer in float64; a batch as one by one."""
    of = fields(image=ImageConfig(sigma=1.2, polarity=polarity), size=SIZE)
    task = Inverse(answer=answer, **of).make()
    points = np.float32([[2, 5, 0.8], [6.25, 1.5, 1.3], [0, 7, 1.8]])
    batch, example = examples_at(task, points), jax.jit(task.example)
    i = np.arange(N)
    for b, (x, y, size) in enumerate(np.float64(points)):
        single = example(KEY, points[b])
        chex.assert_trees_all_close(
            single, jax.tree.map(lambda leaf, b=b: leaf[b], batch), atol=1e-6
        )
        row, column = (np.exp(-((i - c) ** 2) / (2 * size**2)) for c in (y, x))
        image = np.outer(row, column)
        np.testing.assert_allclose(
            single.input, 1 - image if polarity == "inverted" else image, atol=1e-6
        )
        parts = [np.exp(-((i - c) ** 2) / 2) for c in (x, y)]
        parts.append(np.exp(-((np.arange(3) - (size - 0.8) / 0.5) ** 2) / 2))
        expected = np.concatenate(parts) if answer == "code" else (x, y, size)
        np.testing.assert_allclose(single.target, expected, atol=1e-6)
        # neither polarity nor softmax is between the model's answer and what is scored
        np.testing.assert_array_equal(task.prediction(single.target), single.target)
        np.testing.assert_array_equal(tasks.truth(task, single.target), single.target)
    inputs, output = tasks.shapes(task)
    assert inputs.shape == (N, N) and output.shape == ((2 * N + 3,) if answer == "code" else (3,))
    assert task.parts == () and task.error == "mse" and task.accuracy == "exact_accuracy"
    assert tasks.score_names(task) == ("exact_accuracy", "mse", "position_accuracy")


@pytest.mark.parametrize(
    "own",
    [{"support": replace(SUPPORT, fresh="cells")},
     {"size": SIZE, "support": replace(SUPPORT, region="corner", sampling="every_cell")}],
)  # fmt: skip
def test_support_and_draws_are_the_bump_tasks(own):
    forward, turned = Bump(**fields(**own)).make(), Inverse(**fields(**own)).make()
    assert turned.examples == forward.examples and turned.units == forward.units
    chex.assert_trees_all_equal(turned.factors, forward.factors)
    points = tasks.points(forward)
    np.testing.assert_array_equal(tasks.points(turned), points)
    np.testing.assert_array_equal(turned.held_out(points), forward.held_out(points))
    draw = lambda task: jax.jit(lambda key: task.next_batch(key, 3, task.dataset(key), 8))
    drawn = [draw(task)(KEY) for task in (forward, turned)]
    chex.assert_trees_all_equal(*drawn)


def test_a_stripe_is_answered_by_the_code_that_has_no_missing_part():
    of = fields(stripes=StripesConfig(copies=1, amplitude=0.5))
    found = jax.jit(Inverse(**of).make().example)(KEY, np.float32([3, np.nan]))
    stripe = 1 - np.tile(0.5 * np.exp(-((np.arange(N) - 3) ** 2) / 2), (N, 1))
    np.testing.assert_allclose(found.input, stripe, atol=1e-6)
    expected = [*np.exp(-((np.arange(N) - 3) ** 2) / 2), *np.zeros(N)]
    np.testing.assert_allclose(found.target, expected, atol=1e-6)


# --- scores ----------------------------------------------------------------------------------


def off_by(signal, truth, parts):
    """Distances of the largest units, part by part, in a loop."""
    found, start = [], 0
    for length in parts:
        own, true = (list(each[start : start + length]) for each in (signal, truth))
        found.append(abs(own.index(max(own)) - true.index(max(true))))
        start += length
    return found


def test_scores_of_codes_against_a_loop():
    """Answers near the true code of a neighbouring cell, of all sorts of distance."""
    task = Inverse(**fields(size=SIZE)).make()
    random, parts = np.random.default_rng(0), (N, N, 3)
    cells = tasks.points(task)
    codes = examples_at(task, cells).target
    chosen = random.integers(len(cells), size=40)
    moved = np.clip(cells[chosen] + random.integers(-1, 2, (40, 3)) * [1, 1, 0.5],
                    [0, 0, 0.8], [N - 1, N - 1, 1.8])  # fmt: skip
    moved[:5] = cells[random.integers(len(cells), size=5)]
    noise = np.float32(random.normal(size=(40, 2 * N + 3)) * 0.02)
    signals = examples_at(task, moved).target + noise
    found = jax.jit(jax.vmap(task.scores))(signals, codes[chosen], cells[chosen])
    off = np.array([off_by(s, t, parts) for s, t in zip(signals, codes[chosen], strict=True)])
    np.testing.assert_array_equal(found["exact_accuracy"], (off == 0).all(axis=1))
    np.testing.assert_array_equal(found["position_accuracy"], (off <= 1).all(axis=1))
    assert {(off == 0).all(axis=1).any(), (off > 1).any(), (off == 1).any()} == {True}
    errors = np.mean((np.float64(signals) - codes[chosen]) ** 2, axis=1)
    np.testing.assert_allclose(found["mse"], errors, rtol=1e-5)


@pytest.mark.parametrize(
    ("error", "exact", "near"),
    [
        ((0, 0, 0), True, True),
        ((0.5, -0.5, 0.24), True, True),  # a cell of the size is half a pixel
        ((0.51, 0, 0), False, True),
        ((0, 0, 0.26), False, True),
        ((0, 1, 0), False, True),
        ((0, -1.01, 0), False, False),
        ((0, 0, -0.51), False, False),
    ],
)
def test_scores_of_coordinates_are_within_half_a_cell_or_one(error, exact, near):
    task = Inverse(answer="coordinates", **fields(size=SIZE)).make()
    truth = np.float32([4, 2, 1.0])
    found = jax.jit(task.scores)(truth + np.float32(error), truth, truth)
    assert (bool(found["exact_accuracy"]), bool(found["position_accuracy"])) == (exact, near)
    assert float(found["mse"]) == pytest.approx(np.square(error).mean(), abs=1e-6)


def test_the_tolerance_is_that_of_coordinates_and_nan_is_never_right():
    forward, truth = Bump(**fields()).make(), np.float32([4, 2])
    for tolerance, right in ((0.8, True), (0.7, False)):
        task = inverse(forward, "coordinates", tolerance)
        found = jax.jit(task.scores)(truth + np.float32(0.75), truth, truth)
        assert bool(found["exact_accuracy"]) == right
    for answer in ("code", "coordinates"):
        task = inverse(forward, answer)
        target, score = examples_at(task, truth[None]).target[0], jax.jit(task.scores)
        scores = score(np.append(target[:-1], np.float32(np.nan)), target, truth)
        assert not scores["exact_accuracy"] and not scores["position_accuracy"]
        assert bool(score(target, target, truth)["exact_accuracy"])


# --- derivatives -----------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["bump", "onehot"])
def test_the_image_has_a_derivative_in_every_factor_whatever_the_code(code):
    """Closed forms: (i - c) / sigma^2, and r^2 / sigma^3 for the size."""
    task = Inverse(**fields(code, size=SIZE)).make()
    assert task.differentiable
    x, y, size = 2.25, 5.5, 1.1
    point = np.float32([x, y, size])
    jacobian = jax.jit(jax.jacfwd(lambda point: task.example(KEY, point).input))(point)
    row, column = np.mgrid[:N, :N]
    square = (row - y) ** 2 + (column - x) ** 2
    image = np.exp(-square / (2 * size**2))
    slopes = [(column - x) / size**2, (row - y) / size**2, square / size**3]
    expected = -np.stack([image * slope for slope in slopes], axis=-1)
    np.testing.assert_allclose(jacobian, expected, atol=1e-5)
    forward = Bump(**fields(code, size=SIZE)).make()
    there, back = (examples_at(each, [[3.4, 6.6, 1.3]]) for each in (forward, task))
    chex.assert_trees_all_close((back.input, back.target), (there.target, there.input))


# --- trivial predictors ----------------------------------------------------------------------


def test_mean_answers_against_loops_over_the_regions():
    random = np.random.default_rng(0)
    truths = np.float32(random.normal(size=(9, 4)))
    held_out = random.permutation(9) < 3
    answer = jax.jit(lambda held: mean_answer(baselines.Asked(None, None, truths, None, held)))
    found = answer(held_out)
    chex.assert_shape(found, (9, 4))
    for b in range(9):
        own = [truths[c] for c in range(9) if held_out[c] == held_out[b]]
        np.testing.assert_allclose(found[b], np.mean(own, axis=0), atol=1e-6)
    none = answer(np.zeros(9, bool))
    np.testing.assert_allclose(np.asarray(none)[4], truths.mean(axis=0), atol=1e-6)


# --- what cannot be --------------------------------------------------------------------------


def labelled(**options):
    """A task whose first factor is a label or an angle."""
    factors = Factor("kind", np.arange(4.0), **options), Factor("x", np.arange(6.0))

    def example(key, point):
        kind, x = (jnp.exp(-jnp.square(jnp.arange(n) - c)) for n, c in zip((4, 6), point))  # noqa: B905
        return Example(jnp.concatenate([kind, x]), kind[:, None] * x[None])

    return over_cells(factors, lambda points: points[..., 0] > 2, example, parts=(4, 6))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Config(
                task=Inverse(answer="coordinates", **fields(stripes=StripesConfig(copies=1)))
            ),
            r"config\.task\.answer='coordinates': a stripe has no value of its missing factor",
        ),
        (
            lambda: Config(task=Inverse(**fields("ramp"))),
            r"config\.task\.code\.name='ramp': has no unit for each value to decode; must be one "
            "of bump, onehot",
        ),
        (
            lambda: Config(task=Inverse(**fields(answer="image"))),
            r"config\.task\.answer='image': must be one of code",
        ),
        (
            lambda: Config(task=Inverse(**fields(support=replace(SUPPORT, samples=0)))),
            r"config\.task\.support\.samples=0: leaves nothing to train on",
        ),
        (lambda: inverse(inverse(Bump(**fields()).make())), "maps .* not a code to one image"),
        (
            lambda: inverse(Bump(**fields()).make(), "pixels"),
            r"config\.task\.answer='pixels': must be one of code, coordinates",
        ),
        (
            lambda: inverse(Bump(**fields("ramp")).make()),
            r"needs a code with a unit for each value, in parts of \(8, 8\), not \(1, 1",
        ),
        (
            lambda: Config(task=Inverse(bumps=2)),
            "bumps=2: an image does not tell which of its bumps is the first",
        ),
        (lambda: inverse(labelled(real=False), "coordinates"), "kind is a label or an angle"),
        (lambda: inverse(labelled(period=8.0), "coordinates"), "kind is a label or an angle"),
    ],
)
def test_answers_that_cannot_be_given_are_refused(make, message):
    with pytest.raises(ConfigError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_answers_near_those_can_be_given():
    Config(task=Inverse(**fields(stripes=StripesConfig(copies=1))))
    task = Config(task=Inverse(answer="coordinates", **fields("ramp"))).task.make()
    assert tasks.shapes(task)[1].shape == (2,)
    turned = inverse(labelled(real=False))
    found = jax.eval_shape(turned.example, KEY, np.float32([1, 2]))
    chex.assert_shape([found.input, found.target], [(4, 6), (10,)])
