"""C6, C7, C12 and C13: what the layers say (Figures 2, 4d to 4f and 11 to 15). `late.layers` of a
run is (S, C, L): the code, hidden layers, and what is drawn."""

from functools import partial

import numpy as np

from compgen_jax.claims import (
    TINY,
    above,
    below,
    claim,
    median_over_checkpoints,
    note,
    unknown,
)
from compgen_jax.papers.forced_rendering.image_quantities import (
    at_common_seeds,
    rendered,
    rendered_ood,
    slope,
    trained,
)
from compgen_jax.runs.judge_run import RIGHT

LARGE_EFFECT = 0.8  # Cohen's convention
COMPOSING = {"bump": "random_cells", "ramp": "random_cells_ramp"}
PROBE, SCORE = "probe.ood_r2", "factorization.ratio_of_means"  # the authors' score
METRICS = {"probe R2 OOD": PROBE, "the paper's score": SCORE}


def experiment(code: str, words: str = "", **fields) -> dict:
    """The case 'bump, depth 2', with runs by argument and fields of `claims.Claim`."""
    return {"case": f"{code}{words}", "title": f"the {code} code{words}", **fields}


# Figure 2's own networks are all of the bump code, and the ramp's of 50 epochs; the ramp's others
# train until they are right.
LONGER = {"network": "longer"}
AS_TRAINED = {"network": "figure", "as_trained": True}
WHOSE = {"bump": {"network": "figure"}, "ramp": LONGER}
BESIDE_COMPOSER = tuple(
    experiment(code, net=f"{code}_cnn", composer=COMPOSING[code], **WHOSE[code])
    for code in COMPOSING
)
CNNS = (
    *BESIDE_COMPOSER,
    *(
        experiment(code, f", depth {depth}", net=f"{code}_cnn_depth{depth}", **WHOSE[code])
        for code in COMPOSING
        for depth in (2, 3, 5, 6)
    ),
    experiment("ramp", ", 50 epochs", net="ramp_cnn_50_epochs", **AS_TRAINED),
)
# MLPs that train until they are right, and the own ones of Figures 13 and 14, of 20 epochs; and the
# CNNs of their code, of which that of the nearest depth is compared
MLPS = tuple(
    experiment(
        code,
        f", depth {depth}{words}",
        mlp=mlp if depth == 3 else f"{mlp}_depth{depth}",
        conv=conv,
        convs=convs,
        **fields,
    )
    for code, words, mlp, conv, convs, fields in (
        ("bump", "", "bump_mlp", "bump_cnn", "bump_cnn_depth*", LONGER),
        ("ramp", "", "ramp_mlp", "ramp_cnn", "ramp_cnn_depth*", LONGER),
        ("bump", ", 20 epochs", "bump_mlp_20_epochs", "bump_cnn", "bump_cnn_depth*", AS_TRAINED),
        (
            "ramp",
            ", 20 epochs",
            "ramp_mlp_20_epochs",
            "ramp_cnn_50_epochs",
            "ramp_cnn_50_*",
            AS_TRAINED,
        ),
    )
    for depth in (3, 4, 5, 6, 7)
)
OF_MLPS = {
    "figure": "Fig 11-14",
    "after": True,
    "cases": MLPS,
    "runs": {"mlp": "{mlp}", "conv": "{conv}", "convs": "{convs}"},
}


def last_hidden(metric: str, run):
    """(S, C) of the last hidden layer."""
    return run.late.layers(metric)[..., -2]


def from_code(run, metric: str):
    """(S, C) of the last hidden layer minus the code."""
    return last_hidden(metric, run) - run.late.layers(metric)[..., 0]


def depth_of(run) -> int:
    return run.config.model.depth


def of_nearest_depth(mlp, conv, convs):
    """The CNN whose depth is nearest to an MLP's; of two as near the deeper one."""
    deeper_first = sorted([conv, *convs], key=depth_of, reverse=True)
    return min(deeper_first, key=lambda run: abs(depth_of(run) - depth_of(mlp)))


