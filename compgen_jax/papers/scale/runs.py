"""The runs of the second paper, and how claims and figures pick among them by their configs."""

import functools

from compgen_jax.config import Config, changed
from compgen_jax.papers.presets import PRESETS
from compgen_jax.papers.scale import constructions, presets
from compgen_jax.runs.run import Run
from compgen_jax.sweeps import plan
from compgen_jax.tasks import module_supports

# Sets seen, by number of modules: how many of them does a gain of .5 take?
NEEDED_QUICK = {4: (4, 7, 11), 8: (9, 22, 44, 69), 16: (60, 174, 522)}
PREFERENCES_SEEN = {"quick": (9, 69), "paper": (60, 522)}  # sets of preferences
BRIDGE_SUPPORTS = ("random", "disconnected", "non_compositional")
BRIDGE_SHARES = {"quick": (0.15, 0.39), "paper": (0.1, 0.37)}  # of the bumps' cells, held out


@functools.cache
def runs(scale: str) -> dict[str, Config]:
    """All runs by name, in training order. A run that serves several figures is there once."""
    found = {}
    groups = (sets_and_widths, codes, supports, more_modules, sets_needed, bridge, architectures,
              preferences, middle)  # fmt: skip
    for group in groups:
        for name, config in group(scale).items():
            found.setdefault(name, config)
    return found


# --- runs by what is varied --------------------------------------------------------------------


def sets_and_widths(scale: str) -> dict[str, Config]:
    """By sets seen and width."""
    return _named(_expanded("hyperteacher", scale), scale)


def codes(scale: str) -> dict[str, Config]:
    """By code of the latent, each trained as long as it takes. The invertible code has the authors'
    weights, too, with which it is nearly affine."""
    expanded = _expanded("encodings", scale)
    authors = [
        changed(config, {"task.code.std": presets.AUTHORS_STD})
        for config in expanded if config.task.code.name == "invertible"
    ]  # fmt: skip
    return _named([presets.with_code(config) for config in expanded + authors], scale)


def supports(scale: str) -> dict[str, Config]:
    """By support, with as many sets seen."""
    return _named(_expanded("supports", scale), scale)


def more_modules(scale: str) -> dict[str, Config]:
    """By number of modules and width, the same share of the sets seen. Only quick ones exist."""
    return _named(_expanded("modules", scale), scale) if scale == "quick" else {}


def sets_needed(scale: str) -> dict[str, Config]:
    """By number of modules and sets seen."""
    if scale == "paper":
        return _named(_expanded("tasks_needed", scale), scale)
    base = changed(_expanded("hyperteacher", scale)[0], {"model.width": 256})
    where = [(modules, seen) for modules, each in NEEDED_QUICK.items() for seen in each]
    fields = [{"task.modules": modules, "task.support.seen": seen} for modules, seen in where]
    return _named([changed(base, each) for each in fields], scale)


def architectures(scale: str) -> dict[str, Config]:
    """Transformers and hypernetworks by sets seen."""
    quick = scale == "quick"
    names = "task_transformer" if quick else "tasks_needed_transformer", "hypernetwork"
    configs = [config for name in names for config in _expanded(name, scale)]
    modules = {"quick": 8, "paper": 16}[scale]
    return _named([config for config in configs if config.task.modules == modules], scale)


def preferences(scale: str) -> dict[str, Config]:
    """Networks of the preference gridworld, by sets seen."""
    quick = "_quick" * (scale == "quick")
    return {
        f"preference_seen_{seen}": changed(
            PRESETS["preference" + quick],
            {"name": f"preference_seen_{seen}{quick}", "task.support.seen": seen},
        )
        for seen in PREFERENCES_SEEN[scale]
    }


def middle(scale: str) -> dict[str, Config]:
    """Between the scales, beside the quick ones: by sets seen and width, and at the widest by
    support. Every draw has a teacher, a split and a training seed of its own."""
    if scale == "paper":
        return {}
    found = {}
    for preset in ("hyperteacher_middle", "supports_middle"):
        for config in _runs_of(preset):
            draw = config.task.seed
            support = config.task.support.name
            parts = ["middle", f"seen_{sets_seen(config)}", f"width_{config.model.width}"]
            parts += [support] * (support != "random") + [f"draw_{draw}"]
            values = {"task.support.seed": draw, "training.seeds": (draw,)}
            found["_".join(parts)] = changed(config, {"name": "_".join(parts), **values})
    return found


def bridge(scale: str) -> dict[str, Config]:
    """Between the papers: students by support, sets seen and width (only quick ones), and decoders
    of bumps with a block, or as many cells at random, held out."""
    students = []
    if scale == "quick":
        base = _expanded("hyperteacher", scale)[0]
        students = [
            changed(base, {"task.support.name": support, "task.support.seen": seen,
                           "model.width": width})
            for support in BRIDGE_SUPPORTS for seen in (22, 44) for width in (64, 256)
        ]  # fmt: skip
    return _named(students, scale) | _decoders(scale)


def _decoders(scale: str) -> dict[str, Config]:
    quick = "_quick" * (scale == "quick")
    base = PRESETS["bump_cnn" + quick]
    grid, wide = base.task.grid, base.model.width
    found = {}
    for region in ("donut", "random"):
        for share in BRIDGE_SHARES[scale]:
            side = round(share**0.5 * grid)
            low = (grid - side) // 2
            # The wide ones with the larger share are runs of the first paper.
            for width in (wide // 4, wide) if share < BRIDGE_SHARES[scale][-1] else (wide // 4,):
                name = f"bump_{region}_{share:g}_width_{width}"
                where = {
                    "task.support.region": region,
                    "task.support.low": low,
                    "task.support.high": low + side - 1,
                    "task.support.share": side**2 / grid**2,
                }
                found[name] = changed(base, {"name": name + quick, "model.width": width, **where})
    return found


def _expanded(preset: str, scale: str) -> list[Config]:
    return _runs_of(preset + "_quick" * (scale == "quick"))


def _runs_of(preset: str) -> list[Config]:
    """The single runs of a sweep, each with all seeds."""
    sweep = PRESETS[preset]
    cases = {case.axes: case for case in plan.first_trials(sweep)}
    seeds = {"training.seeds": sweep.training.seeds}
    return [changed(plan.config_of(sweep, case), seeds) for case in cases.values()]


def _named(configs, scale: str) -> dict[str, Config]:
    """Students by name; the config of a quick one is named '..._quick'."""
    found = {}
    for config in configs:
        task, model = config.task, config.model
        parts = [f"modules_{task.modules}", f"seen_{sets_seen(config)}", f"width_{model.width}"]
        parts += [model.name] * (model.name != "task_mlp")
        parts += [task.code.name] * (task.code.name != "identity")
        parts += ["nearly_affine"] * (task.code.std == presets.AUTHORS_STD)
        parts += [task.support.name] * (task.support.name != "random")
        name = "_".join(parts)
        found[name] = changed(config, {"name": name + "_quick" * (scale == "quick")})
    return found


# --- picks among finished runs -----------------------------------------------------------------


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
    trained. Of several numbers of modules, the one with the most such runs."""
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
