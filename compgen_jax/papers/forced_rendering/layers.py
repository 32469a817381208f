"""C6, C7, C12 and C13: what the layers say (Figures 2, 4d to 4f and 11 to 15).

Quantities of finished runs, and the claims. A run's `late.layers(metric)` is (S, C, L): layers in
order, the code first and the drawn signal last, of every seed's C late checkpoints.
"""

from functools import partial

import numpy as np

from compgen_jax.claims import (
    Claim,
    Condition,
    Reading,
    Undecided,
    exact_id,
    median_over_checkpoints,
)
from compgen_jax.papers.forced_rendering.images import AT_THE_END, rendered, worst_exact_id
from compgen_jax.papers.forced_rendering.remedies import FEW
from compgen_jax.runs.judge_run import RIGHT

LARGE_EFFECT = 0.8  # Cohen's convention


def slope(values_xL):
    """(...) least-squares slope per layer, from the code to the last hidden layer, without the
    drawn signal."""
    values = values_xL[..., :-1]
    return _slope(values, np.arange(values.shape[-1]))


def _slope(values_xK, places_K):
    """(...) least-squares slope of values on their places; exactly 0 where they are equal."""
    from_mean = places_K - np.mean(places_K)
    return (values_xK - values_xK[..., :1]) @ (from_mean / np.square(from_mean).sum())


def last(values_xL):
    """(...) of the last hidden layer."""
    return values_xL[..., -2]


def _moved(values_xL, since: int):
    """(...) from a layer to the last hidden one."""
    return last(values_xL) - values_xL[..., since]


def late(run, metric: str):
    """(S, C, L) a metric of every layer, for each seed at its late checkpoints."""
    return run.late.layers(metric)


def depth_of(run) -> int:
    return run.config.model.depth


# what a claim over the figures' depths is judged at: the base network first
CNN_DEPTHS = {"": "", "_depth2": ", depth 2", "_depth3": ", depth 3", "_depth5": ", depth 5",
              "_depth6": ", depth 6"}  # fmt: skip
MLP_DEPTHS = {"": ", depth 3"} | {f"_depth{depth}": f", depth {depth}" for depth in (4, 5, 6, 7)}
COMPOSING = {"bump": "random_cells", "ramp": "random_cells_ramp"}
EVERY_CNN = tuple(
    {"code": code, "composing": composing, "depth": depth, "deep": deep}
    for code, composing in COMPOSING.items()
    for depth, deep in CNN_DEPTHS.items()
)
OF_COMPOSER = (
    "The network that composes must render .9 of its held-out cells. That was asked of the mean "
    "over late checkpoints (.894 with the ramp code at the papers' size), so that nothing was "
    "concluded there; now of each seed's median (.907)."
)
CNN_AND_COMPOSER = {"net": "{code}_cnn{depth}", "composer": "{composing}{depth}?"}


def _composer(evidence):
    """The run `composer`: the same network with as many combinations held out at random. Raises
    Undecided unless it renders them."""
    cells = evidence.composer.late.cells
    if median_over_checkpoints(rendered(cells)).mean() > RIGHT:
        return evidence.composer
    raise Undecided("the network with random cells held out does not render them")


# --- C6: factorization and decodability --------------------------------------------------------

DECAYING = {  # the paper's score as the authors' code has it
    "probe R2 OOD": "probe.ood_r2",
    "the paper's score": "factorization.ratio_of_means",
}


