"""Figure 15: units of decoders that saw every stripe of one factor and a few bumps."""

import numpy as np

from compgen_jax.metrics import tuning

from .. import plotting
from ..figure import figure
from .lookup import bumps_of, by_bumps

LAYERS = 4
QUANTILES = {"middle": 0.5, "high": 1.0}  # of a layer's panel, which is by rising interaction
SHARES = {
    "one_factor": "one factor alone",
    "interaction": "x and y jointly",
    "product": "product of x and y",
}
CURVES = {"x": ("#6a51a3", "-"), "y": ("#238b45", "--")}
NETWORK_COLORS = ("0.45", "#c2185b")  # stripes alone, and with the most bumps


@figure("fig15", runs=("corner_bumps", "stripes_*_bumps"))
def draw_tuning(runs):
    """Figure 15: four layers of the decoder that saw stripes only (a) and of the one that saw the
    most bumps beside them (b), first seeds. For each layer two units, the middle and the last of
    eight by rising interaction of x and y. A unit's map has its own scale, the held-out corner is
    outlined, and below are the shares of its variance that x alone and y alone explain. Its tuning
    curves are the mean over y against x and the mean over x against y; the corner's columns and
    rows are shaded. (c to e) By layer, means over active units with 95% intervals over seeds: the
    share of a unit's variance (c) of x alone or of y alone, whichever is larger, (d) of x and y
    jointly, and (e), part of that, of the best product of a function of x and one of y. Dashed: a
    decoder that saw bumps alone, outside the same corner. Titles have the last hidden layer."""
    networks = by_bumps({name: run for name, run in runs.items() if name != "corner_bumps"})
    shown = networks[0], networks[-1]
    picture = plotting.new_figure(plotting.WIDTH, 7.2)
    maps, shares = picture.subfigures(2, 1, height_ratios=[4.9, 2.3])
    for side, run, letter in zip(maps.subfigures(1, 2), shown, "ab", strict=True):
        title = f"{name_of(run)}, seed {run.cells.seeds[0]}"
        plotting.panel(_draw_units(side, run), letter, title, up=26)
    plotting.legend_below(maps, *maps.subfigs[0].axes)
    axes = shares.subplots(1, len(SHARES), sharey=True)
    for axis, letter, (metric, title) in zip(axes, "cde", SHARES.items(), strict=True):
        alone = runs["corner_bumps"].layers(f"tuning.{metric}")
        for run, color in zip(shown, NETWORK_COLORS, strict=True):
            values = run.layers(f"tuning.{metric}")
            plotting.draw_line(axis, values, values.shape[1] - 1, color, "-", name_of(run))
        plotting.draw_line(axis, alone, alone.shape[1] - 1, "0.2", "--", "bumps alone")
        plotting.name_layers(axis, values.shape[1])
        axis.set(xlabel="layer", ylim=(-0.02, 1.05))
        last = [run.layers(f"tuning.{metric}")[:, -2].mean() for run in shown]
        title += ": {:.2f}, with bumps {:.2f}".format(*last)
        plotting.panel(axis, letter, title, wrap=30)
    axes[0].set_ylabel("share of a unit's variance")
    plotting.legend_below(shares)
    return picture


def _draw_units(picture, run):
    """Returns the first axis."""
    hidden = np.arange(1, len(run.layer_names) - 1)
    layers = hidden[np.linspace(0, len(hidden) - 1, LAYERS).round().astype(int)]
    axes = picture.subplots(LAYERS, 2 * len(QUANTILES), width_ratios=[1, 1.2] * len(QUANTILES))
    held_out = run.maps["held_out"]
    for row, layer in zip(axes, layers, strict=True):
        panel = run.maps[f"units.{run.layer_names[layer]}"]
        for pair, quantile in zip((row[:2], row[2:]), QUANTILES.values(), strict=True):
            if len(panel):
                unit = panel[round(quantile * (len(panel) - 1))]
                show_unit(pair[0], unit, held_out)
                draw_curves(pair[1], unit, held_out)
            pair[1].set_yticks([])
            pair[1].tick_params(labelbottom=layer == layers[-1])
        row[0].set_ylabel(f"layer {layer}")
    for axis, name in zip(axes[0, ::2], QUANTILES, strict=True):
        axis.set_title(f"{name}\ninteraction", pad=3, fontsize=plotting.SMALL)
    for axis in axes[-1, 1::2]:
        axis.set_xlabel("x or y (pixels)", fontsize=plotting.SMALL)
    return axes[0, 0]


def name_of(run) -> str:
    return f"{bumps_of(run)} bumps" if bumps_of(run) else "stripes only"


def show_unit(axis, map_NxN, held_out):
    """A unit's map on its own scale; below, the shares of its variance that x alone and y alone
    explain."""
    plotting.show_cells(axis, map_NxN, held_out, plotting.OOD_COLOR)
    x, y = tuning.tuning(map_NxN.reshape(-1, 1), map_NxN.shape[::-1]).main[:, 0]
    text = "dead" if np.isnan(x) else f"x {x:.2f}, y {y:.2f}"
    axis.set_xlabel(text, fontsize=plotting.SMALL, labelpad=2)


def draw_curves(axis, map_NxN, held_out):
    """Mean over y as a function of x, and mean over x as a function of y."""
    curves = tuning.marginals(map_NxN[..., None])
    for (name, (color, dash)), curve in zip(CURVES.items(), curves, strict=True):
        axis.plot(curve[:, 0], dash, color=color, linewidth=1.2, label=f"against {name}")
    hidden = np.flatnonzero(held_out.any(axis=0))
    corner = {"color": "0.93", "linewidth": 0, "zorder": 0, "label": "held-out rows, columns"}
    axis.axvspan(hidden[0] - 0.5, hidden[-1] + 0.5, **corner)
    axis.set(xlim=(-0.5, len(map_NxN) - 0.5), xticks=[0, len(map_NxN) - 1])
