"""C8 to C10, C12, C13 and the controls, on decoders and inspections whose answer is known."""

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.analysis import predictors
from tests.analysis.test_evaluation import N, draw
from tests.test_claims import CELLS, decoder
from tests.test_claims_mechanism import TRAINED, inspection

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
STRIPES = np.stack(
    [np.broadcast_to(draw(c, 0)[0], (N, N)) for c in range(N)]
    + [np.broadcast_to(draw(0, c)[:, 0], (N, N)).T for c in range(N)]
)
DRAWN = np.stack([STRIPES] * 3)


def plus(x, y):
    return STRIPES[x] + STRIPES[N + y]


def union(x, y):
    return np.maximum(STRIPES[x], STRIPES[N + y])


def blank(x, y):
    return 0 * draw(x, y)


def with_error(seen, unseen):
    """Results of three seeds, true but for constant errors, a little different by seed."""
    results = decoder(draw)
    size = np.where(results.held_out, unseen, seen)[None] * np.array([0.9, 1.0, 1.1])[:, None]
    return results._replace(signals=results.signals + size[..., None, None])


def test_stripes_of_these_tests_are_the_tasks():
    import jax.numpy as jnp

    from compgen_jax.config import ImageConfig
    from compgen_jax.tasks.bump import bump

    for c in (0, 3, N - 1):
        expected = bump(jnp.float32(c), None, N, ImageConfig())
        np.testing.assert_allclose(STRIPES[c], expected, atol=1e-6)
        np.testing.assert_allclose(STRIPES[N + c], expected.T, atol=1e-6)


@pytest.mark.parametrize(
    ("errors", "verdicts"),
    [
        # (ID, OOD) without penalties, with entropy, with variance, with both
        (((1, 50), (2, 40), (3, 9), (2, 3)), (R, R, R)),
        (((1, 50), (2, 20), (3, 9), (2, 3)), (R, C, R)),  # entropy alone helps much
        (((2, 50), (1, 40), (3, 9), (2, 3)), (C, R, R)),  # not the lowest ID
        (((1, 50), (2, 60), (3, 9), (2, 3)), (C, R, R)),  # not the highest OOD
        (((1, 50), (2, 40), (3, 9), (2, 10)), (R, R, C)),  # variance alone is better
        (((1, 500), (2, 450), (3, 400), (2, 300)), (R, C, C)),  # the best is worse than blank
    ],
)
def test_ablations_are_compared_in_pairs(errors, verdicts):
    names = ("none", "entropy", "variance", "both")
    ablations = {
        name: with_error(seen * 1e-3, unseen * 1e-3)
        for name, (seen, unseen) in zip(names, errors, strict=True)
    }
    embeddings = {
        name: {"top_share": np.full(3, 0.9), "constant_share": np.full(3, k / 4)}
        for k, name in enumerate(names)
    }
    rows = claims.penalties_on_embeddings(ablations, embeddings)
    constant = "energy constant along the other axis, both"
    assert rows[2]["details"][constant]["value"] == 3 / 4
    assert tuple(row["verdict"] for row in rows) == verdicts
    assert {row["claim"] for row in rows} == {"C8"}
    # a factor common to a seed cancels
    assert rows[0]["measured"] == pytest.approx(
        2 * np.log10(errors[0][1] / max(e[1] for e in errors[1:])), abs=1e-4
    )


@pytest.mark.parametrize(
    ("render", "verdict"), [(plus, R), (draw, C), (blank, C), (lambda x, y: plus(x, 1), C)]
)
def test_only_additive_conjunctions_add_up(render, verdict):
    row = claims.stripes_add_up("bump", decoder(render), (DRAWN, STRIPES))
    assert (row["claim"], row["verdict"]) == ("C9", verdict)


def test_the_plus_is_told_from_the_brighter_of_both_stripes():
    name = "MSE OOD to the brighter of both stripes / a blank image's"
    for render, is_union in ((plus, False), (union, True)):
        row = claims.stripes_add_up("bump", decoder(render), (DRAWN, STRIPES))
        assert (row["details"][name]["value"] < 1e-6) == is_union


