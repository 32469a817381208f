"""Which cells a run was shown."""

import jax
import numpy as np

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.runs.run import Run
from compgen_jax.tasks.bump import Bump, StripesConfig
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.training import loop


def test_a_run_was_shown_the_cells_of_its_complete_points():
    """Stripes show none; each seed drew its own; a late network has its seed's."""
    support = SupportConfig(region="corner", low=5, sampling="without_replacement", samples=6)
    settings = Bump(grid=8, support=support, stripes=StripesConfig(copies=1))
    config = Config(task=settings, training=TrainingConfig(steps=1, seeds=(0, 1)))
    task = settings.make()
    run = Run(config, task, (0, 1))
    assert run.shown.shape == (2, 64) and (run.shown[0] != run.shown[1]).any()
    at_steps = Run(config, task, (0, 1), steps=(3, 6, 9), end=run)
    np.testing.assert_array_equal(at_steps.shown, run.shown[:, None])
    for seed in (0, 1):
        points = np.asarray(loop.dataset_of(task, jax.random.key(seed)).points)
        expected = np.zeros(64, bool)
        for x, y in points[~np.isnan(points).any(axis=1)].astype(int):
            expected[8 * y + x] = True
        np.testing.assert_array_equal(run.shown[seed], expected)
