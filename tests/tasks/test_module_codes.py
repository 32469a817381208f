"""Codes of a latent against NumPy, digit by digit, and what each of them keeps of it."""

import itertools
from functools import partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.tasks import module_codes, modules
from compgen_jax.tasks.module_codes import LatentCodeConfig

M = 7
RNG = np.random.default_rng(1)
LATENTS = np.float32(RNG.uniform(0.5, 1, (200, M)) * RNG.integers(0, 2, (200, M)))
# (B, M): each weight in each place, 0 elsewhere and 1 elsewhere; as float32 has them
PLACED = itertools.product(np.eye(M), [0.0, *modules.LEVELS], (0.0, 1.0))
EVERY_LEVEL = np.float32([np.where(place, level, others) for place, level, others in PLACED])


def of(name, **settings):
    encode = partial(module_codes.encode, settings=LatentCodeConfig(name, **settings))
    return jax.jit(jax.vmap(encode))


def test_an_orthogonal_code_is_a_turned_latent():
    basis = np.float64(of("orthogonal")(np.eye(M)))  # row m: the code of module m
    assert_allclose(basis @ basis.T, np.eye(M), atol=1e-6)
    code = of("orthogonal")(LATENTS)
    assert not np.allclose(of("orthogonal", seed=1)(LATENTS), code, atol=0.1)
    assert_allclose(code, LATENTS @ basis, atol=1e-5)


def test_tokens_are_numbers_beside_tenths():
    code = np.asarray(of("tokens")(EVERY_LEVEL))
    assert_array_equal(code[:, 1::2], np.round(10 * EVERY_LEVEL) + M + 1)
    assert (code[:, ::2] == np.arange(1, M + 1)).all()
    below = np.nextafter(EVERY_LEVEL, np.float32(0))  # as another order of rounding has them
    assert_array_equal(of("tokens")(below), code)
    found, tenths = np.asarray(of("tokens")(LATENTS))[:, 1::2], 10 * LATENTS
    inside = np.abs(tenths - np.round(tenths)) > 1e-3  # no tenth's end is near
    assert_array_equal(found[inside], (np.floor(tenths) + M + 1)[inside])


def net(layers, values):
    for matrix in layers[:-1]:
        values = 1 / (1 + np.exp(-values @ matrix))
    return values @ layers[-1]


def coupled(z, std, seed):
    """By turns one half moves the other, by two nets as they are drawn, in float64."""
    rng, count = np.random.default_rng([seed, 2]), len(z)
    fixed, moved = z[: count // 2], z[count // 2 :]
    for _ in range(3):
        sizes = len(fixed), 2 * count, 2 * count, len(moved)
        scale, shift = ([rng.normal(0, std, s) for s in itertools.pairwise(sizes)] for _ in "ab")
        moved = moved * (1 + 0.5 * np.tanh(net(scale, fixed))) + net(shift, fixed)
        fixed, moved = moved, fixed
    return np.concatenate([moved, fixed])


@pytest.mark.parametrize(("count", "std", "seed"), [(7, 1.5, 0), (6, 0.1, 3), (2, 1.0, 1)])
def test_couplings_against_loops(count, std, seed):
    z = LATENTS[:12, :count]
    expected = [coupled(latent, std, seed) for latent in z]
    assert_allclose(of("invertible", std=std, seed=seed)(z), expected, atol=2e-4)


def test_shuffled_intervals_against_a_loop():
    to, z = np.random.default_rng([4, 3]).permutation(10), np.concatenate([EVERY_LEVEL, LATENTS])
    interval = np.floor(10 * np.float64(z) + 1e-4).astype(int)
    expected = np.where(z >= 1, z, z + (to[interval % 10] - interval) / 10)
    assert_allclose(of("interval_shuffle", seed=4)(z), expected, atol=1e-6)
