"""The measurement of a run: metrics x seeds x steps x layers. A number that the run's table lacks
is computed from the layers, and added.

    DIR/layers.csv     seed, step, layer, metric, value; of a prediction alone the layer is `output`
    DIR/analysis.npz   maps for figures, of a run on a grid
    DIR/analysis.json  the numbers of the last step, and their means
    DIR/over_*/        the same, over the cells that another run holds out (`Run.over`)
"""

from collections import OrderedDict
from contextlib import suppress
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from compgen_jax import grids
from compgen_jax.metrics import (
    decoding as decoding,  # registers its metrics
)
from compgen_jax.metrics import geometry, kernels, layers, probes, registry, tuning
from compgen_jax.metrics.layers import Layer
from compgen_jax.metrics.registry import METRICS
from compgen_jax.runs import directory, logs, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.logs import Bar
from compgen_jax.settings import ConfigError
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

VERSION = 10  # of what is measured: a cached table of another version is made anew
TYPES = {"seed": int, "step": int, "layer": str, "metric": str, "value": str}
COLUMNS = tuple(TYPES)
FILES = "layers.csv", "analysis.npz", "analysis.json"
# beyond it Gram matrices, and products of three of them, take too long; with a third factor each
# layer is decomposed once for every factor, and its units' best products have no closed form
MOST_CELLS, MOST_CELLS_OF_MORE = 1600, 400  # for up to two factors, and for more
PANEL = 8  # units of every layer whose maps are kept
EXAMPLES = 4  # held-out cells whose superpositions are kept
ROWS = 2  # of every point, where a model answers several: rows of one group
POINTS_AT_ONCE = 128


class Measured(NamedTuple):
    """What was measured of a run.

    table: `COLUMNS`; layers in order, input first.  sizes: of the grid, () for none.  maps: of the
    last step and a grid: `volume` (S, L, V_F, ..., V_1), `held_out`, and of the first seed
    `similarity.*` (B, B), `superposition.*`, a few held-out outputs and their parts, `units.LAYER`.
    """

    table: pd.DataFrame = pd.DataFrame(columns=COLUMNS)
    sizes: tuple = ()
    maps: dict = {}

    @property
    def seeds(self) -> tuple:
        return tuple(self.table.seed.unique().tolist())

    @property
    def layers(self) -> tuple[str, ...]:
        """Those of the metric that has most of them."""
        by_metric = self.table.groupby("metric", sort=False).layer.unique()
        return tuple(max(by_metric, key=len))

    @property
    def numbers(self) -> dict:
        """(S, L) of the last step by metric of layers."""
        return self._at_end(of_output=False)

    @property
    def outputs(self) -> dict:
        """(S,) of the last step by metric of the prediction."""
        return {name: values[:, 0] for name, values in self._at_end(of_output=True).items()}

    def _at_end(self, of_output: bool) -> dict:
        rows = self.table[self.table.step == self.table.step.max()]
        of_prediction = rows.layer.eq("output").groupby(rows.metric).transform("all")
        return {
            name: self.values(name) for name in rows.metric[of_prediction == of_output].unique()
        }

    def has(self, metrics, steps) -> bool:
        return all({*steps} <= {*self.table.step[self.table.metric == name]} for name in metrics)

    def values(self, metric: str, steps=()):
        """(S, L) of a metric at the last step, (S, C, L) at C steps."""
        rows = self.table[self.table.metric == metric]
        wide = rows.pivot(index=["seed", "step"], columns="layer", values="value")
        index = pd.MultiIndex.from_product([self.seeds, steps or [self.table.step.max()]])
        values = wide[rows.layer.unique()].reindex(index).to_numpy()
        return values.reshape(len(self.seeds), *((len(steps),) if steps else ()), -1)


