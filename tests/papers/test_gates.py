"""Claims on images: what must be learnt, and when it is asked."""

from dataclasses import replace

import numpy as np
import pytest

from compgen_jax.papers.forced_rendering import (
    control_claims,
    figure1_claims,
    mechanism_claims,
    remedies,
)
from compgen_jax.runs import results
from compgen_jax.studies.why_not import why_not_claims
from compgen_jax.tasks import bump
from tests.papers.decoders import CELLS, SETTINGS, blank, cell_results, decoder, draw, judged, run

CLAIMS = [
    claim
    for module in (figure1_claims, mechanism_claims, remedies, control_claims, why_not_claims)
    for claim in module.CLAIMS
]
METRICS = (
    "superposition.sums.inner_r2",
    "superposition.sums.inner_shuffled_r2",
    "superposition.mean_code.inner_r2",
    "superposition.mean_code.inner_shuffled_r2",
    "cosine.cross_binary",
    "cosine.cross_true",
    "cosine.cross_partial",
)
STRIPED = "share rendered of the bumps shown, or accuracy on the stripes"
GATES = {
    "C1": "share rendered ID",
    "C2": "share rendered ID",
    "C9": "accuracy on the stripes",
    "C10": STRIPED,
    "K1": "share rendered ID, both objects",
    "K10": "accuracy on the stripes",
    "K11": "share rendered ID",
    "K4": "share rendered ID",
    "K5": "share rendered of the bumps shown",
    "K5.hole": "share rendered ID",
}


def network(cells, metric=0.5, stripes=1.0, **others):
    """A run that answers all that claims on images ask."""
    second = cells.scores | {"rendered_second": cells.scores["rendered"]}
    true = results.truths_at(SETTINGS.make(), bump.stripe_points(SETTINGS.grid))
    drawn = np.concatenate([stripes * true, np.zeros_like(true[:1])])
    return run(
        replace(cells, scores=second),
        outputs=dict.fromkeys(METRICS, metric),
        predict=lambda points: np.stack([drawn] * 3),
        **others,
    )


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: one.name)
def test_nothing_is_concluded_unless_every_network_is_trained(claim):
    untrained = network(cell_results([[blank(0, 0)] * len(CELLS)] * 3), stripes=-1.0)
    net = network(decoder(blank))
    gate = GATES.get(claim.name) or GATES.get(claim.name.partition(".")[0], "exact accuracy ID")
    for name in claim.runs.keys() - {"none"}:
        runs = dict.fromkeys(claim.runs, net) | {name: untrained}
        reason = judged(claim, **runs)["reason"]
        assert reason.startswith(f"not trained: {gate}") and f"{gate} 1" not in reason


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: one.name)
def test_late_checkpoints_are_judged(claim):
    late = network(decoder(blank))
    late.interpolator = decoder(draw)
    end = network(decoder(draw), 0.9, -1.0, late=late)
    of_late, of_end = (judged(claim, **dict.fromkeys(claim.runs, net)) for net in (late, end))
    np.testing.assert_equal(of_end, of_late)
