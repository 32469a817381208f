"""C1 to C3: what the drawn images say (Figure 1b, c). Quantities of `CellResults`, and claims."""

from typing import NamedTuple

import numpy as np

from compgen_jax.claims import Claim, Condition, once
from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering import signals
from compgen_jax.papers.forced_rendering.images import (
    exact,
    exact_ood,
    late,
    relative_error,
    within_a_pixel,
)

WITHIN = 1.0  # pixels: what counts as at, or aligned with, a position
NETWORKS = (
    *({"code": code, "where": "", "run": f"{code}_cnn"}
      for code in ("bump", "ramp", "onehot", "positional")),
    {"code": "ramp", "where": ", the paper's 50 epochs", "run": "ramp_cnn_50_epochs"},
    {"code": "ramp", "where": ", the authors' network", "run": "ramp_cnn_authors"},
    {"code": "bump", "where": ", the authors' network", "run": "bump_cnn_authors_128"},
)  # fmt: skip

FAILS_OOD = Claim(
    "C1",
    "with the {code} code, held-out combinations are not rendered",
    figure="Fig 1b, c",
    each=NETWORKS,
    runs={"net": "{run}"},
    code="{code}{where}",
    as_stated=(
        exact_ood(below=0.5),
        Condition("MSE OOD / blank image's", late(relative_error), above=0.5, ratio=True),
    ),
    details={
        "MSE ID / blank image's": late(
            lambda cells: evaluation.relative_error(cells, ~cells.held_out)
        ),
        "accuracy OOD within 1 pixel": late(within_a_pixel),
    },
)


def slope_on_nearness(cells: CellResults):
    """(T,) least-squares slope of the exact accuracy of held-out cells on their nearness (minus the
    distance to the nearest seen cell, in pixels). Copying the nearest seen image scores 0."""
    nearness = -cells.distance[cells.held_out]
    centred = nearness - nearness.mean()
    hits = cells.scores["exact_accuracy"][:, cells.held_out].astype(np.float64)
    hits = hits - hits.mean(axis=1, keepdims=True)  # 0 exactly where all or none are right
    return hits @ centred / np.square(centred).sum()


def accuracy_by_distance(evidence) -> dict:
    cells = evidence.net.late.cells
    levels, by_distance = evaluation.profile_by_distance(cells.scores["exact_accuracy"], cells)
    ends = {f"exact accuracy at {levels[k]:.3g} pixels": by_distance[:, k] for k in (0, -1)}
    control = slope_on_nearness(evidence.control.late.cells)
    return ends | {"slope, onehot code": control, "exact accuracy OOD": exact(cells)}


RISES = Condition(
    "slope of exact accuracy OOD on nearness, per pixel", late(slope_on_nearness), above=0
)
# Stricter: more than with the one-hot code, whose neighbours share nothing.
SUCCEEDS_NEAR_EDGE = Claim(
    "C2",
    "with the {code} code, success OOD grows towards the seen region",
    figure="Fig 1b, c",
    each={"code": ("bump", "ramp", "positional")},
    runs={"net": "{code}_cnn", "control": "onehot_cnn"},
    as_stated=RISES,
    stricter=(
        RISES,
        Condition(
            "the same, less that of the onehot code",
            lambda e: slope_on_nearness(e.net.late.cells) - slope_on_nearness(e.control.late.cells),
            above=0,
        ),
    ),
    details=accuracy_by_distance,
)


class AlignedPeaks(NamedTuple):
    """Per network: peaks per OOD image, the shares of these with several peaks and with several
    aligned ones, and the aligned share of misplaced peaks with what it would be by chance.

    Peaks are `signals.peak_maps`, relative to an image's own maximum, as the authors' images are
    scaled. A misplaced peak lies more than a pixel from the requested position. It is aligned if it
    is within a pixel of the requested column or row. Chance is the share of seen cells, where
    training has put its bumps, that are so placed. A network without misplaced peaks has none
    aligned.
    """

    per_image: np.ndarray
    several: np.ndarray
    several_aligned: np.ndarray
    aligned: np.ndarray
    chance: np.ndarray


def aligned_peaks(cells: CellResults) -> AlignedPeaks:
    peaks = signals.peak_maps(cells, cells.held_out)  # T, Q, H, W
    factors = cells.factors[cells.held_out]
    y, x = np.mgrid[0 : cells.grid, 0 : cells.grid]
    dx, dy = (np.abs(a - factors[:, k, None, None]) for k, a in enumerate((x, y)))
    elsewhere, in_line = np.maximum(dx, dy) > WITHIN, np.minimum(dx, dy) <= WITHIN
    seen = ~cells.held_out.reshape(cells.grid, cells.grid) & elsewhere
    chance_Q = (seen & in_line).sum(axis=(1, 2)) / seen.sum(axis=(1, 2))
    misplaced_TxQ = (peaks & elsewhere).sum(axis=(2, 3))
    aligned_TxQ = (peaks & elsewhere & in_line).sum(axis=(2, 3))
    total_T = np.maximum(misplaced_TxQ.sum(axis=1), 1)
    per_image_TxQ = peaks.sum(axis=(2, 3))
    return AlignedPeaks(
        per_image=per_image_TxQ.mean(axis=1),
        several=(per_image_TxQ >= 2).mean(axis=1),
        several_aligned=(aligned_TxQ >= 2).mean(axis=1),
        aligned=aligned_TxQ.sum(axis=1) / total_T,
        chance=(misplaced_TxQ * chance_Q).sum(axis=1) / total_T,
    )


@once
def _peaks(evidence) -> AlignedPeaks:
    return aligned_peaks(evidence.net.late.cells)


def _brightest(cells: CellResults):
    return cells.predictions[:, cells.held_out].max(axis=(2, 3)).mean(axis=1) / cells.amplitude


OOD_IMAGES = late(lambda cells: cells.held_out.sum())
# Stricter: two aligned peaks, which a nearest seen image never has; and most misplaced peaks are
# aligned, as those of noise are not.
SUPERPOSES_SEEN = Claim(
    "C3",
    "with the {code} code, OOD images show several bumps, in line with x or y",
    figure="Fig 1b, c",
    each=NETWORKS,
    runs={"net": "{run}"},
    code="{code}{where}",
    as_stated=Condition(
        "share of OOD images with 2 peaks", lambda e: _peaks(e).several, above=0.5, cells=OOD_IMAGES
    ),
    stricter=(
        Condition(
            "share of OOD images with 2 aligned peaks",
            lambda e: _peaks(e).several_aligned,
            above=0.5,
            cells=OOD_IMAGES,
        ),
        Condition(
            "aligned share of misplaced peaks",
            lambda e: _peaks(e).aligned,
            above=0.5,
            cells=OOD_IMAGES,
        ),
    ),
    details={
        "aligned share of misplaced peaks by chance": lambda e: _peaks(e).chance,
        "peaks per OOD image": lambda e: _peaks(e).per_image,
        "brightest pixel OOD / amplitude": late(_brightest),
    },
)
CLAIMS = (FAILS_OOD, SUCCEEDS_NEAR_EDGE, SUPERPOSES_SEEN)
