"""The model of a finished run as compiled functions that record all of its layers."""

from collections import OrderedDict

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.metrics import geometry
from compgen_jax.models.convolution import choose_lowering
from compgen_jax.runs.results import FinishedRun
from compgen_jax.tasks import task as tasks
from compgen_jax.training import family, loop


class LayerFunctions:
    """The model of a run as compiled functions of one seed's parameters."""

    def __init__(self, run: FinishedRun):
        task = self.task = run.task
        self.real = np.array([factor.real for factor in task.factors])
        self.differentiable = task.differentiable and self.real.any()
        lowering = choose_lowering(backend=jax.default_backend(), trials=1, forward_mode=True)
        module = run.config.model.make(family.shapes_of(task, lowering))
        key = loop.stream(jax.random.key(0), "test")

        def recorded(params, inputs):
            output, activations = module.apply(params, inputs)
            # in the model's order, which JAX keeps of an ordered dictionary alone
            return OrderedDict(activations, output=task.prediction(output))

        def features(params, inputs):
            flat = lambda one: jax.tree.map(jnp.ravel, recorded(params, one))
            return jax.lax.map(flat, inputs, batch_size=geometry.POINTS_AT_ONCE)

        def metrics(params, points):
            return self._along_real(
                lambda point: recorded(params, task.example(key, point).input), points
            )

        def true_metrics(points):
            return self._along_real(
                lambda point: tasks.truth(task, task.example(key, point).target), points
            )

        self.features = jax.jit(features)
        self._metrics, self._true_metrics = jax.jit(metrics), jax.jit(true_metrics)

    def metrics(self, params, points):
        """Metric tensors of the real factors by layer; None without a derivative."""
        return jax.device_get(self._metrics(params, points)) if self.differentiable else None

    def true_metrics(self, points):
        """The same of the true signals, (B, R, R)."""
        return jax.device_get(self._true_metrics(points)) if self.differentiable else None

    def _along_real(self, function, points):
        """Metric tensors, of the real factors, of a function of a point."""
        real = np.flatnonzero(self.real)

        def at(point):
            def of_real(values):
                return function(values if self.real.all() else point.at[real].set(values))

            return geometry.metric_tensor(of_real, point if self.real.all() else point[real])

        return jax.lax.map(at, points, batch_size=geometry.POINTS_AT_ONCE)

    def predictions(self, params, inputs):
        return np.asarray(self.features(params, inputs)["output"], np.float64)
