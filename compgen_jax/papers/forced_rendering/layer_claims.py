"""C6, C7, C12 and C13: what the layers say (Figures 2, 4d to 4f and 11 to 15).

A run's `late.layers(metric)` is (S, C, L), by seed and late checkpoint: layers in order, the code
first, then hidden layers, and what is drawn last.
"""

import numpy as np

from compgen_jax.claims import (
    BASE,
    TINY,
    above,
    below,
    claim,
    exact_id,
    learnt,
    median_over_checkpoints,
    note,
    unknown,
)
from compgen_jax.papers.forced_rendering.image_quantities import (
    at_common_seeds,
    rendered,
    worst_exact_id,
)
from compgen_jax.runs.judge_run import RIGHT

LARGE_EFFECT = 0.8  # Cohen's convention
COMPOSING = {"bump": "random_cells", "ramp": "random_cells_ramp"}
DEPTHS = {"cnn": (None, 2, 3, 5, 6), "mlp": (3, 4, 5, 6, 7)}  # None: the base network's


def _case(code: str, rest: str, **fields) -> dict:
    """The case 'bump, depth 2', with runs by argument and fields of `claims.Claim`."""
    return {"case": f"{code}{rest}", "title": f"the {code} code{rest}", **fields}


# Figure 2's own networks are all of the bump code, and the ramp's of 50 epochs; the ramp's others
# train until they are right.
CNNS = (
    *(
        _case(
            code,
            f", depth {depth}" if depth else "",
            net=f"{code}_cnn_depth{depth}" if depth else f"{code}_cnn",
            figure_setting=BASE if code == "bump" else "",
        )
        for code in COMPOSING
        for depth in DEPTHS["cnn"]
    ),
    _case("ramp", ", 50 epochs", net="ramp_cnn_50_epochs", figure_setting=BASE, as_trained=True),
)
BESIDE_COMPOSER = {
    "cases": [
        one | {"composer": COMPOSING[one["case"]]} for one in CNNS if one["case"] in COMPOSING
    ],
    "runs": {"net": "{net}", "composer": "{composer}"},
}
# MLPs that train until they are right, and the own ones of Figures 13 and 14, of 20 epochs; and the
# CNNs of their code, of which that of the nearest depth is compared
MLPS = tuple(
    _case(
        code,
        f", depth {depth}" + ", 20 epochs" * bool(epochs),
        mlp=f"{code}_mlp{epochs}" + f"_depth{depth}" * (depth != 3),
        conv=conv,
        convs=convs,
        figure_setting=BASE if epochs else "",
        as_trained=bool(epochs),
    )
    for code, epochs, conv, convs in (
        ("bump", "", "bump_cnn", "bump_cnn_depth*"),
        ("ramp", "", "ramp_cnn", "ramp_cnn_depth*"),
        ("bump", "_20_epochs", "bump_cnn", "bump_cnn_depth*"),
        ("ramp", "_20_epochs", "ramp_cnn_50_epochs", "ramp_cnn_50_*"),
    )
    for depth in DEPTHS["mlp"]
)
MLP = {
    "figure": "Fig 11-14",
    "cases": MLPS,
    "runs": {"mlp": "{mlp}", "conv": "{conv}", "convs": "{convs}"},
}
PROBE, SCORE = "probe.ood_r2", "factorization.ratio_of_means"  # the authors' score
METRICS = {"probe R2 OOD": PROBE, "the paper's score": SCORE}


def slope(values, places=None):
    """Least-squares slope of values (..., K) on places (K,), by default 0, 1, ...; exactly 0 where
    they are equal."""
    places = np.arange(values.shape[-1]) if places is None else np.asarray(places)
    from_mean = places - np.mean(places)
    return (values - values[..., :1]) @ (from_mean / np.square(from_mean).sum())


def last(values):
    """(S, C) of the last hidden layer."""
    return values[..., -2]


def from_code(run, metric: str):
    """(S, C) of the last hidden layer minus the code."""
    values = run.late.layers(metric)
    return last(values) - values[..., 0]


def depth_of(run) -> int:
    return run.config.model.depth


def of_nearest_depth(mlp, conv, convs):
    """The CNN whose depth is nearest to an MLP's; of two as near the deeper one."""
    apart = lambda run: (abs(depth_of(run) - depth_of(mlp)), -depth_of(run))
    return min([conv, *convs], key=apart)


def beyond(composer, difference):
    """The difference, if `composer` renders its held-out cells; else nothing can be concluded."""
    if median_over_checkpoints(rendered(composer.late.cells)).mean() > RIGHT:
        return difference
    return unknown("the network with random cells held out does not render them")


# --- C6: factorization and decodability --------------------------------------------------------


