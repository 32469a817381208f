"""C1 to C3: what the drawn images say (Figure 1b, c; MLPs: appendix F.3)."""

from typing import NamedTuple

import numpy as np

from compgen_jax.claims import above, claim, exact_id, learnt, note
from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering import signals
from compgen_jax.papers.forced_rendering.image_quantities import (
    CLEARLY,
    interpolated,
    notes_on_images,
    over_interpolator,
    rendered,
    rendered_id,
    rendered_ood,
)

WITHIN = 1.0  # pixels: what counts as at, or aligned with, a position
AUTHORS = {"setting": "the authors' network", "as_trained": True}
CNNS = tuple(
    # Figure 1b, c are of the authors' networks; that of the bump code here has half of its channels
    {"figure_setting": AUTHORS["setting"] if network["case"] in ("bump", "ramp") else "", **network}
    for network in (
        {"case": "bump", "run": "bump_cnn"},
        {"case": "ramp", "run": "ramp_cnn"},
        {"case": "onehot", "run": "onehot_cnn"},
        {"case": "positional", "run": "positional_cnn"},
        {"case": "ramp", "run": "ramp_cnn_50_epochs", "setting": "the paper's 50 epochs",
         "as_trained": True},
        {"case": "ramp", "run": "ramp_cnn_authors", **AUTHORS},
        {"case": "bump", "run": "bump_cnn_authors_128", **AUTHORS},
    )
)  # fmt: skip
NETWORKS = (
    *({**network, "code": network["case"], "model": "CNN"} for network in CNNS),
    *(
        {"case": f"{code}, MLP", "run": f"{code}_mlp", "code": code, "model": "MLP"}
        for code in ("bump", "ramp")
    ),
)
ID_GATE = "share rendered ID"

# --- C1: failure -------------------------------------------------------------------------------


@claim("C1", figure="Fig 1b, c", cases=NETWORKS, runs={"net": "{run}"})
def fails_ood(net):
    """With the {code} code, the {model} does not render held-out combinations."""
    cells = net.late.cells
    yield learnt(rendered_id(cells), ID_GATE)
    yield rendered_ood(net, below=0.5)
    yield from notes_on_images(net)
    yield note("MSE ID / blank image's", evaluation.relative_error(cells, ~cells.held_out))
    less = rendered(cells) - interpolated(net)
    yield note("share rendered OOD, less the interpolator's", less)


@claim("C1.interpolation", figure="Fig 1b, c", cases=NETWORKS, runs={"net": "{run}"})
def renders_no_more_than_interpolation(net):
    """With the {code} code, the {model} does not render held-out combinations, hardly more of them
    than interpolation."""
    yield from fails_ood.function(net)
    yield over_interpolator(net)


# --- C2: success near the edge -----------------------------------------------------------------

NEAR_EDGE = "slope of share rendered OOD on nearness, per pixel"
OF_SMOOTH_CODES = tuple(network for network in CNNS if network["case"] != "onehot")


def slope_on_nearness(cells: CellResults):
    """(...) least-squares slope of the share rendered of held-out cells on their nearness (minus
    the distance to the nearest seen cell, in pixels). Copying the nearest seen image scores 0."""
    nearness = -cells.distance[cells.held_out]
    centred = nearness - nearness.mean()
    hits = cells.scores["rendered"][..., cells.held_out].astype(np.float64)
    hits = hits - hits.mean(axis=-1, keepdims=True)  # 0 exactly where all or none are rendered
    return hits @ centred / np.square(centred).sum()


@claim("C2", figure="Fig 1b, c", cases=OF_SMOOTH_CODES, runs={"net": "{run}"})
def succeeds_near_the_edge(net):
    """With the {case} code, more held-out positions are rendered the nearer they are to seen
    ones."""
    cells = net.late.cells
    yield learnt(rendered_id(cells), ID_GATE)
    yield above(0, slope_on_nearness(cells), NEAR_EDGE)
    levels, by_distance = evaluation.profile_by_distance(cells.scores["rendered"], cells)
    for end in (0, -1):
        yield note(f"share rendered at {levels[end]:.3g} pixels", by_distance[..., end])
    yield note("share rendered OOD", rendered(cells))


@claim(
    "C2.overlap",
    figure="Fig 1b, c",
    cases=[network for network in OF_SMOOTH_CODES if "setting" not in network],
    runs={"net": "{run}", "control": "onehot_cnn"},
)
def succeeds_near_the_edge_more_than_onehot(net, control):
    """With the {case} code, it grows more than with the onehot code, whose neighbours share
    nothing."""
    yield from succeeds_near_the_edge.function(net)
    worse = np.minimum(rendered_id(net.late.cells), rendered_id(control.late.cells))
    yield learnt(worse, "share rendered ID of the worse of both")
    of_control = slope_on_nearness(control.late.cells)
    less = slope_on_nearness(net.late.cells) - of_control
    yield above(0, less, "the same, less that of the onehot code")
    yield note("slope, onehot code", of_control)


