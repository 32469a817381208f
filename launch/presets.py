"""Lists the configs that come with the package: command, name, time on two cores.

    compgen-jax presets

`compgen-jax train --config=NAME --print_config` shows one in full. What came out is in
docs/reference/presets.md.
"""

from compgen_jax import cli
from compgen_jax.presets import PAPERS


def main():
    width = max(len(name) for presets in PAPERS.values() for name in presets)
    for paper, presets in PAPERS.items():
        print(f"{paper} (command, name, time on 2 CPU cores)")
        for name, preset in presets.items():
            command = "sweep" if preset.config.is_sweep else "train"
            print(f"  {command}  {name:{width}}  {preset.takes}")


if __name__ == "__main__":
    cli.run(main)
