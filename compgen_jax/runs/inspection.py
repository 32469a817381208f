"""What every layer of a finished run does: geometry, kernels, probes, ranks, superposition.

For each seed the decoder, as a function of the factors, gives every layer's metric tensors and
activations at every cell; from these come numbers per layer and numbers of the drawn image,
written to `analysis.json`, and maps, written to `analysis.npz`.
"""

import io
import warnings
import zipfile
from math import isqrt
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from tqdm import tqdm

from compgen_jax import models
from compgen_jax.analysis import (
    decomposition,
    evaluation,
    geometry,
    kernels,
    layers,
    superposition,
    tuning,
)
from compgen_jax.analysis.statistics import mean_with_interval
from compgen_jax.models.convolution import choose_lowering
from compgen_jax.runs import directory, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.results import Run
from compgen_jax.tasks import bump, dataset, supports
from compgen_jax.tasks.encodings import encode
from compgen_jax.training import loop

VERSION = 4  # of what is measured: a cached analysis of another version is made anew
SHUFFLES = 20
EXAMPLES = 4
PANEL = 8  # units of every layer whose maps are kept
# (layer, channel, row, column) at N = 28, sides 7 and 28; at another size at the same place
PAPER_UNITS = ((1, 1, 2, 4), (4, 0, 13, 11))


class Inspection(NamedTuple):
    """layers: names, code first, drawn signal (`output`) last.  numbers: (T, L) by name.
    outputs: (T,) by name, of the drawn signal.  maps: arrays for figures: `volume`
    (T, L, N, N), `held_out` (N, N), and of the first seed `similarity.*` (B, B) over all cells,
    `superposition.*`, what it draws for a few held-out points and their two parts, and the maps
    [y, x] of units: `units.LAYER` of a panel by rising interaction, `units.paper` of the two of
    Figure 4f."""

    layers: tuple
    seeds: tuple
    numbers: dict
    outputs: dict
    maps: dict


def inspect_directory(workdir, progress: bool = True) -> Inspection:
    """The inspection of the run in `workdir`, from its cache or made now and cached.

    Raises RunError for a run that is not finished or whose activations are not finite.
    """
    workdir = Path(workdir)
    found = _read(workdir)
    if found is None:
        found = inspect(results.load(workdir), progress)
        _write(workdir, found)
    return found


def inspect(run: Run, progress: bool = True) -> Inspection:
    """All measurements of a finished run, seed by seed."""
    task = run.config.task
    held_out = supports.held_out_mask(task).ravel()
    cells = dataset.every_cell(task)
    program = _Program(run)
    numbers, outputs, volumes = [], [], []
    bar = tqdm(run.config.training.seeds, desc=f"analysing {run.config.name}", unit="seed",
               disable=not progress)  # fmt: skip
    for index, seed in enumerate(bar):
        params = jax.tree.map(lambda leaf, index=index: leaf[index], run.params)
        features = jax.device_get(program.features(params, cells.codes))
        _check_finite(features, seed)
        metrics = program.metrics(params, cells.factors)
        numbers.append(
            {
                name: layers.layer_numbers(layer, cells.factors, held_out)
                | layers.geometry_numbers(None if metrics is None else metrics[name], held_out)
                | tuning.layer_tuning(layer, task.grid)
                for name, layer in features.items()
            }
        )
        measured, examples = _image_numbers(program, params, seed, features["output"], held_out)
        outputs.append(measured)
        if metrics is not None:
            volume = {name: geometry.volume_element(metric) for name, metric in metrics.items()}
            volumes.append(np.stack([volume[name] for name in features]))
        if index == 0:
            maps = examples | _unit_maps(features, run.config)
    names = tuple(features)
    if volumes:
        maps["volume"] = np.stack(volumes).reshape(len(volumes), len(names), task.grid, task.grid)
    maps["held_out"] = held_out.reshape(task.grid, task.grid)
    return Inspection(
        layers=names,
        seeds=tuple(run.config.training.seeds),
        numbers={
            n: np.array([[seed[k][n] for k in names] for seed in numbers])
            for n in numbers[0][names[0]]
        },
        outputs={name: np.array([seed[name] for seed in outputs]) for name in outputs[0]},
        maps=maps,
    )


class _Program:
    """The decoder of a run as compiled functions of one seed's parameters."""

    def __init__(self, run: Run):
        task = run.config.task
        self.task = task
        self.differentiable = task.code.name != "onehot"
        lowering = choose_lowering(backend=jax.default_backend(), trials=1, forward_mode=True)
        decoder = models.build(run.config.decoder, task.grid, lowering)

        def recorded(params, code):
            image, activations = decoder.apply(params, code)
            return activations | {"output": bump.to_signal(image, task.image)}

        def features(params, codes):
            flat = lambda code: jax.tree.map(jax.numpy.ravel, recorded(params, code))
            return jax.lax.map(flat, codes, batch_size=geometry.POINTS_AT_ONCE)

        def metrics(params, factors):
            of_factors = lambda point: recorded(params, encode(*point, task.grid, task.code))
            return geometry.metric_tensors(of_factors, factors)

        self.features = jax.jit(features)
        self._metrics = jax.jit(metrics)

    def metrics(self, params, factors):
        """Metric tensors by layer; None for a code without a derivative."""
        return jax.device_get(self._metrics(params, factors)) if self.differentiable else None

    def images(self, params, codes):
        return np.asarray(self.features(params, codes)["output"], np.float64)


def _image_kernels(signals_BxD, task) -> dict:
    """The three similarities of Figure 8."""
    gram = kernels.gram(signals_BxD)
    square = np.asarray(signals_BxD).reshape(-1, task.grid, task.grid)
    return {
        "cosine": kernels.cosine(gram),
        "l2": kernels.l2(gram),
        "overlap": kernels.overlap(square, amplitude=task.image.amplitude),
    }


