"""C1 to C3: what the drawn images say (Figure 1b, c; MLPs: appendix F.3)."""

from typing import NamedTuple

import numpy as np

from compgen_jax.claims import above, claim, exact_id, learnt, note
from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering import signals
from compgen_jax.papers.forced_rendering.image_quantities import (
    CLEARLY,
    notes_on_images,
    over_interpolator,
    rendered,
    rendered_id,
    rendered_ood,
    slope,
)

WITHIN = 1.0  # pixels: what counts as at, or aligned with, a position
ID_GATE = "share rendered ID"
# Figure 1b, c are of the authors' networks; that of the bump code here has half of its channels
AUTHORS = {"setting": "the authors' network", "network": "figure", "as_trained": True}
CNNS = (
    {"case": "bump", "run": "bump_cnn"},
    {"case": "ramp", "run": "ramp_cnn", "network": "longer"},
    {"case": "onehot", "run": "onehot_cnn"},
    {"case": "positional", "run": "positional_cnn"},
    {"case": "ramp", "run": "ramp_cnn_50_epochs", "as_trained": True}
    | {"setting": "the paper's 50 epochs"},
    AUTHORS | {"case": "ramp", "run": "ramp_cnn_authors"},
    AUTHORS | {"case": "bump", "run": "bump_cnn_authors_128"},
)
NETWORKS = (
    *(network | {"code": network["case"], "model": "CNN"} for network in CNNS),
    *(
        {"case": f"{code}, MLP", "run": f"{code}_mlp", "network": "longer"}
        | {"code": code, "model": "MLP"}
        for code in ("bump", "ramp")
    ),
)
SMOOTH_CODES = tuple(network for network in CNNS if network["case"] != "onehot")


# --- C1: failure -------------------------------------------------------------------------------


@claim("C1", figure="Fig 1b, c", cases=NETWORKS, runs={"net": "{run}"}, after=True)
def fails_ood(net, interpolated=False):
    """With the {code} code, the {model} does not render held-out combinations."""
    cells = net.late.cells
    yield learnt(rendered_id(cells), ID_GATE)
    yield rendered_ood(net, below=0.5)
    if interpolated:
        yield over_interpolator(net)
    yield from notes_on_images(net)
    yield from notes_on_ghosts(cells)
    yield note("MSE ID / blank image's", evaluation.relative_error(cells, ~cells.held_out))


def notes_on_ghosts(cells: CellResults):
    """What `rendered` lets pass: how near held-out images come to the true ones, and how many that
    are rendered show a second bump."""
    drawn = cells.predictions[..., cells.held_out, :, :]
    r2_xQ = np.asarray(signals.squared_correlations(drawn, cells.truths[cells.held_out]))
    for share in (0.1, 0.5, 0.9):
        quantile = np.quantile(r2_xQ, share, axis=-1)
        yield note(f"squared correlation OOD, quantile {share:g}", quantile)
    peaks = np.asarray(signals.peak_maps(drawn, signals.VISIBLE * cells.amplitude))
    ghosts_xQ = cells.scores["rendered"][..., cells.held_out] * (peaks.sum(axis=(-2, -1)) > 1)
    yield note("share OOD that is rendered beside a second peak", ghosts_xQ.mean(axis=-1))


# --- C2: success near the edge -----------------------------------------------------------------


def slope_on_nearness(cells: CellResults):
    """(...) slope of the share rendered of held-out cells on their nearness (minus the distance to
    the nearest seen cell, in pixels). Copying the nearest seen image scores 0."""
    hits = cells.scores["rendered"][..., cells.held_out].astype(np.float64)
    return slope(hits, -cells.distance[cells.held_out])


@claim("C2", figure="Fig 1b, c", cases=SMOOTH_CODES, runs={"net": "{run}"}, after=True)
def succeeds_near_the_edge(net, control=None):
    """With the {case} code, more held-out positions are rendered the nearer they are to seen
    ones."""
    cells = net.late.cells
    slope = slope_on_nearness(cells)
    yield learnt(rendered_id(cells), ID_GATE)
    yield above(0, slope, "slope of share rendered OOD on nearness, per pixel")
    levels, by_distance = evaluation.profile_by_distance(cells.scores["rendered"], cells)
    for end in (0, -1):
        yield note(f"share rendered at {levels[end]:.3g} pixels", by_distance[..., end])
    yield note("share rendered OOD", rendered(cells))
    if control:
        worse = np.minimum(rendered_id(cells), rendered_id(control.late.cells))
        yield learnt(worse, "share rendered ID of the worse of both")
        of_control = slope_on_nearness(control.late.cells)
        yield above(0, slope - of_control, "the same, less that of the onehot code")
        yield note("slope, onehot code", of_control)


# --- C3: several bumps -------------------------------------------------------------------------


class AlignedPeaks(NamedTuple):
    """Per network: the share of OOD images with several peaks, and the share of misplaced peaks,
    more than a pixel away, that are within a pixel of the right column or row; `chance` is the
    share of pixels, of seen cells or of all, that are so placed."""

    several: np.ndarray
    aligned: np.ndarray
    chance: np.ndarray


def aligned_peaks(cells: CellResults) -> AlignedPeaks:
    drawn = cells.predictions[..., cells.held_out, :, :]
    peaks = np.asarray(signals.peak_maps(drawn, signals.VISIBLE * cells.amplitude))
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
    return AlignedPeaks(
        several=(peaks.sum(axis=(-2, -1)) >= 2).mean(axis=-1),
        aligned=(peaks & elsewhere & in_line).sum(axis=(-3, -2, -1)) / total,
        chance=(misplaced_xQ * np.max(chance_2xQ, axis=0)).sum(axis=-1) / total,
    )


@claim("C3", figure="Fig 1b, c", cases=CNNS, runs={"net": "{run}"}, after=True)
def superposes_seen(net, beyond=""):
    """With the {case} code, held-out images show several bumps."""
    cells, count = net.late.cells, net.late.cells.held_out.sum()
    peaks, name = aligned_peaks(cells), "share of OOD images with 2 peaks"
    yield learnt(exact_id(cells))
    yield above(0.5, peaks.several, name, cells=count)
    if beyond == "chance":  # noise does not reach CLEARLY
        more = peaks.aligned - peaks.chance
        yield above(CLEARLY, more, "aligned share of misplaced peaks, over chance")
    if beyond == "wide network":
        more = peaks.several - aligned_peaks(net.late.wide_network).several
        yield above(0, more, f"{name}, less the wide network's", cells=count, least=-1)
    yield note("aligned share of misplaced peaks", peaks.aligned)
    yield note("aligned share of misplaced peaks by chance", peaks.chance)


CLAIMS = (
    fails_ood,
    fails_ood.variant(
        "C1.interpolation",
        "With the {code} code, the {model} does not render held-out combinations, hardly "
        "more of them than interpolation",
        interpolated=True,
    ),
    succeeds_near_the_edge,
    succeeds_near_the_edge.variant(
        "C2.overlap",
        "With the {case} code, it grows more than with the onehot code, whose neighbours "
        "share nothing",
        runs={"net": "{run}", "control": "onehot_cnn"},
        cases=tuple(network for network in SMOOTH_CODES if "setting" not in network),
    ),
    superposes_seen,
    superposes_seen.variant(
        "C3.chance",
        "With the {case} code, held-out images show several bumps, in line with x or y "
        "more often than by chance",
        beyond="chance",
    ),
    superposes_seen.variant(
        "C3.kernel",
        "With the {case} code, held-out images show several bumps, and more of them do "
        "than a wide network draws that learns no features",
        after=False,
        beyond="wide network",
    ),
)
