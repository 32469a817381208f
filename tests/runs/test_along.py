"""Metrics along training: those of single networks at the kept steps, measured once."""

import chex
import jax
import numpy as np
import pytest

from compgen_jax.metrics import decomposition, kernels
from compgen_jax.runs import experiment, measure
from compgen_jax.runs.run import Run


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("along") / "run"
    experiment.train(tiny, workdir, progress=False)
    return Run.load(workdir)


def test_networks_along_training_are_those_of_single_steps(run):
    assert run.kept_steps == [1, 2, 3, 6, 12] and run.along.seeds == run.seeds
    for index, step in enumerate(run.kept_steps):
        at_step = jax.tree.map(lambda leaf, k=index: leaf[:, k], run.along.params)
        chex.assert_trees_all_equal(at_step, run.at(step).params)


def test_numbers_are_those_of_the_predictions_and_are_kept(run, monkeypatch):
    names = "schmidt.exp_entropy", "output.superposition.sums.r2"
    found = measure.along_training(run, names, progress=False)
    of_layers, of_output = (found[name] for name in names)
    assert list(of_layers)[-1] == "output" and len(of_layers) == 2
    assert list(of_output) == ["output"] and of_output["output"].shape == (2, 5)
    for at, step in enumerate(run.kept_steps):
        drawn = run.at(step).cells.predictions.reshape(2, 64, 64)
        for seed in range(2):
            values = decomposition.operator_schmidt(kernels.gram(drawn[seed]), (8, 8))
            expected = np.exp(decomposition.entropy(values))
            assert of_layers["output"][seed, at] == pytest.approx(expected, rel=1e-4)

    monkeypatch.setattr(measure, "take", None)
    again = measure.along_training(run, names)
    np.testing.assert_array_equal(again[names[0]]["output"], of_layers["output"])
    # measured along with what was asked for
    assert set(measure.along_training(run, ["schmidt.rank"])["schmidt.rank"]) == set(of_layers)
