"""C4 and C5: how what is drawn at all cells is alike (Figures 1d, 1e and 8).

A run's `late.outputs(metric)` is (S, C), of every seed's late checkpoints.
"""

import numpy as np

from compgen_jax.claims import (
    TINY,
    above,
    claim,
    exact_id,
    learnt,
    note,
)
from compgen_jax.metrics.reference_images import (
    images,
    lookup,
    reference_numbers,
    superposer,
    true_image,
    world_of,
)
from compgen_jax.papers.forced_rendering.figure1_claims import CNNS
from compgen_jax.papers.forced_rendering.image_quantities import worst_exact_id

CONSTRUCTION = {"bump": "mean_code", "ramp": "sums"}  # the paper's, by code (E6, E7)
CLEARLY = 0.05  # of R^2, of which a true bump has .0004 more than other points; of a correlation
MOST = 0.75  # of an ideal superposer's R^2, of which the nearest seen image has .52 to .55

# --- C4: superpositions ------------------------------------------------------------------------

# The figure's networks were trained on 20,000 samples, and are not among the runs.
OF_SUMS = {
    "figure": "Fig 1d",
    "cases": [case | {"figure_setting": ""} for case in CNNS if case["case"] in CONSTRUCTION],
    "runs": {"net": "{run}"},
}


def superposition_r2(run, construction: str, of_other_points: bool = False):
    """(S, C) R^2 of the OOD output on its two superpositions, or on those of points that share
    neither x nor y. Over held-out points at least half as far from seen ones as the farthest."""
    name = "inner_shuffled_r2" if of_other_points else "inner_r2"
    return run.late.outputs(f"output.superposition.{construction}.{name}")


@claim("C4", **OF_SUMS)
def superposes(net, case):
    """With the {case} code, what is drawn at a held-out position is in part the sum of an image
    for its x alone and one for its y alone."""
    yield learnt(exact_id(net.late.cells))
    for construction in CONSTRUCTION.values():
        own = superposition_r2(net, construction)
        others = superposition_r2(net, construction, of_other_points=True)
        yield note(f"R2, construction {construction}, own", own)
        yield note(f"R2, construction {construction}, other points'", others)
        if construction == CONSTRUCTION[case]:
            name = "R2 on the superpositions, over that of other points'"
            yield above(CLEARLY, own - others, name)


# The sums are over all ID cells, each once, as all of them are among the 20,000 samples of
# Figure 1d.
@claim("C4.ideal", **OF_SUMS)
def superposes_as_an_ideal_superposer(net, case):
    """With the {case} code, an OOD output is the sum of matching ID outputs nearly as much as an
    ideal superposer's, and more than a true bump."""
    yield from superposes.function(net, case)
    of_sums = superposition_r2(net, "sums")
    of_superposer, of_bumps = (
        reference_numbers(rule, net.late.cells)["output.superposition.sums.inner_r2"]
        for rule in (superposer, true_image)
    )
    yield above(MOST, of_sums / of_superposer, "R2 on sums, over an ideal superposer's")
    yield above(0, of_sums - of_bumps, "R2 on sums, less that of true bumps")


def explained(drawn_xQxHxW, predicted_xQxHxW):
    """(...) share of the variance of drawn images, about their mean image, that predicted ones
    explain as they are: 1 if they are the same, below 0 if the mean image is nearer."""
    drawn = np.asarray(drawn_xQxHxW, np.float64)
    squares = lambda images: np.square(images).sum(axis=(-3, -2, -1))
    spread = squares(drawn - drawn.mean(axis=-3, keepdims=True))
    return 1 - squares(drawn - predicted_xQxHxW) / np.maximum(spread, TINY)


