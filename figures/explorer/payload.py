"""Finished runs as one JSON value: everything that the explorer's page shows.

Images are computed at every cell, seed and some checkpoints; at the last also half-way between the
cells. Each network is made coarser, by `DETAILS`, until the page fits `QUICK`; large images are
coarser before (`MOST_SIDE`), and of many, values of factors are left out (`MOST_ENTRIES`).

A network's value, with T seeds, K steps, B cells, M fine positions, D entries of an output:

    python      what opens the run: `cg.train` of a preset, or `cg.load`;  about: a sentence, or ''
    axes        name, values, fine (the values of fine positions), real, labels: one per factor
    map         the two axes that are shown first
    factors     their names;  labels: of each factor, by value
    thinned     what is left out, in a sentence, or ''
    points      (B, F) of a task without a grid, whose axes say where the page lays them out
    held_out    (B,) bool;  held_out_fine (M,)
    kind        'image', 'rgb' or 'curve', and the `shape` of one output; `origin` of an image
    given       the image that an answer is read off: its kind, shape and origin, and `values`
                (1, D, B); or None
    scores      {name: {'hit', 'values': (K, T, B)}}, the first is shown first
    drawn       (K, T, D, B);  drawn_fine (T, D, M), of the last step;  truths, truths_fine: (S, D,
                .) with S = T, or 1 where all seeds are asked for the same
    nearest     (S, D, Q) truths at the nearest seen points of the Q held-out cells
    interpolator  (T, D, Q), or None
    rules       their names, `r2` (K, T, R, Q): R^2 of what is drawn at the held-out cells,
                on what each of R rules says
    layers      name, numbers by metric (T,), `units` (T, U, B), and with a derivative `volume`
                (T, B), log10; `lengths` (T, R, B), `cosines` (T, P, B) of the metric tensors
    live        the network of the first seed as `network.js` runs it, and the table of its codes at
                the axes' values, or None (`live`)
"""

import json
import math
from functools import cached_property
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from scipy.special import stdtrit

from compgen_jax import grids
from compgen_jax.metrics import geometry, tuning
from compgen_jax.metrics.superposition import matching_sums, superposition_r2
from compgen_jax.presets import PRESETS
from compgen_jax.runs import predictions, results
from compgen_jax.runs.directory import RunError, clean
from compgen_jax.runs.measure import Recorder
from compgen_jax.runs.run import Run
from compgen_jax.statistics import LEVEL
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials

from .. import plotting
from .arrays import encode, encode_between
from .live import code_table, live_network

# levels of an image at the last checkpoint and at earlier ones, half-way positions, checkpoints
DETAILS = (
    (255, 255, True, 10),
    (255, 63, True, 10),
    (127, 15, True, 6),
    (31, 15, True, 3),
    (31, 31, False, 3),
    (15, 15, False, 2),
)
QUICK, SEVERAL, LARGE = 4e6, 6e6, 10e6  # bytes of a page: one quick run, several, the paper's size
# entries at all cells of one seed: 28 x 28 images at 28 x 28 cells have more
LARGE_IMAGES = 600_000
PAGE = 300_000  # bytes of a page without its networks, at most
MOST_CELLS, MOST_POINTS, MOST_SEEDS = 4096, 288, 8
MOST_ENTRIES = 2_000_000  # of images at all cells and seeds, in colour or of more than two factors
MOST_SIDE = 32  # pixels of an image
COLUMNS = 24  # of points that form no grid, laid out in rows
AT_ONCE = 256  # points
UNITS = 8  # of every layer
NUMBERS = {  # of layers, on a grid and without one
    True: {
        "probe.id_r2": "probe R², outside",
        "probe.ood_r2": "probe R², held out",
        "anova.interaction": "interaction share",
    },
    False: {"decode.id_r2": "probe R², outside", "decode.ood_r2": "probe R², held out"},
}
MOST_LIVE = 0.6  # of a network's share of the page


