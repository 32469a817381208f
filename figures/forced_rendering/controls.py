"""The controls: is it composition, or the lighting of pixels? And two objects in each image."""

import jax
import numpy as np

from compgen_jax.claims import median_over_checkpoints
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.papers.forced_rendering.control_claims import on_lit_pixels, trivial_errors
from compgen_jax.statistics import mean_with_interval
from compgen_jax.studies.why_not.why_not_claims import composes, ladder
from compgen_jax.tasks import bump

from .. import plotting
from ..figure import figure
from .lookup import shares_by_distance

ROWS = {
    "bump_cnn": "bumps alone",
    "lit": "the same, scored on\nlit pixels alone",
    "wide_bumps": "wide bumps light\nevery pixel",
    "random_cells": "cells held out\nat random",
    "donut_stripes": "stripes and\na few bumps",
}
PREDICTORS = {
    "blank": "blank image",
    "id_constant": "best constant",
    "nearest_seen": "nearest seen",
    "line_mean": "row and column",
    "rank_one": "rank-1 completion",
}
PREDICTED = {"color": plotting.GREY, "markersize": 3.5}
# of two objects: examples of each region, and the pixels between their bumps, so that both can be
# told; inches
EXAMPLES, APART = 5, 4
IMAGE, GAP, MAP, DRAWING = 0.55, 0.05, 1.38, 0.76
DRAWN = {  # decoders whose drawings stand below one another
    "bump_cnn": "convolutional\ndecoder",
    "bump_cnn_stripes": "the same,\nstripes added",
    "pixels_own_bump": "per pixel,\nown weights",
    "pixels_shared_bump": "per pixel,\nshared weights",
}
# a common setting: one task, hold-out and training set
REMEDIED = {
    "league_bumps_block_conv": "convolutional decoder",
    "league_bumps_block_low_rank_penalties": "low rank, both penalties",
    "league_bumps_block_conv_stripes_shown": "single-factor images added",
}
STRIP = 1.4  # inches
POINTS = (0.2, 0.75), (0.35, 0.35), (0.5, 0.5), (0.65, 0.8), (0.9, 0.2)


@figure("drawings", runs=tuple(DRAWN), by_default=False, numbers=shares_by_distance)
def draw_drawings(runs):
    first = runs["bump_cnn"]
    rows = {"asked": (first.cells, None)}
    rows |= {"interpolation": (first.interpolator, first.late.interpolator)}
    rows |= {words: (runs[name].cells, runs[name].late.cells) for name, words in DRAWN.items()}
    picture = plotting.new_figure(plotting.WIDTH, len(rows) * (DRAWING + 0.2) + 0.15)
    indices = plotting.held_out_cells(first.cells, POINTS)
    share = lambda of, at: median_over_checkpoints(mean_score(of, "rendered", at)).mean()
    parts = {"of the rim": first.cells.distance == 1, "inside": first.cells.distance > 1}
    for row, (name, (cells, late)) in enumerate(rows.items()):
        bottom = (len(rows) - 1 - row) * (DRAWING + 0.2) + 0.25
        axes = plotting.row_at(picture, 1.3, bottom, DRAWING, len(POINTS), GAP)
        seed = plotting.median_seed(cells)
        images_B = cells.predictions[seed] if late else cells.truths
        plotting.show_held_out(axes, images_B, cells, indices)
        for axis in axes:
            plotting.outline(axis, plotting.over_grid(cells.held_out, cells), linewidth=0.8)
        at = {"transform": axes[0].transAxes, "ha": "right", "va": "center"}
        axes[0].text(-0.15, 0.5, name, fontsize=plotting.SMALL, **at)
        if late:
            for axis, right in zip(axes, cells.scores["rendered"][seed, indices], strict=True):
                axis.set_xlabel(f"{axis.get_xlabel()} {'✓' if right else '✗'}")
            words = "\n".join(f"{share(late, at):.0%} {part}" for part, at in parts.items())
            axes[-1].text(1.15, 0.5, words, transform=axes[-1].transAxes, va="center")
    return picture


