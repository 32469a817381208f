"""The measurement of a run: metrics x seeds x steps x layers, in one table.

    DIR/layers.csv     seed, step, layer, metric, value: one row for every number
    DIR/analysis.npz   maps for figures, of a run on a grid
    DIR/analysis.json  the table's summary: the numbers of the last step, and their means
    DIR/over_*/        the same, over the cells that another run holds out (`Run.over`)

A metric of the prediction as a whole has rows of the layer `output` alone. What the metrics are,
and at which of three places each is measured, is in `metrics.registry`. All metrics of a place are
measured together when the first of them is asked for, and kept.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from compgen_jax.metrics import registry
from compgen_jax.metrics.registry import LAYER_METRICS, OUTPUT_METRICS
from compgen_jax.runs import directory, out_of_memory, recording, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.progress import Bar
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

VERSION = 10  # of what is measured: a cached table of another version is made anew
TYPES = {"seed": int, "step": int, "layer": str, "metric": str, "value": str}
COLUMNS = tuple(TYPES)
FEW_FACTORS = 3  # of more, some metrics take minutes: their time is exponential in the number
FEWER = "of many factors this takes long; compgen-jax analyze --metrics=probe,anova measures fewer"


class Measured(NamedTuple):
    """What was measured of a run.

    factors: their names.  sizes: (V_1, ..., V_F) of the grid that was measured, () for none.
    table: a row for every number, `COLUMNS`; layers in order, input first, `output` last.
    maps: of the last step and a grid, for figures: `volume` (S, L, V_F, ..., V_1), `held_out`
      (V_F, ..., V_1), and of the first seed `similarity.*` (B, B) over all cells,
      `superposition.*`, what it says at a few held-out points and its parts, one for each factor,
      and `units.LAYER` (U, V_F, ..., V_1), maps of a panel of units by rising interaction.
    """

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
    def layers(self) -> tuple[str, ...]:
        """Those of the metric that has most of them."""
        return max(self._layers_by_metric().values(), key=len)

    @property
    def numbers(self) -> dict:
        """(S, L) of the last step by metric of layers."""
        return {name: self.values(name) for name in self._names(of_outputs=False)}

    @property
    def outputs(self) -> dict:
        """(S,) of the last step by metric of the prediction."""
        return {name: self.values(name)[:, 0] for name in self._names(of_outputs=True)}

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

    def _layers_by_metric(self) -> dict:
        """{metric: its layers} of the last step, in the order of the table."""
        last = self.table[self.table.step == self.last_step]
        last = last[last.seed == last.seed.iloc[0]]
        return {name: tuple(rows) for name, rows in last.groupby("metric", sort=False).layer}

    def _names(self, of_outputs: bool) -> list[str]:
        of_layers = registry.names(LAYER_METRICS)
        return [
            name
            for name, layers in self._layers_by_metric().items()
            if (layers == ("output",) and name not in of_layers) == of_outputs
        ]


def measure(run, metric: str | None = None, progress: bool = True, families=()) -> Measured:
    """What is known of a run, this metric included: from its table, or measured now and added to
    it. None: all metrics of the grid or, without one, of the task's points; of these only some
    `families`, such as 'probe' or 'output.cosine', and the numbers of single factors.

    All metrics of a place are measured at the end of training. Of a run at several steps, as
    `Run.late`, only this metric's row is, as each step costs as much as the end.

    Raises RunError for networks of one earlier step, for activations that are not finite, for too
    few ID points, for a metric that there is not, and at other steps for a metric that is named by
    a factor.
    """
    if run.path is None:
        raise RunError(f"{run.name}: `measure.take` measures the layers of earlier steps")
    known = run.end.measured
    if known is None or metric is None or not known.has(metric, run.steps):
        known = read(run.end.numbers_path)
        known = run.end.measured = _measure(run, known, metric, progress, families)
    return known


def _measure(run, known: Measured | None, metric, progress: bool, families) -> Measured:
    if metric is None:
        place = "grid" if tasks.has_grid(tasks.on_grid(run.task)) else "points"
    else:
        place = registry.place_of(metric)
    row = [one for one in (*LAYER_METRICS, *OUTPUT_METRICS) if metric in one.fixed_names]
    alone = row and run.steps and (place == "grid" or run.end.numbers_path != run.path)
    if not alone and (metric is None or known is None or not known.has(metric)):
        # without maps, a grid's table has late checkpoints or families alone
        counts = known is not None and (families or place != "grid" or known.maps)
        names = {*known.table.metric} if counts else set()
        missing = missing_metrics(place, names, families)
        if missing and progress and len(run.task.factors) > FEW_FACTORS and not families:
            print(FEWER, file=sys.stderr)
        known = _added(run.end, known, missing, (), progress)
    if metric is None:
        return known
    if not (alone or known.has(metric)):
        raise RunError(f"{run.path}: there is no metric {metric}")
    steps = [step for step in dict.fromkeys(run.steps)
             if known is None or not known.has(metric, [step])]  # fmt: skip
    if steps and not row:
        raise RunError(f"{run.path}: {metric} is measured at the end of training alone")
    return _added(run, known, row, steps, progress) if steps else known


def _added(run, known: Measured | None, metrics: list, steps, progress: bool) -> Measured:
    """What is known, with these metrics measured and written beside it."""
    if not metrics:
        return known
    try:
        with out_of_memory.explained("give compgen-jax analyze a machine with more"):
            new = take(run, metrics, steps, progress=progress)
    except ValueError as error:
        raise RunError(f"{run.path}: {error}") from error
    if known is not None:
        table = pd.concat([known.table, new.table]).drop_duplicates(COLUMNS[:4], keep="last")
        sizes, maps = new.sizes or known.sizes, new.maps or known.maps
        new = Measured(new.factors, sizes, table, maps)
    with directory.kept_where_possible(run.path):
        _write(run.end.numbers_path, new)
    return new


def missing_metrics(place: str, names: set, families=()) -> list:
    """The metrics of a place, or of some `families`, that are not among the `names` already
    measured. Those whose names depend on the factors are measured with any other. Raises
    RunError for a family that there is not."""
    metrics = [metric for metric in (*LAYER_METRICS, *OUTPUT_METRICS) if metric.at == place]
    every = registry.names(metrics)
    chosen = set() if families else every
    for family in families:
        chosen |= (of_family := {one for one in every if f"{one}.".startswith(f"{family}.")})
        if not of_family:
            known = ", ".join(sorted({name.partition(".")[0] for name in every}))
            raise RunError(f"there is no metric {family} here; families are {known}")
    missing = [
        metric
        for metric in metrics
        if chosen & {*metric.fixed_names} and not names & {*metric.fixed_names}
    ]
    return [one for one in metrics if one in missing or not one.fixed_names] if missing else []


def take(run, metrics, steps=(), last_layers: int | None = None,
         progress: bool = True) -> Measured:  # fmt: skip
    """These metrics, all of one place, of every network of a run, without its table.

    `steps` are kept ones or late checkpoints (`Run.at`); by default the end of training.
    `last_layers`: measure the last so many layers alone, the prediction among them. Raises RunError
    and ValueError as `measure` explains.
    """
    last = loop.total_steps(run.config, run.task)
    of_layers, of_outputs = (
        [metric for metric in metrics if metric in kind] for kind in (LAYER_METRICS, OUTPUT_METRICS)
    )
    needs = {need for metric in metrics for need in metric.needs}
    place, maps = recording.place(run.end, metrics[0].at), {}
    keys, rows = results.seed_keys(run.seeds), []
    bar = Bar(total=len(steps or (last,)) * len(run.seeds), desc=f"analysing {run.name}",
              unit="seed", disable=not progress)  # fmt: skip
    with bar:
        for step in steps or (last,):
            params = _networks(run, step)
            for index, seed in enumerate(run.seeds):
                network = jax.tree.map(lambda leaf, k=index: leaf[k], params)
                bar.say("activations")
                layers, prediction = place.record(network, keys[index], seed, needs)
                numbers = {
                    name: registry.numbers(of_layers, layers[name], bar.say)
                    for name in list(layers)[-last_layers if last_layers else 0 :]
                }
                if of_outputs:
                    of_prediction = registry.numbers(of_outputs, prediction, bar.say)
                    numbers["output"] = numbers.get("output", {}) | of_prediction
                rows += [
                    (seed, step, layer, metric, value)
                    for layer, values in numbers.items()
                    for metric, value in values.items()
                ]
                if "superpositions" in needs and not steps:
                    place.add_maps(maps, layers, prediction)
                bar.update()
    table = pd.DataFrame(rows, columns=COLUMNS)
    by_metric = [pd.factorize(table[name])[0] for name in ("metric", "step")]
    factors = tuple(factor.name for factor in run.task.factors)
    return Measured(factors, place.sizes, table.iloc[np.lexsort(by_metric)], maps)


def _networks(run, step: int):
    """The networks of all seeds at a step."""
    if step in run.steps:
        return jax.tree.map(lambda leaf: leaf[:, run.steps.index(step)], run.params)
    if step == loop.total_steps(run.config, run.task):
        return run.end.params
    return run.end.at(step).params


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
    means = {name: [mean_with_interval(each, name) for each in v.T] for name, v in numbers.items()}
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
