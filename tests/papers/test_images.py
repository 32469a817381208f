"""C1 to C3 and K1 to K5: quantities of drawn images beside loops."""

from dataclasses import replace

import numpy as np
import pytest

from compgen_jax.papers.forced_rendering import control_claims, figure1_claims, image_quantities
from compgen_jax.tasks import baselines, images
from tests.papers.decoders import (
    CELLS,
    HOLE,
    SETTINGS,
    blank,
    cell_results,
    decoder,
    draw,
    judged,
    run,
)


def edge_only(x, y):
    return draw(x, y) if min(x - 4, y - 4, 7 - x, 7 - y) == 0 else blank(x, y)


def test_success_near_the_edge_is_a_slope():
    cells = decoder(edge_only)  # share 1 at one pixel, 0 at two
    np.testing.assert_allclose(figure1_claims.slope_on_nearness(cells), 1.0)
    notes = judged(figure1_claims.succeeds_near_the_edge, net=run(cells))["notes"]
    for pixels, share in ((1, 1), (2, 0)):
        assert notes[f"share rendered at {pixels} pixels"]["value"] == share


def test_peaks_are_in_line_more_often_than_by_chance():
    """By a loop: of pixels more than one away from (5, 6), how many are in line; there, seen bumps
    of its column and of its row are drawn."""
    cells = decoder(lambda x, y: draw(x, 1) + draw(1, y) if (x, y) == (5, 6) else draw(x, y))
    shares = []
    for seen in (True, False):
        pixels = [
            (x, y)
            for x, y in CELLS
            if (abs(x - 5) > 1 or abs(y - 6) > 1) and not (seen and (x, y) in HOLE)
        ]
        shares.append(np.mean([abs(x - 5) <= 1 or abs(y - 6) <= 1 for x, y in pixels]))
    peaks = figure1_claims.aligned_peaks(cells)
    np.testing.assert_allclose(peaks.chance, max(shares))
    np.testing.assert_allclose(peaks.several, 1 / 16)
    np.testing.assert_allclose(peaks.aligned, 1)
    aside = decoder(lambda x, y: draw(x, 1) + draw(11, 11))
    np.testing.assert_allclose(figure1_claims.aligned_peaks(aside).aligned, 0.5)
    # late checkpoints by themselves
    predictions = np.stack([aside.predictions, 0 * aside.predictions], axis=1)
    several = figure1_claims.aligned_peaks(replace(aside, predict=predictions)).several
    assert several.tolist() == [[1, 0]] * 3


def test_a_fainter_second_bump_is_rendered_and_is_counted_as_a_ghost():
    """In the upper half of the hole; the lower half shows the bump alone."""
    beside = lambda x, y: draw(x, y) + 0.5 * draw(11 - x, 0) * (y > 5)
    notes = judged(figure1_claims.fails_ood, net=run(decoder(beside)))["notes"]
    assert notes["share OOD that is rendered beside a second peak"]["value"] == 0.5
    r2 = [np.corrcoef(draw(*cell).ravel(), beside(*cell).ravel())[0, 1] ** 2 for cell in HOLE]
    for share in (0.1, 0.5, 0.9):
        of_claim = notes[f"squared correlation OOD, quantile {share:g}"]["value"]
        assert of_claim == pytest.approx(np.quantile(r2, share), rel=1e-5)


def test_shares_of_trivial_predictors_are_counted_one_by_one():
    cells = decoder(blank)
    predictions = baselines.grid_predictions(cells.truths, cells.held_out, cells.sizes)
    shares = image_quantities.trivial_shares(cells)
    assert shares.keys() == predictions.keys() and max(shares.values()) > 0
    for name, predicted in predictions.items():
        drawn = zip(predicted, cells.truths, predictions["nearest_seen"], strict=True)
        hits = [images.rendered(*each) for each in drawn]
        assert shares[name] == pytest.approx(np.mean(np.array(hits)[cells.held_out])), name


def test_lit_pixels_are_those_that_some_seen_bump_reaches():
    """A hole 4 to 7: its inner pixels are 2 from the nearest seen centre, exp(-2) = .135 > .1,
    so all are lit; with signals cut off near the centre, the 4 inner ones are not."""
    cells, scores = decoder(blank), SETTINGS.make().scores
    assert control_claims.on_lit_pixels(cells, scores)[1].sum() == 16
    cut = np.where(cells.truths > 0.2, cells.truths, 0)
    cells = cell_results(0 * cells.predictions + cut, cut)
    masked, counted = control_claims.on_lit_pixels(cells, scores)
    assert counted.sum() == 12 and (counted <= cells.held_out).all()
    assert not masked.predictions[..., 5, 5].any() and not masked.truths[..., 5, 5].any()
    # right on every pixel that training lit
    row = judged(control_claims.lit_pixels_fail, net=run(cells))
    assert row["conditions"]["share rendered OOD, lit pixels"]["value"] == 1
