"""Figures 2 and 10 to 14, and ranks: what every layer of a decoder keeps of the two factors, and
what decoders of every depth draw."""

import numpy as np

from compgen_jax.metrics import evaluation, spectra

from .. import plotting
from ..figure import figure
from .lookup import BOTH, by_depth, depth_of, flat

EVERY_DEPTH = ("bump_cnn", "bump_cnn_depth*", "ramp_cnn", "ramp_cnn_depth*")
RANKS = {
    "numerical_rank": "numerical rank",
    "energy_rank": "rank of 99% of variance",
    "participation_ratio": "participation ratio",
}
DECODERS = {"conv": "CNN", "mlp": "MLP"}
RANK_TICKS = (2, 5, 10, 20, 50, 100, 200)
# of Figure 2: panels, the metric, what it is, and its label
METRICS = (
    ("ab", "probe.ood_r2", "the probe's R² OOD", "R² of a linear probe"),
    ("cd", "factorization.mean_of_ratios", "the factorization",
     "factorization of\nthe metric (Eq 7)"),
    ("gh", "anova.interaction_ood", "the interaction OOD",
     "interaction of x and y\n(share of variance OOD)"),
)  # fmt: skip
# of the held-out region's width and height: a corner, two edges and the centre
POINTS = ((0.1, 0.1), (1.0, 0.35), (0.3, 0.85), (0.5, 0.5))
MAP, GAP, ROW = 0.46, 0.05, 0.92  # inches
IMAGE, IMAGE_GAP, IMAGE_ROW = 0.46, 0.07, 0.72


@figure("fig2", runs=(*EVERY_DEPTH, "random_cells", "random_cells_ramp"))
def draw_layers(runs):
    networks = {code: by_depth(runs, f"{code}_cnn") for code in BOTH}
    deepest = {code: of_code[-1] for code, of_code in networks.items()}
    picture = plotting.new_figure(plotting.WIDTH, 8.4)
    above, maps, below = picture.subfigures(3, 1, height_ratios=[3.9, 2.1, 2.2])
    axes = [*above.subplots(2, len(BOTH), sharey="row"), below.subplots(1, len(BOTH), sharey=True)]
    for row, (letters, metric, name, label) in zip(axes, METRICS, strict=True):
        for axis, letter, (code, run) in zip(row, letters, deepest.items(), strict=True):
            _draw_lines(axis, networks, code, metric)
            by_layer = run.layers(metric)
            moved = plotting.change(by_layer[:, -2] - by_layer[:, 0])
            title = (f"{code.capitalize()} code, depth {depth_of(run)}: {name} {moved} up to the "
                     "last hidden layer")  # fmt: skip
            plotting.panel(axis, letter, title, wrap=48)
            axis.set_xlabel("layer")
        row[0].set_ylabel(label)
    for axis, code in zip(axes[0], BOTH, strict=True):
        _draw_lines(axis, networks, code, "probe.id_r2", dashed=True)
    plotting.label_mark(axes[0][0], "OOD", "-")
    plotting.label_mark(axes[0][0], "ID", "--")
    axes[0][0].set_ylim(max(-1, axes[0][0].get_ylim()[0]), None)
    axes[0][0].legend(loc="lower left")
    strips = maps.subplots(len(BOTH), max(len(run.layer_names) for run in deepest.values()))
    for row, (code, run), letter in zip(strips, deepest.items(), "ef", strict=True):
        image = draw_strip(row, run, letter, f"{code} code, depth {depth_of(run)}")
    plotting.volume_bar(maps, image, ax=strips, pad=0.01, aspect=14, shrink=0.8)
    return picture


# what a panel shows of three networks: the metric, its name and its label
BESIDE = (
    ("probe.ood_r2", "A linear probe's R²", "R² of a linear probe\nof x and y"),
    ("factorization.ratio_of_means", "The paper's score", "factorization score\n(Eq 7)"),
    ("volume.log10_ratio", "The volume's log₁₀ ratio",
     "log₁₀ of volume in the\nsquare over elsewhere"),
    ("anova.interaction_ood", "The interaction",
     "interaction of x and y\n(share of variance)"),
)  # fmt: skip


