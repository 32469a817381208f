"""What a hold-out is worth before anything is trained: what of it was seen, how far it lies from
what was seen, and what baselines get right of it."""

import math
from dataclasses import dataclass

import jax
import numpy as np
import pandas
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from compgen_jax import grids, settings
from compgen_jax.config import Config
from compgen_jax.metrics import text
from compgen_jax.metrics.coverage import subsets_seen
from compgen_jax.runs import predictions, results
from compgen_jax.runs.logs import Bar
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task

MOST_CELLS = 2**24  # combinations of all values, seen, held out or missing
MOST_SUBSETS = 2000  # of the factors: orders of coverage with more are left out


@dataclass(frozen=True, repr=False)
class FreeScore:
    """What a hold-out is worth. It prints as tables; `numbers` has by name:

    combinations, rows: how many are `seen` and `held_out`; rows, where some have one combination.
    values: by factor, the share of held-out combinations whose value some seen one has.
    coverage: by order k, of the sets of k values of held-out combinations, the share that some seen
        one has: its `mean`, and the share of combinations with `all`.
    distance: to the nearest seen combination, in cells.
    changes: factors that must change to reach a seen combination, and how many combinations need
        `1_factors`, `2_factors`, ...
    support: `components` of the graph in which every seen combination joins its values, and whether
        all values of held-out combinations are in one: `connects`.
    baselines: mean scores over held-out combinations and seeds. `best` is the one with the highest
        `score`, but for `nearest_shifted`, which knows that images move.
    scored: at how many held-out combinations: `all`, and regressions from codes, the `kernels`.
    """

    numbers: dict

    def to_frame(self):
        """A DataFrame of one row, with a column such as 'coverage.2.mean' for each number."""
        return pandas.json_normalize(self.numbers)

    def __repr__(self) -> str:
        lines, tables = [], []
        words = lambda value: text.number(value) if isinstance(value, float) else str(value)
        for name, group in self.numbers.items():
            if name in ("coverage", "baselines"):
                table = pandas.DataFrame(group).map(words)
                table = table.T if name == "baselines" else table
                tables.append(table.rename_axis(columns=name).to_string())
            elif isinstance(group, dict):
                listed = ", ".join(f"{key} {words(value)}" for key, value in group.items())
                lines.append(f"{name}: {listed}")
        if tables[1:]:
            best, score = self.numbers["best"], self.numbers["score"]
            had = words(self.numbers["baselines"][best][score])
            tables.append(f"without learning: {score} {had}, by {best}")
        return "\n".join(lines + tables)


def of_support(factors, points_BxF, held_out_B, rows_B=1) -> dict:
    """The numbers of `FreeScore` but for baselines, where these combinations exist, each in so many
    rows. Raises ConfigError if all or none are held out, and for more than `MOST_CELLS`."""
    held_out_B, sizes = np.asarray(held_out_B), tasks.counts(factors)
    seen_B, count, total = ~held_out_B, int(held_out_B.sum()), math.prod(sizes)
    settings.demand(
        0 < count < len(seen_B), f"{count} of {len(seen_B)} combinations: say which are held out"
    )
    hint = f"make more than {MOST_CELLS} combinations; round them"
    settings.demand(total <= MOST_CELLS, f"values {sizes}: {hint}")
    indices_BxF, coverage = tasks.nearest_values(factors, points_BxF), {}
    for order in range(1, len(sizes) + 1):
        subsets = math.comb(len(sizes), order)
        if subsets <= MOST_SUBSETS:
            share = subsets_seen(indices_BxF, seen_B, order)[held_out_B] / subsets
            coverage[str(order)] = {"mean": float(share.mean()), "all": float(np.mean(share == 1))}
    values = {
        factor.name: float(subsets_seen(index_B[:, None], seen_B, 1)[held_out_B].mean())
        for factor, index_B in zip(factors, indices_BxF.T, strict=True)
    }
    cell_B = indices_BxF @ np.cumprod([1, *sizes[:-1]])
    unseen = np.ones(total, bool)
    unseen[cell_B[seen_B]] = False
    nearest = (tasks.geometry(factors), {"sizes": sizes, "ordered": (False,) * len(sizes)})
    distance, changes = (
        grids.nearest_seen(unseen, **apart)[1][cell_B[held_out_B]] for apart in nearest
    )
    levels, counts = np.unique(np.square(changes).round().astype(int), return_counts=True)
    nodes_BxF = indices_BxF + np.cumsum((0, *sizes[:-1]))  # values, factor by factor
    edges = [nodes_BxF[seen_B][:, part].ravel() for part in (slice(-1), slice(1, None))]
    graph = coo_array((np.ones(edges[0].size), edges), shape=(sum(sizes), sum(sizes)))
    component = connected_components(graph, directed=False)[1][nodes_BxF]
    numbers = {"combinations": {"seen": len(seen_B) - count, "held_out": count}}
    if np.max(rows_B) > 1:
        numbers["rows"] = {"seen": int(rows_B @ seen_B), "held_out": int(rows_B @ held_out_B)}
    return numbers | {
        "values": values,
        "coverage": coverage,
        "distance": {"mean": float(distance.mean()), "max": float(distance.max())},
        "changes": {"mean": float(levels @ counts / count), "max": int(levels[-1])}
        | {f"{n}_factors": int(k) for n, k in zip(levels, counts, strict=True)},
        "support": {
            "components": len(np.unique(component[seen_B])),
            "connects": len(np.unique(component[held_out_B])) == 1,
        },
    }


