"""Training steps in bfloat16: near float32's, from float32 weights; the default has none of it. And
what a GPU measures does not depend on how many points it computes at once."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import changed, identity
from compgen_jax.metrics import geometry
from compgen_jax.presets import PRESETS
from compgen_jax.runs import measure
from compgen_jax.runs.run import Run
from compgen_jax.training import loop, padding
from tests.training.steps import gradient_of, trained, trial_of

# Kernels and activations of 8 bits are rounded by up to 0.4%. Measured here: at most 1.4%, 6% of a
# PReLU's slope; biases summed in bfloat16 had 60 to 80%.
TOLERANCE = 0.1
CONV = {"model.name": "conv", "model.width": 8, "model.depth": 3}
BFLOAT16 = {"training.precision": "bfloat16"}


def program_of(config, network=loop.Network) -> str:
    """The program of a training chunk, as text."""
    trainer, trial = loop.make_trainer(config, network=network), trial_of(config)
    state = jax.eval_shape(trainer.init, trial.key, trial.task_index)
    return str(jax.make_jaxpr(trainer.advance)(trial, state, 1))


def test_gradients_are_near_float32s_and_all_that_is_trained_stays_in_float32(tiny):
    config = changed(tiny, CONV | BFLOAT16)
    (exact, loss), (rounded, rounded_loss) = trained(changed(tiny, CONV), 1), trained(config, 1)
    assert float(rounded_loss[0]) == pytest.approx(float(loss[0]), rel=0.01)
    assert float(rounded_loss[0]) != float(loss[0])
    gradients = (jax.tree.leaves(gradient_of(state)) for state in (exact, rounded))
    for expected, gradient in zip(*gradients, strict=True):
        error = np.linalg.norm(gradient - expected) / np.linalg.norm(expected)
        assert error < TOLERANCE, error
    # steps are smaller than bfloat16 can tell from weights of size 1
    state, losses = trained(config, 12)
    for leaf in jax.tree.leaves((state.params, state.opt_state, losses)):
        assert leaf.dtype in (jnp.float32, jnp.int32)
    assert all(np.any(leaf != leaf.astype(jnp.bfloat16)) for leaf in jax.tree.leaves(state.params))
    assert losses[-3:].mean() < losses[:3].mean()


def test_training_in_bfloat16_is_evaluated_in_float32_and_can_be_padded(tiny):
    tiny = changed(tiny, CONV | BFLOAT16)
    trainer, trial = loop.make_trainer(tiny), trial_of(tiny)
    params = jax.eval_shape(trainer.init, trial.key).params
    predict = jax.make_jaxpr(trainer.predict)(trial.key, params, trial.dataset.points)
    assert "bf16" in program_of(tiny) and "bf16" not in str(predict)
    assert identity(tiny)["config.training.precision"] == "bfloat16"
    config = changed(tiny, {"task.grid": 12, "task.support.region": "none"})
    members = tuple(changed(config, {"task.grid": grid}).task.make() for grid in (8, 12))
    assert "bf16" in program_of(config, partial(padding.PaddedNetwork, members=members))


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="a CPU has a single precision")
@pytest.mark.parametrize("precision", [None, "highest"])
def test_numbers_do_not_depend_on_how_many_points_are_computed_at_once(precision, monkeypatch):
    config, key, of_counts = PRESETS["bump_cnn_quick"], jax.random.key(0), []
    for count in (1, 7, 28):
        monkeypatch.setattr(geometry, "POINTS_AT_ONCE", count)
        monkeypatch.setattr(type(config.model), "decode_batch", count)
        with jax.default_matmul_precision(precision):
            recorder = measure.Grid(Run(config, config.task.make(), (0,)))
            params, points = recorder.init(key), jnp.asarray(recorder.points)
            predict = jax.jit(loop.make_trainer(config).predict)
            error = predict(key, params, points)[2][recorder.task.error]
            layers = recorder.features(params, recorder.inputs), recorder.tensors(params, points)
        of_counts.append(jax.tree.leaves((error, layers)))
    for values in map(np.stack, zip(*of_counts, strict=True)):
        assert np.ptp(values, axis=0).max() <= 1e-4 * np.abs(values).max()
