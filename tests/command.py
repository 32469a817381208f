"""Commands in this process, and what they refuse."""

import contextlib
import importlib
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from absl.testing import flagsaver

from compgen_jax import cli
from launch import compgen


def call(module, *arguments, positional=()):
    """What a process of the command does: it reads its flags, then runs its `main`."""
    with flagsaver.flagsaver():
        cli._parse(["command", *arguments], positional)
        return module.main()


def blocks(page: str, language: str = "") -> list[str]:
    """The blocks of code of a page."""
    every = re.findall(r"^```(\w*)\n(.*?)^```", page, re.S | re.M)
    return [text for name, text in every if name == language]


def page(name: str) -> str:
    """A page of docs/how_to."""
    return (Path(__file__).parents[1] / "docs" / "how_to" / f"{name}.md").read_text()


def snippets(name: str) -> list[str]:
    """The Python of a page of docs/how_to."""
    return blocks(page(name), "python")


def drawn_by(snippet: str) -> dict:
    """The names that a snippet leaves, of which `plt` has its picture."""
    names = {}
    exec(snippet, names)
    names["plt"].close()
    return names


def run(command: str, main=None):
    """What a shell does with a line that begins with `compgen-jax` or `python -m`; `main` replaces
    the command's own. Returns what it returns."""
    first, *words = shlex.split(command, comments=True)
    name, *arguments = words[1:] if first == "python" else words
    module = importlib.import_module(name if first == "python" else compgen.COMMANDS[name][0])
    return call(SimpleNamespace(main=main or module.main), *arguments)


@contextlib.contextmanager
def refused(*parts: str, kind=(ValueError, RuntimeError)):
    """What is inside raises an error whose message is one line with all these parts. A ConfigError
    is a ValueError, a RunError a RuntimeError."""
    with pytest.raises(kind) as error:
        yield
    text = str(error.value)
    assert all(part in text for part in parts), text
    assert "\n" not in text
