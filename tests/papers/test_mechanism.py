"""C4 and C5 on runs whose numbers are known."""

import numpy as np
import pytest

from compgen_jax.claims import CONTRADICTED, INCONCLUSIVE
from compgen_jax.papers.forced_rendering import known, mechanism
from tests.papers.decoders import JITTER, blank, decoder, judged, run


def test_superposition_in_the_construction_of_the_code():
    """Every network of Figure 1 by that of its code; C4.ideal by sums for each."""
    outputs = {
        "superposition.mean_code.inner_r2": 0.9,
        "superposition.sums.inner_r2": 0.4,
        "superposition.sums.inner_shuffled_r2": 0.1,
        "superposition.mean_code.inner_shuffled_r2": 0.2,
    }
    net = run(outputs=outputs)
    net.known_outputs["output.superposition.sums.inner_r2"] = np.full(3, 0.4)
    superposer, bump = (
        known.ideal(name, net.cells)["output.superposition.sums.inner_r2"]
        for name in ("superposer", "bump")
    )
    for case in mechanism.superposes.cases:
        row = judged(mechanism.superposes_as_an_ideal_superposer, case, net=net)
        beyond = 0.7 if case["case"] == "bump" else 0.3
        values = [one["value"] for one in row["conditions"].values()]
        assert values == pytest.approx([beyond, 0.4 / superposer, 0.4 - bump])


@pytest.mark.parametrize(
    ("binary", "verdict"), [(0.0, INCONCLUSIVE), (-0.04, INCONCLUSIVE), (-0.06, CONTRADICTED)]
)
def test_a_superposer_is_not_contradicted_by_what_an_ideal_one_fails(binary, verdict):
    superposer = known.ideal("superposer", decoder(blank))
    ideal = superposer["output.cosine.cross_binary"] - superposer["output.cosine.cross_true"]
    assert ideal < -0.06
    # the jitter is common to both kernels, so their difference has no spread
    kernels = {"binary": 0.5 + ideal + binary, "true": 0.5, "partial": 0.1}
    net = run(outputs={f"cosine.cross_{name}": value for name, value in kernels.items()})
    row = judged(mechanism.resembles_binary_kernel, net=net)
    assert row["verdict"] == verdict
    assert row["notes"]["of an ideal superposer, binary over true"]["value"] == pytest.approx(ideal)


def test_the_structure_beyond_true_images_is_the_partial_one():
    net = run(outputs={"cosine.cross_partial": 0.5})
    row = judged(mechanism.resembles_binary_kernel_beyond_true_images, net=net)
    lookup = known.ideal("lookup", decoder(blank))["output.cosine.cross_partial"]
    expected = (0.5 + JITTER - lookup).tolist()
    assert next(iter(row["conditions"].values()))["per_seed"] == pytest.approx(expected)
