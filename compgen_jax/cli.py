"""What all command lines share: flags become a checked `Config`, errors become one line."""

import ast
import contextlib
import json
import logging
import os
import re
import signal
import sys
import textwrap
import threading
import time
from functools import cache, partial

import jax
from absl import app, flags

from compgen_jax import compilation_cache, settings
from compgen_jax import config as configs
from compgen_jax.config import Config, ConfigError
from compgen_jax.runs import directory
from compgen_jax.runs.directory import RunError

USAGE_ERROR, FAILURE, INTERRUPTED = 2, 1, 130
PATIENCE = 3  # seconds from Ctrl-C until a process ends that does not heed it
IMAGES = ".npz", ".h5", ".hdf5"

flags.disclaim_key_flags()  # --help of a command lists the flags that are defined here

_overrides: list[str] = []  # --config.KEY=VALUE, in the order of the command line


def _definer(name: str, about: str, define=flags.DEFINE_string, default=None):
    """A function that defines a flag once and returns its holder."""
    return cache(partial(define, name, default, about))


CONFIG = """The name of a preset, or FILE.py:NAME of your own, whose get_config(NAME) returns a
Config, or a file of images, .npz or .h5; --config.KEY=VALUE overrides a field."""
define_config, define_task = _definer("config", CONFIG), _definer("task", CONFIG)
define_workdir = _definer("workdir", "The directory of the run, or of the figures.")
define_out = _definer("out", "The directory of what is written.")
define_print_config = _definer(
    "print_config",
    "Print the complete config as JSON, overrides included, and stop.",
    flags.DEFINE_bool,
    False,
)
define_dry_run = _definer(
    "dry_run",
    "Print what it would cost: steps, FLOPs, memory, time; train and write nothing.",
    flags.DEFINE_bool,
    False,
)
define_trust = _definer(
    "trust",
    "Import the files of code that another user's run names.",
    flags.DEFINE_bool,
    False,
)
define_extend = _definer(
    "extend", "Files of yours: metrics, claims, figures or runs.", flags.DEFINE_list, []
)


def load_extensions() -> list:
    """The modules of --extend. Raises ConfigError."""
    modules = []
    for path in define_extend().value:
        with settings.naming(f"--extend={path}"):
            modules.append(settings.load_file(path))
    return modules


def require(holder) -> str:
    """The value of a string flag. Raises ConfigError where it is missing."""
    settings.demand(holder.value, f"--{holder.name} is missing")
    return holder.value


def read_config(holder) -> Config:
    """The Config of --config with its overrides. Raises ConfigError, with a note of the presets."""
    flag = f"--{holder.name}"
    if holder.value is None:
        lack = f"{flag} is missing"
        if _overrides:
            lack = f"{_overrides[0].partition('=')[0]} needs {flag}"
        error = ConfigError(f"{lack}; give a preset's name, or FILE.py:NAME of your own")
        from compgen_jax.presets import PAPERS

        error.add_note("presets:")
        for paper, names in PAPERS.items():
            indent = {"initial_indent": f"  {paper}: ", "subsequent_indent": "    "}
            lines = textwrap.wrap(", ".join(names), 100, break_on_hyphens=False, **indent)
            error.add_note("\n".join(lines))
        raise error
    pairs = (override.removeprefix("--config.").partition("=")[::2] for override in _overrides)
    config = load_config(holder.value, f"{flag}=")
    return configs.changed(config, dict(pairs), read=_read)


def only_describes(config: Config, cost) -> bool:
    """Whether --print_config or --dry_run was given, and prints its answer."""
    if define_print_config().value:
        print(json.dumps(configs.to_dict(config), indent=1))  # `config.from_dict` reads it
        return True
    if define_dry_run().value:
        print("\n".join(cost(config)))
        return True
    return False


def load_config(value: str, flag: str = "--config=") -> Config:
    """The preset of that name; of FILE.py:NAME what get_config(NAME) returns, or an MLP on the task
    that is a class of this name; of a file of images, the preset `table` with it. Raises
    ConfigError."""
    if value.endswith(IMAGES):
        from compgen_jax.presets import get_config

        return configs.changed(get_config("table"), {"task.path": value})
    path, _, name = value.partition(":")
    try:
        if ":" not in value and not path.endswith(".py"):
            from compgen_jax.presets import get_config

            name = value
        else:
            module = settings.load_file(path)
            if isinstance(getattr(module, name, None), type):
                return configs.changed(Config(name=name), {"model.name": "mlp", "task.name": value})
            get_config = getattr(module, "get_config", None)
            hint = "has no function get_config(name), which returns a Config"
            settings.demand(callable(get_config), f"{path} {hint}")
        config = get_config(name) if name else get_config()
    except ConfigError as error:
        raise ConfigError(f"{flag}{value}: {error}") from error
    except BaseException as error:  # the user's code may raise anything
        raise settings.user_error(error, path) from error
    hint = f"get_config({name!r}) returned {type(config).__name__}, not a Config"
    settings.demand(isinstance(config, Config), f"{path}: {hint}")
    return config


def _read(text: str, like):
    """The value that a text means for a field that has a value `like` it, or the text itself."""
    if isinstance(like, str):
        return text
    if isinstance(like, bool):  # '' of a flag without a value
        text = text.capitalize() or "True"
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return (value,) if isinstance(like, tuple) and isinstance(value, int | float | str) else value


