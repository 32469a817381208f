"""S2: from which codes of the latent, and from which supports, are held-out sets composed?"""

from compgen_jax.claims import above, below, claim, learnt, note
from compgen_jax.papers.scale.composing import GAIN, R2, TITLES
from compgen_jax.papers.scale.quantities import COMPOSED, score, scores

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
OF_CODE = {
    "figure": "scale2",
    "cases": [
        {"case": title, "student": f"{size}_{code}"} | setting
        for code, title in CODES.items()
        for size, setting in (
            ("modules_8_seen_69_width_256", {}),
            ("modules_16_seen_522_width_256", {}),
            ("modules_16_seen_522_width_1024", {"setting": "width 1024"}),
        )
    ],
    "runs": {"student": "{student}"},
}
BESIDE_RANDOM = {
    supports: [
        {"case": support.replace("_", " ") + scale, "support": support, "random": size}
        for support in supports
        for size, scale in (
            ("modules_8_seen_44_width_256", ""),
            ("modules_16_seen_522_width_1024", ""),
            ("draws_seen_522_width_512", ", middle scale"),
        )
    ]
    for supports in (UNCOVERED, COVERED)
}


@claim("S2a", **OF_CODE, after=True)
def code_is_composed(student):
    """Held-out sets are composed from another code than the latent itself: {case}."""
    yield learnt(score(student, "id.r2"), "R² ID", at=0.9)
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


@claim(
    "S2b",
    after=True,
    figure="scale2",
    cases=BESIDE_RANDOM[UNCOVERED],
    runs={"random": "{random}", "student": "{random}_{support}"},
)
def support_matters(random, student, support, quantity=R2, matters=True):
    """A support that leaves out, or barely shows, part of the space of tasks is composed less than
    sets at random: {case}."""
    yield learnt(scores((random, student), "id.r2").min(axis=0), "R² ID")
    difference = score(random, quantity) - score(student, quantity)
    title = f"{TITLES[quantity]} random - {support}"
    if matters:
        yield above(APART, difference, title, against=0)
        yield above(COMPOSED, score(random, GAIN), "gain OOD random")
    else:
        yield below(APART, difference, title)
        yield above(COMPOSED, score(student, GAIN), f"gain OOD {support}")
    for number in (R2, GAIN):
        yield note(TITLES[number], score(student, number))


support_matters_for_the_gain = support_matters.variant(
    "S2b.gain",
    "From such a support the gain over the best bilinear map is lower than from sets at random: "
    "{case}.",
    quantity=GAIN,
)
covering_is_enough = support_matters.variant(
    "S2b.covering",
    "A support that covers the space of tasks is composed as well as sets at random: {case}.",
    cases=BESIDE_RANDOM[COVERED],
    matters=False,
)
covering_is_enough_for_the_gain = covering_is_enough.variant(
    "S2b.covering_gain",
    "From such a support the gain over the best bilinear map is as high as from sets at random: "
    "{case}.",
    quantity=GAIN,
)