def _image_numbers(program, params, seed, signals_BxD, held_out):
    """Numbers of the drawn image of one seed, and its maps: similarities, and the superpositions
    of a few held-out cells."""
    task = program.task
    if not held_out.any():
        raise RunError("config.task.support.region='none': nothing is held out to analyse")
    cells = dataset.every_cell(task)
    factors = np.asarray(cells.factors)
    targets = np.asarray(bump.to_signal(cells.targets, task.image)).reshape(len(factors), -1)
    points, outputs = factors[held_out], np.asarray(signals_BxD, np.float64)[held_out]
    numbers = {}
    true = _image_kernels(targets, task)
    similarities = _image_kernels(signals_BxD, task)
    for name, kernel in similarities.items():
        found = layers.agreements(kernel, factors, held_out, true[name])
        numbers |= {f"output.{name}.{key}": value for key, value in found.items()}
    training = dataset.training_set(loop.stream(jax.random.key(seed), "data"), task)
    mean_code = training.codes.mean(axis=0)
    numbers |= _ranks(signals_BxD, training.factors, task)
    halves = jax.vmap(superposition.mean_code_superpositions, (0, None))
    parts = {
        "mean_code": np.stack(
            [program.images(params, c) for c in halves(cells.codes[held_out], mean_code)], axis=1
        ),
        "sums": superposition.matching_sums(
            signals_BxD[~held_out], factors[~held_out], points
        ).sums,
    }
    others = superposition.other_coordinates(points, SHUFFLES)
    for name, part in parts.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # blank outputs have no R^2
            numbers[f"output.superposition.{name}.r2"] = np.nanmean(
                superposition.superposition_r2(outputs, part).r2
            )
            shuffled, _ = superposition.shuffled_r2(outputs, part, others)
            numbers[f"output.superposition.{name}.shuffled_r2"] = np.nanmean(shuffled)
    blank = np.mean(targets[held_out] ** 2)
    for name, isotropic in (("factorized", False), ("isotropic", True)):
        fit = kernels.kernel_regression(
            factors[~held_out], signals_BxD[~held_out], points, isotropic=isotropic
        )
        error = np.mean((fit.prediction - outputs) ** 2)
        numbers[f"output.kernel_regression.{name}_error"] = error / blank
    shape = (EXAMPLES, -1, task.grid, task.grid)
    # well inside the hole, where nothing near has been seen
    distance = evaluation.distance_to_seen(held_out.reshape(task.grid, task.grid)).ravel()[held_out]
    inside = np.flatnonzero(distance >= 0.6 * distance.max())
    chosen = inside[np.linspace(0, len(inside) - 1, EXAMPLES + 2).round().astype(int)[1:-1]]
    examples = {
        f"superposition.{name}": part[chosen].reshape(shape) for name, part in parts.items()
    }
    examples["superposition.output"] = outputs[chosen].reshape(EXAMPLES, task.grid, task.grid)
    examples["superposition.points"] = points[chosen]
    examples |= {f"similarity.{name}": kernel for name, kernel in similarities.items()}
    return numbers, {name: value.astype(np.float32) for name, value in examples.items()}


def _unit_maps(features, config) -> dict:
    """Maps (U, N, N) of a panel of units of every hidden layer, chosen by rule, and of the two
    units that the paper shows, if the decoder has them."""
    grid, maps = config.task.grid, {}
    for name, layer in features.items():
        chosen = tuning.choose_units(tuning.tuning(layer, grid), PANEL)
        maps[f"units.{name}"] = np.moveaxis(tuning.unit_maps(layer[:, chosen], grid), 2, 0)
    paper = []
    for number, channel, row, column in PAPER_UNITS if config.decoder.name == "conv" else ():
        layer = features.get(f"layer_{number:02d}")
        if layer is not None and channel < config.decoder.width:
            side = isqrt(layer.shape[1] // config.decoder.width)
            of_28 = 7 if number == 1 else 28
            place = (row * side // of_28, column * side // of_28)
            unit = tuning.unit_index(side, config.decoder.width, channel, *place)
            paper.append(tuning.unit_maps(layer[:, [unit]], grid)[..., 0])
    return maps | {"units.paper": np.array(paper).reshape(-1, grid, grid)}


def _ranks(signals_BxD, training_factors, task) -> dict:
    """Ranks of the drawn images over the factors (Eq 13 to 17), the largest of any pixel, and how
    far the law of the training draw is from a mixture of one, and of two, products (Eq 18-20)."""
    square = np.asarray(signals_BxD).reshape(-1, task.grid, task.grid)
    drawn = decomposition.target_rank(square)
    return {
        "output.target_rank": float(drawn.rank.max()),
        "output.epsilon_rank": float(drawn.epsilon_rank.max()),
        **_law_ranks(np.asarray(training_factors), task.grid),
    }


def _law_ranks(training_factors, grid: int) -> dict:
    """Of the points alone: a stripe is no point. NaN where there is none."""
    points = training_factors[~np.isnan(training_factors).any(axis=1)]
    names = [f"output.training_law_kl_rank_{k}" for k in (1, 2)]
    if not len(points):
        return dict.fromkeys(names, np.nan)
    x, y = np.round(points).astype(int).T
    law = np.zeros((grid, grid))
    np.add.at(law, (y, x), 1 / len(x))
    distances = decomposition.distribution_rank(law, max_rank=2).kl
    return {name: float(kl) for name, kl in zip(names, distances, strict=True)}


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
    return Inspection(tuple(saved["layers"]), tuple(saved["seeds"]), *groups, maps)
