"""C8 to C10, C12 and C13, on decoders and inspections whose answer is known."""

import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import remedies
from compgen_jax.tasks.bump import ImageConfig, bump
from tests.papers.decoders import CELLS, N, cell_results, decoder, draw
from tests.papers.test_mechanism import TRAINED, inspection

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
STRIPES = np.stack(
    [np.broadcast_to(draw(c, 0)[0], (N, N)) for c in range(N)]
    + [np.broadcast_to(draw(0, c)[:, 0], (N, N)).T for c in range(N)]
)
NULL = np.zeros((3, N, N))
OWN = remedies.Stripes(np.stack([STRIPES] * 3), NULL, STRIPES)


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
    return cell_results(results.predictions + size[..., None, None])


def test_stripes_of_these_tests_are_the_tasks():
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
    rows = remedies.penalties_on_embeddings(ablations, embeddings)
    constant = "energy constant along the other axis, both"
    assert rows[2]["details"][constant]["value"] == 3 / 4
    assert tuple(row["stricter"]["verdict"] for row in rows) == verdicts
    # the seeds of these networks lie alike, so that medians say the same
    assert tuple(row["as_stated"]["verdict"] for row in rows) == verdicts
    assert {row["claim"] for row in rows} == {"C8"}
    # a factor common to a seed cancels
    assert rows[0]["stricter"]["measured"] == pytest.approx(
        2 * np.log10(errors[0][1] / max(e[1] for e in errors[1:])), abs=1e-4
    )


def lowered(x, y):
    return plus(x, y) - 0.8


@pytest.mark.parametrize(
    ("render", "level", "verdicts"),
    [
        (plus, 0.0, (R, R)),
        (lowered, 0.8, (R, R)),  # stripes do not teach the level
        (lowered, 0.0, (R, C)),  # not its own level
        (draw, 0.0, (C, C)),
        (blank, 0.0, (C, C)),
        (union, 0.0, (R, R)),  # all but the crossing is the plus
        (lambda x, y: plus(x, 1), 0.0, (C, C)),
    ],
)
def test_only_additive_conjunctions_add_up(render, level, verdicts):
    stripes = OWN._replace(null=NULL + level)
    row = remedies.stripes_add_up("bump", decoder(render), stripes)
    assert row["claim"] == "C9"
    assert (row["as_stated"]["verdict"], row["stricter"]["verdict"]) == verdicts


def test_weights_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    results = decoder(lambda x, y: 0.3 + 0.5 * plus(x, y) - 0.7 * draw(x, y))
    noise = 0.1 * rng.normal(size=results.predictions.shape)
    results = cell_results(results.predictions + noise)
    additive, product, r2 = remedies.weights(results, STRIPES)
    cells = [(x, y) for x, y in CELLS if 4 <= x <= 7 and 4 <= y <= 7]
    for seed in range(3):
        found = []
        for (x, y), signal in zip(cells, results.predictions[seed, results.held_out], strict=True):
            true = np.asarray(draw(x, y), np.float64).ravel()
            parts = np.stack([np.ones(N * N), plus(x, y).ravel(), true], axis=1)
            fit, left, *_ = np.linalg.lstsq(parts, signal.ravel().astype(np.float64))
            explained = 1 - left[0] / np.square(signal - signal.mean()).sum()
            found.append([*fit[1:], explained])
        expected = np.mean(found, axis=0)
        measured = additive[seed], product[seed], r2[seed]
        np.testing.assert_allclose(measured, expected, rtol=1e-4)


def test_correlations_ignore_a_common_level():
    row = remedies.stripes_add_up("bump", decoder(lowered), OWN)
    found = {name[len("correlation OOD with the ") :]: number["value"]
             for name, number in row["details"].items() if "correlation" in name}  # fmt: skip
    assert found["plus"] == pytest.approx(1, abs=1e-6)
    cells = [(x, y) for x, y in CELLS if 4 <= x <= 7 and 4 <= y <= 7]
    expected = [np.corrcoef(plus(x, y).ravel(), np.ravel(draw(x, y)))[0, 1] for x, y in cells]
    assert found["bump"] == pytest.approx(np.mean(expected), abs=1e-6)


