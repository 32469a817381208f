"""Arrays inside a page, which arrays.js reads."""

import base64
import zlib

import numpy as np


def encode(array) -> dict:
    """An array as JSON: {"dtype", "shape", "deflate": base64}, little-endian, in C order. Floats
    become float32, and truth values uint8; whole numbers have up to 32 bits."""
    array = np.asarray(array)
    to = {"f": np.dtype(np.float32), "b": np.dtype(np.uint8)}.get(array.dtype.kind, array.dtype)
    data = zlib.compress(array.astype(to.newbyteorder("<")).tobytes(), 9)
    shape, deflated = list(array.shape), base64.b64encode(data).decode()
    return {"dtype": to.name, "shape": shape, "deflate": deflated}


def encode_between(values, low=None, high=None, levels: int = 255) -> dict:
    """Values as whole numbers from 0, for `low` and what is below, to `levels`, for `high`; by
    default the least and the largest."""
    low, high = (
        float(end(values) if limit is None else limit)
        for limit, end in ((low, np.min), (high, np.max))
    )
    share = np.clip((values - low) / max(high - low, 1e-12), 0, 1)
    encoded = encode(np.round(share * levels).astype(np.uint8))
    return encoded | {"low": low, "high": high, "levels": levels}
