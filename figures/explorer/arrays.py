"""Arrays inside a page, which arrays.js reads."""

import base64
import zlib

import numpy as np

DTYPES = ("float32", "uint8", "int8", "uint16", "int16", "int32")  # JavaScript has each of them


def encode(array) -> dict:
    """An array as JSON: {"dtype", "shape", "deflate": base64}, little-endian, in C order. Floats
    become float32, and truth values uint8. Raises TypeError for another dtype not in `DTYPES`."""
    array = np.asarray(array)
    if np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float32)
    if array.dtype == bool:
        array = array.astype(np.uint8)
    name = array.dtype.name
    if name not in DTYPES:
        raise TypeError(f"an array of {name} is not one of {DTYPES}")
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    deflated = base64.b64encode(zlib.compress(data, 9)).decode()
    return {"dtype": name, "shape": list(array.shape), "deflate": deflated}


def encode_between(values, low: float, high: float, levels: int = 255) -> dict:
    """Values as whole numbers from 0, for `low` and what is below, to `levels`, for `high`."""
    share = np.clip((values - low) / max(high - low, 1e-12), 0, 1)
    encoded = encode(np.round(share * levels).astype(np.uint8))
    return encoded | {"low": float(low), "high": float(high), "levels": levels}


def encode_scaled(values) -> dict:
    """The same between the least of the values and the largest."""
    return encode_between(values, float(np.min(values)), float(np.max(values)))
