"""The sum, and the sum of products, of one image per factor: against float64 loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.models.model import Shapes
from compgen_jax.models.per_factor import Multiplicative

KEY = jax.random.key(0)
PARTS = (5, 3, 2)


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def build(settings, parts=PARTS, output=(4, 6)):
    return settings.make(Shapes(struct(sum(parts)), struct(*output), parts=parts))


@pytest.mark.parametrize(("parts", "terms"), [((6, 6), 1), (PARTS, 3), ((2,) * 5, 2)])
def test_products_sum_to_one_at_the_start_but_for_the_kernels(parts, terms):
    """For any number of factors and terms, so that no factor's gradient vanishes."""
    module = build(Multiplicative(depth=1, width=32, terms=terms), parts, (4, 4))
    params = jax.jit(module.init)(KEY, jnp.zeros(sum(parts)))
    assert not params["params"]["bias"].any()
    bare = jax.tree_util.tree_map_with_path(
        lambda path, leaf: 0 * leaf if path[-1].key == "kernel" else leaf, params
    )
    code = jax.random.normal(KEY, (sum(parts),))
    image = lambda p: module.apply(p, code)[0]
    np.testing.assert_allclose(jax.jit(image)(bare), 1, rtol=1e-5)
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(image(p))))(params)["params"]
    share = terms ** (1 / len(parts) - 1)  # the product of the others' constants
    for factor in range(1, len(parts) + 1):
        found = gradient[f"factor_{factor}"]["maps"]["bias"]
        assert float(found.mean()) == pytest.approx(share, rel=0.5)
        kernel = np.asarray(params["params"][f"factor_{factor}"]["maps"]["kernel"])
        assert len(np.unique(kernel)) > 0.99 * kernel.size  # terms differ
