"""The runs that figures show and claims are judged by.

A run has the same name at both scales. Its config may have another, that of its directory and of
its summary: 'bump_cnn_quick', 'ramp_cnn_trained'.
"""

import functools

import numpy as np

from compgen_jax.config import Config, changed
from compgen_jax.papers.forced_rendering.low_rank import ABLATIONS
from compgen_jax.papers.forced_rendering.presets import CODES, PRESETS
from compgen_jax.tasks import task as tasks

# the quick ramp of depth 6 takes as long as three others
CNN_DEPTHS = {
    "quick": {"bump": (2, 6), "ramp": (2,)},
    "paper": {"bump": (2, 3, 5, 6), "ramp": (2, 3, 5, 6)},
}
MLP_DEPTHS = {"quick": (7,), "paper": (4, 5, 6, 7)}
BUMPS = {"quick": (0, 10, 30), "paper": (0, 10, 50, 100)}  # beside the stripes
# how else stripes can be shown: in the other polarity, with another code of a missing factor
STRIPES_SHOWN = {
    "upright": {"task.image.polarity": "upright"},
    "off_grid": {"task.code.missing": "off_grid"},
    "upright_off_grid": {"task.image.polarity": "upright", "task.code.missing": "off_grid"},
    "off_canvas": {"task.code.missing": "off_canvas"},
}
BUMPS_SHOWN = {"quick": (), "paper": (0, 50)}  # the numbers of bumps beside stripes shown so
WIDE_SIGMA = {"quick": 2.5, "paper": 4.5}  # lights the hole's centre from its edge
TRANSFORMER_DEPTHS = {"quick": (), "paper": (3, 4, 5)}
# with the paper's epochs these do not learn what they are shown
TRAINED = ("ramp_cnn", "bump_mlp", "ramp_mlp")


@functools.cache
def runs(scale: str) -> dict[str, Config]:
    """The configs by name, in the order in which they are trained: what Figures 1 and 2 need first,
    then remedies, controls and other tasks, and last what takes longest and the sweeps."""
    paper = scale == "paper"
    configs = {
        **_bumps_alone(scale),
        **_stripes(scale),
        **_low_rank(scale),
        **_controls(scale),
        **_presets(scale, "two_objects"),
        **_three_factors(scale),
        **_presets(scale, "rotation", "rotation_objects", "encoder_code", "encoder_coordinates"),
    }
    if paper:
        configs |= _presets(scale, "pixelwise_begun")
    for name, depths in (("pixelwise", (4,)), ("transformer", TRANSFORMER_DEPTHS[scale])):
        configs |= _with_depths(name, _preset(name, scale), depths)
    if paper:  # the networks of Figure 1 as the paper trained the ramp's, and in the authors' code
        configs["ramp_cnn_50_epochs"] = PRESETS["ramp_cnn"].config
        configs |= _presets(scale, "ramp_cnn_authors", "bump_cnn_authors_128")
        configs["data_scaling"] = PRESETS["data_scaling_medium"].config
        return configs | _presets(scale, "data_scaling_epochs", "holdout_map")
    return configs | _presets(scale, "data_scaling", "holdout_map")


def _bumps_alone(scale: str) -> dict[str, Config]:
    """Networks that see bumps alone: every code's CNN, and other depths and MLPs for two codes."""
    configs = {f"{code}_cnn": _trained(f"{code}_cnn", scale) for code in CODES}
    for code, depths in CNN_DEPTHS[scale].items():
        configs |= _with_depths(f"{code}_cnn", configs[f"{code}_cnn"], depths)
    if scale == "quick":  # the shallow ramp is learnt more slowly
        more = {"training.epochs": 250}
        configs["ramp_cnn_depth2"] = changed(configs["ramp_cnn_depth2"], more)
    mlps = {name: _trained(name, scale) for name in ("bump_mlp", "ramp_mlp")}
    configs |= mlps
    for name, config in mlps.items():
        configs |= _with_depths(name, config, MLP_DEPTHS[scale])
    for name in mlps if scale == "paper" else ():  # as the authors trained those of their figures
        configs |= _with_depths(f"{name}_20_epochs", PRESETS[name].config, MLP_DEPTHS[scale])
    return configs


