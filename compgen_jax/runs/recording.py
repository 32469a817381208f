"""The layers that metrics are given, recorded from a finished run: `recorder(run, domain)` has
`record(params, key, seed)`, which gives one network's `layers.Layer`s in the model's order."""

from collections import OrderedDict
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import (
    decoding as decoding,  # registers its metrics
)
from compgen_jax.metrics import geometry, kernels, layers, probes, superposition, tuning
from compgen_jax.metrics.layers import Layer
from compgen_jax.models.convolution import choose_lowering
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.results import inputs_and_truths
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

# beyond it Gram matrices, and products of three of them, take too long; with a third factor each
# layer is decomposed once for every factor, and its units' best products have no closed form
MOST_CELLS, MOST_CELLS_OF_MORE = 1600, 400  # for up to two factors, and for more
PANEL = 8  # units of every layer whose maps are kept
EXAMPLES = 4  # held-out cells whose superpositions are kept
ROWS = 2  # of every point, where a model answers several: rows of one group
POINTS_AT_ONCE = 128
NOTHING_HELD_OUT = "nothing is held out to analyse"


class Recorder:
    """The model of a run as compiled functions that record all of its layers, in the model's
    order."""

    def __init__(self, run):
        self.task = run.task
        real = np.array([factor.real for factor in run.task.factors])
        self.differentiable = run.task.differentiable and real.any()
        lowering = choose_lowering(backend=jax.default_backend(), trials=1, forward_mode=True)
        self.module = run.config.model.make(loop.shapes_of(run.task, lowering))

        def recorded(params, code):
            output, activations = self.module.apply(params, code)
            # JAX keeps the order of an ordered dictionary alone
            return OrderedDict(activations, output=run.task.prediction(output))

        def features(params, inputs):
            def flat(code):
                return jax.tree.map(jnp.ravel, recorded(params, code))

            return jax.lax.map(flat, inputs, batch_size=geometry.POINTS_AT_ONCE)

        def tensors(params, points):
            key = loop.stream(jax.random.key(0), "test")
            of_point = lambda point: recorded(params, run.task.example(key, point).input)
            return geometry.metric_tensors(of_point, points, real)

        self.features = jax.jit(features)  # params, inputs -> {layer: (B, D)}
        self._tensors = jax.jit(tensors)
        self.init = jax.jit(lambda key: loop.make_trainer(run.config).init(key).params)

    def tensors(self, params, points) -> dict:
        """(B, R, R) metric tensors of the R real factors by layer; none without a derivative."""
        return jax.device_get(self._tensors(params, points)) if self.differentiable else {}

    def finite(self, features: dict, seed: int) -> dict:
        """The layers on the host."""
        features = jax.device_get(features)
        for name, layer in features.items():
            if not np.isfinite(layer).all():
                raise RunError(f"{name} of seed {seed} has activations that are not finite")
        return features


