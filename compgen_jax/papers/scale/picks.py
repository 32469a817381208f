"""How claims and figures of the second paper pick among finished runs by their configs."""

from compgen_jax.config import Config, field_value
from compgen_jax.papers.scale import constructions
from compgen_jax.runs.run import Run
from compgen_jax.tasks import module_supports


def more(runs: dict) -> dict[str, Run]:
    """Runs that are made of others, or written down: `constructions`, and for each network of the
    middle scale its draws in order, by name without the draw ('draws_...'). Claims compare draw by
    draw, with the same teacher, split and seed, so a network counts if it has every draw that any
    has."""
    by_network, draws = {}, set()
    for name, run in runs.items():
        if name.startswith("middle_"):
            stem, _, draw = name.rpartition("_draw_")
            by_network.setdefault(stem.replace("middle_", "draws_", 1), {})[int(draw)] = run
            draws.add(int(draw))
    made = {"constructions": constructions.CONSTRUCTED}
    for name, of_draw in by_network.items():
        if of_draw.keys() == draws and len(draws) > 1:
            made[name] = Run.joined([of_draw[draw] for draw in sorted(draws)], name)
    return made


def sets_seen(config: Config) -> int:
    """How many sets of modules training shows."""
    return module_supports.n_seen(config.task.support, config.task.modules, config.task.most)


def seen_by_width(runs) -> dict[int, list]:
    """{width: runs by rising number of sets seen}, of widths at which every such number was
    trained. All runs have the number of modules that has the most such runs."""
    largest = {}
    for students in _by(_plain(runs), "task.modules").values():
        seen = {sets_seen(run.config) for run in students}
        widths = _by(students, "model.width")
        full = {width: of_width for width, of_width in widths.items() if len(of_width) == len(seen)}
        if sum(map(len, full.values())) > sum(map(len, largest.values())):
            largest = full
    return largest


def seen_by_modules(runs, model: str = "task_mlp") -> dict[int, list]:
    """{number of modules: runs by rising number of sets seen}, at least two, at the width of most
    runs. Shares are those that are held out of every number of modules."""
    widths = _by(_plain(runs, model), "model.width")
    modules = _by(max(widths.values(), key=len, default=[]), "task.modules")
    shares = [set(_by(students, "task.support.held_out_share")) for students in modules.values()]
    chosen = {}
    for number, students in modules.items():
        common = set.intersection(*shares)
        runs = [run for run in students if run.config.task.support.held_out_share in common]
        if len(runs) > 1:
            chosen[number] = runs
    return chosen


def width_by_modules(runs) -> dict[int, dict]:
    """{number of modules: {width: run}} with the most sets seen, of widths that every number of
    modules was trained at."""
    by_modules = {}
    for modules, students in _by(_plain(runs), "task.modules").items():
        most = sets_seen(students[-1].config)
        by_modules[modules] = {
            run.config.model.width: run for run in students if sets_seen(run.config) == most
        }
    common = sorted(set.intersection(*map(set, by_modules.values()))) if by_modules else []
    return {modules: {w: of_width[w] for w in common} for modules, of_width in by_modules.items()}


def _plain(runs, model: str = "task_mlp") -> list:
    """Students that are given the latent itself and saw sets at random."""
    return [
        run
        for run in runs
        if run.config.task.code.name == "identity"
        and run.config.task.support.name == "random"
        and run.config.model.name == model
    ]


def _by(runs, field: str) -> dict:
    """The runs by rising value of a field of their configs, each group by sets seen."""
    groups = {}
    for run in sorted(runs, key=lambda run: sets_seen(run.config)):
        groups.setdefault(field_value(run.config, field), []).append(run)
    return dict(sorted(groups.items()))
