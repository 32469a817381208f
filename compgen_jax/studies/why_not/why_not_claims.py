"""K4, K5 and K11: which networks compose a square of bumps, and why others do not."""

import numpy as np

from compgen_jax.claims import (
    Condition,
    above,
    claim,
    learnt,
    median_over_checkpoints,
    most_seeds,
    note,
    unknown,
)
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.papers.forced_rendering.control_claims import lit_pixels, on_lit_pixels
from compgen_jax.papers.forced_rendering.image_quantities import (
    above_predictors,
    from_codes,
    notes_on_images,
    rendered,
    rendered_id,
    rendered_shown,
    slope,
    trivial_shares,
)
from compgen_jax.studies.why_not.why_not_presets import RUNGS, VARIANTS

COMPOSE = "share of seeds that compose"


def composes(run, share=rendered):
    """(S, C) bool: a network renders more than half of the held-out cells, and more than the
    interpolator, by a `share` of `CellResults`."""
    of_network = share(run.late.cells)
    return (of_network > 0.5) & (of_network > share(run.late.interpolator))


def most_fail(does, name: str) -> Condition:
    """The condition that fewer than half of the seeds do something."""
    return Condition(name, does.astype(float), below=0.5, counted=True)


# --- K4: a ladder of decoders ------------------------------------------------------------------


def ladder(support: str) -> dict[str, str]:
    """The name of every rung's run, by rung: to weights that know a pixel by its place."""
    return {rung: f"ladder_{rung}_{support}" for rung in RUNGS}


def rise(rungs, share=rendered, name: str = "") -> Condition:
    """On the slope, over the rungs of a ladder, of the share of seeds that compose: the mean of the
    slopes of every seed's answers."""
    answers = [median_over_checkpoints(composes(run, share).astype(float)) > 0.5 for run in rungs]
    slopes = slope(np.stack(answers, axis=-1).astype(float))
    return above(0, slopes, f"rise from rung to rung of the share of seeds that compose{name}")


# not exact accuracy: the brightest pixel of a wide bump is one among many that are nearly as bright
def trained(runs: dict):
    for name, run in runs.items():
        yield learnt(rendered_id(run.late.cells), f"share rendered ID, {name.replace('_', ' ')}")


# Both conditions were fixed before any rung was trained; of the corner, only that it rises.
@claim(
    "K4",
    after=True,
    figure="ladder",
    cases=[{"where": "donut"}, {"where": "corner"}],
    runs=ladder("{where}"),
)
def place_alone_composes(where, **rungs):
    """On the whole, the share of seeds that compose the {where} without a remedy rises from
    convolutional decoders to those that are asked pixel by pixel."""
    yield from trained(rungs)
    yield rise(rungs.values())
    for rung, run in rungs.items():
        name, answers = rung.replace("_", " "), composes(run)
        if (where, rung) == ("donut", "transformer"):
            yield most_seeds(answers, f"{COMPOSE}, {name}")
        else:
            yield note(f"{COMPOSE}, {name}", answers)
        yield note(f"share rendered OOD, {name}", rendered(run.late.cells))


WIDE = {f"{rung}_wide": name for rung, name in ladder("wide").items()}


@claim("K4.light", figure="ladder", cases=[{"case": "bump"}], runs=WIDE | ladder("donut"))
def light_keeps_the_order(**runs):
    """The share of seeds that compose rises from convolutional decoders to those that are asked
    pixel by pixel also where wide bumps light every pixel, and on lit pixels alone."""
    wide, narrow = ({name: runs[name] for name in names} for names in (WIDE, RUNGS))

    def rendered_lit(cells):
        masked, counted = on_lit_pixels(cells, runs["conv"].task.scores)
        return mean_score(masked, "rendered", counted)

    yield from trained(wide | narrow)
    yield rise(wide.values(), name=", wide bumps")
    yield rise(narrow.values(), rendered_lit, ", lit pixels")
    for name, run in wide.items():
        yield note(f"{COMPOSE}, {name.replace('_', ' ')}", composes(run))


