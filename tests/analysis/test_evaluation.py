import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.analysis import evaluation
from compgen_jax.config import ImageConfig, SupportConfig, TaskConfig
from compgen_jax.tasks import bump, supports

N = 12
TASK = TaskConfig(grid=N, support=SupportConfig(region="donut", low=4, high=7))


def draw(x, y, **kwargs):
    return bump.bump(float(x), float(y), N, ImageConfig(**kwargs))


def cell_results(signals_by_seed):
    """CellResults of given signals (T, B, N, N) on the task above."""
    cells, mask = supports.cells(N), supports.held_out_mask(TASK)
    return evaluation.CellResults(
        seeds=tuple(range(len(signals_by_seed))),
        signals=np.asarray(signals_by_seed),
        targets=np.stack([draw(*cell) for cell in cells]),
        factors=cells,
        held_out=mask.ravel(),
        distance=evaluation.distance_to_seen(mask).ravel(),
        amplitude=1.0,
    )


def test_position_is_x_then_y_of_image_y_x():
    """The authors' scripts swapped rows and columns; an asymmetric point tells."""
    signal = draw(9, 2)
    np.testing.assert_array_equal(evaluation.brightest_pixel(signal), [9, 2])
    assert float(evaluation.position_error(signal, jnp.array([9.0, 2.0]))) == 0
    assert float(evaluation.position_error(signal, jnp.array([2.0, 9.0]))) == 7
    assert float(evaluation.position_error(signal, jnp.array([8.0, 4.0]))) == 2  # Chebyshev


@pytest.mark.parametrize("polarity", ["inverted", "upright"])
def test_position_does_not_depend_on_polarity(polarity):
    config = ImageConfig(polarity=polarity)
    image = bump.to_image(draw(9, 2), config)
    np.testing.assert_array_equal(evaluation.brightest_pixel(bump.to_signal(image, config)), [9, 2])


def test_images_that_are_not_numbers_have_no_position():
    signal = draw(9, 2).at[0, 0].set(jnp.nan)
    assert float(evaluation.position_error(signal, jnp.array([9.0, 2.0]))) == np.inf


def test_mse_against_a_loop():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 4, 5))
    expected = [np.mean([(a[i, r, c] - b[i, r, c]) ** 2 for r in range(4) for c in range(5)])
                for i in range(3)]  # fmt: skip
    np.testing.assert_allclose(evaluation.mse_per_point(a, b), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("positions", "count"), [([(5, 5)], 1), ([(2, 2), (9, 9)], 2), ([(0, 0), (0, 11), (11, 4)], 3)]
)
def test_peaks_are_the_bumps(positions, count):
    signal = jnp.maximum(sum(draw(*position) for position in positions), 0)
    peaks = np.argwhere(evaluation.find_peaks(signal))
    assert sorted(map(tuple, peaks[:, ::-1])) == sorted(positions) and len(peaks) == count


def test_peaks_threshold_amplitude_and_plateau():
    signal = draw(3, 3) + 0.2 * draw(8, 8)
    assert int(evaluation.find_peaks(signal).sum()) == 1
    assert int(evaluation.find_peaks(signal, threshold=0.1).sum()) == 2
    assert int(evaluation.find_peaks(2 * signal, amplitude=2.0).sum()) == 1
    plateau = jnp.zeros((N, N)).at[4:6, 4:7].set(1.0)
    assert np.argwhere(evaluation.find_peaks(plateau)).tolist() == [[4, 4]]
    assert not evaluation.find_peaks(jnp.zeros((N, N))).any()


def test_distance_and_nearest_seen_against_loops():
    mask = supports.held_out_mask(TASK)
    seen = [(r, c) for r in range(N) for c in range(N) if not mask[r, c]]
    distance, nearest = evaluation.distance_to_seen(mask), evaluation.nearest_seen(mask)
    for r in range(N):
        for c in range(N):
            expected = min(np.hypot(r - a, c - b) for a, b in seen)
            assert distance[r, c] == pytest.approx(expected)
            row, column = divmod(int(nearest[r * N + c]), N)
            assert not mask[row, column]
            assert np.hypot(r - row, c - column) == pytest.approx(expected)