def _stripes(scale: str) -> dict[str, Config]:
    preset = _preset("stripes_bumps", scale)
    configs = {
        name: _variant(preset, name, {"task.support.samples": bumps})
        for bumps in BUMPS[scale]
        for name in [f"stripes_{bumps}_bumps"]
    }
    for bumps in BUMPS_SHOWN[scale]:
        beside = f"stripes_{bumps}_bumps"
        for shown, values in STRIPES_SHOWN.items():
            configs[f"{beside}_{shown}"] = _variant(configs[beside], f"{beside}_{shown}", values)
    return configs


def _low_rank(scale: str) -> dict[str, Config]:
    preset = _preset("lowrank", scale)
    penalty = preset.model.penalty
    return {
        f"lowrank_{name}": _variant(
            preset,
            f"lowrank_{name}",
            {
                "model.penalty.entropy": entropy * penalty.entropy,
                "model.penalty.variance": variance * penalty.variance,
            },
        )
        for name, (entropy, variance) in ABLATIONS.items()
    }


def _controls(scale: str) -> dict[str, Config]:
    base = _preset("bump_cnn", scale)
    hole, corner = base.task.support, _preset("stripes", scale).task.support
    donut = {
        "task.support.region": "donut",
        "task.support.low": hole.low,
        "task.support.high": hole.high,
    }
    wide = {"task.image.sigma": WIDE_SIGMA[scale]}
    if scale == "quick":  # wide bumps are learnt more slowly
        wide["training.epochs"] = base.training.epochs * 3 // 2
    changes = {
        "wide_bumps": (base, wide),
        "random_cells": (base, _at_random(base)),
        "corner_bumps": (base, {"task.support.region": "corner", "task.support.low": corner.low}),
        "donut_pixelwise": (_preset("pixelwise", scale), donut),
        "donut_stripes": (_preset("stripes_bumps", scale), donut),
    }
    if scale == "paper":  # composes: its layers are compared with those of the ramp's network
        ramp = _trained("ramp_cnn", scale)
        changes["random_cells_ramp"] = ramp, _at_random(ramp)
    return {name: _variant(config, name, values) for name, (config, values) in changes.items()}


def _three_factors(scale: str) -> dict[str, Config]:
    """By what is held out: a box; a square of x and y at every size, so that none of its pairs
    (x, y) is seen; a square of x and size at every y; as many combinations as in the box, at
    random."""
    box = _preset("three_factors", scale)
    held_out = {
        "three_factors_xy": {"task.support.of": ("x", "y")},
        "three_factors_xs": {"task.support.of": ("x", "size")},
        "three_factors_random": _at_random(box),
    }
    variants = {name: _variant(box, name, values) for name, values in held_out.items()}
    return {"three_factors": box, **variants}


def _with_depths(name: str, config: Config, depths: tuple) -> dict[str, Config]:
    """The network, and the same at other depths."""
    stem = config.name.removesuffix("_quick")
    return {name: config} | {
        f"{name}_depth{depth}": _variant(config, f"{stem}_depth{depth}", {"model.depth": depth})
        for depth in depths
    }


def _at_random(config: Config) -> dict:
    """The same share of cells, held out at random."""
    task = config.task.make()
    share = float(np.mean(task.held_out(tasks.cells(task.factors))))
    return {"task.support.region": "random", "task.support.share": share}


def _preset(name: str, scale: str) -> Config:
    return PRESETS[name + "_quick" * (scale == "quick")].config


def _presets(scale: str, *names: str) -> dict[str, Config]:
    return {name: _preset(name, scale) for name in names}


def _trained(name: str, scale: str) -> Config:
    return _preset(name + "_trained" * (scale == "paper" and name in TRAINED), scale)


def _variant(config: Config, name: str, values: dict) -> Config:
    """The config changed, its name with the suffix of its scale."""
    name += "_quick" * config.name.endswith("_quick")
    return changed(config, {"name": name, **values})
