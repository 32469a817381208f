"""A network of your own, measured layer by layer: exact metric tensors, probes, decompositions."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from compgen_jax.metrics import function


class Decoder(nn.Module):
    @nn.compact
    def __call__(self, point):
        hidden = nn.tanh(nn.Dense(64)(point))
        return nn.Dense(256)(nn.tanh(nn.Dense(64)(hidden)))


def main():
    model = Decoder()
    params = model.init(jax.random.key(0), jnp.zeros(2))  # or your trained ones

    def activations(point):
        _, state = model.apply(params, point, capture_intermediates=True)
        return state["intermediates"]

    axes = [np.linspace(-1, 1, 16)] * 2
    found = function.measure(activations, axes, lambda points: (abs(points) < 0.5).all(axis=1))
    for layer, numbers in found.items():
        volume, probe = numbers["volume.log10_ratio"], numbers["probe.ood_r2"]
        joint = numbers["anova.interaction"]
        print(f"{layer:20} volume {volume:6.2f}  probe {probe:6.2f}  interaction {joint:.2f}")


if __name__ == "__main__":
    main()
