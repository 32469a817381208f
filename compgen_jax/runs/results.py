"""A finished run: what it says at any points, at every cell beside the truth, and its layers."""

import shlex
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config
from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks import baselines, sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials

DRAWN = 2000  # the points of a stream that the interpolator knows


class FinishedRun:
    """A finished run: what it says at any points, and what its layers do.

    config, task, summary.  seeds: one for every network.  params: leaves have a leading axis T over
    the networks.  path: its directory, None for networks of one earlier step.  steps: of its
    networks, where each seed has several; () for one network of each seed.

    Everything else is computed when it is first asked for.
    """

    def __init__(self, config: Config, task: Task, params, summary: dict, seeds, path=None,
                 steps=()):  # fmt: skip
        self.config, self.task, self.params = config, task, params
        self.summary, self.seeds, self.steps = summary, tuple(seeds), tuple(steps)
        self.path = None if path is None else Path(path)
        self._metrics = {}

    @property
    def name(self) -> str:
        return self.config.name

    def predict(self, points):
        """(T, B, ...): what every network says at points (B, F), any real values, NaN for a
        missing factor; NumPy."""
        return self.predict_with_truth(points)[0]

    def predict_with_truth(self, points):
        """What `predict` returns and, of the same shape, what the task asks each network for."""
        return self._over_seeds(loop.make_trainer(self.config).predict, points)

    def error_at(self, points):
        """(T, B): the error of every network at points (B, F)."""
        score = loop.make_trainer(self.config).score
        return self._over_seeds(
            lambda key, params, at: score(key, params, at)[self.task.error], points
        )

    @cached_property
    def cells(self) -> evaluation.CellResults:
        """What every network says at every cell, beside what it should."""
        trainer = loop.make_trainer(self.config)

        def predict_and_score(key, params, points):
            return trainer.predict(key, params, points), trainer.score(key, params, points)

        points = tasks.points(self.task)
        (predictions, truths), scores = self._over_seeds(predict_and_score, points)
        return at_cells(self.task, self.seeds, predictions, truths[0], scores)

    @cached_property
    def interpolator(self) -> evaluation.CellResults:
        """What `interpolations` says at every cell, once for each network, with the task's scores.
        Raises RunError for a task without it (`Task.interpolated`)."""
        if not self.task.interpolated:
            raise RunError(f"{self.name}: its task has no interpolator")
        different = list(dict.fromkeys(self.seeds))
        of_network = np.array([different.index(seed) for seed in self.seeds])
        predictions, truths, scores = interpolations(self.config, self.task, different)
        scores = {name: values[of_network] for name, values in scores.items()}
        return at_cells(self.task, self.seeds, predictions[of_network], truths[0], scores)

    @cached_property
    def shown(self):
        """(T, B) bool: the cells that each network was shown whole; a stripe shows none."""
        points, of_seed = tasks.points(self.task), {}
        drawn = jax.jit(partial(_points_shown, self.config, self.task))
        for seed in dict.fromkeys(self.seeds):
            given, counts = jax.device_get(drawn(jax.random.key(seed)))
            given = given[counts]
            of_seed[seed] = (points[:, None] == given[None]).all(axis=2).any(axis=1)
        return np.stack([of_seed[seed] for seed in self.seeds])

    @cached_property
    def trivial(self) -> dict[str, dict]:
        """{predictor: {(region, score): mean over the seeds}} of the task's trivial predictors, of
        lookups along each factor alone, and of the interpolator if there is one."""
        task, seeds = tasks.with_lookups_along_factors(self.task), list(dict.fromkeys(self.seeds))
        return {
            predictor: {place: float(np.mean(values)) for place, values in means.items()}
            for predictor, means in trivial_means(self.config, task, seeds).items()
        }

    @cached_property
    def late(self) -> "FinishedRun":
        """The same run with all networks of its late checkpoints, those over the last tenth of
        training: for each seed one after the other. Claims take the median over them.

        Raises RunError, naming what is missing or damaged.
        """
        return self._with(loop.last_evaluations(self.config, self.task))

    @property
    def kept_steps(self) -> list[int]:
        """The steps along training whose parameters are kept (`training.keep`)."""
        return directory.kept_steps(self.path)

    def at(self, step: int) -> "FinishedRun":
        """The same run with its networks at a kept step or a late checkpoint. Raises RunError for
        another step."""
        if step in loop.last_evaluations(self.config, self.task):
            params = directory.restore(self.path, self._template, step).state.params
        else:
            params = directory.kept_parameters(self.path, step, self._template.params)
        return FinishedRun(self.config, self.task, params, self.summary, self.seeds)

    @cached_property
    def _template(self):
        return loop.template(self.config)  # traces the model

    @cached_property
    def along(self) -> "FinishedRun":
        """The same run with all networks of its kept steps: for each seed one after the other."""
        return self._with(self.kept_steps)

    def _with(self, steps) -> "FinishedRun":
        """The same run with its networks at several steps, for each seed one after the other."""
        saved = {step: self.at(step).params for step in set(steps)}
        join = lambda *leaves: np.stack(leaves, axis=1).reshape(-1, *leaves[0].shape[1:])
        params = jax.tree.map(join, *(saved[step] for step in steps))
        seeds = np.repeat(self.seeds, len(steps)).tolist()
        return FinishedRun(self.config, self.task, params, self.summary, seeds, self.path, steps)

    # --- what its layers do: measured once, kept in its directory (`runs.measure`)

    def layers(self, metric: str):
        """(T, L): a metric of every layer, input first, prediction ('output') last; `decode.*` has
        none of the prediction."""
        if self.steps:
            return self._measured(metric).along(metric, self.steps)
        return self._measured(metric).numbers[metric]

    def outputs(self, metric: str):
        """(T,): a metric of the prediction as a whole."""
        if self.steps:
            return self._measured(metric).along(metric, self.steps)[:, 0]
        return self._measured(metric).outputs[metric]

    @property
    def layer_names(self) -> tuple[str, ...]:
        return self._measured().layers

    @property
    def maps(self) -> dict:
        """Arrays for figures by name; see `measure.Measured`."""
        return self._measured().maps

    def unit_maps(self, layer: str):
        """(D, V_F, ..., V_1): what every unit of a layer does over the grid, in the first seed."""
        from compgen_jax.runs import recording

        grid = recording.Grid(self, set())
        network = jax.tree.map(lambda leaf: leaf[0], self.params)
        return grid.unit_maps(np.asarray(grid.functions.features(network, grid.inputs)[layer]))

    def _measured(self, metric: str | None = None):
        from compgen_jax.runs import measure

        if self.path is None:
            raise RunError(f"{self.name}: runs.measure.measure takes the layers of earlier steps")
        asked = metric or "all"
        if asked not in self._metrics:
            found = measure.measure_directory(self.path, metric, self.steps)
            self._metrics |= dict.fromkeys((*found.names_at(self.steps), asked), found)
        return self._metrics[asked]

    def _over_seeds(self, function, points):
        """function(key, params, points) of every network, leading axis T; NumPy."""

        def of_seed(points, seed):
            return function(*seed, points)

        program = over_trials(of_seed, self.config.execution.trials_per_device)
        seeds = seed_keys(self.seeds), self.params
        return jax.tree.map(np.asarray, program(jnp.asarray(points), seeds))


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


