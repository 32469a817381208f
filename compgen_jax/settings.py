"""Typed settings: frozen dataclasses that are checked before anything compiles.

A *family* of tasks or of models is a dataclass of settings with a method `make`; a user's is named
FILE.py:CLASS. Every error is one line: the field, its value and what is allowed.
"""

import contextlib
import difflib
import functools
import hashlib
import importlib
import importlib.util
import math
import sys
import traceback
import typing
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path

# places of the families as text: a module is imported only when a config names its family
FAMILIES = {
    "task": {
        "bump": "compgen_jax.tasks.bump:Bump",
        "rotation": "compgen_jax.tasks.rotation:Rotation",
        "inverse": "compgen_jax.tasks.inverse:Inverse",
        "table": "compgen_jax.tasks.table:ImageTable",
        "modules": "compgen_jax.tasks.modules:Modules",
        "preference": "compgen_jax.tasks.preference:Preference",
        "sprites": "compgen_jax.tasks.sprites:Sprites",
    },
    "model": {
        "conv": "compgen_jax.models.conv:Conv",
        "mlp": "compgen_jax.models.mlp:MLP",
        "lowrank": "compgen_jax.models.lowrank:LowRank",
        "pixelwise": "compgen_jax.models.pixelwise:Pixelwise",
        "transformer": "compgen_jax.models.transformer:Transformer",
        "additive": "compgen_jax.models.mlp:Additive",
        "multiplicative": "compgen_jax.models.mlp:Multiplicative",
        "conv_batchnorm": "compgen_jax.models.upsampling:ConvBatchNorm",
        "upsampling": "compgen_jax.models.upsampling:Upsampling",
        "encoder": "compgen_jax.models.encoder:Encoder",
        "flow": "compgen_jax.models.flow:Flow",
        "task_mlp": "compgen_jax.models.task_conditioned:TaskMLP",
        "task_transformer": "compgen_jax.models.task_conditioned:TaskTransformer",
        "hypernetwork": "compgen_jax.models.task_conditioned:Hypernetwork",
    },
}


LOADED = set()  # paths of the user's files
MOST_LISTED = 12  # names in a refusal


class ConfigError(ValueError):
    """A setting that no run can have: the message is one line, for the user."""


def demand(ok, message: str):
    """Raises a ConfigError unless `ok`."""
    if not ok:
        raise ConfigError(message)


def require(ok, field: str, value, hint: str):
    """Raises the ConfigError 'config.FIELD=VALUE: HINT' unless `ok`."""
    demand(ok, f"config.{field}={value!r}: {hint}")


