"""C4 and C5: how what is drawn at all cells is alike (Figures 1d, 1e and 8).

Quantities of finished runs, and the claims. A run's `late.outputs(metric)` is (S, C), of every
seed's C late checkpoints.
"""

import zlib
from typing import NamedTuple

import numpy as np

from compgen_jax.claims import Claim, Condition, median_over_checkpoints
from compgen_jax.metrics import kernels, layers, superposition
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering import known_maps
from compgen_jax.papers.forced_rendering.figure1 import NETWORKS
from compgen_jax.papers.forced_rendering.images import AT_THE_END, worst_exact_id
from compgen_jax.statistics import mean_with_interval

CONSTRUCTION = {"bump": "mean_code", "ramp": "sums"}  # the paper's, by code (E6, E7)
CODES = tuple(CONSTRUCTION)  # of the networks that the paper looks into
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


def superposition_r2(run, construction: str, of_other_points: bool = False):
    """(S, C) R^2 of the OOD output on its two superpositions, or on those of points that share
    neither x nor y. Over held-out points at least half as far from seen ones as the farthest."""
    name = "inner_shuffled_r2" if of_other_points else "inner_r2"
    return run.late.outputs(f"output.superposition.{construction}.{name}")


def agreement(run, kernel: str):
    """(S, C) agreement of the similarity of outputs with a kernel, 'binary', 'true' or 'partial'
    (the binary one beyond the true images'), over pairs of a held-out and a seen cell: the section
    of Figure 8 that the paper points at."""
    return run.late.outputs(f"output.cosine.cross_{kernel}")


def _beyond_other_points(evidence):
    construction = CONSTRUCTION[evidence.code]
    return superposition_r2(evidence.net, construction) - superposition_r2(
        evidence.net, construction, of_other_points=True
    )


def _over_superposer(evidence):
    return superposition_r2(evidence.net, "sums") / ideal(evidence.net.cells).superposer_r2


def _over_bumps(evidence):
    return superposition_r2(evidence.net, "sums") - ideal(evidence.net.cells).bump_r2


BEYOND_OTHERS = Condition(
    "R2 on the superpositions, over that of other points'", _beyond_other_points, above=CLEARLY
)
# As stated, in the construction that the paper uses for the code, above that of other points by
# `CLEARLY`, as a true bump has .0004 more. Stricter, in sums of matching outputs too, at least
# `MOST` of what an ideal superposer scores (the nearest seen image has .52 to .55 of it). The sums
# are over all ID cells, each once, as all of them are among the 20,000 samples of Figure 1d.
SUPERPOSES = Claim(
    "C4",
    "with the {code} code, an OOD output is the sum of its superpositions",
    figure="Fig 1d",
    each=tuple(network for network in NETWORKS if network["code"] in CODES),
    runs={"net": "{run}"},
    code="{code}{where}",
    as_stated=BEYOND_OTHERS,
    stricter=(
        Condition("R2 on sums, over an ideal superposer's", _over_superposer, above=MOST),
        Condition("R2 on sums, less that of true bumps", _over_bumps, above=0),
        BEYOND_OTHERS,
    ),
    details=lambda e: {
        f"R2, construction {name}, {whose}": superposition_r2(e.net, name, of_other_points)
        for name in ("mean_code", "sums")
        for whose, of_other_points in (("own", False), ("other points'", True))
    },
    objection=(
        "Any image with light in the right row or column resembles such a sum in part. So R2 is "
        "compared with that of other points' sums, which it must exceed by .05; a true bump "
        "exceeds it by .0004. Stricter, it is compared with the scores of an exact sum and "
        "of a true bump. The figure's ramp network is wider and deeper than the others; it has a "
        "row of its own where it was run."
    ),
    changed=(
        "C4 first asked for R2 above .5, a bound that depends on the grid and rejects ideal "
        "superposers. The ramp was judged on another network than the figure's. Verdicts of both "
        "were known. The stricter reading did not ask for more than other points' sums explain, so "
        "that noise passed around the authors' small hole. "
        f"{AT_THE_END}"
    ),
)


def _binary_over_true(evidence) -> dict:
    """Nothing is concluded of a network that is not clearly further from the binary kernel than an
    ideal superposer, which fails as well: its sums are of the nearest seen images alone."""
    net = evidence.net
    apart = agreement(net, "binary") - agreement(net, "true")
    number = mean_with_interval(median_over_checkpoints(apart))
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
    objection=(
        "The similarity of true images agrees with the binary kernel as well, as neighbours "
        "overlap. The stricter reading subtracts this agreement. The nearest seen image still "
        "has some, so it must be exceeded. Whether the images are sums (C4) is another question."
    ),
    changed=(
        "C5 first took pairs of two OOD cells, where every superposer fails; its verdicts were "
        "known. It now takes pairs of an OOD and an ID cell, the section that the paper shows. "
        f"{AT_THE_END}"
    ),
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
    objection=(
        "The structure may look clearer because a network learnt more. So both networks must have "
        "learnt their ID cells, and the stricter reading subtracts the true images' agreement."
    ),
    changed=RESEMBLES_BINARY_KERNEL.changed,
)
CLAIMS = SUPERPOSES, RESEMBLES_BINARY_KERNEL, CLEARER_FOR_BUMP