def load(workdir, with_networks: bool = True) -> FinishedRun:
    """A finished run at its end, or what is known of it without its networks. Raises RunError for a
    sweep, and for what is missing or damaged, naming it."""
    workdir = Path(workdir)
    config = config_of(workdir)
    if not directory.is_finished(workdir):
        raise RunError(f"{workdir}: its run is not finished; compgen-jax train resumes it")
    task = loop.check(config)
    user_code.check(workdir, config, task)
    summary, seeds = directory.read_summary(workdir), config.training.seeds
    if not with_networks:
        return FinishedRun(config, task, None, summary, seeds, workdir)
    checkpoint = directory.restore(workdir, loop.template(config))
    if checkpoint is None or checkpoint.step != loop.total_steps(config, task):
        raise RunError(
            f"{workdir}: its final checkpoint is missing; remove its summary.json, and "
            "compgen-jax train trains what is missing"
        )
    return FinishedRun(config, task, checkpoint.state.params, summary, seeds, workdir)


def seed_keys(seeds):
    """The keys of seeds, (T,)."""
    return jax.vmap(jax.random.key)(jnp.array(seeds))


def interpolations(config: Config, task: Task, seeds):
    """What `baselines.interpolate` says at the task's points, from the complete points that each
    seed was shown: (predictions (T, B, ...), truths (T, B, ...), the task's scores (T, B) by name).

    A code is the model's input, flattened. Where each step draws new points, the first `DRAWN`
    count. A seed without complete points (stripes alone) has 0 everywhere.
    """
    points, held = tasks.points(task), []
    shown_to = jax.jit(partial(shown_examples, config, task))
    score = jax.jit(jax.vmap(task.scores))
    for seed in seeds:
        key = jax.random.key(seed)
        given, (codes, truths) = jax.device_get(shown_to(key, jnp.asarray(points)))
        shown_points, counts, shown_codes, shown_truths = given
        complete = counts & ~np.isnan(shown_points).any(axis=1)
        first = np.unique(shown_points[complete], axis=0, return_index=True)[1]
        predictions = baselines.interpolate(
            shown_codes[complete][first], shown_truths[complete][first], codes
        ).astype(np.float32)
        held.append((predictions, truths, jax.device_get(score(predictions, truths, points))))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *held)


