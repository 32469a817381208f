"""K1 to K5: is it composition, or the lighting of pixels? Controls of our own.

Under a block hold-out some pixels never carry signal in training, and a decoder whose pixels
share no weights cannot learn to light them, whatever its code (121 of 784 for the donut 6 to 22).
Stripes light them. So the failure without stripes (C1), and the success with them, may be about
pixels and not about factors. Each control takes one of these explanations away.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from compgen_jax.claims import (
    Condition,
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
from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import CellResults, mean_score
from compgen_jax.papers.forced_rendering.image_quantities import (
    CLEARLY,
    above_trivial,
    composes,
    notes_on_images,
    over_interpolator,
    post_hoc,
    rendered,
    rendered_id,
    rendered_ood,
    rendered_shown,
)
from compgen_jax.runs import results
from compgen_jax.tasks import baselines

MOST = 0.5  # of the images that must show their second object
LIT = 0.1  # of the largest signal: what counts as a pixel lit in training
COMPOSED = 0.9  # of the held-out cells
BUMP = [{"case": "bump"}]


def lit_pixels(cells: CellResults, level: float = LIT):
    """(N, N) bool: pixels that some seen image lights to a share of the largest signal."""
    return baselines.lit_pixels(cells.truths[~cells.held_out], level)


# --- K1: another object lights every pixel -----------------------------------------------------

TWO_OBJECTS = {"figure": "two_objects", "cases": BUMP, "runs": {"net": "two_objects"}}


# Each object is scored with the true other one taken off, so that a faulty second object fails the
# first. Only images whose second object is rendered count, and they must be most of every
# network's.
@claim("K1", **TWO_OBJECTS)
def another_object_lights(net):
    """With a second object that lights every pixel, the first is still not rendered in the
    square."""
    cells = net.late.cells
    first, second = (cells.scores[name].astype(bool) for name in ("rendered", "rendered_second"))
    both = (first & second)[..., ~cells.held_out].mean(axis=-1)
    yield learnt(both, "share rendered ID, both objects")
    beside = second[..., cells.held_out]
    counted = beside.sum(axis=-1)
    if (beside.mean(axis=-1) > MOST).all():
        share = (first[..., cells.held_out] & beside).sum(axis=-1) / counted
    else:
        share = unknown("the second object is not rendered beside a held-out first")
    name = f"share rendered OOD of the first object, where the second is{post_hoc(net)}"
    yield below(0.5, share, name, cells=counted.mean())
    yield note("share of pixels lit in training", lit_pixels(cells).mean())
    yield from notes_on_images(net)


@claim("K1.second", **TWO_OBJECTS)
def another_object_lights_and_is_rendered(net):
    """With a second object that lights every pixel, the first is still not rendered in the square,
    and the second is."""
    yield from another_object_lights.function(net)
    cells = net.late.cells
    share = mean_score(cells, "rendered_second", cells.held_out)
    count = cells.held_out.sum()
    yield above(MOST, share, "share rendered OOD of the second object", cells=count)


# --- K2: what counts is lit --------------------------------------------------------------------


def on_lit_pixels(cells: CellResults, scores: Callable):
    """The results with the pixels blanked that no seen image lit, scored anew, and (B,) bool, the
    held-out cells whose own pixel was lit. `scores`: signal, truth, point -> scalars by name."""
    lit = lit_pixels(cells)
    x, y = cells.factors.round().astype(int).T
    drawn, truths = cells.predictions * lit, cells.truths * lit
    scored = results.scored(scores, drawn, truths, cells.factors)
    masked = cells._replace(predictions=drawn, truths=truths, scores=scored)
    return masked, cells.held_out & lit[y, x]


# Only held-out cells whose own pixel training lit count; all other pixels are blanked in what is
# drawn and in what is asked.
@claim("K2", figure="controls", cases=BUMP, runs={"net": "bump_cnn"})
def lit_pixels_fail(net):
    """Scored on the pixels that training lit alone, held-out combinations are still not
    rendered."""
    cells = net.late.cells
    masked, counted = on_lit_pixels(cells, net.task.scores)
    yield learnt(exact_id(cells))
    share = mean_score(masked, "rendered", counted)
    yield below(0.5, share, "share rendered OOD, lit pixels", cells=counted.sum())
    exact = mean_score(masked, "exact_accuracy", counted)
    yield note("exact accuracy OOD, lit pixels", exact)
    error = evaluation.relative_error(masked, cells.held_out)
    yield note("MSE OOD / blank image's, lit pixels", error)
    yield note("share of pixels lit in training", lit_pixels(cells).mean())
    reachable = counted.sum() / cells.held_out.sum()
    yield note("share of held-out cells whose pixel is lit", reachable)


# --- K3: what is held out ----------------------------------------------------------------------

RANDOM_CELLS = {"figure": "controls", "cases": BUMP, "runs": {"net": "random_cells"}}


# Unlike a block, nearly each of these cells has a seen neighbour, and every pixel is lit.
@claim("K3", **RANDOM_CELLS)
def random_cells_are_rendered(net):
    """As many combinations, held out at random instead of as a block, are rendered."""
    yield learnt(exact_id(net.late.cells))
    yield rendered_ood(net, above=COMPOSED)
    yield from notes_on_images(net)


@claim("K3.interpolation", **RANDOM_CELLS)
def random_cells_are_interpolated(net):
    """As many combinations, held out at random, are rendered, and interpolation renders as many."""
    yield from random_cells_are_rendered.function(net)
    yield over_interpolator(net, above=-CLEARLY)


# --- K4: a ladder of decoders ------------------------------------------------------------------

# From weights that know what is drawn beside a pixel to weights that know a pixel by its place.
RUNGS = "conv", "conv_coordinates", "pixelwise_onehot", "pixelwise_bump", "transformer"


def ladder(place: str) -> dict[str, str]:
    """The name of every rung's run, by rung."""
    return {rung: f"ladder_{rung}_{place}" for rung in RUNGS}