FALLS = tuple(
    Condition(
        f"{name}, last hidden layer minus code",
        lambda e, metric=metric: _moved(late(e.net, metric), since=0),
        below=0,
    )
    for name, metric in DECAYING.items()
)
# The features of any decoder turn from a code into an image, so those of a perfect composer fall
# as well. Stricter, they fall below those of a network of the same depth that composes.
DECAYS_WITH_DEPTH = Claim(
    "C6",
    "with the {code} code{deep}, factorization and linear decodability fall over the layers",
    figure="Fig 2a-d",
    each=EVERY_CNN,
    runs=CNN_AND_COMPOSER,
    as_stated=FALLS,
    stricter=(
        *FALLS,
        *(
            Condition(
                f"{name}, last hidden layer, minus that of a network that composes",
                lambda e, metric=metric: (
                    last(late(e.net, metric)) - last(late(_composer(e), metric))
                ),
                below=0,
            )
            for name, metric in DECAYING.items()
        ),
    ),
    details={
        f"slope of {name}, per layer": lambda e, metric=metric: slope(late(e.net, metric))
        for name, metric in DECAYING.items()
    },
    objection=(
        "Every decoder turns a code into an image, so both numbers also fall in a network that "
        "composes. The stricter reading therefore compares with the same network with random cells "
        "held out, which renders them. The paper's factorization score hardly differs between "
        "composition, lookup and noise, so its size says little."
    ),
    changed=(
        "As stated it was the slope of a line over the layers, which fits a V badly; now it is the "
        "last hidden layer minus the code. The stricter reading used the additive share of "
        "variance, which a product of stripes must lose; now it uses the probe and the paper's "
        f"score. Verdicts of both were known. {AT_THE_END} {OF_COMPOSER}"
    ),
)


def _by_depth(evidence) -> list:
    return sorted([evidence.preset, *evidence.others], key=depth_of)


def _shallow_and_deep(evidence) -> list:
    runs = _by_depth(evidence)
    return [runs[0], runs[-1]]


def _least(run, metric: str):
    """(S, C) the least value over the layers to the last hidden one, minus that of the code, which
    networks of all depths share."""
    values_SxCxL = late(run, metric)[..., :-1]
    return values_SxCxL.min(axis=-1) - values_SxCxL[..., 0]


def _shallow_minus_deep(evidence, metric: str):
    shallow, deep = (_least(run, metric) for run in _shallow_and_deep(evidence))
    return shallow - deep


def _slope_on_depth(evidence, metric: str):
    runs = _by_depth(evidence)
    least_SxCxR = np.stack([_least(run, metric) for run in runs], axis=-1)
    return _slope(least_SxCxR, np.array([depth_of(run) for run in runs]))


# Stricter, over all depths and not only the first and the last.
SHALLOW_RAMP_IS_SHARPER = Claim(
    "C6",
    "factorization falls more sharply in shallow ramp networks than in deep ones",
    figure="Fig 2b, d",
    runs={"preset": "ramp_cnn", "others": "ramp_cnn_depth*"},
    code="ramp",
    trained=lambda e: worst_exact_id(*_shallow_and_deep(e)),
    as_stated=tuple(
        Condition(
            f"least {name} over the layers minus the code's, shallowest minus deepest network",
            partial(_shallow_minus_deep, metric=metric),
            below=0,
        )
        for name, metric in DECAYING.items()
    ),
    stricter=tuple(
        Condition(
            f"slope of the least {name} minus the code's, on the network's depth",
            partial(_slope_on_depth, metric=metric),
            above=0,
        )
        for name, metric in DECAYING.items()
    ),
    objection=(
        "A shallow network may be less well trained than a deep one, and fall for that reason. "
        "Both must be right on ID cells before anything is concluded."
    ),
    changed=(
        "It was the slope over relative depth, and stricter that of the additive share. The curves "
        "fall and rise again, so the least value over the layers took its place after quick "
        f"verdicts were known. {AT_THE_END}"
    ),
)

# --- C7: volume --------------------------------------------------------------------------------


def _log_volume(run):
    """(S, C, L) log10 of the volume over OOD cells relative to ID cells."""
    return late(run, "volume.log10_ratio")


def _effect(run, inner: bool = True):
    """(S, C) its size in the last hidden layer, in standard deviations; `inner` leaves out cells
    near the border, where bumps are cut."""
    return np.abs(last(late(run, "volume.inner_effect" if inner else "volume.effect")))


