"""Commands of pages, run in this process."""

import importlib
import shlex

from absl.testing import flagsaver

from compgen_jax import cli
from launch import compgen


def run(command: str, main=None):
    """What a shell does with a line that begins with `compgen-jax` or `python -m`; `main` replaces
    the command's own. Returns what it returns."""
    first, *words = shlex.split(command, comments=True)
    name, *arguments = words[1:] if first == "python" else words
    module = importlib.import_module(name if first == "python" else compgen.COMMANDS[name][0])
    with flagsaver.flagsaver():
        cli._parse(["command", *arguments])
        return (main or module.main)()
