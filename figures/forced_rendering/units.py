"""Figure 15: units of decoders that saw every stripe of one factor and a few bumps."""

import numpy as np

from compgen_jax.metrics import tuning
from figures import plotting

LAYERS = 4
QUANTILES = {"middle": 0.5, "high": 1.0}  # of a layer's panel, which is by rising interaction
SHARES = {
    "one_factor": "one factor alone",
    "interaction": "x and y jointly",
    "product": "product of x and y",
}
CURVE_COLORS = {"x": "#6a51a3", "y": "#238b45"}
NETWORK_COLORS = ("0.45", "#c2185b")  # stripes alone, and with the most bumps


def draw_tuning(studies):
    """Figure 15: four layers of the decoder that saw stripes only (left) and of the one that saw
    the most bumps (right), first seed. For each layer two units of a panel by rising interaction,
    its middle one and its last: the map, below it the shares of its variance that x alone and y
    alone explain, and its tuning curves, mean over y against x and mean over x against y, on a
    scale of their own (the corner's columns and rows shaded). Below, by layer, means over the
    active units, with intervals over seeds: the share of a unit's variance (c) of x alone or of y
    alone, whichever is larger, (d) of x and y jointly, and (e), part of that, of the best product
    of a function of x and one of y."""
    columns = by_bumps(studies)
    chosen = columns[0], columns[-1]
    figure = plotting.new_figure(9.05, 6.9)
    maps, shares = figure.subfigures(2, 1, height_ratios=[4.6, 2])
    for side, study, letter in zip(maps.subfigures(1, 2), chosen, "ab", strict=True):
        _draw_units(side, study, letter)
    axes = shares.subplots(1, len(SHARES), sharey=True)
    for axis, letter, (name, title) in zip(axes, "cde", SHARES.items(), strict=True):
        for study, color in zip(chosen, NETWORK_COLORS, strict=True):
            values = study.inspection.numbers[f"tuning.{name}"]
            plotting.draw_line(axis, values, values.shape[1] - 1, color, "-", name_of(study))
        axis.set_xticks(range(values.shape[1]), plotting.layer_names(values.shape[1]))
        axis.set(xlabel="layer", title=title, ylim=(-0.02, 1.05))
        plotting.panel_label(axis, letter)
    axes[0].set_ylabel("share of a unit's variance")
    axes[-1].legend(loc="upper left")
    return figure


def _draw_units(figure, study, letter):
    names, maps = study.inspection.layers, study.inspection.maps
    hidden = np.arange(1, len(names) - 1)
    layers = hidden[np.linspace(0, len(hidden) - 1, LAYERS).round().astype(int)]
    axes = figure.subplots(LAYERS, 2 * len(QUANTILES), width_ratios=[1, 1.2] * len(QUANTILES))
    for row, layer in zip(axes, layers, strict=True):
        panel = maps[f"units.{names[layer]}"]
        places = zip(row[::2], row[1::2], QUANTILES.values(), strict=True)
        for axis, curves, quantile in places if len(panel) else ():
            unit = panel[round(quantile * (len(panel) - 1))]
            show_unit(axis, unit, maps["held_out"])
            draw_curves(curves, unit, maps["held_out"])
        for axis in row[1::2]:
            axis.set_yticks([])
        row[0].set_ylabel(f"layer {layer}")
    for axis, curves, name in zip(axes[0, ::2], axes[0, 1::2], QUANTILES, strict=True):
        axis.set_title(f"{name}\ninteraction", pad=3)
        plotting.legend_above(curves)
    for axis in axes[-1, 1::2]:
        axis.set_xlabel("x or y (pixels)")
    figure.suptitle(f"{name_of(study)}, seed {study.results.seeds[0]}", fontsize=8)
    plotting.panel_label(axes[0, 0], letter)


def by_bumps(studies) -> list:
    return sorted(studies, key=lambda study: study.role.bumps)


def name_of(study) -> str:
    return f"{study.role.bumps} bumps" if study.role.bumps else "stripes only"


def show_unit(axis, map_NxN, held_out):
    """A unit's map on a scale of its own; below, the shares of its variance that x alone and y
    alone explain."""
    plotting.show_cells(axis, map_NxN, held_out, plotting.OOD_COLOR)
    x, y = tuning.tuning(map_NxN.reshape(-1, 1), map_NxN.shape[::-1]).main[:, 0]
    text = "dead" if np.isnan(x) else f"x {x:.2f}, y {y:.2f}"
    axis.set_xlabel(text, fontsize=6.5, labelpad=2)


def draw_curves(axis, map_NxN, held_out):
    """Mean over y as a function of x, and mean over x as a function of y."""
    curves = tuning.marginals(map_NxN[..., None])
    for (name, color), dash, curve in zip(CURVE_COLORS.items(), ("-", "--"), curves, strict=True):
        axis.plot(curve[:, 0], dash, color=color, linewidth=1.2, label=f"of {name}")
    hidden = np.flatnonzero(held_out.any(axis=0))
    axis.axvspan(hidden[0] - 0.5, hidden[-1] + 0.5, color="0.93", linewidth=0, zorder=0)
    axis.set(xlim=(-0.5, len(map_NxN) - 0.5), xticks=[0, len(map_NxN) - 1])
