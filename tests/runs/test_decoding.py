"""What is read of the layers of a run of tasks of modules, whose points form no grid."""

import jax
import numpy as np
import pytest

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.models.task_conditioned import TaskMLP
from compgen_jax.runs import measure, study
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.modules import Modules
from compgen_jax.training import loop

TESTS, M = 32, 4
TINY = Config(
    name="tiny",
    task=Modules(modules=M, most=2, inputs=3, hidden=5, outputs=2, samples=3, tests=TESTS),
    model=TaskMLP(depth=2, width=24),
    training=TrainingConfig(
        steps=30, evaluate_every=15, batch_size=16, seeds=(0, 7), schedule="cosine",
        decay="matrices",
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run, shared by the tests that only read it."""
    workdir = tmp_path_factory.mktemp("decoding") / "run"
    study.train(TINY, workdir)
    return workdir


def test_the_input_says_the_latent_and_permuted_latents_say_nothing(run):
    """Whatever the network is: its code is the latent itself."""
    found = measure.measure(Run.load(run))
    for region in ("id", "ood"):
        for control in ("", "untrained."):
            assert (found.numbers[f"decode.{control}{region}_r2"][:, 0] > 0.999).all()
    assert (found.numbers["decode.shuffled.id_r2"] < 0.1).all()
    first, untrained = (found.numbers[f"decode.{name}ood_r2"][:, 1] for name in ("", "untrained."))
    assert (first != untrained).all() and (first > 0.5).all()


def test_what_is_decoded_are_the_layers_at_the_first_inputs_of_every_test(run):
    """Those that the run is scored on."""
    loaded = Run.load(run)
    task, key = loaded.task, jax.random.key(7)
    params = jax.tree.map(lambda leaf: leaf[1], loaded.params)
    layers = measure.Points(loaded).record(params, key, 7)
    given = jax.jit(lambda: tasks.examples_at(task, loop.stream(key, "test"), task.points).input)()
    module = TINY.model.make(loop.shapes_of(task))
    one = jax.jit(lambda index: module.apply(params, jax.tree.map(lambda leaf: leaf[index], given)))
    for index in (0, 9, TESTS + 5):
        for name, layer in one(index)[1].items():
            assert layers[name].features.shape == (2 * TESTS * 2, layer.shape[1])
            rows = layers[name].features[2 * index : 2 * index + 2]
            np.testing.assert_allclose(rows, layer[:2], atol=1e-5)
    assert list(layers)[-1] == "layer_02"
    np.testing.assert_array_equal(layers["layer_02"].factors[::2], task.points)


def test_each_network_is_asked_at_the_inputs_of_its_seed(run):
    """At the end and at late checkpoints, which are nearly the end in so short a run."""
    loaded = Run.load(run)
    predictions, truths, _ = loaded.answers(tasks.points(loaded.task))
    assert (truths[0] != truths[1]).any()
    np.testing.assert_allclose(loaded.cells.truths, truths[0], rtol=1e-5)
    late = loaded.late.answers(tasks.points(loaded.task))[:2]
    for found, expected in zip(late, (predictions, truths), strict=True):
        every = np.broadcast_to(expected[:, None], found.shape)
        np.testing.assert_allclose(found, every, atol=5e-3)
