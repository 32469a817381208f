"""Finished runs as one JSON value: everything that the explorer's page shows.

Images are precomputed at every cell, every seed and some checkpoints; at the last checkpoint also
half-way between the cells. They are whole numbers from 0 to `levels`, and every array is deflated.
How fine they are, and how many checkpoints there are, is chosen so that a page keeps its size
(`QUICK`): each network is made coarser, by `DETAILS`, until it fits. Before that, large images are
made coarser (`MOST_SIDE`) and, of many images, whole values of the factors are left out
(`MOST_ENTRIES`).

A network's value, with T seeds, K steps, B cells, M fine positions, D entries of an output:

    python      what opens the run: `cg.train` of a preset, or `cg.load`;  about: a sentence, or ''
    axes        name, values, fine (the values of fine positions), real, labels: one per factor
    map         the two axes that are shown first
    factors     their names;  labels: of each factor, by value
    thinned     what is left out, in a sentence, or ''
    points      (B, F) of a task without a grid, whose axes say where the page lays them out
    held_out    (B,) bool;  held_out_fine (M,)
    kind        'image', 'rgb' or 'curve', and the `shape` of one output; `origin` of an image
    given       the image that an answer is read off: its kind, shape and limits, and `values`
                (1, D, B); or None
    scores      {name: {'hit', 'values': (K, T, B)}}, the first is shown first
    drawn       (K, T, D, B);  drawn_fine (T, D, M), of the last step;  truths, truths_fine: (S, D,
                .) with S = T, or 1 where all seeds are asked for the same
    nearest     (S, D, Q) truths at the nearest seen points of the Q held-out cells
    interpolator  (T, D, Q), or None
    right       what makes a drawing right, in a sentence, by the name of a score
    rules       their names, `r2` (K, T, R, Q): R^2 of what is drawn at the held-out cells,
                on what each of R rules says
    layers      name, numbers by metric (T,), `units` (T, U, B), and with a derivative `volume`
                (T, B), log10; `lengths` (T, R, B), `cosines` (T, P, B) of the metric tensors
    live        the network of the first seed as `network.js` runs it, and the table of its codes at
                the axes' values, or None (`live`)
"""

import itertools
import json
import math
from functools import cached_property
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import stdtrit

from compgen_jax import grids
from compgen_jax.config import ABSENT, differences
from compgen_jax.metrics import geometry, superposition, tuning
from compgen_jax.presets import PRESETS
from compgen_jax.runs import predictions, results
from compgen_jax.runs.directory import RunError, clean
from compgen_jax.runs.measure import Recorder
from compgen_jax.runs.run import Run
from compgen_jax.statistics import LEVEL
from compgen_jax.tasks import images
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials

from .. import plotting
from .arrays import encode, encode_between, encode_scaled
from .live import code_table, live_network

# levels of an image at the last checkpoint and at earlier ones, half-way positions, checkpoints
DETAILS = (
    (255, 255, True, 10),
    (255, 127, True, 10),
    (255, 31, True, 10),
    (127, 15, True, 10),
    (63, 15, True, 6),
    (31, 15, True, 3),
    (31, 31, False, 3),
    (15, 15, False, 1),
)
QUICK, SEVERAL, LARGE = 4e6, 6e6, 10e6  # bytes of a page: one quick run, several, the paper's size
# entries at all cells of one seed: 28 x 28 images at 28 x 28 cells have more
LARGE_IMAGES = 600_000
PAGE = 150_000  # bytes of a page without its networks and their live forms, at most
MOST_CELLS, MOST_POINTS, MOST_SEEDS = 4096, 288, 8
MOST_ENTRIES = 2_000_000  # of images at all cells and seeds, in colour or of more than two factors
MOST_SIDE = 32  # pixels of an image
COLUMNS = 24  # of points that form no grid, laid out in rows
AT_ONCE = 256  # points
UNITS = 8  # of every layer
LAYER_NUMBERS = {
    "probe.id_r2": "probe R², outside",
    "probe.ood_r2": "probe R², held out",
    "anova.interaction": "interaction share",
    "decode.id_r2": "probe R², outside",
    "decode.ood_r2": "probe R², held out",
}
MOST_LIVE = 0.6  # of a network's share of the page


