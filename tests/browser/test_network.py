"""network.js in Chromium against NumPy and JAX."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from figures.explorer import arrays

SOURCE = Path(arrays.__file__).with_name("network.js")
# a page from disk may not load a module from disk, but it may from its own address
IMPORT = "const [address, argument] = arguments, done = arguments[arguments.length - 1];"
IMPORT += "import(address).then((network) => done(JSON.stringify((() => { %s })())));"


@pytest.fixture
def in_module(open_page, tmp_path):
    """in_module(body, argument): what a function body of `network` and `argument` returns."""
    (tmp_path / "empty.html").write_text("<!doctype html><title>network.js</title>")
    driver = open_page(tmp_path / "empty.html")
    address = "data:text/javascript;base64," + base64.b64encode(SOURCE.read_bytes()).decode()

    def run(body, argument=None):
        return json.loads(driver.execute_async_script(IMPORT % body, address, argument))

    return run


@pytest.mark.parametrize("dtype", arrays.DTYPES)
def test_arrays_arrive_as_they_were(in_module, dtype):
    array = (np.arange(6).reshape(2, 3) * 37 % 128).astype(dtype)
    if dtype == "float32":
        array = array / 7 - 5
    body = "const { shape, values } = network.decodeArray(argument);"
    body += "return { shape, values: [...values], type: values.constructor.name };"
    found = in_module(body, arrays.encode(array))
    assert found["shape"] == [2, 3] and found["type"].lower() == f"{dtype}array"
    np.testing.assert_array_equal(np.array(found["values"], dtype), array.ravel())
