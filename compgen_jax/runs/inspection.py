"""What every layer of a finished run does: geometry, kernels, probes, ranks, superposition.

For each seed the model, as a function of the factors, gives every layer's metric tensors and
activations at every cell; from these come numbers per layer and numbers of the output,
written to `analysis.json`, and maps, written to `analysis.npz`. Of more than `MOST_CELLS` cells a
sub-grid is measured (`grids.subgrid`).
"""

import io
import warnings
import zipfile
from functools import partial
from math import isqrt
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from compgen_jax import grids
from compgen_jax.analysis import decomposition, geometry, kernels, layers, superposition, tuning
from compgen_jax.analysis.statistics import mean_with_interval
from compgen_jax.models.convolution import choose_lowering
from compgen_jax.models.model import Shapes
from compgen_jax.runs import directory, memory, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.results import Run
from compgen_jax.tasks import draws
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

VERSION = 6  # of what is measured: a cached analysis of another version is made anew
MOST_CELLS = 1600  # beyond it Gram matrices, and products of three of them, take too long
SHUFFLES = 20
EXAMPLES = 4
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


class Cells(NamedTuple):
    """The grid that is measured: its points (B, F), truths (B, ...), inputs and held-out cells."""

    sizes: tuple
    points: np.ndarray
    inputs: object
    truths: np.ndarray
    held_out: np.ndarray
    distance: np.ndarray

    def over_grid(self, values_B):
        return grids.over_grid(values_B, self.sizes)


def inspect_directory(workdir, progress: bool = True) -> Inspection:
    """The inspection of the run in `workdir`, from its cache or made now and cached.

    Raises RunError for a run that is not finished or whose activations are not finite.
    """
    workdir = Path(workdir)
    found = _read(workdir)
    if found is None:
        with memory.explained("give launch.analyze a machine with more"):
            found = inspect(results.load(workdir), progress)
        _write(workdir, found)
    return found


def inspect(run: Run, progress: bool = True) -> Inspection:
    """All measurements of a finished run, seed by seed."""
    cells = _cells(run)
    if not cells.held_out.any():
        raise RunError(f"{run.config.name}: nothing is held out to analyse")
    program = _Program(run)
    true = _output_kernels(cells.truths, cells.truths)
    # pairs of two factors are one, whose angle the factorization has
    of_real = tuple(f.name for f in run.task.factors if f.real) if len(cells.sizes) > 2 else ()
    numbers, outputs, volumes = [], [], []
    bar = tqdm(run.config.training.seeds, desc=f"analysing {run.config.name}", unit="seed",
               disable=not progress)  # fmt: skip
    for index, seed in enumerate(bar):
        params = jax.tree.map(lambda leaf, index=index: leaf[index], run.params)
        features = jax.device_get(program.features(params, cells.inputs))
        _check_finite(features, seed)
        metrics = program.metrics(params, jnp.asarray(cells.points))
        numbers.append(
            {
                name: _layer(run.task, cells, layer, true["cosine"])
                | layers.geometry_numbers(
                    None if metrics is None else metrics[name], cells.held_out, of_real
                )
                | tuning.layer_tuning(layer, cells.sizes)
                for name, layer in features.items()
            }
        )
        measured, examples = _output_numbers(program, params, seed, features["output"], cells, true)
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


def _cells(run: Run) -> Cells:
    task = run.task
    chosen, sizes = grids.subgrid(tasks.sizes(task), MOST_CELLS)
    points = tasks.cells(task.factors)
    where = tasks.geometry(task)
    every = np.asarray(task.held_out(points))
    distance = grids.distance_to_seen(every, **where)
    key = loop.stream(jax.random.key(0), "test")
    examples = jax.jit(partial(loop.examples_at, task))(key, jnp.asarray(points[chosen]))
    truths = jax.jit(jax.vmap(partial(tasks.truth, task)))(examples.target)
    return Cells(
        sizes, points[chosen], examples.input, np.asarray(truths), every[chosen], distance[chosen]
    )


