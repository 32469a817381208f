"""Sprites: what decoders draw, what remedies add, which pairs of factors fail."""

import numpy as np

from compgen_jax.claims import of_share
from compgen_jax.metrics import text
from compgen_jax.metrics.evaluation import mean_score
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
    there = {name: title for name, title in HELD_OUT.items() if name in finished}
    encoder = finished.get("sprites_encoder")
    drawn = plotting.new_figure(plotting.WIDTH, 5.2)
    for row, (name, title) in enumerate(there.items()):
        bottom = 5.2 - (row + 1) * 1.27
        first = _asked_and_drawn(drawn, finished[name], bottom)
        plotting.panel(first, "abcd"[row], title)
    axis = plotting.axis_at(drawn, 4.05, 3.2, 2.55, 1.55)
    _share_by_hold_out(axis, {title: finished[name] for name, title in there.items()})
    if encoder is not None:
        _accuracies(plotting.axis_at(drawn, 4.05, 0.75, 2.55, 1.45), encoder)
    return drawn


def _asked_and_drawn(drawn, run, bottom: float):
    """Two rows of images; the axis of the first asked one."""
    cells = run.cells
    share_T = mean_score(cells, "rendered", cells.held_out)
    seed = np.argsort(share_T)[(len(share_T) - 1) // 2]
    ood = np.flatnonzero(cells.held_out)
    chosen = ood[np.linspace(0, len(ood) - 1, EXAMPLES + 2).round().astype(int)[1:-1]]
    for row, (word, images) in enumerate({"drawn": cells.predictions[seed],
                                          "asked": cells.truths}.items()):  # fmt: skip
        axes = plotting.row_at(drawn, 0.4, bottom + row * (IMAGE + GAP), IMAGE, EXAMPLES, GAP)
        for axis, index in zip(axes, chosen, strict=True):
            axis.imshow(np.clip(images[index], 0, 1), cmap="gray", vmin=0, vmax=1, origin="upper")
            axis.set(xticks=[], yticks=[])
            right = row or cells.scores["rendered"][seed, index]
            color = "0.7" if right else plotting.OOD_COLOR
            axis.spines[:].set(visible=True, color=color, linewidth=0.8)
        axes[0].set_ylabel(word)
    return axes[0]


def _share_by_hold_out(axis, by_title: dict):
    for place, run in enumerate(by_title.values()):
        _show_share(axis, place, run, fmt="o", color=plotting.OOD_COLOR)
        seen = float(claims.share(run, ood=False).mean())
        axis.plot(place, seen, "s", color=plotting.ID_COLOR, markerfacecolor="white", markersize=4)
        axis.plot(place, claims.interpolated(run).mean(), "x", color="0.3", markersize=4)
    axis.set_xticks(range(len(by_title)), [title.partition(":")[0] for title in by_title],
                    rotation=15)  # fmt: skip
    axis.set(ylabel="share rendered", ylim=(-0.04, 1.08), xlim=(-0.5, len(by_title) - 0.4))
    axis.set_xticklabels(["range", "element", "extrapolation", "random"][: len(by_title)])
    shares = [float(claims.share(run).mean()) for run in by_title.values()]
    plotting.panel(axis, "e", f"A range is rendered in {shares[0]:.0%}", wrap=40)
    for style, label in (({"marker": "o", "color": plotting.OOD_COLOR}, "OOD"),
                         ({"marker": "s", "color": plotting.ID_COLOR, "mfc": "white"}, "ID"),
                         ({"marker": "x", "color": "0.3"}, "interpolator OOD")):  # fmt: skip
        axis.plot([], [], linestyle="", markersize=4, label=label, **style)
    axis.legend(loc="best", **plotting.LEGEND)


def _show_share(axis, place, run, **kwargs):
    """The share of the held-out combinations that a run renders, with its interval."""
    cells = int(run.cells.held_out.sum())
    bounded = lambda values: of_share(mean_with_interval(values), cells)
    plotting.show_number(axis, place, claims.share(run), bounded, **kwargs)


def _accuracies(axis, run):
    """The accuracy of each factor, and of all at once, by region."""
    names = [factor.name for factor in run.task.factors]
    scores = [*(f"{name}_accuracy" for name in names), "exact_accuracy"]
    for ood, color, label in ((False, plotting.ID_COLOR, "ID"), (True, plotting.OOD_COLOR, "OOD")):
        for place, score in enumerate(scores):
            values = claims.share(run, score, ood)
            plotting.show_number(axis, place + 0.15 * ood, values, fmt="o", color=color)
        axis.plot([], [], "o", color=color, markersize=4, label=label)
    axis.set_xticks(range(len(scores)), [*names, "all"], rotation=30)
    axis.set(ylabel="accuracy", ylim=(-0.04, 1.08))
    exact = float(claims.share(run, "exact_accuracy").mean())
    plotting.panel(axis, "f", f"An encoder reads all factors of {exact:.0%} of the range", wrap=44)
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
        run = finished[name]
        color = "0.3" if name == "sprites_range" else plotting.OOD_COLOR
        _show_share(axis, place, run, fmt="o", color=color, across=True)
        seen = float(claims.share(run, ood=False).mean())
        axis.plot(seen, place, "s", color=plotting.ID_COLOR, markerfacecolor="white", markersize=4,
                  label="ID" if not place else None)  # fmt: skip
    found = claims.predictors(finished["sprites_range"])
    for name, dash in PREDICTORS.items():
        share = float(np.mean(found[name]))
        label = f"{name.replace('_', ' ')} {text.number(share, 2)}"
        axis.axvline(share, color="0.5", linestyle=dash, linewidth=0.9, label=label, zorder=0)
    axis.set_yticks(range(len(rows)), [REMEDIES[name] for name in rows])
    axis.set(xlabel="share rendered OOD", xlim=(-0.03, 1.03), ylim=(len(rows) - 0.5, -0.6))
    plain = claims.share(finished["sprites_range"])
    added = {name: float((claims.share(finished[name]) - plain).mean()) for name in rows[1:]}
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
        listed.plot(interpolated[index].mean(), row, "x", color="0.3", markersize=4,
                    label="" if row else "interpolator")  # fmt: skip
        listed.text(1.06, row, f"{effects[index]:.2f}", va="center", fontsize=plotting.SMALL)
    names = [" × ".join(claims.pair(run.config)) for run in finished.values()]
    listed.set_yticks(range(len(order)), [names[index] for index in order])
    listed.set(xlabel="share rendered OOD", xlim=(-0.04, 1.04), ylim=(len(order) - 0.5, -0.7))
    axis.set(xlabel="main effects", ylabel="share rendered OOD", ylim=(-0.04, 1.08))
    plotting.panel(axis, "a", _ranked(pairs), wrap=46)
    plotting.panel(listed, "b", "Pairs in the order of their main effects (right)")
    plotting.legend_below(drawn, listed)
    return drawn


def _ranked(pairs) -> str:
    follow = pairs.follow(partial=False)
    if isinstance(follow, dict):
        return follow["undecided_because"].capitalize()
    number = mean_with_interval(follow)
    return f"Main effects rank the pairs by {text.with_interval(number, 2)}"


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
        means = []
        for index, (region, (color, mark)) in enumerate(marks.items()):
            name, style = f"{region.lower()}.{tables.NLL}", {"fmt": mark, "color": color}
            seeds = np.array([one[name] for one in run.summary["seeds"].values()])
            number = plotting.geometric_mean(seeds)
            means.append(number["value"])
            plotting.point_with_interval(
                axis, place, number, seeds, across=True, markersize=4, **style,
                label="" if place else region,
            )  # fmt: skip
            if published:
                axis.plot(published[index], place + 0.25, "x", color=color, markersize=5,
                          label="" if place else f"published, {region}")  # fmt: skip
        ratios.append(means[1] / means[0])
    plotting.log_scale(axis, "x")
    axis.set_yticks(range(len(rows)), list(rows))
    axis.set(xlabel="NLL per image, nats", ylim=(len(rows) - 0.5, -0.6))
    less, more = (text.number(ratio, 2) for ratio in (min(ratios), max(ratios)))
    axis.set_title(f"Held-out combinations cost {less} to {more} times as many nats as ID ones")
    plotting.legend_below(drawn, axis, ncols=4)
    return drawn