def payload(runs: dict, used: int = 0, seeds=()) -> dict:
    """{'networks': [...], 'level'} of finished runs by name.

    Args: used: bytes of the page that other things need; seeds: those to show, by default the first
    `MOST_SEEDS`. Raises RunError for a seed that a run lacks.
    """
    atlases = {name: Atlas(run, seeds) for name, run in runs.items()}
    is_large = any(atlas.truths[0].size > LARGE_IMAGES for atlas in atlases.values())
    room = LARGE if is_large else SEVERAL if len(runs) > 1 else QUICK
    room = (room - PAGE - used) / len(runs)
    networks = [within(room, name, atlas) for name, atlas in atlases.items()]
    return {"networks": networks, "level": LEVEL}


def within(room: float, name: str, atlas: "Atlas") -> dict:
    """A network's value in at most `room` characters, in the finest detail for which it fits, or
    else the coarsest. The live form is left out if it would take too much of them."""
    constant = atlas.description(name) | {"layers": atlas.layers()}
    live = atlas.live()
    constant["live"] = live if size_of(live) <= MOST_LIVE * room else None
    for detail in DETAILS:
        value = constant | atlas.images(*detail)
        if size_of(value) <= room:
            break
    return value


def size_of(value) -> int:
    """The number of characters of a value as JSON."""
    return len(json.dumps(clean(value), separators=(",", ":")))


