"""F1 to F6, ours: does forced rendering survive factors that people have?

Decoders are given the true factors of sprites, and some combinations are held out. What is judged
is the share of held-out combinations that are rendered (`tasks.scene`), median over late
checkpoints. Every claim has the shares of trivial predictors beside it, of which the interpolator
knows the codes that a seed was shown.
"""

import math
from dataclasses import replace
from functools import cache

import jax
import numpy as np

from compgen_jax.claims import (
    Claim,
    Condition,
    Reading,
    Undecided,
    exact_id,
    median_over_checkpoints,
    once,
)
from compgen_jax.metrics.decodability import midranks
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.papers.forced_rendering.images import above_predictors
from compgen_jax.tasks import marginals
from compgen_jax.tasks import task as tasks

FAILS, RENDERS = 0.5, 0.9  # of held-out combinations
HELPS = 0.2  # what a remedy adds at least to the share rendered
FOLLOWS = 0.5  # rank correlation over pairs of factors
NOTE = (
    "F are ours: what forced rendering, its failure and both remedies, is on sprites, whose shape, "
    "scale, hue and position people name. A sprite is rendered if it has the right label, and "
    "correlates with what is asked more than with the nearest ID image."
)


def share(run, score: str = "rendered", ood: bool = True):
    """(T,) the mean score over held-out or ID cells, median over late checkpoints."""
    cells = run.late.cells
    values = mean_score(cells, score, cells.held_out == ood)
    return median_over_checkpoints(values)


def held_out_cells(e) -> int:
    return int(e.first.late.cells.held_out.sum())


def id_of_worst(*names: str):
    """evidence -> (T,) share rendered ID of the worst of these runs."""
    return lambda e: np.min([share(getattr(e, name), ood=False) for name in names], axis=0)


# --- trivial predictors ------------------------------------------------------------------------


@cache
def _of_task(settings) -> dict[str, float]:
    """The share of held-out cells that each predictor renders which knows all ID images."""
    task = settings.make()
    scores = jax.jit(lambda key: tasks.trivial_scores(task, key))(jax.random.key(0))
    ood = tasks.regions(task)["ood"]
    return {name: float(np.mean(of[task.accuracy], where=ood)) for name, of in scores.items()}


def interpolated(run):
    """(T,) the share of held-out cells that the interpolator of each seed's own data renders."""
    score = f"ood.interpolator_{run.config.task.make().accuracy}"
    return np.array([of_seed[score] for of_seed in run.summary["seeds"].values()])


def predictors(run) -> dict:
    """{name: share of held-out cells}, (T,) for the interpolator."""
    return {"interpolator": interpolated(run)} | _of_task(run.config.task)


def beside(e) -> dict:
    """`details`: what trivial predictors render, or read, of what `net` is asked OOD."""
    return {f"OOD by {name.replace('_', ' ')}": of for name, of in predictors(e.net).items()}


def above_trivial(e) -> Condition:
    """`net` renders more OOD than the best trivial predictor."""
    return above_predictors(share(e.net), predictors(e.net), held_out_cells(e))


# --- F1 and F2: what a decoder renders ---------------------------------------------------------


def rendered_ood(**bound) -> Condition:
    return Condition("share rendered OOD", lambda e: share(e.net), cells=held_out_cells, **bound)


def less(other: str, words: str, **bound) -> Condition:
    """On the share that `net` renders OOD, less that of another run; seeds are paired."""
    difference = lambda e: share(e.net) - share(getattr(e, other))
    name = f"share rendered OOD, less that {words}"
    return Condition(name, difference, cells=held_out_cells, least=-1, **bound)