def test_untrained_stripes_conclude_nothing():
    wrong = OWN._replace(drawn=np.roll(OWN.drawn, 1, axis=1))
    row = remedies.stripes_add_up("bump", decoder(plus), wrong)
    assert row["stricter"]["verdict"] == U
    assert row["stricter"]["reason"].startswith("not trained: accuracy on the stripes 0")


def test_few_bumps_must_give_bumps():
    def verdicts(few, none=plus):
        by_bumps = {0: decoder(none), 5: decoder(few), 9: decoder(draw)}
        row = remedies.few_bumps_multiply("bump", by_bumps, 5, OWN)
        assert row["claim"] == "C10"
        return row["as_stated"]["verdict"], row["stricter"]["verdict"]

    nearly = lambda x, y: draw(x, y) + 0.002
    assert verdicts(nearly) == (R, R)
    assert verdicts(plus) == (C, C)
    assert verdicts(nearly, none=nearly) == (C, R)  # it was a bump without any
    assert verdicts(lambda x, y: draw(x, y) + 0.3)[0] == C  # far from what is asked


def test_volume_must_be_closer_to_the_seen_one_and_flatter():
    def found(ratio, spread):
        numbers = {"volume.log10_ratio": [0, *ratio, 0], "volume.ood_spread": [0, *spread, 0]}
        return inspection(numbers)

    bumps = found((-0.8, 0.9), (0.5, 0.6))

    def verdicts(ratio, spread):
        row = remedies.volume_stays_smooth("bump", TRAINED, found(ratio, spread), bumps)
        assert row["claim"] == "C12"
        return row["as_stated"]["verdict"], row["stricter"]["verdict"]

    assert verdicts((0.3, -0.3), (0.2, 0.2)) == (R, R)
    assert verdicts((-0.9, 0.9), (0.2, 0.2)) == (C, C)  # as far on average, on both sides
    assert verdicts((0.3, -0.3), (0.7, 0.6)) == (R, C)


@pytest.mark.parametrize(
    ("one_factor", "product", "verdicts"),
    [
        ((0.8, 0.5, 0.2), (0.1, 0.3, 0.6), (R, R)),
        ((0.8, 0.7, 0.6), (0.1, 0.15, 0.2), (R, C)),  # as before training
        ((0.8, 0.8, 0.9), (0.1, 0.1, 0.0), (C, C)),  # stripes to the end
        ((0.2, 0.2, 0.1), (0.7, 0.6, 0.5), (C, C)),  # fewer bumps at the end
    ],
)
def test_units_must_turn_from_stripes_to_bumps(one_factor, product, verdicts):
    numbers = {
        "tuning.weighted_one_factor": (1, *one_factor, 0),
        "tuning.weighted_product": (0, *product, 1),
        "untrained.tuning.weighted_one_factor": (1, 0.9, 0.7, 0.5, 0),
        "untrained.tuning.weighted_product": (0, 0.1, 0.2, 0.3, 1),
    }
    found = inspection(numbers)
    row = remedies.units_turn_from_stripes_to_bumps("bump", TRAINED, found, found)
    assert row["claim"] == "C13"
    assert (row["as_stated"]["verdict"], row["stricter"]["verdict"]) == verdicts
    assert row["as_stated"]["measured"] == pytest.approx(one_factor[-1] - one_factor[0], abs=0.01)


def test_stripe_accuracy_reads_the_brightest_line():
    drawn = OWN.drawn.copy()
    drawn[1, 2] = STRIPES[3]  # a vertical stripe in the wrong place
    drawn[2, N + 1] = STRIPES[1]  # a vertical one for a horizontal one
    expected = [1, 1 - 1 / (2 * N), 1 - 1 / (2 * N)]
    np.testing.assert_allclose(remedies.stripe_accuracy(drawn, STRIPES), expected)