# Stricter, without border cells, and more than in a network that composes.
DISTORTS_VOLUME = Claim(
    "C7",
    "with the {code} code{deep}, the volume element of OOD cells differs from ID cells'",
    figure="Fig 2e, f, 11, 12",
    each=EVERY_CNN,
    runs=CNN_AND_COMPOSER,
    as_stated=(
        Condition(
            "size of the difference of log volumes, in standard deviations",
            lambda e: _effect(e.net, inner=False),
            above=LARGE_EFFECT,
        ),
        Condition(
            "slope of the distortion, per layer",
            lambda e: slope(np.abs(_log_volume(e.net))),
            above=0,
        ),
    ),
    stricter=(
        Condition(
            "size of the difference, border cells left out",
            lambda e: _effect(e.net),
            above=LARGE_EFFECT,
        ),
        Condition(
            "the same, less that of a network that composes",
            lambda e: _effect(e.net) - _effect(_composer(e)),
            above=0,
        ),
    ),
    details={"log10 volume, OOD minus ID": lambda e: last(_log_volume(e.net))},
    objection=(
        "Held-out cells lie in the middle and ID cells at the border, where bumps are cut, so that "
        "volumes differ in any network. The stricter reading leaves border cells out and asks for "
        "more than in a network that composes."
    ),
    changed=(
        "It was the mean of signed effects over all hidden layers; the last hidden layer took its "
        f"place after quick verdicts were known. {AT_THE_END} {OF_COMPOSER}"
    ),
)


MLP_AND_CNNS = {"mlp": "{run}", "conv": "{code}_cnn", "convs": "{code}_cnn_depth*?"}


def _every_mlp(trained_for: str) -> tuple[dict, ...]:
    return tuple(
        {"code": code, "run": f"{code}_mlp{trained_for}{depth}", "deep": deep}
        for code in COMPOSING
        for depth, deep in MLP_DEPTHS.items()
    )


def _nearest_conv(evidence):
    """The CNN whose depth is nearest to the MLP's; of two as near the deeper one."""
    depth = depth_of(evidence.mlp)
    return min(
        [evidence.conv, *evidence.convs],
        key=lambda run: (abs(depth_of(run) - depth), -depth_of(run)),
    )


def _signs(number, name: str, bound: float) -> tuple[Condition, ...]:
    """The MLP's number lies above a bound, the CNN's below its negative."""
    return (
        Condition(f"the MLP's {name}", lambda e: last(number(e.mlp)), above=bound),
        Condition(f"the CNN's {name}", lambda e: last(number(_nearest_conv(e))), below=0 - bound),
    )


# In the figures a CNN's volume is smaller over OOD cells than over ID cells, and an MLP's larger.
# Stricter, both by a large effect, border cells left out.
SIGNS = {
    "figure": "Fig 11-14",
    "as_stated": _signs(_log_volume, "log10 volume, OOD minus ID", 0.0),
    "stricter": _signs(
        lambda run: late(run, "volume.inner_effect"),
        "difference of log volumes in standard deviations, border cells left out",
        LARGE_EFFECT,
    ),
    "details": {
        "CNN": lambda e: last(_log_volume(_nearest_conv(e))),
        "MLP": lambda e: last(_log_volume(e.mlp)),
        "depth of the CNN": lambda e: depth_of(_nearest_conv(e)),
        "exact accuracy ID, MLP": lambda e: exact_id(e.mlp.late.cells),
    },
    "changed": (
        "It was judged at depth 3 alone, and contradicted there. Each depth got a row when it was "
        "known that the quick MLP of depth 7 has the paper's sign. It asked that the product of "
        "both differences be negative, which seven known networks passed by a hair. Each "
        "difference now has the sign of the figures. Quick verdicts of all were known. "
        f"{AT_THE_END}"
    ),
}
MLP_IS_OPPOSITE = Claim(
    "C7",
    "with the {code} code{deep}, trained MLPs distort the OOD volume the opposite way to CNNs",
    each=_every_mlp(""),
    runs=MLP_AND_CNNS,
    trained=lambda e: worst_exact_id(_nearest_conv(e), e.mlp),
    objection=(
        "The authors' MLPs were trained for 20 epochs and draw few ID cells right, so their sign "
        "may be that of a network that has learnt little. MLPs that were trained until they are "
        "right are judged here, and the authors' in rows of their own. Stricter, a small "
        "difference fails as one of the other sign does. Each MLP is compared with the CNN of the "
        "nearest depth; at the papers' size that is 4."
    ),
    **SIGNS,
)
MLP_OF_20_EPOCHS_IS_OPPOSITE = Claim(
    "C7",
    "with the {code} code{deep}, the authors' MLPs of 20 epochs distort it the opposite way to "
    "CNNs",
    each=_every_mlp("_20_epochs"),
    runs=MLP_AND_CNNS,
    # Figures 13 and 14 show these networks as they are, so the CNN alone must be trained.
    trained=lambda e: exact_id(_nearest_conv(e).late.cells),
    trained_name="exact accuracy ID, CNN",
    objection=(
        "These MLPs draw few ID cells right (see their accuracy). The figures show them as they "
        "are, so no accuracy is asked of them. Longer training may change the sign; the rows of "
        "trained MLPs show whether it does. Without border cells these MLPs have the paper's sign "
        "at every depth, by .3 to .7 standard deviations. The stricter reading asks for .8."
    ),
    **SIGNS,
)

