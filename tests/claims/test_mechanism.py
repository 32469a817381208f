"""C4 to C7 on inspections whose numbers are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.claims import verdicts
from compgen_jax.claims.forced_rendering import mechanism

R, C, U = verdicts.REPRODUCED, verdicts.CONTRADICTED, verdicts.INCONCLUSIVE
TRAINED = np.ones(3)
JITTER = np.array([-0.01, 0.0, 0.01])


def per_layer(*values):
    """(3 seeds, L): the values with a small spread over seeds."""
    return np.array(values, float) + JITTER[:, None] * np.arange(1, len(values) + 1)


def inspection(numbers=None, outputs=None):
    numbers = {name: per_layer(*values) for name, values in (numbers or {}).items()}
    outputs = {f"output.{name}": value + JITTER for name, value in (outputs or {}).items()}
    return SimpleNamespace(seeds=(0, 1, 2), numbers=numbers, outputs=outputs)


@pytest.mark.parametrize(
    ("r2", "shuffled", "verdict"), [(0.9, 0.1, R), (0.9, 0.95, C), (0.3, 0.1, C), (0.5, 0.1, U)]
)
@pytest.mark.parametrize("code", ["bump", "ramp"])
def test_superposition_in_the_construction_of_the_code(code, r2, shuffled, verdict):
    mine, other = ("mean_code", "sums") if code == "bump" else ("sums", "mean_code")
    outputs = {
        f"superposition.{mine}.r2": r2,
        f"superposition.{mine}.shuffled_r2": shuffled,
        f"superposition.{other}.r2": 0.0,
        f"superposition.{other}.shuffled_r2": 0.0,
    }
    entry = mechanism.superposes(code, TRAINED, inspection(outputs=outputs))
    assert (entry["claim"], entry["verdict"]) == ("C4", verdict)
    assert entry["measured"] == pytest.approx(r2)


def kernel(binary, true, partial):
    return inspection(
        outputs={"cosine.binary": binary, "cosine.true": true, "cosine.partial": partial}
    )


def test_binary_kernel_must_fit_better_than_and_beyond_the_true_images():
    def verdict(*numbers):
        return mechanism.resembles_binary_kernel("bump", TRAINED, kernel(*numbers))["verdict"]

    assert verdict(0.8, 0.4, 0.5) == R
    # the jitter is common to both kernels, so their difference has no spread
    assert verdict(0.4, 0.8, 0.2) == C
    assert verdict(0.8, 0.4, -0.5) == C
    assert verdict(0.8, 0.4, 0.0) == U
    clearer = mechanism.clearer_for_bump(TRAINED, kernel(0.8, 0.4, 0.5), kernel(0.8, 0.4, 0.2))
    assert clearer["verdict"] == R and clearer["measured"] == pytest.approx(0.3)


def layers(decodability, interaction):
    count = len(decodability)
    return inspection(
        {
            "probe.ood_r2": decodability,
            "anova.interaction": interaction,
            "factorization.mean_of_ratios": np.linspace(1, 0.9, count),
        }
    )


def test_decay_is_the_slope_over_layers():
    falling = layers([1, 0.8, 0.6, 0.4], [0, 0.2, 0.4, 0.6])
    entry = mechanism.decays_with_depth("bump", TRAINED, falling)
    assert entry["verdict"] == R and entry["measured"] == pytest.approx(-0.2)
    rising = layers([0.4, 0.6, 0.8, 1], [0, 0.2, 0.4, 0.6])
    assert mechanism.decays_with_depth("bump", TRAINED, rising)["verdict"] == C
    untrained = mechanism.decays_with_depth("bump", 0.5 * TRAINED, falling)
    assert untrained["verdict"] == U
    steep = layers([1, 0.4], [0, 0.8])
    assert mechanism.shallow_ramp_is_sharper(TRAINED, steep, falling)["verdict"] == R
    assert mechanism.shallow_ramp_is_sharper(TRAINED, falling, steep)["verdict"] == C


def volume(ratio, effect):
    """The code and the drawn signal, which do not count, say the opposite."""
    return inspection(
        {
            "volume.log10_ratio": [-ratio, ratio, ratio, -ratio],
            "volume.effect": [0, effect, effect, 0],
        }
    )


def test_volume_is_that_of_the_hidden_layers_whatever_its_sign():
    for sign in (1, -1):
        entry = mechanism.distorts_volume("bump", TRAINED, volume(0.5, sign * 1.5))
        assert entry["verdict"] == R and entry["measured"] == pytest.approx(1.5)
    assert mechanism.distorts_volume("bump", TRAINED, volume(0.5, 0.3))["verdict"] == C
    opposite = mechanism.mlp_is_opposite("bump", TRAINED, volume(0.5, 1), volume(-0.4, 1))
    assert opposite["verdict"] == R and opposite["measured"] == pytest.approx(-0.2, abs=1e-2)
    same = mechanism.mlp_is_opposite("bump", TRAINED, volume(-0.5, 1), volume(-0.4, 1))
    assert same["verdict"] == C