def test_correlations_ignore_a_common_level():
    """A plus less a constant is not the plus, by its error, but correlates with it fully."""
    lowered = lambda x, y: plus(x, y) - 0.8
    row = claims.stripes_add_up("bump", decoder(lowered), (DRAWN, STRIPES))
    found = {name[len("correlation OOD with the ") :]: number["value"]
             for name, number in row["details"].items() if "correlation" in name}  # fmt: skip
    assert row["verdict"] == C and found["plus"] == pytest.approx(1, abs=1e-6)
    cells = [(x, y) for x, y in CELLS if 4 <= x <= 7 and 4 <= y <= 7]
    expected = [np.corrcoef(plus(x, y).ravel(), np.ravel(draw(x, y)))[0, 1] for x, y in cells]
    assert found["bump"] == pytest.approx(np.mean(expected), abs=1e-6)


def test_untrained_stripes_conclude_nothing():
    row = claims.stripes_add_up("bump", decoder(plus), (np.roll(DRAWN, 1, axis=1), STRIPES))
    assert row["verdict"] == U and row["details"]["accuracy on the stripes"]["value"] < 0.1


def test_few_bumps_must_turn_the_plus_into_a_bump():
    def verdict(few, none=plus):
        by_bumps = {0: decoder(none), 5: decoder(few), 9: decoder(draw)}
        row = claims.few_bumps_multiply("bump", by_bumps, 5, (DRAWN, STRIPES))
        assert row["claim"] == "C10"
        return row["verdict"]

    nearly = lambda x, y: draw(x, y) + 0.02
    assert verdict(nearly) == R
    assert verdict(plus) == C
    assert verdict(nearly, none=nearly) == C  # it was a bump without any
    assert verdict(lambda x, y: draw(x, y) + 0.3) == C  # nearer to the bump, but not good


def test_volume_must_be_closer_to_the_seen_one_and_flatter():
    def found(ratio, spread):
        numbers = {"volume.log10_ratio": [0, *ratio, 0], "volume.ood_spread": [0, *spread, 0]}
        return inspection(numbers)

    bumps = found((-0.8, 0.9), (0.5, 0.6))

    def verdict(ratio, spread):
        row = claims.volume_stays_smooth("bump", TRAINED, found(ratio, spread), bumps)
        return row["verdict"]

    assert verdict((0.3, -0.3), (0.2, 0.2)) == R
    assert verdict((-0.9, 0.9), (0.2, 0.2)) == C  # as far on average, on both sides
    assert verdict((0.3, -0.3), (0.7, 0.6)) == C


@pytest.mark.parametrize(
    ("one_factor", "product", "verdict"),
    [
        ((0.8, 0.5, 0.2), (0.1, 0.3, 0.6), R),
        ((0.4, 0.3, 0.2), (0.1, 0.3, 0.6), C),  # additive from the start
        ((0.8, 0.8, 0.8), (0.1, 0.1, 0.1), C),  # stripes to the end
        ((0.2, 0.2, 0.1), (0.6, 0.6, 0.7), C),  # bumps from the start
        ((0.8, 0.6, 0.3), (0.1, 0.2, 0.2), C),  # late units are noise
    ],
)
def test_units_must_turn_from_stripes_to_bumps(one_factor, product, verdict):
    numbers = {"tuning.one_factor": (1, *one_factor, 0), "tuning.product": (0, *product, 1)}
    found = inspection(numbers)
    row = claims.units_turn_from_stripes_to_bumps("bump", TRAINED, found, found)
    assert (row["claim"], row["verdict"]) == ("C13", verdict)
    assert row["measured"] == pytest.approx(one_factor[0], abs=0.01)


def test_stripe_accuracy_reads_the_brightest_line():
    drawn = DRAWN.copy()
    drawn[1, 2] = STRIPES[3]  # a vertical stripe in the wrong place
    drawn[2, N + 1] = STRIPES[1]  # a vertical one for a horizontal one
    from compgen_jax.claims.forced_rendering.remedies import stripe_accuracy

    expected = [1, 1 - 1 / (2 * N), 1 - 1 / (2 * N)]
    np.testing.assert_allclose(stripe_accuracy(drawn, STRIPES), expected)


