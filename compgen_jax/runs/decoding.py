"""What can be read of the factors in every layer of a finished run whose points form no grid.

For each seed a linear readout of every factor is fitted to the layers' activations at seen points
and scored on seen points left out and on held-out ones (`analysis.decodability`), beside two
controls: the same of the untrained network, and of targets permuted among the points.
"""

from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import scipy.spatial
from tqdm import tqdm

from compgen_jax.metrics import decodability, probes
from compgen_jax.runs import directory, inspection, out_of_memory, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.results import FinishedRun
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import task as tasks
from compgen_jax.training import family, loop

VERSION = 3  # of what is measured
INPUTS = 2  # of every point, where a model answers several: rows of one group
POINTS_AT_ONCE = 128
FOLDS = 5


class Decoding(NamedTuple):
    """layers: names, input first.  numbers: (T, L) by name: 'id_r2' and 'ood_r2', means over the
    factors, also after 'untrained.' and 'shuffled.'.  outputs: (T,) by name: `recovery`, the share
    of held-out points whose own factors, of all held-out points', lie nearest to what is read off
    the last layer, and `active_recovery`, of which those that are not 0 are the right ones."""

    layers: tuple
    seeds: tuple
    numbers: dict
    outputs: dict


def measure_directory(workdir, progress: bool = True):
    """What every layer of the run in `workdir` does: of points on a grid its
    `inspection.Inspection`, else its `Decoding`. Raises as these do."""
    on_grid = tasks.has_grid(loop.check(directory.read_config(Path(workdir))))
    return (inspection.inspect_directory if on_grid else decode_directory)(workdir, progress)


def decode_directory(workdir, progress: bool = True) -> Decoding:
    """The decoding of the run in `workdir`, from its cache or made now and cached.

    Raises RunError for a run that is not finished, whose activations are not finite, or of whose
    points too few are seen.
    """
    path = Path(workdir) / "analysis.json"
    found = _read(path)
    if found is None:
        try:
            with out_of_memory.explained("give launch.analyze a machine with more"):
                found = decode(results.load(workdir), progress)
        except ValueError as error:
            raise RunError(f"{workdir}: {error}") from error
        directory.write_json(path, {"version": VERSION, "decoding": _to_json(found)})
    return found


def decode(run: FinishedRun, progress: bool = True) -> Decoding:
    """All measurements of a finished run, seed by seed."""
    task = run.task
    points = tasks.points(task)
    held_out = np.asarray(task.held_out(points))
    if not held_out.any():
        raise RunError(f"{run.config.name}: nothing is held out to analyse")
    features, init = _features(run), jax.jit(loop.make_trainer(run.config).init)
    numbers, outputs = [], []
    seeds = list(zip(run.seeds, results.seed_keys(run.seeds), strict=True))
    bar = tqdm(seeds, desc=f"analysing {run.config.name}", unit="seed", disable=not progress)
    for index, (seed, key) in enumerate(bar):
        params = jax.tree.map(lambda leaf, index=index: leaf[index], run.params)
        of_trained, of_untrained = (
            jax.device_get(features(key, each, points)) for each in (params, init(key).params)
        )
        measured, recovered = _of_seed(of_trained, points, held_out, seed)
        untrained, _ = _of_seed(of_untrained, points, held_out, seed)
        measured |= {f"untrained.{name}": untrained[name] for name in ("id_r2", "ood_r2")}
        numbers.append(measured)
        outputs.append(recovered)
    stack = lambda found: {name: np.array([one[name] for one in found]) for name in found[0]}
    return Decoding(tuple(of_trained), tuple(run.seeds), stack(numbers), stack(outputs))


def _features(run: FinishedRun):
    """key, params, points -> activations by layer, (B, S, D) of S rows for each point."""
    module = run.config.model.make(family.shapes_of(run.task))
    several = getattr(module, "of_each_input", False)

    def rows(params, given):
        _, activations = module.apply(params, given)
        flat = lambda leaf: leaf.reshape(len(leaf), -1)[:INPUTS] if several else leaf.reshape(1, -1)
        return jax.tree.map(flat, OrderedDict(activations))  # of which JAX keeps the order

    @jax.jit
    def features(key, params, points):
        given = tasks.examples_at(run.task, loop.stream(key, "test"), points).input
        one = lambda each: rows(params, each)
        return jax.lax.map(one, given, batch_size=POINTS_AT_ONCE)

    return features


def _of_seed(features: dict, points, held_out, seed: int):
    """({name: (L,)}, {name: recovery}) of one network's layers, (B, S, D) each."""
    for name, layer in features.items():
        if not np.isfinite(layer).all():
            raise RunError(f"{name} of seed {seed} has activations that are not finite")
    count = next(iter(features.values())).shape[1]
    # points of the same factors belong together, however often they were drawn
    _, alike = np.unique(points, axis=0, return_inverse=True)
    group, outside = np.repeat(np.arange(len(points)), count), np.repeat(held_out, count)
    targets = points[group].astype(np.float64)
    layers = {name: layer.reshape(len(group), -1) for name, layer in features.items()}
    known = np.ptp(targets[~outside], axis=0) > 0  # one that was never shown can't be fitted
    found = decodability.decode(
        layers, targets[:, known], outside, alike[group], FOLDS, classes=np.zeros(known.sum(), bool)
    )
    names = ("id", "ood", "shuffled.id", "shuffled.ood")
    numbers = {f"{name}_r2": _over_factors(found.scores[name], len(known)) for name in names}
    last = layers[found.layers[-1]].astype(np.float64)
    readout = probes.ridge(probes.decompose(last[~outside]), targets[~outside])
    read = readout(last[outside]).reshape(-1, count, targets.shape[1]).mean(axis=1)
    own = points[held_out]
    return numbers, {
        "recovery": _recovery(read, own),
        "active_recovery": _recovery(read, own, of=lambda factors: factors != 0),
    }


def _recovery(read_BxF, own_BxF, of=lambda factors: factors) -> float:
    """The share of points whose own factors are, of all points', nearest to what was read; or so
    far as `of` tells factors apart."""
    nearest = scipy.spatial.cKDTree(own_BxF).query(read_BxF)[1]
    return float(np.mean((of(own_BxF[nearest]) == of(own_BxF)).all(axis=1)))


def _over_factors(scores_LxF, factors: int):
    """(L,): the mean over the factors that vary in the region; of all `factors`, one that was never
    shown, so that it has no scores, counts as not read at all, 0."""
    varying = factors - np.isnan(scores_LxF).all(axis=0).sum()
    return np.nansum(scores_LxF, axis=1) / varying if varying else scores_LxF.mean(axis=1)


def _read(path: Path) -> Decoding | None:
    """The cached decoding; None where there is none, or one of another version."""
    parse = lambda saved: _from_json(saved["decoding"]) if "decoding" in saved else None
    return directory.read_cache(path, VERSION, parse)


def _to_json(found: Decoding) -> dict:
    lists = {
        group: {name: values.tolist() for name, values in getattr(found, group).items()}
        for group in ("numbers", "outputs")
    }
    means = {
        name: [mean_with_interval(column) for column in values.T]
        for name, values in found.numbers.items()
    }
    means |= {name: mean_with_interval(values) for name, values in found.outputs.items()}
    return {"layers": list(found.layers), "seeds": list(found.seeds)} | lists | {"mean": means}


def _from_json(saved: dict) -> Decoding:
    groups = [
        {name: np.array(values, np.float64) for name, values in saved[group].items()}
        for group in ("numbers", "outputs")
    ]
    return Decoding(tuple(saved["layers"]), tuple(saved["seeds"]), *groups)
