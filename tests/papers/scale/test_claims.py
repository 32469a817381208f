"""Which runs the claims of the second paper are judged by, and their parts on numbers."""

from types import SimpleNamespace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import spearmanr

from compgen_jax.papers.scale import picks, quantities
from compgen_jax.papers.scale import scale_presets as rows
from compgen_jax.papers.scale.scale_claims import CLAIMS
from compgen_jax.papers.verdicts import judge_all
from tests.papers.criteria.scale_answers import known_run


def run_of(config):
    """A run of one seed whose gain is the number of its task."""
    seeds = {"0": {"ood.gain": float(getattr(config.task, "seed", 0))}}
    return SimpleNamespace(config=config, summary={"seeds": seeds, "task": {}})


def test_claims_pick_their_runs_by_config():
    quick, paper = ([run_of(c) for n, c in rows.runs(scale).items() if n.startswith("modules_")]
                    for scale in ("quick", "paper"))  # fmt: skip
    names = lambda runs: [run.config.name for run in runs]
    by_width = picks.seen_by_width(quick)
    assert list(by_width) == [16, 64, 256]
    expected = [f"modules_8_seen_{seen}_width_64_quick" for seen in (9, 22, 44, 69)]
    assert names(by_width[64]) == expected
    # the shares of every number of modules
    count = lambda by_modules: {modules: len(runs) for modules, runs in by_modules.items()}
    assert count(picks.seen_by_modules(paper)) == dict.fromkeys((8, 12, 16, 24), 4)
    assert count(picks.seen_by_modules(paper, "hypernetwork")) == {16: 4}
    widths = picks.width_by_modules(quick)
    assert list(widths) == [4, 8, 16]
    expected = [f"modules_16_seen_522_width_{width}_quick" for width in (32, 64, 128, 256)]
    assert names(widths[16].values()) == expected


def test_draws_stand_for_the_seeds_of_one_run():
    runs = {name: run_of(config) for name, config in rows.middle("quick").items()}
    more = picks.more(runs)
    assert len(more) == 9 + 5 + 1
    one = more["draws_seen_60_width_512"]
    assert one.seeds == (0, 1, 2, 3, 4, 5)
    assert_array_equal(quantities.score(one, "ood.gain"), range(6))
    # as many draws, but not the same ones
    runs["middle_seen_60_width_512_draw_9"] = runs.pop("middle_seen_60_width_512_draw_3")
    assert picks.more(runs).keys() == {"constructions"}
    runs.pop("middle_seen_60_width_512_draw_9")
    assert picks.more(runs).keys() == more.keys() - {"draws_seen_60_width_512"}


def test_needed_for_interpolates_in_the_logarithm_and_says_if_it_is_a_bound():
    sets = (80, 10, 20, 40)  # in any order
    gains = np.array([
        [0.9, 0.1, 0.3, 0.7],  # crosses halfway from 20 to 40
        [0.9, 0.6, 0.4, 0.8],  # the last crossing counts, a quarter of the way from 20 to 40
        [0.9, 0.5, 0.6, 0.7],  # the fewest reach it
        [0.4, 0.6, 0.7, 0.8],  # the most do not
        [0.5, 0.1, 0.2, 0.3],  # just the most do
    ]).T  # fmt: skip
    expected = [20 * 2**0.5, 20 * 2**0.25, 0, np.nan, 80]
    assert_allclose(quantities.needed_for(sets, gains), expected, rtol=1e-12)


def test_exponents_are_slopes_of_numbers_that_are_more_than_bounds():
    needed, sizes = np.random.default_rng(0).uniform(1, 9, (4, 5)), [4, 8, 16, 20]
    expected = np.polyfit(np.log(sizes), np.log(needed), 1)[0]
    assert_allclose(quantities.exponent(sizes, needed, "the fewest sets"), expected, rtol=1e-10)
    needed[0, :2] = np.nan, 0
    reason = quantities.exponent(sizes, needed, "the fewest sets")["undecided_because"]
    assert reason == "not reached in 1 of 20, reached with the fewest sets in 1 of 20"


def test_claims_on_all_students_wait_for_enough_of_them():
    few = {"modules_8_seen_69_width_256": known_run({}, seen=69)}
    every = [claim for claim in CLAIMS if claim.name.startswith(("S1", "S4"))]
    assert judge_all(every, few) == []


def test_correlations_are_scipys_within_groups():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 5, (3, 7, 4)).astype(float), rng.normal(size=(3, 7, 4))
    a[2, :, 3] = 1.0  # with which nothing varies
    expected = [
        sum(spearmanr(a[g, :, s], b[g, :, s])[0] for g in range(3 - (s == 3))) / 3 for s in range(4)
    ]
    assert_allclose(quantities.correlation(a, b + 100 * np.arange(3)[:, None, None]), expected)