def beyond(composer, difference):
    """The difference, if `composer` renders its held-out cells; else nothing can be concluded."""
    if median_over_checkpoints(rendered(composer.late.cells)).mean() > RIGHT:
        return difference
    return unknown("the network with random cells held out does not render them")


# --- C6: factorization and decodability --------------------------------------------------------


@claim("C6", figure="Fig 2a-d", cases=CNNS, runs={"net": "{net}"}, after=True)
def falls(net):
    """With {title}, factorization and linear decodability fall over the layers."""
    yield trained(net)
    for name, metric in METRICS.items():
        yield below(0, from_code(net, metric), f"{name}, last hidden layer minus code")
        yield note(f"slope of {name}, per layer", slope(net.late.layers(metric)[..., :-1]))


NET_AND_COMPOSER = {"net": "{net}", "composer": "{composer}"}


@claim("C6.composer", figure="Fig 2c, d", cases=BESIDE_COMPOSER, runs=NET_AND_COMPOSER, after=True)
def falls_below_a_composer(net, composer):
    """With {title}, linear decodability over the held-out cells falls further than in the
    same network that renders random cells."""
    yield trained(net)
    of_composer = from_code(composer.over(net), PROBE)
    more = beyond(composer, from_code(net, PROBE) - of_composer)
    name = "probe R2 OOD, last hidden layer minus code"
    yield below(0, more, f"{name}, less that of a network that composes, over the same cells")
    yield note(f"{name}, of the network that composes", of_composer)


@claim("C6.score", figure="Fig 2a, b", cases=BESIDE_COMPOSER, runs=NET_AND_COMPOSER, after=True)
def score_falls_as_in_a_composer(net, composer):
    """With {title}, the paper's factorization score falls no more than in the same network
    that renders random cells."""
    yield trained(net)
    fall = from_code(net, SCORE)  # over all cells, whatever is held out
    more, name = fall - from_code(composer, SCORE), "difference from a network that composes"
    yield below(0, fall, "the paper's score, last hidden layer minus code")
    yield above(0, beyond(composer, more - fall / 2), f"{name}, plus half of the fall")
    yield below(0, beyond(composer, more + fall / 2), f"{name}, less half of the fall")
    yield note(name, more)


@claim("C6.mlp", **OF_MLPS)
def falls_more_and_over_more_layers_in_mlps(mlp, conv, convs):
    """With {title}, factorization falls further in an MLP than in a CNN, and over more
    layers."""
    cnn = of_nearest_depth(mlp, conv, convs)
    yield trained(mlp, cnn)
    name = "the paper's score, last hidden layer minus code, MLP less CNN"
    yield below(0, from_code(mlp, SCORE) - from_code(cnn, SCORE), name)
    steps = [np.maximum(-np.diff(run.late.layers(SCORE)[..., :-1]), 0) for run in (mlp, cnn)]
    largest = [falls.max(axis=-1) / np.maximum(falls.sum(axis=-1), TINY) for falls in steps]
    name = "share of its fall from one layer to the next, MLP less CNN"
    yield below(0, np.subtract(*largest), name)
    yield note("depth of the CNN", depth_of(cnn))


# Factorization is the least value over the layers to the last hidden one, minus that of the code,
# which networks of all depths share.
@claim(
    "C6.shallow",
    after=True,
    figure="Fig 2b, d",
    cases=[{"case": "ramp"}],
    runs={"net": "ramp_cnn", "others": "ramp_cnn_depth*"},
)
def falls_more_in_shallow_networks(net, others, every_depth=False):
    """Factorization falls more sharply in shallow ramp networks than in deep ones."""
    runs = sorted([net, *others], key=depth_of)
    yield trained(runs[0], runs[-1])
    for name, metric in METRICS.items():
        layers = [run.late.layers(metric)[..., :-1] for run in runs]
        least = [values.min(axis=-1) - values[..., 0] for values in layers]
        if every_depth:
            on_depth = slope(np.stack(least, axis=-1), [depth_of(run) for run in runs])
            yield above(
                0, on_depth, f"slope of the least {name} minus the code's, on the network's depth"
            )
        else:
            yield below(
                0,
                least[0] - least[-1],
                f"least {name} over the layers minus the code's, shallowest minus deepest network",
            )


