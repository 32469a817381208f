import numpy as np
from numpy.testing import assert_allclose

from compgen_jax.metrics.embeddings import embedding_numbers

N = 6


def test_numbers_of_networks_in_closed_form():
    """Seed 0 has stripes; seed 1 matrices of rank two with energies 16 and 9, and a dead token."""
    stripes = np.zeros((2, N, N, N))
    stripes[0] = np.eye(N)[:, None, :]  # of x: token k is column k, whatever the row
    stripes[1, 1:] = np.diag([4.0, 3.0, *[0] * (N - 2)])
    weights = np.zeros((2, 2 * N, 3))
    weights[0, :, 0], weights[1, :, :2] = 5.0, (1, -1)
    of_y = np.stack([stripes[0].transpose(0, 2, 1), stripes[1]])
    numbers = embedding_numbers(stripes, of_y, weights)
    entropy = np.exp(-0.64 * np.log(0.64) - 0.36 * np.log(0.36))
    assert_allclose(numbers["top_share"], [1, 0.64])
    assert_allclose(numbers["spectrum_entropy"], [1, entropy])
    assert_allclose(numbers["lambda_entropy"], [1, 2])
    shares = [numbers[name] for name in ("constant_share", "constant_share.x", "constant_share.y")]
    assert_allclose(shares, [[1, 1 / N]] * 3)
    zero = np.zeros((1, 3, 3, 3))
    assert np.isnan(list(embedding_numbers(zero, zero, np.zeros((1, 6, 2))).values())).all()
