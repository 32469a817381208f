"""C9, C10 and K10: quantities of stripes beside loops, and runs with other seeds."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from compgen_jax.papers.forced_rendering import remedies
from compgen_jax.papers.forced_rendering.image_quantities import at_common_seeds
from tests.papers.decoders import CELLS, SETTINGS, N, cell_results, decoder, draw, run

STRIPES = np.stack(
    [np.tile(draw(c, 0)[0], (N, 1)) for c in range(N)]
    + [np.tile(draw(0, c)[:, :1], N) for c in range(N)]
)
OOD = [(x, y) for x, y in CELLS if 4 <= x <= 7 and 4 <= y <= 7]


def test_stripes_are_asked_for_and_read():
    drawn = np.stack([STRIPES] * 3)
    drawn[1, 2] = STRIPES[3]  # a vertical stripe in the wrong place
    drawn[2, N + 1] = STRIPES[1]  # a vertical one for a horizontal one
    stripes = remedies.Stripes(drawn, np.zeros((3, N, N)), STRIPES)
    expected = [1, 1 - 1 / (2 * N), 1 - 1 / (2 * N)]
    np.testing.assert_allclose(remedies.stripe_accuracy(stripes), expected)
    # a run that draws the stripes, and nothing where neither factor is given
    given = np.stack([np.concatenate([STRIPES, np.zeros((1, N, N))])] * 3)
    net = run(predict=lambda points: given, config=SimpleNamespace(task=SETTINGS))
    of_run = remedies.stripes_of(net)
    np.testing.assert_allclose(of_run.true, STRIPES, atol=1e-6)
    np.testing.assert_array_equal(of_run.drawn, np.stack([STRIPES] * 3))
    assert of_run.null.shape == (3, N, N) and not of_run.null.any()


def test_weights_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    cells = decoder(lambda x, y: 0.3 + 0.5 * STRIPES[x] + 0.2 * STRIPES[N + y] - 0.7 * draw(x, y))
    cells = cell_results(cells.predictions + 0.1 * rng.normal(size=cells.predictions.shape))
    of = lambda cells, stripes=STRIPES: np.array([*remedies.weights(cells, stripes).values()])
    weights = of(cells)
    for seed in range(3):
        expected = []
        for (x, y), signal in zip(OOD, cells.predictions[seed, cells.held_out], strict=True):
            parts = np.ones(N * N), STRIPES[x], STRIPES[N + y], np.asarray(draw(x, y), np.float64)
            parts = np.stack([np.ravel(part) for part in parts], axis=1)
            fit, left, *_ = np.linalg.lstsq(parts, signal.ravel().astype(np.float64))
            explained = 1 - left[0] / np.square(signal - signal.mean()).sum()
            expected.append([min(fit[1:3]), max(fit[1:3]), fit[3], explained])
        np.testing.assert_allclose(weights[:, seed], np.mean(expected, axis=0), rtol=1e-4)
    twice = replace(cells, predict=2 * cells.predictions, truths=2 * cells.truths)
    np.testing.assert_allclose(of(twice, 2 * STRIPES), weights)
    late = replace(cells, predict=cells.predictions[:, None])
    np.testing.assert_allclose(of(late), weights[..., None])


def test_runs_are_compared_at_the_seeds_that_both_have():
    more = SimpleNamespace(seeds=(0, 1, 2, 3, 4), values=np.array([3.0, 3.0, 3.0, 3.0, -9.0]))
    few = SimpleNamespace(seeds=(0, 1, 2), values=np.array([1.0, 2.0, 4.0]))
    of_more, of_few = at_common_seeds(lambda run: run.values, more, few)
    assert of_more.tolist() == [3, 3, 3] and of_few.tolist() == [1, 2, 4]
