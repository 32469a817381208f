import numpy as np
import pytest

from compgen_jax.metrics import kernels

N, LOW, HIGH = 16, 5, 10
CELLS = np.array([(x, y) for y in range(N) for x in range(N)])
HOLE = ((CELLS >= LOW) & (CELLS <= HIGH)).all(axis=1)
PROFILES = np.exp(-((np.arange(N)[:, None] - np.arange(N)[None, :]) ** 2) / 2)


def bump_signal(x, y):
    return np.outer(PROFILES[y], PROFILES[x])


def plus_signal(x, y):
    return PROFILES[y][:, None] + PROFILES[x][None, :]


def lookup_signal(x, y):
    """In the hole the mean of the four nearest seen bumps on the same row and column."""
    if not (LOW <= x <= HIGH and LOW <= y <= HIGH):
        return bump_signal(x, y)
    nearest = (LOW - 1, y), (HIGH + 1, y), (x, LOW - 1), (x, HIGH + 1)
    return sum(bump_signal(*cell) for cell in nearest) / 4


def noise_signals():
    return np.random.default_rng(0).normal(size=(N * N, N, N)).astype(np.float32)


def signals_of(render):
    return np.array([render(x, y) for x, y in CELLS], np.float32)


def known_map(name):
    """(B, N, N) float32 signals over all cells: 'bump', 'plus', 'lookup' or 'noise'."""
    if name == "noise":
        return noise_signals()
    return signals_of({"bump": bump_signal, "plus": plus_signal, "lookup": lookup_signal}[name])


def flat(signals):
    return signals.reshape(len(signals), -1)


def rotated(features, seed=0):
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=[features.shape[1]] * 2))[0]
    return features @ rotation


def random_features(points=7, features=11, seed=0):
    return np.random.default_rng(seed).normal(size=(points, features))


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("block", [3, 11, 4096])
def test_gram_against_a_loop(monkeypatch, center, block):
    monkeypatch.setattr(kernels, "BLOCK", block)
    features = random_features() + 3.0
    offset = features.mean(axis=0) if center else np.zeros(11)
    expected = [[np.sum((a - offset) * (b - offset)) for b in features] for a in features]
    np.testing.assert_allclose(kernels.gram(features, center), expected, rtol=1e-12, atol=1e-12)


def test_gram_of_float32_features_is_summed_in_float64():
    features = np.abs(random_features(5, 20_000)).astype(np.float32)
    exact = features.astype(np.float64) @ features.astype(np.float64).T
    np.testing.assert_allclose(kernels.gram(features), exact, rtol=1e-13)
    assert np.abs(features @ features.T - exact).max() > 1e-9 * exact.max()


def test_gram_ignores_rotations_and_centring_a_shift():
    features = random_features()
    np.testing.assert_allclose(kernels.gram(rotated(features)), kernels.gram(features), atol=1e-12)
    shifted = kernels.gram(features + 100.0, center=True)
    np.testing.assert_allclose(shifted, kernels.gram(features, center=True), atol=1e-10)
    assert not kernels.gram(np.full((49, 5), 0.1), center=True).any()


def test_gram_refuses_bad_features():
    features = random_features()
    features[[2, 4], 1] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"features: NaN or infinite values at points \[2, 4\]"):
        kernels.gram(features)
    for bad in (np.ones(4), np.ones((1, 4)), np.ones((4, 0)), np.ones((4, 2, 2))):
        with pytest.raises(ValueError, match="features must be"):
            kernels.gram(bad)


def test_cosine_and_l2_against_loops():
    features = random_features()
    features[3] = 0
    gram = kernels.gram(features)
    cosine, l2 = kernels.cosine(gram), kernels.l2(gram)
    for i, a in enumerate(features):
        for j, b in enumerate(features):
            assert l2[i, j] == pytest.approx(-np.linalg.norm(a - b), abs=1e-7)
            norms = np.linalg.norm(a) * np.linalg.norm(b)
            assert cosine[i, j] == pytest.approx(a @ b / norms if norms else 0.0)
    with pytest.raises(ValueError, match="every point has zero norm"):
        kernels.cosine(kernels.gram(np.ones((4, 3)), center=True))


def test_overlap_counts_shared_dark_pixels():
    bumps = known_map("bump")
    np.testing.assert_array_equal(kernels.overlap(bumps), np.eye(N * N) / N**2)
    np.testing.assert_array_equal(kernels.overlap(2 * bumps, amplitude=2.0), np.eye(N * N) / N**2)
    wide = kernels.overlap(bumps, threshold=0.5)  # the peak and its 4 neighbours, at 0.61
    here, beside, diagonal, far = (7 * N + 7, 7 * N + 8, 8 * N + 8, 7 * N + 10)
    shares = wide[here, [here, beside, diagonal, far]] * N**2
    np.testing.assert_allclose(shares, [5, 2, 2, 0], rtol=1e-6)
    with pytest.raises(ValueError, match="signals must be"):
        kernels.overlap(flat(bumps))


