"""Arrays inside a page: as base64, which `decodeArray` in network.js reads."""

import base64

import numpy as np

DTYPES = ("float32", "uint8", "int8", "uint16", "int16", "int32")  # JavaScript has each of them


def encode(array) -> dict:
    """An array as JSON: {"dtype", "shape", "base64"}, little-endian, in C order. Floats become
    float32. Raises TypeError for another dtype that is not one of `DTYPES`."""
    array = np.asarray(array)
    if np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float32)
    name = array.dtype.name
    if name not in DTYPES:
        raise TypeError(f"an array of {name} is not one of {DTYPES}")
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return {"dtype": name, "shape": list(array.shape), "base64": base64.b64encode(data).decode()}


def decode(entry: dict) -> np.ndarray:
    """The array that `encode` made this of."""
    data = base64.b64decode(entry["base64"], validate=True)
    return np.frombuffer(data, np.dtype(entry["dtype"]).newbyteorder("<")).reshape(entry["shape"])