def trivial_means(config: Config, task: Task, seeds, scores=None) -> dict[str, dict]:
    """{predictor: {(region, score): (T,)}}: what trivial predictors score on the examples that each
    seed is scored on. `scores` names those of the task's `baselines`, by default all; the
    interpolator, where there is one, has all."""
    masks = tasks.regions(task)

    def of_seed(key):
        by_predictor = tasks.trivial_scores(task, loop.stream(key, "test"))
        return {
            name: means({score: each[score] for score in scores or each})
            for name, each in by_predictor.items()
        }

    def means(each):
        found = evaluation.region_means(each, masks)
        return {(region, score): found[f"{region}.{score}"] for region in masks for score in each}

    found = jax.device_get(jax.jit(lambda keys: jax.lax.map(of_seed, keys))(seed_keys(seeds)))
    if task.interpolated:
        scores = interpolations(config, task, seeds)[2]
        found["interpolator"] = jax.device_get(jax.jit(jax.vmap(means))(scores))
    return found


def _points_shown(config: Config, task: Task, key, drawn: int | None = None):
    """The points that a seed is shown, and whether each counts; of a stream, the first `drawn`, by
    default `DRAWN`."""
    dataset = loop.dataset_of(task, key)
    if task.examples and isinstance(dataset, sampling.Table):
        return dataset.points, jnp.arange(len(dataset.points)) < dataset.count
    drawn, batch = drawn or DRAWN, config.training.batch_size
    draw = lambda step: task.next_batch(loop.stream(key, "order"), step, dataset, batch)
    points, counts = jax.vmap(draw)(jnp.arange(-(-drawn // batch)))
    return points.reshape(-1, points.shape[-1])[:drawn], counts.ravel()[:drawn]


def shown_examples(config: Config, task: Task, key, points, drawn: int | None = None):
    """What a seed is shown: points, whether each counts, codes and truths; and the codes and truths
    of the points that it is scored at. Codes are flattened; `drawn` as in `_points_shown`."""

    def codes_and_truths(name, at):
        given, target = tasks.examples_at(task, loop.stream(key, name), at)
        flat = [leaf.reshape(len(at), -1).astype(jnp.float32) for leaf in jax.tree.leaves(given)]
        return jnp.concatenate(flat, axis=1), jax.vmap(partial(tasks.truth, task))(target)

    given, counts = _points_shown(config, task, key, drawn)
    shown = (given, counts, *codes_and_truths("example", given))
    return shown, codes_and_truths("test", points)


def truths_at(task: Task, points):
    """(B, ...) what the task asks for at points (B, F); NumPy."""
    truth = lambda point: tasks.truth(task, task.example(jax.random.key(0), point).target)
    return np.asarray(jax.jit(jax.vmap(truth))(jnp.asarray(points)))


def scorer(task: Task, truths=None) -> Callable:
    """signals (T, B, ...) -> CellResults: what is given for every cell, as if seeds 0 to T - 1 had
    said it, scored as the task scores. `truths` (B, ...) take the place of the task's own."""
    points = tasks.points(task)
    truths = truths_at(task, points) if truths is None else truths
    score = jax.jit(jax.vmap(jax.vmap(task.scores), (0, None, None)))

    def scored(signals_TxBx) -> evaluation.CellResults:
        signals = np.asarray(signals_TxBx)
        scores = jax.tree.map(np.asarray, score(signals, np.asarray(truths), points))
        return at_cells(task, tuple(range(len(signals))), signals, truths, scores)

    return scored


def at_cells(task: Task, seeds, signals, truths, scores) -> evaluation.CellResults:
    points = tasks.points(task)
    held_out = np.asarray(task.held_out(points))
    return evaluation.CellResults(
        seeds=seeds,
        predictions=signals,
        truths=truths,
        factors=points,
        held_out=held_out,
        distance=tasks.distance_to_seen(task, held_out),
        sizes=tasks.sizes(task),
        scores=scores,
        error=task.error,
    )
