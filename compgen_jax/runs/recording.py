"""The arrays that metrics are given, recorded from a finished run at one of three places.

`place(run, at)` prepares a place once; its `record(params, key, seed, needs)` gives, for one
network, the arrays of every layer by name, and those of the prediction (see `metrics.registry`). It
raises RunError for activations that are not finite. Arrays of a grid are made only if `needs` names
them.
"""

from collections import OrderedDict
from functools import cached_property, partial
from math import isinf

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import geometry, id_cells, layers, outputs, probes, tuning
from compgen_jax.metrics.decoding import LastLayer, PointLayer
from compgen_jax.metrics.id_cells import IdLayer
from compgen_jax.metrics.layers import GridLayer
from compgen_jax.metrics.outputs import GridPrediction
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


class LayerFunctions:
    """The model of a run as compiled functions that record all of its layers, in the model's
    order."""

    def __init__(self, run):
        task = self.task = run.task
        self.real = np.array([factor.real for factor in task.factors])
        self.differentiable = task.differentiable and self.real.any()
        lowering = choose_lowering(backend=jax.default_backend(), trials=1, forward_mode=True)
        module = run.config.model.make(loop.shapes_of(task, lowering))
        several = run.config.model.of_each_input
        key = loop.stream(jax.random.key(0), "test")

        def recorded(params, given):
            output, activations = module.apply(params, given)
            # JAX keeps the order of an ordered dictionary alone
            return OrderedDict(activations, output=task.prediction(output))

        def flat(params, inputs):
            one = lambda given: jax.tree.map(jnp.ravel, recorded(params, given))
            return jax.lax.map(one, inputs, batch_size=geometry.POINTS_AT_ONCE)

        def rows(params, inputs):
            def one(given):
                activations = OrderedDict(module.apply(params, given)[1])
                of_rows = lambda leaf: leaf.reshape(len(leaf) if several else 1, -1)[:ROWS]
                return jax.tree.map(of_rows, activations)

            return jax.lax.map(one, inputs, batch_size=POINTS_AT_ONCE)

        def tensors(params, points):
            of_point = lambda point: recorded(params, task.example(key, point).input)
            return geometry.metric_tensors(of_point, points, self.real)

        def true_tensors(points):
            of_point = lambda point: tasks.truth(task, task.example(key, point).target)
            return geometry.metric_tensors(of_point, points, self.real)

        self.features = jax.jit(flat)  # params, inputs -> {layer: (B, D)}
        self.rows = jax.jit(rows)  # params, inputs -> {layer: (B, S, D)}, without the prediction
        self._tensors, self._true_tensors = jax.jit(tensors), jax.jit(true_tensors)
        self.init = jax.jit(lambda key: loop.make_trainer(run.config).init(key).params)

    def tensors(self, params, points) -> dict:
        """(B, R, R) metric tensors of the R real factors by layer; none without a derivative."""
        return jax.device_get(self._tensors(params, points)) if self.differentiable else {}

    def true_tensors(self, points):
        """The same of the true outputs."""
        return jax.device_get(self._true_tensors(points)) if self.differentiable else None


