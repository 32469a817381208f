"""Finished runs as one JSON value: everything that the explorer's page shows.

Images are precomputed at every cell, every seed and some checkpoints; at the last checkpoint also
half-way between the cells. They are whole numbers from 0 to `levels`, and every array is deflated.
How fine they are, and how many checkpoints there are, is chosen so that a page keeps its size
(`limit`): the largest network is made coarser, by `DETAILS`, until all fit. Before that, large
images are made coarser (`MOST_SIDE`) and, of many images, whole values of the factors are left out
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
from compgen_jax.runs import predictions as given_predictions
from compgen_jax.runs import results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.recording import Recorder
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
DETAILS = ((255, 255, True, 10), (255, 127, True, 10), (255, 63, True, 10), (255, 31, True, 10),
           (127, 31, True, 10), (127, 15, True, 10), (63, 15, True, 10), (63, 15, True, 6),
           (31, 15, True, 4), (31, 15, True, 3), (31, 31, False, 3),
           (15, 15, False, 1))  # fmt: skip
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
MOST_CHANGED = 3  # fields of a preset, to call a run by it
MOST_LIVE = 0.6  # of a network's share of the page


def payload(runs: dict, taken: int = 0, seeds=()) -> dict:
    """{'networks': [...], 'level'} of finished runs by name.

    Args: taken: bytes of the page that other things need; seeds: those to show, by default the
    first `MOST_SEEDS`. Raises RunError for a seed that a run lacks.
    """
    atlases = {name: _Atlas(run, seeds) for name, run in runs.items()}
    room = limit(atlases.values()) - PAGE - taken
    return {"networks": within(room, atlases), "level": LEVEL}


def within(room: float, atlases: dict) -> list[dict]:
    """The networks' values in at most `room` characters: each in the finest detail, and then the
    largest made coarser until all fit or none is left to be coarser."""
    constant = {name: one.constant(name, room / len(atlases)) for name, one in atlases.items()}
    images = {name: one.images(*DETAILS[0]) for name, one in atlases.items()}
    left = {name: list(DETAILS[1:]) for name in atlases}
    while _size(constant) + _size(images) > room and any(left.values()):
        largest = max(filter(left.get, left), key=lambda name: _size(images[name]))
        images[largest] = atlases[largest].images(*left[largest].pop(0))
    return [constant[name] | images[name] for name in atlases]


def limit(atlases) -> float:
    """The number of bytes that a page may have."""
    if any(atlas.truths[0].size > LARGE_IMAGES for atlas in atlases):
        return LARGE
    return SEVERAL if len(atlases) > 1 else QUICK


class _Atlas:
    """What a run answers, before it is made small."""

    def __init__(self, run: Run, seeds):
        self.run, self.task = run, tasks.on_grid(run.task)
        self.seeds = list(dict.fromkeys(seeds or run.seeds[:MOST_SEEDS]))  # each once
        for seed in set(self.seeds) - set(run.seeds):
            has = ", ".join(map(str, run.seeds))
            raise RunError(f"--seeds={seed}: {run.name} has no such seed; it has {has}")
        self.index = np.array([run.seeds.index(seed) for seed in self.seeds])
        self.cells = self._cells()
        self.fine = _fine(self.task, self.axes)
        self.fine_points = grids.points(self.fine) if self.fine else None
        predict = loop.make_trainer(run.config).predict
        of_seed = lambda points, seed: predict(*seed, points)
        # points, (keys, params) -> what every seed says, what is true, and the scores
        self._program = over_trials(of_seed, run.config.execution.trials_per_device)
        self.steps = sorted({*run.kept_steps, loop.total_steps(run.config, self.task)})
        self.predictions, self.scores = {}, {}
        for step in self.steps:
            self.predictions[step], self.truths, self.scores[step] = self.answers(self.cells, step)

    def _cells(self):
        """The points that are shown; sets `axes`, `held_out` and `sizes`."""
        task = self.task
        if tasks.has_grid(task):
            limit, cells = MOST_CELLS, tasks.cells(task.factors)
            shape = given_predictions.shape_of(self.run.task)[1:]
            if len(task.factors) > 2 or _kind(shape) == "rgb":
                entries = np.ones((1, *shape))
                most = min(LARGE_IMAGES, MOST_ENTRIES // len(self.seeds)) // _shrunk(entries).size
                limit = max(min(limit, most), 2 ** len(task.factors))
            held_out = np.asarray(task.held_out(cells))
            chosen, self.sizes = grids.subgrid(tasks.sizes(task), limit, held_out_B=held_out)
            cells = cells[chosen]
            self.axes = []
            for factor, column in zip(task.factors, cells.T, strict=True):
                values, kept = np.unique(column), factor.labels
                if kept:  # of the values that are left
                    kept = tuple(kept[k] for k in np.searchsorted(factor.values, values))
                self.axes.append(factor._replace(values=values, labels=kept))
        else:  # as many held-out points as seen ones, in their order
            held_out = tasks.regions(task)["ood"]
            each = [np.flatnonzero(of) for of in (held_out, ~held_out) if of.any()]
            least = min(map(len, each))
            columns = min(COLUMNS, least)
            rows = min(least, MOST_POINTS) // columns
            chosen = np.concatenate([index[: rows * columns] for index in each])
            cells = tasks.points(task)[chosen]
            self.sizes = (columns, len(each) * rows)
            places = zip(("measured points", ""), self.sizes, strict=True)
            self.axes = [tasks.Factor(name, np.arange(size), real=False) for name, size in places]
        self.chosen, self.held_out = chosen, np.asarray(task.held_out(cells))
        return cells

    def thinned(self) -> str:
        """What the page leaves out of a grid, in words; '' for nothing."""
        of, block = tasks.sizes(self.task), _block(self.whole_shape)
        if not tasks.has_grid(self.task) or (of == self.sizes and block == 1):
            return ""
        kept = zip(self.sizes, of, self.axes, strict=True)
        values = ", ".join(f"{few} of {every} of {a.name}" for few, every, a in kept if few < every)
        pixels = f"A pixel here is the mean of {block} × {block}." if block > 1 else ""
        if not values:
            return pixels
        return (
            f"To stay small, this page shows {len(self.cells):,} of {math.prod(of):,} "
            f"combinations: these values of each factor: {values}. {pixels}"
        )

    def params(self, step: int):
        params = self.run.params if step == self.steps[-1] else self.run.at(step).params
        return jax.tree.map(lambda leaf: leaf[self.index], params)

    def answers(self, points, step: int):
        """Predictions (T, B, D), truths (S, B, D) and scores by name (T, B)."""
        networks, count = (results.seed_keys(self.seeds), self.params(step)), len(points)
        # always as many at once, the last again and again, so that one program is compiled
        batches = np.arange(-(-count // AT_ONCE) * AT_ONCE).reshape(-1, AT_ONCE)
        parts = [self._program(jnp.asarray(points[np.minimum(batch, count - 1)]), networks)
                 for batch in batches]  # fmt: skip
        joined = lambda *a: np.concatenate(a, axis=1)[:, :count]
        predictions, truths, scores = jax.tree.map(joined, *parts)
        truths = truths[:1] if (truths == truths[:1]).all() else truths
        self.whole_shape = truths.shape[2:]
        predictions, truths = _shrunk(predictions, 2), _shrunk(truths, 2)
        self.shape = truths.shape[2:]
        return _flat(predictions), _flat(truths), scores

    def constant(self, name: str, room: float) -> dict:
        """The part of the network's value that is the same in every detail. The live form is left
        out if it would take too much of the network's share of the page."""
        live = self.live()
        if live and _size(live) > MOST_LIVE * room:
            live = None
        return self.description(name) | {"layers": self.layers(), "live": live}

    def description(self, name: str) -> dict:
        run, task = self.run, self.task
        numbers, count = lambda values: np.asarray(values, float).tolist(), len(self.seeds)
        axes = [{"name": axis.name, "values": numbers(axis.values), "real": bool(axis.real),
                 "labels": list(axis.labels)} for axis in self.axes]  # fmt: skip
        for axis, values in zip(axes, self.fine or (), strict=False):
            axis["fine"] = numbers(values)
        return {
            "name": name,
            "python": _in_python(run),
            "about": "",
            "axes": axes,
            "factors": [factor.name for factor in task.factors],
            "labels": [dict(zip(map("{:g}".format, f.values), f.labels, strict=False))
                       for f in task.factors],
            "map": list(tasks.map_axes(self.axes, self.held_out)),
            "thinned": self.thinned(),
            "points": None if tasks.has_grid(task) else encode(self.cells.astype(np.float32)),
            "held_out": encode(self.held_out),
            "held_out_fine": self.fine and encode(np.asarray(task.held_out(self.fine_points))),
            "kind": _kind(self.shape),
            "shape": list(self.shape),
            "origin": task.origin,
            "given": self.given(),
            # the first two factors are a place in the image
            "positions": isinstance(run.config.task, Bump),
            "seeds": self.seeds,
            "all_seeds": len(run.seeds),
            "error": task.error,
            "right": _right(run.config.task),
            "t": float(stdtrit(count - 1, (1 + LEVEL) / 2)) if count > 1 else None,
        }  # fmt: skip

    def given(self) -> dict | None:
        """The input image at every cell, where the output is none."""
        shape = getattr(tasks.shapes(self.task)[0], "shape", ())
        if _kind(self.shape) != "curve" or _kind(shape) == "curve":
            return None
        values = _shrunk(np.asarray(self._inputs(self.seeds[0]))[None], 2)
        packed = encode_scaled(np.swapaxes(_flat(values), 1, 2))
        return {"kind": _kind(shape), "shape": list(values.shape[2:]), "values": packed,
                "low": packed["low"], "high": packed["high"],
                "origin": self.task.origin}  # fmt: skip

    def _inputs(self, seed: int):
        """What a model is given at every cell."""
        examples = jax.jit(lambda key: tasks.examples_at(self.task, key, self.cells).input)
        return examples(loop.stream(jax.random.key(seed), "test"))

    def images(self, levels: int, levels_before: int, half_way: bool, count: int) -> dict:
        """The part that depends on the detail."""
        fine = self.half_way if half_way else None
        # evenly spread, with the first and the last
        chosen = np.linspace(0, len(self.steps) - 1, min(count, len(self.steps))).round()
        steps = self.steps[-1:] if count == 1 else [self.steps[int(k)] for k in chosen]
        last = self.predictions[self.steps[-1]]
        low = float(self.truths.min())
        least = min(float(np.quantile(last, 0.0005)), low)
        if _kind(self.shape) == "curve":  # an image shows what is below `low` like `low`
            low = least
        high = max(float(np.quantile(last, 0.9995)), float(self.truths.max()))

        def shrink(values, levels=levels):
            return encode_between(np.swapaxes(values, -1, -2), least, high, levels)

        before = [shrink(self.predictions[step], levels_before) for step in steps[:-1]]
        others = self.counterfactuals.items()
        return {name: None if each is None else shrink(each) for name, each in others} | {
            "steps": steps,
            "low": low,
            "high": high,
            "rules": self.explained([self.steps.index(step) for step in steps]),
            "scores": self.packed_scores(steps),
            "drawn": before if fine else [*before, shrink(last)],
            "drawn_fine": shrink(fine[0]) if fine else None,
            "truths": None if fine else shrink(self.truths),
            "truths_fine": shrink(fine[1]) if fine else None,
        }

    def packed_scores(self, steps) -> dict:
        """Those that say what is right first, and the error."""
        packed, task = {}, self.task
        for name in ("rendered", task.accuracy, task.error):
            if name in self.scores[steps[-1]]:
                values = np.stack([self.scores[step][name] for step in steps])
                hit = bool(np.isin(values, (0, 1)).all()) and name != task.error
                values = values.astype(bool if hit else np.float32)
                packed.setdefault(name, {"hit": hit, "values": encode(values)})
        return packed

    @cached_property
    def half_way(self):
        """(predictions, truths) at the fine positions; None without them."""
        return self.answers(self.fine_points, self.steps[-1])[:2] if self.fine else None

    @cached_property
    def counterfactuals(self) -> dict:
        """What predictors that do not compose say at the held-out cells; see the module."""
        if not self.held_out.any():
            return {"nearest": None, "interpolator": None}
        hidden, task = self.chosen[self.held_out], self.task
        points = tasks.points(task)
        nearest = points[tasks.nearest_seen(task, tasks.regions(task)["ood"])[0][hidden]]
        found = {"nearest": self.answers(nearest, self.steps[-1])[1], "interpolator": None}
        if task.interpolated:
            task = task._replace(points=points[hidden])
            name = "interpolator"
            said = results.interpolations(self.run.config, task, self.seeds, (name,))[name][0]
            found[name] = _flat(_shrunk(said, 2))
        return found

    def explained(self, chosen) -> dict | None:
        """`rules` of the payload, at some of `steps`, by their index."""
        if not self.held_out.any():
            return None
        rules, r2 = self.r2_of_rules
        return {"rules": rules, "r2": encode_between(r2[chosen], 0.0, 1.0)}

    @cached_property
    def r2_of_rules(self):
        """R^2 of what is drawn at the held-out cells on what rules that need not compose say there:
        the sums of its own ID outputs that share a factor (Eq 3), of true outputs that do, the
        nearest ID output and the interpolator's; and on what is asked. Names, and (K, T, R, Q)."""
        held_out, cells = self.held_out, self.cells
        grid = tasks.has_grid(self.task) and len(self.axes) > 1
        sums = grid and all(np.isin(c[held_out], c[~held_out]).all() for c in cells.T)
        values = []
        for step in self.steps:
            for index, drawn in enumerate(self.predictions[step]):
                of_seed = lambda array, index=index: array[min(index, len(array) - 1)]
                truths, others = of_seed(self.truths), self.counterfactuals
                parts = {"what is asked": truths[held_out, None]}
                if sums:
                    of_id = drawn[~held_out], cells[~held_out]
                    true = superposition.matching_sums(truths, cells, cells[held_out])
                    parts["superposition"] = superposition.matching_sums(*of_id, cells[held_out])
                    parts["plus"] = true.sum(axis=1, keepdims=True)
                parts["nearest seen"] = of_seed(others["nearest"])[:, None]
                if others["interpolator"] is not None:
                    parts["local interpolator"] = of_seed(others["interpolator"])[:, None]
                r2 = [superposition.superposition_r2(drawn[held_out], p) for p in parts.values()]
                values.append(np.nan_to_num(r2))
        shape = len(self.steps), len(self.seeds), *np.shape(values[0])
        return list(parts), np.reshape(values, shape)

    def layers(self) -> list[dict]:
        """Numbers, unit maps and metric tensors of every layer."""
        run, task = self.run, self.task
        recorder, params = Recorder(run), self.params(self.steps[-1])
        inputs = self._inputs(0)
        networks = [jax.tree.map(lambda leaf, k=k: leaf[k], params) for k in range(len(self.seeds))]
        features = [jax.device_get(recorder.features(network, inputs)) for network in networks]
        tensors = [{}]  # none without a grid, nor of a code that has no derivative
        if tasks.has_grid(task):
            tensors = [recorder.tensors(each, jnp.asarray(self.cells)) for each in networks]
        numbers = {
            name: run.layers(name)[self.index]
            for name in LAYER_NUMBERS
            if name.startswith("decode") != tasks.has_grid(task) and self.held_out.any()
        }
        layers = []
        for place, layer in enumerate(features[0]):
            units = [self._units(each[layer]) for each in features]
            least = min(map(len, units))
            of_layer = {LAYER_NUMBERS[name]: values[:, place].tolist()
                        for name, values in numbers.items()
                        if place < values.shape[1]}  # fmt: skip
            shown = encode_scaled(np.stack([each[:least] for each in units]))
            value = {"name": layer, "units": shown, "numbers": of_layer}
            if tensors[0]:
                value |= _geometry(np.stack([each[layer] for each in tensors]))
            layers.append(value)
        return layers

    def _units(self, features_BxD):
        """(U, B): some units of a layer, by rising interaction, or those that vary most."""
        panel = ()
        if tasks.has_grid(self.task) and len(self.sizes) > 1:
            panel = tuning.choose_units(tuning.tuning(features_BxD, self.sizes), UNITS)
        if not len(panel):  # without a grid, or of a layer that is constant
            panel = np.argsort(-features_BxD.var(axis=0), kind="stable")[:UNITS]
        return features_BxD[:, panel].T

    def live(self) -> dict | None:
        """The first seed's network with the table of its codes; None without either."""
        if not tasks.has_grid(self.task) or self.shape != self.whole_shape:
            return None
        spec = live_network(self.run, self.seeds[0])
        table = code_table(self.task, self.fine or [axis.values for axis in self.axes])
        return None if spec is None or table is None else {"spec": spec, "table": table}


