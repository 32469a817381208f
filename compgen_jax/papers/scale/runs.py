"""Which networks the figures show, and what each is for."""

from typing import NamedTuple

import numpy as np

from compgen_jax.config import Config, changed
from compgen_jax.papers.forced_rendering import runs as first_paper
from compgen_jax.papers.presets import PRESETS
from compgen_jax.papers.scale import presets
from compgen_jax.sweeps import plan
from compgen_jax.tasks import module_supports

BRIDGE_SHARES = {"quick": (0.15, 0.39), "paper": (0.1, 0.37)}  # of bumps that are held out
# by modules, sets seen: how many of them are needed?
NEEDED_QUICK = {4: (4, 7, 11), 8: (9, 22, 44, 69), 16: (60, 174, 522)}
NEEDED_PAPER = "tasks_needed", "tasks_needed_transformer"
BRIDGE_SUPPORTS = ("random", "disconnected", "non_compositional")


class Role(NamedTuple):
    """What a network is for.

    groups: 'seen' (sets x width), 'code', 'support', 'modules' (x width), 'needed' (sets, by
    modules) or 'bridge'; one may serve several.
    modules, seen (sets), width, code and support are the config's; model: its name."""

    groups: tuple
    modules: int
    seen: int
    width: int
    code: str
    support: str
    model: str


class Block(NamedTuple):
    """The role of a decoder of bumps in `bridge`: region 'donut' or 'random', share seen, width."""

    region: str
    seen: float
    width: int


class Network(NamedTuple):
    name: str
    config: Config
    role: Role | Block


def networks(scale: str) -> list[Network]:
    """All of them; a run that serves several figures is in the list once."""
    found = {}
    for group, config in _of_groups(scale):
        role = _role(config, (group,))
        name = _name(role, scale)
        if name in found:
            role = role._replace(groups=(*found[name].role.groups, group))
            found[name] = found[name]._replace(role=role)
        else:
            found[name] = Network(name, changed(config, {"name": name}), role)
    return [*found.values(), *_blocks(scale)]


def _of_groups(scale: str):
    quick = "_quick" * (scale == "quick")
    for config in _expanded("hyperteacher" + quick):
        yield "seen", config
    for config in _expanded("encodings" + quick):
        yield "code", presets.with_code(config, config.task.code.name)
    for config in _expanded("supports" + quick):
        yield "support", config
    for preset in () if quick else NEEDED_PAPER:
        for config in _expanded(preset):
            yield "needed", config
    if quick:
        for config in _expanded("modules_quick"):
            yield "modules", config
        base = changed(_expanded("hyperteacher_quick")[0], {"model.width": 256})
        for modules, each in NEEDED_QUICK.items():
            for seen in each:
                where = {"task.modules": modules, "task.support.seen": seen}
                yield "needed", changed(base, where)
        for support in BRIDGE_SUPPORTS:
            for seen in (22, 44):
                for width in (64, 256):
                    where = {"task.support.name": support, "task.support.seen": seen}
                    yield "bridge", changed(base, where | {"model.width": width})


def _expanded(preset: str) -> list[Config]:
    """The single runs of a sweep, each with all seeds."""
    sweep = PRESETS[preset]
    seeds = {"training.seeds": sweep.training.seeds}
    cases = {case.axes: case for case in plan.first_trials(sweep)}
    return [changed(plan.config_of(sweep, case), seeds) for case in cases.values()]


def _role(config: Config, groups: tuple) -> Role:
    task = config.task
    return Role(
        groups,
        task.modules,
        module_supports.n_seen(task.support, task.modules, task.most),
        config.model.width,
        task.code.name,
        task.support.name,
        config.model.name,
    )


def _name(role: Role, scale: str) -> str:
    parts = [f"modules_{role.modules}", f"seen_{role.seen}", f"width_{role.width}"]
    parts += [role.model] * (role.model != "task_mlp")
    parts += [role.code] * (role.code != "identity") + [role.support] * (role.support != "random")
    return "_".join([*parts, *(["quick"] if scale == "quick" else [])])


def _blocks(scale: str) -> list[Network]:
    """Decoders of bumps with a block or as many cells at random held out."""
    base = PRESETS["bump_cnn" + "_quick" * (scale == "quick")]
    found = []
    for region in ("donut", "random"):
        for share in BRIDGE_SHARES[scale]:
            side = round(share**0.5 * base.task.grid)
            low = (base.task.grid - side) // 2
            narrow, wide = base.model.width // 4, base.model.width
            # the wide ones with the larger share are networks of the first paper: see `block_of`
            for width in (narrow, wide) if share < BRIDGE_SHARES[scale][-1] else (narrow,):
                name = f"bump_{region}_{share:g}_width_{width}" + "_quick" * (scale == "quick")
                where = {
                    "task.support.region": region,
                    "task.support.low": low,
                    "task.support.high": low + side - 1,
                    "task.support.share": side**2 / base.task.grid**2,
                }
                config = changed(base, {"name": name, "model.width": width, **where})
                seen = 1 - side**2 / base.task.grid**2
                found.append(Network(name, config, Block(region, seen, width)))
    return found


def having(group: str):
    """role -> whether it serves that group; a role of another paper does not."""
    return lambda role: isinstance(role, Role) and group in role.groups


def in_bridge(role) -> bool:
    return isinstance(role, Block) or having("bridge")(role) or _of_first_paper(role)


def _of_first_paper(role) -> bool:
    base = {"code": "bump", "model": "conv", "base": True}
    shows = first_paper.having
    return shows(group="bumps", **base)(role) or shows(group="control", control="random")(role)


def block_of(study) -> Block | None:
    """Of a decoder of bumps of either paper; None of a student."""
    if isinstance(study.role, Role):
        return None
    support = study.config.task.support
    side = support.high + 1 - support.low
    held_out = support.share if support.region == "random" else side**2 / study.config.task.grid**2
    return Block(support.region, 1 - held_out, study.config.model.width)


def select(studies, group: str, **fields) -> list:
    """The studies of a group whose roles have these values, in order."""
    return [
        study
        for study in studies
        if having(group)(study.role)
        and all(getattr(study.role, name) == value for name, value in fields.items())
    ]


def numbers(studies, name: str):
    """(R, T) of the runs' summaries: a number of every seed."""
    return np.array([[seed[name] for seed in study.summary["seeds"].values()] for study in studies])
