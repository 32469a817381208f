"""Writes a page that trains: draw what is held out, and eight networks learn in the browser.

    compgen-jax playground [--out=DIR]

Writes playground.html, which opens from disk and needs no network.
"""

from pathlib import Path

from compgen_jax import cli, settings
from compgen_jax.runs import directory

OUT = cli.define_out()


def main():
    path = Path(OUT.value or ".") / "playground.html"
    directory.write_text(path, settings.beside("figures.playground.playground_page").text())
    print(f"wrote {path}")


if __name__ == "__main__":
    cli.run(main)
