"""C9 and C10 on decoders whose answer is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import images, remedies
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
STRIPES = np.stack(
    [np.broadcast_to(draw(c, 0)[0], (N, N)) for c in range(N)]
    + [np.broadcast_to(draw(0, c)[:, 0], (N, N)).T for c in range(N)]
)
OOD = [(x, y) for x, y in CELLS if 4 <= x <= 7 and 4 <= y <= 7]


def plus(x, y):
    return STRIPES[x] + STRIPES[N + y]


def lowered(x, y):
    return plus(x, y) - 0.8


def striped(render, level=0.0, stripes=STRIPES, samples=0):
    """A run that draws these stripes, and the level where neither factor is given."""
    drawn = np.concatenate([stripes, np.full((1, N, N), level)])
    task = SimpleNamespace(grid=N, support=SimpleNamespace(samples=samples))
    return run(
        decoder(render), predict=lambda points: np.stack([drawn] * 3),
        config=SimpleNamespace(task=task),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def true_stripes(monkeypatch):
    monkeypatch.setattr(remedies, "true_stripes", lambda settings: STRIPES)


def test_true_stripes_are_the_tasks(monkeypatch):
    monkeypatch.undo()
    np.testing.assert_allclose(remedies.true_stripes(SETTINGS), STRIPES, atol=1e-6)


@pytest.mark.parametrize(
    ("render", "level", "expected"),
    [
        (plus, 0.0, (R, R)),
        (lowered, 0.8, (R, R)),  # stripes do not teach the level
        (lowered, 0.0, (R, C)),  # not its own level
        (lambda x, y: np.maximum(STRIPES[x], STRIPES[N + y]), 0.0, (R, R)),  # but for the crossing
        (lambda x, y: plus(x, 1), 0.0, (C, C)),
        (lambda x, y: STRIPES[x] + draw(x, y), 0.0, (C, C)),  # one stripe alone
        (lambda x, y: plus(x, y) + 1.5 * draw(x, y), 0.0, (C, R)),  # more product than stripes
    ],
)
def test_only_additive_conjunctions_add_up(render, level, expected):
    net = striped(render, level)
    assert verdicts(remedies.STRIPES_ADD_UP, {"shown": ""}, net=net) == expected


def test_weights_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    cells = decoder(lambda x, y: 0.3 + 0.5 * STRIPES[x] + 0.2 * STRIPES[N + y] - 0.7 * draw(x, y))
    cells = cell_results(cells.predictions + 0.1 * rng.normal(size=cells.predictions.shape))
    weights = np.array(remedies.weights(cells, STRIPES))
    for seed in range(3):
        expected = []
        for (x, y), signal in zip(OOD, cells.predictions[seed, cells.held_out], strict=True):
            parts = np.ones(N * N), STRIPES[x], STRIPES[N + y], np.asarray(draw(x, y), np.float64)
            parts = np.stack([np.ravel(part) for part in parts], axis=1)
            fit, left, *_ = np.linalg.lstsq(parts, signal.ravel().astype(np.float64))
            explained = 1 - left[0] / np.square(signal - signal.mean()).sum()
            expected.append([min(fit[1], fit[2]), fit[3], explained])
        np.testing.assert_allclose(weights[:, seed], np.mean(expected, axis=0), rtol=1e-4)


def test_correlations_ignore_a_common_level():
    details = judged(remedies.STRIPES_ADD_UP, {"shown": ""}, net=striped(lowered))["details"]
    of = lambda name: details[f"correlation OOD with the {name}"]["value"]
    assert of("plus") == pytest.approx(1, abs=1e-6)
    expected = [np.corrcoef(plus(x, y).ravel(), np.ravel(draw(x, y)))[0, 1] for x, y in OOD]
    assert of("bump") == pytest.approx(np.mean(expected), abs=1e-6)


def test_untrained_stripes_conclude_nothing():
    net = striped(plus, stripes=np.roll(STRIPES, 1, axis=0))
    row = judged(remedies.STRIPES_ADD_UP, {"shown": ", upright"}, net=net)
    assert row["code"] == "bump, upright" and row["stricter"]["verdict"] == U
    assert row["stricter"]["reason"].startswith("not trained: accuracy on the stripes 0")


def lifted(x, y):
    return draw(x, y) + 0.3


@pytest.mark.parametrize(
    ("few", "none", "kernel", "expected"),
    [
        (draw, plus, blank, (R, R)),
        (lifted, plus, blank, (R, R)),  # the level is free
        (plus, plus, blank, (C, C)),
        (draw, draw, blank, (U, R)),  # stripes alone are enough
        (draw, plus, draw, (R, U)),  # so is a kernel, with the bumps alone
        (lambda x, y: draw(x + 1, y), plus, blank, (C, C)),
    ],
)
def test_few_bumps_must_give_bumps(few, none, kernel, expected, monkeypatch):
    # rank one completes all of a hole as small as this
    monkeypatch.setattr(images, "trivial_shares", lambda cells: {"blank": 0.0, "rank_one": 0.1})
    runs = {0: striped(none, samples=0), 9: striped(draw, samples=9), 5: striped(few, samples=5)}
    runs[5].interpolator = decoder(kernel)
    row = judged(
        remedies.FEW_BUMPS_MULTIPLY, {"few": 5, "shown": ", upright"}, net=runs[5], none=runs[0],
        by_bumps=list(runs.values()),
    )  # fmt: skip
    assert (row["as_stated"]["verdict"], row["stricter"]["verdict"]) == expected
    assert row["code"] == "bump, upright"
    best = "interpolator" if kernel is draw else "rank one"
    assert row["stricter"]["criterion"] == (
        "share rendered OOD, 5 bumps above 0.9; "
        f"share rendered OOD, less the best predictor's ({best}) above 0"
    )
    if expected[0] == U:
        reason = "without bumps 1 are rendered as well: share rendered OOD, 5 bumps minus none"
        assert row["as_stated"]["reason"] == reason
    assert [n for n in row["details"] if "share rendered OOD" in n] == [
        f"share rendered OOD, {count} bumps" for count in (0, 5, 9)
    ]
    assert row["details"]["product weight, 9 bumps"]["value"] == pytest.approx(1, abs=1e-5)


def test_every_setting_has_its_own_run_without_bumps():
    names = [f"stripes_{few}_bumps{shown}" for few in (0, 30) for shown in remedies.SHOWN]
    runs = {name: SimpleNamespace(seeds=(0,)) for name in names}
    chosen = claims.evidences(remedies.FEW_BUMPS_MULTIPLY, runs)
    pairs = [(e.names["net"], e.names["none"], len(e.by_bumps)) for e in chosen]
    assert pairs == [
        (f"stripes_30_bumps{shown}", f"stripes_0_bumps{shown}", 2) for shown in remedies.SHOWN
    ]
    assert len(claims.evidences(remedies.STRIPES_ADD_UP, runs)) == 5


def test_stripe_accuracy_reads_the_brightest_line():
    drawn = np.stack([STRIPES] * 3)
    drawn[1, 2] = STRIPES[3]  # a vertical stripe in the wrong place
    drawn[2, N + 1] = STRIPES[1]  # a vertical one for a horizontal one
    expected = [1, 1 - 1 / (2 * N), 1 - 1 / (2 * N)]
    stripes = remedies.Stripes(drawn, np.zeros((3, N, N)), STRIPES)
    np.testing.assert_allclose(remedies.stripe_accuracy(stripes), expected)
