"""F1 to F6, ours: does forced rendering survive factors that people have?

Decoders are given the true factors of sprites, and some combinations are held out. What is judged
is the share of held-out combinations that are rendered (`tasks.scene`), median over late
checkpoints. Every claim has the shares of trivial predictors beside it, of which the interpolator
knows the codes that a seed was shown.
"""

import math
import re
from dataclasses import replace
from functools import cache

import jax
import numpy as np

from compgen_jax.claims import (
    NOT_TRAINED,
    Claim,
    above,
    below,
    claim,
    exact_id,
    learnt,
    median_over_checkpoints,
    most_seeds,
    note,
    unknown,
)
from compgen_jax.metrics.decodability import midranks
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.papers.forced_rendering.image_quantities import above_predictors
from compgen_jax.tasks import marginals
from compgen_jax.tasks import task as tasks

FAILS, RENDERS = 0.5, 0.9  # of held-out combinations
# Squared correlation with what is asked: of the median ID image of a network that has learnt
# shapes, and of an image whose shape shows. The mean of all shapes has .89, and .92 with a tenth of
# the right one, which counts as rendered.
LEARNT, SHAPE = 0.95, 0.94
HELPS = 0.2  # what a remedy adds at least to the share rendered
FOLLOWS = 0.5  # rank correlation over pairs of factors
JOINT = ("shape", "posX")  # what `runs.RANGE` holds out jointly
NOTE = (
    "F are ours: what forced rendering, its failure and both remedies, is on sprites, whose shape, "
    "scale, hue and position people name. A sprite is rendered if it has the right label, and "
    "correlates with what is asked more than with the nearest ID image."
)


def share(run, score: str = "rendered", ood: bool = True):
    """(S,) the mean score over held-out or ID cells, median over late checkpoints."""
    cells = run.late.cells
    return median_over_checkpoints(mean_score(cells, score, cells.held_out == ood))


def _held_out(run) -> int:
    return int(run.late.cells.held_out.sum())


def id_r2(run):
    """(S,) the squared correlation of the median ID image with what is asked, median over late
    checkpoints."""
    cells = run.late.cells
    if "image_r2" not in cells.scores:
        return unknown(f"{NOT_TRAINED}: what was scored before there was an image_r2")
    return median_over_checkpoints(np.median(cells.scores["image_r2"][..., ~cells.held_out], -1))


def shapes_rendered(run):
    """(S,) the share of held-out cells that are rendered so that their shape shows."""
    cells = run.late.cells
    sharp = cells.scores["rendered"] * (cells.scores.get("image_r2", np.nan) >= SHAPE)
    return median_over_checkpoints(sharp[..., cells.held_out].mean(axis=-1))


def _learnt(*runs):
    """Every one of these networks renders what it was shown, shapes too."""
    of_worst = " of the worst network" if len(runs) > 1 else ""
    least = min((share(run, ood=False) for run in runs), key=np.mean)
    yield learnt(least, f"share rendered ID{of_worst}")
    r2 = [id_r2(run) for run in runs]
    lacking = [values for values in r2 if isinstance(values, dict)]
    least = lacking[0] if lacking else min(r2, key=np.mean)
    yield learnt(least, f"r² of the median ID image{of_worst}", LEARNT)


# --- trivial predictors ------------------------------------------------------------------------


@cache
def _of_task(settings) -> dict[str, float]:
    """The share of held-out cells that each predictor renders which knows all ID images."""
    task = settings.make()
    scores = jax.jit(lambda key: tasks.trivial_scores(task, key))(jax.random.key(0))
    ood = tasks.regions(task)["ood"]
    return {
        name: float(np.mean(values[task.accuracy], where=ood)) for name, values in scores.items()
    }


def interpolated(run):
    """(S,) the share of held-out cells that the interpolator of each seed's own data renders."""
    score = f"ood.interpolator_{run.config.task.make().accuracy}"
    return np.array([of_seed[score] for of_seed in run.summary["seeds"].values()])


def predictors(run) -> dict:
    """{name: share of held-out cells}, (S,) for the interpolator."""
    return {"interpolator": interpolated(run)} | _of_task(run.config.task)


def _beside(net):
    """What trivial predictors render, or read, of what the network is asked OOD."""
    for name, of_predictor in predictors(net).items():
        yield note(f"OOD by {name.replace('_', ' ')}", of_predictor)


def _above_trivial(net):
    return above_predictors(share(net), predictors(net), _held_out(net))