# --- C12 and C13: with stripes -----------------------------------------------------------------


def _distance(run):
    """(S, C) how far the OOD volume is from the ID volume in the last hidden layer, log10."""
    return np.abs(last(_log_volume(run)))


def _spread(run):
    return last(late(run, "volume.ood_spread"))


def _less(number, name: str, stripes: str, alone: str) -> Condition:
    return Condition(
        f"{name}, stripes minus bumps alone",
        lambda e: number(getattr(e, stripes)) - number(getattr(e, alone)),
        below=0,
    )


def _renders(stripes: str, where: str) -> Condition:
    """Most held-out cells are rendered: a network that composes nothing can be smooth as well."""
    cells = lambda e: getattr(e, stripes).late.cells
    return Condition(
        f"share rendered OOD, stripes{where}",
        lambda e: rendered(cells(e)),
        above=0.5,
        cells=lambda e: cells(e).held_out.sum(),
    )


DISTANCE, SPREAD = "size of log10 volume, OOD minus ID", "sd of log10 volume over OOD cells"
NEARER = _less(_distance, DISTANCE, "stripes", "alone")
ON_DONUT = "donut_stripes", "donut_alone"
# Two networks with the same corner held out, in pairs of seeds. Stricter, also its spread, the same
# around the donut's hole, and most held-out cells are rendered in both places.
VOLUME_STAYS_SMOOTH = Claim(
    "C12",
    "with stripes and {few} bumps, the volume of OOD cells is nearer to ID cells' than with bumps "
    "alone",
    figure="Fig 4d",
    each=FEW,
    runs={
        "stripes": "stripes_{few}_bumps",
        "alone": "corner_bumps",
        "donut_stripes": "donut_stripes?",
        "donut_alone": "bump_cnn?",
    },
    code="bump",
    trained=lambda e: worst_exact_id(e.stripes, e.alone),
    as_stated=NEARER,
    stricter=Reading(
        (
            NEARER,
            _less(_spread, SPREAD, "stripes", "alone"),
            _less(_distance, f"{DISTANCE}, donut", *ON_DONUT),
            _less(_spread, f"{SPREAD}, donut", *ON_DONUT),
            _renders("stripes", ""),
            _renders("donut_stripes", ", donut"),
        ),
        trained=lambda e: worst_exact_id(e.stripes, e.alone, e.donut_stripes, e.donut_alone),
        trained_name="exact accuracy ID, also around the donut",
    ),
    details={
        f"{name}, {network}": lambda e, number=number, run=run: number(getattr(e, run))
        for name, number in (
            ("log10 volume, OOD minus ID", lambda run: last(_log_volume(run))),
            (SPREAD, _spread),
        )
        for network, run in (("stripes", "stripes"), ("bumps alone", "alone"))
    },
    objection=(
        "A network that composes nothing can have a smooth volume as well, such as one that draws "
        "stripes everywhere. The reading as stated cannot tell them apart. The stricter one also "
        "asks that held-out bumps are rendered."
    ),
    changed=(
        "It was the mean over the hidden layers, around the donut. Now it is the last hidden layer "
        "and the corner, which is where the paper trains with stripes. The stricter reading did "
        "not ask for rendered bumps, so that a smooth network that composes nothing passed. "
        f"Verdicts of both were known. {AT_THE_END}"
    ),
)