# --- C7: volume --------------------------------------------------------------------------------

EFFECT = "difference of log volumes, OOD minus ID, in standard deviations, border cells left out"


# Cohen's d of OOD and ID cells' log volumes without those at the border
volume_effect = partial(last_hidden, "volume.inner_effect")


def distortion(run):
    """(S, C) the effect in the direction of its mean over seeds. Its size alone is above 0 without
    any effect."""
    effect = volume_effect(run)
    return effect * np.sign(median_over_checkpoints(effect).mean())


@claim("C7", figure="Fig 2e, f, 11, 12", cases=CNNS, runs={"net": "{net}"}, after=True)
def distorts_volume(net, effect=0.0):
    """With {title}, the volume element differs between held-out and seen cells, the more the deeper
    the layer."""
    yield trained(net)
    yield above(effect, distortion(net), f"{EFFECT}, in either direction", against=0)
    if not effect:
        size = np.abs(net.late.layers("volume.inner_log10_ratio"))[..., :-1]
        yield above(0, slope(size), "slope of the size of the difference, log10, per layer")


@claim("C7.composer", figure="Fig 2e, f", cases=BESIDE_COMPOSER, runs=NET_AND_COMPOSER, after=True)
def distorts_volume_more_than_a_composer(net, composer):
    """With {title}, the volume element over the held-out cells is distorted more than in
    the same network that renders random cells."""
    yield trained(net)
    of_composer = distortion(composer.over(net))
    more = beyond(composer, distortion(net) - of_composer)
    yield above(0, more, f"{EFFECT}, less that of a network that composes, over the same cells")
    yield note(f"{EFFECT}, of the network that composes", of_composer)


# In the figures a CNN's volume is smaller over OOD cells than over ID cells, an MLP's larger.
@claim("C7.mlp", **OF_MLPS)
def mlps_are_opposite(mlp, conv, convs, effect=0.0):
    """With {title}, MLPs change the volume of held-out cells the opposite way to CNNs."""
    cnn = of_nearest_depth(mlp, conv, convs)
    yield trained(cnn, mlp)
    yield above(effect, volume_effect(mlp), f"the MLP's {EFFECT}", against=0)
    yield below(0 - effect, volume_effect(cnn), f"the CNN's {EFFECT}", against=0)
    yield note("depth of the CNN", depth_of(cnn))


# --- C12 and C13: with stripes -----------------------------------------------------------------

# Figure 4's networks are not described. Quick networks have 30 bumps, the paper's 50.
FEW = {"case": "bump", "few": 30}, {"case": "bump", "few": 50}


# A network that composes nothing can be smooth as well.
@claim(
    "C12",
    after=True,
    figure="Fig 4d",
    cases=FEW,
    runs={"stripes": "stripes_{few}_bumps", "alone": "corner_bumps"},
)
def volume_stays_smooth(stripes, alone, composing=False, where=""):
    """With stripes and {few} bumps, the volume of OOD cells is nearer to ID cells' than with bumps
    alone."""
    yield trained(stripes, alone)
    ratios = at_common_seeds(partial(last_hidden, "volume.log10_ratio"), stripes, alone)
    name = f"size of log10 volume, OOD minus ID{where}, stripes minus bumps alone"
    yield below(0, np.subtract(*np.abs(ratios)), name)
    if composing:
        name = f"sd of log10 volume over OOD cells{where}, stripes minus bumps alone"
        spreads = at_common_seeds(partial(last_hidden, "volume.ood_spread"), stripes, alone)
        yield below(0, np.subtract(*spreads), name)
        yield rendered_ood(stripes, f"share rendered OOD, stripes{where}", above=0.5)


