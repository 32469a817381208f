"""C4 and C5 on runs whose numbers are known."""

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import mechanism
from tests.papers.decoders import JITTER, judged, run, verdicts

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
BUMP = {"code": "bump", "where": ""}
AUTHORS = {"code": "ramp", "where": ", the authors' network"}


@pytest.fixture(autouse=True)
def ideals(monkeypatch):
    ideal = mechanism.Ideal(0.4, bump_r2=0.01, superposer_binary=-0.3, lookup_partial=0.2)
    monkeypatch.setattr(mechanism, "ideal", lambda cells: ideal)


@pytest.mark.parametrize(
    ("own", "others", "sums", "expected"),
    [
        (0.9, np.full(3, 0.1), 0.4, (R, R)),
        (0.9, np.full(3, 0.95), 0.4, (C, C)),
        (0.9, np.full(3, 0.1), 0.2, (R, C)),
        (0.1, 0.05 - JITTER, 0.4, (U, U)),
    ],
)
def test_superposition_in_the_construction_of_the_code(own, others, sums, expected):
    outputs = {
        "superposition.mean_code.inner_r2": own,
        "superposition.sums.inner_r2": sums,
        "superposition.sums.inner_shuffled_r2": 0.1,
    }
    net = run(outputs=outputs)
    net.known_outputs["output.superposition.mean_code.inner_shuffled_r2"] = others
    row = judged(mechanism.SUPERPOSES, BUMP, net=net)
    assert (row["as_stated"]["verdict"], row["stricter"]["verdict"]) == expected
    assert row["as_stated"]["measured"] == pytest.approx(own - others.mean())
    row = judged(mechanism.SUPERPOSES, AUTHORS, net=net)
    assert row["code"] == "ramp, the authors' network"
    assert row["as_stated"]["measured"] == pytest.approx(sums - 0.1)


def kernel(binary, true, partial):
    names = {"cross_binary": binary, "cross_true": true, "cross_partial": partial}
    return run(outputs={f"cosine.{name}": value for name, value in names.items()})


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0.8, 0.4, 0.5), (R, R)),
        # the jitter is common to both kernels, so their difference has no spread
        ((0.4, 0.8, 0.1), (C, C)),
        ((0.5, 0.7, 0.1), (U, C)),  # it is not further than an ideal superposer's
        ((0.8, 0.4, 0.1), (R, C)),
        ((0.8, 0.4, 0.2), (R, U)),
    ],
)
def test_binary_kernel_must_fit_better_than_the_true_images_and_beyond_a_lookup(numbers, expected):
    net = kernel(*numbers)
    assert verdicts(mechanism.RESEMBLES_BINARY_KERNEL, BUMP, net=net) == expected


def test_the_clearer_structure_is_that_of_the_bump_code():
    runs = {"bump": kernel(0.8, 0.4, 0.5), "ramp": kernel(0.8, 0.4, 0.2)}
    row = judged(mechanism.CLEARER_FOR_BUMP, **runs)
    assert row["stricter"]["verdict"] == R
    assert row["stricter"]["measured"] == pytest.approx(0.3)


def test_superpositions_are_those_of_every_network_of_the_figure():
    runs = [fields["run"] for fields in mechanism.SUPERPOSES.each]
    assert runs == [
        "bump_cnn", "ramp_cnn", "ramp_cnn_50_epochs", "ramp_cnn_authors", "bump_cnn_authors_128",
    ]  # fmt: skip
