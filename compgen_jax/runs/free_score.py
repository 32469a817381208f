"""What a hold-out is worth before anything is trained: what of it was seen, how far it lies from
what was seen, and what baselines get right of it."""

import math
from collections.abc import Callable
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
from compgen_jax.runs import results
from compgen_jax.runs.logs import Bar
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import contracts

MOST_CELLS = 2**24  # combinations of all values, beyond which distances are not measured
MOST_SUBSETS = 2000  # of the factors: larger orders are left out
SHIFTED = "nearest_shifted"
COVERAGE = {"mean": "mean share of sets seen", "all": "share of combinations with all"}


@dataclass(frozen=True, repr=False)
class FreeScore:
    """What a hold-out is worth; it prints as tables.

    numbers: groups of numbers by name, as `to_dict` has them.
    combinations: how many are `seen` and `held_out`; `rows`, of data with several in one.
    values: by factor, the share of held-out combinations whose value some seen one has.
    coverage: by order k, of every held-out combination's sets of k values, the share that some seen
        one has: its `mean`, and the share of combinations with `all`.
    distance: to the nearest seen combination, in cells: `mean` and `max`.
    changes: how many factors must change to reach a seen combination: `mean`, `max`, and the
        number of combinations by level.
    support: `components` of the graph in which each seen combination joins its values, and whether
        all values of held-out combinations are in one: `connects`.
    baselines: mean scores over held-out combinations, and seeds. The `best` is that of the highest
        `score`, or least `error`, but for `nearest_shifted`, which knows that images move.
    scored: held-out combinations at which baselines are scored: `all`, and `kernels`, of which
        `results.MOST_POINTS` bounds the number.
    """

    numbers: dict

    def to_dict(self) -> dict:
        """Plain values, as JSON has them; None for what is not known."""
        return self.numbers

    def to_frame(self):
        """A DataFrame of one row, a column for each number: to stack several hold-outs."""
        return pandas.DataFrame([{k[1:]: v for k, v in settings.flat(self.numbers, "").items()}])

    def __repr__(self) -> str:
        numbers, lines = self.numbers, []
        for name in ("combinations", "rows"):
            if name in numbers:
                seen, held_out = numbers[name]["seen"], numbers[name]["held_out"]
                lines.append(f"{held_out:,} of {seen + held_out:,} {name} are held out")
        missing = {name: share for name, share in numbers["values"].items() if share < 1}
        lacks = [f"{name} in {1 - share:.0%}" for name, share in missing.items()]
        lines.append(f"held-out combinations with a value never seen: {', '.join(lacks) or 'none'}")
        distance, changes = numbers["distance"], numbers["changes"]
        if distance:
            cells = "{mean:.3g}, at most {max:.3g}".format(**distance)
            factors = "{mean:.3g}, at most {max}".format(**changes)
            lines.append(f"cells to the nearest seen combination: {cells}")
            lines.append(f"factors that must change to reach one: {factors}")
        connects, components = numbers["support"].values()
        joined = "join" if connects else "do not join"
        lines.append(f"seen combinations {joined} all their values; components: {components}")
        coverage = pandas.DataFrame(numbers["coverage"]).rename(index=COVERAGE)
        tables = [coverage.rename_axis(columns="sets of values").map(text.number)]
        if "baselines" in numbers:
            tables.append(pandas.DataFrame(numbers["baselines"]).T.map(text.number))
        lines += [table.to_string() for table in tables]
        return "\n".join([*lines, *verdict(numbers)])


def verdict(numbers: dict) -> list[str]:
    """What is had without learning, and at how many combinations that was measured."""
    if "best" not in numbers:
        return []
    score, means, scored = numbers["score"], numbers["baselines"], numbers["scored"]
    is_error, had = score == numbers["error"], []
    for name in dict.fromkeys((numbers["best"], SHIFTED)):
        if name in means:
            value = means[name][score]
            had.append(f"{value:.3g} by {name}" if is_error else f"{value:.0%} by {name}")
    what = score if is_error else f"of held-out combinations ({score})"
    lines = [f"without learning, {what}: {', '.join(had)}"]
    if {*scored.values()} != {numbers["combinations"]["held_out"]}:
        points, few = scored.values()
        lines.append(f"scored at {points:,} of them, kernel regressions at {few:,}")
    return lines


