"""network.js in Chromium against NumPy and JAX."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from figures.explorer import arrays, live
from tests.figures import live_networks

DTYPES = "float32", "uint8", "int8", "uint16", "int16", "int32"
SOURCES = [Path(arrays.__file__).with_name(f"{name}.js") for name in ("network", "arrays")]
# a page from disk may not load a module from disk, but it may from its own address
IMPORT = """
const [addresses, encoded, done] = arguments;
Promise.all(addresses.map((address) => import(address))).then(async ([network, arrays]) => {
  const argument = await arrays.decodeArrays(encoded);
  done(JSON.stringify((() => { %s })()));
});
"""


@pytest.fixture
def in_module(open_page, tmp_path):
    """in_module(body, argument): what a function body returns, of the module `network` and of the
    argument with its arrays decoded."""
    (tmp_path / "empty.html").write_text("<!doctype html><title>network.js</title>")
    driver = open_page(tmp_path / "empty.html")
    texts = [base64.b64encode(source.read_bytes()).decode() for source in SOURCES]
    addresses = [f"data:text/javascript;base64,{text}" for text in texts]

    def run(body, argument=None):
        return json.loads(driver.execute_async_script(IMPORT % body, addresses, argument))

    return run


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_arrive_as_they_were(in_module, dtype):
    array = np.linspace(0, 127, 6, dtype=dtype).reshape(2, 3)
    body = "const { shape, values } = argument;"
    body += "return { shape, values: [...values], type: values.constructor.name };"
    found = in_module(body, arrays.encode(array))
    assert found["shape"] == [2, 3] and found["type"].lower() == f"{dtype}array"
    np.testing.assert_array_equal(np.array(found["values"], dtype), array.ravel())


DRAW = """
const network_of_spec = network.makeNetwork(argument.spec);
return argument.codes.map((code) => {
  const { output, activations } = network_of_spec.draw(Float32Array.from(code));
  const layers = activations.map(({ name, shape, values }) => [name, shape, [...values]]);
  return { output: [...output], layers };
});
"""


@pytest.mark.parametrize("name", live_networks.CASES)
def test_it_draws_what_jax_draws(in_module, name):
    run = live_networks.network(name)
    codes = live_networks.codes(run)
    predictions, layers = live_networks.in_jax(run, 7, codes)
    found = in_module(DRAW, {"spec": live.live_network(run, 7), "codes": codes.tolist()})
    assert len(found) == 20 and np.ptp(predictions) > 0.1  # not all the same
    for index, drawn in enumerate(found):
        np.testing.assert_allclose(drawn["output"], predictions[index].ravel(), rtol=0, atol=1e-4)
        shapes = {name: tuple(shape) for name, shape, _ in drawn["layers"]}
        assert list(shapes.items()) == [(name, each.shape[1:]) for name, each in layers.items()]
        for name, _, values in drawn["layers"]:
            np.testing.assert_allclose(values, layers[name][index].ravel(), rtol=0, atol=1e-4)


def test_a_drawing_leaves_the_earlier_ones_alone(in_module):
    """A page keeps what was drawn last to lay it beside what is drawn now."""
    spec = live.live_network(live_networks.network("conv"), seed=0)
    body = """
    const { draw } = network.makeNetwork(argument);
    const first = draw(new Float32Array(24).fill(0.5));
    const before = JSON.stringify(first);
    draw(new Float32Array(24).fill(-1));
    return before === JSON.stringify(first);
    """
    assert in_module(body, spec)