def _apart(condition, bound, net, other, words: str, **how):
    """The condition on what a network renders OOD less what another does, in pairs of seeds."""
    difference, name = share(net) - share(other), f"share rendered OOD, less that {words}"
    return condition(bound, difference, name, cells=_held_out(net), least=-1, **how)


# --- F1 and F2: what a decoder renders ---------------------------------------------------------

OF_RANGE = {
    "figure": "sprites",
    "runs": {"net": "sprites_range", "control": "sprites_random"},
}
OF_ELEMENT = {"figure": "sprites", "runs": {"net": "sprites_element"}}
RENDERED, SHOWN = "share rendered OOD", f"share rendered OOD with an r² of {SHAPE:g}"


def _fails_on_range(net, control):
    yield below(FAILS, share(net), RENDERED, cells=_held_out(net))
    yield from _beside(net)
    yield note("share rendered OOD, at random", share(control))


@claim("F1", **OF_RANGE)
def range_is_not_rendered(net, control):
    """A decoder given the true factors does not render recombinations to a range."""
    yield from _learnt(net)
    yield from _fails_on_range(net, control)


@claim("F1.shape", **OF_RANGE)
def shapes_of_range_are_not_rendered(net, control):
    """A decoder given the true factors does not render recombinations to a range so that their
    shapes show."""
    yield from _learnt(net)
    yield below(FAILS, shapes_rendered(net), SHOWN, cells=_held_out(net))
    yield note("the same, at random", shapes_rendered(control))


@claim("F1.random", **OF_RANGE)
def range_is_rendered_less_than_random(net, control):
    """A decoder does not render recombinations to a range, and fewer than as many held out at
    random."""
    yield from _learnt(net, control)
    yield from _fails_on_range(net, control)
    yield _apart(below, 0, net, control, "of as many held out at random")


@claim("F2", **OF_ELEMENT)
def element_is_rendered(net):
    """The same decoder renders recombinations to an element."""
    yield from _learnt(net)
    yield above(RENDERS, share(net), RENDERED, cells=_held_out(net))
    yield from _beside(net)


@claim("F2.shape", **OF_ELEMENT)
def shapes_of_element_are_rendered(net):
    """The same decoder renders recombinations to an element so that their shapes show."""
    yield from _learnt(net)
    yield above(RENDERS, shapes_rendered(net), SHOWN, cells=_held_out(net))


@claim("F2.predictors", **OF_ELEMENT)
def element_is_rendered_beyond_predictors(net):
    """The same decoder renders recombinations to an element, more than any trivial predictor."""
    yield from element_is_rendered.function(net)
    yield _above_trivial(net)


# --- F3 and F4: remedies -----------------------------------------------------------------------

REMEDIES = {
    "mean": "sprites_mean",
    "union": "sprites_union",
    "mean over held-out images too": "sprites_mean_over_all",
}
OF_MEANS = {
    "figure": "sprites_remedies",
    "cases": [{"case": case, "net": net} for case, net in REMEDIES.items()],
    "runs": {"net": "{net}", "plain": "sprites_range"},
}
OF_SLICES = {
    "figure": "sprites_remedies",
    "cases": [{"case": "slice"}],
    "runs": {"net": "sprites_slice", "plain": "sprites_range", "mean": "sprites_mean"},
}
OF_LOW_RANK = {
    "figure": "sprites_remedies",
    "cases": [{"case": "low rank"}],
    "runs": {
        "net": "sprites_lowrank_penalties",
        "plain": "sprites_range",
        "without": "sprites_lowrank",
    },
}


def _adds(net, plain):
    """A remedy adds to the share that is rendered without it."""
    yield _apart(above, HELPS, net, plain, "without", against=0)
    yield from _shares(net, plain)


def _shares(net, plain):
    yield note("share rendered OOD", share(net))
    yield note("share rendered OOD without", share(plain))
    yield from _beside(net)


@claim("F3a", **OF_MEANS)
def means_add(net, plain):
    """Marginal images add to the share of a range that a decoder renders: {case}."""
    yield from _learnt(net, plain)
    yield from _adds(net, plain)


@claim("F3a.predictors", **OF_MEANS)
def means_add_beyond_predictors(net, plain):
    """With marginal images a decoder renders more of a range than without, and than any trivial
    predictor: {case}."""
    yield from means_add.function(net, plain)
    yield _above_trivial(net)


def _slices_add(net, plain, mean):
    yield from _adds(net, plain)
    yield _apart(above, 0, net, mean, "with mean marginals")


