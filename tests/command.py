"""Commands in this process."""

from absl.testing import flagsaver

from compgen_jax import cli


def call(module, *arguments, positional=()):
    """What a process of the command does: it reads its flags, then runs its `main`."""
    with flagsaver.flagsaver():
        cli._parse(["command", *arguments], positional)
        return module.main()
