"""Commands in this process."""

import importlib
import shlex
from types import SimpleNamespace

from absl.testing import flagsaver

from compgen_jax import cli
from launch import compgen


def call(module, *arguments, positional=()):
    """What a process of the command does: it reads its flags, then runs its `main`."""
    with flagsaver.flagsaver():
        cli._parse(["command", *arguments], positional)
        return module.main()


def run(command: str, main=None):
    """What a shell does with a line that begins with `compgen-jax`; `main` replaces the command's
    own. Returns what it returns."""
    name, *arguments = shlex.split(command, comments=True)[1:]
    module = importlib.import_module(compgen.COMMANDS[name][0])  # defines its flags
    return call(SimpleNamespace(main=main or module.main), *arguments)
