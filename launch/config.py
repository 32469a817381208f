"""The presets: `--config=launch/config.py:PRESET`.

Each name comes twice: with the paper's own settings (grid 28, 64 channels, 5 seeds) and, with
`_quick` behind it, at a scale for a laptop (grid 16, 32 channels, 3 seeds), the held-out region
and the training set scaled along; the MLPs keep their width. The README's table gives each one's
command, time and result.
"""

from dataclasses import replace

from ml_collections import ConfigDict

from compgen_jax.config import (
    CodeConfig,
    Config,
    DecoderConfig,
    ImageConfig,
    PenaltyConfig,
    StripesConfig,
    SupportConfig,
    SweepConfig,
    TaskConfig,
    TrainingConfig,
    changed,
    to_dict,
)

CODES = ("bump", "ramp", "onehot", "positional")


def _paper_cnn(code: str) -> Config:
    """CNN(E, 64, 4) on 2000 bumps around the donut's hole, 50 epochs (Figure 1)."""
    return Config(
        name=f"{code}_cnn",
        task=TaskConfig(
            grid=28,
            code=CodeConfig(name=code),
            support=SupportConfig(region="donut", low=6, high=22, samples=2000),
        ),
        decoder=DecoderConfig(name="conv", depth=4, width=64),
        training=TrainingConfig(epochs=50, evaluate_every=5),
    )


def _paper_mlp(code: str, width: int) -> Config:
    """MLP(E, width, 3), 20 epochs (appendix F.3)."""
    config = _paper_cnn(code)
    return replace(
        config,
        name=f"{code}_mlp",
        decoder=DecoderConfig(name="mlp", depth=3, width=width),
        training=replace(config.training, epochs=20),
    )


def _paper_lowrank() -> Config:
    """The regularised low-rank decoder of section 4.1, as the authors' notebook has it (Figure 3
    and 6); with `penalty.entropy` and `penalty.variance` at 0, their unregularised one."""
    return Config(
        name="lowrank",
        task=TaskConfig(
            grid=32,
            image=ImageConfig(sigma=1.5, polarity="upright"),
            code=CodeConfig(name="onehot"),
            support=SupportConfig(region="corner", low=12, sampling="every_cell"),
        ),
        decoder=DecoderConfig(name="lowrank", depth=2, width=2),
        training=TrainingConfig(
            epochs=1000,
            weight_decay=1e-4,
            evaluate_every=25,
            penalty=PenaltyConfig(entropy=0.1, variance=0.01),
        ),
    )


def _paper_stripes(bumps: int) -> Config:
    """All 56 stripes, once each, and so many bumps from outside the corner (section 4.2)."""
    return Config(
        name="stripes_bumps" if bumps else "stripes",
        task=TaskConfig(
            grid=28,
            code=CodeConfig(name="bump"),
            support=SupportConfig(
                region="corner", low=12, sampling="without_replacement", samples=bumps
            ),
            stripes=StripesConfig(copies=1),
        ),
        training=TrainingConfig(steps=2100, evaluate_every=300),
    )


def with_bumps(config: Config, bumps: int) -> Config:
    """A stripes preset with another number of bumps (Figures 4b and 7b)."""
    name = f"stripes_{bumps}_bumps" + "_quick" * config.name.endswith("_quick")
    return changed(config, {"name": name, "task.support.samples": bumps})


def _paper_pixelwise() -> Config:
    """The authors' decoder that all pixels share, on their settings (in their code, not in the
    paper): it composes without any remedy."""
    return Config(
        name="pixelwise",
        task=TaskConfig(
            grid=28,
            image=ImageConfig(polarity="upright"),
            code=CodeConfig(name="onehot"),
            support=SupportConfig(region="corner", low=14, sampling="every_cell"),
        ),
        decoder=DecoderConfig(name="pixelwise", depth=2, width=256),
        training=TrainingConfig(epochs=2000, weight_decay=1e-4, evaluate_every=100),
    )


def _quick(config: Config, values: dict) -> Config:
    """The preset at grid 16, with 3 seeds."""
    name = f"{config.name}_quick"
    return changed(config, {"name": name, "task.grid": 16, "training.seeds": (0, 1, 2), **values})


def _quick_bumps(config: Config, width: int, epochs: int) -> Config:
    """The hole covers 39% of the cells (the paper's: 37%) and leaves a margin of 3."""
    return _quick(
        config,
        {
            "task.support.low": 3,
            "task.support.high": 12,
            "task.support.samples": 1000,
            "decoder.width": width,
            "training.epochs": epochs,
            "training.evaluate_every": 10,
        },
    )