# --- parts -----------------------------------------------------------------------------------


def _in_python(run) -> str:
    """The Python that opens a run. `cg.train` of a preset loads the run, or trains it where it is
    not there yet, so that this also works for whoever has the page alone. A run that is no preset
    is loaded where it lies or, if that is not below here, trained from the nearest preset."""
    place, path = _without_home(run.path), run.path
    is_below = not path.is_absolute() or path.is_relative_to(Path.cwd())
    changed = {}
    for name, preset in PRESETS.items():
        fields = differences(run.config, preset).items()
        changed[name] = {field: own for field, (own, _) in fields if own is not ABSENT}
    nearest = min(changed, key=lambda name: (name != run.name, len(changed[name])))
    if nearest != run.name and (is_below or len(changed[nearest]) > MOST_CHANGED):
        return f"cg.load({place!r})"
    place = place if is_below else f"runs/{run.name}"
    overrides = f", {changed[nearest]}" if changed[nearest] else ""
    return f"cg.train({nearest!r}, {place!r}{overrides})"


def _without_home(path: Path) -> str:
    """A run's path for a page that is passed on: relative to where this runs, or its last name."""
    if path.is_absolute():
        here = Path.cwd()
        path = path.relative_to(here) if path.is_relative_to(here) else Path(path.name)
    return path.as_posix()


