"""Which networks the figures show, and what each is for."""

from typing import NamedTuple

import numpy as np

from compgen_jax.config import Config, changed
from compgen_jax.papers.forced_rendering.mechanism import CODES as BOTH
from compgen_jax.papers.forced_rendering.presets import CODES, with_bumps, with_depth
from compgen_jax.papers.forced_rendering.remedies import ABLATIONS
from compgen_jax.papers.presets import PRESETS
from compgen_jax.tasks import task as tasks

DEPTHS = {
    # the ramp of depth 6 takes as long as three others
    "quick": {("conv", "bump"): (2, 4, 6), ("conv", "ramp"): (2, 4), "mlp": (3, 7)},
    "paper": {"conv": (2, 3, 4, 5, 6), "mlp": (3, 4, 5, 6, 7)},
}
BUMPS = {"quick": (0, 10, 30), "paper": (0, 10, 50, 100)}  # beside the stripes
WIDE_SIGMA = {"quick": 2.5, "paper": 4.5}  # lights the hole's centre from its edge
# how else stripes alone can be shown: the other polarity, the other code of a missing factor
ALONE_TITLES = {
    "": "inverted, code zero",
    "upright": "upright, code zero",
    "off_grid": "inverted, code off the grid",
    "upright_off_grid": "upright, code off the grid",
}
STRIPES_ALONE = {
    "upright": {"task.image.polarity": "upright"},
    "off_grid": {"task.code.missing": "off_grid"},
    "upright_off_grid": {"task.image.polarity": "upright", "task.code.missing": "off_grid"},
}
# the paper's epochs are too few for these to learn what they are shown
TRAINED = {"quick": (), "paper": ("ramp_cnn", "bump_mlp", "ramp_mlp")}
# sweeps: how many images, by N; the same with as many epochs; hold-outs by N
SCALING, EPOCHS, HOLDOUT_MAP = "data_scaling", "data_scaling_epochs", "holdout_map"


class Role(NamedTuple):
    """What a network is for; a field that says nothing of it is empty.

    group: 'bumps' (alone, around the hole of Figure 1), 'paper_epochs' (the same in the paper's
    epochs, where these are too few), 'authors' (Figure 1's networks in their code), 'lowrank',
    'stripes' (and bumps around a corner), 'stripes_alone' (shown in another way, `control`, one of
    `STRIPES_ALONE`), 'control', 'three_factors', 'rotation' (of one digit or, with the control
    'objects', of several), 'encoder' (the `control` says of what), 'pixels' (decoders that all
    pixels share, in the authors' code) or 'begun' (the smallest of those, in a quarter of its
    epochs).  base: whether it has its preset's depth, or number of
    bumps.  bumps: beside the stripes.  ablation: one of `ABLATIONS`.  control: its name.  region:
    what is held out of three factors, 'box', 'xy', 'xs' or 'random'."""

    group: str
    code: str
    model: str  # a model's name: 'conv', 'mlp', ...
    depth: int
    base: bool = True
    bumps: int | None = None
    ablation: str = ""
    control: str = ""
    region: str = ""


class Network(NamedTuple):
    name: str
    config: Config
    role: Role


def networks(scale: str) -> list[Network]:
    """All of them, in the order in which they are trained: presets first, then their other depths,
    then remedies, controls, three factors, what is in the authors' code alone, and what takes
    longest."""
    return [*_of_bumps(scale), *_of_stripes(scale), *_low_rank(scale), *_controls(scale),
            *_three_factors(scale), *_rotations(scale), *_encoders(scale), *_begun(scale),
            *_pixels(scale), *_paper_epochs(scale), *_authors(scale)]  # fmt: skip


def sweeps(scale: str) -> dict[str, Config]:
    """By their names; how many images are enough, at the paper's N with the quick decoders."""
    if scale == "quick":
        return {name: _preset(name, scale) for name in (SCALING, HOLDOUT_MAP)}
    return {
        SCALING: PRESETS["data_scaling_medium"],
        EPOCHS: PRESETS[EPOCHS],
        HOLDOUT_MAP: PRESETS[HOLDOUT_MAP],
    }


def having(**fields):
    """role -> whether its fields have these values (of several, given as a tuple, one of them); a
    role of another paper has not."""

    def shows(role) -> bool:
        return isinstance(role, Role) and all(
            getattr(role, name) in (value if isinstance(value, tuple) else (value,))
            for name, value in fields.items()
        )

    return shows


def select(studies, **fields) -> list:
    """The studies of networks whose roles have these values, in order; see `having`."""
    return [study for study in studies if having(**fields)(study.role)]


def by_depth(studies, code: str, model: str = "conv") -> list:
    """Those that saw bumps alone, of one code and kind of decoder, by rising depth."""
    found = select(studies, group="bumps", code=code, model=model)
    return sorted(found, key=lambda study: study.role.depth)


def _of_bumps(scale: str) -> list[Network]:
    """Networks that saw bumps alone: every code's CNN, and of `BOTH` all depths and MLPs."""
    found = []
    for model, preset, codes in (("conv", "cnn", CODES), ("mlp", "mlp", BOTH)):
        presets = [_trained(f"{code}_{preset}", scale) for code in codes]
        found += [_network(config, "bumps") for config in presets]
        for config in presets:
            if config.task.code.name in BOTH:
                of_code = DEPTHS[scale].get((model, config.task.code.name))
                depths = {*(of_code or DEPTHS[scale][model])} - {config.model.depth}
                found += [_network(with_depth(config, depth), "bumps", base=False)
                          for depth in sorted(depths)]  # fmt: skip
    return found


