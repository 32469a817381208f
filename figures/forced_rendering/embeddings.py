"""Figure 6: the embedding matrices of the low-rank decoders, and what their penalties change."""

import numpy as np
from scipy.stats import spearmanr

from compgen_jax.papers.forced_rendering.low_rank import embedding_numbers

from .. import plotting
from ..figure import figure
from .lookup import in_order
from .lowrank import COLORS, SHOWN, TITLES, mse, of_first_seed

COLUMNS = 8  # of tokens
TICKS = (1, 2, 4, 8, 16, 32)


@figure("fig6", runs=tuple(TITLES))
def draw_embeddings(runs):
    """Figure 6: the embeddings of every value (token) of x and of y, first seeds, without (a) and
    with both penalties (b), in the order of the tokens. Colours end at the 95th percentile of a
    network's magnitudes. Framed: the rows that are held out for a token of x, and the columns for
    one of y. (c) to (f): all tokens of the four ablations; means, 95% intervals, seeds as dots. (c)
    The share of an embedding's energy in its largest singular value. (d) exp(entropy) of its
    squared singular values, which is 1 at rank one, beside that of lambda squared, which the
    penalty sees. (e) The share of energy that is constant along the other factor's axis, as in a
    stripe; dotted, noise. (f) The rest, beside the error over held-out cells of every seed;
    dotted, a blank image. Low rank is not enough: an embedding of rank one may still end where the
    held-out region begins."""
    ablations = in_order(TITLES, runs)
    grid = ablations["lowrank_both"].config.task.grid
    tall = 2 * -(-grid // COLUMNS) * (plotting.WIDTH / 2 - 0.3) / COLUMNS + 0.6
    picture = plotting.new_figure(plotting.WIDTH, tall + 2.4)
    top, bottom = picture.subfigures(2, 1, height_ratios=[tall, 2.4])
    for block, name, letter in zip(top.subfigures(1, 2), SHOWN, "ab", strict=True):
        _draw_block(block.subplots(2, 1), ablations[name], TITLES[name], letter)
    axes = bottom.subplots(1, 4)
    titles = _draw_numbers(axes, ablations)
    for axis, letter, title in zip(axes, "cdef", titles, strict=True):
        plotting.panel(axis, letter, title, wrap=20)
    plotting.legend_below(bottom)
    return picture


def _draw_block(axes, run, title, letter):
    of_both, limit = of_first_seed(run)
    held_out = plotting.over_grid(run.cells.held_out, run.cells)
    grid = len(held_out)
    plotting.panel(axes[0], letter, f"{title}, seed {run.cells.seeds[0]}: from -{limit:.2g} "
                   f"to {limit:.2g}".replace("-", plotting.MINUS))  # fmt: skip
    bands = held_out.T[:, :, None], held_out[:, None, :]
    firsts = np.arange(0, grid, COLUMNS)
    labels = [f"{k}\N{EN DASH}{min(k + COLUMNS, grid) - 1}" for k in firsts]
    for axis, name, images, band in zip(axes, "xy", of_both, bands, strict=True):
        plotting.show_signed(axis, plotting.mosaic(images, COLUMNS), limit)
        framed = plotting.mosaic(np.broadcast_to(band, images.shape), COLUMNS, gap=False)
        plotting.outline(axis, framed, color="black", linewidth=0.5)
        centres = (len(firsts) - np.arange(len(firsts)) - 0.5) * (grid + 1) - 1
        axis.set_yticks(centres, labels)
        axis.tick_params(length=0)
        axis.set_ylabel(f"tokens of {name}")


def _draw_numbers(axes, ablations) -> tuple:
    """Returns the panels' titles."""
    shares, ranks, constancy, errors = axes
    in_one, effective, constants, varying, ood = ([] for _ in range(5))
    for place, (name, run) in enumerate(ablations.items()):
        numbers, color = embedding_numbers(run), COLORS[name]
        plotting.show_number(shares, place, numbers["top_share"], fmt="o", color=color)
        mean = {"mean": plotting.geometric_mean, "color": color}
        plotting.show_number(ranks, place - 0.2, numbers["lambda_entropy"], **mean, **plotting.SEEN)
        plotting.show_number(ranks, place + 0.15, numbers["spectrum_entropy"], **mean, fmt="o")
        constant = numbers["constant_share"]
        plotting.show_number(constancy, place, constant, fmt="o", color=color)
        held_out, blank = mse(run)["ood"]
        errors.plot(1 - constant, held_out, "o", color=color, markersize=4)
        in_one.append(numbers["top_share"].mean())
        effective.append(np.exp(np.log(numbers["spectrum_entropy"]).mean()))
        constants.append(constant.mean())
        varying += list(1 - constant)
        ood += list(held_out)
    constancy.axhline(1 / run.config.task.grid, **plotting.DOTTED)
    errors.axhline(blank, **plotting.DOTTED)
    plotting.label_seeds(shares)
    ranks.plot([], [], "s", color="0.3", markerfacecolor="w", markersize=4, label="(d) λ²")
    ranks.plot([], [], "o", color="0.3", markersize=4, label="(d) singular values²")
    constancy.plot([], [], **plotting.DOTTED, label="(e) noise, (f) blank image")
    shares.set(ylabel="energy in the largest\nsingular value", ylim=(None, 1.01))
    ranks.set(ylabel="exp(entropy)", yscale="log", ylim=(0.85, None))
    ranks.set_yticks(TICKS, TICKS)
    ranks.minorticks_off()
    constancy.set(ylabel="energy constant along\nthe other axis", ylim=(0, 1.03))
    errors.set(ylabel="MSE OOD")
    plotting.log_scale(errors, "xy")
    errors.set_xlim(min(0.05, errors.get_xlim()[0]), 1.1)
    errors.set_xlabel("energy that varies\nalong the other axis", fontsize=plotting.SMALL)
    plotting.label_colors(errors, {title: COLORS[name] for name, title in TITLES.items()})
    names = [name.removeprefix("lowrank_") for name in ablations]
    for axis in axes[:3]:
        axis.set_xticks(range(len(names)), names, rotation=40)
        axis.set_xlim(-0.5, len(names) - 0.4)
    return (
        f"{plotting.span(in_one)} in the largest",
        f"effective rank {plotting.span(effective, '{:.1f}'.format)}",
        f"{plotting.span(constants)} is constant",
        f"Spearman {plotting.signed(spearmanr(varying, ood).statistic)}",
    )
