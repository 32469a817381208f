"""What an NNX module must be; `tests/test_extend.py` trains one."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from compgen_jax.config import ConfigError
from compgen_jax.models.nnx_adapter import NNXModel
from tests.models.oracles import KEY, of_image

CODE = jnp.arange(4.0)


@dataclass(frozen=True)
class Deep(NNXModel):
    """Dense layers in a list, and whatever `added` gives."""

    added: tuple = ()

    def make_nnx(self, shapes, rngs):
        class Net(nnx.Module):
            def __init__(net):
                net.layers = nnx.List([nnx.Linear(4, 4, rngs=rngs) for _ in range(2)])
                net.others = nnx.List([kind(4, rngs=rngs) for kind in self.added])

            def __call__(net, code):
                return net.layers[1](net.layers[0](code)), {"code": code}

        return Net()


def test_parameters_have_the_names_of_their_paths_and_seeds_their_own_values():
    shapes = of_image(4, 4)
    module = Deep().make(shapes)
    first, second = (module.init(jax.random.key(seed), CODE)["params"]["nnx"] for seed in (0, 1))
    names = [f"layers.{k}.{kind}.value" for k in (0, 1) for kind in ("bias", "kernel")]
    assert list(first) == names
    assert (first[names[1]] != second[names[1]]).all() and (
        first[names[1]] != first[names[3]]
    ).all()


def test_other_variables_are_refused():
    module = Deep((nnx.BatchNorm,)).make(of_image(4, 4))
    with pytest.raises(ConfigError, match="may have nnx.Param alone"):
        module.init(KEY, CODE)
