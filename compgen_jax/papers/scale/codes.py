"""S2: from which codes of the latent, and from which supports, are held-out sets composed?"""

from compgen_jax.claims import NOWHERE, above, below, claim, learnt, note
from compgen_jax.papers.scale.composing import GAIN, R2, TITLES
from compgen_jax.papers.scale.quantities import COMPOSED, score, scores

TRAINED_CODES = 0.9  # R² ID from which a student of another code counts as trained
AFFINE = 0.9  # R² of an affine map from code to latent, from which a code is called affine
APART = 0.05
# Supports that leave out, or barely show, part of the space of tasks, and those that cover it.
UNCOVERED, COVERED = ("disconnected", "non_compositional", "unpopular"), ("popular", "equal")
# Shuffled intervals, examples and invertible couplings are not affine in the latent; with the
# authors' weights couplings are nearly so.
CODES = {
    "fewshot": "fewshot",
    "interval_shuffle": "interval shuffle",
    "orthogonal": "orthogonal",
    "tokens": "tokens",
    "invertible": "invertible",
    "invertible_nearly_affine": "invertible, nearly affine",
}
SIZES = (
    ("modules_8_seen_69_width_256", ""),
    ("modules_16_seen_522_width_256", ""),
    ("modules_16_seen_522_width_1024", "width 1024"),
)
OF_CODE = {
    "figure": "scale2",
    "cases": tuple(
        {"case": title, "student": f"{size}_{code}"} | ({"setting": setting} if setting else {})
        for code, title in CODES.items()
        for size, setting in SIZES
    ),
    "runs": {"student": "{student}"},
}
# the authors' codes; "invertible" has weights of ours
AUTHORS = [c if c["case"] == "invertible" else c | {"own": NOWHERE} for c in OF_CODE["cases"]]


@claim("S2a", **OF_CODE | {"cases": AUTHORS})
def code_is_composed(student):
    """Held-out sets are composed from another code than the latent itself: {case}."""
    yield learnt(score(student, "id.r2"), "R² ID", TRAINED_CODES)
    yield above(COMPOSED, score(student, GAIN), "gain OOD")
    yield note("R² OOD", score(student, R2))
    yield note("gain ID", score(student, "id.gain"))
    yield note("R² of the latent from the code", student.summary["task"]["code_r2"])


@claim("S2a.as_seen", **OF_CODE)
def code_is_composed_as_seen_sets_are(student):
    """Held-out sets are composed from another code with at most twice the error of seen ones:
    {case}."""
    yield from code_is_composed.function(student)
    ratio = score(student, "ood.mse") / score(student, "id.mse")
    yield below(2.0, ratio, "error OOD / ID", ratio=True)


def _supports(names) -> dict:
    sizes = (
        ("modules_8_seen_44_width_256", ""),
        ("modules_16_seen_522_width_1024", ""),
        ("draws_seen_522_width_512", ", middle scale"),
    )
    return {
        "figure": "scale2",
        "cases": tuple(
            {
                "case": f"{name.replace('_', ' ')}{at}",
                "support": name,
                "random": size,
                "student": f"{size}_{name}",
            }
            for name in names
            for size, at in sizes
        ),
        "runs": {"random": "{random}", "student": "{student}"},
    }


def _worst_id(*runs):
    return learnt(scores(runs, "id.r2").min(axis=0), "R² ID")


def _apart(random, student, support: str, name: str):
    """How much better sets at random are, and what that is called."""
    difference = score(random, name) - score(student, name)
    return difference, f"{TITLES[name]} random - {support}"


def _levels(student):
    for name in (R2, GAIN):
        yield note(TITLES[name], score(student, name))


def _matters(random, student, support: str, name: str):
    yield _worst_id(random, student)
    yield above(APART, *_apart(random, student, support, name), against=0)
    yield above(COMPOSED, score(random, GAIN), "gain OOD random")
    yield from _levels(student)


@claim("S2b", own=NOWHERE, **_supports(UNCOVERED))
def support_matters(random, student, support):
    """A support that leaves out, or barely shows, part of the space of tasks is composed less than
    sets at random: {case}."""
    yield from _matters(random, student, support, R2)


@claim("S2b.gain", **_supports(UNCOVERED))
def support_matters_for_the_gain(random, student, support):
    """From such a support the gain over the best bilinear map is lower than from sets at random:
    {case}."""
    yield from _matters(random, student, support, GAIN)


def _is_enough(random, student, support: str, name: str):
    yield _worst_id(random, student)
    yield below(APART, *_apart(random, student, support, name))
    yield above(COMPOSED, score(student, GAIN), f"gain OOD {support}")
    yield from _levels(student)


@claim("S2b.covering", own=NOWHERE, **_supports(COVERED))
def covering_is_enough(random, student, support):
    """A support that covers the space of tasks is composed as well as sets at random: {case}."""
    yield from _is_enough(random, student, support, R2)


@claim("S2b.covering_gain", **_supports(COVERED))
def covering_is_enough_for_the_gain(random, student, support):
    """From such a support the gain over the best bilinear map is as high as from sets at random:
    {case}."""
    yield from _is_enough(random, student, support, GAIN)


CLAIMS = (
    code_is_composed,
    code_is_composed_as_seen_sets_are,
    support_matters,
    support_matters_for_the_gain,
    covering_is_enough,
    covering_is_enough_for_the_gain,
)
