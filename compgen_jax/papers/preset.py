"""What a preset is, and what the documentation says of it."""

from typing import NamedTuple

from compgen_jax.config import Config, changed


class Preset(NamedTuple):
    """A config with its name, how long `launch.train` (or `launch.sweep`) of it takes for all seeds
    on 2 CPU cores, and what came out where its summary is not in docs/results, or what else is to
    say of it."""

    config: Config
    takes: str = "?"
    result: str = ""

    @property
    def command(self) -> str:
        main = "sweep" if self.config.is_sweep else "train"
        name = self.config.name
        return f"compgen-jax {main} --config={name} --workdir=runs/{name}"


def quick(config: Config, values: dict) -> Config:
    """The preset at a scale for a laptop."""
    return changed(config, {"name": f"{config.name}_quick"} | values)