@figure("strip", runs=tuple(REMEDIED), by_default=False)
def draw_strip(runs):
    first = runs["league_bumps_block_conv"].cells
    (index,) = plotting.held_out_cells(first, POINTS[2:3])
    shown = {"target": (first.truths[index], "held-out block: red")}
    for name, title in REMEDIED.items():
        cells = runs[name].cells
        right = plotting.ood_share(runs[name].late.cells, "exact_accuracy")
        image = cells.predictions[plotting.median_seed(cells), index]
        shown[title] = image, f"{right:.0%} of the block right"
    picture = plotting.new_figure(plotting.WIDTH, STRIP + 0.5)
    axes = plotting.row_at(picture, 0.15, 0.22, STRIP, len(shown), 0.25)
    for axis, (title, (image, below)) in zip(axes, shown.items(), strict=True):
        plotting.show_signal(axis, image, first.amplitude)
        plotting.outline(axis, plotting.over_grid(first.held_out, first))
        axis.plot(
            *first.factors[index], "o", color=plotting.OOD_COLOR, fillstyle="none", markersize=16
        )
        axis.set_title(title, fontsize=plotting.SMALL, pad=4)
        axis.set_xlabel(below)
    return picture


@figure("controls", runs=("bump_cnn", "wide_bumps", "random_cells", "donut_stripes"))
def draw(runs):
    base = runs["bump_cnn"]
    scored = {name: (run.late.cells, run.cells.held_out) for name, run in runs.items()}
    scored["lit"] = on_lit_pixels(base.late.cells, base.task.scores)
    picture = plotting.new_figure(plotting.WIDTH, 4.0)
    (share, error), above, ratios = picture.subplots(1, 2), [], []
    for row, name in enumerate(ROWS):
        (cells, counted), from_codes = scored[name], []
        rendered, seen = (
            median_over_checkpoints(mean_score(cells, "rendered", at))
            for at in (counted, ~cells.held_out)
        )
        style = {"across": True, "markersize": 4, "fmt": "o", "color": plotting.OOD_COLOR}
        plotting.show_number(share, -row, rendered, plotting.mean_share, **style)
        style |= {"color": plotting.ID_COLOR} | plotting.SEEN
        plotting.point_with_interval(share, 0.3 - row, plotting.mean_share(seen), **style)
        for of, (_, mark) in plotting.FROM_CODES.items():
            predicted = getattr(runs.get(name, base), of)
            if name not in runs:
                predicted, _ = on_lit_pixels(predicted, base.task.scores)
            from_codes.append(mean_score(predicted, "rendered", counted).mean())
            share.plot(from_codes[-1], -row - 0.4, mark, **PREDICTED)
        above.append(mean_with_interval(rendered)["ci95"][0] > max(from_codes))
        ratios.append(plotting.show_ood_error(error, -row, cells, plotting.OOD_COLOR))
    errors = trivial_errors(base.cells)
    for row, name in enumerate(PREDICTORS, start=len(ROWS)):
        error.plot(errors[name], -row, plotting.TRIVIAL, **PREDICTED)
    plotting.label_regions(share, plotting.OOD_COLOR, plotting.ID_COLOR)
    for title, mark in (*plotting.FROM_CODES.values(), ("trivial predictor", plotting.TRIVIAL)):
        plotting.label_mark(share, f"{title}, OOD", mark, **PREDICTED)
    share.axvline(0.5, **plotting.DOTTED)
    share.set(xlim=(-0.04, 1.04), ylim=(0.4 - len(ROWS), 0.6), xlabel="share rendered")
    share.set_yticks([-row for row in range(len(ROWS))], list(ROWS.values()))
    plotting.finish_errors(error, list(ROWS.values()), list(PREDICTORS.values()))
    title = f"{sum(above)} of {len(ROWS)} render more OOD than both predictors from codes"
    plotting.panel(share, "a", title, wrap=36)
    title = f"Errors at held-out cells are {plotting.span(ratios)} of a blank image's"
    plotting.panel(error, "b", title, wrap=36)
    plotting.legend_below(picture, ncols=3)
    return picture


RUNGS = {
    "conv": "convolutions",
    "conv_coordinates": "convolutions with\npixel coordinates",
    "pixelwise_onehot": "per-pixel network,\none-hot code",
    "pixelwise_bump": "per-pixel network,\nbump code",
    "transformer": "transformer\nover pixels",
}
HOLES = {"donut": "a square", "corner": "a corner"}


