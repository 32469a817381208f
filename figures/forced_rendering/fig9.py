"""Figure 9: decoders of a turned object, of which a gap of angles is held out."""

from typing import NamedTuple

import jax
import numpy as np

from compgen_jax.metrics import circle, evaluation
from compgen_jax.metrics.circle import Gap
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.models import model
from compgen_jax.tasks import task as tasks
from compgen_jax.training import family
from figures import plotting

TITLES = {"": "one object", "objects": "several objects"}  # by the role's control
COLORS = {"": "#0072b2", "objects": "#009e73"}
TRIVIAL = {"edges' cross-fade": ("0.25", "--"), "nearer edge": ("0.55", ":")}
SHOWN = 10  # angles of the gap whose images are drawn
AROUND = 25.0  # degrees beside the gap in the enlarged part of panel a
UMAP = {"n_neighbors": 15, "min_dist": 0.1, "random_state": 42}  # the authors'
# sizes in inches
WIDTH, HEIGHT, IMAGE, LEFT = 9.05, 7.35, 0.58, 1.18


class Shown(NamedTuple):
    """One network: the gap, all cells of its object by rising angle, and these angles, from 0."""

    results: CellResults
    gap: Gap
    cells: np.ndarray
    angles: np.ndarray


def draw(studies):
    """Figure 9, of a decoder of one object and, where there is one, of a decoder of several, of
    which one has the gap (shaded; the others were seen there). (a) Error against the angle, over a
    blank image's, of that object, whole circle and around the gap: geometric mean and range of the
    seeds; in the gap, what the edges' images, cross-faded by the angle, and the nearer edge's image
    would give. (b) Every layer of the first seed of the first network, one point for each angle,
    with the method, and for PCA the share of variance, above; rimmed in red, the gap. (c) At angles
    of the gap (red) and at its edges, the nearest seen angles (blue): what is asked, and what the
    first seeds draw; below, the share of the image's square outside the span of both edges' images.
    (d) These, cross-faded linearly by the angle. From white, 0 or less, to black, the largest true
    value."""
    studies = sorted(studies, key=lambda study: list(TITLES).index(study.role.control))
    shown = {study.role.control: shown_of(study.results) for study in studies}
    figure = plotting.new_figure(WIDTH, HEIGHT)
    _draw_errors(figure, shown)
    _draw_layers(figure, studies[0], next(iter(shown.values())))
    _draw_images(figure, shown)
    return figure


def shown_of(results: CellResults) -> Shown:
    """Of the first object that has a gap. ValueError as `circle.gaps`."""
    gap = circle.gaps(results.factors, results.held_out)[0]
    same = (results.factors[:, 1:] == np.array(gap.label)[None]).all(axis=1)
    angles = results.factors[:, 0] % circle.PERIOD
    cells = np.flatnonzero(same)
    cells = cells[np.argsort(angles[cells])]
    return Shown(results, gap, cells, angles[cells])


# --- a: errors -------------------------------------------------------------------------------


def _draw_errors(figure, shown):
    whole = plotting.axis_at(figure, 0.65, 5.55, 4.0, 1.45)
    part = plotting.axis_at(figure, 5.05, 5.55, 2.2, 1.45)
    first = next(iter(shown.values()))
    low, high = _ends(first)
    for axis in (whole, part):
        axis.axvspan(low, high, color=plotting.OOD_COLOR, alpha=0.12, linewidth=0)
        for control, one in shown.items():
            _draw_curve(axis, one, low, COLORS[control], TITLES[control])
        for name, errors in trivial(first).items():
            color, style = TRIVIAL[name]
            place = low + (high - low) * first.gap.place
            axis.plot(place, errors, style, color=color, linewidth=1.2, label=name)
        axis.set(yscale="log", xlabel="angle (degrees)")
    whole.set(xlim=(0, circle.PERIOD), ylabel="MSE / blank image's")
    whole.set_xticks(np.arange(0, circle.PERIOD + 1, 60))
    part.set(xlim=(low - AROUND, high + AROUND), ylim=whole.get_ylim(), title="around the gap")
    part.tick_params(labelleft=False)
    part.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    plotting.panel_label(whole, "a")


