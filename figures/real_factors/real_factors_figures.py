"""Sprites: what decoders draw, what remedies add, which pairs of factors fail."""

import numpy as np

from compgen_jax.metrics import text
from compgen_jax.statistics import mean_with_interval, of_share
from compgen_jax.studies.real_factors import real_factors_claims as claims
from compgen_jax.studies.real_factors import real_factors_presets as runs

from .. import plotting
from ..figure import figure
from . import real_factors_tables as tables

DRAWN = (  # of a run, whether held-out sprites are drawn, and a title
    ("sprites_pixelwise_range", False, "Seen by the network of c"),
    ("sprites_range", True, "Held out (a range), by a network that upsamples"),
    ("sprites_pixelwise_range", True, "The same, by a per-pixel network"),
    ("sprites_lowrank_range", True, "The same, by a low-rank decoder"),
)
KINDS = {"": "upsampled", "pixelwise_": "per pixel", "lowrank_": "low rank"}
HELD_OUT = ("random", "element", "middle", "range", "extrapolation")
SHARES = {f"sprites_{kind}{of}": words for of in HELD_OUT for kind, words in KINDS.items()}
SHARP = {"linestyle": "--", "linewidth": 0.8, "marker": "x", "markersize": 3}
SHOWN = {  # where a shape is shown in the upper half: in words, and a colour
    "": ("none", plotting.VIOLET),
    "_beside": ("7 and 8", plotting.GOLD),
    "_apart": ("8 and 11", plotting.GREEN),
}
FRAMES = {"0.4": "grey frame: a close match", plotting.OOD_COLOR: "red frame: not"}
EXAMPLES, IMAGE, GAP = 6, 0.45, 0.02  # images, inches
REMEDIES = {
    "sprites_range": "none",
    "sprites_mean": "mean marginals",
    "sprites_union": "union marginals",
    "sprites_mean_over_all": "means of held-out images too",
    "sprites_slice": "slices",
    "sprites_lowrank": "low rank",
    "sprites_pixelwise_range": "per pixel",
    "sprites_lowrank_penalties": "low rank with penalties",
}
SPLITS = {  # what Montero et al. hold out
    "leave1out": "large ellipses in a corner",
    "shape2tx": "squares on the right",
    "ell2tx": "ellipses on the right",
    "sqr2scl": "large squares",
    "sqr2tx_cent": "squares in the middle",
    "sqr2tx_rs": "squares right of the middle",
    "sqr2tx_ls": "ellipses at both sides",
    "blank_side": "the right half",
}


