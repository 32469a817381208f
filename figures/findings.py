"""The README's findings, and those on real factors: some sentences for each, with the numbers and
verdicts of docs/results.

A sentence is written by a person for one verdict. Where the claim is judged otherwise, no page is
made until the sentence is rewritten.
"""

from collections.abc import Iterable
from typing import NamedTuple

from compgen_jax.metrics import text
from compgen_jax.papers import robustness

from .verdicts import AS_STATED, STRICTER


class Other(NamedTuple):
    """A further number of a sentence: a condition of either reading, or a detail, of a judged
    claim, by its name, which may end in brackets; the verdict, as stated, is the one for which the
    sentence was written."""

    claim: str
    code: str
    verdict: str
    name: str


class Finding(NamedTuple):
    """One row.

    claim, code: of the claim in claims.json; its first row of this code counts.
    verdict: the one, as stated, for which the sentence was written.
    sentence: with {number}, which is the measured value and its interval, and {0}, {1}, ..., which
    are the values of `others`.
    figure: the one that shows it.  is_share: whether the numbers are shares, to be given in
    percent.
    """

    claim: str
    code: str
    verdict: str
    sentence: str
    figure: str
    others: tuple[Other, ...] = ()
    is_share: bool = True


BY_INTERPOLATION = "share rendered OOD by the interpolator"
FINDINGS = (
    Finding(
        "C1", "bump", "reproduced",
        "The first paper claims that held-out positions are not rendered (bound: fewer than half). "
        "The network of the first look, here with four seeds, renders {number} of them, and {0} of "
        "the others.", "fig1",
        (Other("C1", "bump", "reproduced", "share rendered ID"),),
    ),
    Finding(
        "K1", "bump", "reproduced",
        "Does it fail because training never darkens the middle of the square? Then a second bump "
        "anywhere in each image would help, as every pixel is dark at times. We claim that it "
        "helps little: of images whose second bump is rendered, the network renders the held-out "
        "first bump in {number} (bound: fewer than half).", "two_objects",
    ),
    Finding(
        "C3", "ramp", "contradicted",
        "The first paper claims that held-out images show several bumps (bound: more than half "
        "do). If the code is the two plain numbers *x* and *y*, only {number} do. The verdict at "
        "the end is for this code. With the bump code {0} do, but other settings disagree. With a "
        "one-hot code, which has a single 1 at place *x* and one at place *y*, {1} do.", "codes",
        (
            Other("C3", "bump", "inconclusive", "share of OOD images with 2 peaks"),
            Other("C3", "onehot", "reproduced", "share of OOD images with 2 peaks"),
        ),
    ),
    Finding(
        "C6", "bump", "reproduced",
        "The first paper claims that *x* and *y* can be read less well from later layers. A linear "
        "regression reads them from the code almost perfectly (R² near 1, where 0 is no better "
        "than the mean). From the code to the last hidden layer, its R² at held-out positions "
        "changes by {number} (bounds: it falls, and so does the paper's *factorization*, which "
        "tells how separate a layer keeps *x* and *y*).",
        "fig2", is_share=False,
    ),
    Finding(
        "K3", "bump", "reproduced",
        "If as many positions are held out at random, they should be rendered (bound: more than "
        "90%), and {number} are. Kernel regression renders {0} of them, but {1} of the square: "
        "random gaps have near neighbours whose images it can blend. So rendering random gaps "
        "does not show that a network composes.", "controls",
        (
            Other("K3", "bump", "reproduced", BY_INTERPOLATION),
            Other("C1", "bump", "reproduced", BY_INTERPOLATION),
        ),
    ),
    Finding(
        "K5", "bump", "reproduced",
        "A *stripe* is an image of a full column (only *x* is told) or of a full row (only *y*). "
        "Stripes should help (bound: more than 90% of the square is rendered). Trained on stripes "
        "and a few bumps, the network renders {number} of the square. Kernel regression on these "
        "bumps renders {0} of it. The best other baseline, which knows the images of all positions "
        "outside the square, renders less than the network, too: the difference is {1}.",
        "controls",
        (
            Other("K5", "bump", "reproduced", BY_INTERPOLATION),
            Other(
                "K5", "bump", "reproduced", "share rendered OOD, less the best predictor's"
            ),
        ),
    ),
    Finding(
        "S1a", "data", "reproduced",
        "The second paper claims that seeing more combinations helps (bound: R² rises by more than "
        "0.1). A network learns to imitate mixtures of at most three of eight small functions, "
        "which can be chosen in 92 ways. On choices that training does not show, the R² of its "
        "answers is {0} if it shows 9, and {number} higher if it shows 69. R² is high for a "
        "simple baseline, too, a map that is bilinear in choice and input. So the stricter "
        "reading takes the gain, 1 - (the network's error / the map's): it is {1} with 69 shown "
        "(bound: 0.5).",
        "scale1",
        (
            Other("S1a", "data", "reproduced", "R² OOD at 9 sets"),
            Other("S1a", "data", "reproduced", "gain OOD at 69 sets"),
        ),
        is_share=False,
    ),
)  # fmt: skip
# Those of docs/findings/real_factors.md.
OOD, WITHOUT = "share rendered OOD", "share rendered OOD without"
REAL_FACTORS = (
    Finding(
        "F1", "", "inconclusive",
        "Does a network that is given the true factors fail on a range (bound: fewer than half "
        "rendered)? This depends on the range. If training shows no squares on the right, "
        "the network renders {number} of them. If it shows no large squares, the network renders "
        "nearly all of them. If as many combinations are held out at "
        "random, {0} are rendered; of a small corner of all factors, {1}.", "sprites",
        (
            Other("F1", "", "inconclusive", "share rendered OOD, at random"),
            Other("F2", "", "inconclusive", OOD),
        ),
    ),
    Finding(
        "F3a", "mean", "contradicted",
        "Marginal images do not help, at any setting (bound: 20 percentage points more than "
        "without them). Without them {0} of the squares on the right are rendered, with mean "
        "images of single factors {1}. A low-rank model with penalties renders {2} of them, and as "
        "many without penalties. But whether low rank helps depends on the range: of hearts in "
        "the lower half it renders fewer than the plain network.", "sprites_remedies",
        (
            Other("F3a", "mean", "contradicted", WITHOUT),
            Other("F3a", "mean", "contradicted", OOD),
            Other("F4", "low rank", "inconclusive", OOD),
        ),
    ),
    Finding(
        "F5", "all pairs", "inconclusive",
        "Do pairs of factors fail more if a sum of one image for each explains less of their "
        "images? This is open: the rank correlation of the share rendered with the share explained "
        "is {number} (bound: above 0.5).", "sprites_pairs", is_share=False,
    ),
    Finding(
        "F6", "all factors", "reproduced",
        "An encoder, which reads the factors off images, fails on the same squares (bound: fewer "
        "than half): it reads all factors right for {number} of them. It takes nearly all for "
        "another shape, and reads about half of their scales and orientations wrong.", "sprites",
    ),
)  # fmt: skip