# --- K5: what stripes give ---------------------------------------------------------------------


@claim("K5", figure="controls", cases=[{"case": "bump"}], runs={"net": "donut_stripes"}, after=True)
def stripes_compose(net, compose=True, predictors=False):
    """Trained on stripes and a few bumps, networks compose the square."""
    yield learnt(rendered_shown(net.late), "share rendered of the bumps shown")
    yield (most_seeds if compose else most_fail)(composes(net), COMPOSE)
    yield note("share rendered OOD", rendered(net.late.cells))
    yield from notes_on_images(net)
    if predictors:
        cells = net.late.cells
        shares = trivial_shares(cells) | from_codes(net)
        yield above_predictors(rendered(cells), shares, cells.held_out.sum())


# --- K11: which weights read the code ----------------------------------------------------------


def learnt_and_rendered(runs: dict):
    """What networks must have learnt, and how much of the square they render."""
    yield from trained(runs)
    for name, run in runs.items():
        yield note(f"share rendered OOD, {name}", rendered(run.late.cells))


# Found at seeds 50 to 55, and written down before any of the seeds judged here was trained.
@claim(
    "K11",
    figure="readers",
    cases=[
        {"case": f"{layers}, {code}", "layers": layers, "code": code}
        for layers in ("pixels", "convolutions")
        for code in ("bump", "onehot")
    ],
    runs={"shared": "{layers}_shared_{code}", "own": "{layers}_own_{code}"},
)
def shared_weights_compose(composing=("shared",), **runs):
    """With the {code} code, a network of {layers} composes the square if all pixels share the
    weights that read the code, and does not if each pixel has its own."""
    yield from learnt_and_rendered(runs)
    for weights, run in runs.items():
        condition = most_seeds if weights in composing else most_fail
        yield condition(composes(run), f"{COMPOSE}, {weights}")


@claim(
    "K11.lacks",
    cases=[{"lacks": name} for name in VARIANTS if name not in ("shared", "own")],
    runs={"net": "upsampled_once_shared", "lacking": "upsampled_once_{lacks}"},
)
def what_upsampling_needs(counted="lacking", other="net", word="less", **runs):
    """A convolutional decoder that doubles its image once renders less of the square, in most
    seeds, if one thing is changed: {lacks}."""
    yield from learnt_and_rendered(runs)
    more = rendered(runs[counted].late.cells) - rendered(runs[other].late.cells).mean()
    yield most_seeds(
        more < 0 if word == "less" else more > 0, f"seeds that render {word} of the square"
    )


@claim(
    "K11.apart",
    figure="apart",
    cases=[{"case": "bump"}],
    runs={"corner": "pixels_apart_corner", "middle": "pixels_apart_middle"},
)
def uncovered_pixels_learn_from_others(corner, middle):
    """If the pixels that no shown bump covers share the weights that read the code with each other
    alone, bumps there are not rendered; if as many pixels in a corner do, they are."""
    yield from learnt_and_rendered({"corner": corner, "middle": middle})
    cells = corner.late.cells
    x, y = cells.factors.round().astype(int).T
    uncovered = cells.held_out & ~lit_pixels(cells)[y, x]
    name = "share of seeds that render most bumps on uncovered pixels"
    if not uncovered.any():
        yield above(0.5, unknown("shown bumps cover every pixel"), name)
        return
    in_corner, in_middle = (
        mean_score(run.late.cells, "rendered", uncovered) > 0.5 for run in (corner, middle)
    )
    yield most_seeds(in_corner, f"{name}, corner apart")
    yield most_fail(in_middle, f"{name}, middle apart")


