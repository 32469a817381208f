"""C4 and C5 on runs whose numbers are known."""

import numpy as np
import pytest

from compgen_jax.metrics import reference_images
from compgen_jax.papers.forced_rendering import mechanism_claims
from compgen_jax.papers.forced_rendering.image_quantities import explained
from tests.papers.decoders import JITTER, blank, decoder, judged, named, run


def test_superposition_in_the_construction_of_the_code():
    """Every network of Figure 1 by that of its code; C4.ideal by sums for each."""
    outputs = {
        "superposition.mean_code.inner_r2": 0.9,
        "superposition.sums.inner_r2": 0.4,
        "superposition.sums.inner_shuffled_r2": 0.1,
        "superposition.mean_code.inner_shuffled_r2": 0.2,
    }
    net = run(outputs=outputs)
    net.numbers["output.superposition.sums.inner_r2"] = np.full(3, 0.4)
    superposer, bump = (
        reference_images.reference_numbers(rule, net.cells)["output.superposition.sums.inner_r2"]
        for rule in (reference_images.superposer, reference_images.true_image)
    )
    claim = named(mechanism_claims.CLAIMS, "C4.ideal")
    for case in claim.cases:
        row = judged(claim, case, net=net)
        beyond = 0.7 if case["case"] == "bump" else 0.3
        values = [one["value"] for one in row["conditions"].values()]
        assert values == pytest.approx([beyond, 0.4 / superposer, 0.4 - bump])


def test_the_structure_beyond_true_images_is_the_partial_one():
    net = run(outputs={"cosine.cross_partial": 0.5})
    row = judged(mechanism_claims.resembles_binary_kernel_beyond_true_images, net=net)
    numbers = reference_images.reference_numbers(reference_images.lookup, decoder(blank))
    lookup = numbers["output.cosine.cross_partial"]
    expected = (0.5 + JITTER - lookup).tolist()
    assert next(iter(row["conditions"].values()))["per_seed"] == pytest.approx(expected)


def test_images_are_explained_as_they_are():
    """Without a fit of level or gain, about the mean over images."""
    rng = np.random.default_rng(0)
    drawn, predicted = rng.normal(size=(2, 5, 4, 3)), rng.normal(size=(5, 4, 3))
    spread = drawn - drawn.mean(axis=1, keepdims=True)
    shares = explained(drawn - predicted, spread, (-3, -2, -1))
    for network, r2 in zip(drawn, shares, strict=True):
        missed, varies = np.square(network - predicted).sum(), 5 * network.var(axis=0).sum()
        assert r2 == pytest.approx(1 - missed / varies)
    assert explained(np.ones((2, 3)), np.zeros((2, 3)), -1).tolist() == [0, 0]