class Grid(Recorder):
    """Every cell of the factors' grid, or of a sub-grid of at most `MOST_CELLS`."""

    def __init__(self, run):
        super().__init__(run)
        task = tasks.on_grid(run.task)
        if not tasks.has_grid(task):
            raise RunError(f"{run.name}: its points form no grid; compgen-jax analyze decodes them")
        factors = task.factors
        cells, geometry_of_cells = tasks.cells(factors), tasks.geometry(factors)
        every = np.asarray(task.held_out(cells))
        if not every.any():
            raise RunError(f"{run.name}: {NOTHING_HELD_OUT}")
        most = MOST_CELLS if len(factors) <= 2 else MOST_CELLS_OF_MORE
        chosen, self.sizes = grids.subgrid(tasks.sizes(task), most, held_out_B=every)
        self.points = cells[chosen]
        self.inputs, self.truths = inputs_and_truths(task, self.points)
        flat_truths = np.asarray(self.truths).reshape(len(self.truths), -1)
        self.of_layers = {  # what all layers share
            "factors": self.points,
            "held_out": every[chosen],
            "sizes": self.sizes,
            "border": grids.border(layers.BORDER, **geometry_of_cells)[chosen],
            "distance": grids.distance_to_seen(every, **geometry_of_cells)[chosen],
            "true_kernel": kernels.cosine(kernels.gram(flat_truths)),
            "real": tuple(factor.real for factor in factors),
            "periods": tuple(factor.period for factor in factors),
            "factor_names": () if len(factors) == 2 else tuple(factor.name for factor in factors),
        }

        def code_parts(points, codes):
            mean_code = tasks.examples_at(task, jax.random.key(0), points).input.mean(axis=0)
            parts = partial(superposition.mean_code_superpositions, lengths=task.parts)
            return jax.vmap(parts, (0, None))(codes, mean_code)

        self.dataset = jax.jit(partial(loop.dataset_of, task))
        self.code_parts = jax.jit(code_parts)

    def record(self, params, key, seed: int) -> dict[str, Layer]:
        @cache
        def by_layer(array: str) -> dict:
            if array == "untrained":
                return jax.device_get(self.features(self.init(key), self.inputs))
            if array == "tensors":
                return self.tensors(params, jnp.asarray(self.points))
            dataset = self.dataset(key)  # for the parts of codes, beside the mean of training's
            if not (self.task.parts and isinstance(dataset, sampling.Table)):
                return {}
            points = dataset.points[: int(dataset.count)]
            parts = self.code_parts(points, self.inputs[self.of_layers["held_out"]])
            outputs = [self.features(params, codes)["output"] for codes in parts]
            outputs = [np.asarray(output, np.float64) for output in outputs]
            return {"output": np.stack(outputs, axis=1)}

        features = self.finite(self.features(params, self.inputs), seed)
        return {
            name: Layer(
                activations, **self.of_layers,
                costly=lambda array, name=name: by_layer(array).get(name),
            )
            for name, activations in features.items()
        }  # fmt: skip

    def add_maps(self, maps: dict, of_layers: dict[str, Layer]):
        """Adds one network's maps for figures to `maps`; see `measure.Measured`."""
        output, held_out = of_layers["output"], self.of_layers["held_out"]
        if all(layer.tensors is not None for layer in of_layers.values()):
            volumes = [geometry.volume_element(layer.tensors) for layer in of_layers.values()]
            volume = np.reshape(volumes, (1, len(volumes), *self.sizes[::-1]))
            maps["volume"] = np.concatenate([maps.get("volume", volume[:0]), volume])
        if "held_out" in maps:
            return  # the rest is of the first network
        maps["held_out"] = grids.over_grid(held_out, self.sizes)
        gram, largest = kernels.gram(output.features), float(self.truths.max())
        amplitude = largest if largest > 0 else 1.0
        similarities = {
            "cosine": kernels.cosine(gram),
            "l2": kernels.l2(gram),
            "overlap": kernels.overlap(output.features[:, None], amplitude=amplitude),
        }
        for name, kernel in similarities.items():
            maps[f"similarity.{name}"] = kernel.astype(np.float32)
        for name, layer in of_layers.items():
            panel = tuning.choose_units(tuning.tuning(layer.features, self.sizes), PANEL)
            maps[f"units.{name}"] = self.unit_maps(layer.features[:, panel])
        # well inside the hole, where nothing near was seen
        distance = output.distance[held_out]
        inside = np.flatnonzero(distance >= 0.6 * distance.max())
        chosen = inside[np.linspace(0, len(inside) - 1, EXAMPLES + 2).round().astype(int)[1:-1]]
        shape = self.truths.shape[1:]
        examples = {"output": output.features[held_out][chosen].reshape(EXAMPLES, *shape)}
        examples["points"] = self.points[held_out][chosen]
        for name, parts in layers.superpositions(output).items():
            if parts is not None:
                examples[name] = parts[chosen].reshape(EXAMPLES, -1, *shape)
        for name, values in examples.items():
            maps[f"superposition.{name}"] = values.astype(np.float32)

    def unit_maps(self, features_BxU):
        """(U, V_F, ..., V_1) of units' activations at the cells."""
        return np.moveaxis(grids.over_grid(features_BxU, self.sizes), -1, 0)


class Points(Recorder):
    """The points that the task is measured at, with the inputs that each seed is scored on."""

    sizes = ()

    def __init__(self, run):
        super().__init__(run)
        task, self.points = run.task, tasks.points(run.task)
        self.held_out = np.asarray(task.held_out(self.points))
        if not self.held_out.any():
            raise RunError(f"{run.name}: {NOTHING_HELD_OUT}")
        columns = [  # of an angle two, of a label one for each
            probes.targets_of(values, factor.period)
            if factor.real
            else np.isclose(values[:, None], factor.values[None])
            for values, factor in zip(self.points.T, task.factors, strict=True)
        ]
        self.factors = np.concatenate(columns, axis=1)
        # points of the same factors belong together, however often they were drawn
        _, self.groups = np.unique(self.points, axis=0, return_inverse=True)
        several = run.config.model.of_each_input

        def rows(params, inputs):
            def first(code):
                activations = OrderedDict(self.module.apply(params, code)[1])
                return jax.tree.map(
                    lambda leaf: leaf.reshape(len(leaf) if several else 1, -1)[:ROWS], activations
                )

            return jax.lax.map(first, inputs, batch_size=POINTS_AT_ONCE)

        self.rows = jax.jit(rows)  # params, inputs -> {layer: (B, S, D)}, without the prediction
        self.inputs = jax.jit(
            lambda key: tasks.examples_at(task, loop.stream(key, "test"), self.points).input
        )

    def record(self, params, key, seed: int) -> dict[str, Layer]:
        inputs = self.inputs(key)
        trained = self.finite(self.rows(params, inputs), seed)
        untrained = self.finite(self.rows(self.init(key), inputs), seed)
        count = next(iter(trained.values())).shape[1]
        rows = {
            "factors": np.repeat(self.factors, count, axis=0).astype(np.float64),
            "held_out": np.repeat(self.held_out, count),
            "groups": np.repeat(self.groups, count),
            "rows_per_point": count,
        }
        flat, flat_untrained = (
            {name: layer.reshape(-1, layer.shape[2]) for name, layer in layers.items()}
            for layers in (trained, untrained)
        )
        return {
            name: Layer(layer, **rows, costly={"untrained": flat_untrained[name]}.get)
            for name, layer in flat.items()
        }


RECORDERS = {"grid": Grid, "points": Points}


def recorder(run, domain: str) -> Recorder:
    """One of the `RECORDERS` of a run, which keeps it."""
    if domain not in run.recorders:
        run.recorders[domain] = RECORDERS[domain](run)
    return run.recorders[domain]
