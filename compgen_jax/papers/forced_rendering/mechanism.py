"""C4 to C7: what the layers say (Figures 1d, 1e, 2, 8, 11 to 14).

Quantities of finished runs, whose `layers(metric)` is (T, L), layers in order with the code first
and the drawn signal last, and whose `outputs(metric)` is (T,); and the claims.
"""

import zlib
from typing import NamedTuple

import numpy as np

from compgen_jax.claims import Claim, Condition, Undecided
from compgen_jax.metrics import kernels, layers, superposition
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering import known_maps
from compgen_jax.papers.forced_rendering.images import exact, worst_exact_id
from compgen_jax.runs.judge_run import RIGHT
from compgen_jax.statistics import mean_with_interval

CONSTRUCTION = {"bump": "mean_code", "ramp": "sums"}  # the paper's, by code (E6, E7)
CODES = tuple(CONSTRUCTION)  # of the networks that the paper looks into
LARGE_EFFECT = 0.8  # Cohen's convention
CLEARLY, MOST = 0.05, 0.75  # of R^2: see `SUPERPOSES`; the former of a correlation too


class Ideal(NamedTuple):
    """What maps whose answer is known score at the same grid and hold-out (`known_maps`).

    superposer_r2, bump_r2: R^2 on the sums of matching outputs over the inner hole, of the
    superposer and of the true bump.  superposer_binary: how much more the superposer's similarity
    agrees with the binary kernel than with the true images'.  lookup_partial: how binary the
    lookup's is beyond these.
    """

    superposer_r2: float
    bump_r2: float
    superposer_binary: float
    lookup_partial: float


_ideals: dict = {}  # by the true images and the hold-out: known answers share them


def ideal(cells: CellResults) -> Ideal:
    """At the grid and around the square of some results."""
    key = zlib.crc32(np.ascontiguousarray(cells.truths)), cells.held_out.tobytes()
    if key not in _ideals:
        where = known_maps.world_of(cells.truths, cells.held_out)
        true = similarity(cells.truths)
        superposer, bump, lookup = (
            output_numbers(known_maps.images(name, where), cells, true)
            for name in ("superposer", "bump", "lookup")
        )
        _ideals[key] = Ideal(
            superposer["output.superposition.sums.inner_r2"],
            bump["output.superposition.sums.inner_r2"],
            superposer["output.cosine.cross_binary"] - superposer["output.cosine.cross_true"],
            lookup["output.cosine.cross_partial"],
        )
    return _ideals[key]


def similarity(signals_BxNxN):
    """(B, B) cosine similarity of what is drawn at all cells."""
    return kernels.cosine(kernels.gram(signals_BxNxN.reshape(len(signals_BxNxN), -1)))


def output_numbers(signals_BxNxN, cells: CellResults, true_BxB) -> dict:
    """What an inspection measures of signals at every cell that needs no network; `true_BxB` is
    the `similarity` of the true ones."""
    held_out, points = cells.held_out, cells.factors
    agreements = layers.agreements(similarity(signals_BxNxN), points, held_out, true_BxB)
    outputs = np.asarray(signals_BxNxN, np.float64).reshape(len(signals_BxNxN), -1)
    sums = superposition.matching_sums(outputs[~held_out], points[~held_out], points[held_out])
    scores = superposition.scores(
        outputs[held_out], sums, points[held_out], cells.distance[held_out]
    )
    return {f"output.cosine.{name}": value for name, value in agreements.items()} | {
        f"output.superposition.sums.{name}": value for name, value in scores.items()
    }


# --- C4 and C5: what the outputs say -----------------------------------------------------------


def superposition_r2(run, construction: str, of_other_points: bool = False):
    """(T,) R^2 of the OOD output on its two superpositions, or on those of points that share
    neither x nor y. Over held-out points at least half as far from seen ones as the farthest."""
    name = "inner_shuffled_r2" if of_other_points else "inner_r2"
    return run.outputs(f"output.superposition.{construction}.{name}")


def agreement(run, kernel: str):
    """(T,) agreement of the similarity of outputs with a kernel, 'binary', 'true' or 'partial' (the
    binary one beyond the true images'), over pairs of a held-out and a seen cell: the section of
    Figure 8 that the paper points at."""
    return run.outputs(f"output.cosine.cross_{kernel}")


def _beyond_other_points(evidence):
    construction = CONSTRUCTION[evidence.code]
    return superposition_r2(evidence.net, construction) - superposition_r2(
        evidence.net, construction, of_other_points=True
    )


def _over_superposer(evidence):
    return superposition_r2(evidence.net, "sums") / ideal(evidence.net.cells).superposer_r2


def _over_bumps(evidence):
    return superposition_r2(evidence.net, "sums") - ideal(evidence.net.cells).bump_r2


