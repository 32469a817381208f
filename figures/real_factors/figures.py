"""Sprites: what decoders draw, what remedies add, which pairs of factors fail."""

import numpy as np

from compgen_jax.claims import of_share
from compgen_jax.metrics import text
from compgen_jax.papers.real_factors import claims, runs
from compgen_jax.statistics import mean_with_interval

from .. import plotting
from ..figure import figure
from . import tables

HELD_OUT = {
    "sprites_range": "a range: squares on the right",
    "sprites_element": "an element: a corner of all factors",
    "sprites_extrapolation": "extrapolation: the right half",
    "sprites_random": "as many as the range, at random",
}
EXAMPLES, IMAGE, GAP = 6, 0.47, 0.03  # images, inches
REMEDIES = {
    "sprites_range": "none",
    "sprites_mean": "mean marginals",
    "sprites_union": "union marginals",
    "sprites_mean_over_all": "means of held-out images too",
    "sprites_slice": "slices",
    "sprites_lowrank": "low rank",
    "sprites_lowrank_penalties": "low rank with penalties",
}
PREDICTORS = {"interpolator": "--", "nearest_seen": ":", "main_effects": "-."}


@figure("sprites", runs=(*HELD_OUT, "sprites_encoder"), by_default=False)
def draw(finished):
    """Decoders that are given the true factors of sprites, by what was held out. (a to d) What is
    asked (above) and what the median seed draws of held-out combinations. (e) The share that is
    rendered: right shape, and more like what is asked than like the nearest ID image. Filled:
    held-out combinations, with the 95% interval and seeds; squares: ID ones; crosses: what an
    interpolator of the codes renders OOD. (f) The other direction: an encoder of the same images,
    with the range held out, reads the factors."""
    drawn = plotting.new_figure(plotting.WIDTH, 5.2)
    axis, shares = plotting.axis_at(drawn, 4.05, 3.2, 2.55, 1.55), {}
    for place, (name, title) in enumerate(HELD_OUT.items()):
        if name in finished:
            run, bottom = finished[name], 5.2 - (place + 1) * 1.27
            plotting.panel(_asked_and_drawn(drawn, run, bottom), "abcd"[place], title)
            shares[name.removeprefix("sprites_")] = _show_shares(axis, place, run)
            axis.plot(place, claims.interpolated(run).mean(), "x", color="0.3", markersize=4)
    axis.set_xticks(range(len(shares)), shares, rotation=15)
    axis.set(ylabel="share rendered", ylim=(-0.04, 1.08), xlim=(-0.5, len(shares) - 0.4))
    plotting.panel(axis, "e", f"A range is rendered in {shares['range']:.0%}", wrap=40)
    plotting.label_mark(axis, "OOD", color=plotting.OOD_COLOR)
    plotting.label_mark(axis, "ID", "s", plotting.ID_COLOR, mfc="white")
    plotting.label_mark(axis, "interpolator OOD", "x")
    axis.legend(loc="best", **plotting.LEGEND)
    if "sprites_encoder" in finished:
        axis = plotting.axis_at(drawn, 4.05, 0.75, 2.55, 1.45)
        _accuracies(axis, finished["sprites_encoder"])
    return drawn


def _asked_and_drawn(drawn, run, bottom: float):
    """Two rows of images; the axis of the first asked one."""
    cells, seed = run.cells, plotting.median_seed(run.cells)
    chosen = plotting.spread(cells.held_out, EXAMPLES)
    rows = {"drawn": cells.predictions[seed], "asked": cells.truths}
    for row, (word, images) in enumerate(rows.items()):
        axes = plotting.row_at(drawn, 0.4, bottom + row * (IMAGE + GAP), IMAGE, EXAMPLES, GAP)
        for axis, index in zip(axes, chosen, strict=True):
            axis.imshow(np.clip(images[index], 0, 1), cmap="gray", vmin=0, vmax=1, origin="upper")
            axis.set(xticks=[], yticks=[])
            right = row or cells.scores["rendered"][seed, index]
            color = "0.7" if right else plotting.OOD_COLOR
            axis.spines[:].set(visible=True, color=color, linewidth=0.8)
        axes[0].set_ylabel(word)
    return axes[0]


