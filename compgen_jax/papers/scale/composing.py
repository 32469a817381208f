"""S1: do more sets of modules and wider students lead to composition?

At the middle scale a network is a draw of teacher, split and seed, so intervals are over these.
"""

import numpy as np

from compgen_jax.claims import TRAINED, above, below, claim, learnt, note
from compgen_jax.papers.scale import picks
from compgen_jax.papers.scale.quantities import (
    COMPOSED,
    exponent,
    needed_for,
    score,
    scores,
    slope,
)

RISE = 0.1
R2, GAIN, STEPS = "ood.r2", "ood.gain", "ood.step_accuracy"
TITLES = {
    R2: "R² OOD",
    GAIN: "gain OOD",
    STEPS: "step accuracy OOD",
    "id.r2": "R² ID",
    "id.step_accuracy": "step accuracy ID",
}
STUDENTS = (  # cases of claims on all students of a scale
    {"case": "", "students": "modules_*"},
    {"case": "middle scale", "students": "draws_*"},
)
CASES = {  # by figure: students of the fewest sets seen and of the most
    figure: [
        {"case": case, "few": name.format(few), "many": name.format(many)}
        for case, name, few, many in rows
    ]
    for figure, rows in {
        "scale1": (
            ("data", "modules_8_seen_{}_width_256", 9, 69),
            ("data", "modules_16_seen_{}_width_2048", 11, 609),
            ("data, middle scale", "draws_seen_{}_width_512", 60, 522),
        ),
        "scale1d": (
            ("transformer", "modules_8_seen_{}_width_64_task_transformer", 9, 69),
            ("hypernetwork", "modules_8_seen_{}_width_64_hypernetwork", 9, 69),
            ("transformer", "modules_16_seen_{}_width_256_task_transformer", 70, 522),
            ("hypernetwork", "modules_16_seen_{}_width_1024_hypernetwork", 70, 522),
        ),
        "gridworld": (
            ("preference gridworld", "preference_seen_{}", 9, 69),
            ("preference gridworld", "preference_seen_{}", 60, 522),
        ),
    }.items()
}
PAIR = {"few": "{few}", "many": "{many}"}
OTHERS = {"figure": "scale1d", "cases": CASES["scale1d"]}
PREFERENCES = {"figure": "gridworld", "cases": CASES["gridworld"]}
RIGHT_STEPS = {"quantity": STEPS, "learnt_by": "id.step_accuracy", "trained": 0.9}


@claim("S1a", figure="scale1", cases=CASES["scale1"], runs=PAIR)
def more_sets_help(few, many, quantity=R2, learnt_by="id.r2", trained=TRAINED, least=-np.inf):
    """More sets of modules seen raise R² on held-out ones."""
    name = TITLES[quantity]
    yield learnt(score(many, learnt_by), TITLES[learnt_by], trained)
    sets = [picks.sets_seen(run.config) for run in (few, many)]
    low, high = (np.maximum(score(run, quantity), least) for run in (few, many))
    yield above(RISE, high - low, f"{name} at {sets[1]} - at {sets[0]} sets seen", against=0)
    for count, run in zip(sets, (few, many), strict=True):
        yield note(f"{name} at {count} sets", score(run, quantity))


more_sets_raise_the_gain = more_sets_help.variant(
    "S1a.gain",
    "More sets of modules seen raise the gain over the best bilinear map, counted from 0.",
    after=True,
    quantity=GAIN,
    least=0.0,
)


@claim(
    "S1a.interpolation",
    figure="same_examples",
    cases=[{"case": f"{sets} sets", "support": f"{sets}_width_256"} for sets in (9, 22, 44, 69)]
    + [
        {"case": support, "support": f"44_width_256_{support}"}
        for support in ("equal", "popular", "unpopular", "disconnected")
    ],
    runs={"student": "few_modules_8_seen_{support}"},
)
def more_than_interpolation(student):
    """A student gains more on held-out sets than kernel regression on the same examples."""
    yield learnt(score(student, "id.r2"), "R² ID")
    gain, by_kernel = score(student, GAIN), score(student, "ood.interpolator_gain")
    yield above(0.0, gain - by_kernel, "gain OOD - that of kernel regression")
    yield note(TITLES[GAIN], gain)
    yield note("gain OOD of kernel regression", by_kernel)


@claim("S1b", figure="scale1", cases=STUDENTS, runs={"students": "{students}"})
def width_helps(students, quantity=R2):
    """Wider students compose better."""
    grid = picks.seen_by_width(students)
    if len(grid) < 2 or min(map(len, grid.values())) < 2:
        return
    most_seen = [runs[-1] for runs in grid.values()]
    *_, second, width = grid
    gains = scores(most_seen, GAIN)
    yield learnt(score(most_seen[-1], "id.r2"), "R² ID")
    per_doubling = slope(np.log2(list(grid)), scores(most_seen, quantity))
    yield above(0.0, per_doubling, f"slope of {TITLES[quantity]} per doubling of width")
    if quantity == GAIN:
        yield above(0.0, gains[-1] - gains[-2], f"gain OOD at width {width} - at {second}")
    yield above(COMPOSED, gains[-1], f"gain OOD at width {width}")
    if quantity == R2:
        for width, run in zip(grid, most_seen, strict=True):
            yield note(f"R² OOD at width {width}", score(run, R2))


width_raises_the_gain = width_helps.variant(
    "S1b.gain",
    "Wider students gain more over the best bilinear map, up to the widest two.",
    quantity=GAIN,
)


@claim(
    "S1c",
    figure="scale1",
    cases=[{"case": "tasks needed"}],
    runs={"students": "modules_*"},
    after=True,
)
def fewer_than_all_sets_are_needed(students):
    """The seen sets that are needed grow more slowly than all sets."""
    by_modules = picks.seen_by_modules(students)
    if len(by_modules) < 2:
        return
    needed = [
        needed_for([picks.sets_seen(run.config) for run in runs], scores(runs, GAIN))
        for runs in by_modules.values()
    ]
    most = [runs[-1] for runs in by_modules.values()]
    yield learnt(scores(most, "id.r2").min(axis=0), "R² ID")
    all_sets = [run.summary["task"]["sets"] for run in most]
    name = f"exponent over {', '.join(map(str, by_modules))} modules"
    yield below(1.0, exponent(all_sets, needed, "the fewest sets"), name)


more_sets_help_others = more_sets_help.variant(
    "S1d", "More sets of modules seen raise R² on held-out ones for a {case}, too.", **OTHERS
)
more_sets_raise_the_gain_of_others = more_sets_raise_the_gain.variant(
    "S1d.gain",
    "More sets of modules seen raise the gain of a {case} over the best bilinear map, counted from "
    "0.",
    **OTHERS,
    quantity=GAIN,
    least=0.0,
)
more_preferences_help = more_sets_help.variant(
    "S1d.preferences",
    "More sets of preferences seen raise the share of right steps in a gridworld on held-out ones.",
    **PREFERENCES,
    **RIGHT_STEPS,
)


@claim("S1d.plans", **PREFERENCES, runs=PAIR)
def more_preferences_help_beyond_the_nearest_plan(few, many):
    """They do, and with the most sets the student avoids half of the errors that the plan of the
    nearest seen set makes."""
    yield from more_sets_help.function(few, many, **RIGHT_STEPS)
    gain = 1 - (1 - score(many, STEPS)) / score(many, "ood.nearest_seen_miss")
    yield above(COMPOSED, gain, "1 - wrong steps OOD / the nearest seen set's")
