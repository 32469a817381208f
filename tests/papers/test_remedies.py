"""C9, C10 and K10: quantities of stripes beside loops, and runs with other seeds."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from compgen_jax.papers.forced_rendering import remedies
from compgen_jax.papers.forced_rendering.image_quantities import at_common_seeds
from tests.papers.decoders import HOLE, N, cell_results, decoder, draw, run

STRIPES = np.stack(
    [np.tile(draw(c, 0)[0], (N, 1)) for c in range(N)]
    + [np.tile(draw(0, c)[:, :1], N) for c in range(N)]
)


def test_stripes_are_asked_for_and_read():
    drawn = np.stack([STRIPES] * 3)
    drawn[1, 2] = STRIPES[3]  # a vertical stripe in the wrong place
    drawn[2, N + 1] = STRIPES[1]  # a vertical one for a horizontal one
    given = np.concatenate([drawn, np.zeros((3, 1, N, N))], axis=1)
    stripes = remedies.stripes_of(run(predict=lambda points: given))
    np.testing.assert_array_equal(stripes.drawn, drawn)
    np.testing.assert_allclose(stripes.true, STRIPES, atol=1e-6)
    assert stripes.null.shape == (3, N, N) and not stripes.null.any()
    expected = [1, 1 - 1 / (2 * N), 1 - 1 / (2 * N)]
    np.testing.assert_allclose(remedies.stripe_accuracy(stripes), expected)


def test_weights_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    cells = decoder(lambda x, y: 0.3 + 0.5 * STRIPES[x] + 0.2 * STRIPES[N + y] - 0.7 * draw(x, y))
    cells = cell_results(cells.predictions + 0.1 * rng.normal(size=cells.predictions.shape))
    of = lambda cells, stripes=STRIPES: np.array([*remedies.weights(cells, stripes).values()])
    weights = of(cells)
    for seed in range(3):
        expected = []
        for (x, y), signal in zip(HOLE, cells.predictions[seed, cells.held_out], strict=True):
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
    runs = SimpleNamespace(seeds=(0, 1, 2, 3, 4)), SimpleNamespace(seeds=(1, 3, 7))
    values = at_common_seeds(lambda run: np.array(run.seeds), *runs)
    np.testing.assert_array_equal(values, [[1, 3], [1, 3]])