CLAIMS = (
    place_alone_composes,
    light_keeps_the_order,
    stripes_compose,
    # from the stripes themselves the bumps could be drawn without error, as their product
    stripes_compose.variant(
        "K5.baselines",
        "Trained on stripes and a few bumps, networks compose the square, better than any "
        "predictor that knows the seen bumps alone",
        predictors=True,
    ),
    # written before any network was trained on as many bumps as without stripes, and as many
    # stripes
    stripes_compose.variant(
        "K5.added",
        "Trained on stripes and all bumps around the square, networks compose the square",
        runs={"net": "bump_cnn_stripes"},
    ),
    uncovered_pixels_learn_from_others.variant(
        "K5.hole",
        "Bumps on pixels that no shown bump covers are not rendered if added stripes "
        "leave these pixels blank, and are if they leave as many blank in a corner",
        figure="hole",
        runs={
            "corner": "bump_cnn_stripes_hole_corner",
            "middle": "bump_cnn_stripes_hole_middle",
        },
    ),
    # each stripe comes with the code of another, so it gives the same light and no factor
    stripes_compose.variant(
        "K5.shuffled",
        "Trained on stripes with the codes of other stripes and a few bumps, networks do "
        "not compose the square",
        runs={"net": "donut_stripes_shuffled"},
        compose=False,
    ),
    shared_weights_compose,
    shared_weights_compose.variant(
        "K11.doubling",
        "With the {code} code, a convolutional decoder that doubles its image twice, and "
        "mixes x and y before a pixel is told its place, does not compose the square, whether its "
        "first pixels share the weights that read the code or not",
        runs={"shared": "doubling_shared_{code}", "own": "doubling_own_{code}"},
        cases=[{"case": code, "code": code} for code in ("bump", "onehot")],
        composing=(),
    ),
    shared_weights_compose.variant(
        "K11.besides",
        "With {besides}, too, a per-pixel network composes the square if all pixels share "
        "the weights that read the code, and does not if each pixel has its own",
        runs={"shared": "pixels_shared_{besides}", "own": "pixels_own_{besides}"},
        cases=({"besides": "as_many_parameters"}, {"besides": "two_objects"}),
    ),
    shared_weights_compose.variant(
        "K11.upsampled",
        "A convolutional decoder that doubles its image {times}, and tells a pixel its "
        "place before x and y are mixed, composes the square if all pixels share the weights that "
        "read the code, and does not if each has its own",
        runs={"shared": "upsampled_{times}_shared", "own": "upsampled_{times}_own"},
        cases=({"times": "once"}, {"times": "twice"}),
    ),
    what_upsampling_needs,
    shared_weights_compose.variant(
        "K11.wide",
        "With bumps so wide that they light every pixel, a per-pixel network composes the "
        "square by weights of each pixel's own",
        runs={"own": "pixels_own_wide"},
        cases=[{"case": "bump"}],
        composing=("own",),
    ),
    shared_weights_compose.variant(
        "K11.stripes",
        "Trained on bumps and stripes, a per-pixel network composes the square by weights "
        "of each pixel's own, and does not if the stripes have the codes of other stripes",
        runs={"own": "pixels_own_stripes", "shuffled": "pixels_own_stripes_shuffled"},
        cases=[{"case": "bump"}],
        composing=("own",),
    ),
    uncovered_pixels_learn_from_others,
    uncovered_pixels_learn_from_others.variant(
        "K11.left_out",
        "Bumps on pixels that no shown bump covers are not rendered if added stripes say "
        "nothing of these pixels, and are if they say nothing of as many in a corner",
        figure="hole",
        runs={
            "corner": "{network}_stripes_left_out_corner",
            "middle": "{network}_stripes_left_out_middle",
        },
        cases=(
            {"case": "usual decoder", "network": "bump_cnn"},
            {"case": "per pixel", "network": "pixels_own"},
        ),
    ),
    what_upsampling_needs.variant(
        "K11.parts",
        "A convolutional decoder that neither doubles its image nor mixes x and y before it is "
        "told a place renders more of the square than one that does both, in most seeds",
        cases=[{"case": "bump"}],
        runs={"net": "doubling_unmixed_undoubled", "plain": "doubling_shared_bump"},
        counted="net",
        other="plain",
        word="more",
    ),
)
NOTE = ""
