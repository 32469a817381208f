"""Codes of a latent, the weights of a task's modules: how a student is told which task it has,
after "Scaling can lead to compositional generalization" (NeurIPS 2025)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import choice, number

INTERVALS = 10  # parts of [0, 1), which `interval_shuffle` permutes
COUPLINGS = 3  # of `invertible`


@dataclass(frozen=True)
class LatentCodeConfig:
    """How a student is given the weights z of the modules.

    identity          z itself;
    orthogonal        z turned by a random orthogonal matrix;
    tokens            each module's number and its weight in tenths, as integers;
    invertible        three affine couplings whose nets' weights have the standard deviation `std`;
    interval_shuffle  each weight moved to another tenth of [0, 1), the same for all modules;
    fewshot           `pairs` examples of the task, inputs beside outputs.

    Random maps are drawn once, by `seed`.
    """

    name: str = choice(
        "identity",
        *("identity", "orthogonal", "tokens", "invertible", "interval_shuffle", "fewshot"),
    )
    std: float = number(1.5, above=0)
    pairs: int = number(50, low=1, high=10_000)
    seed: int = number(0, low=0)


def encode(z, settings: LatentCodeConfig):
    """The code (E,) of a latent (M,). Raises ValueError for `fewshot`, which has none."""
    name, modules = settings.name, len(z)
    if name == "identity":
        return z
    if name == "orthogonal":  # uniform: the Q of a normal matrix's QR with R's signs
        rng = np.random.default_rng([settings.seed, 1])
        q, r = np.linalg.qr(rng.normal(size=(modules, modules)))
        return jnp.asarray(q * np.sign(np.diag(r)), jnp.float32) @ z
    if name == "tokens":
        numbers = jnp.arange(1, modules + 1, dtype=jnp.float32)
        tenths = jnp.floor(10 * z + 1e-4) + modules + 1  # the weight may be rounded down
        return jnp.stack([numbers, tenths], axis=1).ravel()
    if name == "interval_shuffle":
        rng = np.random.default_rng([settings.seed, 3])
        to = jnp.asarray(rng.permutation(INTERVALS), jnp.float32)
        scaled = INTERVALS * z
        interval = jnp.floor(scaled + 1e-4)  # as for tokens
        moved = (to[interval.astype(jnp.int32) % INTERVALS] + scaled - interval) / INTERVALS
        return jnp.where(z >= 1, z, moved)
    if name == "fewshot":
        raise ValueError("examples of a task are no function of its latent alone")
    # (a, b) -> (a, b (1 + .5 tanh s(a)) + t(a)) for the halves of the latent, which take turns
    rng = np.random.default_rng([settings.seed, 2])
    halves = [z[: modules // 2], z[modules // 2 :]]
    for index in range(COUPLINGS):
        a, b = halves[index % 2], halves[1 - index % 2]
        sizes = (len(a), 2 * modules, 2 * modules, len(b))
        outputs = []
        for _ in ("scale", "shift"):
            shapes = zip(sizes[:-1], sizes[1:], strict=True)
            *hidden, last = [rng.normal(0, settings.std, shape) for shape in shapes]
            values = a
            for matrix in hidden:
                values = jax.nn.sigmoid(values @ jnp.asarray(matrix, jnp.float32))
            outputs.append(values @ jnp.asarray(last, jnp.float32))
        scale, shift = outputs
        halves[1 - index % 2] = (1 + 0.5 * jnp.tanh(scale)) * b + shift
    return jnp.concatenate(halves)
