"""A run that can be asked things: what it says at any points, at every cell beside the truth, and
what its layers do.

A run has S seeds, and where it is asked at several steps, C of them. Arrays begin with these axes:
`run.cells.scores["mse"]` is (S, B) at the end of training, and `run.late.cells.scores["mse"]` is
(S, C, B) at its late checkpoints.
"""

import hashlib
import shlex
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, changed
from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory, measure, recording, results, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import contracts, loop
from compgen_jax.training.trials import over_trials


class Run:
    """What can be asked of a run. `Run.load` is a finished one from its directory. `Run.known`,
    `Run.of_summary` and `Run.joined` are made of what is known already.

    config, task, summary.  seeds: S of them.  params: leaves (S, ...), or (S, C, ...) for several
    steps; restored from the directory by default.  steps: the C steps; () for the end of training.
    path: its directory; None for networks of one earlier step, and without a directory.

    Everything else is computed when it is first asked for, unless it is given by name: `cells`,
    `interpolator`, `wide_network`, `trivial`, `shown`, `late`, `maps` and so on. `layers` and
    `outputs` are given as {metric: array}. A run of which nothing but given values is known (no
    path, no params) is its own `late`.
    """

    def __init__(self, config: Config | None, task: Task | None, seeds, *, params=None,
                 summary: dict | None = None, path=None, steps=(), layers=None, outputs=None,
                 **given):  # fmt: skip
        self.config, self.task, self.summary = config, task, summary
        self.seeds, self.steps = tuple(seeds), tuple(steps)
        self.path = None if path is None else Path(path)
        self.known_layers, self.known_outputs = layers or {}, outputs or {}
        self.measured, self.recorders = None, {}  # of `measure` and `recording`
        self.compared = {}  # of `over`
        if params is not None:
            given["params"] = params
        elif path is None:
            given = {"late": self, "params": None} | given
        vars(self).update({"end": self, "kept_as": ""} | given)

    @classmethod
    def load(cls, workdir, with_networks: bool = True) -> "Run":
        """A finished run at its end, or what is known of it without its networks. Raises RunError
        for a sweep, and for what is missing or damaged, naming it."""
        workdir = Path(workdir)
        config = config_of(workdir)
        if not directory.is_finished(workdir):
            raise RunError(f"{workdir}: its run is not finished; compgen-jax train resumes it")
        task = contracts.check(config)
        user_code.check(workdir, config, task)
        run = cls(config, task, config.training.seeds, path=workdir,
                  summary=directory.read_summary(workdir))  # fmt: skip
        if with_networks:
            _ = run.params
        return run

    @classmethod
    def known(cls, seeds, cells=None, layers=None, outputs=None, *, config=None, task=None,
              **given) -> "Run":  # fmt: skip
        """A run with known answers, such as a construction's.

        seeds: of its slightly different copies.  cells: `CellResults` of what it says at every
        cell; every ID cell was shown.  layers: (S, L) by metric.  outputs: (S,) by metric.
        """
        if cells is not None:
            shown = np.repeat(~np.asarray(cells.held_out)[None], len(tuple(seeds)), axis=0)
            given = {"cells": cells, "shown": shown} | given
        return cls(config, task, seeds, layers=layers, outputs=outputs, **given)

    @classmethod
    def of_summary(cls, config: Config, summary: dict) -> "Run":
        """A run of which the summary alone is kept."""
        return cls(config, None, config.training.seeds, summary=summary)

    @classmethod
    def joined(cls, runs, name: str) -> "Run":
        """Runs of one seed each that differ in their task, their data or their seed, as D seeds of
        one run: intervals are then over these, too."""
        numbers = [next(iter(run.summary["seeds"].values())) for run in runs]
        summary = {
            "seeds": {str(index): one for index, one in enumerate(numbers)},
            "mean": {
                key: mean_with_interval([one[key] for one in numbers], key) for key in numbers[0]
            },
            "task": runs[0].summary["task"],
        }
        config = changed(runs[0].config, {"name": name})
        return cls(config, None, range(len(runs)), summary=summary, parts=tuple(runs))

    @cached_property
    def name(self) -> str:
        return self.config.name

    @cached_property
    def parts(self) -> tuple:
        """The runs that are joined in this one, one for each seed; () otherwise."""
        return ()

    @cached_property
    def params(self):
        """The networks, leaves (S, ...) or (S, C, ...); NumPy. They are restored when they are
        asked for first. Raises RunError, naming what is missing or damaged."""
        if self.steps:
            saved = {step: self.end.at(step).params for step in set(self.steps)}
            stack = lambda *leaves: np.stack(leaves, axis=1)
            return jax.tree.map(stack, *(saved[step] for step in self.steps))
        checkpoint = directory.restore(self.path, self._template)
        if checkpoint is None or checkpoint.step != loop.total_steps(self.config, self.task):
            raise RunError(
                f"{self.path}: its final checkpoint is missing; remove its summary.json, and "
                "compgen-jax train trains what is missing"
            )
        return checkpoint.state.params

    def predict(self, points):
        """(S, B, ...): what every network says at points (B, F), any real values, NaN for a
        missing factor; NumPy."""
        return self._answers(points, slice(1))[0]

    def predict_with_truth(self, points):
        """What `predict` returns and, of the same shape, what the task asks each network for."""
        return self._answers(points, slice(2))

    def error_at(self, points):
        """(S, B): the error of every network at points (B, F)."""
        score = loop.make_trainer(self.config).score
        return self._over_networks(
            lambda key, params, at: score(key, params, at)[self.task.error], points
        )

    @cached_property
    def cells(self) -> evaluation.CellResults:
        """What every network says at every cell, beside what it should. Training keeps the scores
        at late checkpoints, so that these networks run only where predictions are asked for."""
        points = tasks.points(self.task)
        if kept := self.kept_as and self._kept_scores(self.kept_as):
            return self._at_cells(lambda: self.predict(points), kept)
        predictions, scores = self._answers(points, slice(0, 3, 2))
        return self._at_cells(lambda: predictions, scores)

    def _kept_scores(self, name: str) -> dict | None:
        steps = (len(self.steps),) if self.steps else ()
        shape = len(self.seeds), *steps, len(tasks.points(self.task))
        return None if self.path is None else directory.kept_scores(self.path, name, shape)

    def _at_cells(self, predict, scores) -> evaluation.CellResults:
        if self.end.numbers_path != self.path:
            raise RunError(f"{self.name}: over another run's cells only its layers are measured")
        truths = results.truths_at(self.task, tasks.points(self.task), self.seeds[0])
        return results.at_cells(self.task, self.seeds, predict, truths, scores)

    @cached_property
    def interpolator(self) -> evaluation.CellResults:
        """What `baselines.interpolate` says at every cell, see `_from_codes`."""
        return self._from_codes("interpolator")

    @cached_property
    def wide_network(self) -> evaluation.CellResults:
        """What `baselines.wide_network` says at every cell, see `_from_codes`."""
        return self._from_codes("wide_network")

    def _from_codes(self, predictor: str) -> evaluation.CellResults:
        """What `results.interpolations` says at every cell, once for each seed, with the task's
        scores: (S, B) each, (S, 1, B) of a run at several steps. Training keeps the scores. Raises
        RunError for a task without it (`Task.interpolated`)."""
        if self.steps:
            end = getattr(self.end, predictor)
            scores = {name: values[:, None] for name, values in end.scores.items()}
            return replace(end, predict=lambda: end.predictions[:, None], scores=scores)
        if not self.task.interpolated:
            raise RunError(f"{self.name}: its task has no {predictor.replace('_', ' ')}")
        if kept := self._kept_scores(predictor):
            predict = partial(results.interpolations, self.config, self.task, self.seeds)
            return self._at_cells(lambda: predict((predictor,))[predictor][0], kept)
        predictions, _, scores = self._made_from_codes[predictor]
        return self._at_cells(lambda: predictions, scores)

    @cached_property
    def _made_from_codes(self) -> dict:
        """`results.interpolations` of the predictors whose scores are not kept, all from one
        compilation."""
        names = [name for name in baselines.FROM_CODES if not self._kept_scores(name)]
        return results.interpolations(self.config, self.task, self.seeds, names)

    @cached_property
    def shown(self):
        """(S, B) bool: the cells that each seed was shown whole; a stripe shows none. (S, 1, B) of
        a run at several steps."""
        if self.steps:
            return self.end.shown[:, None]
        points = tasks.points(self.task)
        shown_to = jax.jit(partial(results.points_shown, self.config, self.task))

        def of_seed(seed):
            shown, counts = jax.device_get(shown_to(jax.random.key(seed)))
            places = shown[counts][None, :, : points.shape[1]]
            return (points[:, None] == places).all(axis=2).any(axis=1)

        return np.stack([of_seed(seed) for seed in self.seeds])

    @cached_property
    def trivial(self) -> dict[str, dict]:
        """{predictor: {(region, score): mean over the seeds}} of the task's trivial predictors, of
        lookups along each factor alone, and of those from codes if there are any."""
        task = tasks.with_lookups_along_factors(self.task)
        return {
            predictor: {place: float(np.mean(values)) for place, values in means.items()}
            for predictor, means in results.trivial_means(self, task).items()
        }

    @cached_property
    def late(self) -> "Run":
        """The same run at its late checkpoints, those over the last tenth of training. Claims take
        the median over them."""
        return self._at_steps(loop.last_evaluations(self.config, self.task), kept_as="late")

    @cached_property
    def along(self) -> "Run":
        """The same run at its kept steps."""
        return self._at_steps(self.kept_steps)

    @cached_property
    def kept_steps(self) -> list[int]:
        """The steps along training whose parameters are kept (`training.keep`)."""
        return directory.kept_steps(self.path)

    def at(self, step: int) -> "Run":
        """The same run with its networks at a kept step or a late checkpoint. Raises RunError for
        another step."""
        if step in loop.last_evaluations(self.config, self.task):
            params = directory.restore(self.path, self._template, step).state.params
        else:
            params = directory.kept_parameters(self.path, step, self._template.params)
        return Run(self.config, self.task, self.seeds, params=params, summary=self.summary)

    @cached_property
    def _template(self):
        return loop.template(self.config)  # traces the model

    def _at_steps(self, steps, kept_as: str = "") -> "Run":
        return Run(self.config, self.task, self.seeds, summary=self.summary, path=self.path,
                   steps=steps, end=self, kept_as=kept_as)  # fmt: skip

    def over(self, other: "Run") -> "Run":
        """The same networks, their layers measured over the cells that `other` holds out: a probe
        is fitted on all cells outside them. Two runs are compared over the same cells alone.

        The numbers are kept in a folder of their own in the run's directory. What is drawn is not
        scored anew: the result has no `cells`. Raises RunError if the two tasks' cells differ.
        """
        cells = tasks.points(self.task)
        if not np.array_equal(cells, tasks.points(other.task)):
            raise RunError(f"{self.name} and {other.name}: the cells of their tasks differ")
        held_out = np.packbits(np.asarray(other.task.held_out(cells))).tobytes()
        name = f"over_{hashlib.sha256(held_out).hexdigest()[:12]}"
        if name not in self.compared:
            task = self.task._replace(held_out=other.task.held_out)
            self.compared[name] = Run(self.config, task, self.seeds, summary=self.summary,
                                      path=self.path, numbers_path=self.path / name)  # fmt: skip
        return self.compared[name]

    # --- what its layers do: measured once, kept in its directory (`runs.measure`)

    @cached_property
    def numbers_path(self) -> Path | None:
        """The folder of its numbers: its directory, or a folder in it (`over`)."""
        return self.path

    def layers(self, metric: str):
        """(S, L), (S, C, L) at several steps: a metric of every layer, input first, prediction
        ('output') last; `decode.*` has none of the prediction. What is measured before training is
        (S, 1, L) there."""
        if metric in self.known_layers:
            return self.known_layers[metric]
        if self.parts:
            return np.concatenate([run.layers(metric) for run in self.parts])
        if self.steps and metric.startswith("untrained."):
            return self.end.layers(metric)[:, None]
        return measure.measure(self, metric).values(metric, self.steps)

    def outputs(self, metric: str):
        """(S,), (S, C) at several steps: a metric of the prediction as a whole."""
        if metric in self.known_outputs:
            return self.known_outputs[metric]
        if self.parts:
            return np.concatenate([run.outputs(metric) for run in self.parts])
        return measure.measure(self, metric).values(metric, self.steps)[..., 0]

    @cached_property
    def layer_names(self) -> tuple[str, ...]:
        on_grid = tasks.has_grid(tasks.on_grid(self.task))
        return measure.measure(self.end, "probe.id_r2" if on_grid else "decode.id_r2").layers

    @cached_property
    def maps(self) -> dict:
        """Arrays for figures by name; see `measure.Measured`."""
        return measure.measure(self).maps

    def unit_maps(self, layer: str):
        """(D, V_F, ..., V_1): what every unit of a layer does over the grid, in the first seed."""
        grid = recording.recorder(self.end, "grid")
        network = jax.tree.map(lambda leaf: leaf[0], self.params)
        return grid.unit_maps(np.asarray(grid.features(network, grid.inputs)[layer]))

    def _answers(self, points, which: slice):
        """Some of what `Trainer.predict` gives of every network; the rest is not computed."""
        predict = loop.make_trainer(self.config).predict
        return self._over_networks(lambda *network: predict(*network)[which], points)

    def _over_networks(self, function, points):
        """function(key, params, points) of every network, leading axes (S,) or (S, C); NumPy. All
        of them are trials of one program."""
        axes = (len(self.seeds), *(len(self.steps),) * bool(self.steps))
        seeds = np.repeat(self.seeds, prod(axes[1:]))
        params = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(axes) :]), self.params)

        def of_network(points, network):
            return function(*network, points)

        program = over_trials(of_network, self.config.execution.trials_per_device)
        found = program(jnp.asarray(points), (results.seed_keys(seeds), params))
        return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*axes, *leaf.shape[1:]), found)


def config_of(workdir) -> Config:
    """The config of a run's directory. Raises RunError for a sweep's, which keeps no networks."""
    config = directory.read_config(workdir)
    if config.is_sweep:
        alone = {"sweep.axes": ()} if config.sweep.axes else {}
        alone |= {name: values[0] for name, values in config.sweep.axes}
        alone |= {"sweep.search.field": ""} if config.sweep.search.field else {}
        flags = shlex.join(f"--config.{name}={value}" for name, value in alone.items())
        raise RunError(
            f"{workdir}: holds a sweep, which keeps no networks; its numbers are in trials.csv and "
            f"summary.json. To look into one trial: compgen-jax train --config=... {flags}"
        )
    return config