def _ends(one: Shown):
    """The gap's edges in degrees, the second above the first."""
    before, after = one.results.factors[list(one.gap.edges), 0] % circle.PERIOD
    return before, after + circle.PERIOD * (after <= before)


def _blank(one: Shown):
    return np.square(one.results.truths[one.cells]).mean()


def _draw_curve(axis, one: Shown, low, color, label):
    errors_TxA = evaluation.errors(one.results)[:, one.cells] / _blank(one)
    # a circle: once more to either side
    angles = np.concatenate([one.angles + turn * circle.PERIOD for turn in (-1, 0, 1)])
    around = lambda values_A: np.tile(values_A, 3)
    axis.fill_between(
        angles, around(errors_TxA.min(axis=0)), around(errors_TxA.max(axis=0)), color=color,
        alpha=0.2, linewidth=0,
    )  # fmt: skip
    mean = np.exp(np.log(np.maximum(errors_TxA, 1e-12)).mean(axis=0))
    axis.plot(angles, around(mean), color=color, linewidth=1.2, label=label)


def trivial(one: Shown) -> dict:
    """(Q,) errors in the gap, over a blank image's, by name."""
    true = one.results.truths.astype(np.float64)
    edges, place = true[list(one.gap.edges)], one.gap.place
    found = dict(zip(TRIVIAL, (place, np.round(place)), strict=True))
    return {
        name: np.square(circle.cross_fade(*edges, at) - true[one.gap.cells]).mean(axis=(1, 2))
        / _blank(one)
        for name, at in found.items()
    }


# --- b: layers -------------------------------------------------------------------------------


def layers_of(study, cells) -> dict:
    """The first seed's activations (B, D) of every layer at some cells, by name."""
    task, key = study.run.task, jax.random.key(0)  # an example leaves nothing open
    params = jax.tree.map(lambda leaf: leaf[0], study.run.params)
    codes = tasks.examples_at(task, key, tasks.cells(task.factors)[cells]).input
    module = study.config.model.make(family.shapes_of(task))
    found = model.apply(module, params, codes)[1]
    return {name: np.asarray(found[name]).reshape(len(cells), -1) for name in sorted(found)}


def flattened(layer_BxD):
    """(B, 2) coordinates of a layer and how they were found: by UMAP, with the authors' settings,
    where `umap-learn` is there, else the first two principal components."""
    try:
        import umap
    except ImportError:
        return _principal(layer_BxD)
    return umap.UMAP(n_jobs=1, **UMAP).fit_transform(layer_BxD), "UMAP"


def _principal(layer_BxD):
    centred = np.asarray(layer_BxD, np.float64) - np.mean(layer_BxD, axis=0, keepdims=True)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    found = np.zeros((len(centred), 2))
    found[:, : values[:2].size] = (left * values[None])[:, :2]
    total = np.square(values).sum()
    share = np.square(values[:2]).sum() / total if total > 0 else 1.0
    return found, f"PCA, {share:.0%} of variance"


