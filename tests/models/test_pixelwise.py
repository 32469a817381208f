"""The decoder that all pixels share, against a loop over pixels."""

import chex
import jax
import jax.numpy as jnp
import pytest

from compgen_jax.models.pixelwise import Pixelwise
from tests.models.oracles import KEY, of_image, variables


@pytest.mark.parametrize("units", [400, 1])
def test_an_image_drawn_in_parts_and_its_gradient_are_those_of_the_whole(units):
    """8 x 8 pixels of 12 units, in 2 parts, and by rows."""
    whole = Pixelwise(width=12, depth=2).make(of_image(16, 8))
    decoder = whole.clone(at_once=units)
    code, target = jax.random.normal(KEY, (5,)), jax.random.normal(KEY, (8, 8))
    params = variables(whole, of_image(5, 8))

    def loss(params, code, module):
        image, layers = module.apply(params, code)
        return jnp.sum(target * image), (image, layers)

    run = jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True), static_argnums=2)
    chex.assert_trees_all_close(
        run(params, code, decoder), run(params, code, whole), rtol=1e-4, atol=1e-5
    )
    tangents = jax.jit(
        jax.jacfwd(lambda code, module: module.apply(params, code)), static_argnums=1
    )
    chex.assert_trees_all_close(tangents(code, decoder), tangents(code, whole), atol=1e-5)
