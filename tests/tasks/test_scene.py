"""Tasks made of pictures: a small scene and its marginal images, against float64 loops."""

from dataclasses import dataclass
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax import grids
from compgen_jax.tasks import marginals
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.marginals import MarginalsConfig
from compgen_jax.tasks.scene import Scene, SceneTask
from compgen_jax.tasks.task import Factor
from tests.tasks.examples import KEY, batches, examples_at, scores_at
from tests.tasks.test_encodings import FACTORS, of_factors
from tests.trees import TWO_PROGRAMS


@jax.jit
def blob(point):
    shape, x, angle = point
    i = jnp.arange(6.0)
    row = jnp.exp(-jnp.square(i - 2.5 - 1.5 * jnp.sin(angle) - jnp.cos(angle)))
    return row[:, None] * jnp.exp(-jnp.square(i - x) / shape**2)[None, :]


@dataclass(frozen=True)
class Blobs(SceneTask):
    held_out: str = "shape == 'wide' and x > 3"
    gaps: bool = False  # as of a file that lacks some cells

    def scene(self):
        return Scene(FACTORS, blob, rows_B=ROWS if self.gaps else 1)


@cache
def made(**fields):
    return Blobs(**fields).make()


CELLS = tasks.cells(FACTORS)
ROWS = np.random.default_rng(4).integers(3, size=len(CELLS))
HELD_OUT = np.asarray(made().held_out(CELLS))
PICTURES = np.asarray(jax.vmap(blob)(jnp.asarray(CELLS)), np.float64)


def trivial_scores(task):
    return jax.device_get(jax.jit(partial(tasks.trivial_scores, task))(KEY))


def test_every_seed_is_shown_other_combinations():
    dataset = made(samples=3).dataset
    assert not np.array_equal(dataset(KEY).points, dataset(jax.random.key(0)).points)


def test_marginal_images_come_in_their_share_with_codes_of_one_factor():
    task = made(marginals=MarginalsConfig("mean", share=0.25))
    (points,), _ = batches(task, [5], 400)
    examples = examples_at(task, points)
    lacks = np.isnan(points[:, :3]).any(axis=1)
    assert 60 < lacks.sum() < 140  # binomial, 100 expected
    for row in (np.argmax(lacks), np.argmin(lacks)):  # the first of either kind
        point = points[row, :3]
        same = (CELLS == point).any(axis=1) & ~HELD_OUT
        wanted = PICTURES[same].mean(axis=0) if lacks[row] else blob(point)
        assert_allclose(examples.target[row], wanted, rtol=1e-6, atol=1e-6)
        assert_allclose(examples.input[row], of_factors(point), rtol=1e-6)


def test_scores_of_known_answers():
    scores = partial(scores_at, made(), truths=np.float32(PICTURES), points=CELLS)
    swapped = scores(jax.vmap(blob)(np.abs(CELLS - [3, 0, 0])))  # the other shape
    assert not swapped["shape_accuracy"].any() and not swapped["rendered"].any()
    assert not scores(0 * PICTURES)["rendered"].any()
    nearest = np.where(HELD_OUT[:, None], made().nearest(CELLS), CELLS)
    assert_array_equal(scores(jax.vmap(blob)(nearest))["rendered"], ~HELD_OUT)


def test_trivial_predictors_against_loops():
    mean = PICTURES[~HELD_OUT].mean(axis=0)
    errors, missed = trivial_scores(made()), np.square(PICTURES - mean).mean(axis=(1, 2))
    assert_allclose(errors["mean_image"]["mse"], missed, rtol=1e-4)
    for cell, picture, error in zip(CELLS, PICTURES, errors["main_effects"]["mse"], strict=True):
        seen_with = (PICTURES[same & ~HELD_OUT] for same in (CELLS == cell).T)
        drawn = sum(pictures.mean(axis=0) for pictures in seen_with) - 2 * mean
        expected = np.square(drawn - picture).mean()
        assert error == pytest.approx(expected, rel=1e-3, abs=1e-7)


def test_a_bernoulli_loss_is_the_cross_entropy_and_its_excess_the_divergence():
    task = made(loss="bernoulli")
    logits, noise = np.random.default_rng(0).normal(size=(2, 6, 6)) * [[[3.0]], [[0.5]]]
    target, p = 1 / (1 + np.exp(-noise)), 1 / (1 + np.exp(-logits))
    nats = lambda p: -(target * np.log(p) + (1 - target) * np.log(1 - p)).sum()
    assert_allclose(task.loss(logits, target), nats(p), rtol=1e-5)
    scores = jax.jit(task.scores)(task.prediction(logits), target, CELLS[0])
    assert_allclose(scores["excess_nll"], nats(p) - nats(target), rtol=1e-4)