@claim("C6", figure="Fig 2a-d", cases=CNNS, runs={"net": "{net}"})
def falls(net):
    """With {title}, factorization and linear decodability fall over the layers."""
    yield learnt(exact_id(net.late.cells))
    for name, metric in METRICS.items():
        yield below(0, from_code(net, metric), f"{name}, last hidden layer minus code")
        yield note(f"slope of {name}, per layer", slope(net.late.layers(metric)[..., :-1]))


@claim("C6.composer", figure="Fig 2c, d", **BESIDE_COMPOSER)
def falls_below_a_composer(net, composer):
    """With {title}, linear decodability over the held-out cells falls further than in the
    same network that renders random cells."""
    yield learnt(exact_id(net.late.cells))
    falls = [from_code(net, PROBE), from_code(composer.over(net), PROBE)]
    name = "probe R2 OOD, last hidden layer minus code"
    yield below(
        0,
        beyond(composer, falls[0] - falls[1]),
        f"{name}, less that of a network that composes, over the same cells",
    )
    yield note(f"{name}, of the network that composes", falls[1])


@claim("C6.score", figure="Fig 2a, b", **BESIDE_COMPOSER)
def score_falls_as_in_a_composer(net, composer):
    """With {title}, the paper's factorization score falls no more than in the same network
    that renders random cells."""
    yield learnt(exact_id(net.late.cells))
    fall = from_code(net, SCORE)  # over all cells, whatever is held out
    difference = fall - from_code(composer, SCORE)
    yield below(0, fall, "the paper's score, last hidden layer minus code")
    name = "difference from a network that composes"
    yield above(0, beyond(composer, difference - fall / 2), f"{name}, plus half of the fall")
    yield below(0, beyond(composer, difference + fall / 2), f"{name}, less half of the fall")
    yield note(name, difference)


@claim("C6.mlp", **MLP)
def falls_more_and_over_more_layers_in_mlps(mlp, conv, convs):
    """With {title}, factorization falls further in an MLP than in a CNN, and over more
    layers."""
    runs = mlp, of_nearest_depth(mlp, conv, convs)
    yield learnt(worst_exact_id(*runs))
    falls = [from_code(run, SCORE) for run in runs]
    yield below(
        0, falls[0] - falls[1], "the paper's score, last hidden layer minus code, MLP less CNN"
    )
    steps = [np.maximum(-np.diff(run.late.layers(SCORE)[..., :-1]), 0) for run in runs]
    largest = [each.max(axis=-1) / np.maximum(each.sum(axis=-1), TINY) for each in steps]
    yield below(
        0, largest[0] - largest[1], "share of its fall from one layer to the next, MLP less CNN"
    )
    yield note("depth of the CNN", depth_of(runs[1]))


RAMP = {"case": "ramp"}
RAMPS = {"net": "ramp_cnn", "others": "ramp_cnn_depth*"}


def _by_depth(net, others):
    """The networks from the shallowest to the deepest, and the gate of these two."""
    runs = sorted([net, *others], key=depth_of)
    return runs, learnt(worst_exact_id(runs[0], runs[-1]))


def _least(run, metric: str):
    """(S, C) the least value over the layers to the last hidden one, minus that of the code, which
    networks of all depths share."""
    values = run.late.layers(metric)[..., :-1]
    return values.min(axis=-1) - values[..., 0]


@claim("C6.shallow", figure="Fig 2b, d", cases=[RAMP], runs=RAMPS)
def falls_more_in_shallow_networks(net, others):
    """Factorization falls more sharply in shallow ramp networks than in deep ones."""
    runs, gate = _by_depth(net, others)
    yield gate
    for name, metric in METRICS.items():
        yield below(
            0,
            _least(runs[0], metric) - _least(runs[-1], metric),
            f"least {name} over the layers minus the code's, shallowest minus deepest network",
        )


@claim("C6.depths", figure="Fig 2b, d", cases=[RAMP], runs=RAMPS)
def falls_less_with_every_depth(net, others):
    """Over all depths, factorization falls the less the deeper the ramp network is."""
    runs, gate = _by_depth(net, others)
    yield gate
    for name, metric in METRICS.items():
        least = np.stack([_least(run, metric) for run in runs], axis=-1)
        yield above(
            0,
            slope(least, [depth_of(run) for run in runs]),
            f"slope of the least {name} minus the code's, on the network's depth",
        )


# --- C7: volume --------------------------------------------------------------------------------

EFFECT = "difference of log volumes, OOD minus ID, in standard deviations, border cells left out"


def _effect(run):
    """(S, C) of the last hidden layer: Cohen's d of OOD and ID cells' log volumes without those at
    the border."""
    return last(run.late.layers("volume.inner_effect"))


