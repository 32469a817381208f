"""Writes a page that trains: draw what is held out, and eight networks learn in the browser.

    compgen-jax playground [--out=DIR]

Writes playground.html, which opens from disk and needs no network.
"""

from pathlib import Path

from compgen_jax import cli, settings

OUT = cli.define_out()


def main():
    page = settings.beside("figures.playground.playground_page")
    print(f"wrote {page.write(Path(OUT.value or '.') / 'playground.html')}")


if __name__ == "__main__":
    cli.run(main)