def rise(rungs, share=rendered, name: str = "") -> Condition:
    """On the slope, over the rungs of a ladder, of the share of seeds that compose. It is the mean
    of the slopes of every seed's answers, so that the interval is over seeds."""
    answers = [median_over_checkpoints(composes(run, share).astype(float)) > 0.5 for run in rungs]
    steps = np.arange(len(answers)) - (len(answers) - 1) / 2
    slopes = np.stack(answers, axis=-1) @ steps / (steps @ steps)
    return above(0, slopes, f"rise from rung to rung of the share of seeds that compose{name}")


# not exact accuracy: the brightest pixel of a wide bump is one among many that are nearly as bright
def trained(rungs: dict):
    for rung, run in rungs.items():
        yield learnt(rendered_id(run.late.cells), f"share rendered ID, {rung.replace('_', ' ')}")


# Both conditions were fixed before any rung was trained; of the corner, only that it rises.
@claim(
    "K4",
    figure="ladder",
    cases=[{"where": "donut"}, {"where": "corner"}],
    runs=ladder("{where}"),
)
def place_alone_composes(where, **rungs):
    """On the whole, the share of seeds that compose the {where} without a remedy rises from
    convolutional decoders to those that are asked pixel by pixel."""
    yield from trained(rungs)
    yield rise(rungs.values())
    if where == "donut":
        yield most_seeds(composes(rungs[RUNGS[-1]]), "share of seeds that compose, transformer")
    for rung, run in rungs.items():
        name = rung.replace("_", " ")
        yield note(f"share of seeds that compose, {name}", composes(run))
        yield note(f"share rendered OOD, {name}", rendered(run.late.cells))


def rendered_lit(scores: Callable, cells: CellResults):
    """Share rendered of the held-out cells whose own pixel is lit, on lit pixels alone."""
    masked, counted = on_lit_pixels(cells, scores)
    return mean_score(masked, "rendered", counted)


WIDE = {f"{rung}_wide": name for rung, name in ladder("wide").items()}


@claim("K4.light", figure="ladder", cases=BUMP, runs=WIDE | ladder("donut"))
def light_keeps_the_order(**runs):
    """The share of seeds that compose rises from convolutional decoders to those that are asked
    pixel by pixel also where wide bumps light every pixel, and on lit pixels alone."""
    wide, narrow = ({name: runs[name] for name in names} for names in (WIDE, RUNGS))
    yield from trained(wide | narrow)
    yield rise(wide.values(), name=", wide bumps")
    score = narrow[RUNGS[0]].task.scores
    yield rise(narrow.values(), partial(rendered_lit, score), ", lit pixels")
    for rung, run in wide.items():
        yield note(f"share of seeds that compose, {rung.replace('_', ' ')}", composes(run))


# --- K5: what stripes give ---------------------------------------------------------------------

STRIPES = {"figure": "controls", "cases": BUMP, "runs": {"net": "donut_stripes"}}
COMPOSE = "share of seeds that compose"


@claim("K5", **STRIPES)
def stripes_compose(net):
    """Trained on stripes and a few bumps, networks compose the square."""
    yield learnt(rendered_shown(net.late), "share rendered of the bumps shown")
    yield most_seeds(composes(net), COMPOSE)
    yield note("share rendered OOD", rendered(net.late.cells))
    yield from notes_on_images(net)