def of_config(config: Config, progress: bool = False) -> FreeScore:
    """Of the hold-out of a task. Raises ConfigError for a sweep, and as `of_support`."""
    task = predictions.task_of(config, f"config={config.name}")
    error, rows_B, points = task.error, 1, tasks.points(task)
    if task.rows_B is not None:  # also of what is not measured
        exists_B = task.rows_B > 0
        points, rows_B = tasks.cells(task.factors)[exists_B], task.rows_B[exists_B]
    numbers = of_support(task.factors, points, task.held_out(points), rows_B)
    score = tasks.headline(task) or error
    with Bar(total=1, desc=config.name, unit="hold-out", disable=not progress) as bar:
        means = baseline_means(config, task, {score, error}, bar.say)
        bar.update()
    ood = tasks.regions(task)["ood"]
    rank = {n: (mean[score] * (score != error), -mean[error]) for n, mean in means.items()}
    others = {
        "scored": {"all": int(ood.sum()), "kernels": int((ood & results.predicted(task)).sum())},
        "score": score,
        "best": max(sorted(rank.keys() - {"nearest_shifted"}), key=rank.get),
    }
    return FreeScore({"task": config.name} | numbers | {"baselines": means} | others)


def baseline_means(config: Config, task: Task, names, say) -> dict:
    """{predictor: {score: mean over held-out points and seeds}}."""
    seeds, points, scores = config.training.seeds, tasks.points(task), {}
    if task.interpolated:
        made = results.interpolations(config, task, seeds, say=say)
        scores = {predictor: of_cells for predictor, (_, of_cells) in made.items()}
    say("baselines")
    task = tasks.with_additions(tasks.with_lookups_along_factors(task))
    if "additive" in task.baselines and tasks.has_grid(task) and len(task.factors) == 2:
        seen_YxX, by_seed = grids.over_grid(tasks.regions(task)["id"], tasks.sizes(task)), []
        for truths in (results.truths_at(task, points, seed) for seed in seeds):
            flat = grids.over_grid(truths.reshape(len(points), -1), tasks.sizes(task))
            drawn = baselines.rank_one(flat.astype(np.float64), seen_YxX).reshape(truths.shape)
            by_seed.append(results.scored(task.scores, drawn.astype(np.float32), truths, points))
        scores["rank_one"] = jax.tree.map(lambda *of_seeds: np.stack(of_seeds), *by_seed)
    means = results.trivial_means(task, seeds, scores, names)
    return {
        predictor: {name: float(np.mean(of_predictor["ood", name])) for name in sorted(names)}
        for predictor, of_predictor in sorted(means.items())
    }
