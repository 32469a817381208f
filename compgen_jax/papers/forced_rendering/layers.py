"""C6, C7, C12 and C13: what the layers say (Figures 2, 4d to 4f and 11 to 15).

A run's `late.layers(metric)` is (S, C, L), by seed and late checkpoint: layers in order, the code
first, then hidden layers, and what is drawn last.
"""

import numpy as np

from compgen_jax.claims import (
    above,
    below,
    claim,
    exact_id,
    learnt,
    median_over_checkpoints,
    note,
    unknown,
)
from compgen_jax.papers.forced_rendering.images import at_common_seeds, rendered, worst_exact_id
from compgen_jax.runs.judge_run import RIGHT

LARGE_EFFECT = 0.8  # Cohen's convention
COMPOSING = {"bump": "random_cells", "ramp": "random_cells_ramp"}
DEPTHS = {"cnn": (None, 2, 3, 5, 6), "mlp": (3, 4, 5, 6, 7)}  # None: the base network's
CNNS = tuple(
    {
        "case": code if depth is None else f"{code}, depth {depth}",
        "net": f"{code}_cnn" if depth is None else f"{code}_cnn_depth{depth}",
        "composer": composer if depth is None else f"{composer}_depth{depth}",
        "title": f"the {code} code" if depth is None else f"the {code} code, depth {depth}",
    }
    for code, composer in COMPOSING.items()
    for depth in DEPTHS["cnn"]
)
METRICS = {  # the paper's score as the authors' code has it
    "probe R2 OOD": "probe.ood_r2",
    "the paper's score": "factorization.ratio_of_means",
}


def slope(values, places=None):
    """Least-squares slope of values (..., K) on places (K,), by default 0, 1, ...; exactly 0 where
    they are equal."""
    places = np.arange(values.shape[-1]) if places is None else np.asarray(places)
    from_mean = places - np.mean(places)
    return (values - values[..., :1]) @ (from_mean / np.square(from_mean).sum())


def last(values):
    """(S, C) of the last hidden layer."""
    return values[..., -2]


def depth_of(run) -> int:
    return run.config.model.depth


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
        values = net.late.layers(metric)
        yield below(0, last(values) - values[..., 0], f"{name}, last hidden layer minus code")
        yield note(f"slope of {name}, per layer", slope(values[..., :-1]))


@claim(
    "C6.composer", figure="Fig 2a-d", cases=CNNS, runs={"net": "{net}", "composer": "{composer}"}
)
def falls_below_a_composer(net, composer):
    """With {title}, they fall, and lower than in the same network that composes random cells."""
    yield from falls.function(net)
    for name, metric in METRICS.items():
        less = last(net.late.layers(metric)) - last(composer.late.layers(metric))
        yield below(
            0,
            beyond(composer, less),
            f"{name}, last hidden layer, minus that of a network that composes",
        )


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


@claim("C6.shallow", figure="Fig 2b, d", cases=[{"case": "ramp"}], runs=RAMPS)
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


@claim("C6.depths", figure="Fig 2b, d", cases=[{"case": "ramp"}], runs=RAMPS)
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


def log_volume(run):
    """(S, C, L) log10 of the volume over OOD cells relative to ID cells."""
    return run.late.layers("volume.log10_ratio")


def _effect(run, metric: str):
    """(S, C) its size in the last hidden layer, in standard deviations."""
    return np.abs(last(run.late.layers(metric)))


@claim("C7", figure="Fig 2e, f, 11, 12", cases=CNNS, runs={"net": "{net}"})
def distorts_volume(net):
    """With {title}, the volume element of OOD cells differs from ID cells'."""
    yield learnt(exact_id(net.late.cells))
    yield above(
        LARGE_EFFECT,
        _effect(net, "volume.effect"),
        "size of the difference of log volumes, in standard deviations",
    )
    distortion = np.abs(log_volume(net))[..., :-1]
    yield above(0, slope(distortion), "slope of the distortion, per layer")
    yield note("log10 volume, OOD minus ID", last(log_volume(net)))


@claim("C7.size", figure="Fig 2e, f, 11, 12", cases=CNNS, runs={"net": "{net}"})
def distorts_inner_volume(net):
    """With {title}, it differs by a large effect, border cells left out."""
    yield learnt(exact_id(net.late.cells))
    effect = _effect(net, "volume.inner_effect")
    yield above(LARGE_EFFECT, effect, "size of the difference, border cells left out")


@claim(
    "C7.composer",
    figure="Fig 2e, f, 11, 12",
    cases=CNNS,
    runs={"net": "{net}", "composer": "{composer}"},
)
def distorts_volume_more_than_a_composer(net, composer):
    """With {title}, it differs by a large effect without border cells, and by more than in the same
    network that composes random cells."""
    yield from distorts_inner_volume.function(net)
    effect, of_composer = (_effect(run, "volume.inner_effect") for run in (net, composer))
    yield above(
        0, beyond(composer, effect - of_composer), "the same, less that of a network that composes"
    )


def _mlps(trained_for: str) -> tuple[dict, ...]:
    return tuple(
        {
            "case": f"{code}, depth {depth}",
            "code": code,
            "depth": depth,
            "mlp": f"{code}_mlp{trained_for}" + f"_depth{depth}" * (depth != 3),
        }
        for code in COMPOSING
        for depth in DEPTHS["mlp"]
    )