def measure(run, *metrics: str, progress: bool = True, families=()) -> Measured:
    """What is known of a run, these metrics of one domain included; without any, all metrics of the
    grid or else of the task's points, or some `families` such as 'probe'.

    Of a run at several steps only these metrics are measured. Raises RunError for what cannot be.
    """
    if run.path is None:
        raise RunError(f"{run.name}: `measure.take` measures the layers of earlier steps")
    end, steps = run.end, run.steps or (loop.schedule_of(run.config, run.task).total,)
    known = end.measured = end.measured or read(end.numbers_path) or Measured()
    if metrics and known.has(metrics, steps):
        return known
    wanted = [metric for metric in METRICS if {*metric.names} & {*metrics}]
    domain = "grid" if metrics or tasks.has_grid(tasks.on_grid(run.task)) else "points"
    if wanted:
        domain = wanted[0].domain
    if not run.steps:
        try:
            wanted = registry.metrics_of(domain, families)
        except ConfigError as error:
            raise RunError(str(error)) from error
    elif _waiting is not None:
        _waiting.setdefault((run, domain), []).extend(metrics)
        raise Unmeasured
    missing = [metric for metric in wanted if not known.has(metric.names[:1], steps)]
    if missing:
        names = [metric.names[0] for metric in missing]
        lacking = [step for step in dict.fromkeys(steps) if not known.has(names, [step])]
        with_maps = domain == "grid" and not (run.steps or families or known.maps)
        try:
            with logs.memory_explained("give compgen-jax analyze a machine with more"):
                new = take(run, missing, lacking, progress, with_maps)
        except ValueError as error:
            raise RunError(f"{run.path}: {error}") from error
        tables = [table for table in (known.table, new.table) if len(table)]
        table = pd.concat(tables).drop_duplicates(COLUMNS[:4], keep="last")
        known = end.measured = Measured(table, new.sizes or known.sizes, new.maps or known.maps)
        with directory.kept_where_possible(run.path):
            _write(end.numbers_path, known, run.task)
    for name in metrics:
        if not known.has([name], steps):
            raise RunError(f"{run.path}: there is no metric {name} at step {min(steps)}")
    return known


class Unmeasured(Exception):
    """A run lacks what `together` measures."""


_waiting = None  # metrics by run and domain, while `together` collects them


def together(functions) -> list:
    """What they return. What they ask of runs at several steps is measured in one pass of each."""
    global _waiting
    values, remaining = {}, functions
    while remaining:
        waiting = _waiting = {}
        try:
            for function in remaining:
                with suppress(Unmeasured):
                    values[function] = function()
        finally:
            _waiting = None
        for (run, _), metrics in waiting.items():
            measure(run, *metrics)
        remaining = [function for function in functions if function not in values]
    return [values[function] for function in functions]


def take(run, metrics, steps=(), progress: bool = True, with_maps: bool = False) -> Measured:
    """These metrics, of one domain, of every network at `steps`, by default the end of training."""
    last = loop.schedule_of(run.config, run.task).total
    steps = steps or [last]
    layers_of, maps, volumes = recorder(run.end, metrics[0].domain), {}, []
    of_layers = [metric for metric in metrics if not metric.of_output]
    of_prediction = [metric for metric in metrics if metric.of_output]
    keys, rows, total = results.seed_keys(run.seeds), [], len(steps) * len(run.seeds)
    with Bar(total=total, desc=f"analysing {run.name}", unit="seed", disable=not progress) as bar:
        for step in steps:
            params = run.end.params if step == last else run.end.at(step).params
            for index, seed in enumerate(run.seeds):
                network = jax.tree.map(itemgetter(index), params)
                bar.say("activations")
                of_network = layers_of.record(network, keys[index], seed)
                for name, layer in of_network.items():
                    values = registry.numbers(of_layers, layer, bar.say)
                    rows += [(seed, step, name, *number) for number in values.items()]
                values = registry.numbers(of_prediction, layer, bar.say)  # the last one
                rows += [(seed, step, "output", *number) for number in values.items()]
                if with_maps:
                    volumes.append(layers_of.volumes(of_network))
                    maps = maps or layers_of.maps(of_network)
                bar.update()
    if volumes and volumes[0] is not None:
        maps["volume"] = np.stack(volumes)
    table = pd.DataFrame(rows, columns=COLUMNS)
    by_metric = [pd.factorize(table[name])[0] for name in ("metric", "step")]
    return Measured(table.iloc[np.lexsort(by_metric)], layers_of.sizes, maps)


