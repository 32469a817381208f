"""C6, C7, C12 and C13: what the layers say (Figures 2, 4d to 4f and 11 to 15).

Quantities of finished runs, whose `layers(metric)` is (T, L), layers in order with the code first
and the drawn signal last, and the claims.
"""

import numpy as np

from compgen_jax.claims import Claim, Condition, Undecided
from compgen_jax.papers.forced_rendering.images import exact, worst_exact_id
from compgen_jax.papers.forced_rendering.mechanism import CODES
from compgen_jax.papers.forced_rendering.remedies import FEW
from compgen_jax.runs.judge_run import RIGHT

LARGE_EFFECT = 0.8  # Cohen's convention


def slope(values_TxL, relative: bool = False):
    """(T,) least-squares slope from the code, layer 0, to the last hidden layer, without the drawn
    signal; per layer, or over the whole way."""
    values = values_TxL[:, :-1]
    depths = np.arange(values.shape[1], dtype=np.float64)
    if relative:
        depths /= depths[-1]
    depths -= depths.mean()
    return values @ depths / np.square(depths).sum()


def last(values_TxL):
    """(T,) of the last hidden layer."""
    return values_TxL[:, -2]


def hidden(values_TxL):
    """(T,) mean over the hidden layers: neither the code nor the drawn signal."""
    return values_TxL[:, 1:-1].mean(axis=1)


def _composer(evidence):
    """The run `composer`: the same network with as many combinations held out at random. Raises
    Undecided unless it composes them."""
    if exact(evidence.composer.cells).mean() > RIGHT:
        return evidence.composer
    raise Undecided("the network with random cells held out does not compose them")


COMPARED = (
    {"code": "bump", "composing": "random_cells"},
    {"code": "ramp", "composing": "random_cells_ramp"},
)
DECAYING = {  # what falls with depth: the paper's score as the authors' code has it, and ours
    "decodability R2 OOD": lambda run: run.layers("probe.ood_r2"),
    "the paper's score": lambda run: run.layers("factorization.ratio_of_means"),
    "additive share of variance": lambda run: 1 - run.layers("anova.interaction"),
}
AS_STATED, OURS = ("decodability R2 OOD", "the paper's score"), (
    "decodability R2 OOD", "additive share of variance")  # fmt: skip


def _fall(name: str):
    return lambda evidence: slope(DECAYING[name](evidence.net))


def _fall_beyond_composer(name: str):
    return lambda evidence: (
        slope(DECAYING[name](evidence.net)) - slope(DECAYING[name](_composer(evidence)))
    )


# The features of any decoder turn from the code into an image, so those of a perfect composer fall
# as well. The stricter reading asks for a steeper fall than that of a network that composes. It
# measures factorization by the share of the features' variance in x alone and y alone: the paper's
# own score does not tell composition from lookup or noise.
DECAYS_WITH_DEPTH = Claim(
    "C6",
    "with the {code} code, factorization and linear decodability fall with depth",
    figure="Fig 2a-d",
    each=COMPARED,
    runs={"net": "{code}_cnn", "composer": "{composing}?"},
    as_stated=tuple(
        Condition(f"slope of {name}, per layer", _fall(name), below=0) for name in AS_STATED
    ),
    stricter=tuple(
        Condition(
            f"slope of {name}, less that of a decoder that composes",
            _fall_beyond_composer(name),
            below=0,
        )
        for name in OURS
    ),
    details={f"slope of {name}": _fall(name) for name in DECAYING},
)


def _shallow_and_deep(evidence) -> list:
    runs = sorted([evidence.preset, *evidence.others], key=lambda run: run.config.model.depth)
    return [runs[0], runs[-1]]


def _sharper(name: str) -> Condition:
    def difference(evidence):
        shallow, deep = (
            slope(DECAYING[name](run), relative=True) for run in _shallow_and_deep(evidence)
        )
        return shallow - deep

    return Condition(f"slope of {name} on relative depth, shallow minus deep", difference, below=0)


SHALLOW_RAMP_IS_SHARPER = Claim(
    "C6",
    "factorization falls more sharply in shallow ramp networks than in deep ones",
    figure="Fig 2b, d",
    runs={"preset": "ramp_cnn", "others": "ramp_cnn_depth*"},
    code="ramp",
    trained=lambda e: worst_exact_id(*_shallow_and_deep(e)),
    as_stated=tuple(_sharper(name) for name in AS_STATED),
    stricter=tuple(_sharper(name) for name in OURS),
)


def _log_volume(run):
    """(T, L) log10 of the volume over OOD cells relative to ID cells."""
    return run.layers("volume.log10_ratio")


def _effect(run, inner: bool = True):
    """(T,) its size in the last hidden layer, in standard deviations; `inner` leaves out cells near
    the border, where bumps are cut."""
    return np.abs(last(run.layers("volume.inner_effect" if inner else "volume.effect")))