def payload(runs: dict, seeds=()) -> dict:
    """{'networks': [...], 'level'} of finished runs by name, of these seeds, by default the first
    `MOST_SEEDS`. Raises RunError for a seed that a run lacks."""
    atlases = {name: Atlas(run, seeds) for name, run in runs.items()}
    is_large = any(atlas.truths[0].size > LARGE_IMAGES for atlas in atlases.values())
    room = LARGE if is_large else SEVERAL if len(runs) > 1 else QUICK
    room = (room - PAGE) / len(runs)
    networks = [within(room, name, atlas) for name, atlas in atlases.items()]
    return {"networks": networks, "level": LEVEL}


def within(room: float, name: str, atlas: "Atlas") -> dict:
    """A network's value in at most `room` characters, in the finest detail for which it fits, or
    else the coarsest. The live form is left out if it would take too much of them."""
    value = atlas.description(name) | {"layers": atlas.layers(), "live": None}
    if tasks.has_grid(atlas.task) and atlas.block == 1:
        operations = live_network(atlas.run, atlas.seeds[0])
        table = code_table(atlas.task, atlas.fine or [axis.values for axis in atlas.axes])
        if operations and table and size_of([operations, table]) <= MOST_LIVE * room:
            value["live"] = {"operations": operations, "table": table}
    for detail in DETAILS:
        value |= atlas.images(*detail)
        if size_of(value) <= room:
            break
    return value


def size_of(value) -> int:
    """The number of characters of a value as JSON."""
    return len(json.dumps(clean(value), separators=(",", ":")))


def shown_points(task: tasks.Task, most: int) -> tuple:
    """Of the points that a page shows, `most` of a grid: indices (B,), and axes; of real axes, up
    to two, also the values with those half-way between them (None: no point has others)."""
    held_out, axes = tasks.regions(task)["ood"], []
    if not tasks.has_grid(task):  # as many held-out points as ID ones, in their order
        regions = [np.flatnonzero(mask) for mask in (held_out, ~held_out) if mask.any()]
        least = min(map(len, regions))
        columns = min(COLUMNS, least)
        rows = min(least, MOST_POINTS) // columns
        chosen = np.concatenate([indices[: rows * columns] for indices in regions])
        for name, size in (("measured points", columns), ("", len(regions) * rows)):
            axes.append(tasks.Factor(name, np.arange(size), real=False))
        return chosen, axes, None
    chosen, _ = grids.subgrid(tasks.sizes(task), most, held_out_B=held_out)
    for factor, column in zip(task.factors, tasks.points(task)[chosen].T, strict=True):
        values = np.asarray(factor.values, np.float32)
        index = np.flatnonzero(np.isin(values, column))
        labels = tuple(factor.labels[k] for k in index if factor.labels)
        axes.append(factor._replace(values=values[index].astype(np.float64), labels=labels))
    if len(axes) > 2 or not (task.between and any(axis.real for axis in axes)):
        return chosen, axes, None
    fine = []
    for axis in axes:
        count = len(axis.values)
        halves = np.interp(np.arange(2 * count - 1) / 2, np.arange(count), axis.values)
        fine.append(halves if axis.real else axis.values)
    return chosen, axes, fine


