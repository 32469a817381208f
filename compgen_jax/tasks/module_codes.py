"""Codes of a latent, the weights of a task's modules: how a student is told which task it has.

After "Scaling can lead to compositional generalization" (NeurIPS 2025). All but two of that paper's
codes are affine in the latent, or nearly so. `tasks.modules` measures how well an affine map reads
the latent from each (`code_r2`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import choice, number

INTERVALS = 10  # parts of [0, 1), which `interval_shuffle` permutes
COUPLINGS = 3  # of `invertible`


@dataclass(frozen=True)
class LatentCodeConfig:
    """How a student is told the weights z of M modules.

    identity          z itself;
    orthogonal        z turned by a random orthogonal matrix;
    tokens            for each module its number and its weight in tenths, as integers;
    invertible        three affine couplings whose nets' weights have the standard deviation `std`
                      (nearly affine at the authors' .1);
    interval_shuffle  each weight moved to another tenth of [0, 1), the same for all modules;
    fewshot           `pairs` examples of the task, inputs beside outputs, instead of its latent.

    Random maps are drawn once, by `seed`.
    """

    name: str = choice(
        "identity",
        *("identity", "orthogonal", "tokens", "invertible", "interval_shuffle", "fewshot"),
    )
    std: float = number(1.5, above=0)
    pairs: int = number(50, low=1, high=10_000)
    seed: int = number(0, low=0)


def of_latent(settings: LatentCodeConfig, modules: int) -> Callable:
    """The map latent (M,) -> code (E,). Raises ValueError for `fewshot`, which has none."""
    if settings.name == "fewshot":
        raise ValueError("examples of a task are no function of its latent alone")
    return CODES[settings.name](modules, settings)


def _orthogonal(modules: int, settings):
    """Uniform over rotations and reflections: the Q of a normal matrix's QR with R's signs."""
    rng = np.random.default_rng([settings.seed, 1])
    q, r = np.linalg.qr(rng.normal(size=(modules, modules)))
    matrix = jnp.asarray(q * np.sign(np.diag(r)), jnp.float32)
    return lambda z: matrix @ z


def _tokens(modules: int, settings):
    numbers = jnp.arange(1, modules + 1, dtype=jnp.float32)

    def code(z):
        tenths = jnp.floor(10 * z + 1e-4) + modules + 1  # the weight may be rounded down
        return jnp.stack([numbers, tenths], axis=1).ravel()

    return code


def _invertible(modules: int, settings):
    """(a, b) -> (a, b (1 + .5 tanh s(a)) + t(a)) for the halves of the latent, which take turns. s
    and t are nets with two hidden layers of sigmoids."""
    rng = np.random.default_rng([settings.seed, 2])
    first = modules // 2
    layers = []
    for index in range(COUPLINGS):
        given = modules - first if index % 2 else first
        sizes = (given, 2 * modules, 2 * modules, modules - given)
        nets = [
            [jnp.asarray(rng.normal(0, settings.std, (m, n)), jnp.float32)
             for m, n in zip(sizes[:-1], sizes[1:], strict=True)]
            for _ in ("scale", "shift")
        ]  # fmt: skip
        layers.append(nets)

    def net(weights, values):
        for matrix in weights[:-1]:
            values = jax.nn.sigmoid(values @ matrix)
        return values @ weights[-1]

    def code(z):
        halves = [z[:first], z[first:]]
        for index, (scale, shift) in enumerate(layers):
            given, moved = halves[index % 2], halves[1 - index % 2]
            factor = 1 + 0.5 * jnp.tanh(net(scale, given))
            halves[1 - index % 2] = factor * moved + net(shift, given)
        return jnp.concatenate(halves)

    return code


def _interval_shuffle(modules: int, settings):
    rng = np.random.default_rng([settings.seed, 3])
    to = jnp.asarray(rng.permutation(INTERVALS), jnp.float32)

    def code(z):
        scaled = INTERVALS * z
        interval = jnp.floor(scaled + 1e-4)  # as in `_tokens`
        moved = (to[interval.astype(jnp.int32) % INTERVALS] + scaled - interval) / INTERVALS
        return jnp.where(z >= 1, z, moved)

    return code


CODES = {
    "identity": lambda modules, settings: lambda z: z,
    "orthogonal": _orthogonal,
    "tokens": _tokens,
    "invertible": _invertible,
    "interval_shuffle": _interval_shuffle,
}
