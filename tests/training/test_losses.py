import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.training.losses import pixel_loss


def test_pixel_loss_is_the_weighted_mean():
    rng = np.random.default_rng(0)
    images, targets = rng.normal(size=(2, 3, 4, 4))
    weights = np.array([1.0, 0.0, 3.0])
    errors = [np.mean((images[b] - targets[b]) ** 2) for b in range(3)]
    expected = (errors[0] + 3 * errors[2]) / 4
    assert float(pixel_loss(images, targets, weights)) == pytest.approx(expected, rel=1e-5)


def test_masked_examples_have_no_gradient():
    images = jax.random.normal(jax.random.key(0), (3, 2, 2))
    gradient = jax.grad(pixel_loss)(images, jnp.zeros((3, 2, 2)), jnp.array([1.0, 0.0, 1.0]))
    assert not gradient[1].any() and gradient[0].any()
    np.testing.assert_allclose(gradient[0], 2 * images[0] / 4 / 2, rtol=1e-6)


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(AssertionError):
        pixel_loss(jnp.zeros((3, 2, 2)), jnp.zeros((1, 2, 2)), jnp.ones(3))