def test_the_binary_kernel_is_the_share_of_common_factors():
    factors = np.array([[1, 2, 7], [1, 5, 7], [4, 2, 0], [1, 2, 7], [3, 3, 3]])
    np.testing.assert_allclose(kernels.binary(factors)[0], [1, 2 / 3, 1 / 3, 1, 0])
    np.testing.assert_array_equal(kernels.binary(factors[:, :2])[1], [0.5, 1, 0, 0.5, 0])
    with pytest.raises(ValueError, match="factors must be"):
        kernels.binary(factors[:, 0])


def test_gaussian_has_a_length_per_axis():
    factors, others = np.array([[0.0, 0.0], [2.0, 3.0]]), np.array([[2.0, 0.0]])
    expected = [[1, np.exp(-0.5 - 4.5)], [np.exp(-0.5 - 4.5), 1]]
    np.testing.assert_allclose(kernels.gaussian(factors, (2.0, 1.0)), expected)
    across = kernels.gaussian(factors, (2.0, 1.0), others)
    np.testing.assert_allclose(across, [[np.exp(-0.5), np.exp(-4.5)]])
    with pytest.raises(ValueError, match="lengths"):
        kernels.gaussian(factors, (0.0, 1.0))
    for lengths, other in (((1.0,), others), ((1.0, 1.0), others[:, :1])):
        with pytest.raises(ValueError, match="lengths above 0, one for each factor"):
            kernels.gaussian(factors, lengths, other)


def symmetric(seed):
    return kernels.gram(random_features(8, 5, seed))


def entries(seed):
    return symmetric(seed)[np.triu_indices(8, k=1)]


def test_correlations_against_numpy_and_the_closed_form():
    a, b, c = entries(1), entries(2) + entries(1), entries(3) + entries(2)
    ab, ac, bc = (kernels.correlation(*pair) for pair in ((a, b), (a, c), (b, c)))
    assert ab == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert kernels.correlation(a, 3 - 2 * a) == pytest.approx(-1)
    expected = (ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2))
    assert kernels.partial_correlation(a, b, c) == pytest.approx(expected)
    constant = np.full(28, 0.1)
    assert np.isnan([kernels.correlation(a, constant), kernels.correlation(constant, a)]).all()
    assert np.isnan(kernels.partial_correlation(2 * c + 1, b, c))
    assert kernels.partial_correlation(a, b, constant) == pytest.approx(ab)


def test_leave_one_out_error_against_refits():
    rng = np.random.default_rng(0)
    factors, outputs = rng.uniform(0, 5, (12, 2)), rng.normal(size=(12, 3))
    found = kernels.kernel_regression(factors, outputs, factors, lengths=(1.5,), ridge=0.1)
    errors = []
    for left_out in range(12):
        kept = np.arange(12) != left_out
        refit = kernels.kernel_regression(
            factors[kept], outputs[kept], factors[left_out][None], lengths=(1.5,), ridge=0.1
        )
        errors.append(np.mean((refit.prediction[0] - outputs[left_out]) ** 2))
    assert found.loo_mse == pytest.approx(np.mean(errors))


def test_kernel_regression_finds_the_lengths_and_interpolates():
    x, y = CELLS.T
    outputs = np.exp(-((x[:, None] - np.arange(N)[None, :]) ** 2) / 2) * np.cos(y / 5.0)[:, None]
    fit = kernels.kernel_regression(CELLS[~HOLE], outputs[~HOLE], CELLS[~HOLE])
    assert fit.lengths[1] > fit.lengths[0] == 1.0
    np.testing.assert_allclose(fit.prediction, outputs[~HOLE], atol=1e-3)
    radial = kernels.kernel_regression(CELLS[~HOLE], outputs[~HOLE], CELLS[HOLE], isotropic=True)
    assert radial.lengths[0] == radial.lengths[1] and radial.loo_mse > fit.loo_mse
    factorized = kernels.kernel_regression(CELLS[~HOLE], outputs[~HOLE], CELLS[HOLE])
    error = lambda found: np.mean((found.prediction - outputs[HOLE]) ** 2)
    assert error(factorized) < error(radial) / 2
    far = kernels.kernel_regression(CELLS[~HOLE], outputs[~HOLE], np.array([[200.0, 200.0]]))
    assert not far.prediction.any()