def _show_shares(axis, place, run, color=plotting.OOD_COLOR, across: bool = False, **label):
    """The share of the held-out combinations that a run renders, with its interval, and of the ID
    ones (square); returns the first's mean."""
    shares, cells = claims.share(run), int(run.cells.held_out.sum())
    bounded = lambda values: of_share(mean_with_interval(values), cells)
    plotting.show_number(axis, place, shares, bounded, fmt="o", color=color, across=across)
    seen = float(claims.share(run, ood=False).mean())
    style = {"color": plotting.ID_COLOR, "markerfacecolor": "white", "markersize": 4}
    axis.plot(*((seen, place) if across else (place, seen)), "s", **style, **label)
    return float(shares.mean())


def _accuracies(axis, run):
    """The accuracy of each factor, and of all at once, by region."""
    names = [factor.name for factor in run.task.factors]
    scores = [*(f"{name}_accuracy" for name in names), "exact_accuracy"]
    for ood, color, label in ((False, plotting.ID_COLOR, "ID"), (True, plotting.OOD_COLOR, "OOD")):
        for place, score in enumerate(scores):
            values = claims.share(run, score, ood)
            plotting.show_number(axis, place + 0.15 * ood, values, fmt="o", color=color)
        plotting.label_mark(axis, label, color=color)
    axis.set_xticks(range(len(scores)), [*names, "all"], rotation=30)
    axis.set(ylabel="accuracy", ylim=(-0.04, 1.08))
    title = f"An encoder reads all factors of {values.mean():.0%} of the range"
    plotting.panel(axis, "f", title, wrap=44)
    axis.legend(loc="best", **plotting.LEGEND)


@figure("sprites_remedies", runs=tuple(REMEDIES), scale="quick", by_default=False)
def draw_remedies(finished):
    """The share of a range (squares on the right) that decoders of sprites render, without and with
    remedies: mean, 95% interval and seeds; open squares: ID. Marginal images show one value of one
    factor, as means or unions over ID images; slices are ID images whose code lacks all factors but
    one. Lines: the trivial predictors that render most."""
    rows = [name for name in REMEDIES if name in finished]
    drawn = plotting.new_figure(plotting.WIDTH, 0.9 + 0.3 * len(rows))
    axis = drawn.subplots()
    for place, name in enumerate(rows):
        color = "0.3" if name == "sprites_range" else plotting.OOD_COLOR
        label = None if place else "ID"
        _show_shares(axis, place, finished[name], color, across=True, label=label)
    found = claims.predictors(finished["sprites_range"])
    for name, dash in PREDICTORS.items():
        share = float(np.mean(found[name]))
        label = f"{name.replace('_', ' ')} {text.number(share, 2)}"
        axis.axvline(share, color="0.5", linestyle=dash, linewidth=0.9, label=label, zorder=0)
    axis.set_yticks(range(len(rows)), [REMEDIES[name] for name in rows])
    axis.set(xlabel="share rendered OOD", xlim=(-0.03, 1.03), ylim=(len(rows) - 0.5, -0.6))
    plain = claims.share(finished["sprites_range"]).mean()
    added = {name: float(claims.share(finished[name]).mean() - plain) for name in rows[1:]}
    best = max(added, key=added.get)
    axis.set_title(f"Most is gained by {REMEDIES[best]}: {plotting.signed(added[best])}")
    plotting.legend_below(drawn, axis)
    return drawn