@contextlib.contextmanager
def naming(setting: str):
    """Turns a ValueError inside into a ConfigError that begins with the flag or field."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(f"{setting}: {error}") from error


def nearest_or_all(name: str, allowed) -> str:
    """What a refusal lists: all allowed names if they are few, else the nearest ones."""
    if len(allowed) <= MOST_LISTED:
        return f"allowed: {', '.join(allowed) or 'none'}"
    return f"nearest: {', '.join(difflib.get_close_matches(name, allowed, n=3, cutoff=0))}"


def choice(default, *options, **metadata):
    """One of the options. With `traced=True`, trials that differ in the field share a compiled
    program."""
    return field(default=default, metadata={"options": options} | metadata)


def number(default, low=-math.inf, high=math.inf, above=-math.inf, **metadata):
    """A number in [low, high], and strictly greater than `above`; `traced` as in `choice`."""
    bounds = {"at least": low, "at most": high, "greater than": above}
    return field(default=default, metadata={"bounds": bounds} | metadata)


def traced(default):
    """A field, or a group of fields, that is traced: see `choice`."""
    return field(default=default, metadata={"traced": True})


@dataclass(frozen=True)
class Family:
    """Settings of a family of tasks or models. A frozen dataclass of fields with defaults, of type
    bool, int, float, str, tuple or a further dataclass. It has a method `make`, which returns the
    task (`tasks.task.Task`) or the Flax module (`models.model.Model`)."""

    @property
    def name(self) -> str:
        return family_name(type(self))

    def check(self, config):
        """Raises ConfigError for settings that contradict others of the config."""


# --- families by name ------------------------------------------------------------------------


@functools.cache  # a user's file may be imported anew while its settings are in use
def family_name(kind: type) -> str:
    """The inverse of `family`."""
    for families in FAMILIES.values():
        for name, location in families.items():
            if location == f"{kind.__module__}:{kind.__qualname__}":
                return name
    return f"{sys.modules[kind.__module__].__file__}:{kind.__qualname__}"


def family(group: str, name: str) -> type:
    """The settings class that `config.GROUP.name` names. Raises ConfigError."""
    families, text = FAMILIES[group], str(name)
    path, _, attribute = families.get(text, text).rpartition(":")
    if text in families:
        return getattr(importlib.import_module(path), attribute)
    hint = f"must be one of {', '.join(families)}, or FILE.py:CLASS of your own"
    require(path.endswith(".py"), f"{group}.name", name, hint)
    moved = Path(path).name  # along with its run, into the current directory
    with naming(f"config.{group}.name={name!r}"):
        module = load_file(path if Path(path).is_file() or not Path(moved).is_file() else moved)
    kind = getattr(module, attribute, None)
    is_family = isinstance(kind, type) and is_dataclass(kind) and hasattr(kind, "make")
    hint = f"{path} has no dataclass {attribute} with a method make"
    require(is_family, f"{group}.name", name, hint)
    for item in fields(kind):
        annotation = types(kind)[item.name]
        has_default = item.default is not MISSING or item.default_factory is not MISSING
        usable = annotation in (bool, int, float, str, tuple) or is_dataclass(annotation)
        hint = f"its field {item.name} needs a default, and the type bool, int, float, str or tuple"
        require(has_default and usable, f"{group}.name", name, hint)
    return kind


def is_own(settings: Family) -> bool:
    """Whether a family is a user's own."""
    return ":" in settings.name


def beside(name: str):
    """The module `launch.NAME` or `figures.NAME`: beside the package in a checkout, inside it where
    it is installed."""
    folder = name.partition(".")[0]
    spec = importlib.util.find_spec(folder)
    paths = list(spec.submodule_search_locations or ()) if spec else []
    in_checkout = str(Path(__file__).parents[1] / folder) in paths
    return importlib.import_module(name if in_checkout else f"compgen_jax.{name}")


def load_file(path):
    """The module of a user's file, imported once. Raises ConfigError, with file and line."""
    resolved = Path(path).resolve()
    if not resolved.is_file():
        raise ConfigError(f"there is no file {path}")
    path, stem = str(resolved), resolved.stem
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == path and module.__name__ != "__main__":
            return module
    demand(path.endswith(".py"), f"{path}: is not a Python file: its name does not end in .py")
    hint = f"Python has a module {stem} of its own, which imports of this file would find"
    demand(stem not in sys.stdlib_module_names, f"{path}: {hint}: rename it")
    name = f"{stem}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    LOADED.add(path)
    sys.path.append(str(resolved.parent))  # for what it imports from beside it
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # the user's code may raise anything, and call exit()
        del sys.modules[name]
        raise user_error(error, path) from error
    return module


@contextlib.contextmanager
def in_own_files(*families: Family):
    """Turns an error inside into a ConfigError with file and line, if one of these families is a
    user's own."""
    try:
        yield
    except BaseException as error:  # the user's code may raise anything
        paths = [settings.name.rpartition(":")[0] for settings in families if is_own(settings)]
        if not paths:
            raise
        raise user_error(error, paths[0]) from error


def user_error(error: BaseException, path: str = "") -> BaseException | None:
    """An error as one line with the file and line of the user's that has a part in it; else with
    the file `path`, and None without one. A ConfigError and Ctrl-C stay as they are."""
    if isinstance(error, ConfigError | KeyboardInterrupt):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    places = [(frame.filename, frame.lineno) for frame in frames if frame.filename in LOADED]
    if isinstance(error, SyntaxError) and error.filename in LOADED:
        places.append((error.filename, error.lineno))
    if places:
        path = "{}, line {}".format(*places[-1])
    text = (str(error).splitlines() or [""])[0]
    return ConfigError(f"{path}: {type(error).__name__}: {text}") if path else None


