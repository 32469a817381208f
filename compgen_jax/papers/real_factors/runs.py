"""The runs on sprites, and Montero's decoders of dSprites.

Factors are given as they are. So what a decoder cannot draw is not for want of a representation.
"""

import functools
import itertools

from compgen_jax.config import Config, changed
from compgen_jax.papers.real_factors.presets import PRESETS

MEASURED = 500  # ID and held-out combinations each, or all
# Montero et al. (2021) hold out squares on the right. Their element is .8% of all combinations, at
# one end of every factor.
RANGE = "shape == 'square' and posX > .5"
ELEMENT_SHARE, PAIR_SHARE = 0.008, 0.25
# Steps were chosen by ID accuracy on another seed.
LENGTH = {"training.steps": 1500, "training.batch_size": 32, "training.evaluate_every": 500}
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
    "training.steps": 3000,
}
CONSTANT = {"posX": "rows", "posY": "columns", "hue": "both"}  # other factors: 'none'
PENALTIES = {"model.penalty.entropy": 0.1, "model.penalty.variance": 0.01}
ENCODER = {
    "model.name": "encoder",
    "task.asks": "factors",
    "training.steps": 4000,
    "training.batch_size": 64,
}
# The splits of dSprites of Montero et al. (2021), by the name of the run, with the NLL per image of
# their decoders of true factors in training and in test, where it was published (notebook of
# github.com/mmrl/disent-and-gen).
MONTERO = {
    "element": ("leave1out", (49.8, 60.8)),
    "range": ("shape2tx", (46.8, 139.0)),
    "ell2tx": ("ell2tx", None),
    "sqr2scl": ("sqr2scl", None),
    "sqr2tx_cent": ("sqr2tx_cent", None),
    "sqr2tx_rs": ("sqr2tx_rs", None),
    "sqr2tx_ls": ("sqr2tx_ls", None),
    "extrapolation": ("blank_side", (40.7, 2189.0)),
}


@functools.cache
def runs(scale: str) -> dict[str, Config]:
    """All runs by name. At the paper's scale they are Montero's: decoders of dSprites at 64 pixels,
    and one that lacks as many combinations at random."""
    values = _quick() if scale == "quick" else _paper()
    base = PRESETS["sprites" + "_quick" * (scale == "quick")].config
    suffix = base.name.removeprefix("sprites")
    return {
        f"sprites_{name}": changed(
            base, {"name": f"sprites_{name}{suffix}", "task.measured": MEASURED, **fields}
        )
        for name, fields in values.items()
    }


def _paper() -> dict[str, dict]:
    splits = {name: f"montero dsprites {split}" for name, (split, _) in MONTERO.items()}
    splits["random"] = f"random({RANGE})"
    return {name: {"task.held_out": text} for name, text in splits.items()}


def _quick() -> dict[str, dict]:
    factors = PRESETS["sprites_quick"].config.task.scene().factors
    names = [factor.name for factor in factors]
    held_out = {
        "range": RANGE,
        "element": f"corner({', '.join(names)}, share={ELEMENT_SHARE})",
        "extrapolation": "posX > .5",
        "random": f"random({RANGE})",
    }
    for a, b in itertools.combinations(names, 2):
        held_out[f"pair_{a}_{b}"] = f"corner({a}, {b}, share={PAIR_SHARE})"
    values = {name: {"task.held_out": text} for name, text in held_out.items()}
    constant = tuple((index, CONSTANT.get(name, "none")) for index, name in enumerate(names))
    low_rank = LOW_RANK | {"model.penalty.axes": constant}
    changes = {"lowrank": low_rank, "lowrank_penalties": low_rank | PENALTIES, "encoder": ENCODER}
    values |= {name: values["range"] | new for name, new in (MARGINALS | changes).items()}
    return {name: LENGTH | fields for name, fields in values.items()}
