"""Layers of every family are replaced, and what is computed from them follows."""

from functools import partial
from operator import itemgetter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import ConfigError
from compgen_jax.metrics import intervention
from compgen_jax.models.flow import Flow
from compgen_jax.models.mlp import MLP
from compgen_jax.models.pixelwise import Pixelwise
from compgen_jax.models.task_conditioned import Hypernetwork, TaskMLP, TaskTransformer
from tests.models.oracles import draw_inputs, of_image, variables
from tests.models.test_models import of_families

# what does not pass through the layer: later steps of a sample, the code beside a layer
PART = {Flow: slice(1, None), TaskTransformer: slice(0, -1), Hypernetwork: slice(1, 2)}
# the first layer that the next is not computed from: it reads summands, or code and input apart
BESIDE = {Pixelwise: "layer_01", TaskMLP: "layer_00", Hypernetwork: "layer_00"}


@of_families
def test_patched_with_the_layer_of_another_example_the_output_is_that_ones(settings, shapes):
    module, inputs = settings.make(shapes), draw_inputs(shapes, 2)
    network = partial(module.apply, variables(module, shapes, 0))
    example, other = (jax.tree.map(itemgetter(k), inputs) for k in (0, 1))
    (output, layers), (wanted, donor) = network(example), network(other)
    shares = getattr(settings, "shared", True)  # without it, pixels read the sum
    parts = list(layers)[PART.get(type(settings), slice(0))]
    for name in layers:
        replace = lambda value, name=name: intervention.intervene(network, {name: value}, example)
        if shares and name == BESIDE.get(type(settings)):
            with pytest.raises(ConfigError, match=f"layer '{name}': is recorded beside"):
                replace(lambda activation: activation)
            continue
        np.testing.assert_allclose(replace(lambda activation: activation), output, atol=1e-6)
        patched = replace(donor[name])
        assert np.abs(patched - output).max() > 1e-4
        if name not in parts:
            np.testing.assert_allclose(patched, wanted, atol=1e-5)


def test_functions_see_what_replaced_earlier_layers_lead_to():
    """Against a forward pass in NumPy."""
    shapes = of_image(8, 4)
    module = MLP(depth=3, width=5).make(shapes)
    params, code = variables(module, shapes, 0), draw_inputs(shapes)
    network = partial(module.apply, params)
    functions = {"layer_03": jnp.sqrt, "layer_01": lambda hidden: 2 * hidden + 1}
    value = np.asarray(code, np.float64)
    for name in ("hidden_1", "hidden_2", "hidden_3", "image"):
        layer = params["params"][name]
        value = value @ np.float64(layer["kernel"]) + np.float64(layer["bias"])
        value = value if name == "image" else np.maximum(value, 0)
        value = {"hidden_1": lambda v: 2 * v + 1, "hidden_3": np.sqrt}.get(name, lambda v: v)(value)
    output = intervention.intervene(network, functions, code)
    np.testing.assert_allclose(output.ravel(), value, rtol=1e-5, atol=1e-6)


def test_copies_of_parts_are_written_back_to_what_they_are_of():
    """A recorded slice, transposed and beside another array: 3 (a_1, a_2) + b, both doubled."""

    def network(example):
        a, b = 3.0 * example, jnp.sin(example[:2])
        recorded = jnp.concatenate([a.reshape(3, 1)[1:].T, b[None]])
        return a.sum() + 10 * b.sum(), {"layer": recorded}

    example = jnp.array([1.0, 2.0, 4.0])
    doubled = intervention.intervene(network, {"layer": lambda rows: 2 * rows}, example)
    assert doubled == pytest.approx(3 + 2 * 18 + 20 * (np.sin(1) + np.sin(2)))


def test_a_layer_with_a_constant_unit_is_replaced_as_a_whole():
    def network(example):
        layer = jnp.concatenate([example, jnp.ones(1)])
        return layer.sum(), {"layer": layer}

    output = intervention.intervene(network, {"layer": lambda row: 3 * row}, jnp.array([1.0, 2.0]))
    assert output == pytest.approx(12)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hiden": jnp.sin}, "layer 'hiden': no such layer; nearest: hidden, aside"),
        ({"hidden": lambda hidden: hidden[1:]}, r"replaced by \(2,\), must be \(3,\)"),
        ({"hidden": np.zeros((3, 1))}, r"replaced by \(3, 1\), must be \(3,\)"),
        ({"aside": jnp.sin}, "layer 'aside': is recorded beside"),
    ],
)
def test_refusals(values, message):
    network = lambda x: (x.sum(), {"hidden": x, "aside": jnp.cos(x)})
    with pytest.raises(ConfigError, match=message):
        intervention.intervene(network, values, jnp.arange(3.0))
