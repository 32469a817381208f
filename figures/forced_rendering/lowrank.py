"""Figure 3: decoders of low-rank embeddings, with and without penalties (section 4.1)."""

import jax
import numpy as np

from compgen_jax.metrics import evaluation, geometry
from compgen_jax.models import lowrank, model
from compgen_jax.papers.forced_rendering.remedies import ABLATIONS
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import task as tasks
from compgen_jax.training import family
from figures import plotting

TITLES = {
    "none": "no penalty",
    "entropy": "entropy only",
    "variance": "variance only",
    "both": "both penalties",
}
COLORS = {"none": "0.35", "entropy": "#0072b2", "variance": "#d55e00", "both": "#009e73"}
SHOWN = ("none", "both")  # whose embeddings and images are drawn
# of the hole's width and height
DRAWN = (0.35, 0.6)  # in panel a
POINTS = ((0.1, 0.1), (0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (0.3, 0.7), (0.9, 0.9))
PERCENTILE = 95  # of an embedding's |entries|: where the colours end
# sizes in inches
WIDTH, IMAGE = 9.05, 0.7


def matrices(study):
    """The embeddings of x and of y, (T, N, N, N), indexed [seed, token, row y, column x]."""
    factors = lowrank.embeddings(study.run.params, study.config.model.vectors)
    scaled = ((factor.values[..., None] * factor.left, factor.right) for factor in factors)
    return [np.matmul(np.swapaxes(left, -2, -1), right) for left, right in scaled]


def log_volume(study):
    """(T, N, N) log10 of the volume element of the last hidden layer, by differences between
    neighbouring cells: a one-hot code has no derivative."""
    grid = study.config.task.grid

    def volume(params):
        layers = _layers(study, params, slice(None))
        return geometry.volume_element(geometry.grid_metric(layers[-1].reshape(grid, grid, -1)))

    volumes = jax.jit(lambda params: jax.lax.map(volume, params))(study.run.params)
    return geometry.log_volume(volumes, axis=(1, 2))


def _layers(study, params, cells):
    """One seed's codes, embeddings and hidden layers at some of the cells, (B, ...) each."""
    task, key = study.run.task, jax.random.key(0)  # an example leaves nothing open
    codes = tasks.examples_at(task, key, tasks.cells(task.factors)[cells]).input
    module = study.config.model.make(family.shapes_of(task))
    activations = model.apply(module, params, codes)[1]
    return [activations[name] for name in sorted(activations)]


def by_ablation(studies) -> dict:
    """The studies in the order of `ABLATIONS`."""
    found = {study.role.ablation: study for study in studies}
    return {name: found[name] for name in ABLATIONS}


def mse(study):
    """(T,) errors over seen and over held-out cells, and those of a blank image."""
    results = study.results
    errors, blank = evaluation.errors(results), np.square(results.truths).mean(axis=(1, 2))
    regions = ~results.held_out, results.held_out
    return *(errors[:, m].mean(axis=1) for m in regions), *(blank[m].mean() for m in regions)


def mask(study):
    return study.results.held_out.reshape(study.results.grid, -1)


def of_first_seed(study):
    """The first seed's embeddings of x and of y, and the end of their colours."""
    first = [each[0] for each in matrices(study)]
    return first, np.percentile(np.abs(first), PERCENTILE)


def draw_low_rank(studies):
    """Figure 3: (a) the decoder, as trained with both penalties (first seed), at a held-out point:
    every token of x and of y has an embedding of low rank, and convolutions decode the two; each
    map from blue, minus its largest magnitude, over white, 0, to red. (b) Embeddings of x of the
    first seeds, without and with both penalties, of two columns that are seen at every y and two
    whose rows beyond the line are held out; a network's colours end at the 95th percentile of its
    magnitudes. (c) What they draw at held-out points (circles), each image on its own scale, its
    largest value below. (d) Smoothness of the last hidden layer over the plane of x and y: log10
    volume element by differences between neighbouring cells (a one-hot code has no derivative),
    mean over seeds, less its mean over seen cells; below, its standard deviation over seen and
    over held-out cells, mean over seeds. (e) Errors of the four ablations: seeds, geometric means
    and 95% intervals; dotted, a blank image's."""
    ablations = by_ablation(studies)
    shown = {name: ablations[name] for name in SHOWN}
    figure = plotting.new_figure(WIDTH, 6.85)
    _draw_architecture(figure, 5.0, ablations["both"])
    _draw_tokens(_grid(figure, 0.6, 2.95, 0.8, (0.08, 0.14), (2, 4), "b"), shown)
    _draw_held_out(_grid(figure, 0.6, 0.25, 0.62, (0.06, 0.2), (3, len(POINTS)), "c"), shown)
    (maps,) = _grid(figure, 5.1, 3.34, 1.35, (0.12, 0), (1, 2), "d")
    _draw_smoothness(maps, plotting.axis_at(figure, 8.04, 3.34, 0.08, 1.35), shown)
    _draw_errors(plotting.axis_at(figure, 5.65, 0.5, 2.15, 2.0), ablations)
    return figure


def _draw_architecture(figure, bottom, study):
    results = study.results
    (cell,) = plotting.held_out_cells(results, [DRAWN])
    params = jax.tree.map(lambda leaf: leaf[0], study.run.params)
    code, *layers = (np.asarray(layer[0]) for layer in _layers(study, params, [cell]))
    pitch = (WIDTH - 0.75 - 2 * IMAGE) / (len(layers) + 1)
    lefts = 0.35 + pitch * np.arange(len(layers) + 2)
    rows, middle = (bottom + 0.18 + IMAGE, bottom + 0.1), bottom + 0.14 + IMAGE / 2
    canvas = plotting.axis_at(figure, 0, 0, WIDTH, figure.get_figheight())
    canvas.set(xlim=(0, WIDTH), ylim=(0, figure.get_figheight()))
    canvas.set_axis_off()
    title = rows[0] + IMAGE + 0.05
    canvas.text(0.1, title, "a", fontweight="bold", fontsize=10)
    canvas.text(lefts[0], title, f"{TITLES['both']}, seed {results.seeds[0]}", color="0.3")
    codes = zip(rows, "xy", np.split(code, 2), results.factors[cell], strict=True)
    for row, name, half, value in codes:
        axis = plotting.axis_at(figure, lefts[0], row + IMAGE / 2 - 0.05, IMAGE, 0.1)
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
            plotting.show_signed(plotting.axis_at(figure, left, row, IMAGE, IMAGE), channel)
        _draw_arrow(canvas, left, left + pitch, middle + IMAGE / 2, "PReLU,\nconv 3$\\times$3")
    drawn = ("image", results.predictions[0]), ("asked", results.truths)
    for left, (name, signals) in zip((lefts[-1], WIDTH - 0.2 - IMAGE), drawn, strict=True):
        axis = plotting.axis_at(figure, left, middle, IMAGE, IMAGE)
        plotting.show_scaled(axis, signals[cell], results.factors[cell], results.amplitude)
        axis.set_title(name, pad=3)


def _draw_arrow(canvas, left, right, height, label=""):
    left, right = left + IMAGE + 0.08, right - 0.08
    style = {"arrowstyle": "-|>", "color": "0.4", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
    canvas.annotate("", (right, height), (left, height), arrowprops=style)
    canvas.text((left + right) / 2, height + 0.06, label, fontsize=6.5, ha="center")


def _grid(figure, left, bottom, size, gaps, shape, letter):
    """Rows of square axes; gaps are (between columns, between rows)."""
    across, up = size + gaps[0], size + gaps[1]
    axes = [
        [plotting.axis_at(figure, left + j * across, bottom + i * up, size, size)
         for j in range(shape[1])]
        for i in reversed(range(shape[0]))
    ]  # fmt: skip
    plotting.panel_label(axes[0][0], letter)
    return axes


def _draw_tokens(axes, shown):
    for row, (name, study) in zip(axes, shown.items(), strict=True):
        (embedded, _), limit = of_first_seed(study)
        held_out = mask(study)
        with_hole = held_out.any(axis=0)
        kinds = np.flatnonzero(~with_hole), np.flatnonzero(with_hole)
        tokens = [kind[int(share * len(kind))] for kind in kinds for share in (0.4, 0.8)]
        row[0].set_ylabel(f"{TITLES[name]}\n$\\pm${limit:.2g}", fontsize=7)
        for axis, token in zip(row, tokens, strict=True):
            plotting.show_signed(axis, embedded[token], limit)
            rows = np.broadcast_to(held_out[:, token, None], held_out.shape)
            plotting.outline(axis, rows, color="black", linewidth=0.8)
    for axis, token in zip(axes[0], tokens, strict=True):
        color = plotting.OOD_COLOR if with_hole[token] else plotting.ID_COLOR
        axis.set_title(f"x = {token}", pad=3, color=color)


def _draw_held_out(axes, shown):
    results = shown["both"].results
    drawn = {TITLES[name]: study.results.predictions[0] for name, study in shown.items()}
    rows = zip(axes, ({"asked": results.truths} | drawn).items(), strict=True)
    for row, (name, images) in rows:
        row[0].set_ylabel(name.replace(" ", "\n"), fontsize=7)
        for axis, cell in zip(row, plotting.held_out_cells(results, POINTS), strict=True):
            plotting.show_scaled(axis, images[cell], results.factors[cell], results.amplitude)
            if row is axes[0]:
                axis.set_title("({:.0f}, {:.0f})".format(*results.factors[cell]), pad=3)


def _draw_smoothness(axes, bar, shown):
    held_out = mask(shown["both"])
    maps = {name: log_volume(study) for name, study in shown.items()}
    means = [each.mean(axis=0) - each[:, ~held_out].mean() for each in maps.values()]
    limit = np.percentile(np.abs(means), 99)
    for axis, mean, (name, each) in zip(axes, means, maps.items(), strict=True):
        image = plotting.show_cells(axis, mean, held_out, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axis.set_title(TITLES[name], pad=3)
        seen, hole = (each[:, cells].std(axis=1).mean() for cells in (~held_out, held_out))
        axis.set_xlabel(f"sd: seen {seen:.2f}, held out {hole:.2f}", fontsize=6.5, labelpad=3)
    label = "$\\log_{10}$ volume\nover seen cells'"
    bar.figure.colorbar(image, cax=bar, extend="both", label=label)


def _draw_errors(axis, ablations):
    for name, study in ablations.items():
        *errors, seen, held_out = mse(study)
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
    plotting.panel_label(axis, "e")
