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
    names = sorted(path.name for path in folder.iterdir() if path.suffix in (".py", ".ipynb"))
    if NAME.value is None:
        print("\n".join(names))
        return
    demand(NAME.value in names, f"there is no example {NAME.value!r}; there are {', '.join(names)}")
    is_new = not Path(NAME.value).exists()
    demand(is_new, f"{NAME.value} is already here; remove it to have it anew")
    directory.write_bytes(Path(NAME.value), (folder / NAME.value).read_bytes())
    print(f"wrote {NAME.value}")


if __name__ == "__main__":
    cli.run(main, positional=(NAME,))