# 1200 steps: the error on seen cells, of which training shows few, falls no further
QUICK_STRIPES = {
    "task.support.low": 7,
    "decoder.width": 32,
    "training.steps": 1200,
    "training.evaluate_every": 200,
}
QUICK_PIXELWISE = {
    "task.support.low": 8,
    "decoder.width": 32,
    "training.epochs": 600,
    "training.evaluate_every": 50,
}


def _paper_scaling() -> Config:
    """How many images are enough, by grid (Figure 4c). The paper gives the grids' range alone."""
    return Config(
        name="data_scaling",
        task=TaskConfig(code=CodeConfig(name="bump"), support=SupportConfig(region="none")),
        decoder=DecoderConfig(name="conv", depth=4, width=64),
        training=TrainingConfig(steps=4000),
        sweep=SweepConfig(grids=tuple(range(24, 57, 4)), regions=("none", "corner", "donut")),
    )


# by accuracy on seen cells: 99% of those of the largest grid are drawn right after 1200 steps
QUICK_SWEEP = {
    "decoder.depth": 3,
    "decoder.width": 32,
    "training.steps": 1200,
    "training.batch_size": 16,
    "training.learning_rate": 3e-3,
    "training.seeds": (0, 1, 2),
}
QUICK_SCALING = QUICK_SWEEP | {
    "name": "data_scaling_quick",
    "sweep.grids": (8, 12, 16, 24),
    "sweep.regions": ("none", "corner"),
    "sweep.images_per_cell": (0.25, 2.0),
    "sweep.images_per_value": (1.0, 2.0, 8.0),
}


def _holdout_map() -> Config:
    """The error by grid and share of the held-out square (in the authors' code, not in the
    paper), with data sets in proportion to the seen area."""
    return Config(
        name="holdout_map",
        task=TaskConfig(
            code=CodeConfig(name="bump"),
            support=SupportConfig(region="none", sampling="real", samples=1000),
        ),
        decoder=DecoderConfig(name="conv", depth=4, width=64),
        training=TrainingConfig(steps=1000),
        sweep=SweepConfig(
            grids=(24, 28, 32, 36, 40),
            schemes=("bumps",),
            regions=("donut",),
            shares=(0.2, 0.3, 0.4, 0.5, 0.6),
            data="area",
        ),
    )


QUICK_HOLDOUT_MAP = QUICK_SWEEP | {
    "name": "holdout_map_quick",
    "sweep.grids": (8, 12, 16, 20),
    "sweep.shares": (0.2, 0.4, 0.6),
}


def _presets() -> dict[str, Config]:
    paper = [_paper_cnn(code) for code in CODES]
    paper += [_paper_mlp("bump", 256), _paper_mlp("ramp", 128)]
    # until seen cells are drawn right; the ramp is learnt more slowly
    quick = [
        _quick_bumps(config, width=32, epochs=90 if config.task.code.name == "ramp" else 40)
        for config in paper[:4]
    ]
    quick += [_quick_bumps(config, width=config.decoder.width, epochs=200) for config in paper[4:]]
    low_rank, pixelwise = _paper_lowrank(), _paper_pixelwise()
    stripes = _paper_stripes(0)
    remedies = [
        *(low_rank, _quick(low_rank, {"task.support.low": 6})),
        *(stripes, _quick(stripes, QUICK_STRIPES)),
        *(_paper_stripes(50), _quick(_paper_stripes(30), QUICK_STRIPES)),
        *(pixelwise, _quick(pixelwise, QUICK_PIXELWISE)),
    ]
    scaling, holdout = _paper_scaling(), _holdout_map()
    sweeps = [
        *(scaling, changed(scaling, QUICK_SCALING)),
        *(holdout, changed(holdout, QUICK_HOLDOUT_MAP)),
    ]
    return {config.name: config for config in paper + quick + remedies + sweeps}


PRESETS = _presets()


def with_depth(config: Config, depth: int) -> Config:
    """The preset at another depth (Figures 2 and 10 to 14)."""
    if depth == config.decoder.depth:
        return config
    name = config.name.replace("_quick", "") + f"_depth{depth}"
    name += "_quick" * config.name.endswith("_quick")
    return replace(config, name=name, decoder=replace(config.decoder, depth=depth))


def get_config(preset: str = "") -> ConfigDict:
    """What `ml_collections.config_flags` calls with the text behind the colon."""
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; allowed: {', '.join(PRESETS)}")
    return ConfigDict(to_dict(PRESETS[preset]))
