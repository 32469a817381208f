"""S1: do more sets of modules and wider students lead to composition?

Which students of several widths and numbers of modules answer is picked by their configs (`runs`).
At the middle scale a network is a draw of teacher, split and seed, so intervals are over these.
No sentence of the paper has `own` networks here: at the paper's size ours take a tenth of the
authors' 300,000 steps, at another rate (`runs.STUDENT`).
"""

import numpy as np

from compgen_jax.claims import NOWHERE, Undecided, above, below, claim, learnt, note
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
PAIR = {"few": "{few}", "many": "{many}"}
STUDENTS = tuple(  # cases of claims on all students of a scale
    {"case": case, "students": pattern}
    for case, pattern in (("", "modules_*"), ("middle scale", "draws_*"))
)


def pair(case: str, few: str, many: str) -> dict:
    """A student that has seen the fewest sets, and one that has seen the most."""
    return {"case": case, "few": few, "many": many}


def rise(few, many, name: str, least: float = -np.inf):
    """From the fewest sets seen to the most; scores below `least` count as it."""
    fewest, most = (picks.sets_seen(run.config) for run in (few, many))
    title = f"{TITLES[name]} at {most} - at {fewest} sets seen"
    low, high = (np.maximum(score(run, name), least) for run in (few, many))
    return above(RISE, high - low, title, against=0)


def levels(few, many, name: str):
    for run in (few, many):
        yield note(f"{TITLES[name]} at {picks.sets_seen(run.config)} sets", score(run, name))


DATA = {
    "figure": "scale1",
    "cases": (
        pair("data", "modules_8_seen_9_width_256", "modules_8_seen_69_width_256"),
        pair("data", "modules_16_seen_11_width_2048", "modules_16_seen_609_width_2048"),
        pair("data, middle scale", "draws_seen_60_width_512", "draws_seen_522_width_512"),
    ),
    "runs": PAIR,
}
OTHERS = {
    "figure": "scale1d",
    "cases": tuple(
        pair(
            model.removeprefix("task_"),
            f"modules_{modules}_seen_{few}_width_{width}_{model}",
            f"modules_{modules}_seen_{many}_width_{width}_{model}",
        )
        for modules, few, many, width, model in (
            (8, 9, 69, 64, "task_transformer"),
            (8, 9, 69, 64, "hypernetwork"),
            (16, 70, 522, 256, "task_transformer"),
            (16, 70, 522, 1024, "hypernetwork"),
        )
    ),
    "runs": PAIR,
}


@claim("S1a", own=NOWHERE, **DATA)
def more_sets_help(few, many):
    """More sets of modules seen raise R² on held-out ones."""
    yield learnt(score(many, "id.r2"), "R² ID")
    yield rise(few, many, R2)
    yield from levels(few, many, R2)


@claim("S1a.gain", **DATA)
def more_sets_raise_the_gain(few, many):
    """More sets of modules seen raise the gain over the best bilinear map, counted from 0."""
    yield learnt(score(many, "id.r2"), "R² ID")
    yield rise(few, many, GAIN, least=0.0)
    yield from levels(few, many, GAIN)


@claim(
    "S1a.interpolation",
    figure="same_examples",
    cases=tuple(
        {"case": case, "student": f"few_modules_8_seen_{sets}_width_256{support}"}
        for case, sets, support in (
            ("9 sets", 9, ""),
            ("22 sets", 22, ""),
            ("44 sets", 44, ""),
            ("69 sets", 69, ""),
            ("equal", 44, "_equal"),
            ("popular", 44, "_popular"),
            ("unpopular", 44, "_unpopular"),
            ("disconnected", 44, "_disconnected"),
        )
    ),
    runs={"student": "{student}"},
)
def more_than_interpolation(student):
    """A student gains more on held-out sets than kernel regression on the same examples."""
    yield learnt(score(student, "id.r2"), "R² ID")
    gain, by_kernel = score(student, GAIN), score(student, "ood.interpolator_gain")
    yield above(0.0, gain - by_kernel, "gain OOD - that of kernel regression")
    yield note(TITLES[GAIN], gain)
    yield note("gain OOD of kernel regression", by_kernel)


@claim("S1d", own=NOWHERE, **OTHERS)
def more_sets_help_others(few, many):
    """More sets of modules seen raise R² on held-out ones for a {case}, too."""
    yield from more_sets_help.function(few, many)


@claim("S1d.gain", **OTHERS)
def more_sets_raise_the_gain_of_others(few, many):
    """More sets of modules seen raise the gain of a {case} over the best bilinear map, counted from
    0."""
    yield from more_sets_raise_the_gain.function(few, many)


