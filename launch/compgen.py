"""One console command for all: `compgen-jax train --config=bump_cnn_quick --workdir=runs/first`.

    compgen-jax                  the commands, one line each
    compgen-jax COMMAND --help   the flags of one

`compgen` is the same command where the shell has none of this name of its own, as bash has.
"""

import difflib
import os
import runpy
import signal
import sys

import compgen_jax

ROOT = __package__.removesuffix("launch")  # '' in a checkout, 'compgen_jax.' where installed
# command: module, what it does
COMMANDS = {
    "train": ("launch.train", "train all seeds of one config; the same command resumes"),
    "sweep": ("launch.sweep", "train many configs, or search where a score reaches a target"),
    "analyze": ("launch.analyze", "measure every layer of a trained run, and judge it"),
    "explore": ("launch.explore", "write a page to explore a trained run in a browser"),
    "draw": ("figures.draw", "draw what a trained run makes of one point"),
    "plot": ("figures.draw_run", "draw a trained run's errors, layers and examples"),
    "figures": ("figures.make", "train what the papers' figures need, and draw them"),
    "probe": ("launch.probe", "read factors off activations of any model"),
    "holdout": ("launch.holdout", "say what a hold-out is worth before training"),
    "presets": ("launch.presets", "list the configs that come with the package"),
    "score": ("launch.score", "score predictions of any framework on a task"),
    "judge": ("launch.judge", "say the verdict of every claim whose runs are there"),
    "playground": ("launch.playground", "write a page that trains networks in a browser"),
    "compare": ("launch.compare", "compare two trained runs, seed by seed"),
    "example": ("launch.example", "write a file of the tutorials here, or list them"),
}
USAGE_ERROR, INTERRUPTED = 2, 130  # of `cli`, whose import takes seconds


def main():
    name, *flags = sys.argv[1:] or ["--help"]
    if name in ("--help", "-h", "help"):
        commands = "\n".join(f"  {name:11}{what}" for name, (_, what) in COMMANDS.items())
        print(f"compgen-jax COMMAND --FLAG=VALUE ...\n\n{commands}\n")
        print("compgen-jax COMMAND --help: its flags")
    elif name == "--version":
        print(f"compgen_jax {compgen_jax.__version__}")
    elif name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0)
        print(f"error: no command {name!r}; the nearest is {close[0]}", file=sys.stderr)
        sys.exit(USAGE_ERROR)
    else:
        sys.argv = [f"compgen-jax {name}", *flags]
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            signal.signal(signal.SIGINT, end_at_once)  # until `cli.heed_interrupts`
        # as `python -m` runs it: absl then finds the command's own flags and help
        runpy.run_module(ROOT + COMMANDS[name][0], run_name="__main__", alter_sys=True)


def end_at_once(*_):
    """For Ctrl-C while modules are imported: a KeyboardInterrupt may crash there."""
    os.write(sys.stderr.fileno(), b"error: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