def _draw_layers(figure, study, one: Shown):
    layers = layers_of(study, one.cells)
    pitch = min(1.75, (WIDTH - 1.1) / len(layers))
    size = min(1.3, pitch - 0.25)
    hidden = one.results.held_out[one.cells]
    for index, (name, layer) in enumerate(layers.items()):
        axis = plotting.axis_at(figure, 0.4 + index * pitch, 3.4, size, size)
        found, method = flattened(layer)
        points = axis.scatter(*found.T, c=one.angles, cmap="hsv", vmin=0, vmax=360, s=7,
                              linewidths=0)  # fmt: skip
        # beneath the others, as a rim
        axis.scatter(*found[hidden].T, s=28, color=plotting.OOD_COLOR, linewidths=0, zorder=0)
        title = "code" if index == 0 else f"layer {int(name.rpartition('_')[2])}"
        axis.set_title(f"{title}\n{method}", pad=3, fontsize=7)
        axis.set(xticks=[], yticks=[])
        axis.set_aspect("equal", adjustable="datalim")
        axis.spines[:].set(visible=True, color="0.7", linewidth=0.8)
        if index == 0:
            axis.set_ylabel(f"{TITLES[study.role.control]}, seed {one.results.seeds[0]}")
            plotting.panel_label(axis, "b")
    bar = plotting.axis_at(figure, 0.4 + len(layers) * pitch - pitch + size + 0.12, 3.4, 0.08, size)
    figure.colorbar(points, cax=bar, label="angle (degrees)", ticks=[0, 90, 180, 270, 360])


# --- c, d: images ----------------------------------------------------------------------------


def chosen(gap: Gap):
    """(K,) int: up to `SHOWN` of the gap's cells, evenly."""
    last = len(gap.cells) - 1
    return np.unique(np.linspace(0, last, SHOWN).round().astype(int))


def faded(one: Shown, cells):
    """(K, N, N): at the gap's edges and between, the linear cross-fade of the edges' images."""
    place = dict(zip(one.gap.cells.tolist(), one.gap.place, strict=True))
    before, after = one.gap.edges
    place |= {before: 0.0, after: 1.0}
    edges = one.results.truths[[before, after]]
    return circle.cross_fade(*edges, [place[cell] for cell in cells.tolist()])


def _draw_images(figure, shown):
    first = next(iter(shown.values()))
    drawn = lambda one, cells: one.results.predictions[0, cells]
    rows = [("asked", "c", first, lambda one, cells: one.results.truths[cells])]
    for control, one in shown.items():
        rows.append((f"{TITLES[control]},\nseed {one.results.seeds[0]}", "", one, drawn))
    rows.append(("cross-fade\nof the edges", "d", first, faded))
    columns = chosen(first.gap)
    pitch_x = min(IMAGE + 0.05, (WIDTH - LEFT - 0.1) / (len(columns) + 2))
    pitch_y = min(IMAGE + 0.16, 2.8 / len(rows))
    size = min(pitch_x - 0.05, pitch_y - 0.13)
    for row, (name, letter, one, images_of) in enumerate(rows):
        before, after = one.gap.edges
        places = chosen(one.gap)
        cells = np.array([before, *one.gap.cells[places], after])
        images = np.asarray(images_of(one, cells), np.float64)
        edges = one.results.truths[[before, after]].reshape(2, -1)
        residuals = circle.residual_share(images.reshape(len(cells), -1), *edges)
        for column, (cell, image, residual) in enumerate(
            zip(cells, images, residuals, strict=True)
        ):
            bottom = 2.95 - (row + 1) * pitch_y - 0.15 * (letter == "d") + 0.12
            axis = plotting.axis_at(figure, LEFT + column * pitch_x, bottom, size, size)
            held_out = one.results.held_out[cell]
            color = plotting.OOD_COLOR if held_out else plotting.ID_COLOR
            plotting.show_signal(axis, image, one.results.amplitude, None, color)
            if row == 0:
                axis.set_title(f"{one.results.factors[cell, 0]:.0f}°", pad=2, color=color)
            if images_of is not faded:
                axis.set_xlabel(f"{residual:.2f}", fontsize=6.5, labelpad=1.5)
            if column == 0:
                axis.set_ylabel(name, rotation=0, ha="right", va="center")
                if letter:
                    plotting.panel_label(axis, letter)
    canvas = plotting.axis_at(figure, 0, 0, WIDTH, HEIGHT)
    canvas.set(xlim=(0, WIDTH), ylim=(0, HEIGHT))
    canvas.set_axis_off()
    note = "below: share outside the span of both edges' images"
    canvas.text(LEFT + (len(columns) + 2) * pitch_x - 0.05, 3.13, note, ha="right", color="0.3")