class Atlas:
    """What a run answers at the points of a page (`shown_points`), before it is made small:
    predictions and scores by step, truths."""

    def __init__(self, run: Run, seeds=()):
        self.run, self.task = run, tasks.on_grid(run.task)
        self.seeds = list(dict.fromkeys(seeds or run.seeds[:MOST_SEEDS]))  # without repeats
        for seed in {*self.seeds} - {*run.seeds}:
            raise RunError(f"--seeds={seed}: {run.name} has no such seed; it has {run.seeds}")
        self.index = np.array([run.seeds.index(seed) for seed in self.seeds])
        self.kind, self.block, self.shape = coarse(predictions.shape_of(run.task)[1:])
        most, factors = MOST_CELLS, len(run.task.factors)
        if factors > 2 or self.kind == "rgb":
            entries = len(self.seeds) * math.prod(self.shape)
            most = max(min(most, MOST_ENTRIES // entries), 2**factors)
        self.chosen, self.axes, self.fine = shown_points(self.task, most)
        self.cells, self.sizes = tasks.points(self.task)[self.chosen], tasks.counts(self.axes)
        self.held_out = tasks.regions(self.task)["ood"][self.chosen]
        predict = loop.make_trainer(run.config).predict
        # points, (keys, params) -> what every seed predicts, what is true, and the scores
        self.program = over_trials(
            lambda points, seed: predict(*seed, points), run.config.execution.trials_per_device
        )
        self.steps = sorted({*run.kept_steps, loop.schedule_of(run.config, self.task).total})
        self.predictions, self.scores = {}, {}
        for step in self.steps:
            self.predictions[step], self.truths, self.scores[step] = self.answers(self.cells, step)
        if self.fine:
            self.fine_answers = self.answers(grids.points(self.fine), self.steps[-1])[:2]
        self.nearest = self.interpolated = None
        if self.held_out.any():
            task, points = self.task, tasks.points(self.task)
            hidden = self.chosen[self.held_out]
            index, _ = tasks.nearest_seen(task, tasks.regions(task)["ood"])
            self.nearest = self.answers(points[index[hidden]], self.steps[-1])[1]
            if task.interpolated:
                task, name = task._replace(points=points[hidden]), "interpolator"
                by_name = results.interpolations(run.config, task, self.seeds, (name,))
                self.interpolated = as_pixels(by_name[name][0])

    def params(self, step: int):
        params = self.run.params if step == self.steps[-1] else self.run.at(step).params
        return jax.tree.map(lambda leaf: leaf[self.index], params)

    def answers(self, points, step: int):
        """Predictions (T, B, D), truths (S, B, D) and scores by name (T, B)."""
        networks, count = (results.seed_keys(self.seeds), self.params(step)), len(points)
        # always as many at once, the last again and again, so that one program is compiled
        indices = np.minimum(np.arange(-(-count // AT_ONCE) * AT_ONCE), count - 1)
        parts = [
            self.program(jnp.asarray(points[batch]), networks)
            for batch in indices.reshape(-1, AT_ONCE)
        ]
        predicted, truths, scores = jax.tree.map(
            lambda *batches: np.concatenate(batches, axis=1)[:, :count], *parts
        )
        truths = truths[:1] if (truths == truths[:1]).all() else truths
        return as_pixels(predicted), as_pixels(truths), scores

    def inputs(self, seed: int):
        """What a model is given at every cell."""
        examples = jax.jit(lambda key: tasks.examples_at(self.task, key, self.cells).input)
        return examples(loop.stream(jax.random.key(seed), "test"))

    # --- the parts of a network's value ----------------------------------------------------------

    def description(self, name: str) -> dict:
        run, task, count = self.run, self.task, len(self.seeds)
        on_grid, axes = tasks.has_grid(task), []
        for axis in self.axes:
            values, labels = [float(value) for value in axis.values], axis.labels
            axes.append({"name": axis.name, "values": values, "real": axis.real, "labels": labels})
        held_out_fine, given, thinned = None, None, ""
        if self.fine:
            held_out_fine = encode(task.held_out(grids.points(self.fine)))
            for axis, fine in zip(axes, self.fine, strict=True):
                axis["fine"] = fine.tolist()
        kind, _, shape = coarse(getattr(tasks.shapes(task)[0], "shape", ()))
        if self.kind == "curve" != kind:
            values = as_pixels(np.asarray(self.inputs(self.seeds[0]))[None])
            given = {
                "kind": kind,
                "shape": shape,
                "values": encode_between(np.swapaxes(values, 1, 2)),
                "origin": task.origin,
            }
        cells, few = len(tasks.points(task)), len(self.cells)
        if on_grid and few < cells:
            thinned = f"To stay small, this page shows {few:,} of {cells:,} combinations. "
        if on_grid and self.block > 1:
            thinned += f"A pixel here is the mean of {self.block} × {self.block}."
        return {
            "name": name,
            "python": in_python(run),
            "axes": axes,
            "factors": [factor.name for factor in task.factors],
            "labels": [
                dict(zip(map("{:g}".format, f.values), f.labels, strict=False))
                for f in task.factors
            ],
            "map": tasks.map_axes(self.axes, self.held_out),
            "thinned": thinned,
            "points": None if on_grid else encode(self.cells),
            "held_out": encode(self.held_out),
            "held_out_fine": held_out_fine,
            "kind": self.kind,
            "shape": self.shape,
            "origin": task.origin,
            "given": given,
            # the first two factors are a place in the image
            "positions": isinstance(run.config.task, Bump),
            "seeds": self.seeds,
            "all_seeds": len(run.seeds),
            "t": float(stdtrit(count - 1, (1 + LEVEL) / 2)) if count > 1 else None,
        }

    def images(self, levels: int, levels_before: int, half_way: bool, count: int) -> dict:
        """The part that depends on the detail."""
        chosen = np.unique(np.linspace(0, len(self.steps) - 1, count).round().astype(int))
        steps = [self.steps[k] for k in chosen]
        *before, last = (self.predictions[step] for step in steps)
        low = float(self.truths.min())
        least = min(float(np.quantile(last, 0.0005)), low)
        if self.kind == "curve":  # an image shows what is below `low` like `low`
            low = least
        high = max(float(np.quantile(last, 0.9995)), float(self.truths.max()))

        def shrink(values, levels=levels):
            if values is not None:
                return encode_between(np.swapaxes(values, -1, -2), least, high, levels)

        scores = {}  # those that say what is right first, and the error
        for name in ("rendered", self.task.accuracy, self.task.error):
            if name in self.scores[steps[-1]]:
                values = np.stack([self.scores[step][name] for step in steps])
                hit = name != self.task.error
                values = values.astype(bool) if hit else values
                scores[name] = {"hit": hit, "values": encode(values)}
        rules = None
        if self.held_out.any():
            names, r2 = self.rules
            rules = {"rules": names, "r2": encode_between(r2[chosen], 0.0, 1.0)}
        drawn, truths = [shrink(values, levels_before) for values in before], None
        drawn_fine = truths_fine = None
        if half_way and self.fine:  # which have the cells among them
            drawn_fine, truths_fine = map(shrink, self.fine_answers)
        else:
            drawn, truths = [*drawn, shrink(last)], shrink(self.truths)
        return {
            "steps": steps,
            "low": low,
            "high": high,
            "scores": scores,
            "rules": rules,
            "nearest": shrink(self.nearest),
            "interpolator": shrink(self.interpolated),
            "drawn": drawn,
            "truths": truths,
            "drawn_fine": drawn_fine,
            "truths_fine": truths_fine,
        }

    @cached_property
    def rules(self):
        """Names of rules, and R^2 (K, T, R, Q) of what is drawn at the held-out cells on what each
        says: what is asked, and rules that need not compose, as sums of ID outputs (Eq 3)."""
        held_out, cells = self.held_out, self.cells
        sums = all(np.isin(c[held_out], c[~held_out]).all() for c in cells.T)
        r2, points = [], (cells[~held_out], cells[held_out])
        for step, seed in np.ndindex(len(self.steps), len(self.seeds)):
            drawn = self.predictions[self.steps[step]][seed]
            truths = self.truths[seed % len(self.truths)]
            parts = {"what is asked": truths[held_out, None]}
            if sums:
                true = matching_sums(truths, cells, cells[held_out])
                parts["superposition"] = matching_sums(drawn[~held_out], *points)
                parts["plus"] = true.sum(axis=1, keepdims=True)
            parts["nearest seen"] = self.nearest[seed % len(self.nearest)][:, None]
            if self.interpolated is not None:
                parts["local interpolator"] = self.interpolated[seed][:, None]
            r2 += [superposition_r2(drawn[held_out], part) for part in parts.values()]
        r2 = np.reshape(np.nan_to_num(r2), (len(self.steps), len(self.seeds), len(parts), -1))
        return list(parts), r2

    def layers(self) -> list[dict]:
        """Numbers, unit maps and metric tensors of every layer."""
        on_grid, recorder, inputs = tasks.has_grid(self.task), Recorder(self.run), self.inputs(0)
        params, features, tensors = self.params(self.steps[-1]), [], []
        for index in range(len(self.seeds)):
            network = jax.tree.map(lambda leaf, k=index: leaf[k], params)
            features.append(jax.device_get(recorder.features(network, inputs)))
            if on_grid:  # {} of a code that has no derivative
                tensors.append(recorder.tensors(network, jnp.asarray(self.cells)))
        numbers = {
            words: self.run.layers(name)[self.index]
            for name, words in NUMBERS[on_grid].items()
            if self.held_out.any()
        }
        layers = []
        for index, name in enumerate(features[0]):
            units = []
            for features_BxD in (of_network[name] for of_network in features):
                chosen = ()
                if on_grid and len(self.sizes) > 1:  # by rising interaction
                    chosen = tuning.choose_units(tuning.tuning(features_BxD, self.sizes), UNITS)
                if not len(chosen):  # of a layer that is constant, too: those that vary most
                    chosen = np.argsort(-features_BxD.var(axis=0), kind="stable")[:UNITS]
                units.append(features_BxD[:, chosen].T)
            least = min(map(len, units))
            value = {
                "name": name,
                "units": encode_between(np.stack([maps[:least] for maps in units])),
                "numbers": {
                    words: values[:, index].tolist()
                    for words, values in numbers.items()
                    if index < values.shape[1]
                },
            }
            if any(tensors):
                tensors_TxBxRxR = np.stack([t[name] for t in tensors]).astype(np.float64)
                squares_TxRxB = np.einsum("tbrr->trb", tensors_TxBxRxR)
                i, j = np.triu_indices(len(squares_TxRxB[0]), k=1)
                cosines = np.asarray(geometry.cosines(tensors_TxBxRxR))[..., i, j]
                volume = np.sqrt(np.maximum(np.linalg.det(tensors_TxBxRxR), 0))
                value |= {
                    "volume": encode_between(geometry.log_volume(volume, axis=1)),
                    "lengths": encode_between(np.sqrt(np.maximum(squares_TxRxB, 0))),
                    "cosines": encode_between(np.moveaxis(cosines, -1, 1), -1, 1),
                }
            layers.append(value)
        return layers


# --- in words ----------------------------------------------------------------------------------


def in_python(run) -> str:
    """The Python that opens a run: `cg.train` of a preset and what differs from it, which also
    trains it for whoever has the page alone, or `cg.load`. The path is relative to where this runs,
    or the run's last name."""
    path = run.path
    if path.is_absolute():
        path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(path.name)
    if PRESETS.get(run.name) == run.config:
        return f"cg.train({run.name!r}, {path.as_posix()!r})"
    return f"cg.load({path.as_posix()!r})"


# --- images ------------------------------------------------------------------------------------


def coarse(shape) -> tuple[str, int, tuple[int, ...]]:
    """The kind of an output; how many pixels along each axis of an image become one of the page's,
    and its shape there."""
    if not plotting.is_image(shape):
        return "curve", 1, shape
    block = -(-max(shape[:2]) // MOST_SIDE)
    sides = (-(-side // block) for side in shape[:2])
    return "image" if len(shape) == 2 else "rgb", block, (*sides, *shape[2:])


def as_pixels(values):
    """(T, B, ...) as (T, B, D), large images as means over blocks of pixels."""
    seeds, points, shape = *values.shape[:2], values.shape[2:]
    _, block, _ = coarse(shape)
    if block > 1:
        images = values.reshape(seeds * points, *shape[:2], -1)
        blocks = block, block
        values = nn.avg_pool(images, blocks, blocks, "SAME", count_include_pad=False)
    return np.asarray(values).reshape(seeds, points, -1)