@figure("composer", runs=("bump_cnn", "random_cells", "donut_stripes"), by_default=False)
def draw_beside_composer(runs):
    fails = runs["bump_cnn"]
    networks = {
        "bumps around the square: fails": (fails, plotting.OOD_COLOR, "-"),
        "random positions held out: renders it": (
            runs["random_cells"].over(fails),
            plotting.ID_COLOR,
            "--",
        ),
        "stripes shown too: renders it": (runs["donut_stripes"], plotting.GREEN, "-."),
    }
    picture = plotting.new_figure(plotting.WIDTH, 4.1)
    axes = picture.subplots(2, 2).ravel()
    for axis, letter, (metric, name, label) in zip(axes, "abcd", BESIDE, strict=True):
        ends = []
        for words, (run, color, line) in networks.items():
            values = np.median(run.late.layers(metric), axis=1)
            end = values.shape[-1] - 1
            if metric == "probe.ood_r2":
                values[:, -1] = np.nan
            plotting.draw_line(axis, values, end, color, line, words)
            ends.append(f"{values[:, -2].mean():.2f}".replace("-", plotting.MINUS))
        title = f"{name} in the last hidden layer is {ends[0]} where the network fails, "
        title += " and ".join(ends[1:]) + " where it renders"
        plotting.panel(axis, letter, title, wrap=42)
        plotting.name_layers(axis, end + 1)
        axis.set(ylabel=label, xlabel="layer")
    axes[2].axhline(0, **plotting.DOTTED)
    plotting.legend_below(picture, axes[0], ncols=3)
    return picture


def _draw_lines(axis, networks, code, metric, dashed=False, of_logarithms=False):
    """A metric by layer of a code's networks, a line for every depth. The drawn image stands apart
    on the right, where images of all depths and codes stand one above the other."""
    every = [run for of_code in networks.values() for run in of_code]
    end = max(len(run.layer_names) for run in every) - 1
    depths = sorted({depth_of(run) for run in every})
    colors = plotting.shades(len(depths))
    for run in networks[code]:
        label = None if dashed else f"depth {depth_of(run)}"
        color = colors[depths.index(depth_of(run))]
        values, undo = run.layers(metric), {}
        if of_logarithms:
            values, undo = np.log(values), {"undo": np.exp}
        plotting.draw_line(axis, values, end, color, "--" if dashed else "-", label, **undo)
    plotting.name_layers(axis, end + 1)


def draw_strip(axes, run, letter: str, name: str):
    """The volume maps of every layer, with a panel's letter. Returns an image, for the scale."""
    image, ratio = plotting.show_volumes(axes, run), run.layers("volume.log10_ratio")[:, -1].mean()
    title = f"In the image, volume OOD is {10**ratio:.2g} of volume ID ({name})"
    plotting.panel(axes[0], letter, title)
    return image


# the lowest is registered first
@figure("fig14_20_epochs", runs=("ramp_mlp_20_epochs*",), scale="paper")
@figure("fig13_20_epochs", runs=("bump_mlp_20_epochs*",), scale="paper")
@figure("fig14", runs=("ramp_mlp", "ramp_mlp_depth*"), by_default=False)
@figure("fig13", runs=("bump_mlp", "bump_mlp_depth*"), by_default=False)
@figure("fig12", runs=("ramp_cnn", "ramp_cnn_depth*"))
@figure("fig11", runs=("bump_cnn", "bump_cnn_depth*"))
def draw_volumes(runs):
    networks, in_image = sorted(runs.values(), key=depth_of), []
    columns = max(len(run.layer_names) for run in networks)
    left, panel = 0.3, 5.4
    height = len(networks) * ROW + 1.1
    picture = plotting.new_figure(plotting.WIDTH, height)
    for row, run in enumerate(networks):
        bottom = height - 0.55 - MAP - row * ROW
        axes = plotting.row_at(picture, left, bottom, MAP, len(run.layer_names), GAP)
        image, ratios = plotting.show_volumes(axes, run), run.layers("volume.log10_ratio")
        for axis, ratio in zip(axes, ratios.mean(axis=0), strict=True):
            axis.set_title(axis.get_xlabel(), pad=2, loc="center")
            axis.set_xlabel(plotting.signed(ratio), fontsize=plotting.SMALL, labelpad=2)
        in_image.append(10 ** ratios[:, -1].mean())
        axes[0].set_ylabel(f"depth {depth_of(run)}")
        probe = plotting.axis_at(picture, panel, bottom, plotting.WIDTH - panel - 0.1, MAP + 0.15)
        id_r2, ood_r2 = (run.layers(f"probe.{region}_r2") for region in ("id", "ood"))
        plotting.draw_line(probe, id_r2, columns - 1, plotting.ID_COLOR, "--", "ID")
        plotting.draw_line(probe, ood_r2, columns - 1, plotting.OOD_COLOR, "-", "OOD")
        plotting.name_layers(probe, columns, every=2)
        probe.set(ylabel="R²", ylim=(max(-1, min(0, probe.get_ylim()[0])), 1.05))
        if run is not networks[-1]:
            probe.set_xticks(range(columns), [])
    probe.set_xlabel("layer")
    first = picture.axes[len(networks[0].layer_names)]
    plotting.legend_in_row(first, title="linear probe", alignment="left")
    key = plotting.axis_at(picture, left + 0.3, 0.5, 1.2, 0.08)
    plotting.volume_bar(picture, image, cax=key, orientation="horizontal")
    config, shares = networks[0].config, plotting.span(in_image, "{:.2g}".format)
    of = f"{config.task.code.name} code, {DECODERS[config.model.name]}"
    title = f"In the image, volume OOD is {shares} of volume ID ({of})"
    picture.text(left / plotting.WIDTH, 1 - 0.18 / height, title)
    note = "below a map: log₁₀ (volume OOD / volume ID)"
    picture.text((left + 1.9) / plotting.WIDTH, 0.5 / height, note, fontsize=plotting.SMALL)
    return picture


