"""K1 to K5 on decoders whose answer is known, and what they say together."""

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import controls
from compgen_jax.papers.forced_rendering import runs as networks
from compgen_jax.tasks import baselines, bump, supports
from tests.papers.decoders import CELLS, N, cell_results, decoder, draw, task

R, C = claims.REPRODUCED, claims.CONTRADICTED


def blank(x, y):
    return 0 * draw(x, y)


def test_controls_ask_for_failure_or_for_composition():
    for render, composes in ((draw, True), (blank, False)):
        results = decoder(render)
        wide = controls.wide_bumps_fail(results)
        random = controls.random_cells_are_composed(results)
        shared = controls.shared_pixels_compose(results)
        stripes = controls.stripes_beat_trivial_predictors(results)
        assert [row["claim"] for row in (wide, random, shared, stripes)] == ["K1", "K3", "K4", "K5"]
        assert wide["stricter"]["verdict"] == (C if composes else R)
        assert {row["stricter"]["verdict"] for row in (random, shared, stripes)} == {
            R if composes else C
        }


def test_lit_pixels_are_those_that_some_seen_bump_reaches():
    """A hole 4 to 7: its inner pixels are 2 from the nearest seen centre, exp(-2) = .135 > .1,
    so all are lit; with signals cut off near the centre, the 4 inner ones are not."""
    results = decoder(blank)
    row = controls.lit_pixels_fail(results, task().scores)
    assert (
        row["stricter"]["verdict"] == R
        and row["details"]["share of pixels lit in training"]["value"] == 1
        and row["claim"] == "K2"
    )
    cut = lambda images: np.where(images > 0.2, images, 0)
    results = cell_results(cut(results.predictions), cut(results.truths))
    row = controls.lit_pixels_fail(results, task().scores)
    lit = row["details"]["share of pixels lit in training"]["value"]
    assert lit == pytest.approx(1 - 4 / N**2)
    reachable = row["details"]["share of held-out cells whose pixel is lit"]["value"]
    assert reachable == pytest.approx(12 / 16)
    # right on every pixel that training lit, wrong on the others: no failure on lit pixels
    perfect = cell_results(np.stack([results.truths] * 3), results.truths)
    assert controls.lit_pixels_fail(perfect, task().scores)["stricter"]["verdict"] == C


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


def test_each_condition_of_a_control_decides():
    """Right positions with a huge error, and small errors with wrong positions."""
    loud = decoder(lambda x, y: 9 * draw(x, y))
    row = controls.stripes_beat_trivial_predictors(loud)
    assert row["stricter"]["verdict"] == C and row["stricter"]["measured"] == 1
    assert controls.lit_pixels_fail(loud, task().scores)["stricter"]["verdict"] == C
    faint = decoder(lambda x, y: 0.999 * draw(x, y))
    assert controls.stripes_beat_trivial_predictors(faint)["stricter"]["verdict"] == R
    misplaced = decoder(lambda x, y: 0.9 * draw(x, y) + 0.95 * draw(x + 1, y))
    row = controls.stripes_beat_trivial_predictors(misplaced)
    assert row["stricter"]["measured"] < 0.5 and row["stricter"]["verdict"] == C


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_wide_bumps_light_every_pixel(scale):
    (wide,) = [n for n in networks.networks(scale) if n.role.control == "wide"]
    task = wide.config.task
    centres = supports.seen_cells(bump.support(task))
    pixels = np.arange(task.grid)
    profiles = [
        np.exp(-((pixels - c[:, None]) ** 2) / (2 * task.image.sigma**2)) for c in centres.T
    ]
    brightest = np.max(profiles[1][:, :, None] * profiles[0][:, None, :], axis=0)
    assert brightest.min() > 0.1
