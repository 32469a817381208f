"""The two units that the paper shows in Figure 4f, at the same place in a network of ours."""

from math import isqrt

import numpy as np

from compgen_jax.metrics import tuning
from compgen_jax.runs.results import FinishedRun

# (layer, channel, row, column) at N = 28, sides 7 and 28; at another size at the same place
PAPER_UNITS = ((1, 1, 2, 4), (4, 0, 13, 11))


def paper_unit_maps(run: FinishedRun):
    """(U, N, N): what they do over the grid, in the first seed; as far as a model has them."""
    maps, width = [], getattr(run.config.model, "width", 0)
    for number, channel, row, column in PAPER_UNITS if run.config.model.name == "conv" else ():
        layer = f"layer_{number:02d}"
        if layer in run.layer_names and channel < width:
            of_units = run.unit_maps(layer)
            side, of_28 = isqrt(len(of_units) // width), 7 if number == 1 else 28
            place = row * side // of_28, column * side // of_28
            maps.append(of_units[tuning.unit_index(side, width, channel, *place)])
    return np.array(maps)
