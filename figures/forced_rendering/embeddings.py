"""Figure 6: the embedding matrices of the low-rank decoders, and what their penalties change."""

import numpy as np

from compgen_jax.metrics import embeddings
from compgen_jax.models import lowrank
from figures import plotting
from figures.forced_rendering.lowrank import (
    COLORS,
    SHOWN,
    TITLES,
    WIDTH,
    by_ablation,
    mask,
    matrices,
    mse,
    of_first_seed,
)

COLUMNS = 8  # of tokens
TICKS = (1, 2, 4, 8, 16, 32)


def embedding_numbers(study) -> dict:
    """`analysis.embeddings.embedding_numbers` of a network's tokens of x and of y."""
    factors = lowrank.embeddings(study.run.params, study.config.model.vectors)
    weights_TxBxK = np.concatenate([factor.values for factor in factors], axis=1)
    return embeddings.embedding_numbers(*matrices(study), weights_TxBxK)


def draw_embeddings(studies):
    """Figure 6: the embeddings of every token of x and of y of the first seeds, without (a) and
    with both penalties (b), in the order of the tokens; a network's colours end at the 95th
    percentile of its magnitudes. Framed: the rows that are held out of a token of x, and the
    columns of one of y. Of all tokens of the four ablations (means, 95% intervals, seeds as dots):
    (c) the share of an embedding's energy in its largest singular value; (d) exp(entropy) of its
    squared singular values, 1 for rank one, beside that of lambda^2, which the penalty sees; (e)
    the share of energy that is constant along the other factor's axis, as in a stripe, dotted for
    noise; (f) what is not constant, and the error over the hole of every seed, dotted for a blank
    image. Low rank alone is not enough: rank one, an embedding may still end where the hole
    begins."""
    ablations = by_ablation(studies)
    grid = ablations["both"].config.task.grid
    tall = 2 * -(-grid // COLUMNS) * (WIDTH / 2 - 0.3) / COLUMNS + 0.55
    figure = plotting.new_figure(WIDTH, tall + 2.1)
    top, bottom = figure.subfigures(2, 1, height_ratios=[tall, 2.1])
    for block, name, letter in zip(top.subfigures(1, 2), SHOWN, "ab", strict=True):
        _draw_block(block.subplots(2, 1), ablations[name], TITLES[name], letter)
    _draw_numbers(bottom.subplots(1, 4), ablations)
    return figure


def _draw_block(axes, study, title, letter):
    (matrices, limit), held_out = of_first_seed(study), mask(study)
    grid = len(held_out)
    axes[0].set_title(f"{title}, seed {study.results.seeds[0]}: from $-${limit:.2g} to {limit:.2g}")
    plotting.panel_label(axes[0], letter)
    bands = held_out.T[:, :, None], held_out[:, None, :]
    firsts = np.arange(0, grid, COLUMNS)
    labels = [f"{k}\N{EN DASH}{min(k + COLUMNS, grid) - 1}" for k in firsts]
    for axis, name, images, band in zip(axes, "xy", matrices, bands, strict=True):
        plotting.show_signed(axis, plotting.mosaic(images, COLUMNS), limit)
        framed = plotting.mosaic(np.broadcast_to(band, images.shape), COLUMNS, gap=False)
        plotting.outline(axis, framed, color="black", linewidth=0.5)
        centres = (len(firsts) - np.arange(len(firsts)) - 0.5) * (grid + 1) - 1
        axis.set_yticks(centres, labels, fontsize=6)
        axis.tick_params(length=0)
        axis.set_ylabel(f"tokens of {name}")


def _draw_numbers(axes, ablations):
    shares, ranks, constancy, errors = axes
    for position, (name, study) in enumerate(ablations.items()):
        numbers, style = embedding_numbers(study), {"fmt": "o", "color": COLORS[name]}
        hollow = style | {"fmt": "s", "markerfacecolor": "white"}
        plotting.show_number(shares, position, numbers["top_share"], **style)
        plotting.show_number(ranks, position - 0.2, numbers["lambda_entropy"], **hollow)
        plotting.show_number(ranks, position + 0.15, numbers["spectrum_entropy"], **style)
        plotting.show_number(constancy, position, numbers["constant_share"], **style)
        _, held_out, _, blank = mse(study)
        errors.plot(1 - numbers["constant_share"], held_out, "o", color=COLORS[name], markersize=4)
    constancy.axhline(1 / study.config.task.grid, **plotting.DOTTED)
    errors.axhline(blank, **plotting.DOTTED)
    ranks.plot([], [], "s", color="0.3", markerfacecolor="w", markersize=4, label="$\\lambda^2$")
    ranks.plot([], [], "o", color="0.3", markersize=4, label="singular values$^2$")
    ranks.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, handletextpad=0.1, columnspacing=1
    )
    shares.set(ylabel="energy in the largest\nsingular value", ylim=(None, 1.01))
    ranks.set(ylabel="exp(entropy)", yscale="log", ylim=(0.85, None))
    ranks.set_yticks(TICKS, TICKS)
    ranks.minorticks_off()
    constancy.set(ylabel="energy constant along\nthe other axis", ylim=(0, 1.03))
    errors.set(xscale="log", yscale="log", ylabel="MSE OOD")
    errors.set_xlim(min(0.05, errors.get_xlim()[0]), 1.1)
    errors.set_xlabel("energy that varies along\nthe other axis")
    for axis in axes[:3]:
        axis.set_xticks(range(len(ablations)), list(ablations), fontsize=6)
        axis.set_xlim(-0.5, len(ablations) - 0.4)
    for axis, letter in zip(axes, "cdef", strict=True):
        plotting.panel_label(axis, letter)
