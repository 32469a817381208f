"""Figure 3: decoders of low-rank embeddings, with and without penalties (section 4.1)."""

import jax
import numpy as np

from compgen_jax.metrics import evaluation, geometry
from compgen_jax.papers.forced_rendering.low_rank import embedding_matrices
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import task as tasks

from .. import plotting
from ..figure import figure
from .lookup import first_seed_layers, in_order, layers_of

TITLES = {
    "lowrank_none": "no penalty",
    "lowrank_entropy": "entropy only",
    "lowrank_variance": "variance only",
    "lowrank_both": "both penalties",
}
COLORS = dict(zip(TITLES, ("0.35", "#0072b2", "#d55e00", "#009e73"), strict=True))
SHOWN = ("lowrank_none", "lowrank_both")  # whose embeddings and images are drawn
# of the held-out region's width and height
DRAWN = (0.35, 0.6)  # in panel a
POINTS = ((0.1, 0.1), (0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (0.3, 0.7), (0.9, 0.9))
PERCENTILE = 95  # of an embedding's |entries|: where the colours end
# sizes in inches
WIDTH, IMAGE = 9.05, 0.7


@figure("fig3", runs=tuple(TITLES))
def draw_low_rank(runs):
    """Figure 3: decoders of low-rank embeddings; the upper right corner is held out. (a) The
    decoder with both penalties, first seed, at a held-out point. Every value of x and of y has an
    embedding of low rank, and convolutions decode the two. Each map runs from blue, minus its
    largest magnitude, over white, 0, to red. (b) Embeddings of x of the first seeds, without and
    with both penalties: two columns seen at every y, and two whose rows above the line are held
    out. Colours end at the 95th percentile of a network's magnitudes. (c) What these draw at
    held-out points (circles); each image has its own scale, and its largest value is printed
    below. (d) How smooth the last hidden layer is: log10 of its volume element, by differences
    between neighbouring cells, less its mean over ID cells; mean over seeds. Below: its standard
    deviation over ID and over held-out cells. (e) Errors of the four ablations: seeds, geometric
    means and 95% intervals; dotted, a blank image's."""
    ablations = in_order(TITLES, runs)
    shown = {name: ablations[name] for name in SHOWN}
    picture = plotting.new_figure(WIDTH, 6.85)
    _draw_architecture(picture, 5.0, ablations["lowrank_both"])
    tokens = [plotting.row_at(picture, 0.6, bottom, 0.8, 4, 0.08) for bottom in (3.89, 2.95)]
    _draw_tokens(tokens, shown)
    images = [plotting.row_at(picture, 0.6, bottom, 0.62, len(POINTS), 0.06)
              for bottom in (1.89, 1.07, 0.25)]  # fmt: skip
    _draw_held_out(images, shown)
    maps = plotting.row_at(picture, 5.1, 3.34, 1.35, 2, 0.12)
    _draw_smoothness(maps, plotting.axis_at(picture, 8.04, 3.34, 0.08, 1.35), shown)
    errors = plotting.axis_at(picture, 5.65, 0.5, 2.15, 2.0)
    _draw_errors(errors, ablations)
    plotting.panel_labels((tokens[0][0], images[0][0], maps[0], errors), "bcde")
    return picture


def of_first_seed(run):
    """The first seed's embeddings of x and of y, and the end of their colours."""
    first = [each[0] for each in embedding_matrices(run)]
    return first, np.percentile(np.abs(first), PERCENTILE)


def log_volume(run):
    """(T, N, N) log10 of the volume element of the last hidden layer, by differences between
    neighbouring cells: a one-hot code has no derivative."""
    task, grid = run.task, run.config.task.grid
    codes = tasks.examples_at(task, jax.random.key(0), tasks.cells(task.factors)).input

    def volume(params):
        *_, last = layers_of(run, params, codes).values()
        return geometry.volume_element(geometry.grid_metric(last.reshape(grid, grid, -1)))

    volumes = jax.jit(lambda params: jax.lax.map(volume, params))(run.params)
    return geometry.log_volume(volumes, axis=(1, 2))


def mse(run):
    """{'id', 'ood'}: (T,) errors over ID and over held-out cells, and that of a blank image."""
    cells = run.cells
    errors, blank = evaluation.errors(cells), np.square(cells.truths).mean(axis=(1, 2))
    regions = {"id": ~cells.held_out, "ood": cells.held_out}
    return {name: (errors[:, mask].mean(axis=1), blank[mask].mean())
            for name, mask in regions.items()}  # fmt: skip


def _draw_architecture(picture, bottom, run):
    cells = run.cells
    indices = plotting.held_out_cells(cells, [DRAWN])
    code, *layers = (np.asarray(layer[0]) for layer in first_seed_layers(run, indices).values())
    pitch = (WIDTH - 0.75 - 2 * IMAGE) / (len(layers) + 1)
    lefts = 0.35 + pitch * np.arange(len(layers) + 2)
    rows, middle = (bottom + 0.18 + IMAGE, bottom + 0.1), bottom + 0.14 + IMAGE / 2
    title = rows[0] + IMAGE + 0.05
    canvas = plotting.canvas_of(picture)
    canvas.text(0.1, title, "a", fontweight="bold", fontsize=10)
    canvas.text(lefts[0], title, f"both penalties, seed {cells.seeds[0]}", color="0.3")
    codes = zip(rows, "xy", np.split(code, 2), cells.factors[indices[0]], strict=True)
    for row, name, half, value in codes:
        axis = plotting.axis_at(picture, lefts[0], row + IMAGE / 2 - 0.05, IMAGE, 0.1)
        plotting.show_signal(axis, half[None], 1.0)
        axis.set_aspect("auto")
        axis.set_xlabel(f"one-hot {name} = {value:.0f}", fontsize=6.5, labelpad=3)
        _draw_arrow(canvas, lefts[0], lefts[1], row + IMAGE / 2)
    between = (lefts[0] + IMAGE + lefts[1]) / 2
    formula = "$E = \\sum_k \\lambda_k u_k v_k^T$"
    canvas.text(between, middle + IMAGE / 2, formula, fontsize=7.5, ha="center", va="center")
    for index, (left, layer) in enumerate(zip(lefts[1:], layers, strict=False)):
        name = f"hidden layer {index}" if index else "embeddings E"
        name += f" (2 of {layer.shape[-1]})" if layer.shape[-1] > 2 else ""
        canvas.text(left + IMAGE / 2, title, name, ha="center")
        for row, channel in zip(rows, np.moveaxis(layer, -1, 0), strict=False):
            plotting.show_signed(plotting.axis_at(picture, left, row, IMAGE, IMAGE), channel)
        _draw_arrow(canvas, left, left + pitch, middle + IMAGE / 2, "PReLU,\nconv 3$\\times$3")
    drawn = ("image", cells.predictions[0]), ("asked", cells.truths)
    for left, (name, images) in zip((lefts[-1], WIDTH - 0.2 - IMAGE), drawn, strict=True):
        axis = plotting.axis_at(picture, left, middle, IMAGE, IMAGE)
        plotting.show_held_out([axis], images, cells, indices)
        axis.set_title(name, pad=3)


def _draw_arrow(canvas, left, right, height, label=""):
    left, right = left + IMAGE + 0.08, right - 0.08
    style = {"arrowstyle": "-|>", "color": "0.4", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
    canvas.annotate("", (right, height), (left, height), arrowprops=style)
    canvas.text((left + right) / 2, height + 0.06, label, fontsize=6.5, ha="center")


def _draw_tokens(axes, shown):
    for row, (name, run) in zip(axes, shown.items(), strict=True):
        (embedded, _), limit = of_first_seed(run)
        held_out = plotting.over_grid(run.cells.held_out, run.cells)
        with_hole = held_out.any(axis=0)
        kinds = np.flatnonzero(~with_hole), np.flatnonzero(with_hole)
        tokens = [kind[int(share * len(kind))] for kind in kinds for share in (0.4, 0.8)]
        row[0].set_ylabel(f"{TITLES[name]}\n$\\pm${limit:.2g}", fontsize=7)
        for axis, token in zip(row, tokens, strict=True):
            plotting.show_signed(axis, embedded[token], limit)
            rows = np.broadcast_to(held_out[:, token, None], held_out.shape)
            plotting.outline(axis, rows, color="black", linewidth=0.8)
            if row is axes[0]:
                color = plotting.OOD_COLOR if with_hole[token] else plotting.ID_COLOR
                axis.set_title(f"x = {token}", pad=3, color=color)


def _draw_held_out(axes, shown):
    cells = shown["lowrank_both"].cells
    indices = plotting.held_out_cells(cells, POINTS)
    drawn = {"asked": cells.truths}
    drawn |= {TITLES[name]: run.cells.predictions[0] for name, run in shown.items()}
    for row, (name, images) in zip(axes, drawn.items(), strict=True):
        plotting.show_held_out(row, images, cells, indices)
        row[0].set_ylabel(name.replace(" ", "\n"), fontsize=7)
    for axis, index in zip(axes[0], indices, strict=True):
        axis.set_title("({:.0f}, {:.0f})".format(*cells.factors[index]), pad=3)


def _draw_smoothness(axes, bar, shown):
    cells = shown["lowrank_both"].cells
    held_out = plotting.over_grid(cells.held_out, cells)
    maps = [log_volume(run) for run in shown.values()]
    means = [each.mean(axis=0) - each[:, ~held_out].mean() for each in maps]
    limit = np.percentile(np.abs(means), 99)
    for axis, mean, name, each in zip(axes, means, shown, maps, strict=True):
        image = plotting.show_cells(axis, mean, held_out, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axis.set_title(TITLES[name], pad=3)
        seen, hole = (each[:, mask].std(axis=1).mean() for mask in (~held_out, held_out))
        axis.set_xlabel(f"sd: seen {seen:.2f}, held out {hole:.2f}", fontsize=6.5, labelpad=3)
    label = "$\\log_{10}$ volume\nover seen cells'"
    bar.figure.colorbar(image, cax=bar, extend="both", label=label)


def _draw_errors(axis, ablations):
    for name, run in ablations.items():
        errors, (seen, held_out) = zip(*mse(run).values(), strict=True)
        numbers = [mean_with_interval(np.log10(values)) for values in errors]
        centre = [10 ** number["value"] for number in numbers]
        ends = [10 ** np.nan_to_num(n["ci95"], nan=n["value"]) for n in numbers]
        bars = [np.abs(end - at)[:, None] for end, at in zip(ends, centre, strict=True)]
        axis.plot(*errors, ".", color=COLORS[name], markersize=4, alpha=0.6)
        axis.errorbar(*centre, *bars[::-1], fmt="none", color=COLORS[name], capsize=2, linewidth=1)
        axis.plot(*centre, "o", color=COLORS[name], markeredgecolor="w", label=TITLES[name])
    axis.axvline(seen, **plotting.DOTTED)
    axis.axhline(held_out, **plotting.DOTTED, label="blank image")
    axis.set(xscale="log", yscale="log", xlabel="MSE ID (seen)", ylabel="MSE OOD (held out)")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
