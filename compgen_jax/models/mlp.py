"""The paper's MLP decoder (Table 1, appendix F.3)."""

from flax import linen as nn

from compgen_jax.models import initializers
from compgen_jax.models.naming import name_layers


def dense(features: int, name: str, initial_weights: str, x):
    """A linear layer of the module that calls it, by that law of initial weights."""
    init = initializers.for_dense(initial_weights, x.shape[-1])
    return nn.Dense(features, kernel_init=init.kernel, bias_init=init.bias, name=name)(x)


class MLPDecoder(nn.Module):
    """Code -> image: `depth` dense layers of `width` ReLU units, then a linear layer to N*N.

    Written for one code; leading axes of the code are carried through.
    """

    grid: int
    width: int
    depth: int
    initial_weights: str = "torch"

    @nn.compact
    def __call__(self, code):
        """(..., E) -> image (..., N, N) and the activations by layer name, code first."""
        layers = [code]
        for index in range(1, self.depth + 1):
            layers.append(
                nn.relu(dense(self.width, f"hidden_{index}", self.initial_weights, layers[-1]))
            )
        image = dense(self.grid**2, "image", self.initial_weights, layers[-1])
        return image.reshape(*image.shape[:-1], self.grid, self.grid), name_layers(layers)