RENDERED_ID = {"trained": id_of_worst("net"), "trained_name": "share rendered ID"}
WORST = "share rendered ID of the worst network"
FAILS_ON_RANGE = rendered_ood(below=FAILS)
RANGE = Claim(
    "F1",
    "a decoder given the true factors does not render recombinations to a range",
    figure="sprites",
    runs={"net": "sprites_range", "control": "sprites_random"},
    **RENDERED_ID,
    as_stated=FAILS_ON_RANGE,
    stricter=Reading(
        (FAILS_ON_RANGE, less("control", "of as many held out at random", below=0)),
        id_of_worst("net", "control"),
        WORST,
    ),
    details=lambda e: beside(e) | {"share rendered OOD, at random": share(e.control)},
    objection=(
        "A decoder may fail OOD because it has seen too little, whatever is held out. So the "
        "stricter reading compares it with one that lacks as many combinations at random."
    ),
)
ELEMENT = Claim(
    "F2",
    "the same decoder renders recombinations to an element",
    figure="sprites",
    runs={"net": "sprites_element"},
    **RENDERED_ID,
    as_stated=rendered_ood(above=RENDERS),
    stricter=lambda e: (rendered_ood(above=RENDERS), above_trivial(e)),
    details=beside,
    objection=(
        "An element's neighbours in every factor are seen, so it can be interpolated. The "
        "stricter reading asks for more than interpolation from the same codes renders."
    ),
)


# --- F3 and F4: remedies -----------------------------------------------------------------------


def remedy(name: str, statement: str, as_stated: tuple, other: str = "", **fields) -> Claim:
    """A claim on what a remedy adds, on paired seeds, stricter: and more than any predictor. Both
    networks must have learnt what they were shown, and in the stricter reading the `other` too."""
    networks = ("net", "plain")
    stricter = fields.pop("stricter", lambda e: (*as_stated, above_trivial(e)))
    return Claim(
        name,
        statement,
        figure="sprites_remedies",
        as_stated=as_stated,
        stricter=Reading(stricter, id_of_worst(*networks, *filter(None, [other])), WORST),
        trained=id_of_worst(*networks),
        trained_name=WORST,
        details=lambda e: {
            "share rendered OOD": share(e.net),
            "share rendered OOD without": share(e.plain),
            **beside(e),
        },
        **fields,
    )


ADDS = less("plain", "without", above=HELPS)
MEANS = remedy(
    "F3a",
    "marginal images add to the share of a range that a decoder renders",
    (ADDS,),
    runs={"net": "sprites_{run}", "plain": "sprites_range"},
    each=(
        {"code": "mean", "run": "mean"},
        {"code": "union", "run": "union"},
        {"code": "mean over held-out images too", "run": "mean_over_all"},
    ),
    objection=(
        "A marginal image over all combinations shows pixels of held-out ones, so what it adds may "
        "be a leak. It has a row of its own; the claim is about means over ID images alone."
    ),
)
SLICES = remedy(
    "F3b",
    "slices, which are real images, add more than marginal images do",
    (ADDS, less("mean", "with mean marginals", above=0)),
    other="mean",
    runs={"net": "sprites_slice", "plain": "sprites_range", "mean": "sprites_mean"},
    code="slice",
    objection=(
        "A slice is an ID image with an incomplete code. A decoder that was shown all ID images "
        "learns only one new thing from it: the meaning of a missing factor."
    ),
)
LOW_RANK = remedy(
    "F4",
    "low-rank embeddings with penalties add to the share of a range that is rendered",
    (ADDS,),
    other="without",
    stricter=(ADDS, less("without", "of low rank without penalties", above=HELPS)),
    runs={
        "net": "sprites_lowrank_penalties",
        "plain": "sprites_range",
        "without": "sprites_lowrank",
    },
    code="low rank",
    objection=(
        "The low-rank decoder differs from the plain one in more than its penalties. So the "
        "stricter reading compares it with itself without them."
    ),
)


# --- F5: pairs of factors ----------------------------------------------------------------------


@cache
def main_effects(settings) -> dict[tuple[str, str], float]:
    """By the names of two factors: the share of the pixels' variance over their values in what each
    of both does by itself. What is held out has no part in it."""
    scene = settings.scene()
    return marginals.main_effects_of_pairs(scene.picture, scene.factors)


def pair(config) -> tuple[str, str]:
    """The two factors of which a range is held out jointly: 'corner(A, B, share=...)'."""
    inside = config.task.held_out.partition("(")[2]
    first, second, _ = (word.strip() for word in inside.split(","))
    return first, second


OF_PAIR = "main effects", "share rendered OOD", "interpolator's"


@once
def of_pairs(e) -> tuple:
    """By pair what `OF_PAIR` names: (P,), (P, T) and (P, T)."""
    effects = main_effects(replace(e.first.config.task, held_out=""))
    return (
        np.array([effects[pair(run.config)] for run in e.pairs]),
        np.array([share(run) for run in e.pairs]),
        np.array([interpolated(run) for run in e.pairs]),
    )