class Grid:
    """Every cell of the factors' grid, or of a sub-grid of at most `MOST_CELLS`."""

    def __init__(self, run):
        task = self.task = tasks.on_grid(run.task)
        if not tasks.has_grid(task):
            raise RunError(f"{run.name}: its points form no grid; compgen-jax analyze decodes them")
        most = MOST_CELLS if len(task.factors) <= 2 else MOST_CELLS_OF_MORE
        cells, where = tasks.cells(task.factors), tasks.geometry(task.factors)
        every = np.asarray(task.held_out(cells))
        chosen, self.sizes = grids.subgrid(tasks.sizes(task), most, held_out_B=every)
        if not every.any():
            raise RunError(f"{run.name}: nothing is held out to analyse")
        self.points, self.held_out = cells[chosen], every[chosen]
        self.distance = grids.distance_to_seen(every, **where)[chosen]
        self.border = grids.border(layers.BORDER, **where)[chosen]
        self.inputs, self.truths = inputs_and_truths(task, self.points)
        self.functions = LayerFunctions(run)

        def kept_parts(shown, codes):
            mean_code = tasks.examples_at(task, jax.random.key(0), shown).input.mean(axis=0)
            of_code = partial(outputs.superposition.mean_code_superpositions, lengths=task.parts)
            return jax.vmap(of_code, (0, None))(codes, mean_code)

        self.dataset, self.kept_parts = jax.jit(partial(loop.dataset_of, task)), jax.jit(kept_parts)

    @cached_property
    def true_similarities(self) -> dict:
        return outputs.similarities(self.truths, self.truths)

    @cached_property
    def _of_layers(self) -> dict:
        """What all layers share."""
        factors = self.task.factors
        several = len(factors) > 2
        return {
            "factors": self.points,
            "sizes": self.sizes,
            "held_out": self.held_out,
            "border": self.border,
            "true_kernel": self.true_similarities["cosine"],
            "real": tuple(factor.real for factor in factors),
            "periods": tuple(factor.period for factor in factors),
            "factor_names": () if len(factors) == 2 else tuple(factor.name for factor in factors),
            # the only pair of two factors has its angle in the factorization
            "tangent_names": tuple(f.name for f in factors if f.real) if several else (),
        }

    def record(self, params, key, seed: int, needs):
        features = _finite(self.functions.features(params, self.inputs), seed)
        untrained, tensors = {}, {}
        if "untrained" in needs:
            untrained = jax.device_get(
                self.functions.features(self.functions.init(key), self.inputs)
            )
        if "tensors" in needs:
            tensors = self.functions.tensors(params, jnp.asarray(self.points))
        of_layers = {
            name: GridLayer(features=layer, tensors=tensors.get(name),
                            untrained=untrained.get(name), **self._of_layers)
            for name, layer in features.items()
        }  # fmt: skip
        dataset = self.dataset(key)
        metric = all(isinf(factor.period) and factor.real for factor in self.task.factors)
        return of_layers, GridPrediction(
            predictions=features["output"],
            truths=self.truths,
            factors=self.points,
            held_out=self.held_out,
            distance=self.distance,
            sizes=self.sizes,
            true_similarities=self.true_similarities,
            mean_code_parts=(
                self._mean_code_parts(params, dataset) if "superpositions" in needs else None
            ),
            places=tasks.nearest_values(self.task.factors, self.points) if metric else None,
            training_law=(_training_law(self.task, dataset) if "training_law" in needs else None),
        )

    def _mean_code_parts(self, params, dataset):
        """(Q, F, D) the predictions for the held-out cells' codes of one factor each, the others
        at their mean over the training points; None for a task without such codes or points."""
        if not (self.task.parts and isinstance(dataset, sampling.Table)):
            return None
        shown = dataset.points[: int(dataset.count)]
        alone = self.kept_parts(shown, self.inputs[self.held_out])
        drawn = [self.functions.features(params, codes)["output"] for codes in alone]
        return np.stack([np.asarray(each, np.float64) for each in drawn], axis=1)

    def add_maps(self, maps: dict, of_layers: dict, prediction: GridPrediction):
        """Adds one network's maps for figures to `maps`; see `measure.Measured`."""
        if all(layer.tensors is not None for layer in of_layers.values()):
            volumes = [geometry.volume_element(layer.tensors) for layer in of_layers.values()]
            volume = np.reshape(volumes, (1, len(volumes), *self.sizes[::-1]))
            maps["volume"] = np.concatenate([maps.get("volume", volume[:0]), volume])
        if "held_out" in maps:
            return  # the rest is of the first network
        maps["held_out"] = grids.over_grid(self.held_out, self.sizes)
        for name, kernel in prediction.similarities.items():
            maps[f"similarity.{name}"] = kernel.astype(np.float32)
        for name, layer in of_layers.items():
            panel = tuning.choose_units(tuning.tuning(layer.features, self.sizes), PANEL)
            maps[f"units.{name}"] = self.unit_maps(layer.features[:, panel])
        # well inside the hole, where nothing near was seen
        distance = self.distance[self.held_out]
        inside = np.flatnonzero(distance >= 0.6 * distance.max())
        chosen = inside[np.linspace(0, len(inside) - 1, EXAMPLES + 2).round().astype(int)[1:-1]]
        shape, drawn = self.truths.shape[1:], prediction.predictions[self.held_out]
        examples = {"output": drawn[chosen].reshape(EXAMPLES, *shape)}
        examples["points"] = self.points[self.held_out][chosen]
        for name, parts in prediction.superpositions.items():
            if parts is not None:
                examples[name] = parts[chosen].reshape(EXAMPLES, -1, *shape)
        for name, values in examples.items():
            maps[f"superposition.{name}"] = values.astype(np.float32)

    def unit_maps(self, features_BxU):
        """(U, V_F, ..., V_1) of units' activations at the cells."""
        return np.moveaxis(grids.over_grid(features_BxU, self.sizes), -1, 0)