def test_reading_the_factors():
    task = made(asks="factors")
    pictures, answers = examples_at(task, CELLS)
    assert_allclose(pictures[5], PICTURES[5], rtol=1e-6)
    # two labels, one number, cosine and sine
    assert_allclose(answers[:, 2], (CELLS[:, 1] - 2.5) / 2.5, atol=1e-6)
    off = answers.copy()
    off[:, 2] += 0.4  # one cell of x
    off[:, 3:] = np.stack([np.cos(CELLS[:, 2] - 1), np.sin(CELLS[:, 2] - 1)], axis=1)
    scores = scores_at(task, off, answers, CELLS)
    assert_allclose(scores["x_error"], 1.0, rtol=1e-4)
    assert_allclose(scores["x_mse"], 1 / np.var(np.arange(6)), rtol=1e-4)
    assert_allclose(scores["angle_error"], 1.0, rtol=1e-3)  # round the circle
    assert scores["shape_accuracy"].all() and not scores["exact_accuracy"].any()
    assert_allclose(task.derived(scores)["x_r2"], 1 - 1 / np.var(np.arange(6)), rtol=1e-4)


def test_cells_that_lack_a_picture_and_cells_that_are_measured():
    task = made(gaps=True)
    assert_array_equal(tasks.points(task), CELLS[ROWS > 0])
    assert_array_equal(tasks.regions(task)["ood"], HELD_OUT[ROWS > 0])
    few, whole = made(measured=5), made()
    points = tasks.points(few)
    assert points.shape == (10, 3) and np.asarray(few.held_out(points)).sum() == 5
    index = tasks.nearest_cell(FACTORS, points)
    assert_array_equal(tasks.nearest_of_all(few)[1], tasks.nearest_of_all(whole)[1][index])
    # the nearest ID cell need not be one of the measured
    errors, every = trivial_scores(few), trivial_scores(whole)
    for name in ("nearest_seen", "nearest_same_labels"):
        assert_allclose(errors[name]["mse"], every[name]["mse"][index], **TWO_PROGRAMS)


@pytest.mark.parametrize("fixed", [(), (True, False, False)])
def test_the_nearest_cell_is_a_seen_one_that_exists_measured_or_not(fixed):
    task = made(gaps=True, measured=4)
    nearest, distances = tasks.nearest_of_all(task, fixed)
    assert len(nearest) == 8 and (distances > 0).sum() == 4
    indices = [tasks.nearest_values(FACTORS, points) for points in (tasks.points(task), CELLS)]
    apart = np.abs(indices[0][:, None] - indices[1]).astype(float)
    apart[..., 0] = apart[..., 0] > 0  # labels
    apart[..., 2] = np.minimum(apart[..., 2], len(FACTORS[2].values) - apart[..., 2])  # angles
    apart = np.where(HELD_OUT | (ROWS == 0), np.inf, np.sqrt((apart**2).sum(axis=2)))
    if fixed:
        apart = np.where(indices[0][:, None, 0] == indices[1][:, 0], apart, np.inf)
    assert_allclose(distances, apart.min(axis=1), rtol=1e-6)
    cells = tasks.nearest_cell(FACTORS, nearest)
    assert_array_equal(apart[np.arange(8), cells], apart.min(axis=1))
    images = tasks.query(task, KEY).truths_at(nearest)
    assert_allclose(images, PICTURES[cells], atol=1e-6)


PLACES = grids.indices((2, 6, 4))
# without x = 3 of the second shape, and without the last angle at all
SHOWN = ~((PLACES[:, 0] == 1) & (PLACES[:, 1] == 3)) & (PLACES[:, 2] != 3)


@pytest.mark.parametrize(("kind", "of"), [("mean", np.mean), ("union", np.max)])
def test_a_value_is_collected_over_the_shown_cells_that_have_it(kind, of):
    found, exist = marginals.images(kind, blob, FACTORS, SHOWN)
    expected = []
    for row in marginals.points(FACTORS):
        same = SHOWN & (CELLS == row).any(axis=1)
        expected.append(of(PICTURES[same], axis=0) if same.any() else np.zeros((6, 6)))
    assert_allclose(found, expected, atol=1e-6)
    assert_array_equal(exist, [True] * 11 + [False])  # the last angle is never shown


def test_a_slice_is_a_real_picture_on_a_line_through_one_shown_cell():
    found, exist = marginals.images("slice", blob, FACTORS, SHOWN)
    assert not exist[-1] and exist.sum() >= 9
    assert_array_equal(exist, found.any(axis=(1, 2)))
    is_of = np.isclose(found[exist][:, None], PICTURES[None]).all(axis=(2, 3))
    assert (is_of.sum(axis=1) == 1).all() and SHOWN[is_of.any(axis=0)].all()
    chosen = PLACES[is_of.argmax(axis=1)]
    reference = [np.bincount(column).argmax() for column in chosen.T]
    assert ((chosen != reference).sum(axis=1) <= 1).all()


def test_main_effects_of_a_sum_are_all_and_of_a_product_what_its_duty_says():
    factors = [Factor(name, np.arange(12.0)) for name in "ab"]
    # a row for each factor, lit at a duty of m = 1/4
    sum_of_two = lambda point: jnp.where(
        (jnp.arange(12.0)[None] - point[:, None]) % 12 < 3, 1.0, 0.0
    )
    product = lambda point: jnp.outer(*sum_of_two(point))
    alike = lambda point: jnp.ones(3)
    for picture, expected in ((sum_of_two, 1.0), (product, 2 * 0.25 / 1.25), (alike, np.nan)):
        share = marginals.main_effects_shares(picture, factors, 2)["a", "b"]
        assert_allclose(share, expected, rtol=1e-6)