class Atlas:
    """What a run answers at the points of a page, before it is made small.

    seeds, steps, cells, held_out: those that are shown.  axes, sizes: of their grid, or of the rows
    in which points without one stand.  predictions, scores: by step.  truths: at the cells.
    """

    def __init__(self, run: Run, seeds=()):
        self.run, self.task = run, tasks.on_grid(run.task)
        self.seeds = list(dict.fromkeys(seeds or run.seeds[:MOST_SEEDS]))  # without repeats
        for seed in set(self.seeds) - set(run.seeds):
            has = ", ".join(map(str, run.seeds))
            raise RunError(f"--seeds={seed}: {run.name} has no such seed; it has {has}")
        self.index = np.array([run.seeds.index(seed) for seed in self.seeds])
        self.whole_shape = predictions.shape_of(run.task)[1:]
        self.shape = page_shape(self.whole_shape)
        self.choose_points()
        self.held_out = np.asarray(self.task.held_out(self.cells))
        predict = loop.make_trainer(run.config).predict
        # points, (keys, params) -> what every seed predicts, what is true, and the scores
        self.program = over_trials(
            lambda points, seed: predict(*seed, points), run.config.execution.trials_per_device
        )
        self.steps = sorted({*run.kept_steps, loop.schedule_of(run.config, self.task).total})
        self.predictions, self.scores = {}, {}
        for step in self.steps:
            self.predictions[step], self.truths, self.scores[step] = self.answers(self.cells, step)

    def choose_points(self):
        """Sets `cells`, `chosen` (their indices), `axes`, `sizes` and, of the values half-way
        between those of the axes, `fine`: None without a real factor, for more than two factors,
        and for no grid or nothing between its cells."""
        task, self.fine = self.task, None
        if not tasks.has_grid(task):  # as many held-out points as ID ones, in their order
            held_out = tasks.regions(task)["ood"]
            regions = [np.flatnonzero(mask) for mask in (held_out, ~held_out) if mask.any()]
            least = min(map(len, regions))
            columns = min(COLUMNS, least)
            rows = min(least, MOST_POINTS) // columns
            self.chosen = np.concatenate([indices[: rows * columns] for indices in regions])
            self.cells = tasks.points(task)[self.chosen]
            self.sizes = (columns, len(regions) * rows)
            names = zip(("measured points", ""), self.sizes, strict=True)
            self.axes = [tasks.Factor(name, np.arange(size), real=False) for name, size in names]
            return
        limit, cells = MOST_CELLS, tasks.cells(task.factors)
        if len(task.factors) > 2 or kind_of(self.shape) == "rgb":
            entries = min(LARGE_IMAGES, MOST_ENTRIES // len(self.seeds))
            most = entries // math.prod(self.shape)
            limit = max(min(limit, most), 2 ** len(task.factors))
        held_out = np.asarray(task.held_out(cells))
        self.chosen, self.sizes = grids.subgrid(tasks.sizes(task), limit, held_out_B=held_out)
        self.cells = cells[self.chosen]
        self.axes = []
        for factor, column in zip(task.factors, self.cells.T, strict=True):
            values, labels = np.unique(column), factor.labels
            if labels:  # of the values that are left
                labels = tuple(labels[k] for k in np.searchsorted(factor.values, values))
            self.axes.append(factor._replace(values=values, labels=labels))
        if task.between and any(axis.real for axis in self.axes) and len(self.axes) <= 2:
            self.fine = []
            for axis in self.axes:
                values = np.asarray(axis.values, np.float64)
                between = (values[1:] + values[:-1]) / 2 if axis.real else []
                self.fine.append(np.sort([*values, *between]))

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
        axes = []
        for axis in self.axes:
            values = np.asarray(axis.values, float).tolist()
            axes.append(
                {
                    "name": axis.name,
                    "values": values,
                    "real": bool(axis.real),
                    "labels": list(axis.labels),
                }
            )
        for axis, fine in zip(axes, self.fine or (), strict=False):
            axis["fine"] = fine.tolist()
        held_out_fine = self.fine and encode(np.asarray(task.held_out(grids.points(self.fine))))
        return {
            "name": name,
            "python": in_python(run),
            "about": "",
            "axes": axes,
            "factors": [factor.name for factor in task.factors],
            "labels": [
                dict(zip(map("{:g}".format, f.values), f.labels, strict=False))
                for f in task.factors
            ],
            "map": list(tasks.map_axes(self.axes, self.held_out)),
            "thinned": self.thinned(),
            "points": None if tasks.has_grid(task) else encode(self.cells.astype(np.float32)),
            "held_out": encode(self.held_out),
            "held_out_fine": held_out_fine,
            "kind": kind_of(self.shape),
            "shape": list(self.shape),
            "origin": task.origin,
            "given": self.given(),
            # the first two factors are a place in the image
            "positions": isinstance(run.config.task, Bump),
            "seeds": self.seeds,
            "all_seeds": len(run.seeds),
            "error": task.error,
            "right": right_in_words(run.config.task),
            "t": float(stdtrit(count - 1, (1 + LEVEL) / 2)) if count > 1 else None,
        }

    def thinned(self) -> str:
        """What the page leaves out of a grid, in words; '' for nothing."""
        if not tasks.has_grid(self.task):
            return ""
        block, sizes = block_of(self.whole_shape), tasks.sizes(self.task)
        text = f"A pixel here is the mean of {block} × {block}." if block > 1 else ""
        axes = zip(self.sizes, sizes, self.axes, strict=True)
        if values := [f"{few} of {all_} of {a.name}" for few, all_, a in axes if few < all_]:
            text = (
                f"To stay small, this page shows {len(self.cells):,} of {math.prod(sizes):,} "
                f"combinations: these values of each factor: {', '.join(values)}. {text}"
            )
        return text

    def given(self) -> dict | None:
        """The input image at every cell, where the output is none."""
        shape = getattr(tasks.shapes(self.task)[0], "shape", ())
        if kind_of(self.shape) != "curve" or kind_of(shape) == "curve":
            return None
        values = as_pixels(np.asarray(self.inputs(self.seeds[0]))[None])
        packed = encode_scaled(np.swapaxes(values, 1, 2))
        return {
            "kind": kind_of(shape),
            "shape": list(page_shape(shape)),
            "values": packed,
            "low": packed["low"],
            "high": packed["high"],
            "origin": self.task.origin,
        }

    def images(self, levels: int, levels_before: int, half_way: bool, count: int) -> dict:
        """The part that depends on the detail."""
        # evenly spread, with the last and, of several, the first
        chosen = np.linspace(len(self.steps) - 1, 0, min(count, len(self.steps)))[::-1]
        chosen = chosen.round().astype(int)
        steps = [self.steps[k] for k in chosen]
        *before, last = (self.predictions[step] for step in steps)
        low = float(self.truths.min())
        least = min(float(np.quantile(last, 0.0005)), low)
        if kind_of(self.shape) == "curve":  # an image shows what is below `low` like `low`
            low = least
        high = max(float(np.quantile(last, 0.9995)), float(self.truths.max()))

        def shrink(values, levels=levels):
            return encode_between(np.swapaxes(values, -1, -2), least, high, levels)

        scores = {}  # those that say what is right first, and the error
        for name in ("rendered", self.task.accuracy, self.task.error):
            if name in self.scores[steps[-1]]:
                values = np.stack([self.scores[step][name] for step in steps])
                hit = bool(np.isin(values, (0, 1)).all()) and name != self.task.error
                values = values.astype(bool if hit else np.float32)
                scores[name] = {"hit": hit, "values": encode(values)}
        rules = None
        if self.held_out.any():
            names, r2 = self.rules
            rules = {"rules": names, "r2": encode_between(r2[chosen], 0.0, 1.0)}
        value = {name: None if v is None else shrink(v) for name, v in self.baselines.items()}
        value |= {"steps": steps, "low": low, "high": high, "rules": rules, "scores": scores}
        drawn, truths, drawn_fine, truths_fine = [], None, None, None
        if half_way and self.fine:  # which have the cells among them
            drawn_fine, truths_fine = map(shrink, self.fine_answers)
        else:
            drawn, truths = [shrink(last)], shrink(self.truths)
        drawn = [*(shrink(values, levels_before) for values in before), *drawn]
        fine = {"drawn_fine": drawn_fine, "truths_fine": truths_fine}
        return value | {"drawn": drawn, "truths": truths} | fine

    @cached_property
    def fine_answers(self):
        """(predictions, truths) of the last step at the fine positions."""
        return self.answers(grids.points(self.fine), self.steps[-1])[:2]

    @cached_property
    def baselines(self) -> dict:
        """`nearest` and `interpolator` of the payload, (S, Q, D) and (T, Q, D)."""
        values = {"nearest": None, "interpolator": None}
        if self.held_out.any():
            task, hidden = self.task, self.chosen[self.held_out]
            points = tasks.points(task)
            nearest = points[tasks.nearest_seen(task, tasks.regions(task)["ood"])[0][hidden]]
            values["nearest"] = self.answers(nearest, self.steps[-1])[1]
            if task.interpolated:
                task = task._replace(points=points[hidden])
                name = "interpolator"
                interpolated = results.interpolations(self.run.config, task, self.seeds, (name,))
                values[name] = as_pixels(interpolated[name][0])
        return values

    @cached_property
    def rules(self):
        """R^2 of what is drawn at the held-out cells on what rules that need not compose say there:
        the sums of its own ID outputs that share a factor (Eq 3), of true outputs that do, the
        nearest ID output and the interpolator's; and on what is asked. Names, and (K, T, R, Q)."""
        held_out, cells = self.held_out, self.cells
        sums = tasks.has_grid(self.task) and len(self.axes) > 1
        sums = sums and all(np.isin(c[held_out], c[~held_out]).all() for c in cells.T)
        nearest, interpolated = self.baselines.values()
        r2 = []
        for step, index in itertools.product(self.steps, range(len(self.seeds))):
            drawn = self.predictions[step][index]
            truths = self.truths[min(index, len(self.truths) - 1)]
            parts = {"what is asked": truths[held_out, None]}
            if sums:
                of_id = drawn[~held_out], cells[~held_out]
                true = superposition.matching_sums(truths, cells, cells[held_out])
                parts["superposition"] = superposition.matching_sums(*of_id, cells[held_out])
                parts["plus"] = true.sum(axis=1, keepdims=True)
            parts["nearest seen"] = nearest[min(index, len(nearest) - 1)][:, None]
            if interpolated is not None:
                parts["local interpolator"] = interpolated[index][:, None]
            r2.append(
                [superposition.superposition_r2(drawn[held_out], part) for part in parts.values()]
            )
        r2 = np.nan_to_num(r2)
        return list(parts), r2.reshape(len(self.steps), -1, *r2.shape[1:])

    def layers(self) -> list[dict]:
        """Numbers, unit maps and metric tensors of every layer."""
        run, task = self.run, self.task
        recorder, params, inputs = Recorder(run), self.params(self.steps[-1]), self.inputs(0)
        networks = [jax.tree.map(lambda leaf, k=k: leaf[k], params) for k in range(len(self.seeds))]
        features = [jax.device_get(recorder.features(network, inputs)) for network in networks]
        tensors = [{}]  # none without a grid, nor of a code that has no derivative
        if tasks.has_grid(task):
            tensors = [recorder.tensors(network, jnp.asarray(self.cells)) for network in networks]
        numbers = {
            name: run.layers(name)[self.index]
            for name in LAYER_NUMBERS
            if name.startswith("decode") != tasks.has_grid(task) and self.held_out.any()
        }
        layers = []
        for index, layer in enumerate(features[0]):
            units = [self.units(of_network[layer]) for of_network in features]
            least = min(map(len, units))
            value = {
                "name": layer,
                "units": encode_scaled(np.stack([maps[:least] for maps in units])),
                "numbers": {
                    LAYER_NUMBERS[name]: values[:, index].tolist()
                    for name, values in numbers.items()
                    if index < values.shape[1]
                },
            }
            if tensors[0]:
                tensors_TxBxRxR = np.stack([t[layer] for t in tensors]).astype(np.float64)
                squares = np.diagonal(tensors_TxBxRxR, axis1=-2, axis2=-1)
                i, j = np.triu_indices(tensors_TxBxRxR.shape[-1], k=1)
                cosines = np.asarray(geometry.cosines(tensors_TxBxRxR))[..., i, j]
                volume = np.sqrt(np.maximum(np.linalg.det(tensors_TxBxRxR), 0))
                lengths = np.moveaxis(np.sqrt(np.maximum(squares, 0)), -1, 1)
                value |= {
                    "volume": encode_scaled(geometry.log_volume(volume, axis=1)),
                    "lengths": encode_scaled(lengths),
                    "cosines": encode_between(np.moveaxis(cosines, -1, 1), -1.0, 1.0),
                }
            layers.append(value)
        return layers

    def units(self, features_BxD):
        """(U, B): some units of a layer, by rising interaction, or those that vary most."""
        units = ()
        if tasks.has_grid(self.task) and len(self.sizes) > 1:
            units = tuning.choose_units(tuning.tuning(features_BxD, self.sizes), UNITS)
        if not len(units):  # without a grid, or of a layer that is constant
            units = np.argsort(-features_BxD.var(axis=0), kind="stable")[:UNITS]
        return features_BxD[:, units].T

    def live(self) -> dict | None:
        """The first seed's network with the table of its codes; None without either."""
        if not tasks.has_grid(self.task) or self.shape != self.whole_shape:
            return None
        spec = live_network(self.run, self.seeds[0])
        table = code_table(self.task, self.fine or [axis.values for axis in self.axes])
        return None if spec is None or table is None else {"spec": spec, "table": table}


# --- in words ----------------------------------------------------------------------------------


def in_python(run) -> str:
    """The Python that opens a run: `cg.train` of a preset and what differs from it, which also
    trains it for whoever has the page alone, or `cg.load`. The path is relative to where this runs,
    or the run's last name."""
    path = run.path
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    elif path.is_absolute():
        path = Path(path.name)
    if run.name not in PRESETS:
        return f"cg.load({path.as_posix()!r})"
    fields = differences(run.config, PRESETS[run.name]).items()
    overrides = {field: value for field, (value, _) in fields if value is not ABSENT}
    overrides = f", {overrides}" if overrides else ""
    return f"cg.train({run.name!r}, {path.as_posix()!r}{overrides})"


def right_in_words(settings) -> dict:
    """What `images.rendered` asks of a bump."""
    if not isinstance(settings, Bump):
        return {}
    drawing = "drawing" if settings.bumps == 1 else "drawing, less the true second bump,"
    text = (
        f"Right: the {drawing} has a squared correlation of at least {images.LEAST_R2:g} with "
        f"what is asked, {images.LEAST_GAIN:g} to {images.MOST_GAIN:g} times its contrast, and "
        "less likeness to the nearest combination outside the held-out region."
    )
    return {"rendered": text + (" Its size is right, too." if settings.size.values else "")}


# --- images ------------------------------------------------------------------------------------


def kind_of(shape) -> str:
    if not plotting.is_image(shape):
        return "curve"
    return "image" if len(shape) == 2 else "rgb"


def block_of(shape) -> int:
    """How many pixels along each axis of an image become one of the page's."""
    return 1 if kind_of(shape) == "curve" else -(-max(shape[:2]) // MOST_SIDE)


def page_shape(shape) -> tuple[int, ...]:
    return (*(-(-side // block_of(shape)) for side in shape[:2]), *shape[2:])


def as_pixels(values):
    """(T, B, ...) as (T, B, D), large images as means over blocks of pixels."""
    if (block := block_of(values.shape[2:])) > 1:
        for axis in (2, 3):
            starts = np.arange(0, values.shape[axis], block)
            counts = np.add.reduceat(np.ones_like(values), starts, axis=axis)
            values = np.add.reduceat(values, starts, axis=axis) / counts
    return values.reshape(*values.shape[:2], -1)