@claim("F3b", **OF_SLICES)
def slices_add_more(net, plain, mean):
    """Slices, which are real images, add more than marginal images do."""
    yield from _learnt(net, plain)
    yield from _slices_add(net, plain, mean)


@claim("F3b.predictors", **OF_SLICES)
def slices_add_more_beyond_predictors(net, plain, mean):
    """Slices add more than marginal images do, and more than any trivial predictor."""
    yield from _learnt(net, plain, mean)
    yield from _slices_add(net, plain, mean)
    yield _above_trivial(net)


def _most_add(net, plain):
    """Seeds render nearly all of the range, or little: most render more than without."""
    more = share(net) - share(plain).mean() > HELPS
    yield most_seeds(more, f"seeds that render {HELPS:g} more of the range than without")
    yield from _shares(net, plain)


@claim("F4", **OF_LOW_RANK)
def low_rank_adds(net, plain, without):
    """Low-rank embeddings with penalties add to the share of a range that is rendered, in most
    seeds."""
    yield from _learnt(net, plain)
    yield from _most_add(net, plain)


@claim("F4.penalties", **OF_LOW_RANK)
def penalties_add(net, plain, without):
    """Low-rank embeddings with penalties add to it in most seeds, and more than low-rank embeddings
    alone."""
    yield from _learnt(net, plain, without)
    yield from _most_add(net, plain)
    more = share(net) - share(without) > HELPS
    yield most_seeds(more, f"seeds that render {HELPS:g} more of it than without penalties")


@claim(
    "F7",
    figure="sprites_remedies",
    cases=[{"case": "per pixel"}],
    runs={"net": "sprites_pixelwise_range", "plain": "sprites_range"},
)
def per_pixel_adds(net, plain):
    """A per-pixel decoder renders more of a range than one that upsamples, in most seeds."""
    yield from _learnt(net, plain)
    yield from _most_add(net, plain)


OF_SHAPES = {
    "figure": "sprites",
    "cases": [{"held_out": name} for name in ("range", "middle", "element")],
}
UPSAMPLED = {"plain": "sprites_{held_out}"}


@claim("F7.shape", **OF_SHAPES, runs={"net": "sprites_pixelwise_{held_out}"} | UPSAMPLED)
def per_pixel_adds_shapes(held_out, net, plain):
    """A per-pixel decoder renders more so that shapes show than one that upsamples, in most seeds:
    {held_out}."""
    yield from _learnt(net, plain)
    more = shapes_rendered(net) - shapes_rendered(plain).mean() > HELPS
    yield most_seeds(more, f"seeds that render {HELPS:g} more so that shapes show")
    yield note(SHOWN, shapes_rendered(net))
    yield note(f"{SHOWN}, upsampled", shapes_rendered(plain))


@claim("F8", **OF_SHAPES, runs={"net": "sprites_lowrank_{held_out}"} | UPSAMPLED)
def low_rank_adds_shapes(held_out, net, plain):
    """A low-rank decoder renders more so that shapes show than one that upsamples, in most seeds:
    {held_out}."""
    yield from per_pixel_adds_shapes.function(held_out, net, plain)


@claim(
    "F9",
    figure="sprites_columns",
    cases=[{"case": "squares"}, {"case": "hearts"}],
    runs={"net": "sprites_{case}_apart", "plain": "sprites_{case}_beside"},
)
def what_is_shown_nearby_counts(net, plain):
    """If a shape is shown in two of six columns, a decoder renders it in all others if each is next
    to a shown one, and less of it if the two are side by side: {case}."""
    yield from _learnt(net, plain)
    yield above(RENDERS, share(net), RENDERED, cells=_held_out(net))
    yield _apart(above, HELPS, net, plain, "with columns side by side", against=0)
    yield note("share rendered OOD, side by side", share(plain))
    yield from _beside(net)


# --- F5: pairs of factors ----------------------------------------------------------------------


@cache
def main_effects(settings) -> dict[tuple[str, str], float]:
    """By the names of two factors: the share of the pixels' variance over their values in what each
    of both does by itself. What is held out has no part in it."""
    scene = settings.scene()
    return marginals.main_effects_of_pairs(scene.picture, scene.factors)


def pair(config) -> tuple[str, str]:
    """The two factors of which a range is held out jointly: 'corner(A, B, share=...)'."""
    return re.match(r"corner\((\w+), (\w+),", config.task.held_out).groups()