def rank_correlation(a_P, b_P, beside_P=None) -> float:
    """Spearman's correlation; partial, if there is a third quantity that varies. Raises Undecided
    if one of the first two does not vary."""
    if np.ptp(a_P) == 0 or np.ptp(b_P) == 0:
        raise Undecided("all pairs of factors are rendered alike")
    ranks = [midranks(values) for values in (a_P, b_P)]
    if beside_P is not None and np.ptp(beside_P):
        design = np.stack([np.ones(len(a_P)), midranks(beside_P)], axis=1)
        ranks = [rank - design @ np.linalg.lstsq(design, rank, rcond=None)[0] for rank in ranks]
        if min(map(np.ptp, ranks)) < 1e-9 * len(a_P):
            return 0.0  # nothing is left that the third does not tell
    return float(np.corrcoef(*ranks)[0, 1])


def follows(e, partial: bool = False):
    """(T,) how well main effects rank the pairs by share rendered OOD."""
    effects, shares, interpolated = of_pairs(e)
    pairs = zip(shares.T, interpolated.T, strict=True)
    return np.array(
        [rank_correlation(effects, one, two if partial else None) for one, two in pairs]
    )


BY_MAIN_EFFECTS = Condition(
    "rank correlation over pairs of factors, share rendered OOD with main effects",
    follows,
    above=FOLLOWS,
)
PAIRS = Claim(
    "F5",
    "the pairs of factors that fail are those whose main effects explain least",
    figure="sprites_pairs",
    runs={"pairs": "sprites_pair_*"},
    when=lambda e: len(e.pairs) == math.comb(len(e.first.task.factors), 2),
    code="all pairs",
    trained=lambda e: np.min([share(run, ood=False) for run in e.pairs], axis=0),
    trained_name=WORST,
    as_stated=BY_MAIN_EFFECTS,
    stricter=(
        BY_MAIN_EFFECTS,
        Condition(
            "the same beyond the interpolator's share",
            lambda e: follows(e, partial=True),
            above=FOLLOWS,
        ),
    ),
    details=lambda e: {
        f"{' x '.join(pair(run.config))}, {what}": value
        for run, *values in zip(e.pairs, *of_pairs(e), strict=True)
        for what, value in zip(OF_PAIR, values, strict=True)
    },
    objection=(
        "Pairs differ in more than their main effects, such as the number of their values. These "
        "affect the interpolator too, so the stricter reading takes the correlation beyond the "
        "interpolator's share."
    ),
)


# --- F6: the other direction -------------------------------------------------------------------


JOINT = ("shape", "posX")  # what `runs.RANGE` holds out jointly


def accuracies(e, excluding=()) -> dict:
    """{factor: (T,)} accuracy OOD."""
    names = [factor.name for factor in e.net.task.factors if factor.name not in excluding]
    return {name: share(e.net, f"{name}_accuracy") for name in names}


EXACT_OOD = Condition(
    "exact accuracy OOD",
    lambda e: share(e.net, "exact_accuracy"),
    below=FAILS,
    cells=held_out_cells,
)
ENCODER = Claim(
    "F6",
    "an encoder of the same images fails on the range as the decoder does",
    figure="sprites",
    runs={"net": "sprites_encoder", "decoder": "sprites_range?"},
    code="all factors",
    trained=lambda e: median_over_checkpoints(exact_id(e.net.late.cells)),
    as_stated=EXACT_OOD,
    stricter=(
        EXACT_OOD,
        Condition(
            "least accuracy OOD of a factor other than shape and posX",
            lambda e: np.min(list(accuracies(e, excluding=JOINT).values()), axis=0),
            above=RENDERS,
            cells=held_out_cells,
        ),
    ),
    details=lambda e: (
        {f"{name} accuracy OOD": value for name, value in accuracies(e).items()}
        | beside(e)
        | ({"decoder's share rendered OOD": share(e.decoder)} if e.has("decoder") else {})
    ),
    objection=(
        "An encoder that reads any one factor badly is not exact. The stricter reading asks that "
        "it still reads all factors but shape and posX, which are held out jointly."
    ),
)
CLAIMS = (RANGE, ELEMENT, MEANS, SLICES, LOW_RANK, PAIRS, ENCODER)