# From the stripes themselves the bumps could be drawn without error, as their product.
@claim("K5.baselines", **STRIPES)
def stripes_beat_predictors(net):
    """Trained on stripes and a few bumps, networks compose the square, better than any predictor
    that knows the seen bumps alone."""
    yield from stripes_compose.function(net)
    yield from above_trivial(net)


# Written before any network was trained on as many bumps as without stripes, and as many stripes.
@claim("K5.added", **STRIPES | {"runs": {"net": "bump_cnn_stripes"}})
def added_stripes_compose(net):
    """Trained on stripes and all bumps around the square, networks compose the square."""
    yield from stripes_compose.function(net)


# Each stripe comes with the code of another, so it gives the same light and no factor.
@claim("K5.shuffled", **STRIPES | {"runs": {"net": "donut_stripes_shuffled"}})
def shuffled_stripes_fail(net):
    """Trained on stripes with the codes of other stripes and a few bumps, networks do not compose
    the square."""
    yield learnt(rendered_shown(net.late), "share rendered of the bumps shown")
    yield Condition(COMPOSE, composes(net).astype(float), below=0.5, counted=True)
    yield note("share rendered OOD", rendered(net.late.cells))
    yield from notes_on_images(net)


# --- K11: which weights read the code ----------------------------------------------------------

CODES = "bump", "onehot"


def answers_of(**runs):
    """What two networks must have learnt, and how much of the square they render."""
    yield from trained(runs)
    for weights, run in runs.items():
        yield note(f"share rendered OOD, {weights}", rendered(run.late.cells))


def fails(weights: str, net) -> Condition:
    answers = composes(net).astype(float)
    return Condition(f"{COMPOSE}, {weights}", answers, below=0.5, counted=True)


# Found at seeds 50 to 55, and written down before any of the seeds judged here was trained.
@claim(
    "K11",
    figure="readers",
    cases=[{"layers": of, "code": code} for of in ("pixels", "convolutions") for code in CODES],
    runs={weights: f"{{layers}}_{weights}_{{code}}" for weights in ("shared", "own")},
)
def shared_weights_compose(layers, code, shared, own):
    """With the {code} code, a network of {layers} composes the square if all pixels share the
    weights that read the code, and does not if each pixel has its own."""
    yield from answers_of(shared=shared, own=own)
    yield most_seeds(composes(shared), f"{COMPOSE}, shared")
    yield fails("own", own)


@claim(
    "K11.doubling",
    figure="readers",
    cases=[{"code": code} for code in CODES],
    runs={weights: f"doubling_{weights}_{{code}}" for weights in ("shared", "own")},
)
def doubled_images_do_not(code, shared, own):
    """With the {code} code, a convolutional decoder that doubles its image twice, and mixes x and y
    before a pixel is told its place, does not compose the square, whether its first pixels share
    the weights that read the code or not."""
    yield from answers_of(shared=shared, own=own)
    yield fails("shared", shared)
    yield fails("own", own)


@claim(
    "K11.besides",
    figure="overview",
    cases=[{"besides": besides} for besides in ("as_many_parameters", "two_objects")],
    runs={weights: f"pixels_{weights}_{{besides}}" for weights in ("shared", "own")},
)
def sharing_besides(besides, shared, own):
    """With {besides}, too, a per-pixel network composes the square if all pixels share the weights
    that read the code, and does not if each pixel has its own."""
    yield from shared_weights_compose.function(None, None, shared, own)


@claim(
    "K11.upsampled",
    figure="overview",
    cases=[{"times": "once"}, {"times": "twice"}],
    runs={weights: f"upsampled_{{times}}_{weights}" for weights in ("shared", "own")},
)
def sharing_in_upsampling(times, shared, own):
    """A convolutional decoder that doubles its image {times}, and tells a pixel its place before x
    and y are mixed, composes the square if all pixels share the weights that read the code, and
    does not if each has its own."""
    yield from shared_weights_compose.function(None, None, shared, own)


@claim(
    "K11.lacks",
    figure="overview",
    cases=[{"lacks": of} for of in ("mixed", "relu", "coordinates", "narrow")],
    runs={"net": "upsampled_once_shared", "lacking": "upsampled_once_{lacks}"},
)
def what_upsampling_needs(lacks, net, lacking):
    """A convolutional decoder that doubles its image once renders less of the square, in most
    seeds, if one thing is changed: {lacks}."""
    yield from answers_of(net=net, lacking=lacking)
    less = rendered(lacking.late.cells) < rendered(net.late.cells).mean()
    yield most_seeds(less, "seeds that render less of the square")