def rank_correlation(a_P, b_P, beside_P=None) -> float:
    """Spearman's correlation; partial, if there is a third quantity that varies. NaN if one of the
    first two does not vary."""
    if np.ptp(a_P) == 0 or np.ptp(b_P) == 0:
        return np.nan
    ranks = [midranks(values) for values in (a_P, b_P)]
    if beside_P is not None and np.ptp(beside_P):
        design = np.stack([np.ones(len(a_P)), midranks(beside_P)], axis=1)
        ranks = [rank - design @ np.linalg.lstsq(design, rank, rcond=None)[0] for rank in ranks]
        if min(map(np.ptp, ranks)) < 1e-9 * len(a_P):
            return 0.0  # nothing is left that the third does not tell
    return float(np.corrcoef(*ranks)[0, 1])


class Pairs:
    """By pair of factors what main effects explain, (P,), and what is rendered OOD by networks and
    by the interpolator, (P, S)."""

    def __init__(self, runs):
        effects = main_effects(replace(runs[0].config.task, held_out=""))
        self.is_whole = len(runs) == math.comb(len(runs[0].task.factors), 2)
        self.effects = np.array([effects[pair(run.config)] for run in runs])
        self.shares = np.array([share(run) for run in runs])
        self.interpolated = np.array([interpolated(run) for run in runs])

    def follow(self, partial: bool):
        """(S,) how well main effects rank the pairs by share rendered OOD; `partial`, beyond the
        interpolator's share."""
        values = []
        for shares_P, by_krr_P in zip(self.shares.T, self.interpolated.T, strict=True):
            values.append(rank_correlation(self.effects, shares_P, by_krr_P if partial else None))
        alike = unknown("all pairs of factors are rendered alike")
        return alike if np.isnan(values).any() else np.array(values)


OF_PAIRS = {
    "figure": "sprites_pairs",
    "cases": [{"case": "all pairs"}],
    "runs": {"pairs": "sprites_pair_*"},
}


@claim("F5", **OF_PAIRS)
def failing_pairs_have_little_main_effects(pairs):
    """The pairs of factors that fail are those whose main effects explain least."""
    table = Pairs(pairs)
    if not table.is_whole:
        return
    yield from _learnt(*pairs)
    name = "rank correlation over pairs of factors, share rendered OOD with main effects"
    yield above(FOLLOWS, table.follow(partial=False), name, against=0)
    titles = "main effects", "share rendered OOD", "interpolator's"
    for run, *values in zip(pairs, table.effects, table.shares, table.interpolated, strict=True):
        for title, value in zip(titles, values, strict=True):
            yield note(f"{' x '.join(pair(run.config))}, {title}", value)


@claim("F5.interpolator", **OF_PAIRS)
def failing_pairs_have_little_main_effects_beyond_interpolation(pairs):
    """The pairs of factors that fail are those whose main effects explain least, also beyond what
    the interpolator tells."""
    table = Pairs(pairs)
    if table.is_whole:
        yield from failing_pairs_have_little_main_effects.function(pairs)
        name = "the same beyond the interpolator's share"
        yield above(FOLLOWS, table.follow(partial=True), name, against=0)


# --- F6: the other direction -------------------------------------------------------------------

OF_ENCODER = {
    "figure": "sprites",
    "cases": [{"case": "all factors"}],
    "runs": {"net": "sprites_encoder", "decoder": "sprites_range"},
}


@claim("F6", **OF_ENCODER)
def encoder_fails_too(net, decoder):
    """An encoder of the same images fails on the range as the decoder does."""
    yield learnt(exact_id(net.late.cells))
    exact = share(net, "exact_accuracy")
    yield below(FAILS, exact, "exact accuracy OOD", cells=_held_out(net))
    for factor in net.task.factors:
        yield note(f"{factor.name} accuracy OOD", share(net, f"{factor.name}_accuracy"))
    yield from _beside(net)
    yield note("decoder's share rendered OOD", share(decoder))


@claim("F6.joint", **OF_ENCODER)
def encoder_fails_on_joint_factors_alone(net, decoder):
    """An encoder fails on the range, and still reads all factors but shape and posX, which are held
    out jointly."""
    yield from encoder_fails_too.function(net, decoder)
    names = [factor.name for factor in net.task.factors if factor.name not in JOINT]
    least = np.min([share(net, f"{name}_accuracy") for name in names], axis=0)
    name = "least accuracy OOD of a factor other than shape and posX"
    yield above(RENDERS, least, name, cells=_held_out(net))


CLAIMS = tuple(value for value in list(globals().values()) if isinstance(value, Claim))