def _of_stripes(scale: str) -> list[Network]:
    preset = _preset("stripes_bumps", scale)
    found = [
        _network(with_bumps(preset, n), "stripes", bumps=n, base=n == preset.task.support.samples)
        for n in BUMPS[scale]
    ]
    alone = with_bumps(preset, 0)
    name = alone.name.removesuffix("_quick")
    return found + [
        _variant(alone, f"{name}_{variant}", values, "stripes_alone", control=variant)
        for variant, values in (STRIPES_ALONE.items() if scale == "paper" else ())
    ]


def _low_rank(scale: str) -> list[Network]:
    preset = _preset("lowrank", scale)
    penalty, found = preset.model.penalty, []
    for name, (entropy, variance) in ABLATIONS.items():
        weights = {
            "model.penalty.entropy": entropy * penalty.entropy,
            "model.penalty.variance": variance * penalty.variance,
        }
        found.append(_variant(preset, f"lowrank_{name}", weights, "lowrank", ablation=name))
    return found


def _controls(scale: str) -> list[Network]:
    base = _preset("bump_cnn", scale)
    hole = base.task.support
    donut = {
        "task.support.region": "donut",
        "task.support.low": hole.low,
        "task.support.high": hole.high,
    }
    wide = {"task.image.sigma": WIDE_SIGMA[scale]}
    if scale == "quick":  # they are learnt more slowly
        wide["training.epochs"] = base.training.epochs * 3 // 2
    made = {
        "wide": (base, "wide_bumps", wide),
        "random": (base, "random_cells", _at_random(base)),
        "pixelwise": (_preset("pixelwise", scale), "donut_pixelwise", donut),
        "donut_stripes": (_preset("stripes_bumps", scale), "donut_stripes", donut),
    }
    if scale == "paper":  # what composes, for comparison with the layers of the ramp's network
        ramp = _trained("ramp_cnn", scale)
        made["random_ramp"] = ramp, "random_cells_ramp", _at_random(ramp)
    return [_variant(*what, "control", control=control) for control, what in made.items()]


def _three_factors(scale: str) -> list[Network]:
    """What is held out: a box; a square of x and y at every size, of which no pair (x, y) is seen;
    a square of x and size at every y; and as many combinations as in the box, at random."""
    box = _preset("three_factors", scale)
    held_out = {
        "xy": {"task.support.of": ("x", "y")},
        "xs": {"task.support.of": ("x", "size")},
        "random": _at_random(box),
    }
    return [_network(box, "three_factors", region="box")] + [
        _variant(box, f"three_factors_{region}", values, "three_factors", region=region)
        for region, values in held_out.items()
    ]


def _rotations(scale: str) -> list[Network]:
    presets = {"": "rotation", "objects": "rotation_objects"}
    return [_network(_preset(name, scale), "rotation", control=control)
            for control, name in presets.items()]  # fmt: skip


def _encoders(scale: str) -> list[Network]:
    """The task turned round: the code, or the coordinates, of an image."""
    return [_network(_preset(f"encoder_{answer}", scale), "encoder", control=answer)
            for answer in ("code", "coordinates")]  # fmt: skip


def _begun(scale: str) -> list[Network]:
    """The per-pixel MLP on the authors' settings, as many of its epochs as two cores hold."""
    return [_network(PRESETS["pixelwise_begun"], "begun")] if scale == "paper" else []


def _pixels(scale: str) -> list[Network]:
    """The per-pixel MLP and the transformer of pixels, by depth."""
    depths = {"pixelwise": (2, 4), "transformer": (2, 3, 4, 5) if scale == "paper" else (2,)}
    return [
        _network(with_depth(preset, depth), "pixels", base=depth == preset.model.depth)
        for name, of_model in depths.items()
        for preset in [_preset(name, scale)]
        for depth in of_model
    ]


def _paper_epochs(scale: str) -> list[Network]:
    """Figure 1's ramp as long as the paper trained it."""
    return [_network(PRESETS["ramp_cnn"], "paper_epochs")] if scale == "paper" else []


def _authors(scale: str) -> list[Network]:
    """The networks of Figure 1 in the authors' code, that of the bump code with half of its
    channels; they have no quick form."""
    presets = ("ramp_cnn_authors", "bump_cnn_authors_128") if scale == "paper" else ()
    return [_network(PRESETS[name], "authors") for name in presets]


def _at_random(config: Config) -> dict:
    """The same share of cells, held out at random."""
    task = config.task.make()
    share = float(np.mean(task.held_out(tasks.cells(task.factors))))
    return {"task.support.region": "random", "task.support.share": share}


def _preset(name: str, scale: str) -> Config:
    return PRESETS[name + "_quick" * (scale == "quick")]


def _trained(name: str, scale: str) -> Config:
    return _preset(name + "_trained" * (name in TRAINED[scale]), scale)


def _variant(config: Config, name: str, values: dict, group: str, **role) -> Network:
    name += "_quick" * config.name.endswith("_quick")
    return _network(changed(config, {"name": name, **values}), group, **role)


def _network(config: Config, group: str, **role) -> Network:
    model = config.model
    of_all = group, config.task.code.name, model.name, getattr(model, "depth", 0)
    return Network(config.name, config, Role(*of_all, **role))