@claim("C4.kernel", **OF_SUMS)
def draws_what_the_wide_network_draws(net):
    """With the {case} code, held-out images are those of a wide network that learns no features,
    rather than those of another predictor."""
    cells, ood = net.late.cells, net.late.cells.held_out
    yield learnt(exact_id(cells))
    world = world_of(cells.truths, ood)
    rules = {"superposer": superposer, "lookup": lookup}
    predicted = {name: images(rule, world) for name, rule in rules.items()}
    predicted["interpolator"] = net.late.interpolator.predictions
    predicted["wide network"] = net.late.wide_network.predictions
    r2 = {
        name: explained(cells.predictions[..., ood, :, :], drawn[..., ood, :, :])
        for name, drawn in predicted.items()
    }
    of_wide = r2.pop("wide network")
    yield above(0.5, of_wide, "R2 on the wide network's images")
    of_best = np.max(np.broadcast_arrays(*r2.values()), axis=0)
    yield above(0, of_wide - of_best, "R2 on the wide network's images, less the best other's")
    for name, of_predictor in r2.items():
        yield note(f"R2 on the images of the {name}", of_predictor)


# --- C5: similarity ----------------------------------------------------------------------------

OF_KERNELS = {
    "figure": "Fig 1e, 8",
    "cases": [{"case": code} for code in CONSTRUCTION],
    "runs": {"net": "{case}_cnn"},
}
OF_CODES = {
    "figure": "Fig 8",
    "cases": [{"case": "bump, ramp"}],
    "runs": {"bump": "bump_cnn", "ramp": "ramp_cnn"},
}


def agreement(run, kernel: str):
    """(S, C) agreement of the similarity of outputs with a kernel, 'binary', 'true' or 'partial'
    (the binary one beyond the true images'), over pairs of a held-out and a seen cell: the section
    of Figure 8 that the paper points at."""
    return run.late.outputs(f"output.cosine.cross_{kernel}")


@claim("C5", **OF_KERNELS)
def resembles_binary_kernel(net):
    """With the {case} code, held-out images are as similar as they share factors (the binary
    kernel)."""
    yield learnt(exact_id(net.late.cells))
    binary, true = agreement(net, "binary"), agreement(net, "true")
    numbers = reference_numbers(superposer, net.late.cells)
    of_ideal = numbers["output.cosine.cross_binary"] - numbers["output.cosine.cross_true"]
    # an ideal superposer fails as well, as its sums are of the nearest ID images alone
    yield above(
        0, binary - true, "agreement with the binary kernel, over that with the true images'"
    )
    yield note("of an ideal superposer, binary over true", of_ideal)
    yield note("agreement with the binary kernel", binary)
    yield note("agreement with the true images' kernel", true)
    beyond = agreement(net, "partial")
    yield note("agreement with the binary kernel beyond the true images'", beyond)


@claim("C5.true_images", **OF_KERNELS)
def resembles_binary_kernel_beyond_true_images(net):
    """With the {case} code, held-out images are similar where they share a factor, more than the
    true images, whose neighbours overlap, and more than the nearest seen images."""
    yield learnt(exact_id(net.late.cells))
    of_lookup = reference_numbers(lookup, net.late.cells)["output.cosine.cross_partial"]
    beyond = agreement(net, "partial") - of_lookup
    yield above(0, beyond, "agreement beyond the true images', over that of a lookup")


@claim("C5.codes", **OF_CODES)
def clearer_for_bump(bump, ramp):
    """The binary kernel's structure is clearer for the bump code than for the ramp."""
    yield learnt(worst_exact_id(bump, ramp))
    difference = agreement(bump, "binary") - agreement(ramp, "binary")
    yield above(0, difference, "agreement with the binary kernel, bump minus ramp")


@claim("C5.codes_true_images", **OF_CODES)
def clearer_for_bump_beyond_true_images(bump, ramp):
    """Beyond the true images' similarity, the binary kernel's structure is clearer for the bump
    code than for the ramp."""
    yield learnt(worst_exact_id(bump, ramp))
    of_bump, of_ramp = agreement(bump, "partial"), agreement(ramp, "partial")
    yield above(0, of_bump - of_ramp, "agreement beyond the true images', bump minus ramp")
    yield note("bump", of_bump)
    yield note("ramp", of_ramp)


CLAIMS = (
    superposes,
    superposes_as_an_ideal_superposer,
    draws_what_the_wide_network_draws,
    resembles_binary_kernel,
    resembles_binary_kernel_beyond_true_images,
    clearer_for_bump,
    clearer_for_bump_beyond_true_images,
)
