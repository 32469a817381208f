"""K1 to K5 on decoders whose answer is known, and what they say together."""

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import controls
from compgen_jax.tasks import baselines
from tests.papers.decoders import (
    CELLS,
    N,
    blank,
    cell_results,
    decoder,
    draw,
    judged,
    run,
    verdicts,
)

R, C = claims.REPRODUCED, claims.CONTRADICTED


@pytest.mark.parametrize(
    ("render", "expected"),  # of each control, in order
    [
        (draw, (C, C, R, R, R)),
        (blank, (R, R, C, C, C)),
        (lambda x, y: 9 * draw(x, y), (C, C, R, R, C)),  # right positions with a huge error
        # wrong positions
        (lambda x, y: 0.9 * draw(x, y) + 0.95 * draw(x + 1, y), (R, R, C, C, C)),
    ],
)
def test_controls_ask_for_failure_or_for_composition(render, expected):
    net = run(decoder(render))
    found = [verdicts(claim, net=net) for claim in controls.CLAIMS]
    assert [claim.name for claim in controls.CLAIMS] == ["K1", "K2", "K3", "K4", "K5"]
    assert found == [(verdict, verdict) for verdict in expected]


def test_lit_pixels_are_those_that_some_seen_bump_reaches():
    """A hole 4 to 7: its inner pixels are 2 from the nearest seen centre, exp(-2) = .135 > .1,
    so all are lit; with signals cut off near the centre, the 4 inner ones are not."""
    results = decoder(blank)
    row = judged(controls.LIT_PIXELS_FAIL, net=run(results))
    assert row["details"]["share of pixels lit in training"]["value"] == 1
    cut = lambda images: np.where(images > 0.2, images, 0)
    results = cell_results(cut(results.predictions), cut(results.truths))
    row = judged(controls.LIT_PIXELS_FAIL, net=run(results))
    lit = row["details"]["share of pixels lit in training"]["value"]
    assert lit == pytest.approx(1 - 4 / N**2)
    reachable = row["details"]["share of held-out cells whose pixel is lit"]["value"]
    assert reachable == pytest.approx(12 / 16)
    # right on every pixel that training lit, wrong on the others: no failure on lit pixels
    perfect = cell_results(np.stack([results.truths] * 3), results.truths)
    assert verdicts(controls.LIT_PIXELS_FAIL, net=run(perfect)) == (C, C)


def test_trivial_errors_are_those_of_the_predictors():
    results = decoder(blank)
    errors = controls.trivial_errors(results)
    assert set(errors) == set(baselines.GRID_PREDICTORS) and errors["blank"] == pytest.approx(1)
    # the nearest seen cell of each, by hand: the first in row-major order of the nearest
    total, blank_total = 0.0, 0.0
    for x, y in np.array(CELLS)[results.held_out]:
        seen = [(a, b) for a, b in CELLS if not (4 <= a <= 7 and 4 <= b <= 7)]
        nearest = min(seen, key=lambda cell: (cell[0] - x) ** 2 + (cell[1] - y) ** 2)
        total += np.square(draw(*nearest) - draw(x, y)).sum()
        blank_total += np.square(draw(x, y)).sum()
    assert errors["nearest_seen"] == pytest.approx(total / blank_total, rel=1e-5)


def control(claim, exact, trained=1.0, within=0.9):
    """A row as far as the conclusion reads it: mean and interval of the exact accuracy."""
    low, middle, high = exact
    return {
        "claim": claim,
        "stricter": {"conditions": {"exact accuracy OOD": {"value": middle, "ci95": [low, high]}}},
        "details": {
            "exact accuracy ID": {"value": trained},
            "accuracy OOD within 1 pixel": {"value": within},
        },
    }


FAILS, PARTLY, COMPOSED = (0.1, 0.2, 0.3), (0.4, 0.85, 0.95), (0.95, 0.97, 0.99)
MORE = "So stripes give more than pixels lit as wide bumps light them."


@pytest.mark.parametrize(
    ("accuracies", "words", "more"),
    [
        ((FAILS, FAILS, COMPOSED, PARTLY, COMPOSED),
         ["not enough: with bumps wide enough to do so, 20% of", "(90% within one pixel of it)",
          "ordinary bumps fail as well (20%", "Scattered cells, which have seen neighbours",
          "composes partly without a remedy", "do compose the block (97% exact)"], True),
        ((COMPOSED, PARTLY, PARTLY, FAILS, COMPOSED),
         ["Lighting every pixel is enough", "partly right (85%", "partly composed (85%",
          "share fails without a remedy"], False),
        ((FAILS, COMPOSED, FAILS, COMPOSED, FAILS),
         ["ordinary bumps do not fail", "Scattered cells fail like a block",
          "share composes without a remedy", "do not compose the block"], False),
        ((PARTLY, FAILS, FAILS, FAILS, COMPOSED), ["is partly enough"], False),
    ],
)  # fmt: skip
def test_conclusion_says_what_the_controls_found(accuracies, words, more):
    rows = [control(f"K{k}", exact) for k, exact in enumerate(accuracies, start=1)]
    text = controls.conclude(rows)
    assert all(word in text for word in words), text
    assert (MORE in text) == more


def test_conclusion_of_some_controls_and_of_untrained_ones():
    assert controls.conclude([control("K3", COMPOSED)]).startswith("Scattered cells, which")
    rows = [control("K1", FAILS, trained=0.9), control("K5", COMPOSED)]
    text = controls.conclude(rows)
    assert "did not learn them" in text and "not enough" not in text and MORE not in text
