"""K1 to K5 on decoders whose answer is known, and what they say together."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import controls
from compgen_jax.runs import results
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks
from tests.papers.decoders import (
    CELLS,
    SETTINGS,
    N,
    blank,
    cell_results,
    decoder,
    draw,
    judged,
    run,
    verdicts,
)

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
ON_ONE_OBJECT = controls.CLAIMS[1:]  # K2 to K5


@pytest.mark.parametrize(
    ("render", "expected"),  # of both readings of each control, in order
    [
        (draw, ((C, C), (R, C), (R, R), (R, U))),
        (blank, ((R, R), (C, C), (C, C), (C, C))),
        (lambda x, y: 9 * draw(x, y), ((R, R), (C, C), (C, C), (C, C))),
        (lambda x, y: draw(x + 1, y), ((R, R), (C, C), (C, C), (C, C))),
    ],
)
def test_controls_ask_for_failure_or_for_composition(render, expected):
    """Beside an interpolator that renders nothing. Rank one renders all of so small a hole as well,
    so that K5 is open here (it is reproduced at N = 16: `test_calibration`)."""
    net = run(decoder(render))
    found = [verdicts(claim, net=net) for claim in ON_ONE_OBJECT]
    assert [claim.name for claim in controls.CLAIMS] == ["K1", "K2", "K3", "K4", "K5"]
    assert tuple(found) == expected


def test_what_an_interpolator_renders_is_not_composed():
    net = run(decoder(draw), interpolator=decoder(draw))
    found = [verdicts(claim, net=net) for claim in ON_ONE_OBJECT]
    assert found == [(C, C), (R, R), (R, U), (R, U)]
    for claim, best in zip(ON_ONE_OBJECT[2:], ("interpolator", "rank one"), strict=True):
        names = judged(claim, net=net)["stricter"]["conditions"]
        assert f"share rendered OOD, less the best predictor's ({best})" in names


@cache
def pairs(*drawn):
    """A run of two objects that draws these of (first, second) at ID and at held-out cells."""
    task = replace(SETTINGS, bumps=2).make()
    points = tasks.points(task)
    truths = results.truths_at(task, points)
    firsts = np.stack([draw(*cell) for cell in CELLS])
    parts = {"first": firsts, "second": truths - firsts, "": 0 * firsts, "both": truths}
    id_images, ood_images = (parts[name] for name in drawn)
    held_out = np.asarray(task.held_out(points))[:, None, None]
    with jax.numpy_rank_promotion("allow"):
        return run(results.scorer(task)(np.stack([np.where(held_out, ood_images, id_images)] * 3)))


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (("both", "both"), (C, C)),
        (("both", "second"), (R, R)),
        (("both", "first"), (U, C)),  # of the first nothing can be told
        (("both", ""), (U, C)),
        (("first", "second"), (U, U)),
        (("second", "second"), (U, U)),
    ],
)
def test_the_second_object_must_be_rendered_and_both_be_learnt(drawn, expected):
    row = judged(controls.ANOTHER_OBJECT_LIGHTS, net=pairs(*drawn))
    assert (row["as_stated"]["verdict"], row["stricter"]["verdict"]) == expected
    if expected == (U, U):
        reason = row["as_stated"]["reason"]
        assert reason.startswith("not trained: share rendered ID, both objects 0")
    assert row["details"]["share of pixels lit in training"]["value"] == 1


def test_the_first_object_counts_where_the_second_is_rendered():
    """In three quarters of the held-out images both are right, in the others neither is drawn."""
    net = pairs("both", "both")
    held_out = np.flatnonzero(net.cells.held_out)
    drawn = net.cells.predictions.copy()
    drawn[:, held_out[::4]] = 0
    with jax.numpy_rank_promotion("allow"):
        half = run(results.scorer(replace(SETTINGS, bumps=2).make())(drawn))
    for one in (net, half):
        assert judged(controls.ANOTHER_OBJECT_LIGHTS, net=one)["as_stated"]["measured"] == 1
    drawn[:, held_out[::2]] = 0
    with jax.numpy_rank_promotion("allow"):
        few = run(results.scorer(replace(SETTINGS, bumps=2).make())(drawn))
    row = judged(controls.ANOTHER_OBJECT_LIGHTS, net=few)
    assert row["as_stated"]["reason"].startswith("the second object is not rendered beside")


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


def rows(*verdicts):
    """Judged rows of K1 to K5 as far as the conclusion reads them."""
    return [
        {"claim": f"K{k}", "statement": f"statement {k}"}
        | {
            reading: {"verdict": verdict, "reason": "one seed decides" * (verdict == U)}
            for reading, verdict in zip(claims.READINGS, pair, strict=True)
        }
        for k, pair in enumerate(verdicts, start=1)
    ]


def test_the_conclusion_is_made_of_verdicts():
    both = rows((R, R), (R, R), (R, R), (R, R), (R, R))
    assert controls.conclude(both) == " ".join(controls.SENTENCES[row["claim"]][R] for row in both)
    against = rows(*[(C, C)] * 5)
    assert controls.conclude(against) == " ".join(
        controls.SENTENCES[row["claim"]][C] for row in against
    )
    said = controls.conclude(rows((R, C), (U, U), (R, U)))
    assert said == (
        "K1 (statement 1) holds as stated alone. K2 (statement 2) is open: one seed decides. "
        "K3 (statement 3) holds as stated alone."
    )
    assert controls.conclude([]) == ""