class _Program:
    """The model of a run as compiled functions of one seed's parameters."""

    def __init__(self, run: Run):
        task = self.task = run.task
        self.real = np.array([factor.real for factor in task.factors])
        self.differentiable = task.differentiable and self.real.any()
        lowering = choose_lowering(backend=jax.default_backend(), trials=1, forward_mode=True)
        module = run.config.decoder.make(Shapes(*tasks.shapes(task), lowering))
        key, real = loop.stream(jax.random.key(0), "test"), np.flatnonzero(self.real)

        def recorded(params, inputs):
            output, activations = module.apply(params, inputs)
            return activations | {"output": task.signal(output)}

        def features(params, inputs):
            flat = lambda one: jax.tree.map(jnp.ravel, recorded(params, one))
            return jax.lax.map(flat, inputs, batch_size=geometry.POINTS_AT_ONCE)

        def metrics(params, points):
            def at(point):
                def of_real(values):
                    moved = values if self.real.all() else point.at[real].set(values)
                    return recorded(params, task.example(key, moved).input)

                return geometry.metric_tensor(of_real, point if self.real.all() else point[real])

            return jax.lax.map(at, points, batch_size=geometry.POINTS_AT_ONCE)

        self.features = jax.jit(features)
        self._metrics = jax.jit(metrics)

    def metrics(self, params, points):
        """Metric tensors of the real factors by layer; None without a derivative."""
        return jax.device_get(self._metrics(params, points)) if self.differentiable else None

    def signals(self, params, inputs):
        return np.asarray(self.features(params, inputs)["output"], np.float64)


def _layer(task, cells: Cells, layer, true_kernel) -> dict:
    names = () if len(task.factors) == 2 else tuple(factor.name for factor in task.factors)
    real = tuple(factor.real for factor in task.factors)
    return layers.layer_numbers(
        layer, cells.points, cells.held_out, cells.sizes, true_kernel, real, names
    )


def _output_kernels(signals_Bx, truths_Bx) -> dict:
    """The three similarities of Figure 8, of signals on the truths' scale."""
    flat = np.asarray(signals_Bx).reshape(len(signals_Bx), -1)
    gram = kernels.gram(flat)
    largest = float(truths_Bx.max())
    return {
        "cosine": kernels.cosine(gram),
        "l2": kernels.l2(gram),
        "overlap": kernels.overlap(flat[:, None], amplitude=largest if largest > 0 else 1.0),
    }


def _output_numbers(program, params, seed, signals_BxD, cells: Cells, true: dict):
    """Numbers of the signal of one seed, and its maps: similarities, and the superpositions of a
    few held-out cells."""
    task, held_out = program.task, cells.held_out
    signals = np.asarray(signals_BxD, np.float64)
    similarities = _output_kernels(signals_BxD, cells.truths)
    numbers = {}
    for name, kernel in similarities.items():
        found = layers.agreements(kernel, cells.points, held_out, true[name])
        numbers |= {f"output.{name}.{key}": value for key, value in found.items()}
    source = loop.source_of(task, jax.random.key(seed))
    numbers |= _ranks(signals_BxD, source, task, cells)
    parts = _superpositions(program, params, source, signals_BxD, cells)
    numbers |= _superposition_numbers(parts, signals[held_out], cells.points[held_out])
    numbers |= _regression_numbers(task, signals_BxD, cells)
    shape = cells.truths.shape[1:]
    # well inside the hole, where nothing near has been seen
    distance = cells.distance[held_out]
    inside = np.flatnonzero(distance >= 0.6 * distance.max())
    chosen = inside[np.linspace(0, len(inside) - 1, EXAMPLES + 2).round().astype(int)[1:-1]]
    examples = {
        f"superposition.{name}": part[chosen].reshape(EXAMPLES, -1, *shape)
        for name, part in parts.items()
        if part is not None
    }
    examples["superposition.output"] = signals[held_out][chosen].reshape(EXAMPLES, *shape)
    examples["superposition.points"] = cells.points[held_out][chosen]
    examples |= {f"similarity.{name}": kernel for name, kernel in similarities.items()}
    return numbers, {name: value.astype(np.float32) for name, value in examples.items()}


def _superpositions(program, params, source, signals_BxD, cells: Cells) -> dict:
    """Signals (Q, F, D) of the held-out cells' parts, in the paper's two constructions; None where
    one cannot be made."""
    task, held_out = program.task, cells.held_out
    found = {"mean_code": None, "sums": None}
    if task.parts and isinstance(source, draws.Table):
        training = loop.examples_at(task, jax.random.key(0), source.points[: int(source.count)])
        mean_code = training.input.mean(axis=0)
        of_code = partial(superposition.mean_code_superpositions, lengths=task.parts)
        alone = jax.vmap(of_code, (0, None))(cells.inputs[held_out], mean_code)
        found["mean_code"] = np.stack([program.signals(params, codes) for codes in alone], axis=1)
    seen = cells.points[~held_out]
    with_every_value = all(np.isin(c, s).all() for c, s in zip(cells.points[held_out].T, seen.T,
                                                               strict=True))  # fmt: skip
    if with_every_value:
        found["sums"] = superposition.matching_sums(
            signals_BxD[~held_out], seen, cells.points[held_out]
        ).sums
    return found


