"""Metric tensors of any network: checked, and reported as numbers, text and a table."""

from dataclasses import dataclass

import numpy as np
import pandas

from compgen_jax.metrics import geometry, kernels, layers, text
from compgen_jax.metrics.layers import Layer
from compgen_jax.settings import demand

SYMMETRIC = 1e-3  # of the largest entry: what float32 leaves of two equal products


@dataclass(frozen=True, repr=False)
class GeometryReport:
    """Geometry of each layer; prints as a table.

    numbers: {layer: {name: value}}, those of `layers.geometry_numbers` that are known.
    volume, log10_volume: {layer: (B,)}, see `geometry.volume_element` and `geometry.log_volume`.
    """

    numbers: dict
    volume: dict
    log10_volume: dict

    def __repr__(self) -> str:
        return self.to_frame().to_string(float_format=text.number)

    def to_frame(self) -> pandas.DataFrame:
        """A row for each layer, a column for each number."""
        return pandas.DataFrame(self.numbers).T.rename_axis("layer")


def report(tensors: dict, held_out=None) -> GeometryReport:
    """See `api.geometry`; `tensors` {layer: (B, F, F)}, NumPy."""
    demand(tensors, "tensors: must have at least one layer")
    reported = GeometryReport({}, {}, {})
    for name, g in tensors.items():
        fits = g.ndim == 3 and len(g) and g.shape[1] == g.shape[2] > 0 and g.dtype.kind in "iuf"
        wanted = "must be (B, F, F) real numbers, g = J^T J at B points"
        demand(fits, f"tensors of {name} {g.shape} {g.dtype}: {wanted}")
        kernels.check_finite(f"tensors of {name}", g)
        apart = np.abs(g - g.swapaxes(1, 2)).max() / max(np.abs(g).max(), 1e-30)
        demand(apart <= SYMMETRIC, f"tensors of {name}: must be symmetric, g = J^T J at each point")
        mask = np.zeros(len(g), bool) if held_out is None else held_out
        is_mask = mask.shape == g.shape[:1] and mask.dtype == bool
        demand(is_mask, f"held_out {mask.shape} {mask.dtype}: must be ({len(g)},) bool")
        values = layers.geometry_numbers(Layer(None, None, mask, costly={"tensors": g}.get))
        reported.numbers[name] = {key: values[key] for key in values if np.isfinite(values[key])}
        reported.volume[name] = np.asarray(geometry.volume_element(g), np.float64)
        reported.log10_volume[name] = geometry.log_volume(reported.volume[name])
    return reported