# --- values ----------------------------------------------------------------------------------


@functools.cache
def types(kind: type) -> dict:
    """Field types by name, also where they are written as strings."""
    return typing.get_type_hints(kind)


def to_dict(node) -> dict:
    """Nested plain values; a float field given as an int becomes a float."""
    values = {"name": node.name} if isinstance(node, Family) else {}
    for item in fields(node):
        value = getattr(node, item.name)
        if is_dataclass(value):
            value = to_dict(value)
        elif types(type(node))[item.name] is float:
            value = float(value)
        values[item.name] = value
    return values


def build(kind: type, values, path: str):
    """The `kind` that `to_dict` (or its JSON) describes; a missing field has its default. Raises
    ConfigError."""
    names = [item.name for item in fields(kind)]
    hint = f"must be a group of fields: {', '.join(names)}"
    demand(isinstance(values, dict), f"{path}={values!r}: {hint}")
    arguments = {}
    for name, value in values.items():
        if name not in names:
            if name != "name" or not issubclass(kind, Family):
                raise unknown_field(f"{path}.{name}", [f"{path}.{other}" for other in names])
            continue
        annotation = types(kind)[name]
        if isinstance(annotation, type) and issubclass(annotation, Family):
            annotation = family(name, value.get("name") if isinstance(value, dict) else value)
        if is_dataclass(annotation):
            value = build(annotation, value, f"{path}.{name}")
        elif annotation is tuple:
            value = as_tuple(value)  # JSON has no tuples
        elif annotation is float and type(value) is int:
            value = float(value)
        arguments[name] = value
    return kind(**arguments)


def as_tuple(value):
    """Nested lists as nested tuples."""
    return tuple(map(as_tuple, value)) if isinstance(value, list | tuple) else value


def flat(node, path: str) -> dict:
    """Values by dotted name."""
    if not isinstance(node, dict):
        return {path: node}
    return {k: v for name in node for k, v in flat(node[name], f"{path}.{name}").items()}


def leaves(node, path: str, is_traced: bool = False):
    """(dotted name, value, type, metadata with `traced`) of every field that is no group. Raises
    ConfigError."""
    for item in fields(node):
        value, annotation = getattr(node, item.name), types(type(node))[item.name]
        name = f"{path}.{item.name}"
        metadata = {"traced": is_traced} | item.metadata
        if is_dataclass(annotation):
            hint = f"must be a {annotation.__name__}"
            demand(isinstance(value, annotation), f"{name}={value!r}: {hint}")
            yield from leaves(value, name, metadata["traced"])
        else:
            yield name, value, annotation, metadata


def unknown_field(name: str, allowed: list[str]) -> ConfigError:
    """The error for a name that is no field."""
    return ConfigError(f"{name}: no such field; {nearest_or_all(name, allowed)}")


def check_fields(node, path: str):
    """Raises ConfigError for a value of the wrong type, or that is not allowed."""
    for name, value, annotation, metadata in leaves(node, path):
        options, bounds = metadata.get("options", ()), metadata.get("bounds", {})
        limits = [f"{word} {end:.12g}" for word, end in bounds.items() if math.isfinite(end)]
        if options:
            limits = [f"one of {', '.join(map(str, options))}"]
        fits = type(value) is annotation or (annotation is float and type(value) is int)
        if not fits:
            is_flag = annotation is bool
            limits.insert(0, "True or False" if is_flag else f"of type {annotation.__name__}")
        elif options:
            fits = value in options
        elif bounds:
            low, high, above = bounds.values()
            fits = math.isfinite(value) and low <= value <= high and value > above
        demand(fits, f"{name}={value!r}: must be {' and '.join(limits) or 'finite'}")