def _superposition_numbers(parts: dict, outputs_QxD, points_QxF) -> dict:
    numbers = {}
    apart = (points_QxF[:, None] != points_QxF[None]).all(axis=2).any(axis=1).all()
    others = superposition.other_coordinates(points_QxF, SHUFFLES) if apart else None
    for name, part in parts.items():
        r2 = shuffled = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # blank outputs have no R^2
            if part is not None:
                r2 = np.nanmean(superposition.superposition_r2(outputs_QxD, part).r2)
            if part is not None and apart:
                shuffled = np.nanmean(superposition.shuffled_r2(outputs_QxD, part, others)[0])
        numbers[f"output.superposition.{name}.r2"] = r2
        numbers[f"output.superposition.{name}.shuffled_r2"] = shuffled
    return numbers


def _regression_numbers(task, signals_BxD, cells: Cells) -> dict:
    """Kernels on the factors, in cells; errors over a blank signal's."""
    held_out, numbers = cells.held_out, {}
    index = tasks.nearest_values(task, cells.points).astype(np.float32)
    points, outputs = index[held_out], np.asarray(signals_BxD, np.float64)[held_out]
    blank = np.mean(cells.truths[held_out] ** 2)
    for name, isotropic in (("factorized", False), ("isotropic", True)):
        fit = kernels.kernel_regression(
            index[~held_out], signals_BxD[~held_out], points, isotropic=isotropic
        )
        error = np.mean((fit.prediction - outputs) ** 2)
        numbers[f"output.kernel_regression.{name}_error"] = error / blank
    return numbers


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
    for number, channel, row, column in PAPER_UNITS if config.decoder.name == "conv" else ():
        layer = features.get(f"layer_{number:02d}")
        if layer is not None and channel < config.decoder.width:
            side = isqrt(layer.shape[1] // config.decoder.width)
            of_28 = 7 if number == 1 else 28
            place = (row * side // of_28, column * side // of_28)
            unit = tuning.unit_index(side, config.decoder.width, channel, *place)
            paper.append(over_grid(layer[:, [unit]])[0])
    return maps | {"units.paper": np.array(paper).reshape(-1, *sizes[::-1])}


def _ranks(signals_BxD, source, task, cells: Cells) -> dict:
    """Ranks of the signals over the factors (Eq 13 to 17), the largest of any entry, and how far
    the law of the training draw is from a mixture of one, and of two, products (Eq 18-20); the
    largest of one factor against the others."""
    numbers = {"output.target_rank": 0.0, "output.epsilon_rank": 0.0}
    for factor in decomposition.distinct_factors(cells.sizes):
        found = decomposition.target_rank(signals_BxD, cells.sizes, factor)
        for name in ("rank", "epsilon_rank"):
            key = f"output.{name if name != 'rank' else 'target_rank'}"
            numbers[key] = max(numbers[key], float(getattr(found, name).max()))
    return numbers | _law_ranks(source, task)


def _law_ranks(source, task) -> dict:
    """Of the points alone: a stripe is no point. NaN where there is none, as in a stream."""
    names, sizes = [f"output.training_law_kl_rank_{k}" for k in (1, 2)], tasks.sizes(task)
    points = np.zeros((0, len(sizes)))
    if isinstance(source, draws.Table) and task.examples:
        points = np.asarray(source.points)[: int(source.count)]
        points = points[~np.isnan(points).any(axis=1)]
    if not len(points):
        return dict.fromkeys(names, np.nan)
    law = np.zeros(sizes[::-1])
    np.add.at(law, tuple(tasks.nearest_values(task, points).T[::-1]), 1 / len(points))
    found = [
        decomposition.distribution_rank(grids.unfold(law.ravel(), sizes, f), max_rank=2).kl
        for f in decomposition.distinct_factors(sizes)
    ]
    return {name: float(kl) for name, kl in zip(names, np.max(found, axis=0), strict=True)}


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
    path = workdir / "analysis.json"
    if not path.exists() or not (workdir / "analysis.npz").exists():
        return None
    saved = directory.read_json(path)
    if not isinstance(saved, dict) or saved.get("version") != VERSION:
        return None
    try:
        with (
            open(workdir / "analysis.npz", "rb") as content,
            np.load(content, allow_pickle=False) as file,
        ):
            maps = dict(file)
        groups = [
            {name: np.array(values, np.float64) for name, values in saved[group].items()}
            for group in ("numbers", "outputs")
        ]
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise RunError(f"{workdir}: its analysis is damaged ({error}); remove {path}") from error
    names = (tuple(saved[name]) for name in ("layers", "factors", "sizes", "seeds"))
    return Inspection(*names, *groups, maps)