# As stated, in the construction that the paper uses for the code, above that of other points by
# `CLEARLY`, as a true bump has .0004 more. Stricter, in sums of matching outputs, at least `MOST`
# of what an ideal superposer scores (the nearest seen image has .52 to .55 of it).
SUPERPOSES = Claim(
    "C4",
    "with the {code} code, an OOD output is the sum of its superpositions",
    figure="Fig 1d",
    each={"code": CODES},
    runs={"net": "{code}_cnn"},
    as_stated=Condition(
        "R2 on the superpositions, over that of other points'", _beyond_other_points, above=CLEARLY
    ),
    stricter=(
        Condition("R2 on sums, over an ideal superposer's", _over_superposer, above=MOST),
        Condition("R2 on sums, less that of true bumps", _over_bumps, above=0),
    ),
    details=lambda e: {
        f"R2, construction {name}, {whose}": superposition_r2(e.net, name, of_other_points)
        for name in ("mean_code", "sums")
        for whose, of_other_points in (("own", False), ("other points'", True))
    },
)


def _binary_over_true(evidence) -> dict:
    """Nothing is concluded of a network that is not clearly further from the binary kernel than an
    ideal superposer, which fails as well: its sums are of the nearest seen images alone."""
    net = evidence.net
    number = mean_with_interval(agreement(net, "binary") - agreement(net, "true"))
    if ideal(net.cells).superposer_binary - CLEARLY <= number["ci95"][1] <= 0:
        number["undecided_because"] = "an ideal superposer fails as well"
    return number


# Stricter, the structure beyond the true images' (whose neighbours overlap) exceeds that of the
# nearest seen image.
RESEMBLES_BINARY_KERNEL = Claim(
    "C5",
    "with the {code} code, the OOD similarity matrix is the binary kernel",
    figure="Fig 1e, 8",
    each={"code": CODES},
    runs={"net": "{code}_cnn"},
    as_stated=Condition(
        "agreement with the binary kernel, over that with the true images'",
        _binary_over_true,
        above=0,
    ),
    stricter=Condition(
        "agreement beyond the true images', over that of a lookup",
        lambda e: agreement(e.net, "partial") - ideal(e.net.cells).lookup_partial,
        above=0,
    ),
    details={
        "of an ideal superposer, binary over true": lambda e: ideal(e.net.cells).superposer_binary,
        "agreement with the binary kernel": lambda e: agreement(e.net, "binary"),
        "agreement with the true images' kernel": lambda e: agreement(e.net, "true"),
        "agreement with the binary kernel beyond the true images'": lambda e: agreement(
            e.net, "partial"
        ),
    },
)
CLEARER_FOR_BUMP = Claim(
    "C5",
    "the binary kernel's structure is clearer for the bump code than for the ramp",
    figure="Fig 8",
    runs={"bump": "bump_cnn", "ramp": "ramp_cnn"},
    code="bump, ramp",
    trained=lambda e: worst_exact_id(e.bump, e.ramp),
    as_stated=Condition(
        "agreement with the binary kernel, bump minus ramp",
        lambda e: agreement(e.bump, "binary") - agreement(e.ramp, "binary"),
        above=0,
    ),
    stricter=Condition(
        "agreement beyond the true images', bump minus ramp",
        lambda e: agreement(e.bump, "partial") - agreement(e.ramp, "partial"),
        above=0,
    ),
    details={
        "bump": lambda e: agreement(e.bump, "partial"),
        "ramp": lambda e: agreement(e.ramp, "partial"),
    },
)

# --- C6 and C7: what the layers say ------------------------------------------------------------


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
    """(T,) log10 of the volume over OOD cells relative to ID cells, in the last hidden layer."""
    return last(run.layers("volume.log10_ratio"))


def _effect(run, inner: bool = True):
    """(T,) its size in standard deviations; `inner` leaves out cells near the border, where bumps
    are cut."""
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
            lambda e: slope(np.abs(e.net.layers("volume.log10_ratio"))),
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
    details={"log10 volume, OOD minus ID": lambda e: _log_volume(e.net)},
)
OPPOSITE = Condition(
    "product of the CNN's and the MLP's log10 volume, OOD minus ID",
    lambda e: _log_volume(e.conv) * _log_volume(e.mlp),
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
    details={"CNN": lambda e: _log_volume(e.conv), "MLP": lambda e: _log_volume(e.mlp)},
)
CLAIMS = (
    SUPERPOSES,
    RESEMBLES_BINARY_KERNEL,
    CLEARER_FOR_BUMP,
    DECAYS_WITH_DEPTH,
    SHALLOW_RAMP_IS_SHARPER,
    DISTORTS_VOLUME,
    MLP_IS_OPPOSITE,
)
