"""Students of the preference gridworld whose shares of right steps are known, as numbers."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from compgen_jax.papers.scale.known_students import SEEDS, known_run
from compgen_jax.runs.run import Run

# Share of right steps on held-out sets of the nearest seen set's plan, by sets seen, and of the
# most frequent action: trivial predictors of the quick gridworld, 512 episodes.
NEAREST, MAJORITY = {9: 0.61, 69: 0.70}, 0.19
LEARNT = {9: 0.1, 69: 0.85}  # share of the nearest plan's errors that a learner corrects
NOISE = 0.01


class KnownPlan(NamedTuple):
    """right: sets seen -> the shares of right steps on seen and on held-out sets.  does: what, in
    words."""

    right: Callable
    does: str


def _toward_expert(seen: int, sign=1) -> float:
    learnt = LEARNT[seen] if sign > 0 else 1 - LEARNT[seen]
    return NEAREST[seen] + learnt * (1 - NEAREST[seen])


PLANS = {
    "learner": KnownPlan(
        lambda seen: (0.99, _toward_expert(seen)),
        "corrects the more of the nearest plan's errors, the more sets it has seen",
    ),
    "composer": KnownPlan(lambda seen: (0.99, 0.99), "the expert, with any sets seen"),
    "nearest": KnownPlan(lambda seen: (1.0, NEAREST[seen]), "the nearest seen set's plan"),
    "approacher": KnownPlan(
        lambda seen: (1.0, MAJORITY + (NEAREST[seen] - MAJORITY) * LEARNT[seen]),
        "from the most frequent action to the nearest plan, the further the more sets it has seen",
    ),
    "reversed": KnownPlan(
        lambda seen: (0.99, _toward_expert(seen, -1)), "the worse the more sets it has seen"
    ),
    "majority": KnownPlan(lambda seen: (MAJORITY, MAJORITY), "the most frequent action"),
    "untrained": KnownPlan(
        lambda seen: (0.7, 0.5 * _toward_expert(seen)), "a learner that learnt little of seen sets"
    ),
}


def runs_of(name: str) -> dict[str, Run]:
    """A student that has seen the fewest sets, and one that has seen the most."""
    rng, found = np.random.default_rng(0), {}
    noisy = lambda value: value + NOISE * rng.normal(size=len(SEEDS))
    for argument, seen in zip(("few", "many"), NEAREST, strict=True):
        seen_sets, held_out = PLANS[name].right(seen)
        scores = {
            "id.step_accuracy": noisy(seen_sets),
            "ood.step_accuracy": noisy(held_out),
            "ood.nearest_seen_miss": noisy(1 - NEAREST[seen]),
        }
        found[argument] = known_run(scores, seen=seen)
    return found
