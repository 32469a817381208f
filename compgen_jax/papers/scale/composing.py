"""S1: do more sets of modules and wider students lead to composition?

At the middle scale a network is a draw of teacher, split and seed, so intervals are over these.
"""

import numpy as np

from compgen_jax.claims import TRAINED, above, below, claim, doubtful, learnt, note
from compgen_jax.papers.scale import picks
from compgen_jax.papers.scale.quantities import (
    COMPOSED,
    bracketed,
    needed_for,
    not_bracketed,
    score,
    scores,
    slope,
)

TRAINED_STEPS = 0.9  # share of right steps ID from which a student of preferences is trained
RISE = 0.1
R2, GAIN, STEPS = "ood.r2", "ood.gain", "ood.step_accuracy"
TITLES = {R2: "R² OOD", GAIN: "gain OOD", STEPS: "step accuracy OOD"}
STUDENTS = (  # cases of claims on all students of a scale
    {"case": "", "students": "modules_*"},
    {"case": "middle scale", "students": "draws_*"},
)


def pairs(*cases) -> dict:
    """Cases (case, student of the fewest sets seen, of the most)."""
    return {
        "cases": [{"case": case, "few": few, "many": many} for case, few, many in cases],
        "runs": {"few": "{few}", "many": "{many}"},
    }


def rises(few, many, name: str, learnt_by="id.r2", trained=TRAINED, least=-np.inf):
    """From the fewest sets seen to the most a score rises; below `least` it counts as it."""
    title = "R² ID" if learnt_by == "id.r2" else "step accuracy ID"
    yield learnt(score(many, learnt_by), title, trained)
    fewest, most = (picks.sets_seen(run.config) for run in (few, many))
    low, high = (np.maximum(score(run, name), least) for run in (few, many))
    title = f"{TITLES[name]} at {most} - at {fewest} sets seen"
    yield above(RISE, high - low, title, against=0)
    for sets, run in ((fewest, few), (most, many)):
        yield note(f"{TITLES[name]} at {sets} sets", score(run, name))


DATA = {"figure": "scale1"} | pairs(
    ("data", "modules_8_seen_9_width_256", "modules_8_seen_69_width_256"),
    ("data", "modules_16_seen_11_width_2048", "modules_16_seen_609_width_2048"),
    ("data, middle scale", "draws_seen_60_width_512", "draws_seen_522_width_512"),
)
OTHERS = {"figure": "scale1d"} | pairs(
    *(
        (model.removeprefix("task_"), *(sizes.format(seen) + model for seen in sets))
        for model, sizes, sets in (
            ("task_transformer", "modules_8_seen_{}_width_64_", (9, 69)),
            ("hypernetwork", "modules_8_seen_{}_width_64_", (9, 69)),
            ("task_transformer", "modules_16_seen_{}_width_256_", (70, 522)),
            ("hypernetwork", "modules_16_seen_{}_width_1024_", (70, 522)),
        )
    )
)
PREFERENCES = {"figure": "gridworld"} | pairs(
    ("preference gridworld", "preference_seen_9", "preference_seen_69"),
    ("preference gridworld", "preference_seen_60", "preference_seen_522"),
)


@claim("S1a", **DATA)
def more_sets_help(few, many):
    """More sets of modules seen raise R² on held-out ones."""
    yield from rises(few, many, R2)


@claim("S1a.gain", **DATA)
def more_sets_raise_the_gain(few, many):
    """More sets of modules seen raise the gain over the best bilinear map, counted from 0."""
    yield from rises(few, many, GAIN, least=0.0)


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


def by_width(students) -> dict:
    """{width: the run with the most sets seen}; {} unless there are several widths and numbers of
    sets."""
    grid = picks.seen_by_width(students)
    several = len(grid) > 1 and min(map(len, grid.values())) > 1
    return {width: runs[-1] for width, runs in grid.items()} if several else {}


def slope_with_width(of_width: dict, name: str):
    per_doubling = slope(np.log2(list(of_width)), scores(of_width.values(), name))
    return above(0.0, per_doubling, f"slope of {TITLES[name]} per doubling of width")


WIDTH = {"figure": "scale1", "cases": STUDENTS, "runs": {"students": "{students}"}}


@claim("S1b", **WIDTH)
def width_helps(students):
    """Wider students compose better."""
    if of_width := by_width(students):
        width = max(of_width)
        yield learnt(score(of_width[width], "id.r2"), "R² ID")
        yield slope_with_width(of_width, R2)
        yield above(COMPOSED, score(of_width[width], GAIN), f"gain OOD at width {width}")
        for width, run in of_width.items():
            yield note(f"R² OOD at width {width}", score(run, R2))


@claim("S1b.gain", **WIDTH)
def width_raises_the_gain(students):
    """Wider students gain more over the best bilinear map, up to the widest two."""
    if of_width := by_width(students):
        second, width = sorted(of_width)[-2:]
        gain = score(of_width[width], GAIN)
        yield learnt(score(of_width[width], "id.r2"), "R² ID")
        yield slope_with_width(of_width, GAIN)
        more = gain - score(of_width[second], GAIN)
        yield above(0.0, more, f"gain OOD at width {width} - at {second}")
        yield above(COMPOSED, gain, f"gain OOD at width {width}")


@claim("S1c", figure="scale1", cases=[{"case": "tasks needed"}], runs={"students": "modules_*"})
def fewer_than_all_sets_are_needed(students):
    """The seen sets that are needed grow more slowly than all sets."""
    by_modules = picks.seen_by_modules(students)
    if len(by_modules) < 2:
        return
    needed = np.stack(
        [
            needed_for([picks.sets_seen(run.config) for run in runs], scores(runs, GAIN))
            for runs in by_modules.values()
        ]
    )
    most = [runs[-1] for runs in by_modules.values()]
    yield learnt(scores(most, "id.r2").min(axis=0), "R² ID")
    all_sets = [run.summary["task"]["sets"] for run in most]
    exponent = slope(np.log(all_sets), np.log(bracketed(needed)))
    exponent = doubtful(exponent, not_bracketed(needed, "the fewest sets"))
    yield below(1.0, exponent, f"exponent over {', '.join(map(str, by_modules))} modules")


@claim("S1d", **OTHERS)
def more_sets_help_others(few, many):
    """More sets of modules seen raise R² on held-out ones for a {case}, too."""
    yield from rises(few, many, R2)


@claim("S1d.gain", **OTHERS)
def more_sets_raise_the_gain_of_others(few, many):
    """More sets of modules seen raise the gain of a {case} over the best bilinear map, counted from
    0."""
    yield from rises(few, many, GAIN, least=0.0)


@claim("S1d.preferences", **PREFERENCES)
def more_preferences_help(few, many):
    """More sets of preferences seen raise the share of right steps in a gridworld on held-out
    ones."""
    yield from rises(few, many, STEPS, "id.step_accuracy", TRAINED_STEPS)


@claim("S1d.plans", **PREFERENCES)
def more_preferences_help_beyond_the_nearest_plan(few, many):
    """They do, and with the most sets the student avoids half of the errors that the plan of the
    nearest seen set makes."""
    yield from more_preferences_help.function(few, many)
    gain = 1 - (1 - score(many, STEPS)) / score(many, "ood.nearest_seen_miss")
    yield above(COMPOSED, gain, "1 - wrong steps OOD / the nearest seen set's")