# Two shares of a unit's variance over all points. One-factor: the larger of what x and what y
# explain alone (1 for a stripe, a half for a plus). Product: what one product of x and y explains
# beyond them (.6 to .8 for a bump, 0 for stripe and plus, .2 or less for noise). Both are means
# over active units in proportion to their variance.
SHARES = {"one-factor": below, "product": above}  # and on which side of 0 each must change


def change(metric: str, run):
    """From the first to the last hidden layer."""
    values = run.layers(metric)
    return values[..., -2] - values[..., 1]


@claim(
    "C13",
    after=True,
    figure="Fig 4e, f, 15",
    cases=FEW,
    runs={"net": "stripes_{few}_bumps", "by_bumps": "stripes_*_bumps"},
)
def units_turn_from_stripes_to_bumps(net, by_bumps=None, alone=None, untrained=False):
    """Trained on stripes and a few bumps, early units are tuned to stripes, late ones to bumps, and
    more so with more bumps."""
    if by_bumps is not None and len(by_bumps) < 2:
        return
    yield trained(net, alone or net)
    for share, bound in SHARES.items():
        metric = f"tuning.weighted_{share.replace('-', '_')}"
        turn, words = change(metric, net.late), ""
        if untrained:
            turn = turn - change(f"untrained.{metric}", net)[:, None]
            words = ", less that before training"
        if alone:
            turn = np.subtract(*at_common_seeds(partial(change, metric), net.late, alone.late))
            words = ", less that with bumps alone"
        yield bound(0, turn, f"{share} share, last minus first hidden layer{words}")
    if by_bumps:
        product = partial(last_hidden, "tuning.weighted_product")
        products = np.stack(at_common_seeds(product, *by_bumps), axis=-1)
        counts = np.array([run.config.task.support.samples for run in by_bumps])
        name = "slope of the last hidden layer's product share on log10(1 + bumps)"
        yield above(0, slope(products, np.log10(1 + counts)), name)


CLAIMS = (
    falls,
    falls_below_a_composer,
    score_falls_as_in_a_composer,
    falls_more_and_over_more_layers_in_mlps,
    falls_more_in_shallow_networks,
    falls_more_in_shallow_networks.variant(
        "C6.depths",
        "Over all depths, factorization falls the less the deeper the ramp network is",
        every_depth=True,
    ),
    distorts_volume,
    distorts_volume.variant(
        "C7.size",
        "With {title}, the volume element differs by a large effect",
        effect=LARGE_EFFECT,
    ),
    distorts_volume_more_than_a_composer,
    mlps_are_opposite,
    mlps_are_opposite.variant(
        "C7.mlp_size",
        "With {title}, MLPs and CNNs do so by a large effect",
        effect=LARGE_EFFECT,
    ),
    volume_stays_smooth,
    volume_stays_smooth.variant(
        "C12.spread",
        "With stripes and {few} bumps, the volume is nearer to ID cells' and varies less, "
        "and most held-out cells are rendered",
        composing=True,
    ),
    volume_stays_smooth.variant(
        "C12.donut",
        "With stripes and a few bumps, the same holds around the donut's hole",
        runs={"stripes": "donut_stripes", "alone": "bump_cnn"},
        cases=[{"case": "bump"}],
        composing=True,
        where=", donut",
    ),
    units_turn_from_stripes_to_bumps,
    units_turn_from_stripes_to_bumps.variant(
        "C13.untrained",
        "Units turn from stripes to bumps more than before training, as convolutions localise, too",
        runs={"net": "stripes_{few}_bumps"},
        untrained=True,
    ),
    units_turn_from_stripes_to_bumps.variant(
        "C13.bumps_alone",
        "Units turn from stripes to bumps more than with bumps alone",
        runs={"net": "stripes_{few}_bumps", "alone": "corner_bumps"},
    ),
)