@figure("sprites_pairs", runs=("sprites_pair_*",), scale="quick", by_default=False)
def draw_pairs(finished):
    """One decoder for each pair of factors, with the upper values of both held out jointly. (a) The
    share rendered OOD (mean, 95% interval) against the main effects: the share of the pixels'
    variance over both factors' values that a sum of two images explains. (b) The pairs, from least
    to most main effects (written on the right), with seeds; crosses: what an interpolator of the
    codes renders."""
    drawn = plotting.new_figure(plotting.WIDTH, 3.4)
    axis, listed = drawn.subplots(1, 2)
    pairs = claims.Pairs(list(finished.values()))
    effects, shares, interpolated = pairs.effects, pairs.shares, pairs.interpolated
    order = np.argsort(effects, kind="stable")
    for row, index in enumerate(order):
        style = {"fmt": "o", "color": plotting.OOD_COLOR, "markersize": 4}
        number = mean_with_interval(shares[index])
        plotting.point_with_interval(axis, effects[index], number, **style)
        plotting.point_with_interval(listed, row, number, shares[index], across=True, **style)
        listed.plot(interpolated[index].mean(), row, "x", color="0.3", markersize=4)
        listed.text(1.06, row, f"{effects[index]:.2f}", va="center", fontsize=plotting.SMALL)
    plotting.label_mark(listed, "interpolator", "x")
    names = [" × ".join(claims.pair(run.config)) for run in finished.values()]
    listed.set_yticks(range(len(order)), [names[index] for index in order])
    listed.set(xlabel="share rendered OOD", xlim=(-0.04, 1.04), ylim=(len(order) - 0.5, -0.7))
    axis.set(xlabel="main effects", ylabel="share rendered OOD", ylim=(-0.04, 1.08))
    ranked = pairs.follow(partial=False)
    if isinstance(ranked, dict):
        title = ranked["undecided_because"].capitalize()
    else:
        number = mean_with_interval(ranked)
        title = f"Main effects rank the pairs by {text.with_interval(number, 2)}"
    plotting.panel(axis, "a", title, wrap=46)
    plotting.panel(listed, "b", "Pairs in the order of their main effects (right)")
    plotting.legend_below(drawn, listed)
    return drawn


@figure("sprites_montero", runs=tuple(f"sprites_{name}" for name in runs.MONTERO), scale="paper",
        by_default=False)  # fmt: skip
def draw_montero(finished):
    """Montero et al. (2021), decoders of dSprites' true factors: NLL per image above the target's
    own entropy, for ID combinations (squares) and held-out ones (dots, 95% interval and seeds), by
    split. Crosses: published, of one run of an architecture that is not recorded."""
    rows = tables.of_montero(finished)
    drawn = plotting.new_figure(plotting.WIDTH, 1.0 + 0.32 * len(rows))
    axis, ratios = drawn.subplots(), []
    marks = {"ID": (plotting.ID_COLOR, "s"), "OOD": (plotting.OOD_COLOR, "o")}
    for place, (run, published) in enumerate(rows.values()):
        means = {}
        for index, (region, (color, mark)) in enumerate(marks.items()):
            name, style = f"{region.lower()}.{tables.NLL}", {"fmt": mark, "color": color}
            seeds = np.array([one[name] for one in run.summary["seeds"].values()])
            style |= {"mean": plotting.geometric_mean, "label": "" if place else region}
            plotting.show_number(axis, place, seeds, across=True, **style)
            means[region] = plotting.geometric_mean(seeds)["value"]
            if published:
                label = "" if place else f"published, {region}"
                axis.plot(
                    published[index], place + 0.25, "x", color=color, markersize=5, label=label
                )
        ratios.append(means["OOD"] / means["ID"])
    plotting.log_scale(axis, "x")
    axis.set_yticks(range(len(rows)), list(rows))
    axis.set(xlabel="NLL per image, nats", ylim=(len(rows) - 0.5, -0.6))
    less, more = (text.number(ratio, 2) for ratio in (min(ratios), max(ratios)))
    axis.set_title(f"Held-out combinations cost {less} to {more} times as many nats as ID ones")
    plotting.legend_below(drawn, axis, ncols=4)
    return drawn