@claim("K11.wide", figure="overview", cases=BUMP, runs={"own": "pixels_own_wide"})
def wide_bumps_need_no_sharing(own):
    """With bumps so wide that they light every pixel, a per-pixel network composes the square by
    weights of each pixel's own."""
    yield from answers_of(own=own)
    yield most_seeds(composes(own), f"{COMPOSE}, own")


@claim(
    "K11.stripes",
    figure="overview",
    cases=BUMP,
    runs={"own": "pixels_own_stripes", "shuffled": "pixels_own_stripes_shuffled"},
)
def stripes_need_no_sharing(own, shuffled):
    """Trained on bumps and stripes, a per-pixel network composes the square by weights of each
    pixel's own, and does not if the stripes have the codes of other stripes."""
    yield from answers_of(own=own, shuffled=shuffled)
    yield most_seeds(composes(own), f"{COMPOSE}, own")
    yield fails("shuffled", shuffled)


@claim(
    "K11.apart",
    figure="apart",
    cases=BUMP,
    runs={place: f"pixels_apart_{place}" for place in ("corner", "middle")},
)
def uncovered_pixels_learn_from_others(corner, middle):
    """If the pixels that no shown bump covers share the weights that read the code with each other
    alone, bumps there are not rendered; if as many pixels in a corner do, they are."""
    yield from answers_of(corner=corner, middle=middle)
    cells = corner.late.cells
    x, y = cells.factors.round().astype(int).T
    uncovered = cells.held_out & ~lit_pixels(cells)[y, x]
    name = "share of seeds that render most bumps on uncovered pixels"
    if not uncovered.any():
        yield above(0.5, unknown("shown bumps cover every pixel"), name)
        return
    most = lambda run: (mean_score(run.late.cells, "rendered", uncovered) > 0.5).astype(float)
    yield most_seeds(most(corner), f"{name}, corner apart")
    yield Condition(f"{name}, middle apart", most(middle), below=0.5, counted=True)


@claim(
    "K5.hole",
    figure="hole",
    cases=BUMP,
    runs={place: f"bump_cnn_stripes_hole_{place}" for place in ("corner", "middle")},
)
def stripes_help_where_they_draw(corner, middle):
    """Bumps on pixels that no shown bump covers are not rendered if added stripes leave these
    pixels blank, and are if they leave as many blank in a corner."""
    yield from uncovered_pixels_learn_from_others.function(corner, middle)


@claim(
    "K11.left_out",
    figure="hole",
    cases=[
        {"case": "usual decoder", "network": "bump_cnn"},
        {"case": "per pixel", "network": "pixels_own"},
    ],
    runs={place: f"{{network}}_stripes_left_out_{place}" for place in ("corner", "middle")},
)
def stripes_help_where_they_are_heard(case, network, corner, middle):
    """Bumps on pixels that no shown bump covers are not rendered if added stripes say nothing of
    these pixels, and are if they say nothing of as many in a corner."""
    yield from uncovered_pixels_learn_from_others.function(corner, middle)


@claim(
    "K11.parts",
    figure="overview",
    cases=BUMP,
    runs={"net": "doubling_unmixed_undoubled", "plain": "doubling_shared_bump"},
)
def without_parts_more_is_rendered(net, plain):
    """A convolutional decoder that neither doubles its image nor mixes x and y before it is told a
    place renders more of the square than one that does both, in most seeds."""
    yield from answers_of(net=net, plain=plain)
    more = rendered(net.late.cells) > rendered(plain.late.cells).mean()
    yield most_seeds(more, "seeds that render more of the square")


CLAIMS = (
    another_object_lights,
    another_object_lights_and_is_rendered,
    lit_pixels_fail,
    random_cells_are_rendered,
    random_cells_are_interpolated,
    place_alone_composes,
    light_keeps_the_order,
    stripes_compose,
    stripes_beat_predictors,
    added_stripes_compose,
    stripes_help_where_they_draw,
    stripes_help_where_they_are_heard,
    shuffled_stripes_fail,
    shared_weights_compose,
    doubled_images_do_not,
    sharing_besides,
    sharing_in_upsampling,
    what_upsampling_needs,
    wide_bumps_need_no_sharing,
    stripes_need_no_sharing,
    uncovered_pixels_learn_from_others,
    without_parts_more_is_rendered,
)


def trivial_errors(cells: CellResults) -> dict[str, float]:
    """MSE OOD of every trivial predictor over a blank image's, by name."""
    ood = cells.held_out
    known = baselines.asked_on_grid(cells.truths, ood, cells.sizes)
    truths = cells.truths[ood]
    return {
        name: float(np.square(predict(known)[ood] - truths).mean() / np.square(truths).mean())
        for name, predict in baselines.GRID_PREDICTORS.items()
    }
