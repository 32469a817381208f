"""The machine that trained a run: for the reader of its directory, not part of its identity."""

import os
import platform

import jax


def describe() -> dict:
    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "device": jax.local_devices()[0].device_kind,
        "device_count": jax.local_device_count(),
        "cpu_count": os.cpu_count(),
    }
