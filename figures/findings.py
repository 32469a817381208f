"""The README's findings: a sentence or two for each, with the numbers and verdicts of docs/results.

A sentence is written by a person for one verdict. Where the claim is judged otherwise, no page is
made until the sentence is rewritten.
"""

from typing import NamedTuple

from compgen_jax.metrics import text

from .verdicts import AS_STATED, STRICTER


class Finding(NamedTuple):
    """One row.

    claim, code: of the claim in claims.json; its first row of this code counts.
    verdict: the one, as stated, for which the sentence was written.
    sentence: with {number}, which is the measured value and its interval.
    figure: the one that shows it.  is_share: whether the number is a share, to be given in percent.
    """

    claim: str
    code: str
    verdict: str
    sentence: str
    figure: str
    is_share: bool = True


FINDINGS = (
    Finding(
        "C1", "bump", "reproduced",
        "The network of the first look renders {number} of the held-out positions, and nearly all "
        "of the others.", "fig1",
    ),
    Finding(
        "K1", "bump", "reproduced",
        "Training leaves the pixels of the square dark, but this is not the reason. With a second "
        "bump in each image, which lights them, {number} of the held-out first bumps are rendered.",
        "two_objects",
    ),
    Finding(
        "C3", "ramp", "contradicted",
        "The first paper says that wrong images show several bumps. Of a network that is given *x* "
        "and *y* as two plain numbers, {number} do.", "codes",
    ),
    Finding(
        "C6", "bump", "reproduced",
        "*x* and *y* can be read less well from later layers: from the code to the last hidden "
        "layer, the R² of a linear regression at held-out positions changes by {number}.", "fig2",
        is_share=False,
    ),
    Finding(
        "K3", "bump", "reproduced",
        "If as many positions are held out at random, {number} are rendered. Kernel regression, "
        "which mixes training images whose codes are alike, renders as many, so this test does not "
        "show that a network composes.", "controls",
    ),
    Finding(
        "K5", "bump", "reproduced",
        "There is a remedy: trained on a few bumps, and on stripes that show only *x* or only *y*, "
        "the network renders {number} of the held-out square.", "controls",
    ),
    Finding(
        "S1a", "data", "reproduced",
        "The second paper asks a network for mixtures of up to three of eight small functions. "
        "Shown 69 of the 92 mixtures instead of 9, its R² on the rest rises by {number}.", "scale1",
        is_share=False,
    ),
)  # fmt: skip


def lines(claims: list[dict]) -> list[str]:
    """The numbered findings, from the judged claims of the quick scale. Raises ValueError where a
    claim is missing, or its verdict is not the one that the sentence was written for."""
    found = []
    for place, finding in enumerate(FINDINGS, start=1):
        claim = judged(finding, claims)
        reading, stricter = claim[AS_STATED], claim[STRICTER]["verdict"]
        sentence = finding.sentence.format(number=_number(reading, finding.is_share))
        parts = [f"{finding.claim} {reading['verdict']}", f"stricter: {stricter}"]
        if share := reading.get("settings"):
            parts.append(f"settings: {share['agree']} of {share['trained']}")
        name = finding.figure
        picture = f"[figure](docs/results/quick/figures/{name}.png), `--only={name}`"
        found.append(f"{place}. {sentence} ({'; '.join(parts)}; {picture})")
    return found


def judged(finding: Finding, claims: list[dict]) -> dict:
    """The judged claim of a finding. Raises ValueError as `lines` does."""
    same = (c for c in claims if (c["claim"], c["code"]) == (finding.claim, finding.code))
    claim = next(same, None)
    verdict = claim and claim[AS_STATED]["verdict"]
    if verdict != finding.verdict:
        raise ValueError(
            f"figures/findings.py: {finding.claim} ({finding.code}) is now {verdict}, and its "
            f"sentence was written for {finding.verdict}: rewrite it"
        )
    return claim


def _number(reading: dict, is_share: bool) -> str:
    """The measured value with its interval, which for a share ends at 100% at most."""
    if not is_share:
        measured = {"value": reading["measured"], "ci95": reading["ci95"]}
        return text.with_interval(measured, digits=2)
    value, low, high = (
        f"{min(100 * each, 100):.1f}".removesuffix(".0")
        for each in (reading["measured"], *reading["ci95"])
    )
    return f"{value}% [{low}, {high}]"