@figure("sprites", runs=tuple(SHARES), by_default=False)
def draw(finished):
    drawn = plotting.new_figure(plotting.WIDTH, 5.7)
    for place, (name, ood, title) in enumerate(DRAWN):
        if run := finished.get(name):
            above = _asked_and_drawn(drawn, run, 5.7 - (place + 1) * 1.34, ood)
            plotting.panel(above, "abcd"[place], title)
    axis = plotting.axis_at(drawn, 4.9, 0.9, 1.7, 4.35)
    rows = [(name, index + index // len(KINDS)) for index, name in enumerate(SHARES)]
    rows = [(name, row) for name, row in rows if name in finished]
    for name, row in rows:
        style = {"fmt": "o", "color": plotting.OOD_COLOR, "across": True}
        close = claims.shapes_rendered(finished[name])
        plotting.show_number(axis, -row, close, plotting.mean_share, **style)
    axis.set_yticks([-row for _, row in rows], [SHARES[name] for name, _ in rows])
    for place, of in enumerate(HELD_OUT):
        row = place * (len(KINDS) + 1)
        axis.text(-0.62, 0.75 - row, of, fontsize=plotting.SMALL, fontweight="bold", va="center")
    axis.set(xlim=(-0.04, 1.04), xlabel="share of what was held out")
    of_range = [finished[name] for name, _ in rows if name.endswith("_range")]
    found = ", ".join(plotting.percent(claims.shapes_rendered(run).mean()) for run in of_range)
    plotting.panel(axis, "e", f"Of a range, {found} are close matches", wrap=26)
    plotting.label_mark(axis, "mean over seeds", color=plotting.OOD_COLOR)
    plotting.label_seeds(axis)
    axis.legend(loc="upper center", bbox_to_anchor=(0.35, -0.1), ncols=2, **plotting.LEGEND)
    for place, (color, words) in enumerate(FRAMES.items()):
        style = {"color": color, "fontsize": plotting.SMALL}
        drawn.text((0.4 + 1.5 * place) / drawn.get_figwidth(), 0.01, words, **style)
    return drawn


def _asked_and_drawn(drawn, run, bottom: float, ood: bool):
    """Rows of images: what is asked, and below it what the median seed draws, over its r². Returns
    the axis of the first asked one."""
    cells, seed = run.cells, plotting.median_seed(run.cells)
    chosen = plotting.spread(cells.held_out == ood, EXAMPLES)
    rows = {"drawn": cells.predictions[seed], "asked": cells.truths}
    for row, (word, images) in enumerate(rows.items()):
        axes = plotting.row_at(drawn, 0.4, bottom + row * (IMAGE + GAP), IMAGE, EXAMPLES, GAP)
        for axis, index in zip(axes, chosen, strict=True):
            _show(axis, images[index])
            r2 = cells.scores["image_r2"][seed, index] if word == "drawn" else 1.0
            right = word == "asked" or (
                cells.scores["rendered"][seed, index] and r2 >= claims.SHAPE
            )
            axis.set_xlabel(f"{r2:.2f}" * (word == "drawn"), fontsize=plotting.SMALL, labelpad=1)
            axis.spines[:].set(visible=True, color=[*FRAMES][not right], linewidth=0.8)
        axes[0].set_ylabel(word)
    return axes[0]


def _show(axis, image):
    axis.imshow(np.clip(image, 0, 1), cmap="gray", vmin=0, vmax=1, origin="upper")
    axis.set(xticks=[], yticks=[])


@figure("sprites_remedies", runs=tuple(REMEDIES), scale="quick", by_default=False)
def draw_remedies(finished):
    rows = [name for name in REMEDIES if name in finished]
    drawn = plotting.new_figure(plotting.WIDTH, 0.9 + 0.3 * len(rows))
    axis = drawn.subplots()
    for place, name in enumerate(rows):
        shares, cells = claims.share(finished[name]), int(finished[name].cells.held_out.sum())
        bounded = lambda values, cells=cells: of_share(mean_with_interval(values), cells)
        style = {"fmt": "o", "color": plotting.OOD_COLOR, "across": True}
        plotting.show_number(axis, place, shares, bounded, **style)
        seen = float(claims.share(finished[name], ood=False).mean())
        style = {"color": plotting.ID_COLOR, "markerfacecolor": "white", "markersize": 4}
        axis.plot(seen, place, "s", **style)
    found = claims.predictors(finished["sprites_range"])
    best = max(found, key=lambda name: np.mean(found[name]))
    label = f"best trivial predictor: {best.replace('_', ' ')}"
    axis.axvline(np.mean(found[best]), **plotting.DOTTED, label=label)
    axis.set_yticks(range(len(rows)), [REMEDIES[name] for name in rows])
    axis.set(xlabel="share rendered", xlim=(-0.03, 1.03), ylim=(len(rows) - 0.5, -0.6))
    plain = claims.share(finished["sprites_range"]).mean()
    added = {name: float(claims.share(finished[name]).mean() - plain) for name in rows[1:]}
    most = max(added, key=added.get)
    words = f"most is added by {REMEDIES[most]} ({plotting.signed(added[most])})"
    axis.set_title(f"Without a remedy {plain:.0%} of the range is rendered; {words}")
    plotting.label_regions(axis)
    plotting.legend_below(drawn, axis)
    return drawn


@figure("sprites_columns", runs=[f"sprites_{name}" for name in runs.NEARBY], by_default=False)
def draw_columns(finished):
    drawn = plotting.new_figure(plotting.WIDTH, 5.1)
    rows = {"8 and 11\nshown": "_apart", "none\nshown": "", "asked": ""}
    for row, (words, where) in enumerate(rows.items()):
        cells = finished[f"sprites_squares{where}"].cells
        images = cells.predictions[plotting.median_seed(cells)]
        axes = plotting.row_at(drawn, 0.6, 2.85 + 0.6 * row, 0.57, 6, 0.4)
        for axis, line in zip(axes, range(6, 12), strict=True):
            near = plotting.nearest_cell(cells, cells.held_out, [0, 1, 0, line / 11, 0.5])
            if line in runs.NOWHERE[where]:
                _show(axis, (cells.truths if words == "asked" else images)[near])
            else:
                axis.set_axis_off()
            if words == "asked":
                axis.set_title(f"column {line + 1}", pad=2, fontsize=plotting.SMALL)
        axes[0].set_ylabel(words)
    plotting.panel(axes[0], "a", "Squares asked and drawn", up=14)
    for place, (shape, line) in enumerate((("square", "column"), ("heart", "row"))):
        axis = plotting.axis_at(drawn, 0.6 + 3.3 * place, 0.85, 2.7, 1.6)
        for level, (where, (label, color)) in enumerate(SHOWN.items()):
            cells, held_out = finished[f"sprites_{shape}s{where}"].cells, runs.NOWHERE[where]
            of_line = np.round(11 * cells.factors[:, 3 + place])
            masks = [cells.held_out & (of_line == each) for each in held_out]
            rendered = cells.scores["rendered"]
            shares = [rendered[:, mask].mean(axis=1) for mask in masks]
            sharp = rendered * (cells.scores["image_r2"] >= claims.SHAPE)
            lines = np.array(held_out) + 1
            axis.plot(lines, np.mean(shares, axis=1), color=color, linewidth=0.8)
            axis.plot(lines, [sharp[:, mask].mean() for mask in masks], color=color, **SHARP)
            plotting.show_numbers(
                axis, lines, shares, color, label, plotting.mean_share, dots=color
            )
            shown = np.setdiff1d(np.arange(6, 13), lines)
            style = {"color": color, "markerfacecolor": "white", "markersize": 4}
            axis.plot(shown, np.full(len(shown), 1.1 + 0.07 * level), "s", **style)
        axis.set(xlabel=line, ylabel="share rendered", ylim=(-0.04, 1.3), yticks=[0, 0.5, 1])
        plotting.panel(axis, "bc"[place], f"{shape.capitalize()}s by {line}")
    plotting.label_mark(axis, "shown", "s", markerfacecolor="white")
    axis.plot([], [], color=plotting.GREY, label="rendered sharply", **SHARP)
    handles = axis.get_legend_handles_labels()
    title = "columns (b) or rows (c) of 7 to 12 in which the shape is shown"
    drawn.legend(*handles, loc="lower center", ncols=5, title=title, **plotting.LEGEND)
    return drawn


@figure("sprites_pairs", runs=("sprites_pair_*",), scale="quick", by_default=False)
def draw_pairs(finished):
    drawn = plotting.new_figure(plotting.WIDTH, 3.4)
    axis, listed = drawn.subplots(1, 2)
    pairs = claims.Pairs(list(finished.values()))
    effects, shares, interpolated = pairs.effects, pairs.shares, pairs.interpolated
    order, (name, mark) = np.argsort(effects, kind="stable"), plotting.FROM_CODES["interpolator"]
    for row, index in enumerate(order):
        style = {"fmt": "o", "color": plotting.OOD_COLOR, "markersize": 4}
        number = mean_with_interval(shares[index])
        plotting.point_with_interval(axis, effects[index], number, **style)
        plotting.point_with_interval(listed, row, number, shares[index], across=True, **style)
        listed.plot(interpolated[index].mean(), row, mark, color=plotting.GREY, markersize=4)
        listed.text(1.06, row, f"{effects[index]:.2f}", va="center", fontsize=plotting.SMALL)
    plotting.label_mark(listed, f"{name}, OOD", mark, plotting.GREY)
    plotting.label_seeds(listed)
    names = [" × ".join(claims.pair(run.config)) for run in finished.values()]
    listed.set_yticks(range(len(order)), [names[index] for index in order])
    listed.set(xlabel="share rendered OOD", xlim=(-0.04, 1.04), ylim=(len(order) - 0.5, -0.7))
    words = "main effects: share of variance\nthat a sum of two images explains"
    axis.set(xlabel=words, ylabel="share rendered OOD", ylim=(-0.04, 1.08))
    ranked = pairs.follow(partial=False)
    if isinstance(ranked, dict):
        title = ranked["undecided_because"].capitalize()
    else:
        number = mean_with_interval(ranked)
        title = f"The rank correlation with main effects is {text.with_interval(number, 2)}"
    plotting.panel(axis, "a", title, wrap=40)
    plotting.panel(listed, "b", "Pairs in the order of their main effects (right)", wrap=52)
    plotting.legend_below(drawn, listed)
    return drawn


@figure("sprites_montero", runs=tuple(f"sprites_{name}" for name in runs.MONTERO), scale="paper",
        by_default=False)  # fmt: skip
def draw_montero(finished):
    rows = tables.of_montero(finished)
    drawn = plotting.new_figure(plotting.WIDTH, 1.0 + 0.36 * len(rows))
    axis, ratios = drawn.subplots(), []
    of_id = {"color": plotting.ID_COLOR} | plotting.SEEN
    marks = {"ID": of_id, "OOD": {"color": plotting.OOD_COLOR, "fmt": "o"}}
    for place, (run, published) in enumerate(rows.values()):
        means = {}
        for index, (region, style) in enumerate(marks.items()):
            name, style = f"{region.lower()}.{tables.NLL}", {"across": True, **style}
            seeds = np.array([one[name] for one in run.summary["seeds"].values()])
            style |= {"mean": plotting.geometric_mean, "label": "" if place else region}
            plotting.show_number(axis, place, seeds, **style)
            means[region] = plotting.geometric_mean(seeds)["value"]
            if published:
                label = "" if place else f"{region}, published"
                style = {"color": style["color"], "markersize": 5, "label": label}
                axis.plot(published[index], place + 0.25, "*", **style)
        ratios.append(means["OOD"] / means["ID"])
    plotting.log_scale(axis, "x")
    axis.set_xticks([50, 100, 200, 500, 1000, 2000])
    axis.set_yticks(range(len(rows)), [f"{SPLITS[split]}\n({split})" for split in rows])
    words = "NLL per image above the target's entropy, in nats (logarithmic)"
    axis.set(xlabel=words, ylim=(len(rows) - 0.5, -0.6))
    less, more = (text.number(ratio, 2) for ratio in (min(ratios), max(ratios)))
    axis.set_title(f"A held-out image costs {less} to {more} times as many nats as an ID one")
    plotting.label_seeds(axis)
    plotting.legend_below(drawn, axis, ncols=5)
    return drawn
