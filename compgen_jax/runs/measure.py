"""The measurement of a run: metrics x seeds x steps x layers, in one table.

    DIR/layers.csv     seed, step, layer, metric, value: one row for every number
    DIR/analysis.npz   maps for figures, of a run on a grid
    DIR/analysis.json  the table's summary: the numbers of the last step, and their means
    DIR/over_*/        the same, over the cells that another run holds out (`Run.over`)

A metric of the prediction alone has rows of the layer `output`.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from compgen_jax.metrics import registry
from compgen_jax.metrics.registry import METRICS
from compgen_jax.runs import directory, logs, recording, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.logs import Bar
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

VERSION = 10  # of what is measured: a cached table of another version is made anew
TYPES = {"seed": int, "step": int, "layer": str, "metric": str, "value": str}
COLUMNS = tuple(TYPES)
FEW_FACTORS = 3  # of more, some metrics take minutes: their time is exponential in the number
FEWER = "of many factors this takes long; compgen-jax analyze --metrics=probe,anova measures fewer"


class Measured(NamedTuple):
    """What was measured of a run. factors: their names.  sizes: of the grid, () for none.  table:
    `COLUMNS`, a row for every number; layers in order, input first.  maps: of the last step and a
    grid: `volume` (S, L, V_F, ..., V_1), `held_out`, and of the first seed `similarity.*` (B, B),
    `superposition.*`, a few held-out outputs and their parts, and `units.LAYER`, by rising
    interaction."""

    factors: tuple
    sizes: tuple
    table: pd.DataFrame
    maps: dict

    @property
    def seeds(self) -> tuple:
        return tuple(self.table.seed.unique().tolist())

    @property
    def last_step(self) -> int:
        return int(self.table.step.max())

    @property
    def layers_by_metric(self) -> dict:
        """{metric: its layers} of the last step, in the order of the table."""
        last = self.table[self.table.step == self.last_step]
        last = last[last.seed == last.seed.iloc[0]]
        return {name: tuple(rows) for name, rows in last.groupby("metric", sort=False).layer}

    @property
    def layers(self) -> tuple[str, ...]:
        """Those of the metric that has most of them."""
        return max(self.layers_by_metric.values(), key=len)

    @property
    def numbers(self) -> dict:
        """(S, L) of the last step by metric of layers."""
        by_metric = self.layers_by_metric
        return {name: self.values(name) for name in by_metric if by_metric[name] != ("output",)}

    @property
    def outputs(self) -> dict:
        """(S,) of the last step by metric of the prediction."""
        by_metric = self.layers_by_metric
        return {
            name: self.values(name)[:, 0] for name in by_metric if by_metric[name] == ("output",)
        }

    def has(self, metric: str, steps=()) -> bool:
        """Whether a metric was measured at all these steps; at the last one without any."""
        return {*(steps or (self.last_step,))} <= {*self.table.step[self.table.metric == metric]}

    def values(self, metric: str, steps=()):
        """(S, L) of a metric at the last step, (S, C, L) at C steps."""
        rows = self.table[self.table.metric == metric]
        wide = rows.pivot(index=["seed", "step"], columns="layer", values="value")
        index = pd.MultiIndex.from_product([self.seeds, steps or [self.last_step]])
        values = wide[rows.layer.unique()].reindex(index).to_numpy()
        return values.reshape(len(self.seeds), *((len(steps),) if steps else ()), -1)


def measure(run, metric: str | None = None, progress: bool = True, families=()) -> Measured:
    """What is known of a run, this metric included: read from its table, or measured and added to
    it. None: all metrics of the grid or, without one, of the task's points, or only some `families`
    such as 'probe'.

    At the end of training all metrics of a domain are measured together; at several steps only
    those of this metric's function. Raises RunError for networks of one earlier step, activations
    that are not finite, too few ID points, and a metric that there is not.
    """
    if run.path is None:
        raise RunError(f"{run.name}: `measure.take` measures the layers of earlier steps")
    end = run.end
    if not (end.measured and metric and end.measured.has(metric, run.steps)):
        end.measured = read(end.numbers_path)
    known = end.measured
    if known and metric and known.has(metric, run.steps):
        return known
    row = [candidate for candidate in METRICS if metric in candidate.names]
    domain = row[0].domain if row else "grid"
    if metric is None and not tasks.has_grid(tasks.on_grid(run.task)):
        domain = "points"
    last = loop.total_steps(run.config, run.task)
    with_maps = domain == "grid" and not families and not (known and known.maps)
    if row and run.steps:
        missing, with_maps = row, False
        steps = [step for step in dict.fromkeys(run.steps)
                 if not (known and known.has(metric, [step]))]  # fmt: skip
    else:
        steps = [last]
        missing = [
            candidate
            for candidate in metrics_of(domain, families)
            if not (known and known.has(candidate.names[0], steps))
        ]
    if missing and steps:
        if progress and domain == "grid" and len(run.task.factors) > FEW_FACTORS and not families:
            print(FEWER, file=sys.stderr)
        try:
            with logs.memory_explained("give compgen-jax analyze a machine with more"):
                new = take(run, missing, steps, progress=progress, with_maps=with_maps)
        except ValueError as error:
            raise RunError(f"{run.path}: {error}") from error
        if known:
            table = pd.concat([known.table, new.table]).drop_duplicates(COLUMNS[:4], keep="last")
            sizes, maps = new.sizes or known.sizes, new.maps or known.maps
            new = Measured(new.factors, sizes, table, maps)
        known = end.measured = new
        with directory.kept_where_possible(run.path):
            _write(end.numbers_path, known)
    if metric and not (known and known.has(metric, run.steps)):
        at_steps = " at earlier steps" if known and known.has(metric) else ""
        raise RunError(f"{run.path}: there is no metric {metric}{at_steps}")
    return known


def metrics_of(domain: str, families=()) -> list:
    """The metrics of a domain, or only those of some `families`. Raises RunError for a family that
    there is not."""
    metrics = [metric for metric in METRICS if metric.domain == domain]
    chosen = []
    for family in families:
        members = [
            metric
            for metric in metrics
            if any(f"{name}.".startswith(f"{family}.") for name in metric.names)
        ]
        if not members:
            names = {name.partition(".")[0] for metric in metrics for name in metric.names}
            allowed = ", ".join(sorted(names))
            raise RunError(f"there is no metric {family} here; families are {allowed}")
        chosen += members
    return [metric for metric in metrics if metric in chosen or not families]


def take(run, metrics, steps=(), progress: bool = True, with_maps: bool = False) -> Measured:
    """These metrics, all of one domain, of every network of a run, without its table. `steps` are
    kept ones or late checkpoints; by default the end of training."""
    last = loop.total_steps(run.config, run.task)
    steps = steps or [last]
    recorder, maps = recording.recorder(run.end, metrics[0].domain), {}
    of_layers = [metric for metric in metrics if not metric.of_output]
    of_prediction = [metric for metric in metrics if metric.of_output]
    keys, rows = results.seed_keys(run.seeds), []
    bar = Bar(total=len(steps) * len(run.seeds), desc=f"analysing {run.name}", unit="seed",
              disable=not progress)  # fmt: skip
    with bar:
        for step in steps:
            params = run.end.params if step == last else run.end.at(step).params
            for index, seed in enumerate(run.seeds):
                network = jax.tree.map(lambda leaf, k=index: leaf[k], params)
                bar.say("activations")
                layers = recorder.record(network, keys[index], seed)
                by_layer = {name: registry.numbers(of_layers, layer, bar.say)
                            for name, layer in layers.items()}  # fmt: skip
                prediction = list(layers.values())[-1]
                outputs = registry.numbers(of_prediction, prediction, bar.say)
                by_layer["output"] = by_layer.get("output", {}) | outputs
                rows += [
                    (seed, step, layer, metric, value)
                    for layer, values in by_layer.items()
                    for metric, value in values.items()
                ]
                if with_maps:
                    recorder.add_maps(maps, layers)
                bar.update()
    table = pd.DataFrame(rows, columns=COLUMNS)
    by_metric = [pd.factorize(table[name])[0] for name in ("metric", "step")]
    factors = tuple(factor.name for factor in run.task.factors)
    return Measured(factors, recorder.sizes, table.iloc[np.lexsort(by_metric)], maps)


# --- the cache ---------------------------------------------------------------------------------


def read(workdir) -> Measured | None:
    """What was measured before; None if nothing was, by another version, or without its files.
    Raises RunError if it is damaged."""
    workdir = Path(workdir)
    path, maps_path = workdir / "layers.csv", workdir / "analysis.npz"

    def parse(saved: dict) -> Measured | None:
        maps = {}
        if not path.exists() or (saved["sizes"] and not maps_path.exists()):
            return None
        if saved["sizes"]:
            with open(maps_path, "rb") as file, np.load(file, allow_pickle=False) as content:
                maps = dict(content)
        # a later metric may have been added when writing was cut short
        table = pd.read_csv(path, nrows=saved["rows"], dtype=TYPES, keep_default_na=False)
        if tuple(table) != COLUMNS or len(table) < saved["rows"]:
            raise ValueError(f"{path.name} is not the table of {saved['rows']} numbers")
        table["value"] = [float(text or "nan") for text in table.value]  # to the bit
        networks = table.groupby(["metric", "step", "seed"]).size().unstack(fill_value=0)
        if {*networks} != {*saved["seeds"]} or networks.nunique(axis=1).max() > 1:
            raise ValueError(f"{path.name} lacks numbers of a seed")
        return Measured(tuple(saved["factors"]), tuple(saved["sizes"]), table, maps)

    return directory.read_cache(workdir / "analysis.json", VERSION, parse)


def _write(workdir: Path, measured: Measured):
    workdir.mkdir(exist_ok=True)
    if measured.maps:
        directory.write_npz(workdir / "analysis.npz", measured.maps)
    text = measured.table.to_csv(index=False, lineterminator="\n")
    directory.write_text(workdir / "layers.csv", text)
    numbers, outputs = measured.numbers, measured.outputs
    means = {
        name: [mean_with_interval(column, name) for column in values.T]
        for name, values in numbers.items()
    }
    summary = {
        "version": VERSION,
        "rows": len(measured.table),
        "layers": list(measured.layers),
        "factors": list(measured.factors),
        "sizes": list(measured.sizes) if measured.maps else [],  # of the maps
        "seeds": list(measured.seeds),
        "numbers": {name: values.tolist() for name, values in numbers.items()},
        "outputs": {name: values.tolist() for name, values in outputs.items()},
        "mean": means
        | {name: mean_with_interval(values, name) for name, values in outputs.items()},
    }
    directory.write_json(workdir / "analysis.json", summary)