def real_factors(claims: list[dict], drawn: Iterable[str]) -> list[str]:
    """What docs/findings/real_factors.md found: pictures, of the figures that are `drawn`, then
    sentences; or that nothing is judged yet. Raises ValueError as `lines` does."""
    found = [finding for finding in REAL_FACTORS if _same(finding, claims)]
    if not found:
        return ["*Not run yet.*"]
    figures = dict.fromkeys(finding.figure for finding in found if finding.figure in drawn)
    pictures = [f"![{name}](../results/quick/figures/{name}.png)\n" for name in figures]
    return [*pictures, *lines(claims, (), found, "../results/quick")]


def lines(
    claims: list[dict],
    at_papers_size: Iterable[dict] = (),
    findings: tuple[Finding, ...] = FINDINGS,
    results: str = "docs/results/quick",
) -> list[str]:
    """The numbered findings, from the judged claims of the quick scale, with the verdict at the
    paper's size where there is one. Raises ValueError where a claim is missing, or its verdict is
    not the one that the sentence was written for."""
    found = []
    for place, finding in enumerate(findings, start=1):
        claim = judged(finding, claims)
        reading, stricter = claim[AS_STATED], claim[STRICTER]["verdict"]
        others = (_other(other, claims, finding.is_share) for other in finding.others)
        number = _number(reading, finding.is_share)
        sentence = finding.sentence.format(*others, number=number)
        parts = [f"{finding.claim} {reading['verdict']}", f"stricter: {stricter}"]
        if share := robustness.share(reading):
            parts.append(f"settings: {share}")
        for larger in _same(finding, at_papers_size):
            number = _number(larger[AS_STATED], finding.is_share)
            parts.append(f"the paper's size: {larger[AS_STATED]['verdict']}, {number}")
        name = finding.figure
        picture = f"[figure]({results}/figures/{name}.png), `--only={name}`"
        found.append(f"{place}. {sentence} ({'; '.join(parts)}; {picture})")
    return found


def judged(finding: Finding | Other, claims: list[dict]) -> dict:
    """The judged claim of a finding, or of a further number. Raises ValueError as `lines` does."""
    claim = next(iter(_same(finding, claims)), None)
    verdict = claim and claim[AS_STATED]["verdict"]
    if verdict != finding.verdict:
        raise ValueError(
            f"figures/findings.py: {finding.claim} ({finding.code}) is now {verdict}, and its "
            f"sentence was written for {finding.verdict}: rewrite it"
        )
    return claim


def _same(finding: Finding | Other, claims: Iterable[dict]) -> list[dict]:
    """Its judged claim alone, [] where it is not judged: the first of several rows."""
    wanted = finding.claim, finding.code
    return [claim for claim in claims if (claim["claim"], claim["code"]) == wanted][:1]


def _number(reading: dict, is_share: bool) -> str:
    """The measured value with its interval, which for a share ends at 100% at most."""
    if not is_share:
        measured = {"value": reading["measured"], "ci95": reading["ci95"]}
        return text.with_interval(measured, digits=2)
    value, low, high = map(_percent, (reading["measured"], *reading["ci95"]))
    return f"{value}% [{low}, {high}]"


def _other(other: Other, claims: list[dict], is_share: bool) -> str:
    claim = judged(other, claims)
    numbers = claim[STRICTER]["conditions"] | claim[AS_STATED]["conditions"] | claim["details"]
    names = [name for name in numbers if name == other.name or name.startswith(other.name + " (")]
    if not names:
        raise ValueError(f"figures/findings.py: {other.claim} has no number {other.name!r}")
    value = numbers[min(names, key=len)]["value"]  # without brackets, if there is one
    return f"{_percent(value)}%" if is_share else text.number(value, digits=2)


def _percent(share: float) -> str:
    return f"{min(100 * share, 100):.1f}".removesuffix(".0")