# --- the cache ---------------------------------------------------------------------------------


def read(workdir) -> Measured | None:
    """None if nothing is stored, or by another version. Raises RunError if it is damaged."""
    path, maps_path, summary_path = (Path(workdir) / name for name in FILES)
    saved = directory.read_json(summary_path) if summary_path.exists() else None
    if not isinstance(saved, dict) or saved.get("version") != VERSION:
        return None
    try:
        sizes, maps = tuple(saved["sizes"]), {}
        if not path.exists() or (sizes and not maps_path.exists()):
            return None
        if sizes:
            maps = directory.read_arrays(maps_path)
        # a later metric may have been added when writing was cut short
        table = pd.read_csv(path, nrows=saved["rows"], dtype=TYPES, keep_default_na=False)
        if tuple(table) != COLUMNS or len(table) < saved["rows"]:
            raise ValueError(f"{path.name} is not the table of {saved['rows']} numbers")
        table["value"] = [float(text or "nan") for text in table.value]  # to the bit
        if {*table.seed} != {*saved["seeds"]}:
            raise ValueError(f"{path.name} has other seeds")
    except (KeyError, TypeError, ValueError, OSError, RunError) as error:
        damage = f"its analysis is damaged ({error}); remove {summary_path}"
        raise RunError(f"{workdir}: {damage}") from error
    return Measured(table, sizes, maps)


def _write(workdir: Path, measured: Measured, task):
    workdir.mkdir(exist_ok=True)
    path, maps_path, summary_path = (workdir / name for name in FILES)
    if measured.maps:
        directory.write_npz(maps_path, measured.maps)
    directory.write_text(path, measured.table.to_csv(index=False, lineterminator="\n"))
    numbers, outputs, means = measured.numbers, measured.outputs, {}
    for name, values in (numbers | outputs).items():
        columns = [mean_with_interval(column, name) for column in np.atleast_2d(values.T)]
        means[name] = columns if name in numbers else columns[0]
    summary = {
        "version": VERSION,
        "rows": len(measured.table),
        "layers": measured.layers,
        "factors": [factor.name for factor in task.factors],
        "sizes": measured.sizes if measured.maps else [],  # of the maps
        "seeds": measured.seeds,
        "numbers": {name: values.tolist() for name, values in numbers.items()},
        "outputs": {name: values.tolist() for name, values in outputs.items()},
        "mean": means,
    }
    directory.write_json(summary_path, summary)


# --- the layers that metrics are given --------------------------------------------------------


