"""Several samples of a generator for one request, against float64 loops."""

from dataclasses import dataclass

import jax
import numpy as np
from flax import linen as nn
from numpy.testing import assert_allclose

from compgen_jax.config import Config, TrainingConfig, changed
from compgen_jax.models.model import Model
from compgen_jax.runs import results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from compgen_jax.tasks.table import ImageTable
from compgen_jax.training import loop
from tests.command import refused
from tests.tasks.test_table import of, several


class Noise(nn.Module):
    """An image of noise, whatever is requested."""

    @nn.compact
    def __call__(self, code):
        draw = lambda: jax.random.normal(self.make_rng("params"), (4, 4))
        return self.variable("noise", "start", draw).value, {"layer_00": code}


@dataclass(frozen=True)
class Generator(Model):
    def make(self, shapes):
        return Noise()


def test_samples_of_a_known_generator_and_the_scores_of_the_best_and_of_all(tmp_path, run):
    path, factors, images = several(tmp_path)
    task = ImageTable(path=path, held_out="hue == 'tan'")
    config = Config("known", task, Generator(), TrainingConfig(steps=1, seeds=(0, 3)))
    known = Run(config, task.make(), config.training.seeds)
    known.params = jax.vmap(loop.make_trainer(config).init)(results.seed_keys(known.seeds)).params
    drawn = known.predict(known.cells.factors, samples=5)
    assert drawn.shape == (2, 5, 11, 4, 4) and len(np.unique(drawn)) == 2 * 5 * 16
    assert_allclose([drawn.mean(), drawn.std()], [0, 1], atol=0.3)  # 4 standard errors
    for row in known.cell_table(samples=5).itertuples():
        every = of(factors, images.astype(np.float64), row.hue, row.width)
        samples = drawn[known.seeds.index(row.seed), :, 0]
        errors = np.square(samples[:, None] - every).mean(axis=(2, 3))
        right = every[errors.min(axis=0).argmin()]
        expected = errors.min(axis=1).mean(), errors.min(), np.square(right).mean()
        assert_allclose([row.mean_mse, row.best_mse, row.best_blank_mse], expected, rtol=1e-5)
    assert "noise" in loop.template(changed(config, {"model.name": "flow"})).params
    with refused("config.model.name='mlp': draws no samples", kind=RunError):
        run.predict(run.cells.factors, samples=2)
    with refused("samples=-1: must be"):
        run.cell_table(samples=-1)
