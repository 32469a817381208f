"""What every layer of a finished run does on the combinations that it was shown, and on no other.

What `analysis.seen` measures, for each seed, written to `seen.json` in the run's directory.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.metrics import seen
from compgen_jax.runs import directory, out_of_memory, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.layer_functions import LayerFunctions
from compgen_jax.runs.results import FinishedRun
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

VERSION = 1  # of what is measured: a cached file of another version is made anew


class Seen(NamedTuple):
    """layers: names, input first, signal (`output`) last.  numbers: (T, L) by name, those of
    `analysis.seen.NUMBERS`."""

    layers: tuple
    seeds: tuple
    numbers: dict


def measure_directory(workdir) -> Seen:
    """Of the run in `workdir`, from its cache or made now and cached.

    Raises RunError for a run that is not finished, whose points form no grid, or whose layers
    cannot be measured: not finite, or of too few cells.
    """
    workdir = Path(workdir)
    found = directory.read_cache(workdir / "seen.json", VERSION, _from_json)
    if found is None:
        with out_of_memory.explained("measure the run on a machine with more"):
            found = measure(results.load(workdir))
        numbers = {name: values.tolist() for name, values in found.numbers.items()}
        record = {"version": VERSION, "layers": list(found.layers), "seeds": list(found.seeds)}
        directory.write_json(workdir / "seen.json", record | {"numbers": numbers})
    return found


def measure(run: FinishedRun) -> Seen:
    """Of every network of a finished run, at cells of the grid that are not held out."""
    task = run.task
    if not tasks.has_grid(task):
        raise RunError(f"{run.config.name}: its points form no grid")
    points = tasks.points(task)
    points = points[~np.asarray(task.held_out(points))]
    most = max(seen.MOST_CELLS, sum(tasks.sizes(task)))  # no fewer than effects
    points = points[seen.choose_cells(points, most)]
    key = loop.stream(jax.random.key(0), "test")
    examples = jax.jit(partial(tasks.examples_at, task))(key, jnp.asarray(points))
    functions = LayerFunctions(run)
    real, periods = functions.real, [factor.period for factor in task.factors]
    true_metrics = functions.true_metrics(jnp.asarray(points))
    by_seed = []
    for index in range(len(run.seeds)):
        params = jax.tree.map(lambda leaf, index=index: leaf[index], run.params)
        features = jax.device_get(functions.features(params, examples.input))
        metrics = functions.metrics(params, jnp.asarray(points)) or dict.fromkeys(features)
        try:
            by_seed.append(
                {
                    name: seen.seen_numbers(
                        layer, points, metrics[name], true_metrics, real, periods
                    )
                    for name, layer in features.items()
                }
            )
        except ValueError as error:
            raise RunError(f"{run.config.name}, seed {run.seeds[index]}: {error}") from error
    names = tuple(by_seed[0])
    numbers = {
        number: np.array([[seed[name][number] for name in names] for seed in by_seed])
        for number in seen.NUMBERS
    }
    return Seen(names, tuple(run.seeds), numbers)


def _from_json(saved: dict) -> Seen:
    numbers = {name: np.array(values, np.float64) for name, values in saved["numbers"].items()}
    return Seen(tuple(saved["layers"]), tuple(saved["seeds"]), numbers)
