"""A run: its networks, their outputs, and what its layers do.

A run has S seeds and, at several steps, C of them: `run.cells.scores["mse"]` is (S, B), and
`run.late.cells.scores["mse"]` (S, C, B) at its late checkpoints.
"""

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from compgen_jax import settings
from compgen_jax.config import Config
from compgen_jax.metrics import intervention
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.runs import directory, measure, results, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import checkpoints, contracts, loop
from compgen_jax.training.trials import over_trials


@dataclass(eq=False, repr=False)
class Run:
    """A finished run: `Run.load` reads one from its directory, `Run.known` makes one of arrays.

    config: what was trained.  seeds: S of them.  path: its directory.
    summary: `summary.json`: `seeds`, the final numbers of each, and `mean`, with 95% intervals.
    steps: the C steps; () for the end of training.  end: the same run at the end.
    numbers_path: the folder of the layers' table.
    numbers: of layers (S, L) and of predictions (S,) by metric, of a run without a table.
    """

    config: Config | None = None
    task: Task | None = None
    seeds: tuple = ()
    path: Path | None = None
    summary: dict | None = None
    steps: tuple = ()
    end: "Run | None" = None
    numbers_path: Path | None = None
    numbers: dict = field(default_factory=dict)
    measured: measure.Measured | None = field(default=None, init=False)
    cached: dict = field(default_factory=dict, init=False)  # of `measure.recorder` and `over`

    def __repr__(self) -> str:
        return f"Run({self.name!r}, seeds={self.seeds}, path={str(self.path)!r})"

    def __post_init__(self):
        self.seeds, self.steps, self.end = tuple(self.seeds), tuple(self.steps), self.end or self
        self.path = None if self.path is None else Path(self.path)
        self.numbers_path = self.numbers_path or self.path

    @classmethod
    def load(cls, workdir, with_networks: bool = True) -> "Run":
        """A finished run. Raises RunError for a sweep, and for what is missing or damaged."""
        workdir = Path(workdir)
        config = directory.read_config(workdir)
        if config.is_sweep:
            raise RunError(
                f"{workdir}: holds a sweep, which keeps no networks; its numbers are in trials.csv "
                "and summary.json. To look into one trial: compgen-jax train --config=... "
                "'--config.sweep.axes=()', and the trial's fields"
            )
        if not directory.is_finished(workdir):
            raise RunError(f"{workdir}: its run is not finished; compgen-jax train resumes it")
        task = contracts.check(config)
        user_code.check(workdir, config, task)
        summary = directory.read_json(workdir / "summary.json")
        run = cls(config, task, config.training.seeds, workdir, summary)
        if with_networks:
            _ = run.params
        return run

    @classmethod
    def known(
        cls,
        seeds,
        cells: CellResults | None = None,
        layers=None,
        outputs=None,
        *,
        config=None,
        task=None,
        summary=None,
        **attributes,
    ) -> "Run":
        """A run without a directory, made of arrays. It is its own `late` unless that is given.

        layers: (S, L) by metric.  outputs: (S,) by metric.  attributes: of a Run, such as `params`,
        `shown` (by default every ID cell) or `predict`; None: not known.
        """
        run = cls(config, task, seeds, summary=summary, numbers=(layers or {}) | (outputs or {}))
        run.params = None
        if cells is not None:
            shown = np.repeat(~np.asarray(cells.held_out)[None], len(run.seeds), axis=0)
            run.cells, run.shown = cells, shown
        for name, value in attributes.items():
            if value is not None:
                setattr(run, name, value)
        return run

    @cached_property
    def name(self) -> str:
        return self.config.name

    # --- its networks

    @cached_property
    def params(self):
        """The networks, leaves (S, ...) or (S, C, ...); NumPy. RunError if missing or damaged."""
        if self.steps:
            saved = {step: self.end.at(step).params for step in set(self.steps)}
            networks = [saved[step] for step in self.steps]
            return jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *networks)
        last = loop.schedule_of(self.config, self.task).total
        if last not in checkpoints.steps(self.path / "checkpoints"):
            raise RunError(
                f"{self.path}: its final checkpoint is missing; remove its summary.json, and "
                "compgen-jax train trains what is missing"
            )
        return self.at(last).params

    @cached_property
    def _template(self):
        return loop.template(self.config)  # traces the model

    @cached_property
    def kept_steps(self) -> list[int]:
        """Those whose parameters are kept (`training.keep`)."""
        return checkpoints.steps(self.path / "parameters")

    @cached_property
    def late(self) -> "Run":
        """The same run at its checkpoints over the last tenth of training."""
        if self.path is None:
            return self
        return replace(self, steps=loop.schedule_of(self.config, self.task).late, end=self)

    @cached_property
    def along(self) -> "Run":
        """The same run at its kept steps."""
        return replace(self, steps=self.kept_steps, end=self)

    def at(self, step: int) -> "Run":
        """The same networks at a kept step or a late checkpoint. Raises RunError for another
        step."""
        run = Run(self.config, self.task, self.seeds, summary=self.summary)
        if step in self.late.steps:
            state = checkpoints.restore(self.path / "checkpoints", step, self._template).state
            run.params = state.params
        else:
            template = self._template.params
            run.params = checkpoints.restore(self.path / "parameters", step, template).state
        return run

    def over(self, other: "Run") -> "Run":
        """The same networks, layers measured over the cells that `other` holds out. Raises RunError
        if the two tasks' cells differ."""
        cells = tasks.points(self.task)
        if not np.array_equal(cells, tasks.points(other.task)):
            raise RunError(f"{self.name} and {other.name}: the cells of their tasks differ")
        held_out = np.packbits(np.asarray(other.task.held_out(cells))).tobytes()
        path = self.path / f"over_{hashlib.sha256(held_out).hexdigest()[:12]}"
        if path not in self.cached:
            task = self.task._replace(held_out=other.task.held_out)
            self.cached[path] = replace(self, task=task, end=None, numbers_path=path)
        return self.cached[path]

    # --- what they answer

    def predict(self, points, samples: int = 0):
        """(S, B, ...): the outputs of every network at points (B, F), each factor in its unit, NaN
        where it is missing; NumPy. ValueError for another shape.

        With `samples`, (S, samples, B, ...): so many from each generator, whose variables `noise`
        are drawn anew for each, as at initialization. RunError for a model without these.
        """
        points = np.asarray(points, np.float32)
        self._check_points(points)
        return self.answers(points, samples)[0]

    def _check_points(self, points):
        names = [factor.name for factor in self.task.factors]
        if points.ndim != 2 or points.shape[1] != len(names):
            expected = f"(B, {len(names)}): {', '.join(names)}"
            raise ValueError(f"points of shape {points.shape}: must be {expected}")

    def _networks(self) -> tuple:
        """The axes (S,) or (S, C), and the keys and variables of all networks along one."""
        axes = (len(self.seeds), len(self.steps)) if self.steps else (len(self.seeds),)
        keys = results.seed_keys(np.repeat(self.seeds, len(self.steps) or 1))
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(axes) :]), self.params)
        return axes, keys, flat

    def answers(self, points, samples: int = 0):
        """At points (B, F) the outputs of every network, (S, B, ...) or (S, C, B, ...), its targets
        and the scores by name; with `samples`, an axis of so many before B, see `predict`."""
        axes, keys, params = self._networks()
        trainer, name = loop.make_trainer(self.config), self.config.model.name
        if samples < 0:
            raise ValueError(f"samples={samples}: must be a number from 0")
        if samples and "noise" not in params:
            raise RunError(f"config.model.name={name!r}: draws no samples; flow does")

        def of_network(points, network):
            key, params = network
            if not samples:
                return trainer.predict(key, params, points)

            def of_sample(key_of_noise):
                noise = trainer.init(key_of_noise).params["noise"]
                return trainer.predict(key, {**params, "noise": noise}, points)

            return jax.lax.map(of_sample, jax.random.split(loop.stream(key, "samples"), samples))

        # all of them are trials of one program
        program = over_trials(of_network, self.config.execution.trials_per_device)
        values = program(jnp.asarray(points), (keys, params))
        return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*axes, *leaf.shape[1:]), values)

    def activations(self, layer: str, points):
        """(S, B, ...): the activation of a layer of every network at points (B, F), a JAX array.
        ValueError for a layer that is not there."""

        def read(network, example, _):
            layers = network(example)[1]
            intervention.check_layer(layer, layers)
            return layers[layer]

        return self._map_networks(read, points)

    def intervene(self, layers: dict, points):
        """(S, B, ...): the outputs of every network at points (B, F), with layers replaced and the
        rest of the network computed from them; a JAX array.

        layers: {layer: value}. A value is a function of the activation of one example, or
          activations (S, B, ...), (S, 1, ...) of all seeds, as of `activations`.

        It can be differentiated by the points, by the activations, and by what a function uses. Of
        a generator the first step is changed. Raises ValueError for an unknown layer, another
        shape, and a layer that the output is not computed from (`metrics.intervention`).
        """
        functions = {name: value for name, value in layers.items() if callable(value)}
        patches = {name: layers[name] for name in layers.keys() - functions}

        def predict(network, example, patches):
            output = intervention.intervene(network, functions | patches, example)
            return self.task.prediction(output)

        return self._map_networks(predict, points, patches)

    def _map_networks(self, function, points, patches=None):
        """`function(network, example, patches)` over points and networks, (S, B, ...); `patches`
        have these axes, too."""
        points, model = jnp.asarray(points, jnp.float32), self.config.model
        self._check_points(points)
        module = model.make(loop.shapes_of(self.task).in_forward_mode)
        axes, keys, params = self._networks()
        lead = (*axes, len(points))

        def of_patch(array):
            array = jnp.asarray(array)
            spread = jnp.broadcast_to(array, (*lead, *array.shape[len(lead) :]))
            return spread.reshape(-1, *spread.shape[len(axes) :])

        def of_network(network):
            key, params, patches = network
            inputs = tasks.examples_at(self.task, loop.stream(key, "test"), points).input
            of_example = lambda arguments: function(partial(module.apply, params), *arguments)
            return jax.lax.map(of_example, (inputs, patches), batch_size=model.decode_batch)

        values = jax.lax.map(of_network, (keys, params, jax.tree.map(of_patch, patches)))
        return jax.tree.map(lambda leaf: leaf.reshape(*axes, *leaf.shape[1:]), values)

    @cached_property
    def cells(self) -> CellResults:
        """The outputs at every cell. Of late ones scores are kept: predictions are made lazily."""
        points, is_late = tasks.points(self.task), self.path and self is self.end.late
        if is_late and (scores := directory.kept_scores(self.path, "late")):
            return self._at_cells(lambda: self.predict(points), scores)
        predictions, _, scores = self.answers(points)
        return self._at_cells(predictions, scores)

    def _at_cells(self, predict, scores) -> CellResults:
        truths = results.truths_at(self.task, tasks.points(self.task), self.seeds[0])
        return results.at_cells(self.task, self.seeds, predict, truths, scores)

    @cached_property
    def interpolator(self) -> CellResults:
        """The outputs of `baselines.interpolate` at every cell, (S, B) or (S, 1, B) scores."""
        return self._from_codes("interpolator")

    @cached_property
    def wide_network(self) -> CellResults:
        """The same of `baselines.wide_network`."""
        return self._from_codes("wide_network")

    def _from_codes(self, predictor: str) -> CellResults:
        """`results.interpolations`; training keeps the scores. Raises RunError for a task without
        it (`Task.interpolated`)."""
        if self.steps:
            end = getattr(self.end, predictor)
            scores = {name: values[:, None] for name, values in end.scores.items()}
            return replace(end, predict=lambda: end.predictions[:, None], scores=scores)
        if not self.task.interpolated:
            raise RunError(f"{self.name}: its task has no {predictor.replace('_', ' ')}")
        made = partial(results.interpolations, self.config, self.task, self.seeds, (predictor,))
        if self.path and (scores := directory.kept_scores(self.path, predictor)):
            return self._at_cells(lambda: made()[predictor][0], scores)
        return self._at_cells(*made()[predictor])

    @cached_property
    def shown(self):
        """(S, B) bool, or (S, 1, B): the cells that each seed was shown whole."""
        if self.steps:
            return self.end.shown[:, None]
        return results.cells_shown(self.config, self.task, self.seeds)

    @cached_property
    def trivial(self) -> dict[str, dict]:
        """{predictor: {(region, score): mean over seeds}} of trivial predictors, lookups along each
        factor, and predictors from codes."""
        from_codes = {}
        if self.task.interpolated:
            from_codes = {name: getattr(self, name).scores for name in baselines.FROM_CODES}
        task = tasks.with_lookups_along_factors(self.task)
        return {
            predictor: {key: float(np.mean(values)) for key, values in means.items()}
            for predictor, means in results.trivial_means(task, self.seeds, from_codes).items()
        }

    # --- what its layers do: measured once, kept in its directory (`runs.measure`)

    def layers(self, metric: str | None = None, progress: bool = True):
        """(S, L), (S, C, L) at several steps: a metric of every layer, input first, 'output' last;
        before training (S, 1, L). Without a metric, a DataFrame of all."""
        if metric is None:
            return measure.measure(self, progress=progress).table.reset_index(drop=True)
        if metric in self.numbers:
            return self.numbers[metric]
        if self.steps and metric.startswith("untrained."):
            return self.end.layers(metric)[:, None]
        return measure.measure(self, metric).values(metric, self.steps)

    def outputs(self, metric: str):
        """(S,), (S, C) at several steps: a metric of the prediction as a whole."""
        values = self.layers(metric)
        return values if metric in self.numbers else values[..., 0]

    @cached_property
    def layer_names(self) -> tuple[str, ...]:
        on_grid = tasks.has_grid(tasks.on_grid(self.task))
        return measure.measure(self.end, "probe.id_r2" if on_grid else "decode.id_r2").layers

    @cached_property
    def maps(self) -> dict:
        """Arrays for figures by name; see `measure.Measured`."""
        return measure.measure(self).maps

    # --- for people: tables and pictures

    def metrics(self) -> pd.DataFrame:
        """A row for each seed and evaluation, a column for each score. Raises RunError for a
        damaged file."""
        path, schedule = self.path / "metrics.csv", loop.schedule_of(self.config, self.task)
        count = len(self.seeds) * len(schedule.evaluations)
        try:
            table = pd.read_csv(path)
            are_numbers = table.dtypes.map(pd.api.types.is_numeric_dtype).all()
            is_whole = are_numbers and len(table) == count and {"seed", "step"} <= {*table}
            settings.demand(is_whole, f"is no table of numbers with {count} rows")
        except (ValueError, OSError) as error:
            raise RunError(f"{path} is damaged: {str(error).strip()}") from error
        return table

    def cell_table(self, samples: int = 0) -> pd.DataFrame:
        """A row for each seed and cell: `seed`, each factor, `held_out`, `distance` (in cells), and
        each score. With so many `samples` of a generator (`predict`), `mean_` of each score over
        these, and `best_`, that of the sample with the least error."""
        cells, table = self.cells, {"seed": np.repeat(self.seeds, len(self.cells.factors))}
        scores = cells.scores
        if samples:
            drawn = self.answers(cells.factors, samples)[2]
            best = np.argmin(drawn[self.task.error], axis=1)[:, None]
            scores = {}
            for name, values in drawn.items():
                scores[f"best_{name}"] = np.take_along_axis(values, best, axis=1)
                scores[f"mean_{name}"] = values.mean(axis=1)
        columns = {
            f.name: values for f, values in zip(self.task.factors, cells.factors.T, strict=True)
        }
        columns |= {"held_out": cells.held_out, "distance": cells.distance}
        table |= {name: np.tile(values, len(self.seeds)) for name, values in columns.items()}
        return pd.DataFrame(table | {name: values.ravel() for name, values in scores.items()})

    def draw(self, *point: float | str):
        """A matplotlib figure of the requested output at a point and those of all seeds, as in
        `run.draw("heart", 0.5)`. ValueError for an unknown point."""
        return settings.beside("figures.draw").draw(self, point)

    def explore(self) -> Path:
        """Writes the directory's explorer.html and returns its path."""
        return settings.beside("launch.explore").explore(self.path)