def _fine(task, axes) -> list | None:
    """The values of every factor and those half-way between; None without a real factor, for more
    than two factors, and for no grid or nothing between its cells."""
    between = tasks.has_grid(task) and task.between and any(axis.real for axis in axes)
    if not between or len(axes) > 2:
        return None
    fine = []
    for axis in axes:
        values = np.asarray(axis.values, np.float64)
        if axis.real:
            values = np.insert(values, range(1, len(values)), (values[1:] + values[:-1]) / 2)
        fine.append(values)
    return fine


def _kind(shape) -> str:
    if not plotting.is_image(shape):
        return "curve"
    return "image" if len(shape) == 2 else "rgb"


def _block(shape) -> int:
    """How many pixels along each axis of an image become one of the page's."""
    return 1 if _kind(shape) == "curve" else -(-max(shape[:2]) // MOST_SIDE)


def _shrunk(values, axis: int = 1):
    """Images whose rows are at `axis`, as means over blocks of pixels; other values as they are."""
    if (block := _block(values.shape[axis:])) > 1:
        for each in (axis, axis + 1):
            starts = np.arange(0, values.shape[each], block)
            counts = np.diff([*starts, values.shape[each]]).astype(values.dtype)
            sums = np.add.reduceat(values, starts, axis=each)
            values = sums / np.expand_dims(counts, [a for a in range(values.ndim) if a != each])
    return values


def _flat(values):
    """(T, B, ...) as (T, B, D)."""
    return values.reshape(*values.shape[:2], -1)


def _right(settings) -> dict:
    """What `images.rendered` asks of a bump, in words."""
    if not isinstance(settings, Bump):
        return {}
    drawing = "drawing" if settings.bumps == 1 else "drawing, less the true second bump,"
    text = (
        f"Right: the {drawing} has a squared correlation of at least {images.LEAST_R2:g} with "
        f"what is asked, {images.LEAST_GAIN:g} to {images.MOST_GAIN:g} times its contrast, and "
        "less likeness to the nearest combination outside the held-out region."
    )
    return {"rendered": text + (" Its size is right, too." if settings.size.values else "")}


def _geometry(tensors_TxBxRxR) -> dict:
    """log10 of the volume element, lengths of the tangents and their cosines."""
    tensors = np.asarray(tensors_TxBxRxR, np.float64)
    lengths = np.sqrt(np.maximum(np.diagonal(tensors, axis1=-2, axis2=-1), 0))
    i, j = np.triu_indices(tensors.shape[-1], k=1)
    cosines = np.asarray(geometry.cosines(tensors))[..., i, j]
    volume = geometry.log_volume(np.sqrt(np.maximum(np.linalg.det(tensors), 0)), axis=1)
    return {
        "volume": encode_scaled(volume),
        "lengths": encode_scaled(np.moveaxis(lengths, -1, 1)),
        "cosines": encode_between(np.moveaxis(cosines, -1, 1), -1.0, 1.0),
    }


def _size(node) -> int:
    """About how many characters a value has as JSON."""
    if isinstance(node, dict):
        return sum(len(str(key)) + 6 + _size(value) for key, value in node.items())
    if isinstance(node, list | tuple):
        return sum(_size(value) + 2 for value in node)
    return len(str(node))