@figure(
    "ladder",
    runs=(*ladder("donut").values(), *ladder("corner").values()),
    scale="quick",
    by_default=False,
)
def draw_ladder(runs):
    panels = {
        hole: {RUNGS[rung]: runs[name] for rung, name in ladder(where).items()}
        for where, hole in HOLES.items()
    }
    title = "Around {0}, {1} convolutional decoders compose and {5} transformers"
    return _draw_composing(panels, title, 3.0)


READERS = {
    "pixels_own": "per pixel,\nown weights",
    "pixels_shared": "per pixel,\nshared weights",
    "convolutions_own": "full-size conv.,\nown weights",
    "convolutions_shared": "full-size conv.,\nshared weights",
    "doubling_own": "upsampled twice,\nown weights",
    "doubling_shared": "upsampled twice,\nshared weights",
}
CODES = {"bump": "the bump code", "onehot": "the one-hot code"}


@figure(
    "readers",
    runs=tuple(f"{name}_{code}" for name in READERS for code in CODES),
    scale="quick",
    by_default=False,
)
def draw_readers(runs):
    panels = {
        words: {label: runs[f"{name}_{code}"] for name, label in READERS.items()}
        for code, words in CODES.items()
    }
    title = "With {0}, {2} per-pixel networks compose with shared weights, {1} with own ones"
    return _draw_composing(panels, title, 3.4)


def _draw_composing(panels: dict, title: str, height: float):
    """A panel for each {row: run}: which seeds compose. Its title gets its name, and how many seeds
    of each row do."""
    picture = plotting.new_figure(plotting.WIDTH, height)
    axes = picture.subplots(1, 2, sharey=True)
    for axis, letter, (panel, rows) in zip(axes, "ab", panels.items(), strict=True):
        counts = []
        for row, run in enumerate(rows.values()):
            answers = median_over_checkpoints(composes(run).astype(float)) > 0.5
            style = {"fmt": "o", "color": plotting.OOD_COLOR, "across": True}
            shares = plotting.ood_shares(run.late.cells)
            plotting.show_number(axis, -row, shares, plotting.mean_share, **style)
            for of, (_, mark) in plotting.FROM_CODES.items():
                by_predictor = plotting.ood_share(getattr(run.late, of))
                axis.plot(by_predictor, -row - 0.45, mark, **PREDICTED)
            counts.append(f"{answers.sum()} of {answers.size}")
            axis.text(1.08, -row, counts[-1], va="center", fontsize=plotting.SMALL)
        axis.text(1.08, 0.6, "compose", va="center", fontsize=plotting.SMALL)
        plotting.panel(axis, letter, title.format(panel, *counts), wrap=38, up=10)
        axis.set(xlim=(-0.04, 1.04), xlabel="share of held-out images rendered")
        axis.axvline(0.5, **plotting.DOTTED)
    axes[0].set_yticks([-row for row in range(len(rows))], list(rows))
    plotting.label_mark(axes[0], "mean over seeds", color=plotting.OOD_COLOR)
    plotting.label_seeds(axes[0])
    for name, mark in plotting.FROM_CODES.values():
        plotting.label_mark(axes[0], f"{name}, OOD", mark, **PREDICTED)
    plotting.legend_below(picture)
    return picture


STRIPES = {
    "bump_cnn": "No stripes",
    "bump_cnn_stripes": "Stripes",
    "bump_cnn_stripes_hole_corner": "Stripes, blank in a corner",
    "bump_cnn_stripes_hole_middle": "Stripes, blank in the middle",
    "bump_cnn_stripes_left_out_middle": "The middle left out of the loss",
    "pixels_own_stripes_left_out_middle": "The same, per pixel, own weights",
}
SETS_OF_WEIGHTS = {
    "pixels_shared_bump": "All pixels share one set of weights",
    "pixels_apart_corner": "A corner has a set of its own",
    "pixels_apart_middle": "The middle has a set of its own",
    "pixels_own_bump": "Each pixel has a set of its own",
}


@figure("apart", runs=tuple(SETS_OF_WEIGHTS), scale="quick", by_default=False)
def draw_apart(runs):
    return _shares(runs, SETS_OF_WEIGHTS)


@figure("hole", runs=tuple(STRIPES), scale="quick", by_default=False)
def draw_hole(runs):
    return _shares(runs, STRIPES)


