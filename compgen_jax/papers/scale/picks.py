"""How claims and figures of the second paper pick among finished runs by their configs."""

from compgen_jax.config import Config
from compgen_jax.papers.scale import constructions
from compgen_jax.runs.run import Run
from compgen_jax.tasks import module_supports


def more(runs: dict) -> dict[str, Run]:
    """Runs that are made of others, or written down: `constructions`, and for each network of the
    middle scale its draws in order, by name without the draw ('draws_...'). Claims compare draw by
    draw, with the same teacher, split and seed, so a network counts if it has every draw that any
    has."""
    groups = {}
    for name, run in runs.items():
        if name.startswith("middle_"):
            stem, _, draw = name.rpartition("_draw_")
            groups.setdefault(stem, {})[int(draw)] = run
    every = set().union(*groups.values())
    whole = {
        name.replace("middle_", "draws_", 1): Run.joined(
            [run for _, run in sorted(of_draw.items())], name
        )
        for name, of_draw in groups.items()
        if of_draw.keys() == every and len(every) > 1
    }
    return whole | {"constructions": constructions.CONSTRUCTED}


def sets_seen(config: Config) -> int:
    """How many sets of modules training shows."""
    return module_supports.n_seen(config.task.support, config.task.modules, config.task.most)


def seen_by_width(runs) -> dict[int, list]:
    """{width: runs by rising number of sets seen}, of widths at which every such number was
    trained. All runs have the number of modules that has the most such runs."""
    largest = {}
    for of_modules in _by(_plain(runs), lambda config: config.task.modules).values():
        seen = {sets_seen(run.config) for run in of_modules}
        widths = _by(of_modules, lambda config: config.model.width)
        full = {w: _by_seen(own) for w, own in sorted(widths.items()) if len(own) == len(seen)}
        if sum(map(len, full.values())) > sum(map(len, largest.values())):
            largest = full
    return largest


def seen_by_modules(runs, model: str = "task_mlp") -> dict[int, list]:
    """{number of modules: runs by rising number of sets seen}, at least two, at the width of most
    runs. Shares are those that are held out of every number of modules."""
    widths = _by(_plain(runs, model), lambda config: config.model.width)
    modules = _by(max(widths.values(), key=len, default=[]), lambda config: config.task.modules)
    held_out = lambda config: config.task.support.held_out_share
    shares = [{held_out(run.config) for run in own} for own in modules.values()]
    found = {
        m: _by_seen(run for run in own if held_out(run.config) in set.intersection(*shares))
        for m, own in sorted(modules.items())
    }
    return {m: own for m, own in found.items() if len(own) > 1}


def width_by_modules(runs) -> dict[int, dict]:
    """{number of modules: {width: run}} with the most sets seen, of widths that every number of
    modules was trained at."""
    found = {}
    for modules, own in sorted(_by(_plain(runs), lambda config: config.task.modules).items()):
        most = max(sets_seen(run.config) for run in own)
        found[modules] = {
            run.config.model.width: run for run in own if sets_seen(run.config) == most
        }
    common = sorted(set.intersection(*map(set, found.values()))) if found else []
    return {modules: {w: of_width[w] for w in common} for modules, of_width in found.items()}


def _plain(runs, model: str = "task_mlp") -> list:
    """Students that are given the latent itself and saw sets at random."""
    asked = "identity", "random", model
    fields = lambda config: (config.task.code.name, config.task.support.name, config.model.name)
    return [run for run in runs if fields(run.config) == asked]


def _by(runs, of_config) -> dict:
    groups = {}
    for run in runs:
        groups.setdefault(of_config(run.config), []).append(run)
    return groups


def _by_seen(runs) -> list:
    return sorted(runs, key=lambda run: sets_seen(run.config))
