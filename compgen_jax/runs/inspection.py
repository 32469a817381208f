"""What every layer of a finished run does: geometry, kernels, probes, ranks, superposition.

For each seed the model, as a function of the factors, gives every layer's metric tensors and
activations at every cell; from these come numbers per layer and numbers of the output,
written to `analysis.json`, and maps, written to `analysis.npz`. Of more than `MOST_CELLS` cells a
sub-grid is measured (`grids.subgrid`).
"""

import io
from functools import partial
from math import isinf, isqrt
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from compgen_jax import grids
from compgen_jax.metrics import geometry, layers, tuning
from compgen_jax.runs import directory, out_of_memory, output_metrics, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.layer_functions import LayerFunctions
from compgen_jax.runs.output_metrics import Cells
from compgen_jax.runs.results import FinishedRun
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

VERSION = 8  # of what is measured: a cached analysis of another version is made anew
# beyond it Gram matrices, and products of three of them, take too long; with a third factor each
# layer is decomposed once for every factor, and its units' best products have no closed form
MOST_CELLS, MOST_CELLS_OF_MORE = 1600, 400  # of up to two factors, and of more
PANEL = 8  # units of every layer whose maps are kept
# (layer, channel, row, column) at N = 28, sides 7 and 28; at another size at the same place
PAPER_UNITS = ((1, 1, 2, 4), (4, 0, 13, 11))


class Inspection(NamedTuple):
    """layers: names, input first, signal (`output`) last.  factors: their names; sizes (V_1, ...,
    V_F) of the grid that was measured.  numbers: (T, L) by name.  outputs: (T,) by name, of the
    signal.  maps: arrays for figures: `volume` (T, L, V_F, ..., V_1), `held_out` (V_F, ..., V_1),
    and of the first seed `similarity.*` (B, B) over all cells, `superposition.*`, what it says at a
    few held-out points and its parts, one for each factor, and the maps of units (U, V_F, ...,
    V_1): `units.LAYER` of a panel by rising interaction, `units.paper` of the two of Figure 4f."""

    layers: tuple
    factors: tuple
    sizes: tuple
    seeds: tuple
    numbers: dict
    outputs: dict
    maps: dict


def inspect_directory(workdir, progress: bool = True) -> Inspection:
    """The inspection of the run in `workdir`, from its cache or made now and cached.

    Raises RunError for a run that is not finished, whose activations are not finite, or of whose
    points too few are seen.
    """
    workdir = Path(workdir)
    found = _read(workdir)
    if found is None:
        try:
            with out_of_memory.explained("give launch.analyze a machine with more"):
                found = inspect(results.load(workdir), progress)
        except ValueError as error:
            raise RunError(f"{workdir}: {error}") from error
        _write(workdir, found)
    return found


def inspect(run: FinishedRun, progress: bool = True) -> Inspection:
    """All measurements of a finished run, seed by seed."""
    if not tasks.has_grid(run.task):
        raise RunError(f"{run.config.name}: its points form no grid; launch.analyze decodes them")
    cells = _cells(run)
    if not cells.held_out.any():
        raise RunError(f"{run.config.name}: nothing is held out to analyse")
    program = LayerFunctions(run)
    true = output_metrics.similarities(cells.truths, cells.truths)
    # pairs of two factors are one, whose angle the factorization has
    of_real = tuple(f.name for f in run.task.factors if f.real) if len(cells.sizes) > 2 else ()
    numbers, outputs, volumes = [], [], []
    init = jax.jit(loop.make_trainer(run.config).init)
    bar = tqdm(run.config.training.seeds, desc=f"analysing {run.config.name}", unit="seed",
               disable=not progress)  # fmt: skip
    for index, seed in enumerate(bar):
        params = jax.tree.map(lambda leaf, index=index: leaf[index], run.params)
        features = jax.device_get(program.features(params, cells.inputs))
        _check_finite(features, seed)
        at_first = program.features(init(jax.random.key(seed)).params, cells.inputs)
        untrained = {
            name: tuning.layer_tuning(layer, cells.sizes)
            for name, layer in jax.device_get(at_first).items()
        }
        metrics = program.metrics(params, jnp.asarray(cells.points))
        numbers.append(
            {
                name: _layer(run.task, cells, layer, true["cosine"])
                | layers.geometry_numbers(
                    None if metrics is None else metrics[name],
                    cells.held_out,
                    cells.border,
                    of_real,
                )
                | tuning.layer_tuning(layer, cells.sizes)
                | {f"untrained.{key}": value for key, value in untrained[name].items()}
                for name, layer in features.items()
            }
        )
        measured, examples = output_metrics.measure(
            program, params, seed, features["output"], cells, true
        )
        outputs.append(measured)
        if metrics is not None:
            volume = {name: geometry.volume_element(metric) for name, metric in metrics.items()}
            volumes.append(np.stack([volume[name] for name in features]))
        if index == 0:
            maps = examples | _unit_maps(features, run.config, cells.sizes)
    names = tuple(features)
    if volumes:
        maps["volume"] = np.stack(volumes).reshape(len(volumes), len(names), *cells.sizes[::-1])
    maps["held_out"] = cells.over_grid(cells.held_out)
    return Inspection(
        layers=names,
        factors=tuple(factor.name for factor in run.task.factors),
        sizes=cells.sizes,
        seeds=tuple(run.config.training.seeds),
        numbers={
            n: np.array([[seed[k][n] for k in names] for seed in numbers])
            for n in numbers[0][names[0]]
        },
        outputs={name: np.array([seed[name] for seed in outputs]) for name in outputs[0]},
        maps=maps,
    )