# --- C3: several bumps -------------------------------------------------------------------------


class AlignedPeaks(NamedTuple):
    """Per network: peaks per OOD image, the share of these with several peaks, and the aligned
    share of misplaced peaks with what it would be by chance.

    Peaks are `signals.peak_maps`, relative to an image's own maximum, as the authors' images are
    scaled. A misplaced peak lies more than a pixel from the requested position. It is aligned if it
    is within a pixel of the requested column or row. Chance is the share of misplaced pixels that
    are so placed: of seen cells, where training has put its bumps, or of all pixels, whichever is
    larger. A network without misplaced peaks has none aligned.
    """

    per_image: np.ndarray
    several: np.ndarray
    aligned: np.ndarray
    chance: np.ndarray


def aligned_peaks(cells: CellResults) -> AlignedPeaks:
    peaks = signals.peak_maps(cells, cells.held_out)  # ..., Q, H, W
    factors = cells.factors[cells.held_out]
    y, x = np.mgrid[0 : cells.grid, 0 : cells.grid]
    dx, dy = (np.abs(a - factors[:, k, None, None]) for k, a in enumerate((x, y)))
    elsewhere, in_line = np.maximum(dx, dy) > WITHIN, np.minimum(dx, dy) <= WITHIN
    seen = ~cells.held_out.reshape(cells.grid, cells.grid)
    chance_2xQ = [
        (elsewhere & in_line & where).sum(axis=(1, 2)) / (elsewhere & where).sum(axis=(1, 2))
        for where in (seen, np.ones_like(seen))
    ]
    misplaced_xQ = (peaks & elsewhere).sum(axis=(-2, -1))
    total = np.maximum(misplaced_xQ.sum(axis=-1), 1)
    per_image_xQ = peaks.sum(axis=(-2, -1))
    return AlignedPeaks(
        per_image=per_image_xQ.mean(axis=-1),
        several=(per_image_xQ >= 2).mean(axis=-1),
        aligned=(peaks & elsewhere & in_line).sum(axis=(-3, -2, -1)) / total,
        chance=(misplaced_xQ * np.max(chance_2xQ, axis=0)).sum(axis=-1) / total,
    )


def _several_peaks(cells: CellResults, peaks: AlignedPeaks):
    yield learnt(exact_id(cells))
    count = cells.held_out.sum()
    yield above(0.5, peaks.several, "share of OOD images with 2 peaks", cells=count)
    yield note("aligned share of misplaced peaks", peaks.aligned)
    yield note("aligned share of misplaced peaks by chance", peaks.chance)
    yield note("peaks per OOD image", peaks.per_image)
    brightest = cells.predictions[..., cells.held_out, :, :].max(axis=(-2, -1)).mean(axis=-1)
    yield note("brightest pixel OOD / amplitude", brightest / cells.amplitude)


@claim("C3", figure="Fig 1b, c", cases=CNNS, runs={"net": "{run}"})
def superposes_seen(net):
    """With the {case} code, held-out images show several bumps."""
    yield from _several_peaks(net.late.cells, aligned_peaks(net.late.cells))


@claim("C3.chance", figure="Fig 1b, c", cases=CNNS, runs={"net": "{run}"})
def superposes_in_line(net):
    """With the {case} code, held-out images show several bumps, in line with x or y more often than
    by chance."""
    peaks = aligned_peaks(net.late.cells)
    yield from _several_peaks(net.late.cells, peaks)
    # noise does not reach CLEARLY
    yield above(
        CLEARLY, peaks.aligned - peaks.chance, "aligned share of misplaced peaks, over chance"
    )


@claim("C3.kernel", figure="Fig 1b, c", cases=CNNS, runs={"net": "{run}"})
def superposes_more_than_wide_network(net):
    """With the {case} code, held-out images show several bumps, and more of them do than a wide
    network draws that learns no features."""
    cells = net.late.cells
    peaks, of_wide = aligned_peaks(cells), aligned_peaks(net.late.wide_network)
    yield from _several_peaks(cells, peaks)
    more, count = peaks.several - of_wide.several, cells.held_out.sum()
    name = "share of OOD images with 2 peaks, less the wide network's"
    yield above(0, more, name, cells=count, least=-1)


CLAIMS = (
    fails_ood,
    renders_no_more_than_interpolation,
    succeeds_near_the_edge,
    succeeds_near_the_edge_more_than_onehot,
    superposes_seen,
    superposes_in_line,
    superposes_more_than_wide_network,
)