class IdCells:
    """ID cells alone: at most `id_cells.MOST_CELLS`, but no fewer than there are effects."""

    sizes = ()

    def __init__(self, run):
        task = tasks.on_grid(run.task)
        if not tasks.has_grid(task):
            raise RunError(f"{run.name}: its points form no grid")
        points = tasks.points(task)
        points = points[~np.asarray(task.held_out(points))]
        most = max(id_cells.MOST_CELLS, sum(tasks.sizes(task)))
        self.points = points[id_cells.choose_cells(points, most)]
        self.inputs, _ = inputs_and_truths(task, self.points)
        self.functions = LayerFunctions(run)
        self.true_tensors = self.functions.true_tensors(jnp.asarray(self.points))
        self.periods = [factor.period for factor in task.factors]

    def record(self, params, key, seed: int, needs):
        features = _finite(self.functions.features(params, self.inputs), seed)
        tensors = self.functions.tensors(params, jnp.asarray(self.points))
        shared = self.true_tensors, self.functions.real, self.periods
        return {name: IdLayer(layer, self.points, tensors.get(name), *shared)
                for name, layer in features.items()}, None  # fmt: skip


class Points:
    """The points that the task is measured at, with the inputs that each seed is scored on."""

    sizes = ()

    def __init__(self, run):
        self.task, self.functions = run.task, LayerFunctions(run)
        self.points = tasks.points(run.task)
        self.held_out = np.asarray(run.task.held_out(self.points))
        if not self.held_out.any():
            raise RunError(f"{run.name}: nothing is held out to analyse")
        columns = [  # of an angle two, of a label one for each
            probes.targets_of(values, factor.period)
            if factor.real
            else np.isclose(values[:, None], factor.values[None])
            for values, factor in zip(self.points.T, self.task.factors, strict=True)
        ]
        self.read = np.concatenate(columns, axis=1)
        # points of the same factors belong together, however often they were drawn
        _, self.groups = np.unique(self.points, axis=0, return_inverse=True)
        self.inputs = jax.jit(lambda key: tasks.examples_at(
            self.task, loop.stream(key, "test"), self.points).input)  # fmt: skip

    def record(self, params, key, seed: int, needs):
        inputs = self.inputs(key)
        trained = _finite(self.functions.rows(params, inputs), seed)
        untrained = _finite(self.functions.rows(self.functions.init(key), inputs), seed)
        count = next(iter(trained.values())).shape[1]
        rows = {
            "factors": np.repeat(self.read, count, axis=0).astype(np.float64),
            "held_out": np.repeat(self.held_out, count),
            "groups": np.repeat(self.groups, count),
        }
        flat = lambda layer: layer.reshape(-1, layer.shape[2])
        of_layers = {
            name: PointLayer(features=flat(layer), untrained=flat(untrained[name]), **rows)
            for name, layer in trained.items()
        }
        last = list(of_layers.values())[-1].features
        return of_layers, LastLayer(features=last, rows_per_point=count, **rows)


PLACES = {"grid": Grid, "id_cells": IdCells, "points": Points}


def place(run, at: str):
    """One of the `PLACES` of a run, which keeps it."""
    if at not in run.places:
        run.places[at] = PLACES[at](run)
    return run.places[at]


def _finite(features: dict, seed: int) -> dict:
    """The layers on the host."""
    features = jax.device_get(features)
    for name, layer in features.items():
        if not np.isfinite(layer).all():
            raise RunError(f"{name} of seed {seed} has activations that are not finite")
    return features


def _training_law(task, dataset):
    """(V_F, ..., V_1) the share of the training points in each cell. Complete points alone count,
    as stripes lack a factor; None without any, and for a stream."""
    if not (isinstance(dataset, sampling.Table) and task.examples):
        return None
    points = np.asarray(dataset.points)[: int(dataset.count)]
    points = points[~np.isnan(points).any(axis=1)]
    if not len(points):
        return None
    law = np.zeros(tasks.sizes(task)[::-1])
    np.add.at(law, tuple(tasks.nearest_values(task.factors, points).T[::-1]), 1 / len(points))
    return law