PREFERENCES = {
    "figure": "gridworld",
    "cases": (
        pair("preference gridworld", "preference_seen_9", "preference_seen_69"),
        pair("preference gridworld", "preference_seen_60", "preference_seen_522"),
    ),
    "runs": PAIR,
}


@claim("S1d.preferences", own=NOWHERE, **PREFERENCES)
def more_preferences_help(few, many):
    """More sets of preferences seen raise the share of right steps in a gridworld on held-out
    ones."""
    yield learnt(score(many, "id.step_accuracy"), "step accuracy ID", TRAINED_STEPS)
    yield rise(few, many, STEPS)
    yield from levels(few, many, STEPS)


@claim("S1d.plans", **PREFERENCES)
def more_preferences_help_beyond_the_nearest_plan(few, many):
    """They do, and with the most sets the student avoids half of the errors that the plan of the
    nearest seen set makes."""
    yield from more_preferences_help.function(few, many)
    gain = 1 - (1 - score(many, STEPS)) / score(many, "ood.nearest_seen_miss")
    yield above(COMPOSED, gain, "1 - wrong steps OOD / the nearest seen set's")


# --- width -------------------------------------------------------------------------------------


def by_width(students, name: str) -> dict:
    """{width: (S,) a score with the most sets seen}; {} unless there are several widths and numbers
    of sets."""
    grid = picks.seen_by_width(students)
    if len(grid) < 2 or min(map(len, grid.values())) < 2:
        return {}
    return {width: score(of_width[-1], name) for width, of_width in grid.items()}


def slope_with_width(students, name: str):
    scored = by_width(students, name)
    per_doubling = slope(np.log2(list(scored)), np.stack(list(scored.values())))
    return above(0.0, per_doubling, f"slope of {TITLES[name]} per doubling of width")


WIDTH = {"figure": "scale1", "cases": STUDENTS, "runs": {"students": "{students}"}}


@claim("S1b", own=NOWHERE, **WIDTH)
def width_helps(students):
    """Wider students compose better."""
    gains = list(by_width(students, GAIN).items())
    if not gains:
        return
    width, gain = gains[-1]
    yield learnt(by_width(students, "id.r2")[width], "R² ID")
    yield slope_with_width(students, R2)
    yield above(COMPOSED, gain, f"gain OOD at width {width}")
    for each, r2 in by_width(students, R2).items():
        yield note(f"R² OOD at width {each}", r2)


@claim("S1b.gain", **WIDTH)
def width_raises_the_gain(students):
    """Wider students gain more over the best bilinear map, up to the widest two."""
    gains = list(by_width(students, GAIN).items())
    if not gains:
        return
    (second, less), (width, gain) = gains[-2:]
    yield learnt(by_width(students, "id.r2")[width], "R² ID")
    yield slope_with_width(students, GAIN)
    yield above(0.0, gain - less, f"gain OOD at width {width} - at {second}")
    yield above(COMPOSED, gain, f"gain OOD at width {width}")


# --- sets needed -------------------------------------------------------------------------------


def sets_needed(by_modules: dict):
    """(M, S): sets seen that give the gain .5, by number of modules; see `needed_for`."""
    seen = lambda group: [picks.sets_seen(run.config) for run in group]
    groups = by_modules.values()
    return np.stack([needed_for(seen(group), scores(group, GAIN)) for group in groups])


@claim(
    "S1c",
    figure="scale1",
    cases=[{"case": "tasks needed"}],
    runs={"students": "modules_*"},
    own=NOWHERE,
)
def fewer_than_all_sets_are_needed(students):
    """The seen sets that are needed grow more slowly than all sets."""
    by_modules = picks.seen_by_modules(students)
    if len(by_modules) < 2:
        return
    groups, needed = by_modules.values(), sets_needed(by_modules)
    yield Undecided(not_bracketed(needed, "the fewest sets"))
    yield learnt(scores([group[-1] for group in groups], "id.r2").min(axis=0), "R² ID")
    all_sets = [group[-1].summary["task"]["sets"] for group in groups]
    exponent = slope(np.log(all_sets), np.log(bracketed(needed)))
    yield below(1.0, exponent, f"exponent over {', '.join(map(str, by_modules))} modules")


CLAIMS = (
    more_sets_help,
    more_sets_raise_the_gain,
    more_than_interpolation,
    width_helps,
    width_raises_the_gain,
    fewer_than_all_sets_are_needed,
    more_sets_help_others,
    more_sets_raise_the_gain_of_others,
    more_preferences_help,
    more_preferences_help_beyond_the_nearest_plan,
)
