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
    SupportConfig,
    TaskConfig,
    TrainingConfig,
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


def _quick(config: Config, width: int, epochs: int) -> Config:
    """Grid 16: the hole covers 39% of the cells (the paper's: 37%) and leaves a margin of 3."""
    support = replace(config.task.support, low=3, high=12, samples=1000)
    return replace(
        config,
        name=f"{config.name}_quick",
        task=replace(config.task, grid=16, support=support),
        decoder=replace(config.decoder, width=width),
        training=replace(config.training, epochs=epochs, evaluate_every=10, seeds=(0, 1, 2)),
    )


def _presets() -> dict[str, Config]:
    paper = [_paper_cnn(code) for code in CODES]
    paper += [_paper_mlp("bump", 256), _paper_mlp("ramp", 128)]
    # the ramp is learnt more slowly
    quick = [
        _quick(config, width=32, epochs=160 if config.task.code.name == "ramp" else 60)
        for config in paper[:4]
    ]
    quick += [_quick(config, width=config.decoder.width, epochs=200) for config in paper[4:]]
    return {config.name: config for config in paper + quick}


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
