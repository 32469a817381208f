import numpy as np
import pytest

from compgen_jax.metrics import embeddings


def random_matrices(tokens=5, height=6, width=9, seed=0):
    return np.random.default_rng(seed).normal(size=(tokens, height, width))


def composed(weights_TxK, left_TxHxK, right_TxWxK):
    return np.einsum("tk,thk,twk->thw", weights_TxK, left_TxHxK, right_TxWxK)


def unit_columns(tokens, height, count, seed):
    vectors = np.random.default_rng(seed).normal(size=(tokens, height, count))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_measures_of_rank_in_closed_form():
    values = np.array([[2.0, 0, 0, 0], [3, 3, 3, 3], [-4, 3, 0, 0]])
    shares = np.array([0.64, 0.36])
    entropy = np.exp(-np.sum(shares * np.log(shares)))
    for measure in (embeddings.spectrum_entropy, embeddings.lambda_entropy):
        np.testing.assert_allclose(measure(values), [1, 4, entropy])
    np.testing.assert_allclose(embeddings.top_share(values), [1, 1 / 4, 0.64])
    for measure in (embeddings.spectrum_entropy, embeddings.top_share):
        np.testing.assert_allclose(measure(1e-9 * values), measure(values))


def test_lambdas_are_singular_values_of_orthonormal_vectors_only():
    weights = np.random.default_rng(0).normal(size=(4, 6))
    left, right = unit_columns(4, 6, 6, seed=1), unit_columns(4, 9, 6, seed=2)
    orthonormal = composed(weights, np.linalg.qr(left)[0], np.linalg.qr(right)[0])
    of_lambda = embeddings.lambda_entropy(weights)
    of_spectrum = embeddings.spectrum_entropy(embeddings.singular_values(orthonormal))
    np.testing.assert_allclose(of_lambda, of_spectrum)
    parallel = composed(weights, left, np.repeat(right[..., :1], 6, axis=2))
    of_spectrum = embeddings.spectrum_entropy(embeddings.singular_values(parallel))
    np.testing.assert_allclose(of_spectrum, 1)  # rank one, whatever the penalty sees
    assert (of_lambda > 1.5).all()


def test_constant_share_against_a_loop():
    matrices = random_matrices()
    for axis, number, length in (("y", 0, 6), ("x", 1, 9)):
        found = embeddings.constant_share(matrices, axis)
        kept = [length * np.sum(m.mean(axis=number) ** 2) for m in matrices]
        total = [np.sum(m**2) for m in matrices]
        np.testing.assert_allclose(found.tokens, np.divide(kept, total))
        assert found.overall == pytest.approx(np.sum(kept) / np.sum(total))
        assert type(found.overall) is float


def test_a_stripe_is_constant_along_the_other_axis_only():
    profile = np.random.default_rng(0).normal(size=9)
    stripe = np.broadcast_to(profile - profile.mean(), (2, 6, 9))  # vertical: of x alone
    along_y, along_x = (embeddings.constant_share(stripe, axis) for axis in "yx")
    np.testing.assert_allclose(along_y.tokens, 1, rtol=1e-15)
    np.testing.assert_allclose(along_x.tokens, 0, atol=1e-15)
    turned = embeddings.constant_share(stripe.transpose(0, 2, 1), "x")
    assert turned.overall == pytest.approx(1, rel=1e-15)
    half = np.concatenate([stripe[:, :3], 0 * stripe[:, :3]], axis=1)  # rank one, and no stripe
    assert embeddings.constant_share(half, "y").overall == pytest.approx(1 / 2)
    np.testing.assert_allclose(
        embeddings.spectrum_entropy(embeddings.singular_values(half)), 1, rtol=1e-12
    )


def test_bad_arguments_are_named():
    for bad in (np.ones((3, 4)), np.ones((0, 3, 4)), np.ones((2, 0, 3))):
        with pytest.raises(ValueError, match="matrices must be"):
            embeddings.singular_values(bad)
        with pytest.raises(ValueError, match="matrices must be"):
            embeddings.constant_share(bad, "y")
    for bad in (np.ones(3), np.ones((2, 0))):
        with pytest.raises(ValueError, match="values must be"):
            embeddings.lambda_entropy(bad)
    with pytest.raises(ValueError, match="axis must be 'y' or 'x', not 0"):
        embeddings.constant_share(np.ones((2, 3, 4)), 0)
    with pytest.raises(ValueError, match=r"matrices: NaN or infinite values at points \[1\]"):
        embeddings.singular_values(np.stack([np.ones((2, 2)), np.full((2, 2), np.nan)]))


def test_numbers_of_a_network_in_closed_form():
    """Seed 0 has stripes; seed 1 matrices of rank two with energies 16 and 9, and a dead token."""
    size = 4
    stripes = np.zeros((2, size, size, size))
    stripes[0] = np.eye(size)[:, None, :]  # of x: token k is column k, whatever the row
    stripes[1, 1:] = np.diag([4.0, 3.0, 0, 0])
    weights = np.zeros((2, 2 * size, 3))
    weights[0, :, 0], weights[1, :, :2] = 5.0, (1, -1)
    of_y = np.stack([stripes[0].transpose(0, 2, 1), stripes[1]])
    found = embeddings.embedding_numbers(stripes, of_y, weights)
    entropy = np.exp(-0.64 * np.log(0.64) - 0.36 * np.log(0.36))
    np.testing.assert_allclose(found["top_share"], [1, 0.64])
    np.testing.assert_allclose(found["spectrum_entropy"], [1, entropy])
    np.testing.assert_allclose(found["lambda_entropy"], [1, 2])
    for name in ("constant_share", "constant_share.x", "constant_share.y"):
        np.testing.assert_allclose(found[name], [1, 1 / 4])
    swapped = embeddings.embedding_numbers(of_y, of_y, weights)  # of x, stripes of the wrong way
    np.testing.assert_allclose(swapped["constant_share.x"], [1 / 4, 1 / 4])
    np.testing.assert_allclose(swapped["constant_share"], [5 / 8, 1 / 4])


def test_a_network_without_energy_has_no_numbers():
    zero = np.zeros((1, 3, 3, 3))
    found = embeddings.embedding_numbers(zero, zero, np.zeros((1, 6, 2)))
    assert np.isnan(list(found.values())).all()
    for bad in (np.zeros((2, 6, 2)), np.zeros((1, 5, 2)), np.zeros((6, 2))):
        with pytest.raises(ValueError, match="needed, not"):
            embeddings.embedding_numbers(zero, zero, bad)
