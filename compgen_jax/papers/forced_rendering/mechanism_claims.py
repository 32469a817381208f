"""C4 and C5: how what is drawn at all cells is alike (Figures 1d, 1e and 8)."""

import numpy as np

from compgen_jax.claims import above, claim, exact_id, learnt, note
from compgen_jax.metrics.reference_images import (
    images,
    lookup,
    reference_numbers,
    superposer,
    true_image,
    world_of,
)
from compgen_jax.papers.forced_rendering.figure1_claims import CNNS
from compgen_jax.papers.forced_rendering.image_quantities import best_of, explained, trained

CONSTRUCTION = {"bump": "mean_code", "ramp": "sums"}  # the paper's, by code (E6, E7)
CLEARLY = 0.05  # of R^2, of which a true bump has .0004 more than other points
MOST = 0.75  # of an ideal superposer's R^2, of which the nearest seen image has .52 to .55
OF_SUMS = [
    # the figure's own networks were trained on 20,000 samples, and are not among the runs
    case | {"network": "ours"} if case.get("network") == "figure" else case
    for case in CNNS
    if case["case"] in CONSTRUCTION
]

# --- C4: superpositions ------------------------------------------------------------------------


def superposition_r2(run, construction: str, name: str = "inner_r2"):
    """(S, C) R^2 of the OOD output on its superposition, or on other points' ("inner_shuffled_r2"),
    over the inner half of held-out points."""
    return run.late.outputs(f"output.superposition.{construction}.{name}")


@claim("C4", figure="Fig 1d", cases=OF_SUMS, runs={"net": "{run}"}, after=True)
def superposes(net, case, ideal=False):
    """With the {case} code, what is drawn at a held-out position is in part the sum of an image
    for its x alone and one for its y alone."""
    yield trained(net)
    for construction in CONSTRUCTION.values():
        r2 = superposition_r2(net, construction)
        others = superposition_r2(net, construction, "inner_shuffled_r2")
        yield note(f"R2, construction {construction}, own", r2)
        yield note(f"R2, construction {construction}, other points'", others)
        if construction == CONSTRUCTION[case]:
            name = "R2 on the superpositions, over that of other points'"
            yield above(CLEARLY, r2 - others, name)
    if ideal:
        # The sums are over all ID cells, each once, as all of them are among the 20,000 samples of
        # Figure 1d.
        of_sums = superposition_r2(net, "sums")
        of_superposer, of_bumps = (
            reference_numbers(rule, net.late.cells)["output.superposition.sums.inner_r2"]
            for rule in (superposer, true_image)
        )
        yield above(MOST, of_sums / of_superposer, "R2 on sums, over an ideal superposer's")
        yield above(0, of_sums - of_bumps, "R2 on sums, less that of true bumps")


@claim("C4.kernel", figure="Fig 1d", cases=OF_SUMS, runs={"net": "{run}"})
def draws_what_the_wide_network_draws(net):
    """With the {case} code, held-out images are those of a wide network that learns no features,
    rather than those of another predictor."""
    cells, ood = net.late.cells, net.late.cells.held_out
    yield learnt(exact_id(cells))
    world = world_of(cells.truths, ood)
    predicted = {
        "wide network": net.late.wide_network.predictions,
        "superposer": images(superposer, world),
        "lookup": images(lookup, world),
        "interpolator": net.late.interpolator.predictions,
    }
    # of the variance of drawn images, about their mean image, explained by predicted ones as they
    # are: 1 if they are the same, below 0 if the mean image is nearer
    drawn = cells.predictions[..., ood, :, :].astype(np.float64)
    spread = drawn - drawn.mean(axis=-3, keepdims=True)
    r2 = {
        name: explained(drawn - other[..., ood, :, :], spread, (-3, -2, -1))
        for name, other in predicted.items()
    }
    of_wide, name = r2.pop("wide network"), "R2 on the wide network's images"
    yield above(0.5, of_wide, name)
    yield above(0, of_wide - best_of(r2), f"{name}, less the best other's")
    for name, of_predictor in r2.items():
        yield note(f"R2 on the images of the {name}", of_predictor)


# --- C5: similarity ----------------------------------------------------------------------------

# Figure 8 has a ramp's network of 15 epochs; that of the bump code is unknown.
OF_FIGURE = {"setting": "the paper's 15 epochs", "network": "figure"}
OF_KERNELS = {
    "figure": "Fig 1e, 8",
    "cases": [
        {"case": "bump", "run": "bump_cnn"},
        {"case": "ramp", "run": "ramp_cnn", "network": "longer"},
        OF_FIGURE | {"case": "ramp", "run": "ramp_cnn_15_epochs", "as_trained": True},
    ],
    "runs": {"net": "{run}"},
}


def agreement(run, kernel: str):
    """(S, C) agreement of outputs' similarity with a kernel, 'binary', 'true' or 'partial' (binary
    beyond the true images'), over OOD-ID pairs, the section of Figure 8 that the paper shows."""
    return run.late.outputs(f"output.cosine.cross_{kernel}")


@claim("C5", **OF_KERNELS, after=True)
def resembles_binary_kernel(net):
    """With the {case} code, held-out images are as similar as they share factors (the binary
    kernel)."""
    yield trained(net)
    more = agreement(net, "binary") - agreement(net, "true")
    numbers = reference_numbers(superposer, net.late.cells)
    of_ideal = numbers["output.cosine.cross_binary"] - numbers["output.cosine.cross_true"]
    # an ideal superposer fails as well, as its sums are of the nearest ID images alone
    yield above(0, more, "agreement with the binary kernel, over that with the true images'")
    yield note("of an ideal superposer, binary over true", of_ideal)


@claim("C5.true_images", **OF_KERNELS)
def resembles_binary_kernel_beyond_true_images(net):
    """With the {case} code, held-out images are similar where they share a factor, more than the
    true images, whose neighbours overlap, and more than the nearest seen images."""
    yield trained(net)
    of_lookup = reference_numbers(lookup, net.late.cells)["output.cosine.cross_partial"]
    beyond = agreement(net, "partial") - of_lookup
    yield above(0, beyond, "agreement beyond the true images', over that of a lookup")


@claim(
    "C5.codes",
    after=True,
    figure="Fig 8",
    cases=[{"case": "bump, ramp"}],
    runs={"bump": "bump_cnn", "ramp": "ramp_cnn"},
)
def clearer_for_bump(bump, ramp, beyond=False):
    """The binary kernel's structure is clearer for the bump code than for the ramp."""
    yield trained(bump, ramp)
    of_bump, of_ramp = (agreement(run, "partial" if beyond else "binary") for run in (bump, ramp))
    kernel = "beyond the true images'" if beyond else "with the binary kernel"
    yield above(0, of_bump - of_ramp, f"agreement {kernel}, bump minus ramp")


CLAIMS = (
    superposes,
    superposes.variant(
        "C4.ideal",
        "With the {case} code, an OOD output is the sum of matching ID outputs nearly as "
        "much as an ideal superposer's, and more than a true bump",
        ideal=True,
    ),
    draws_what_the_wide_network_draws,
    resembles_binary_kernel,
    resembles_binary_kernel_beyond_true_images,
    clearer_for_bump,
    clearer_for_bump.variant(
        "C5.codes_true_images",
        "Beyond the true images' similarity, the binary kernel's structure is clearer for "
        "the bump code than for the ramp",
        beyond=True,
    ),
)
