"""What networks render of the combinations that were held out, all in one picture."""

from . import plotting
from .figure import figure

ROWS = {  # by what is asked; the run, and what is special about it
    "A square of x and y is held out": {
        "bump_cnn": "convolutional decoder, bump code",
        "ramp_cnn": "ramp code",
        "onehot_cnn": "one-hot code",
        "positional_cnn": "sines and cosines",
        "bump_mlp": "multilayer perceptron, bump code",
        "bump_cnn_deep": "10 layers of 128 channels",
        "bump_cnn_authors_square": "the authors' network, a tenth of its training",
    },
    "Something else is held out": {
        "bump_cnn_square_8": "a square of 8 × 8",
        "bump_cnn_square_6": "a square of 6 × 6",
        "bump_cnn_square_4": "a square of 4 × 4",
        "bump_cnn_square_2": "a square of 2 × 2",
        "bump_cnn_square_9": "a square of 9 × 9",
        "bump_cnn_authors": "9 × 9, the authors' network",
        "random_cells": "as many positions, at random",
        "three_factors_xy": "x and y at every size of the bump",
        "three_factors": "a box of x, y and size",
    },
    "Training covers the square": {
        "two_objects": "by a second bump",
        "donut_stripes_shuffled": "by stripes with wrong codes",
        "wide_bumps": "by wide bumps",
    },
    "Training shows x alone and y alone": {
        "donut_stripes": "stripes and a few bumps",
        "bump_cnn_stripes": "stripes, added to the bumps",
        "bump_cnn_stripes_shuffled": "the same, with wrong codes",
    },
    "Weights that read the code: own or shared": {
        "pixels_own_bump": "per-pixel network, own",
        "pixels_own_as_many_parameters": "the same, 130,000 parameters",
        "pixels_own_two_objects": "the same, a second bump",
        "pixels_own_stripes_shuffled": "the same, stripes with wrong codes",
        "pixels_own_stripes": "the same, stripes",
        "pixels_own_wide": "the same, wide bumps",
        "pixels_shared_bump": "per-pixel network, shared",
        "pixels_shared_as_many_parameters": "the same, 130,000 parameters",
        "pixels_shared_two_objects": "the same, a second bump",
        "pixels_shared_wide": "the same, wide bumps",
        "pixels_apart_corner": "a corner shares other weights",
        "pixels_apart_middle": "the middle shares other weights",
        "convolutions_own_bump": "full-size convolutions, own",
        "convolutions_shared_bump": "full-size convolutions, shared",
        "convolutions_shared_32": "the same, 32 channels",
        "doubling_own_bump": "the usual decoder, told places, own",
        "doubling_shared_bump": "the same, shared",
        "doubling_undoubled": "without upsampling",
        "doubling_unmixed": "without mixing x and y first",
        "doubling_unmixed_undoubled": "without both",
        "doubling_unmixed_undoubled_64": "without both, 64 channels",
        "upsampled_once_own": "upsampled once, adapted, own",
        "upsampled_once_shared": "upsampled once, adapted, shared",
        "upsampled_once_relu": "the same, ReLU",
        "upsampled_once_coordinates": "the same, coordinates, not sines",
        "upsampled_once_mixed": "the same, x and y mixed first",
        "upsampled_once_narrow": "the same, 32 channels",
        "upsampled_twice_own": "upsampled twice, adapted, own",
        "upsampled_twice_shared": "upsampled twice, adapted, shared",
        "upsampled_twice_relu": "the same, ReLU",
        "upsampled_twice_coordinates": "the same, coordinates, not sines",
        "upsampled_twice_mixed": "the same, x and y mixed first",
        "upsampled_twice_narrow": "the same, 32 channels",
    },
    "Low-rank decoder, a corner or a square is held out": {
        "lowrank_none": "without penalties",
        "lowrank_variance": "with the variance penalty",
        "lowrank_none_square": "the square, without penalties",
        "lowrank_variance_square": "the square, with the variance penalty",
    },
    "Sprites (shapes of several sizes, turns and places)": {
        "sprites_range": "held out: squares on the right",
        "sprites_pixelwise_range": "the same, per-pixel network",
        "sprites_lowrank_range": "the same, low-rank decoder",
        "sprites_middle": "squares in the middle half",
        "sprites_pixelwise_middle": "the same, per-pixel network",
        "sprites_lowrank_middle": "the same, low-rank decoder",
        "sprites_element": "a small corner of all factors",
        "sprites_pixelwise_element": "the same, per-pixel network",
        "sprites_lowrank_element": "the same, low-rank decoder",
        "sprites_random": "as many combinations, at random",
        "sprites_pixelwise_random": "the same, per-pixel network",
    },
}
RENDERED, BY_INTERPOLATION = "ood.rendered", "ood.interpolator_rendered"
LINE = 0.17  # inches


@figure("overview", runs=tuple(name for names in ROWS.values() for name in names), by_default=False)
def draw(runs):
    """A minority of networks render most of what is held out, and more than kernel ridge regression
    on the same encoding (KRR). The title counts those whose interval lies above half (dotted) and
    above KRR. Red: the share of held-out combinations rendered, in the median of the last five
    evaluations. Means over seeds with 95% intervals, also written on the right; grey dots are
    seeds. Diamonds: KRR ("interpolation"); a number without a diamond has none."""
    groups = {group: [name for name in names if name in runs] for group, names in ROWS.items()}
    groups = {group: names for group, names in groups.items() if names}
    height = (sum(map(len, groups.values())) + 1.25 * len(groups)) * LINE
    picture = plotting.new_figure(plotting.WIDTH, height + 0.9)
    width = plotting.WIDTH - 3.55
    axis = plotting.axis_at(picture, 2.45, 0.65, width, height)
    by_row = axis.get_yaxis_transform()
    y, labels, more = 0.0, {}, 0
    for group, names in groups.items():
        axis.text(-2.4 / width, y, group, weight="bold", va="center", transform=by_row)
        for name in names:
            y -= 1
            seeds, mean = (runs[name].summary[part] for part in ("seeds", "mean"))
            per_seed = [seed[RENDERED] for seed in seeds.values()]
            number = plotting.mean_share(per_seed)
            style = {"fmt": "o", "color": plotting.OOD_COLOR, "markersize": 4, "across": True}
            plotting.point_with_interval(axis, y, number, per_seed, **style)
            low, high = (round(100 * end) for end in number["ci95"])
            words = f"{number['value']:.0%}" + (f" [{low}, {high}]" if low < high else "")
            axis.text(1.06, y, words, va="center", fontsize=plotting.SMALL)
            if (by_rule := mean.get(BY_INTERPOLATION, {}).get("value")) is not None:
                axis.plot(by_rule, y, "D", color=plotting.GREY, markersize=3)
            more += number["ci95"][0] > max(0.5, by_rule or 0)
            labels[y] = ROWS[group][name]
            axis.axhline(y, **plotting.FAINT)
        y -= 1.25
    axis.axvline(0.5, **plotting.DOTTED)
    axis.set_yticks(list(labels), labels.values())
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set(xlim=(-0.02, 1.02), ylim=(y + 0.7, 0.6), xlabel="share of held-out combinations")
    title = f"{more} of {len(labels)} surely render most, and more than interpolation"
    plotting.panel(axis, "", title)
    plotting.label_mark(axis, "network", "o", plotting.OOD_COLOR)
    plotting.label_seeds(axis)
    plotting.label_mark(axis, "interpolation", "D", plotting.GREY, markersize=3)
    plotting.legend_in_row(axis, loc="upper left", bbox_to_anchor=(-0.7, -0.01), ncols=1)
    return picture