def of_support(factors, points_BxF, held_out_B) -> dict:
    """The numbers of `FreeScore` but for baselines, if these combinations exist. Raises
    ConfigError if nothing, or everything, is held out."""
    held_out_B = np.asarray(held_out_B)
    count, some = held_out_B.sum(), held_out_B.any() and not held_out_B.all()
    settings.demand(some, f"{count} of {len(held_out_B)} combinations are held out; say which")
    sizes, indices_BxF = tasks.counts(factors), tasks.nearest_values(factors, points_BxF)
    names, orders = [factor.name for factor in factors], range(1, len(factors) + 1)
    covered = {}
    for order in orders:
        subsets = math.comb(len(factors), order)
        if subsets <= MOST_SUBSETS:
            shares = subsets_seen(indices_BxF, ~held_out_B, order)[held_out_B] / subsets
            covered[str(order)] = {"mean": float(shares.mean()), "all": float(np.mean(shares == 1))}
    values = {
        name: float(subsets_seen(index_B[:, None], ~held_out_B, 1)[held_out_B].mean())
        for name, index_B in zip(names, indices_BxF.T, strict=True)
    }
    # nodes are values, factor by factor
    nodes_BxF = indices_BxF + np.cumsum((0, *sizes[:-1]))
    edges = nodes_BxF[~held_out_B][:, :-1].ravel(), nodes_BxF[~held_out_B][:, 1:].ravel()
    graph = coo_array((np.ones(len(edges[0])), edges), shape=(sum(sizes),) * 2)
    _, component_N = connected_components(graph, directed=False)
    of_seen, of_held_out = (np.unique(component_N[nodes_BxF[m]]) for m in (~held_out_B, held_out_B))
    return {
        "combinations": {"seen": int((~held_out_B).sum()), "held_out": int(held_out_B.sum())},
        "values": values,
        "coverage": covered,
        **distances(factors, indices_BxF, held_out_B),
        "support": {"connects": len(of_held_out) == 1, "components": len(of_seen)},
    }


def distances(factors, indices_BxF, held_out_B) -> dict:
    """`distance` and `changes`, empty beyond `MOST_CELLS`."""
    sizes = tasks.counts(factors)
    if math.prod(sizes) > MOST_CELLS:
        return {"distance": {}, "changes": {}}
    cell_B = indices_BxF @ np.cumprod([1, *sizes[:-1]])
    unseen = np.ones(math.prod(sizes), bool)
    unseen[cell_B[~held_out_B]] = False
    _, apart = grids.nearest_seen(unseen, **tasks.geometry(factors))
    _, hamming = grids.nearest_seen(unseen, sizes, (False,) * len(sizes))
    apart = apart[cell_B[held_out_B]]
    changes = np.square(hamming[cell_B[held_out_B]]).round().astype(int)
    levels, counts = np.unique(changes, return_counts=True)
    return {
        "distance": {"mean": float(apart.mean()), "max": float(apart.max())},
        "changes": {"mean": float(changes.mean()), "max": int(changes.max())}
        | {str(level): int(count) for level, count in zip(levels, counts, strict=True)},
    }


def of_config(config: Config, progress: bool = False) -> FreeScore:
    """Of a task's hold-out. Raises ConfigError for a sweep, and as `of_support`."""
    settings.demand(not config.is_sweep, f"{config.name} is a sweep, whose trials differ in tasks")
    with settings.in_own_files(config.task):
        task = config.task.make()
        contracts.check_task(config.task.name, task)
    whole, error = tasks.on_grid(task), task.error
    support = of_support(task.factors, tasks.points(whole), tasks.regions(whole)["ood"])
    score = tasks.headline(task) or error
    with Bar(total=1, desc=config.name, unit="hold-out", disable=not progress) as bar:
        means = baseline_means(config, task, tuple(dict.fromkeys((score, error))), bar.say)
        bar.update()
    sign = -1 if score == error else 1
    rank = {name: (sign * mean[score], -mean[error]) for name, mean in means.items()}
    ood = tasks.regions(task)["ood"]
    points = {"all": ood.sum(), "kernels": (ood & results.predicted(task)).sum()}
    of_baselines = {
        "baselines": means,
        "score": score,
        "error": error,
        "best": max(rank.keys() - {SHIFTED}, key=rank.get),
        "scored": {name: int(count) for name, count in points.items()},
    }
    return FreeScore({"task": config.name} | support | of_baselines)


def baseline_means(config: Config, task: Task, names, say: Callable) -> dict:
    """{predictor: {score: mean over held-out points and seeds}}."""
    seeds, scores = config.training.seeds, {}
    if task.interpolated:
        made = results.interpolations(config, task, seeds, say=say)
        scores = {predictor: of_cells for predictor, (_, of_cells) in made.items()}
    say("baselines")
    task = tasks.with_additions(tasks.with_lookups_along_factors(task))
    if "additive" in task.baselines and tasks.has_grid(task) and len(task.factors) == 2:
        scores["rank_one"] = rank_one_scores(task, seeds)
    means = results.trivial_means(task, seeds, scores, names)
    return {
        predictor: {name: float(np.mean(of_predictor["ood", name])) for name in names}
        for predictor, of_predictor in means.items()
    }


def rank_one_scores(task: Task, seeds) -> dict:
    """Scores (S, B) by name of `baselines.rank_one`."""
    seen_YxX = grids.over_grid(tasks.regions(task)["id"], tasks.sizes(task))
    scores = []
    for seed in seeds:
        truths = results.truths_at(task, tasks.points(task), seed)
        flat = np.asarray(truths, np.float64).reshape(len(truths), -1)
        completed = baselines.rank_one(grids.over_grid(flat, tasks.sizes(task)), seen_YxX)
        predictions = completed.reshape(truths.shape).astype(np.float32)
        scores.append(results.scored(task.scores, predictions, truths, tasks.points(task)))
    return jax.tree.map(lambda *of_seeds: np.stack(of_seeds), *scores)