def summarize(signals):
    cells = supports.cells(N)
    mask = supports.held_out_mask(TASK)
    targets = jnp.stack([draw(*cell) for cell in cells])
    return evaluation.summarize(
        jnp.asarray(signals), targets, jnp.asarray(cells), jnp.asarray(mask.ravel()),
        jnp.asarray(evaluation.nearest_seen(mask)),
    )  # fmt: skip


def test_summary_of_a_perfect_a_blank_and_a_lookup_decoder():
    cells, mask = supports.cells(N), supports.held_out_mask(TASK)
    targets = np.stack([draw(*cell) for cell in cells])
    perfect = summarize(targets)
    assert perfect["id.mse"] == perfect["ood.mse"] == 0
    assert perfect["id.exact_accuracy"] == perfect["ood.exact_accuracy"] == 1
    blank = summarize(np.zeros_like(targets))
    for region in ("id", "ood"):
        assert blank[f"{region}.mse"] == pytest.approx(float(blank[f"{region}.blank_mse"]))
        assert blank[f"{region}.best_constant_mse"] < blank[f"{region}.blank_mse"]
    lookup = summarize(targets[evaluation.nearest_seen(mask)])
    assert lookup["ood.mse"] == pytest.approx(float(lookup["ood.nearest_seen_mse"]))
    assert lookup["ood.exact_accuracy"] == 0 and lookup["id.exact_accuracy"] == 1
    # all but the 2x2 core of the 4x4 hole lies one pixel from a seen cell
    assert lookup["ood.position_accuracy"] == pytest.approx(12 / 16)


def test_accuracies_and_relative_error_over_chosen_cells():
    """Right at every cell but two: one off by a pixel, one blank."""
    images = np.stack([draw(x, y) for x, y in supports.cells(N)])
    near, lost = 5 * N + 5, 3 * N + 3
    images[near], images[lost] = draw(6, 5), 0
    results = cell_results([images])
    cells = np.isin(np.arange(N * N), [near, lost, 0, 7])
    assert evaluation.exact_accuracy(results, cells) == [0.5]
    assert evaluation.position_accuracy(results, cells) == [0.75]
    wanted = [np.square(draw(*supports.cells(N)[k])).sum() for k in (near, lost, 0, 7)]
    wrong = np.square(draw(6, 5) - draw(5, 5)).sum() + wanted[1]
    np.testing.assert_allclose(
        evaluation.relative_error(results, cells), [wrong / sum(wanted)], rtol=1e-5
    )


def test_fine_points_hold_the_cells_and_run_x_first():
    points = evaluation.fine_points(N).reshape(2 * N - 1, 2 * N - 1, 2)
    np.testing.assert_array_equal(points[::2, ::2].reshape(-1, 2), supports.cells(N))
    np.testing.assert_array_equal(points[0, :3], [[0, 0], [0.5, 0], [1, 0]])


def test_best_constant_is_the_best():
    targets = np.stack([draw(*cell) for cell in supports.cells(N)])
    held_out = supports.held_out_mask(TASK).ravel()
    found = float(summarize(targets)["ood.best_constant_mse"])
    errors = [np.mean((targets[held_out] - level) ** 2) for level in np.linspace(0, 0.2, 401)]
    assert found == pytest.approx(min(errors), rel=1e-4)


def test_maps_over_seeds():
    cells = supports.cells(N)
    targets = np.stack([draw(*cell) for cell in cells])
    results = cell_results([targets, np.zeros_like(targets)])
    errors = evaluation.error_map(results)
    assert errors.shape == (2, N * N) and not errors[0].any() and errors[1].all()
    assert evaluation.exact_hits(results)[0].all()
    assert evaluation.peak_maps(results).sum(axis=(2, 3)).tolist() == [[1] * 144, [0] * 144]
    levels, means = evaluation.profile_by_distance(evaluation.exact_hits(results), results)
    assert levels.tolist() == [1, 2] and means.shape == (2, 2)