# of a unit's variance, and on which side of 0 it must change
SHARES = {"one_factor": {"below": 0}, "product": {"above": 0}}


def _change(run, share: str):
    """(S, C) of a share from the first to the last hidden layer."""
    return _moved(late(run, f"tuning.weighted_{share}"), since=1)


def _change_before_training(run, share: str):
    """(S, 1) the same before training, which is no matter of checkpoints."""
    return _moved(late(run, f"untrained.tuning.weighted_{share}"), since=1)


def _changes(other=lambda e, share: 0.0, less: str = "") -> tuple[Condition, ...]:
    """The changes of both shares, less those that `other` (evidence, share -> (S, C)) gives."""
    return tuple(
        Condition(
            f"{share.replace('_', '-')} share, last minus first hidden layer{less}",
            lambda e, share=share: _change(e.net, share) - other(e, share),
            **bound,
        )
        for share, bound in SHARES.items()
    )


CHANGES = _changes()


def _sharpening(evidence):
    """(S, C) slope of the last hidden layer's product share on log10 of 1 + the number of bumps."""
    counts = np.array([run.config.task.support.samples for run in evidence.by_bumps])
    share_SxCxR = np.stack(
        [last(late(run, "tuning.weighted_product")) for run in evidence.by_bumps], axis=-1
    )
    return _slope(share_SxCxR, np.log10(1 + counts))


SHARPER = Condition(
    "slope of the last hidden layer's product share on log10(1 + bumps)", _sharpening, above=0
)
# Two shares of a unit's variance over all points. One-factor: the larger of what x and what y
# explain alone (1 for a stripe, a half for a plus). Product: what one product of x and y explains
# beyond them (.6 to .8 for a bump, 0 for stripe and plus, .2 or less for noise). Both are means
# over active units in proportion to their variance. Stricter, they change by more than in the same
# network before training, whose convolutions localise as well, and than with bumps alone.
UNITS_TURN_FROM_STRIPES_TO_BUMPS = Claim(
    "C13",
    "trained on stripes and a few bumps, early units are tuned to stripes, late ones to bumps, "
    "and more so with more bumps",
    figure="Fig 4e, f, 15",
    each=FEW,
    runs={
        "net": "stripes_{few}_bumps",
        "by_bumps": "stripes_*_bumps",
        "alone": "corner_bumps?",
    },
    when=lambda e: len(e.by_bumps) > 1,
    code="bump",
    as_stated=(*CHANGES, SHARPER),
    stricter=(
        *CHANGES,
        SHARPER,
        *_changes(
            lambda e, share: _change_before_training(e.net, share), ", less that before training"
        ),
        *_changes(lambda e, share: _change(e.alone, share), ", less that with bumps alone"),
    ),
    objection=(
        "The same change occurs in transposed convolutions before any training, and in networks "
        "trained on bumps alone. The stricter reading asks for a larger change than both."
    ),
    changed=(
        "The comparison with bumps alone and the trend over the number of bumps were added after "
        "the quick verdict and the numbers of bumps alone around the donut were known. So the "
        "quick verdict is post hoc, and the paper's size alone can confirm it. "
        f"{AT_THE_END}"
    ),
)
CLAIMS = (
    DECAYS_WITH_DEPTH,
    SHALLOW_RAMP_IS_SHARPER,
    DISTORTS_VOLUME,
    MLP_IS_OPPOSITE,
    MLP_OF_20_EPOCHS_IS_OPPOSITE,
    VOLUME_STAYS_SMOOTH,
    UNITS_TURN_FROM_STRIPES_TO_BUMPS,
)
