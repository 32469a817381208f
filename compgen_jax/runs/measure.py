"""The measurement of a finished run: metrics x seeds x kept checkpoints x layers, in one table.

    DIR/layers.csv     seed, step, layer, metric, value: one row for every number
    DIR/analysis.npz   maps for figures, of a run on a grid
    DIR/analysis.json  the table's summary: the numbers of the last step, and their means

A metric of the prediction as a whole has rows of the layer `output` alone. What the metrics are,
and at which of three places each is measured, is in `metrics.registry`. All metrics of a place are
measured together when the first of them is asked for, and kept.
"""

import csv
import io
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from tqdm import tqdm

from compgen_jax.metrics import registry
from compgen_jax.metrics.registry import LAYER_METRICS, OUTPUT_METRICS
from compgen_jax.runs import directory, out_of_memory, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.recording import PLACES
from compgen_jax.runs.run import Run, config_of
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

VERSION = 10  # of what is measured: a cached table of another version is made anew
COLUMNS = ("seed", "step", "layer", "metric", "value")


class Measured(NamedTuple):
    """What was measured of a run.

    seeds.  factors: their names.  sizes: (V_1, ..., V_F) of the grid that was measured, () for
    none.  table: (metric, step) -> {layer: (T,)}, input first, `output` last.
    maps: of the last step and a grid, for figures: `volume` (T, L, V_F, ..., V_1), `held_out`
      (V_F, ..., V_1), and of the first seed `similarity.*` (B, B) over all cells,
      `superposition.*`, what it says at a few held-out points and its parts, one for each factor,
      and `units.LAYER` (U, V_F, ..., V_1), maps of a panel of units by rising interaction.
    """

    seeds: tuple
    factors: tuple
    sizes: tuple
    table: dict
    maps: dict

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(max(self.table.values(), key=len))

    @property
    def numbers(self) -> dict:
        """(T, L) of the last step by metric of layers."""
        return self._at_last_step(outputs=False)

    @property
    def outputs(self) -> dict:
        """(T,) of the last step by metric of the prediction."""
        return {name: v[:, 0] for name, v in self._at_last_step(outputs=True).items()}

    def along(self, metric: str, steps):
        """(S, C, L) of a metric at C measured steps."""
        values = [list(self.table[metric, step].values()) for step in steps]
        return np.transpose(values, (2, 0, 1))

    def names_at(self, steps) -> set[str]:
        """The metrics measured at all these steps; at the last one without any."""
        asked = set(steps or (self.last_step,))
        return {name for name, _ in self.table if all((name, step) in self.table for step in asked)}

    @property
    def last_step(self) -> int:
        return max(step for _, step in self.table)

    def _at_last_step(self, outputs: bool) -> dict:
        last, registered = self.last_step, registry.names(OUTPUT_METRICS)
        is_output = lambda name, by_layer: (
            name in registered or (tuple(by_layer) == ("output",) != self.layers)
        )
        return {
            name: np.stack(list(by_layer.values()), axis=1)
            for (name, step), by_layer in self.table.items()
            if step == last and is_output(name, by_layer) == outputs
        }


def measure_directory(workdir, metric: str | None = None, steps=(),
                      progress: bool = True) -> Measured:  # fmt: skip
    """What is known of the run in `workdir`, this metric included: from its table, or measured now
    and added to it. None: all metrics of the grid or, without one, of the task's points.

    All metrics of a place are measured at the end of training. At other `steps` (see
    `Run.at`) only this metric's row is, as each step costs as much as the end; none
    without a metric, or for one that is named by a factor.

    Raises RunError for a run that is not finished, whose activations are not finite, or that has
    too few ID points, for a metric or a step that there is not, and at other steps for a metric
    that is named by a factor.
    """
    workdir = Path(workdir)
    known = _at_end(workdir, metric, progress)
    if metric is None:
        return known
    missing = [step for step in dict.fromkeys(steps) if (metric, step) not in known.table]
    if missing:
        rows = [row for row in (*LAYER_METRICS, *OUTPUT_METRICS) if metric in row.fixed_names]
        if not rows:
            raise RunError(f"{workdir}: {metric} is measured at the end of training alone")
        known = _joined(known, _explained(workdir, rows, missing, progress))
        _write(workdir, known)
    return known


def _at_end(workdir: Path, metric: str | None, progress: bool) -> Measured:
    """`measure_directory` at the end of training."""
    known = read(workdir)
    if known is not None and metric and (metric, known.last_step) in known.table:
        return known
    if metric is None:
        task = tasks.on_grid(loop.check(config_of(workdir)))
        place = "grid" if tasks.has_grid(task) else "points"
    else:
        place = registry.place_of(metric)
    names = set() if known is None else {name for name, _ in known.table}
    missing = missing_metrics(place, names)
    if missing:
        measured = _explained(workdir, missing, (), progress)
        known = measured if known is None else _joined(known, measured)
        _write(workdir, known)
    if metric is not None and (metric, known.last_step) not in known.table:
        raise RunError(f"{workdir}: there is no metric {metric}")
    return known


def _explained(workdir: Path, metrics, steps, progress: bool) -> Measured:
    """`measure` of the run in `workdir`, with its errors as RunError."""
    try:
        with out_of_memory.explained("give compgen-jax analyze a machine with more"):
            return measure(Run.load(workdir), metrics, steps, progress=progress)
    except ValueError as error:
        raise RunError(f"{workdir}: {error}") from error