def _distortion(run):
    """(S, C) the effect in the direction of its mean over seeds. Its size alone is above 0 without
    any effect."""
    effect = _effect(run)
    return effect * np.sign(median_over_checkpoints(effect).mean())


@claim("C7", figure="Fig 2e, f, 11, 12", cases=CNNS, runs={"net": "{net}"})
def distorts_volume(net):
    """With {title}, the volume element differs between held-out and seen cells, the more the deeper
    the layer."""
    yield learnt(exact_id(net.late.cells))
    yield above(0, _distortion(net), f"{EFFECT}, in either direction")
    distortion = np.abs(net.late.layers("volume.inner_log10_ratio"))[..., :-1]
    yield above(0, slope(distortion), "slope of the size of the difference, log10, per layer")
    yield note(EFFECT, _effect(net))


@claim("C7.size", figure="Fig 2e, f, 11, 12", cases=CNNS, runs={"net": "{net}"})
def distorts_volume_much(net):
    """With {title}, the volume element differs by a large effect."""
    yield learnt(exact_id(net.late.cells))
    yield above(LARGE_EFFECT, _distortion(net), f"{EFFECT}, in either direction", against=0)


@claim("C7.composer", figure="Fig 2e, f", **BESIDE_COMPOSER)
def distorts_volume_more_than_a_composer(net, composer):
    """With {title}, the volume element over the held-out cells is distorted more than in
    the same network that renders random cells."""
    yield learnt(exact_id(net.late.cells))
    of_composer = _distortion(composer.over(net))
    yield above(
        0,
        beyond(composer, _distortion(net) - of_composer),
        f"{EFFECT}, less that of a network that composes, over the same cells",
    )
    yield note(f"{EFFECT}, of the network that composes", of_composer)


def _opposite(mlp, conv, convs, bound: float = 0.0):
    """In the figures a CNN's volume is smaller over OOD cells than over ID cells, an MLP's larger:
    the MLP's effect lies above a bound, the CNN's below its negative."""
    cnn = of_nearest_depth(mlp, conv, convs)
    yield learnt(worst_exact_id(cnn, mlp))
    yield above(bound, _effect(mlp), f"the MLP's {EFFECT}", against=0)
    yield below(0 - bound, _effect(cnn), f"the CNN's {EFFECT}", against=0)
    yield note("depth of the CNN", depth_of(cnn))
    yield note("exact accuracy ID, MLP", exact_id(mlp.late.cells))


@claim("C7.mlp", **MLP)
def mlps_are_opposite(mlp, conv, convs):
    """With {title}, MLPs change the volume of held-out cells the opposite way to CNNs."""
    return _opposite(mlp, conv, convs)


@claim("C7.mlp_size", **MLP)
def mlps_are_opposite_by_a_large_effect(mlp, conv, convs):
    """With {title}, MLPs and CNNs do so by a large effect."""
    return _opposite(mlp, conv, convs, LARGE_EFFECT)


# --- C12 and C13: with stripes -----------------------------------------------------------------

# Figure 4's networks are not described, so that its own are nowhere.
FEW = tuple({"case": "bump", "few": few} for few in (30, 50))  # quick and paper
DISTANCE, SPREAD = "size of log10 volume, OOD minus ID", "sd of log10 volume over OOD cells"


def _ratio(run):
    """(S, C) log10 of the OOD volume relative to the ID volume in the last hidden layer."""
    return last(run.late.layers("volume.log10_ratio"))


def _distance(run):
    """(S, C) how far the OOD volume is from the ID volume, log10."""
    return np.abs(_ratio(run))


def _spread(run):
    return last(run.late.layers("volume.ood_spread"))


SMOOTH = {
    "figure": "Fig 4d",
    "cases": FEW,
    "runs": {"stripes": "stripes_{few}_bumps", "alone": "corner_bumps"},
}


@claim("C12", **SMOOTH)
def volume_stays_smooth(stripes, alone):
    """With stripes and {few} bumps, the volume of OOD cells is nearer to ID cells' than with bumps
    alone."""
    yield learnt(worst_exact_id(stripes, alone))
    nearer = np.subtract(*at_common_seeds(_distance, stripes, alone))
    yield below(0, nearer, f"{DISTANCE}, stripes minus bumps alone")
    for name, run in (("stripes", stripes), ("bumps alone", alone)):
        yield note(f"log10 volume, OOD minus ID, {name}", _ratio(run))
        yield note(f"{SPREAD}, {name}", _spread(run))