@figure("ranks", runs=EVERY_DEPTH)
def draw_ranks(runs):
    networks = {code: by_depth(runs, f"{code}_cnn") for code in BOTH}
    picture = plotting.new_figure(plotting.WIDTH, 4.6)
    axes = picture.subplots(len(BOTH), len(RANKS), sharex=True, sharey=True)
    letters = iter("abcdef")
    for row, code in zip(axes, BOTH, strict=True):
        true = spectra.spectrum(flat(networks[code][0].cells.truths))
        for axis, (name, title) in zip(row, RANKS.items(), strict=True):
            _draw_lines(axis, networks, code, f"spectrum.{name}", of_logarithms=True)
            axis.axhline(getattr(true, name), **plotting.DOTTED, label="true images")
            axis.set(yscale="log", ylim=(1.5, 1.5 * true.numerical_rank))
            axis.set_yticks(RANK_TICKS, RANK_TICKS)
            axis.minorticks_off()
            axis.set_xlabel("layer" if code == BOTH[-1] else "")
            deepest = np.log(networks[code][-1].layers(f"spectrum.{name}")).mean(axis=0)
            first, last = np.exp(deepest[[0, -2]])
            title = f"The {title} is {first:.0f} in the code, {last:.0f} in the last hidden layer"
            plotting.panel(axis, next(letters), title, wrap=32)
            plotting.name_layers(axis, len(axis.get_xticks()), every=2)
        row[0].set_ylabel(f"dimensions, {code} code", color=plotting.CODE_COLORS[code])
    plotting.legend_below(picture)
    return picture


@figure("fig10", runs=("bump_cnn", "bump_cnn_depth*", "ramp_cnn", "ramp_cnn_depth*"))
def draw_depths(runs):
    by_code = {code: by_depth(runs, f"{code}_cnn") for code in BOTH}
    height = max(max(map(len, by_code.values())) * IMAGE_ROW + 0.5, 2.1)
    block = len(POINTS) * (IMAGE + IMAGE_GAP) + 0.3
    picture = plotting.new_figure(plotting.WIDTH, height)
    at, tall = len(BOTH) * block + 0.65, min(height - 0.95, 1.9)
    width = plotting.WIDTH - at - 0.08
    error = plotting.axis_at(picture, at, height - 0.5 - tall, width, tall)
    lowest = []
    for index, (code, of_code) in enumerate(by_code.items()):
        for row, run in enumerate(of_code):
            at = 0.3 + index * block, height - 0.5 - IMAGE - row * IMAGE_ROW
            axes = plotting.row_at(picture, *at, IMAGE, len(POINTS), IMAGE_GAP)
            cells = run.cells
            indices = plotting.held_out_cells(cells, POINTS)
            plotting.show_held_out(axes, cells.predictions[0], cells, indices)
            axes[0].set_ylabel(f"depth {depth_of(run)}")
            if row == 0:
                title = f"The first seed, {code} code"
                plotting.panel(axes[0], "ab"[index], title, color=plotting.CODE_COLORS[code])
        relative = [evaluation.relative_error(run.cells, run.cells.held_out) for run in of_code]
        at = [depth_of(run) + 0.16 * (index - 0.5) for run in of_code]
        plotting.show_numbers(error, at, relative, plotting.CODE_COLORS[code], f"{code} code")
        lowest.append(min(values.mean() for values in relative))
    error.axhline(1, **plotting.DOTTED, label="blank image")
    plotting.label_seeds(error)
    error.set_xticks(sorted({depth_of(run) for of_code in by_code.values() for run in of_code}))
    error.set(xlabel="depth", ylabel=f"OOD {plotting.RELATIVE}", ylim=(0, None))
    error.legend(loc="lower left", **plotting.LEGEND)
    title = f"OOD errors are at least {min(lowest):.0%} of a blank image's"
    plotting.panel(error, "c", title, wrap=20)
    return picture
