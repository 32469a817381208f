"""Several samples of a generator for one request, against float64 loops."""

from dataclasses import dataclass

import jax
import numpy as np
from flax import linen as nn
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.config import Config, TrainingConfig, changed
from compgen_jax.models.model import Model
from compgen_jax.runs import results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from compgen_jax.tasks.table import ImageTable
from compgen_jax.training import loop
from tests.command import refused
from tests.tasks.test_table import of, several


class BiasAndNoise(nn.Module):
    """Whatever is requested."""

    @nn.compact
    def __call__(self, code):
        draw = lambda: 0.1 * jax.random.normal(self.make_rng("params"), (4, 4))
        image = self.param("bias", nn.initializers.constant(0.5), (4, 4))
        return image + self.variable("noise", "start", draw).value, {"layer_00": code}


@dataclass(frozen=True)
class Generator(Model):
    def make(self, shapes):
        return BiasAndNoise()


def test_samples_of_a_known_generator_and_the_scores_of_the_best_and_of_all(tmp_path, run):
    path, factors, images = several(tmp_path)
    task = ImageTable(path=f"{path}.npz", held_out="hue == 'tan'")
    config = Config("known", task, Generator(), TrainingConfig(steps=1, seeds=(0, 3)))
    known = Run(config, task.make(), (0, 3))
    init = jax.vmap(loop.make_trainer(config).init)
    known.params = jax.device_get(init(results.seed_keys((0, 3))).params)
    table, points = known.cell_table(samples=5), known.cells.factors
    drawn = known.predict(points, samples=5)
    assert drawn.shape == (2, 5, 11, 4, 4) and len(np.unique(drawn[:, :, 0, 0, 0])) == 10
    assert_array_equal(drawn, np.repeat(drawn[:, :, :1], 11, axis=2))
    noise = drawn[:, :, 0] - 0.5
    assert_allclose([noise.mean(), noise.std()], [0, 0.1], atol=0.03)  # 4 standard errors
    for row in table.itertuples():
        every = of(factors, images.astype(np.float64), row.hue, row.width)
        samples = drawn[(0, 3).index(row.seed), :, 0]
        errors = np.square(samples[:, None] - every).mean(axis=(2, 3))
        assert_allclose(row.mean_mse, errors.min(axis=1).mean(), rtol=1e-5)
        assert_allclose(row.best_mse, errors.min(), rtol=1e-5)
        truth = every[errors.min(axis=0).argmin()]
        assert_allclose(row.best_blank_mse, np.square(truth).mean(), rtol=1e-5)
    assert "noise" in loop.template(changed(config, {"model.name": "flow"})).params
    with refused("config.model.name='mlp': draws no samples", kind=RunError):
        run.predict(run.cells.factors, samples=2)
    with refused("samples=-1: must be a number from 0"):
        run.cell_table(samples=-1)
