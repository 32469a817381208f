"""A run: its networks, their outputs, and what its layers do.

A run has S seeds and, at several steps, C of them: `run.cells.scores["mse"]` is (S, B) at the end
of training, and `run.late.cells.scores["mse"]` (S, C, B) at its late checkpoints.
"""

import hashlib
import shlex
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from compgen_jax import grids, settings
from compgen_jax.config import Config, changed
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.runs import directory, measure, results, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import contracts, loop
from compgen_jax.training.trials import over_trials


@dataclass(eq=False, repr=False)
class Run:
    """A finished run: `Run.load` reads one from its directory, `Run.known` makes one of arrays.

    config: what was trained.  seeds: S of them.  path: its directory.
    summary: `summary.json`: `seeds`, the final numbers of each, and `mean`, with 95% intervals.
    steps: the C steps; () for the end of training.  end: the same run at the end.
    numbers_path: the folder of the layers' table (`over` has its own).
    numbers: of layers (S, L) and of predictions (S,) by metric, of a run without a table.
    parts: the runs that are joined in this one.

    Networks are restored, and everything else is computed, when it is first needed.
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
    parts: tuple = ()
    measured: measure.Measured = field(default=measure.Measured(), init=False)
    recorders: dict = field(default_factory=dict, init=False)  # of `measure`, by domain
    cached: dict = field(default_factory=dict, init=False)  # of `over`

    def __repr__(self) -> str:
        return f"Run({self.name!r}, seeds={self.seeds}, path={str(self.path)!r})"

    def __post_init__(self):
        self.seeds, self.steps, self.end = tuple(self.seeds), tuple(self.steps), self.end or self
        self.path = None if self.path is None else Path(self.path)
        self.numbers_path = self.numbers_path or self.path

    @classmethod
    def load(cls, workdir, with_networks: bool = True) -> "Run":
        """A finished run at its end. Raises RunError for a sweep, and for what is missing or
        damaged, naming it."""
        workdir = Path(workdir)
        config = directory.read_config(workdir)
        if config.is_sweep:
            alone = [f"{name}={values[0]}" for name, values in config.sweep.axes]
            raise RunError(
                f"{workdir}: holds a sweep, which keeps no networks; its numbers are in trials.csv "
                "and summary.json. To look into one trial: compgen-jax train --config=... "
                f"{shlex.join(f'--config.{value}' for value in ('sweep.axes=()', *alone))}"
            )
        if not directory.is_finished(workdir):
            raise RunError(f"{workdir}: its run is not finished; compgen-jax train resumes it")
        task = contracts.check(config)
        user_code.check(workdir, config, task)
        summary = directory.read_summary(workdir)
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
        params=None,
        shown=None,
        **attributes,
    ) -> "Run":
        """A run without a directory, made of arrays. It is its own `late` unless that is given.

        layers: (S, L) by metric.  outputs: (S,) by metric.  shown: by default every ID cell.
        attributes: of a Run, such as `trivial`, and methods, such as `predict`; None: not known.
        """
        run = cls(config, task, seeds, summary=summary, numbers=(layers or {}) | (outputs or {}))
        if cells is not None and shown is None:
            shown = np.repeat(~np.asarray(cells.held_out)[None], len(run.seeds), axis=0)
        run.params = params
        for name, value in (attributes | {"cells": cells, "shown": shown}).items():
            if value is not None:
                setattr(run, name, value)
        return run

    @classmethod
    def joined(cls, runs, name: str) -> "Run":
        """Runs of one seed each, of tasks or data that differ, as seeds of one run."""
        by_run = [next(iter(run.summary["seeds"].values())) for run in runs]
        means = {
            key: mean_with_interval([numbers[key] for numbers in by_run], key) for key in by_run[0]
        }
        by_seed = {str(index): numbers for index, numbers in enumerate(by_run)}
        summary = {"seeds": by_seed, "mean": means, "task": runs[0].summary["task"]}
        config = changed(runs[0].config, {"name": name})
        return cls(config, None, range(len(runs)), summary=summary, parts=tuple(runs))

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
        checkpoint = directory.restore(self.path, self._template)
        if checkpoint is None or checkpoint.step != loop.total_steps(self.config, self.task):
            raise RunError(
                f"{self.path}: its final checkpoint is missing; remove its summary.json, and "
                "compgen-jax train trains what is missing"
            )
        return checkpoint.state.params

    @cached_property
    def _template(self):
        return loop.template(self.config)  # traces the model

    @cached_property
    def kept_steps(self) -> list[int]:
        """Those whose parameters are kept (`training.keep`)."""
        return directory.kept_steps(self.path)

    @cached_property
    def late(self) -> "Run":
        """The same run at its checkpoints over the last tenth of training."""
        if self.path is None:
            return self
        return replace(self, steps=loop.last_evaluations(self.config, self.task), end=self)

    @cached_property
    def along(self) -> "Run":
        """The same run at its kept steps."""
        return replace(self, steps=self.kept_steps, end=self)

    def at(self, step: int) -> "Run":
        """The same networks at a kept step or a late checkpoint. Raises RunError for another
        step."""
        if step in loop.last_evaluations(self.config, self.task):
            params = directory.restore(self.path, self._template, step).state.params
        else:
            params = directory.kept_parameters(self.path, step, self._template.params)
        return Run.known(
            self.seeds, config=self.config, task=self.task, summary=self.summary, params=params
        )

    def over(self, other: "Run") -> "Run":
        """The same networks, layers measured over the cells that `other` holds out; it has no
        `cells`. Raises RunError if the two tasks' cells differ."""
        cells = tasks.points(self.task)
        if not np.array_equal(cells, tasks.points(other.task)):
            raise RunError(f"{self.name} and {other.name}: the cells of their tasks differ")
        held_out = np.packbits(np.asarray(other.task.held_out(cells))).tobytes()
        name = f"over_{hashlib.sha256(held_out).hexdigest()[:12]}"
        if name not in self.cached:
            task = self.task._replace(held_out=other.task.held_out)
            self.cached[name] = replace(self, task=task, end=None, numbers_path=self.path / name)
        return self.cached[name]

    # --- what they answer

    def predict(self, points):
        """(S, B, ...): the outputs of every network at points (B, F), each factor in its unit, NaN
        where it is missing; NumPy. ValueError for another shape."""
        points, factors = np.asarray(points, np.float32), self.task.factors
        if points.ndim != 2 or points.shape[1] != len(factors):
            names = ", ".join(factor.name for factor in factors)
            raise ValueError(
                f"points of shape {points.shape}: must be (B, {len(factors)}): {names}"
            )
        return self.answers(points, slice(1))[0]

    def answers(self, points, which: slice = slice(2)):
        """At points (B, F) the outputs of every network, (S, B, ...) or (S, C, B, ...), its targets
        and the scores by name, or only `which` of these three."""
        axes = (len(self.seeds), len(self.steps)) if self.steps else (len(self.seeds),)
        seeds = np.repeat(self.seeds, len(self.steps) or 1)
        params = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(axes) :]), self.params)
        predict = loop.make_trainer(self.config).predict

        def of_network(points, network):
            return predict(*network, points)[which]

        # all of them are trials of one program
        program = over_trials(of_network, self.config.execution.trials_per_device)
        values = program(jnp.asarray(points), (results.seed_keys(seeds), params))
        return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*axes, *leaf.shape[1:]), values)

    def error_at(self, points):
        """(S, B): the error of every network at points (B, F)."""
        return self.answers(points, slice(2, 3))[0][self.task.error]

    @cached_property
    def cells(self) -> CellResults:
        """The outputs at every cell. Of late ones scores are kept: predictions are made lazily."""
        points = tasks.points(self.task)
        scores = self._kept_scores("late") if self.steps and self is self.end.late else None
        if scores:
            return self._at_cells(partial(self.predict, points), scores)
        return self._at_cells(*self.answers(points, slice(0, 3, 2)))

    def _kept_scores(self, name: str) -> dict | None:
        steps = (len(self.steps),) if self.steps else ()
        shape = len(self.seeds), *steps, len(tasks.points(self.task))
        return None if self.path is None else directory.kept_scores(self.path, name, shape)

    def _at_cells(self, predict, scores) -> CellResults:
        if self.numbers_path != self.path:
            raise RunError(f"{self.name}: over another run's cells only its layers are measured")
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
        if scores := self._kept_scores(predictor):
            return self._at_cells(lambda: made()[predictor][0], scores)
        return self._at_cells(*made()[predictor])

    @cached_property
    def shown(self):
        """(S, B) bool: the cells that each seed was shown whole; a stripe shows none. (S, 1, B) of
        a run at several steps."""
        if self.steps:
            return self.end.shown[:, None]
        return results.cells_shown(self.config, self.task, self.seeds)

    @cached_property
    def trivial(self) -> dict[str, dict]:
        """{predictor: {(region, score): mean over the seeds}} of the task's trivial predictors,
        lookups along each factor, and predictors from codes."""
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
        if self.parts:
            return np.concatenate([run.layers(metric) for run in self.parts])
        if self.steps and metric.startswith("untrained."):
            return self.end.layers(metric)[:, None]
        return measure.measure(self, metric).values(metric, self.steps)

    def outputs(self, metric: str):
        """(S,), (S, C) at several steps: a metric of the prediction as a whole."""
        if self.parts:
            return np.concatenate([run.outputs(metric) for run in self.parts])
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

    def unit_maps(self, layer: str):
        """(D, V_F, ..., V_1): activations of a layer's units over the grid, in the first seed."""
        grid = measure.recorder(self.end, "grid")
        network = jax.tree.map(lambda leaf: leaf[0], self.params)
        features = np.asarray(grid.features(network, grid.inputs)[layer])
        return np.moveaxis(grids.over_grid(features, grid.sizes), -1, 0)

    # --- for people: tables and pictures

    def metrics(self) -> pd.DataFrame:
        """A row for each seed and evaluation, a column for each score."""
        return pd.read_csv(self.path / "metrics.csv")

    def cell_table(self) -> pd.DataFrame:
        """A row for each seed and cell: `seed`, each factor, `held_out`, `distance` (in cells, to
        the nearest seen one), and each score."""
        cells, names = self.cells, [factor.name for factor in self.task.factors]
        of_cells = dict(zip(names, cells.factors.T, strict=True))
        of_cells |= {"held_out": cells.held_out, "distance": cells.distance}
        table = pd.concat([pd.DataFrame(of_cells)] * len(self.seeds), ignore_index=True)
        table.insert(0, "seed", np.repeat(self.seeds, len(cells.factors)))
        return table.assign(**{name: values.ravel() for name, values in cells.scores.items()})

    def draw(self, *point: float | str):
        """A matplotlib figure of the requested output at a point and those of all seeds:
        `run.draw(8, 7.5)`, `run.draw("heart", 0.5)`. ValueError for an unknown point."""
        return settings.beside("figures.draw").draw(self, point)

    def explore(self) -> Path:
        """Writes the directory's explorer.html and returns its path."""
        return settings.beside("launch.explore").explore(self.path)