MLP = {
    "figure": "Fig 11-14",
    "runs": {"mlp": "{mlp}", "conv": "{code}_cnn", "convs": "{code}_cnn_depth*"},
}
TRAINED, BRIEFLY = _mlps(""), _mlps("_20_epochs")


SIGN = "volume.log10_ratio", "log10 volume, OOD minus ID", 0.0
LARGE = (
    "volume.inner_effect",
    "difference of log volumes in standard deviations, border cells left out",
    LARGE_EFFECT,
)


def _opposite(mlp, conv, convs, metric: str, name: str, bound: float, brief: bool = False):
    """In the figures a CNN's volume is smaller over OOD cells than over ID cells, an MLP's larger:
    the MLP's number lies above a bound, the CNN's below its negative. The CNN is that of the
    nearest depth; of two as near the deeper one. Figures 13 and 14 show MLPs of 20 epochs as they
    are, so that beside a `brief` one the CNN alone must be trained."""
    apart = lambda run: (abs(depth_of(run) - depth_of(mlp)), -depth_of(run))
    conv = min([conv, *convs], key=apart)
    if brief:
        yield learnt(exact_id(conv.late.cells), "exact accuracy ID, CNN")
    else:
        yield learnt(worst_exact_id(conv, mlp))
    yield above(bound, last(mlp.late.layers(metric)), f"the MLP's {name}")
    yield below(0 - bound, last(conv.late.layers(metric)), f"the CNN's {name}")
    yield note("depth of the CNN", depth_of(conv))
    yield note("exact accuracy ID, MLP", exact_id(mlp.late.cells))


@claim("C7.mlp", cases=TRAINED, **MLP)
def mlps_are_opposite(mlp, conv, convs):
    """With the {code} code, depth {depth}, trained MLPs distort the OOD volume the opposite way to
    CNNs."""
    return _opposite(mlp, conv, convs, *SIGN)


@claim("C7.mlp_size", cases=TRAINED, **MLP)
def mlps_are_opposite_by_a_large_effect(mlp, conv, convs):
    """With the {code} code, depth {depth}, trained MLPs and CNNs do so by a large effect, without
    border cells."""
    return _opposite(mlp, conv, convs, *LARGE)


@claim("C7.mlp_20_epochs", cases=BRIEFLY, **MLP)
def brief_mlps_are_opposite(mlp, conv, convs):
    """With the {code} code, depth {depth}, the authors' MLPs of 20 epochs distort the OOD volume
    the opposite way to CNNs."""
    return _opposite(mlp, conv, convs, *SIGN, brief=True)


@claim("C7.mlp_20_epochs_size", cases=BRIEFLY, **MLP)
def brief_mlps_are_opposite_by_a_large_effect(mlp, conv, convs):
    """With the {code} code, depth {depth}, the authors' MLPs of 20 epochs and CNNs do so by a large
    effect, without border cells."""
    return _opposite(mlp, conv, convs, *LARGE, brief=True)


# --- C12 and C13: with stripes -----------------------------------------------------------------

FEW = tuple({"case": "bump", "few": few} for few in (30, 50))  # bumps, quick and paper
DISTANCE, SPREAD = "size of log10 volume, OOD minus ID", "sd of log10 volume over OOD cells"


def _distance(run):
    """(S, C) how far the OOD volume is from the ID volume in the last hidden layer, log10."""
    return np.abs(last(log_volume(run)))


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
        yield note(f"log10 volume, OOD minus ID, {name}", last(log_volume(run)))
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


@claim(
    "C13.alone",
    figure="Fig 4e, f, 15",
    cases=FEW,
    runs={"net": "stripes_{few}_bumps", "by_bumps": "stripes_*_bumps", "alone": "corner_bumps"},
)
def units_turn_more_than_untrained_or_with_bumps_alone(net, by_bumps, alone):
    """Units turn from stripes to bumps more than before training, as convolutions localise as well,
    and more than with bumps alone."""
    yield from units_turn_from_stripes_to_bumps.function(net, by_bumps)
    for share, bound in SHARES.items():
        change = _change(net.late.layers, share)
        untrained = _change(net.layers, share, "untrained.")[:, None]
        name = f"{share.replace('_', '-')} share, last minus first hidden layer, less that"
        yield bound(0, change - untrained, f"{name} before training")
        of_run = lambda run, share=share: _change(run.late.layers, share)
        more = np.subtract(*at_common_seeds(of_run, net, alone))
        yield bound(0, more, f"{name} with bumps alone")


CLAIMS = (
    falls,
    falls_below_a_composer,
    falls_more_in_shallow_networks,
    falls_less_with_every_depth,
    distorts_volume,
    distorts_inner_volume,
    distorts_volume_more_than_a_composer,
    mlps_are_opposite,
    mlps_are_opposite_by_a_large_effect,
    brief_mlps_are_opposite,
    brief_mlps_are_opposite_by_a_large_effect,
    volume_stays_smooth,
    volume_varies_less_where_bumps_are_rendered,
    volume_varies_less_around_the_donut,
    units_turn_from_stripes_to_bumps,
    units_turn_more_than_untrained_or_with_bumps_alone,
)