# Stricter, without border cells, and more than in a network that composes.
DISTORTS_VOLUME = Claim(
    "C7",
    "with the {code} code, the volume element of OOD cells differs from ID cells'",
    figure="Fig 2e, f, 11, 12",
    each=COMPARED,
    runs={"net": "{code}_cnn", "composer": "{composing}?"},
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
            "the same, less that of a decoder that composes",
            lambda e: _effect(e.net) - _effect(_composer(e)),
            above=0,
        ),
    ),
    details={"log10 volume, OOD minus ID": lambda e: last(_log_volume(e.net))},
)
OPPOSITE = Condition(
    "product of the CNN's and the MLP's log10 volume, OOD minus ID",
    lambda e: last(_log_volume(e.conv)) * last(_log_volume(e.mlp)),
    below=0,
)
# Stricter, both by a large effect, border cells left out.
MLP_IS_OPPOSITE = Claim(
    "C7",
    "with the {code} code, MLPs distort the OOD volume the opposite way to CNNs",
    figure="Fig 11-14",
    each={"code": CODES},
    runs={"conv": "{code}_cnn", "mlp": "{code}_mlp"},
    trained=lambda e: worst_exact_id(e.conv, e.mlp),
    as_stated=OPPOSITE,
    stricter=(
        OPPOSITE,
        Condition(
            "size of the CNN's difference, in standard deviations",
            lambda e: _effect(e.conv),
            above=LARGE_EFFECT,
        ),
        Condition(
            "size of the MLP's difference, in standard deviations",
            lambda e: _effect(e.mlp),
            above=LARGE_EFFECT,
        ),
    ),
    details={"CNN": lambda e: last(_log_volume(e.conv)), "MLP": lambda e: last(_log_volume(e.mlp))},
)
# --- C12 and C13: with stripes -----------------------------------------------------------------


def _distance(run):
    return hidden(np.abs(_log_volume(run)))


def _spread(run):
    return hidden(run.layers("volume.ood_spread"))


NEARER = Condition(
    "size of log10 volume, OOD minus ID, stripes minus bumps alone",
    lambda e: _distance(e.stripes) - _distance(e.alone),
    below=0,
)
# Two networks with the same hole and paired seeds; means over the hidden layers.
VOLUME_STAYS_SMOOTH = Claim(
    "C12",
    "with stripes, the volume element stays smoother over the hole than with bumps alone",
    figure="Fig 4d",
    runs={"stripes": "donut_stripes", "alone": "bump_cnn"},
    code="bump",
    trained=lambda e: worst_exact_id(e.stripes, e.alone),
    as_stated=NEARER,
    stricter=(
        NEARER,
        Condition(
            "sd of log10 volume over the hole, stripes minus bumps alone",
            lambda e: _spread(e.stripes) - _spread(e.alone),
            below=0,
        ),
    ),
    details={
        "log10 volume, OOD minus ID, stripes": lambda e: hidden(_log_volume(e.stripes)),
        "log10 volume, OOD minus ID, bumps alone": lambda e: hidden(_log_volume(e.alone)),
        "sd of log10 volume over the hole, stripes": lambda e: _spread(e.stripes),
        "sd of log10 volume over the hole, bumps alone": lambda e: _spread(e.alone),
    },
)

# of a unit's variance, and on which side of 0 it must change
SHARES = {"one_factor": {"below": 0}, "product": {"above": 0}}
TITLES = {share: f"{share.replace('_', '-')} share, last minus first hidden layer"
          for share in SHARES}  # fmt: skip


def _change(run, share: str, untrained: str = ""):
    """(T,) of a share from the first to the last hidden layer."""
    values_TxL = run.layers(f"{untrained}tuning.weighted_{share}")
    return values_TxL[:, -2] - values_TxL[:, 1]


# Two shares of a unit's variance over all points. One-factor: the larger of what x and what y
# explain alone (1 for a stripe, a half for a plus). Product: what one product of x and y explains
# beyond them (.6 to .8 for a bump, 0 for stripe and plus, .2 or less for noise). Both are means
# over active units in proportion to their variance. Stricter, they change by more than in the same
# network before training, whose convolutions localise as well.
UNITS_TURN_FROM_STRIPES_TO_BUMPS = Claim(
    "C13",
    "trained on stripes and a few bumps, early units are tuned to stripes, late ones to bumps",
    figure="Fig 4e, f, 15",
    each=FEW,
    runs={"net": "stripes_{few}_bumps", "alone": "bump_cnn"},
    code="bump",
    as_stated=tuple(
        Condition(TITLES[share], lambda e, share=share: _change(e.net, share), **bound)
        for share, bound in SHARES.items()
    ),
    stricter=tuple(
        Condition(
            f"{TITLES[share]}, less that before training",
            lambda e, share=share: _change(e.net, share) - _change(e.net, share, "untrained."),
            **bound,
        )
        for share, bound in SHARES.items()
    ),
    details=lambda e: {
        f"{TITLES[share]}, {network}": _change(run, share)
        for network, run in (("stripes", e.net), ("bumps alone", e.alone))
        for share in SHARES
    },
)
CLAIMS = (
    DECAYS_WITH_DEPTH,
    SHALLOW_RAMP_IS_SHARPER,
    DISTORTS_VOLUME,
    MLP_IS_OPPOSITE,
    VOLUME_STAYS_SMOOTH,
    UNITS_TURN_FROM_STRIPES_TO_BUMPS,
)
