"""Metric tensors of any network: checked, and reported as numbers, text and a table."""

from dataclasses import dataclass

import numpy as np
import pandas

from compgen_jax.metrics import geometry, kernels, layers, text
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
    numbers, volume, log10_volume = {}, {}, {}
    for name, tensors_BxFxF in tensors.items():
        shape = tensors_BxFxF.shape
        fits = len(shape) == 3 and shape[0] > 0 and shape[1] == shape[2] > 0
        demand(fits, f"tensors of {name} {shape}: must be (B, F, F), g = J^T J at B points")
        is_real = tensors_BxFxF.dtype.kind in "iuf"
        demand(is_real, f"tensors of {name}: {tensors_BxFxF.dtype}, not real numbers")
        kernels.check_finite(f"tensors of {name}", tensors_BxFxF)
        apart = np.abs(tensors_BxFxF - tensors_BxFxF.swapaxes(1, 2)).max()
        is_symmetric = apart <= SYMMETRIC * np.abs(tensors_BxFxF).max()
        demand(is_symmetric, f"tensors of {name}: must be symmetric, g = J^T J at each point")
        mask = np.zeros(len(tensors_BxFxF), bool) if held_out is None else held_out
        is_mask = mask.shape == shape[:1] and mask.dtype == bool
        wanted = f"must be ({shape[0]},) bool, one for each point of {name}"
        demand(is_mask, f"held_out {mask.shape} {mask.dtype}: {wanted}")
        layer = layers.Layer(None, None, mask, costly={"tensors": tensors_BxFxF}.get)
        values = layers.geometry_numbers(layer)
        numbers[name] = {key: value for key, value in values.items() if np.isfinite(value)}
        volume[name] = np.asarray(geometry.volume_element(tensors_BxFxF), np.float64)
        log10_volume[name] = geometry.log_volume(volume[name])
    return GeometryReport(numbers, volume, log10_volume)