def _smooth_and_rendered(stripes, alone, where: str = ""):
    """The volume is nearer and varies less, and most held-out cells are rendered: a network that
    composes nothing can be smooth as well."""
    for name, number in ((DISTANCE, _distance), (SPREAD, _spread)):
        less = np.subtract(*at_common_seeds(number, stripes, alone))
        yield below(0, less, f"{name}{where}, stripes minus bumps alone")
    cells = stripes.late.cells
    share, name = rendered(cells), f"share rendered OOD, stripes{where}"
    yield above(0.5, share, name, cells=cells.held_out.sum())


@claim("C12.spread", **SMOOTH)
def volume_varies_less_where_bumps_are_rendered(stripes, alone):
    """With stripes and {few} bumps, the volume is nearer to ID cells' and varies less, and most
    held-out cells are rendered."""
    yield learnt(worst_exact_id(stripes, alone))
    yield from _smooth_and_rendered(stripes, alone)


@claim(
    "C12.donut",
    figure="Fig 4d",
    cases=[{"case": "bump"}],
    runs={"stripes": "donut_stripes", "alone": "bump_cnn"},
)
def volume_varies_less_around_the_donut(stripes, alone):
    """With stripes and a few bumps, the same holds around the donut's hole."""
    yield learnt(worst_exact_id(stripes, alone))
    yield from _smooth_and_rendered(stripes, alone, ", donut")


# Two shares of a unit's variance over all points. One-factor: the larger of what x and what y
# explain alone (1 for a stripe, a half for a plus). Product: what one product of x and y explains
# beyond them (.6 to .8 for a bump, 0 for stripe and plus, .2 or less for noise). Both are means
# over active units in proportion to their variance.
SHARES = {"one_factor": below, "product": above}  # and on which side of 0 each must change


def _change(layers, share: str, prefix: str = ""):
    """(S, C) of a share from the first to the last hidden layer."""
    values = layers(f"{prefix}tuning.weighted_{share}")
    return last(values) - values[..., 1]


@claim(
    "C13",
    figure="Fig 4e, f, 15",
    cases=FEW,
    runs={"net": "stripes_{few}_bumps", "by_bumps": "stripes_*_bumps"},
)
def units_turn_from_stripes_to_bumps(net, by_bumps):
    """Trained on stripes and a few bumps, early units are tuned to stripes, late ones to bumps, and
    more so with more bumps."""
    if len(by_bumps) < 2:
        return
    yield learnt(exact_id(net.late.cells))
    for share, bound in SHARES.items():
        name = f"{share.replace('_', '-')} share, last minus first hidden layer"
        yield bound(0, _change(net.late.layers, share), name)
    counts = np.array([run.config.task.support.samples for run in by_bumps])
    product = lambda run: last(run.late.layers("tuning.weighted_product"))
    products = at_common_seeds(product, *by_bumps)
    yield above(
        0,
        slope(np.stack(products, axis=-1), np.log10(1 + counts)),
        "slope of the last hidden layer's product share on log10(1 + bumps)",
    )


TURN = {"figure": "Fig 4e, f, 15", "cases": FEW}
LESS = "share, last minus first hidden layer, less that"


@claim("C13.untrained", runs={"net": "stripes_{few}_bumps"}, **TURN)
def units_turn_more_than_untrained(net):
    """Units turn from stripes to bumps more than before training, as convolutions localise, too."""
    yield learnt(exact_id(net.late.cells))
    for share, bound in SHARES.items():
        more = _change(net.late.layers, share) - _change(net.layers, share, "untrained.")[:, None]
        yield bound(0, more, f"{share.replace('_', '-')} {LESS} before training")


@claim("C13.bumps_alone", runs={"net": "stripes_{few}_bumps", "alone": "corner_bumps"}, **TURN)
def units_turn_more_than_with_bumps_alone(net, alone):
    """Units turn from stripes to bumps more than with bumps alone."""
    yield learnt(worst_exact_id(net, alone))
    for share, bound in SHARES.items():
        of_run = lambda run, share=share: _change(run.late.layers, share)
        more = np.subtract(*at_common_seeds(of_run, net, alone))
        yield bound(0, more, f"{share.replace('_', '-')} {LESS} with bumps alone")


CLAIMS = (
    falls,
    falls_below_a_composer,
    score_falls_as_in_a_composer,
    falls_more_and_over_more_layers_in_mlps,
    falls_more_in_shallow_networks,
    falls_less_with_every_depth,
    distorts_volume,
    distorts_volume_much,
    distorts_volume_more_than_a_composer,
    mlps_are_opposite,
    mlps_are_opposite_by_a_large_effect,
    volume_stays_smooth,
    volume_varies_less_where_bumps_are_rendered,
    volume_varies_less_around_the_donut,
    units_turn_from_stripes_to_bumps,
    units_turn_more_than_untrained,
    units_turn_more_than_with_bumps_alone,
)