def _shares(runs, panels: dict):
    """The share of networks that render each position, of four runs, or of six in two rows."""
    columns, rows = (4, 1) if len(panels) == 4 else (3, 2)
    picture = plotting.new_figure(plotting.WIDTH, 0.8 + 2.1 * rows)
    for place, (name, words) in enumerate(panels.items()):
        row, column = divmod(place, columns)
        left, bottom = 0.5 + 6.28 / columns * column, 2.1 * (rows - row) - 1.1
        run, axis = runs[name], plotting.axis_at(picture, left, bottom, 1.3, 1.3)
        image = plotting.show_share(axis, run.cells, "rendered")
        if frame := run.config.task.stripes.hole or getattr(run.config.model, "apart", ()):
            (low, high), (x, y) = frame, run.cells.factors.T
            inside = (low <= np.minimum(x, y)) & (np.maximum(x, y) <= high)
            plotting.outline(axis, plotting.over_grid(inside, run.cells), color="w", linestyle="--")
        if run.config.task.stripes.copies:
            _show_stripe(plotting.axis_at(picture, left + 1.38, bottom + 0.4, 0.5, 0.5), run)
        if column:
            axis.set(ylabel="", yticks=[])
        if row < rows - 1:
            axis.set(xlabel="", xticks=[])
        plotting.panel(axis, "abcdef"[place], words, wrap=21)
    bar, label = plotting.axis_at(picture, 2.2, 0.42, 2.4, 0.09), "share of networks that render it"
    picture.colorbar(image, cax=bar, orientation="horizontal", label=label)
    return picture


def _show_stripe(axis, run):
    """A stripe as training shows it, hatched where it says nothing."""
    task = run.config.task
    x = sum(task.stripes.hole or (task.grid,)) // 2
    image = bump.example(np.array([x, np.nan], np.float32), task).target
    plotting.show_signal(axis, bump.flip(image, task.image), task.image.amplitude)
    axis.patch.set(hatch="xxxx", edgecolor="0.6")
    axis.set_title("a stripe", fontsize=plotting.SMALL, pad=2)


@figure("two_objects", runs=("two_objects",), by_default=False)
def draw_two_objects(runs):
    (run,) = runs.values()
    cells, settings = run.cells, run.config.task
    picture = plotting.new_figure(plotting.WIDTH, 3.35)
    seed = plotting.median_seed(cells)
    seconds = jax.vmap(lambda point: bump.second_position(point, settings.grid))(cells.factors)
    apart = np.abs(np.asarray(seconds) - cells.factors).max(axis=1) >= APART
    rows = {"drawn": cells.predictions[seed], "asked": cells.truths}
    for letter, bottom, region, name, color in (
        ("a", 1.87, ~cells.held_out, "The first bump is seen (ID)", plotting.ID_COLOR),
        ("b", 0.2, cells.held_out, "The first bump is held out (OOD)", plotting.OOD_COLOR),
    ):
        chosen = plotting.spread(region & apart, EXAMPLES)
        for row, (word, images) in enumerate(rows.items()):
            at = bottom + row * (IMAGE + GAP)
            axes = plotting.row_at(picture, 0.3, at, IMAGE, EXAMPLES, GAP)
            for axis, index in zip(axes, chosen, strict=True):
                factors, amplitude = cells.factors[index], settings.image.amplitude
                plotting.show_signal(axis, images[index], amplitude, factors, color)
            axes[0].set_ylabel(word)
        plotting.panel(axes[0], letter, name, color=color)
    for column, name in enumerate(("first", "second")):
        score = "rendered_second" if column else "rendered"
        axis = plotting.axis_at(picture, 3.82 + column * (MAP + 0.12), 1.2, MAP, MAP)
        image = plotting.show_share(axis, cells, score)
        if column:
            axis.set(ylabel="", yticks=[])
        late = run.late.cells
        of_id = median_over_checkpoints(mean_score(late, score, ~late.held_out)).mean()
        shares = f"{of_id:.0%} ID, {plotting.ood_share(late, score):.0%} OOD"
        plotting.panel(axis, "cd"[column], f"The {name} bump is rendered: {shares}", wrap=20)
    bar, label = plotting.axis_at(picture, 3.82, 0.45, 2 * MAP + 0.02, 0.09), "share of seeds that"
    picture.colorbar(image, cax=bar, orientation="horizontal", label=f"{label} render it")
    return picture
