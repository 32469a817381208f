"""Writes a file of the tutorials into this directory, for you to run and to change.

    compgen-jax example own_task.py

Without a name it lists the files.
"""

from pathlib import Path

from absl import flags

import compgen_jax
from compgen_jax import cli
from compgen_jax.runs import directory
from compgen_jax.settings import demand

NAME = flags.DEFINE_string("name", None, "The file, such as own_task.py.")
PACKAGE = Path(compgen_jax.__file__).parent


def main():
    folder = PACKAGE / "examples"
    if not folder.is_dir():  # in a checkout
        folder = PACKAGE.parent / "docs" / "tutorials"
    name, names = (
        NAME.value,
        sorted(path.name for path in folder.iterdir() if path.suffix in (".py", ".ipynb")),
    )
    if name is None:
        print("\n".join(names))
        return
    demand(name in names, f"there is no example {name!r}; there are {', '.join(names)}")
    demand(not Path(name).exists(), f"{name} is already here; remove it to have it anew")
    directory.write_bytes(Path(name), (folder / name).read_bytes())
    print(f"wrote {name}")


if __name__ == "__main__":
    cli.run(main, positional=(NAME,))
