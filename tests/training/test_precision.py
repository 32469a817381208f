"""Training steps in bfloat16: near float32's, from float32 weights; the default has none of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError, changed, fingerprint, identity
from compgen_jax.models.convolution import choose_lowering, conv_transpose
from compgen_jax.training import loop

# Kernels and activations of 8 bits are rounded by up to 0.4%. Measured here: at most 1.4%, 6% of a
# PReLU's slope; biases summed in bfloat16 had 60 to 80%.
TOLERANCE = 0.1
DECODERS = {
    "conv": {"model.width": 8, "model.depth": 3},
    "lowrank": {
        "model.name": "lowrank",
        "task.code.name": "onehot",
        "model.penalty.entropy": 0.01,
        "model.penalty.variance": 0.01,
    },
}


def in_bfloat16(config: Config) -> Config:
    return changed(config, {"training.precision": "bfloat16"})


def trial_of(config, key, which=0):
    task = loop.check(config)
    hyper, dataset = loop.hyper_of(config), loop.dataset_of(task, key)
    return loop.Trial(key, hyper, dataset, jnp.int32(which))


def after_steps(config, n_steps, lowering=None, grids=()):
    """(state, losses of the steps), of the config's first seed; padded to the last of the grids."""
    of = tuple(changed(config, {"task.grid": grid}).task.make() for grid in grids)
    trainer, key = loop.make_trainer(config, lowering, of=of), jax.random.key(4)
    trial = trial_of(config, key, max(len(grids) - 1, 0))
    state, losses = jax.jit(trainer.advance)(trial, trainer.init(key, trial.which), n_steps)
    return state, losses[:n_steps]


def traced(config, lowering=None) -> tuple[str, str]:
    """The program of a training chunk and the one that answers."""
    trainer = loop.make_trainer(config, lowering)
    trial = trial_of(config, jax.random.key(0))
    state = jax.eval_shape(trainer.init, trial.key)
    advance = jax.make_jaxpr(trainer.advance)(trial, state, 1)
    points = trial.dataset.points
    return str(advance), str(jax.make_jaxpr(trainer.predict)(trial.key, state.params, points))


@pytest.mark.parametrize("name", DECODERS)
def test_the_gradient_is_float32s_at_the_accuracy_of_bfloat16(tiny, name):
    """After one step AdamW's first moment is a tenth of the gradient; of every leaf."""
    config = changed(tiny, DECODERS[name])
    (exact, loss), (rounded, rounded_loss) = (
        after_steps(either, 1, "gemm") for either in (config, in_bfloat16(config))
    )
    assert float(rounded_loss[0]) == pytest.approx(float(loss[0]), rel=0.01)
    assert float(rounded_loss[0]) != float(loss[0])
    gradients = (jax.tree.leaves(state.opt_state[0].mu) for state in (exact, rounded))
    for expected, found in zip(*gradients, strict=True):
        error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
        assert error < TOLERANCE, error


@pytest.mark.parametrize("name", DECODERS)
def test_weights_moments_and_loss_stay_in_float32(tiny, name):
    """And learn: the steps are smaller than bfloat16 can tell from weights of size 1."""
    config = changed(in_bfloat16(tiny), {**DECODERS[name], "training.learning_rate": 1e-3})
    state, losses = after_steps(config, 12)
    for leaf in jax.tree.leaves((state.params, state.opt_state, losses)):
        assert leaf.dtype in (jnp.float32, jnp.int32)
    moved = [np.any(leaf != leaf.astype(jnp.bfloat16)) for leaf in jax.tree.leaves(state.params)]
    assert all(moved)
    assert losses[-3:].mean() < losses[:3].mean()


def test_a_padded_trial_of_several_grids_trains_in_bfloat16(tiny):
    config = changed(tiny, {"task.grid": 12, "task.support.region": "none"})
    losses = [
        after_steps(either, 5, "gemm", grids=(8, 12))[1] for either in (config, in_bfloat16(config))
    ]
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.02)


def test_the_default_is_the_program_without_an_option(tiny):
    """No cast to another precision, and the same identity and directory as ever."""
    given = changed(tiny, {"training.precision": "float32"})
    assert given == tiny and fingerprint(given) == fingerprint(tiny)
    assert not any("precision" in field for field in identity(tiny))
    for lowering in ("lax", "gemm", "winograd"):
        programs = traced(tiny, lowering)
        assert not any("bf16" in text for text in programs)


def test_evaluation_draws_in_float32(tiny):
    advance, draw = traced(in_bfloat16(tiny))
    assert "bf16" in advance and "bf16" not in draw
    assert identity(in_bfloat16(tiny))["config.training.precision"] == "bfloat16"


def test_precisions_do_not_share_a_program(tiny):
    programs = [loop.program(each, loop.check(each)) for each in (tiny, in_bfloat16(tiny))]
    assert programs[0] != programs[1]


def test_an_unknown_precision_and_a_decoder_without_convolutions_are_named(tiny):
    with pytest.raises(ConfigError, match="precision='float16': must be one of float32, bfloat16"):
        changed(tiny, {"training.precision": "float16"})
    with pytest.raises(ConfigError, match="convolutions, which config.model.name='mlp' has not"):
        in_bfloat16(changed(tiny, {"model.name": "mlp"}))


def test_no_lowering_is_chosen_whose_transforms_amplify_the_rounding(tiny):
    choices = {
        (backend, trials): choose_lowering(backend=backend, trials=trials, precision="bfloat16")
        for backend in ("cpu", "gpu", "tpu")
        for trials in (1, 8)
    }
    assert set(choices.values()) == {"lax", "gemm"}
    assert choices["cpu", 1] == "gemm" and choices["gpu", 1] == "lax"
    x, kernel = jnp.ones((4, 4, 8), jnp.bfloat16), jnp.ones((3, 3, 8, 8), jnp.bfloat16)
    with pytest.raises(ValueError, match="not for bfloat16"):
        conv_transpose(x, kernel, stride=1, lowering="winograd")