def test_controls_ask_for_failure_or_for_composition():
    for render, composes in ((draw, True), (blank, False)):
        results = decoder(render)
        wide, random = claims.wide_bumps_fail(results), claims.random_cells_are_composed(results)
        shared = claims.shared_pixels_compose(results)
        stripes = claims.stripes_beat_trivial_predictors(results)
        assert [row["claim"] for row in (wide, random, shared, stripes)] == ["K1", "K3", "K4", "K5"]
        assert wide["verdict"] == (C if composes else R)
        assert {row["verdict"] for row in (random, shared, stripes)} == {R if composes else C}


def test_lit_pixels_are_those_that_some_seen_bump_reaches():
    """A hole 4 to 7: its inner pixels are 2 from the nearest seen centre, exp(-2) = .135 > .1,
    so all are lit; with signals cut off near the centre, the 4 inner ones are not."""
    results = decoder(blank)
    row = claims.lit_pixels_fail(results)
    assert row["verdict"] == R and row["details"]["share of pixels lit in training"]["value"] == 1
    cut = lambda images: np.where(images > 0.2, images, 0)
    results = results._replace(targets=cut(results.targets), signals=cut(results.signals))
    row = claims.lit_pixels_fail(results)
    lit = row["details"]["share of pixels lit in training"]["value"]
    assert lit == pytest.approx(1 - 4 / N**2)
    reachable = row["details"]["share of held-out cells whose pixel is lit"]["value"]
    assert reachable == pytest.approx(12 / 16)
    # right on every pixel that training lit, wrong on the others: no failure on lit pixels
    perfect = results._replace(signals=np.broadcast_to(results.targets, results.signals.shape))
    assert claims.lit_pixels_fail(perfect)["verdict"] == C


def test_trivial_errors_are_those_of_the_predictors():
    results = decoder(blank)
    errors = claims.trivial_errors(results)
    assert set(errors) == set(predictors.PREDICTORS) and errors["blank"] == pytest.approx(1)
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
        "conditions": {"exact accuracy OOD": {"value": middle, "ci95": [low, high]}},
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
    text = claims.conclude(rows)
    assert all(word in text for word in words), text
    assert (MORE in text) == more


def test_conclusion_of_some_controls_and_of_untrained_ones():
    assert claims.conclude([control("K3", COMPOSED)]).startswith("Scattered cells, which")
    rows = [control("K1", FAILS, trained=0.9), control("K5", COMPOSED)]
    text = claims.conclude(rows)
    assert "did not learn them" in text and "not enough" not in text and MORE not in text


def test_each_condition_of_a_control_decides():
    """Right positions with a huge error, and small errors with wrong positions."""
    loud = decoder(lambda x, y: 9 * draw(x, y))
    row = claims.stripes_beat_trivial_predictors(loud)
    assert row["verdict"] == C and row["measured"] == 1
    assert claims.lit_pixels_fail(loud)["verdict"] == C
    faint = decoder(lambda x, y: 0.999 * draw(x, y))
    assert claims.stripes_beat_trivial_predictors(faint)["verdict"] == R
    misplaced = decoder(lambda x, y: 0.9 * draw(x, y) + 0.95 * draw(x + 1, y))
    row = claims.stripes_beat_trivial_predictors(misplaced)
    assert row["measured"] < 0.5 and row["verdict"] == C


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_wide_bumps_light_every_pixel(scale):
    from compgen_jax.tasks import supports
    from figures.forced_rendering.networks import remedies

    task = remedies(scale)["wide"].task
    centres = supports.seen_cells(task)
    pixels = np.arange(task.grid)
    profiles = [
        np.exp(-((pixels - c[:, None]) ** 2) / (2 * task.image.sigma**2)) for c in centres.T
    ]
    brightest = np.max(profiles[1][:, :, None] * profiles[0][:, None, :], axis=0)
    assert brightest.min() > 0.1
