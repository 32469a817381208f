"""How claims and figures of the second paper pick among finished runs by their configs."""

import pandas as pd

from compgen_jax.config import Config, changed
from compgen_jax.papers.scale import constructions
from compgen_jax.runs.run import Run
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import module_supports


def more(runs: dict) -> dict[str, Run]:
    """`constructions`, and for each network of the middle scale its draws as one run ('draws_...').
    Claims compare draw by draw, so a network counts if it has every draw that any has."""
    by_network, draws = {}, set()
    for name, run in runs.items():
        if name.startswith("middle_"):
            stem, _, draw = name.rpartition("_draw_")
            by_network.setdefault(stem.replace("middle_", "draws_", 1), {})[int(draw)] = run
            draws.add(int(draw))
    made = {"constructions": constructions.CONSTRUCTED}
    for name, of_draw in by_network.items():
        if of_draw.keys() == draws and len(draws) > 1:
            made[name] = _joined([of_draw[draw] for draw in sorted(draws)], name)
    return made


def _joined(runs, name: str) -> Run:
    """The summaries of runs of one seed each as that of one run, whose seeds they are."""
    by_run = [next(iter(run.summary["seeds"].values())) for run in runs]
    means = {
        key: mean_with_interval([numbers[key] for numbers in by_run], key) for key in by_run[0]
    }
    by_seed = {str(index): numbers for index, numbers in enumerate(by_run)}
    summary = {"seeds": by_seed, "mean": means, "task": runs[0].summary["task"]}
    return Run(changed(runs[0].config, {"name": name}), seeds=range(len(runs)), summary=summary)


def sets_seen(config: Config) -> int:
    """How many sets of modules training shows."""
    return module_supports.n_seen(config.task.support, config.task.modules, config.task.most)


def seen_by_width(runs) -> dict[int, list]:
    """{width: runs by rising number of sets seen}, of widths at which every number was trained, of
    the number of modules with the most such runs."""
    largest = {}
    for _, of_modules in _plain(runs).groupby("modules"):
        widths = {
            width: list(of_width.run)
            for width, of_width in of_modules.groupby("width")
            if len(of_width) == of_modules.seen.nunique()
        }
        if sum(map(len, widths.values())) > sum(map(len, largest.values())):
            largest = widths
    return largest


def seen_by_modules(runs, model: str = "task_mlp") -> dict[int, list]:
    """{number of modules: runs by rising number of sets seen}, at least two, at the width of most
    runs, of shares that are held out of every number of modules."""
    table = _plain(runs, model)
    table = table[table.width == table.width.mode().min()]
    common = table.groupby("share").modules.nunique() == table.modules.nunique()
    by_modules = table[table.share.map(common).astype(bool)].groupby("modules")
    return {modules: list(rows.run) for modules, rows in by_modules if len(rows) > 1}


def width_by_modules(runs) -> dict[int, dict]:
    """{number of modules: {width: run}} with the most sets seen, of widths that every number of
    modules was trained at."""
    table = _plain(runs)
    most = table[table.seen == table.groupby("modules").seen.transform("max")]
    grid = most.pivot(index="modules", columns="width", values="run").dropna(axis=1)
    return {modules: dict(of_width) for modules, of_width in grid.iterrows()}


def _plain(runs, model: str = "task_mlp") -> pd.DataFrame:
    """By rising number of sets seen, the students that are given the latent itself and saw sets at
    random."""
    rows = []
    for run in runs:
        task, width, seen = run.config.task, run.config.model.width, sets_seen(run.config)
        kind = task.code.name, task.support.name, run.config.model.name
        if kind == ("identity", "random", model):
            rows.append((task.modules, width, seen, task.support.held_out_share, run))
    table = pd.DataFrame(rows, columns=["modules", "width", "seen", "share", "run"])
    return table.sort_values("seen", kind="stable")