class Recorder:
    """A run's model as compiled functions: `record(params, key, seed)` gives one network's layers,
    in order."""

    def __init__(self, run):
        self.task = run.task
        real = np.array([factor.real for factor in run.task.factors])
        self.differentiable = run.task.differentiable and real.any()
        shapes, make = loop.shapes_of(run.task), run.config.model.make
        self.module, fastest = make(shapes), make(shapes.in_forward_mode)  # equal to 1e-6

        def recorded(module, params, code):
            output, activations = module.apply(params, code)
            # JAX keeps the order of an ordered dictionary alone
            return OrderedDict(activations, output=run.task.prediction(output))

        def features(module, params, inputs):
            return geometry.features(partial(recorded, module, params), inputs)

        def of_jacobians(numbers, params, points):
            key = loop.stream(jax.random.key(0), "test")
            of_point = lambda point: recorded(fastest, params, run.task.example(key, point).input)
            return numbers(of_point, points, real)

        # params, inputs -> {layer: (B, D)}, and the output alone
        self.features = jax.jit(partial(features, self.module))
        self.output = jax.jit(lambda *arrays: features(fastest, *arrays)["output"])
        # params, points -> {layer: (B, R, R)} of the R real factors; with {layer: (B,)}
        self.tensors, self.with_contrasts = lambda *_: {}, lambda *_: ({}, {})
        if self.differentiable:
            self.tensors = jax.jit(partial(of_jacobians, geometry.metric_tensors))
            self.with_contrasts = jax.jit(partial(of_jacobians, geometry.tensors_and_contrasts))
        self.init = jax.jit(lambda key: loop.make_trainer(run.config).init(key).params)

    def record(self, params, key, seed: int, **costly) -> dict[str, Layer]:
        """`costly` make arrays by layer."""
        inputs = self.inputs_of(key)
        features = jax.device_get(self.features(params, inputs))
        for name, layer in features.items():
            if not np.isfinite(layer).all():
                raise RunError(f"{name} of seed {seed} has activations that are not finite")
        costly["untrained"] = lambda: self.features(self.init(key), inputs)
        by_layer = cache(lambda array: jax.device_get(costly.get(array, dict)()))
        return {
            name: Layer(
                layer,
                **self.of_layers(len(layer) // len(self.points)),
                costly=lambda array, name=name: by_layer(array).get(name),
            )
            for name, layer in features.items()
        }


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
            raise RunError(f"{run.name}: nothing is held out to analyse")
        most = MOST_CELLS if len(factors) <= 2 else MOST_CELLS_OF_MORE
        chosen, self.sizes = grids.subgrid(tasks.sizes(task), most, held_out_B=every)
        self.points = cells[chosen]
        self.inputs, self.truths = results.inputs_and_truths(task, self.points)
        flat_truths = np.asarray(self.truths).reshape(len(self.truths), -1)
        self.held_out = every[chosen]
        arrays = {  # what all layers share
            "factors": self.points,
            "held_out": self.held_out,
            "sizes": self.sizes,
            "border": grids.border(layers.BORDER, **geometry_of_cells)[chosen],
            "distance": grids.nearest_seen(every, **geometry_of_cells)[1][chosen],
            "true_kernel": kernels.cosine(kernels.gram(flat_truths)),
            "real": tuple(factor.real for factor in factors),
            "periods": tuple(factor.period for factor in factors),
            "factor_names": () if len(factors) == 2 else tuple(factor.name for factor in factors),
        }
        self.inputs_of, self.of_layers = lambda _: self.inputs, lambda _: arrays

        def code_parts(points, codes):
            mean_code = tasks.examples_at(task, jax.random.key(0), points).input.mean(axis=0)
            # for each factor, its part of a code beside the others' mean
            part_E = np.repeat(range(len(task.parts)), task.parts)
            parts = range(len(task.parts))
            return [jnp.where(part_E[None] == f, codes, mean_code[None]) for f in parts]

        self.dataset = jax.jit(partial(loop.dataset_of, task))
        self.code_parts = jax.jit(code_parts)

    def record(self, params, key, seed: int) -> dict[str, Layer]:
        def code_parts():
            dataset = self.dataset(key)  # for the parts of codes, beside the mean of training's
            if not (self.task.parts and isinstance(dataset, sampling.Table)):
                return {}
            points = dataset.points[: int(dataset.count)]
            parts = self.code_parts(points, self.inputs[self.held_out])
            return {"output": np.stack([self.output(params, codes) for codes in parts], axis=1)}

        def tensors():  # contrasts take a third more time, and are asked for first
            is_made = both.cache_info().currsize
            return both()[0] if is_made else self.tensors(params, points)

        points = jnp.asarray(self.points)
        both = cache(partial(self.with_contrasts, params, points))
        costly = {"tensors": tensors, "contrasts": lambda: both()[1], "code_parts": code_parts}
        return super().record(params, key, seed, **costly)

    def volumes(self, of_layers: dict[str, Layer]):
        """(L, V_F, ..., V_1), or None without a derivative."""
        if self.differentiable:
            volumes = [geometry.volume_element(layer.tensors) for layer in of_layers.values()]
            return np.reshape(volumes, (-1, *self.sizes[::-1]))

    def maps(self, of_layers: dict[str, Layer]) -> dict:
        """One network's maps for figures; see `Measured`."""
        output, held_out = of_layers["output"], self.held_out
        gram, amplitude = kernels.gram(output.features), max(self.truths.max(), 0.0) or 1.0
        # well inside the hole, where nothing near was seen
        distance = output.distance[held_out]
        inside = np.flatnonzero(distance >= 0.6 * distance.max())
        chosen = inside[np.linspace(0, len(inside) - 1, EXAMPLES + 2).round().astype(int)[1:-1]]
        shape = self.truths.shape[1:]
        maps = {
            "similarity.cosine": kernels.cosine(gram),
            "similarity.l2": kernels.l2(gram),
            "similarity.overlap": kernels.overlap(output.features[:, None], amplitude=amplitude),
            "superposition.points": self.points[held_out][chosen],
            "superposition.output": output.features[held_out][chosen].reshape(EXAMPLES, *shape),
        }
        for name, parts in layers.superpositions(output).items():
            if parts is not None:
                maps[f"superposition.{name}"] = parts[chosen].reshape(EXAMPLES, -1, *shape)
        maps = {name: values.astype(np.float32) for name, values in maps.items()}
        for name, layer in of_layers.items():
            panel = tuning.choose_units(tuning.tuning(layer.features, self.sizes), PANEL)
            units = grids.over_grid(layer.features[:, panel], self.sizes)
            maps[f"units.{name}"] = np.moveaxis(units, -1, 0)
        return maps | {"held_out": grids.over_grid(held_out, self.sizes)}


class Points(Recorder):
    """The points that the task is measured at, with the inputs that each seed is scored on."""

    sizes = ()

    def __init__(self, run):
        super().__init__(run)
        task, self.points = run.task, tasks.points(run.task)
        self.held_out = np.asarray(task.held_out(self.points))
        if not self.held_out.any():
            raise RunError(f"{run.name}: nothing is held out to analyse")
        columns = [  # of an angle two, of a label one for each
            probes.targets_of(values, factor.period)
            if factor.real
            else np.isclose(values[:, None], factor.values[None])
            for values, factor in zip(self.points.T, task.factors, strict=True)
        ]
        # points of the same factors belong together, however often they were drawn
        _, groups = np.unique(self.points, axis=0, return_inverse=True)
        factors = np.concatenate(columns, axis=1).astype(np.float64)
        self.arrays = {"factors": factors, "held_out": self.held_out, "groups": groups}
        several = run.config.model.of_each_input

        def rows(params, inputs):
            def first(code):
                activations = OrderedDict(self.module.apply(params, code)[1])
                return jax.tree.map(
                    lambda leaf: leaf.reshape(len(leaf) if several else 1, -1)[:ROWS], activations
                )

            of_points = jax.lax.map(first, inputs, batch_size=POINTS_AT_ONCE)
            return jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1]), of_points)

        # params, inputs -> {layer: (B, D), the first rows of every point}, without the prediction
        self.features = jax.jit(rows)
        self.inputs_of = jax.jit(
            lambda key: tasks.examples_at(task, loop.stream(key, "test"), self.points).input
        )

    def of_layers(self, rows):
        arrays = {name: np.repeat(array, rows, axis=0) for name, array in self.arrays.items()}
        return arrays | {"rows_per_point": rows}


def recorder(run, domain: str) -> Recorder:
    """That of a domain, which the run keeps."""
    if domain not in run.cached:
        run.cached[domain] = Grid(run) if domain == "grid" else Points(run)
    return run.cached[domain]
