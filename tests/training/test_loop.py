import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.training import loop


@pytest.mark.parametrize(("n_samples", "batch_size"), [(10, 4), (12, 4), (3, 8)])
def test_every_epoch_sees_each_example_once_in_a_new_order(n_samples, batch_size):
    capacity, per_epoch = 12, -(-n_samples // batch_size)
    orders = []
    for epoch in range(3):
        seen = []
        for step in range(epoch * per_epoch, (epoch + 1) * per_epoch):
            chosen, counts = loop.batch_indices(
                jax.random.key(0), step, jnp.int32(n_samples), batch_size, capacity
            )
            seen += np.asarray(chosen)[np.asarray(counts)].tolist()
        assert sorted(seen) == list(range(n_samples))
        orders.append(tuple(seen))
    assert len(set(orders)) == 3 or n_samples == 3


def test_streams_of_one_key_differ():
    key = jax.random.key(0)
    names = ("data", "init", "order", "validation", "ood")
    draws = {float(jax.random.uniform(loop.stream(key, name))) for name in names}
    assert len(draws) == len(names)


def advance(trainer, config, key, state, n_steps):
    return jax.jit(trainer.advance)(loop.make_trial(config, key), state, n_steps)


def test_one_step_of_adamw_equals_float64_numpy(tiny):
    """The first step, decay included and on biases too: the gradient's sign, bias-corrected."""
    trainer = loop.make_trainer(tiny, "gemm")
    key = jax.random.key(3)
    state = trainer.init(key)
    after, losses = advance(trainer, tiny, key, state, 1)
    hyper = loop.hyper_of(tiny)
    moments = after.opt_state[0]
    for before, new, mu in zip(
        *(jax.tree.leaves(tree) for tree in (state.params, after.params, moments.mu)), strict=True
    ):
        before, gradient = np.asarray(before, np.float64), np.asarray(mu, np.float64) / 0.1
        step = gradient / (np.abs(gradient) + 1e-8) + 0.01 * before
        expected = before - float(hyper.learning_rate) * step
        np.testing.assert_allclose(new, expected, atol=2e-6)
    assert int(after.step) == 1 and losses[0] > 0 and not losses[1:].any()


def test_gradient_of_the_batch_loss_against_differences(tiny):
    """The first moment holds the gradient: check it along a random direction."""
    trainer = loop.make_trainer(tiny, "winograd")
    key = jax.random.key(1)
    state = trainer.init(key)
    after, _ = advance(trainer, tiny, key, state, 1)
    gradient = jax.tree.map(lambda mu: mu / 0.1, after.opt_state[0].mu)
    direction = jax.tree.map(
        lambda leaf: jax.random.normal(jax.random.key(leaf.size), leaf.shape), state.params
    )

    def loss_at(t):
        params = jax.tree.map(lambda p, d: p + t * d, state.params, direction)
        return float(advance(trainer, tiny, key, state._replace(params=params), 1)[1][0])

    slope = sum(jax.tree.leaves(jax.tree.map(jnp.vdot, gradient, direction)))
    step = 2e-3
    assert (loss_at(step) - loss_at(-step)) / (2 * step) == pytest.approx(float(slope), rel=2e-2)


def test_chunks_do_not_change_the_bits(tiny, replace_in):
    key = jax.random.key(5)
    finals = []
    for chunk, pieces in ((50, [12]), (50, [1, 4, 7]), (5, [5, 5, 2])):
        config = replace_in(tiny, "execution.chunk_steps", chunk)
        trainer = loop.make_trainer(config)
        state, history = trainer.init(key), []
        for n_steps in pieces:
            state, losses = advance(trainer, config, key, state, n_steps)
            history.append(losses[:n_steps])
        finals.append((state, jnp.concatenate(history)))
    chex.assert_trees_all_equal(*finals)


def test_whole_run_is_a_pure_function_with_a_falling_loss(tiny, replace_in):
    config = replace_in(replace_in(tiny, "training.epochs", 40), "execution.chunk_steps", 7)
    train = jax.jit(loop.make_train(config))
    state, losses = train(jax.random.key(0), loop.hyper_of(config))
    assert losses.shape == (loop.total_steps(config),) == (80,) and int(state.step) == 80
    assert losses[-10:].mean() < 0.5 * losses[:5].mean()


def test_vmapped_seeds_and_hypers_equal_single_runs_with_one_trace(tiny):
    """Learning rate, decay and number of samples are traced: one compilation for all."""
    traces = []

    def train(key, hyper):
        traces.append(1)
        return loop.make_train(tiny)(key, hyper)

    hypers = loop.Hyper(
        learning_rate=jnp.array([1e-3, 3e-3, 1e-3]),
        weight_decay=jnp.array([0.01, 0.0, 0.1]),
        n_samples=jnp.array([60, 60, 33]),
        entropy=jnp.zeros(3),
        variance=jnp.zeros(3),
    )
    keys = jax.vmap(jax.random.key)(jnp.array([0, 1, 1]))
    together = jax.jit(jax.vmap(train))(keys, hypers)
    assert len(traces) == 1
    single = jax.jit(train)
    for index in range(3):
        alone = single(keys[index], jax.tree.map(lambda x, i=index: x[i], hypers))
        chosen = jax.tree.map(lambda x, i=index: x[i], together)
        # a tenth of one AdamW step: the sign of a vanishing gradient is up to rounding
        chex.assert_trees_all_close(alone[0].params, chosen[0].params, atol=1e-4)
        chex.assert_trees_all_close(alone[1], chosen[1], rtol=1e-3)
    assert len(traces) == 2


def test_fewer_samples_use_only_the_first_ones(tiny):
    """n_samples = 1 trains on one example: its loss is the batch's, whatever the others are."""
    trainer = loop.make_trainer(tiny)
    key = jax.random.key(2)
    hyper = loop.hyper_of(tiny)._replace(n_samples=jnp.int32(1))
    state = trainer.init(key)
    trial = loop.make_trial(tiny, key, hyper)
    _, losses = jax.jit(trainer.advance)(trial, state, 3)
    image, target = trainer.draw(state.params, trial.factors[:1])
    assert float(losses[0]) == pytest.approx(float(jnp.mean(jnp.square(image - target))), rel=1e-4)
