"""The runs on sprites, and Montero's decoders of dSprites.

Factors are given as they are. So what a decoder cannot draw is not for want of a representation.
"""

import itertools

from compgen_jax.config import Config, changed
from compgen_jax.papers.real_factors.presets import PRESETS

# Montero et al. (2021) hold out squares on the right. Their element is .8% of all combinations, at
# one end of every factor.
RANGE = "shape == 'square' and posX > .5"
ELEMENT_SHARE, PAIR_SHARE = 0.008, 0.25
MARGINALS = {  # by the name of the run
    "mean": {"task.marginals.kind": "mean"},
    "mean_over_all": {"task.marginals.kind": "mean", "task.marginals.over": "all"},
    "union": {"task.marginals.kind": "union"},
    "slice": {"task.marginals.kind": "slice"},
}
# Embeddings of posX should be alike along the rows, of hue everywhere, and of scale nowhere. Three
# dilated convolutions read 17 pixels; the penalties' weights are the paper's.
LOW_RANK = {
    "model.name": "lowrank",
    "model.depth": 3,
    "model.width": 16,
    "model.dilations": (1, 2, 4),
    "task.code.name": "onehot",
    "task.code.of": (),
}
CONSTANT = {"posX": "rows", "posY": "columns", "hue": "both"}  # other factors: 'none'
PENALTIES = {"model.penalty.entropy": 0.1, "model.penalty.variance": 0.01}
ENCODER = {"model.name": "encoder", "task.asks": "factors"}
# Their splits of dSprites as they name them, and NLL per image in training and in test (notebook of
# github.com/mmrl/disent-and-gen), where it was published.
MONTERO = {
    "leave1out": (49.8, 60.8),
    "shape2tx": (46.8, 139.0),
    "ell2tx": None,
    "sqr2scl": None,
    "sqr2tx_cent": None,
    "sqr2tx_rs": None,
    "sqr2tx_ls": None,
    "blank_side": (40.7, 2189.0),
}


def runs(scale: str) -> dict[str, Config]:
    """All runs by name; those of 64 pixels at the paper's scale alone."""
    base = _preset("sprites", scale)
    names = [factor.name for factor in base.task.scene().factors]
    held_out = {
        "range": RANGE,
        "element": f"corner({', '.join(names)}, share={ELEMENT_SHARE})",
        "extrapolation": "posX > .5",
        "random": f"random({RANGE})",
    }
    values = {name: {"task.held_out": text} for name, text in held_out.items()}
    values |= {name: of | values["range"] for name, of in MARGINALS.items()}
    for a, b in pairs(base):
        values[f"pair_{a}_{b}"] = {"task.held_out": f"corner({a}, {b}, share={PAIR_SHARE})"}
    axes = tuple((index, CONSTANT.get(name, "none")) for index, name in enumerate(names))
    values["lowrank"] = LOW_RANK | values["range"] | {"model.penalty.axes": axes}
    values["lowrank_penalties"] = values["lowrank"] | PENALTIES
    values["encoder"] = ENCODER | values["range"]
    found = {
        f"sprites_{name}": _variant(base, f"sprites_{name}", of) for name, of in values.items()
    }
    return found | (montero() if scale == "paper" else {})


def pairs(config: Config) -> list[tuple[str, str]]:
    """The names of all pairs of factors."""
    return list(itertools.combinations([f.name for f in config.task.scene().factors], 2))


def montero() -> dict[str, Config]:
    """Decoders of dSprites' true factors, a run for each split (Montero et al. 2021)."""
    base = PRESETS["montero_dsprites"].config
    return {
        f"montero_{split}": changed(
            base,
            {"name": f"montero_{split}", "task.held_out": f"montero dsprites {split}"},
        )
        for split in MONTERO
    }


def _preset(name: str, scale: str) -> Config:
    return PRESETS[name + "_quick" * (scale == "quick")].config


def _variant(config: Config, name: str, values: dict) -> Config:
    """The config changed, its name with the suffix of its scale."""
    return changed(config, {"name": name + "_quick" * config.name.endswith("_quick"), **values})
