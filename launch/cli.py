"""What every command line shares: flags to a checked `Config`, errors to one line."""

import contextlib
import logging
import os
import re
import sys
from functools import cache

import jax
from absl import app, flags
from ml_collections import ConfigDict, config_flags

from compgen_jax import config as configs
from compgen_jax import settings
from compgen_jax.config import Config, ConfigError
from compgen_jax.runs.directory import RunError
from launch import compilation_cache

USAGE_ERROR, FAILURE, INTERRUPTED = 2, 1, 130
SAY = "say --config=launch/config.py:PRESET, or a file of your own"

flags.disclaim_key_flags()  # those defined here are the commands': their --help lists them

_overrides: list[str] = []  # --config.KEY=VALUE, in the order of the command line


def define_config():
    """--config=FILE:PRESET; the flag's holder. --config.KEY=VALUE overrides a field."""
    return flags.DEFINE_string(
        "config",
        None,
        "launch/config.py:PRESET, or FILE.py:NAME of your own, whose get_config(NAME) returns a "
        "Config; --config.KEY=VALUE overrides a field.",
    )


@cache
def define_workdir():
    """--workdir=DIR; the flag's holder, one for all commands that are imported together."""
    return flags.DEFINE_string("workdir", None, "The directory of the run, or of the figures.")


def read_config(holder) -> Config:
    """The Config of the flag and its overrides. Raises ConfigError."""
    if holder.value is None:
        first = f"{_overrides[0].partition('=')[0]} needs --config; " if _overrides else ""
        raise ConfigError(f"{first or '--config is missing; '}{SAY}")
    return _overridden(load_config(holder.value))


def load_config(value: str) -> Config:
    """What get_config(NAME) of FILE.py:NAME returns. Raises ConfigError, with file and line where
    the file is at fault."""
    path, _, name = value.partition(":")
    if value.startswith("-") or not os.path.isfile(path):
        raise ConfigError(f"--config={value}: there is no file {path!r}; {SAY}")
    module = settings.load_file(path)
    get_config = getattr(module, "get_config", None)
    if not callable(get_config):
        raise ConfigError(f"{path} has no function get_config(name), which returns a Config")
    try:
        found = get_config(name) if name else get_config()
    except ConfigError as error:
        raise ConfigError(f"--config={value}: {error}") from error
    except Exception as error:  # whatever the user's code raises is the user's to mend
        raise settings.in_user_code(error, module.__file__) from error
    if isinstance(found, ConfigDict):
        found = found.to_dict()
    if isinstance(found, dict):
        found = configs.from_dict(found)
    if not isinstance(found, Config):
        raise ConfigError(
            f"{path}: get_config({name!r}) returned {type(found).__name__}, not a Config"
        )
    return found


def _overridden(config: Config) -> Config:
    """The config with the fields that the command line sets, read by the type that each has."""
    pairs = [override.partition("=") for override in _overrides]
    tree = configs.to_dict(config)
    for group in settings.FAMILIES:  # another family has other fields
        names = [value for name, _, value in pairs if name == f"--config.{group}.name"]
        if names:
            tree[group] = configs.as_family(config, group, names[-1])
    allowed = [f"--{name}" for name in settings.flat(tree, configs.ROOT)]
    for name, _, _ in pairs:
        if name not in allowed:
            raise settings.unknown_field(name, allowed)
    values, argv = flags.FlagValues(), [sys.argv[0], *_overrides]
    config_flags.DEFINE_config_dict("config", ConfigDict(tree), flag_values=values, sys_argv=argv)
    try:
        values(argv)
    except (flags.Error, ValueError, TypeError) as error:
        raise ConfigError((str(error).splitlines() or [type(error).__name__])[0]) from error
    return configs.from_dict(values.config.to_dict())


def require(holder) -> str:
    """A string flag's value. Raises ConfigError where it is missing."""
    if not holder.value:
        raise ConfigError(f"--{holder.name} is missing")
    return holder.value


def run(main):
    """Runs `main()`; errors of the user end in one line on stderr and a non-zero status."""

    def guarded(argv):
        del argv
        logging.disable(logging.ERROR)  # jax, orbax, fontTools and asyncio narrate; errors raise
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
        except KeyboardInterrupt:
            _stop("interrupted; the same command resumes from what is saved", INTERRUPTED)

    app.run(guarded, flags_parser=_parse)


def use_all_cores(sharers: int = 1):
    """A CPU device for every core (of this process's share, where several are on this machine),
    unless the user's environment sets their number: seeds then train side by side, which is faster
    than one after the other on all cores (on two, quick decoders by 1.7, paper ones by 1.04:
    `launch.benchmark --suite=train`). No other platform is affected."""
    own = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not own and "JAX_NUM_CPU_DEVICES" not in os.environ:
        affinity = getattr(os, "sched_getaffinity", None)  # not on every system
        cores = len(affinity(0)) if affinity else os.cpu_count()
        with contextlib.suppress(RuntimeError):  # a user's config file has started jax already
            jax.config.update("jax_num_cpu_devices", max(1, cores // sharers))


def _parse(argv):
    """The flags but for --config.KEY=VALUE, which need the config: `read_config` takes them."""
    own, rest = [], []
    for argument in argv[1:]:
        name, _, _ = argument.partition("=")
        if name.lstrip("-").startswith("config.") and argument.startswith("-"):
            own.append("--" + argument.lstrip("-"))
        elif own and "=" not in own[-1] and not re.match(r"-+[^-.\d]", argument):
            own[-1] += f"={argument}"  # its value stood behind a space
        else:
            rest.append(argument)
    _overrides[:] = own
    try:
        left = flags.FLAGS([argv[0], *rest])
    except flags.Error as error:
        _stop(str(error).splitlines()[0], USAGE_ERROR)
    if len(left) > 1:
        _stop(f"{left[1]!r} is not a flag; flags start with --", USAGE_ERROR)
    if own and "config" not in flags.FLAGS:
        _stop(f"{own[0].partition('=')[0]}: this command takes no config", USAGE_ERROR)
    return left


def _stop(error, status: int):
    print(f"error: {error}", file=sys.stderr)
    sys.exit(status)