def _cells(run: FinishedRun) -> Cells:
    task = run.task
    most = MOST_CELLS if len(task.factors) <= 2 else MOST_CELLS_OF_MORE
    chosen, sizes = grids.subgrid(tasks.sizes(task), most)
    points = tasks.cells(task.factors)
    where = tasks.geometry(task)
    every = np.asarray(task.held_out(points))
    distance = grids.distance_to_seen(every, **where)
    key = loop.stream(jax.random.key(0), "test")
    examples = jax.jit(partial(tasks.examples_at, task))(key, jnp.asarray(points[chosen]))
    truths = jax.jit(jax.vmap(partial(tasks.truth, task)))(examples.target)
    return Cells(
        sizes, points[chosen], examples.input, np.asarray(truths), every[chosen], distance[chosen],
        grids.border(layers.BORDER, **where)[chosen],
    )  # fmt: skip


def _layer(task, cells: Cells, layer, true_kernel) -> dict:
    names = () if len(task.factors) == 2 else tuple(factor.name for factor in task.factors)
    # an angle jumps where it repeats: no line fits it
    real = tuple(factor.real and isinf(factor.period) for factor in task.factors)
    return layers.layer_numbers(
        layer, cells.points, cells.held_out, cells.sizes, true_kernel, real, names
    )


def _unit_maps(features, config, sizes) -> dict:
    """Maps (U, V_F, ..., V_1) of a panel of units of every hidden layer, chosen by rule, and of the
    two units that the paper shows, if the model has them."""
    maps, paper = {}, []

    def over_grid(units_BxU):
        return np.moveaxis(grids.over_grid(units_BxU, sizes), -1, 0)

    for name, layer in features.items():
        maps[f"units.{name}"] = over_grid(
            layer[:, tuning.choose_units(tuning.tuning(layer, sizes), PANEL)]
        )
    for number, channel, row, column in PAPER_UNITS if config.model.name == "conv" else ():
        layer = features.get(f"layer_{number:02d}")
        if layer is not None and channel < config.model.width:
            side = isqrt(layer.shape[1] // config.model.width)
            of_28 = 7 if number == 1 else 28
            place = (row * side // of_28, column * side // of_28)
            unit = tuning.unit_index(side, config.model.width, channel, *place)
            paper.append(over_grid(layer[:, [unit]])[0])
    return maps | {"units.paper": np.array(paper).reshape(-1, *sizes[::-1])}


def _check_finite(features: dict, seed: int):
    for name, layer in features.items():
        if not np.isfinite(layer).all():
            raise RunError(f"{name} of seed {seed} has activations that are not finite")


# --- the cache -------------------------------------------------------------------------------


def _write(workdir: Path, found: Inspection):
    content = io.BytesIO()
    np.savez_compressed(content, **found.maps)
    directory.write_bytes(workdir / "analysis.npz", content.getvalue())
    means = {
        name: [mean_with_interval(column) for column in values.T]
        for name, values in found.numbers.items()
    }
    directory.write_json(
        workdir / "analysis.json",
        {
            "version": VERSION,
            "layers": list(found.layers),
            "factors": list(found.factors),
            "sizes": list(found.sizes),
            "seeds": list(found.seeds),
            "numbers": {name: values.tolist() for name, values in found.numbers.items()},
            "outputs": {name: values.tolist() for name, values in found.outputs.items()},
            "mean": means
            | {name: mean_with_interval(values) for name, values in found.outputs.items()},
        },
    )


def _read(workdir: Path) -> Inspection | None:
    """The cached inspection; None where there is none, or one of another version."""

    def parse(saved: dict) -> Inspection:
        with (
            open(workdir / "analysis.npz", "rb") as content,
            np.load(content, allow_pickle=False) as file,
        ):
            maps = dict(file)
        groups = [
            {name: np.array(values, np.float64) for name, values in saved[group].items()}
            for group in ("numbers", "outputs")
        ]
        names = [tuple(saved[name]) for name in ("layers", "factors", "sizes", "seeds")]
        return Inspection(*names, *groups, maps)

    if not (workdir / "analysis.npz").exists():
        return None
    return directory.read_cache(workdir / "analysis.json", VERSION, parse)
