"""What every command line shares: flags to a checked `Config`, errors to one line."""

import contextlib
import logging
import os
import sys

from absl import app, flags
from ml_collections import config_flags

from compgen_jax import config as configs
from compgen_jax.config import Config, ConfigError
from launch import config as presets

USAGE_ERROR, FAILURE, INTERRUPTED = 2, 1, 130


def define_config():
    """--config=launch/config.py:PRESET and --config.KEY=VALUE; the flag's holder."""
    return config_flags.DEFINE_config_file(
        "config", None, "The preset: launch/config.py:NAME; --config.KEY=VALUE overrides a field."
    )


def define_workdir():
    return flags.DEFINE_string("workdir", None, "The directory of the run.")


def read_config(holder) -> Config:
    """The flag's Config. Raises ConfigError."""
    if holder.value is None:
        raise ConfigError(f"--config is missing; say --config=launch/config.py:PRESET{_names()}")
    return configs.from_dict(holder.value.to_dict())


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
            from compgen_jax.runs.directory import (
                RunError,  # imports jax, which takes a second: not above
            )

            use_all_cores()
            try:
                main()
            except RunError as error:
                _stop(error, FAILURE)
        except ConfigError as error:
            _stop(error, USAGE_ERROR)
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
    import jax

    own = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not own and "JAX_NUM_CPU_DEVICES" not in os.environ:
        affinity = getattr(os, "sched_getaffinity", None)  # not on every system
        cores = len(affinity(0)) if affinity else os.cpu_count()
        with contextlib.suppress(RuntimeError):  # a user's config file has started jax already
            jax.config.update("jax_num_cpu_devices", max(1, cores // sharers))


# what reading a user's own config file can raise, beside the flags' errors
FLAG_ERRORS = (flags.Error, ConfigError, AttributeError, ImportError, KeyError, SyntaxError,
               TypeError, ValueError)  # fmt: skip


def _parse(argv):
    try:
        _check_overrides(argv)
        rest = flags.FLAGS(argv)
    except FLAG_ERRORS as error:
        _stop(str(error).splitlines()[0] or type(error).__name__, USAGE_ERROR)
    if len(rest) > 1:
        _stop(f"{rest[1]!r} is not a flag; flags start with --", USAGE_ERROR)
    return rest


def _check_overrides(argv):
    """Raises ConfigError for a preset or field that does not exist, which `config_flags` would
    answer with a traceback."""
    allowed = [f"--{name}" for name in configs.field_names(Config())]
    pairs = [argument.partition("=") for argument in argv[1:] if argument.startswith("-")]
    named = {"--" + name.lstrip("-"): value for name, _, value in pairs}
    for index, argument in enumerate(argv[1:], start=1):
        if argument in ("--config", "-config"):  # its value stands behind a space
            named["--config"] = (argv + [""])[index + 1]
    overrides = [name for name in named if name.startswith("--config.")]
    if overrides and "--config" not in named:
        raise ConfigError(f"{overrides[0]} needs --config=launch/config.py:PRESET{_names()}")
    if "--config" in named:
        _check_preset(named["--config"])
    for name in overrides:
        if name not in allowed:
            raise configs.unknown_field(name, allowed)


def _check_preset(value: str):
    path, _, preset = value.partition(":")
    if value.startswith("-") or not os.path.isfile(path):
        raise ConfigError(
            f"--config={value}: there is no file {path!r}; say launch/config.py:PRESET{_names()}"
        )
    if os.path.samefile(path, presets.__file__) and preset not in presets.PRESETS:
        raise ConfigError(f"--config={value}: unknown preset {preset!r}{_names()}")


def _names() -> str:
    return f"; presets: {', '.join(presets.PRESETS)}"


def _stop(error, status: int):
    print(f"error: {error}", file=sys.stderr)
    sys.exit(status)
