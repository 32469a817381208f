"""Which networks the figures show: by code, decoder and depth, or by the name of a remedy."""

from typing import NamedTuple

from compgen_jax.config import Config, changed
from launch.config import CODES, PRESETS, with_bumps, with_depth

BASE_DEPTH = {"conv": 4, "mlp": 3}  # of the presets
DEPTHS = {
    "quick": {"conv": (2, 4, 6), "mlp": (3, 5, 7)},
    "paper": {"conv": (2, 3, 4, 5, 6), "mlp": (3, 4, 5, 6, 7)},
}
BUMPS = {"quick": (0, 10, 30, 100), "paper": (0, 10, 50, 100)}  # beside the stripes
FEW = {"quick": 30, "paper": 50}  # bumps of the network that Figure 4 looks into
WIDE_SIGMA = {"quick": 2.5, "paper": 4.5}  # lights the hole's centre from its edge


# the low-rank decoder's penalties (entropy, variance), as multiples of the preset's (Figure 3e)
ABLATIONS = {"none": (0, 0), "entropy": (1, 0), "variance": (0, 1), "both": (1, 1)}
SCALING, HOLDOUT_MAP = "data_scaling", "holdout_map"  # sweeps, by their presets
CONTROLS = ("wide", "random", "pixelwise", "donut_stripes")


class Key(NamedTuple):
    """A network of Figures 1, 2, 8 and 10 to 14, which saw bumps alone."""

    code: str  # 'bump', 'ramp', ...
    decoder: str  # 'conv' or 'mlp'
    depth: int


def config_of(key: Key | str, scale: str) -> Config:
    """The config of a network, or of a remedy or control by its name."""
    if isinstance(key, str):
        return remedies(scale)[key]
    return with_depth(_preset(f"{key.code}_{'cnn' if key.decoder == 'conv' else 'mlp'}", scale),
                      key.depth)  # fmt: skip


def remedies(scale: str) -> dict[str, Config]:
    """The two remedies and their controls, in the order in which they are trained."""
    stripes, low_rank = _preset("stripes_bumps", scale), _preset("lowrank", scale)
    penalty = low_rank.training.penalty
    base = _preset("bump_cnn", scale)
    hole = base.task.support
    found = {f"stripes_{n}": with_bumps(stripes, n) for n in BUMPS[scale]}
    for name, (entropy, variance) in ABLATIONS.items():
        weights = {
            "training.penalty.entropy": entropy * penalty.entropy,
            "training.penalty.variance": variance * penalty.variance,
        }
        found[f"lowrank_{name}"] = _variant(low_rank, f"lowrank_{name}", weights)
    donut = {
        "task.support.region": "donut",
        "task.support.low": hole.low,
        "task.support.high": hole.high,
    }
    share = (hole.high - hole.low + 1) ** 2 / base.task.grid**2
    return found | {
        "wide": _variant(base, "wide_bumps", {"task.image.sigma": WIDE_SIGMA[scale]}),
        "random": _variant(
            base, "random_cells", {"task.support.region": "random", "task.support.share": share}
        ),
        "pixelwise": _variant(_preset("pixelwise", scale), "donut_pixelwise", donut),
        "donut_stripes": _variant(stripes, "donut_stripes", donut),
    }


def sweep_of(name: str, scale: str) -> Config:
    return _preset(name, scale)


def in_order(keys, scale: str) -> list:
    """Presets first, then their other depths, then remedies and controls; each once."""
    names = list(remedies(scale))

    def rank(key):
        if isinstance(key, str):
            return 1, names.index(key)
        depth = key.depth != BASE_DEPTH[key.decoder], CODES.index(key.code), key.depth
        return 0, key.decoder, *depth

    return sorted(set(keys), key=rank)


def _preset(name: str, scale: str) -> Config:
    return PRESETS[name + "_quick" * (scale == "quick")]


def _variant(config: Config, name: str, values: dict) -> Config:
    name += "_quick" * config.name.endswith("_quick")
    return changed(config, {"name": name, **values})