def missing_metrics(place: str, names: set) -> list:
    """The metrics of a place that are not among the `names` already measured. Names that depend on
    the factors are measured together with fixed ones."""
    metrics = [metric for metric in (*LAYER_METRICS, *OUTPUT_METRICS) if metric.at == place]
    begun = bool(names & registry.names(metrics))
    return [
        metric
        for metric in metrics
        if not names & {*metric.fixed_names} and (metric.fixed_names or not begun)
    ]


def measure(run: Run, metrics, steps=(), last_layers: int | None = None,
            progress: bool = True) -> Measured:  # fmt: skip
    """These metrics, all of one place, of every network of a finished run.

    `steps` are kept ones (`Run.kept_steps`); by default the end of training.
    `last_layers`: measure the last so many layers alone, the prediction among them. Raises RunError
    and ValueError as `measure_directory` explains.
    """
    last = loop.total_steps(run.config, run.task)
    of_layers, of_outputs = (
        [metric for metric in metrics if metric in kind] for kind in (LAYER_METRICS, OUTPUT_METRICS)
    )
    needs = {need for metric in metrics for need in metric.needs}
    place, with_maps = PLACES[metrics[0].at](run, needs), "superpositions" in needs
    table = {}

    def note(step, index, layer, numbers):
        for name, value in numbers.items():
            by_layer = table.setdefault((name, step), {})
            by_layer.setdefault(layer, np.full(len(run.seeds), np.nan))[index] = value

    keys = results.seed_keys(run.seeds)
    bar = tqdm(total=len(steps or (last,)) * len(run.seeds), desc=f"analysing {run.name}",
               unit="seed", disable=not progress)  # fmt: skip
    with bar:
        for step in steps or (last,):
            params = run.params if step == last else run.at(step).params
            for index, seed in enumerate(run.seeds):
                network = jax.tree.map(lambda leaf, k=index: leaf[k], params)
                layers, prediction = place.record(network, keys[index], seed)
                chosen = list(layers.items())[-last_layers if last_layers else 0 :]
                for name, arrays in chosen:
                    note(step, index, name, registry.numbers(of_layers, arrays))
                if of_outputs:
                    note(step, index, "output", registry.numbers(of_outputs, prediction))
                if with_maps and step == last:
                    place.add_maps(layers, prediction)
                bar.update()
    factors = tuple(factor.name for factor in run.task.factors)
    return Measured(tuple(run.seeds), factors, place.sizes, table, place.maps)


# --- the cache ---------------------------------------------------------------------------------


def read(workdir) -> Measured | None:
    """What was measured before; None if nothing was, by another version, or without its files.
    Raises RunError if it is damaged."""
    workdir = Path(workdir)
    path, maps_path = workdir / "layers.csv", workdir / "analysis.npz"

    def parse(saved: dict) -> Measured | None:
        names = [tuple(saved[name]) for name in ("seeds", "factors", "sizes")]
        maps = {}
        if not path.exists() or (saved["sizes"] and not maps_path.exists()):
            return None
        if saved["sizes"]:
            with open(maps_path, "rb") as file, np.load(file, allow_pickle=False) as content:
                maps = dict(content)
        header, *rows = csv.reader(io.StringIO(path.read_text()))
        if tuple(header) != COLUMNS or len(rows) < saved["rows"]:
            raise ValueError(f"{path.name} is not the table of {saved['rows']} numbers")
        table = {}
        # a later metric may have been added when writing was cut short
        for seed, step, layer, metric, value in rows[: saved["rows"]]:
            by_layer = table.setdefault((metric, int(step)), {})
            by_layer.setdefault(layer, {})[int(seed)] = float(value or "nan")
        for by_layer in table.values():
            for layer, values in by_layer.items():
                by_layer[layer] = np.array([values[seed] for seed in names[0]])
        return Measured(*names, table, maps)

    return directory.read_cache(workdir / "analysis.json", VERSION, parse)


def _joined(known: Measured, new: Measured) -> Measured:
    """The rows of `known` first."""
    sizes, maps = new.sizes or known.sizes, new.maps or known.maps
    return Measured(new.seeds, new.factors, sizes, known.table | new.table, maps)


def _write(workdir: Path, measured: Measured):
    if measured.maps:
        directory.write_npz(workdir / "analysis.npz", measured.maps)
    rows = [
        (seed, step, layer, metric, "" if np.isnan(values[index]) else repr(float(values[index])))
        for (metric, step), by_layer in measured.table.items()
        for index, seed in enumerate(measured.seeds)
        for layer, values in by_layer.items()
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    directory.write_text(workdir / "layers.csv", text.getvalue())
    numbers, outputs = measured.numbers, measured.outputs
    means = {name: [mean_with_interval(each) for each in v.T] for name, v in numbers.items()}
    summary = {
        "version": VERSION,
        "rows": len(rows),
        "layers": list(measured.layers),
        "factors": list(measured.factors),
        "sizes": list(measured.sizes),
        "seeds": list(measured.seeds),
        "numbers": {name: values.tolist() for name, values in numbers.items()},
        "outputs": {name: values.tolist() for name, values in outputs.items()},
        "mean": means | {name: mean_with_interval(values) for name, values in outputs.items()},
    }
    directory.write_json(workdir / "analysis.json", summary)