def run(main, positional=()):
    """Runs `main()`; a user's error ends in one line on stderr. `positional`: holders of flags
    whose values may stand alone, a list last."""

    def guarded(argv):
        del argv
        show_only_warnings_of_jax()
        heed_interrupts()
        try:
            use_all_cores()
            compilation_cache.enable()
            main()
        except ConfigError as error:
            _stop(error, USAGE_ERROR)
        except RunError as error:
            _stop(error, FAILURE)
        except OSError as error:
            _stop(f"{error.filename}: {error.strerror}" if error.filename else error, FAILURE)
        except MemoryError as error:
            _stop(f"out of memory: {error}", FAILURE)
        except KeyboardInterrupt:
            _end_at_once()
        except BaseException as error:  # a user's metric or figure may raise anything
            line = settings.user_error(error)
            if line is None:
                raise
            _stop(line, FAILURE)

    app.run(guarded, flags_parser=partial(_parse, positional=positional))


def show_only_warnings_of_jax():
    """Shows each warning of jax once, and no log of any other library: their errors raise."""
    for handler in logging.getLogger().handlers:
        handler.setLevel(logging.CRITICAL)
    logger, first = logging.getLogger("jax"), {}
    logger.propagate = False
    if logger.handlers:  # of JAX_LOGGING_LEVEL
        return

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("warning: %(message)s"))
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: first.setdefault(record.getMessage(), record) is record)
    logger.addHandler(handler)


def heed_interrupts(patience: float = PATIENCE):
    """Ctrl-C ends this process after `patience` seconds: Python does not see it while a program is
    compiled. It ends it at once where Python would drop it: in a finalizer or a callback."""

    def unraisable(dropped):
        if dropped.exc_type is KeyboardInterrupt:
            _end_at_once()
        sys.__unraisablehook__(dropped)

    sys.unraisablehook = unraisable
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def watch():
        while os.read(reader, 1) != bytes([signal.SIGINT]):
            pass
        time.sleep(patience)
        print(file=sys.stderr)  # behind a bar that is still open
        _end_at_once()

    threading.Thread(target=watch, daemon=True).start()


def _end_at_once():
    """Python's own end would wait for what is being compiled."""
    sys.stdout.flush()
    print("error: interrupted; the same command resumes from what is saved", file=sys.stderr)
    os._exit(INTERRUPTED)


def use_all_cores(sharers: int = 1):
    """A CPU device for every core, or for this process's share of them. The user's environment
    wins."""
    flag = "xla_force_host_platform_device_count"
    if flag in os.environ.get("XLA_FLAGS", "") or "JAX_NUM_CPU_DEVICES" in os.environ:
        return
    with contextlib.suppress(RuntimeError):  # a user's config file has started jax already
        jax.config.update("jax_num_cpu_devices", max(1, cores() // sharers))


def cores() -> int:
    """How many this process may use."""
    # not on every system
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _parse(argv, positional=()):
    """Parses all flags but --config.KEY=VALUE, which `read_config` takes."""
    overrides, others = [], []
    try:
        for argument in flags.FLAGS.read_flags_from_files(argv[1:], force_gnu=True):
            if re.match(r"--?config\.", argument):
                overrides.append("--" + argument.lstrip("-"))
            elif overrides and "=" not in overrides[-1] and not re.match(r"-+[^-.\d]", argument):
                overrides[-1] += f"={argument}"  # the value stood behind a space
            else:
                others.append(argument)
        flags.FLAGS.set_gnu_getopt()  # flags may follow what stands alone
        remaining = flags.FLAGS([argv[0], *others])
    except (SystemExit, BrokenPipeError):  # of --help, whose reader may be `head`
        sys.exit()
    except UnicodeDecodeError:
        _stop("--flagfile: must name a file of text", USAGE_ERROR)
    except flags.Error as error:
        _stop(_refusal(error), USAGE_ERROR)
    _overrides[:] = overrides
    directory.trusts_others = "trust" in flags.FLAGS and flags.FLAGS.trust
    alone = remaining[1:]
    for holder in (holder for holder in positional if not flags.FLAGS[holder.name].present):
        if alone and isinstance(holder.value, list):
            flags.FLAGS[holder.name].value, alone = alone, []
        elif alone:
            flags.FLAGS[holder.name].value = alone.pop(0)
    if alone:
        _stop(f"{alone[0]!r} is not a flag; flags start with --", USAGE_ERROR)
    if overrides and not {"config", "task"} & set(flags.FLAGS):
        _stop(f"{overrides[0].partition('=')[0]}: this command takes no config", USAGE_ERROR)
    return remaining


def _refusal(error: flags.Error) -> str:
    """The flag, its value and what is allowed, where absl says other things."""
    cause = error.__context__
    if isinstance(error, flags.CantOpenFlagFileError):
        return f"--flagfile={cause.filename}: {cause.strerror}"
    if isinstance(error, flags.UnrecognizedFlagError):
        modules = flags.FLAGS.flags_by_module_dict().items()
        ours = "compgen_jax.", "figures.", "launch.", sys.argv[0]  # not absl, chex or orbax
        allowed = [
            f"--{i.name}" for module, items in modules if module.startswith(ours) for i in items
        ]
        name = f"--{error.flagname}"
        return f"{name}: no such flag; {settings.nearest_or_all(name, allowed)}"
    if isinstance(error, flags.IllegalFlagValueError):
        setting = str(error).removeprefix("flag ").removesuffix(f": {cause}")
        parser = flags.FLAGS[setting[2:].partition("=")[0]].parser
        options = " or ".join(getattr(parser, "enum_values", ("true", "false")))
        return f"{setting}: must be {parser.syntactic_help or options}"
    return str(error).splitlines()[0]


def _stop(error, status: int):
    # a terminal would obey the control characters of a path
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(error))
    print(f"error: {shown}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
    sys.exit(status)
