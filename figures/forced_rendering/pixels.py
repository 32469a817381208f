"""Decoders that all pixels share: the per-pixel MLP and the transformer of pixels."""

from compgen_jax.analysis import evaluation
from figures import plotting
from figures.forced_rendering import authors

TITLES = {"pixelwise": "per-pixel MLP", "transformer": "transformer"}  # by the role's decoder
HOLES = {"corner": "corner held out", "donut": "square held out"}
COLORS = {"pixelwise": "#009e73", "transformer": "#cc79a7"}
# of the hole's width and height
POINTS = ((0.1, 0.1), (0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (0.3, 0.7), (0.9, 0.9))
# sizes in inches
WIDTH, IMAGE, GAP, ROW, LEFT, PANEL = 9.05, 0.55, 0.06, 0.78, 1.15, 1.75


def draw(studies):
    """Decoders whose weights all pixels share, in the authors' code and not in their paper, by
    number of layers, each with its own hold-out, as the authors have it. (a) Error over held-out
    (filled) and seen combinations (open), that of a blank image being 1; at the paper's size, open
    diamonds are the authors' own networks, where their error is known, over a blank one of their
    images. (b) Images with the brightest pixel at exactly the requested one. Means over seeds with
    95% intervals; grey dots are seeds. (c) What the first seeds draw at the same places in the
    held-out region (circles), each image on its own scale, its largest value below."""
    studies = sorted(studies, key=_order)
    rows = len(studies) * ROW
    height = max(rows + 0.5, 3.0)
    figure = plotting.new_figure(WIDTH, height)
    for row, study in enumerate(studies):
        _draw_images(figure, study, height - 0.42 - IMAGE - row * ROW, first=row == 0)
    tall = min(height - 1.2, 2.6)
    left = WIDTH - 2 * PANEL - 0.8
    error, accuracy = (
        plotting.axis_at(figure, start, height - 0.42 - tall, PANEL, tall)
        for start in (left, left + PANEL + 0.65)
    )
    _draw_errors(error, studies)
    _draw_accuracy(accuracy, studies)
    for axis, letter in ((error, "a"), (accuracy, "b")):
        plotting.panel_label(axis, letter)
    return figure


def _order(study):
    return list(TITLES).index(study.role.decoder), study.role.depth


def _regions(results):
    """Seen cells and held-out ones, and how each is marked."""
    yield ~results.held_out, {"fmt": "s", "markerfacecolor": "white"}
    yield results.held_out, {"fmt": "o"}


def places(studies) -> list[float]:
    """Where each stands on the axis: with a gap between one model and the next."""
    models = list(dict.fromkeys(study.role.decoder for study in studies))
    return [i + 0.6 * models.index(study.role.decoder) for i, study in enumerate(studies)]


def _show_depths(axis, studies):
    """Ticks by depth, and below them which model it is."""
    at = places(studies)
    axis.set_xticks(at, [str(study.role.depth) for study in studies])
    axis.set(xlim=(at[0] - 0.6, at[-1] + 0.6), xlabel="layers")
    axis.xaxis.labelpad = 28
    for name, title in TITLES.items():
        own = [(x, study) for x, study in zip(at, studies, strict=True)
               if study.role.decoder == name]  # fmt: skip
        if own:
            hole = own[0][1].config.task.support.region
            axis.annotate(
                f"{title}\n{HOLES.get(hole, hole)}", (sum(x for x, _ in own) / len(own), 0),
                xytext=(0, -14), xycoords=("data", "axes fraction"), textcoords="offset points",
                ha="center", va="top", fontsize=6.5, color=COLORS[name],
            )  # fmt: skip


def _draw_errors(axis, studies):
    known = False
    for x, study in zip(places(studies), studies, strict=True):
        results, color = study.results, COLORS[study.role.decoder]
        for cells, marker in _regions(results):
            values = evaluation.relative_error(results, cells)
            plotting.show_number(axis, x, values, color=color, **marker)
        for value in authors.relative_errors(study.config.name).values():
            axis.plot(x - 0.2, value, "D", color="0.25", fillstyle="none", markersize=4)
            known = True
    axis.axhline(1, **plotting.DOTTED)
    axis.set(yscale="log", ylabel="MSE / blank image's")
    _show_depths(axis, studies)
    axis.plot([], [], "o", color="0.3", markersize=4, label="held out")
    axis.plot([], [], "s", color="0.3", markerfacecolor="white", markersize=4, label="seen")
    if known:
        axis.plot([], [], "D", color="0.25", fillstyle="none", markersize=4, label="authors'")
    plotting.legend_above(axis)


def _draw_accuracy(axis, studies):
    for x, study in zip(places(studies), studies, strict=True):
        results, color = study.results, COLORS[study.role.decoder]
        for cells, marker in _regions(results):
            values = evaluation.mean_score(results, "exact_accuracy", cells)
            plotting.show_number(axis, x, values, color=color, **marker)
    axis.set(ylabel="exact accuracy", ylim=(-0.04, 1.06))
    _show_depths(axis, studies)


def _draw_images(figure, study, bottom: float, first: bool):
    results = study.results
    axes = [
        plotting.axis_at(figure, LEFT + column * (IMAGE + GAP), bottom, IMAGE, IMAGE)
        for column in range(len(POINTS))
    ]
    for axis, cell in zip(axes, plotting.held_out_cells(results, POINTS), strict=True):
        signal = results.signals[0, cell]
        plotting.show_scaled(axis, signal, results.factors[cell], results.amplitude)
    name = study.role.decoder
    axes[0].set_ylabel(
        f"{TITLES[name]}\n{study.role.depth} layers", color=COLORS[name], rotation=0, ha="right",
        va="center", labelpad=6,
    )  # fmt: skip
    if first:
        axes[0].annotate(
            f"seed {results.seeds[0]} at held-out points", (0, 1), xytext=(0, 6),
            xycoords="axes fraction", textcoords="offset points",
        )  # fmt: skip
        plotting.panel_label(axes[0], "c")
