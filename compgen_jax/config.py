"""What a run is: frozen dataclasses, checked once, when the whole `Config` is built.

This module imports no jax, so that a wrong setting stops before anything is compiled. Every
error names the flag that sets the field, the value it got and what is allowed.
"""

import difflib
import hashlib
import json
import math
from dataclasses import dataclass, field, fields, is_dataclass

ROOT = "config"


class ConfigError(ValueError):
    """A setting that no run can have: the message is one line, for the user."""


def _choice(default, *options):
    return field(default=default, metadata={"options": options})


def _number(default, low=-math.inf, high=math.inf, above=-math.inf):
    """A number in [low, high], and strictly greater than `above`."""
    return field(default=default, metadata={"low": low, "high": high, "above": above})


@dataclass(frozen=True)
class ImageConfig:
    """How a point is drawn. `sigma` in pixels; 'inverted' is a dark bump on white (1 - bump)."""

    sigma: float = _number(1.0, above=0)
    amplitude: float = _number(1.0, above=0)
    polarity: str = _choice("inverted", "inverted", "upright")


@dataclass(frozen=True)
class CodeConfig:
    """How a coordinate is told to the decoder (paper section 3.1).

    `sigma` (pixels) and `width` shape the bump code, `width` multiplying the variance; `scale`
    shapes the ramp; `frequencies` the positional code. A missing factor is coded as the zero
    vector (which for the ramp is also the code of coordinate 0) or as the code of an off-grid
    coordinate (pixels).
    """

    name: str = _choice("bump", "bump", "ramp", "onehot", "positional")
    sigma: float = _number(1.0, above=0)
    width: float = _number(1.0, above=0)
    scale: str = _choice("pixels", "pixels", "unit")
    frequencies: int = _number(8, low=2, high=64)
    missing: str = _choice("zero", "zero", "off_grid")
    missing_coordinate: float = _number(-1.0)


@dataclass(frozen=True)
class SupportConfig:
    """Which factor combinations are held out, and how the others are sampled for training.

    donut  holds out the cells low <= x <= high and low <= y <= high;
    cross  holds out the cells low <= x <= high or  low <= y <= high (a band of each factor);
    corner holds out the square from `low` to the grid's edge in the top right corner, or its
           mirror image in another corner ('top' is large y);
    random holds out `share` of the cells, drawn with `seed`.
    """

    region: str = _choice("donut", "donut", "corner", "cross", "random", "none")
    low: int = _number(6, low=0)
    high: int = _number(22, low=0)
    corner: str = _choice("top_right", "top_right", "top_left", "bottom_right", "bottom_left")
    share: float = _number(0.37, low=0, high=1)
    seed: int = _number(0, low=0)
    sampling: str = _choice(
        "with_replacement", "with_replacement", "without_replacement", "every_cell", "real"
    )
    samples: int = _number(2000, low=0, high=10**7)
    require_marginals: bool = True


@dataclass(frozen=True)
class StripesConfig:
    """Images of one factor alone in the training set (paper section 4.2, appendix E): all N
    vertical and all N horizontal stripes, `copies` times each. Their `amplitude` is that of a
    bump times this; the missing factor has the code of `task.code.missing`. In an order that is
    `shuffled` by the seed the last `left_out` of them can be missing."""

    copies: int = _number(0, low=0, high=1000)
    amplitude: float = _number(1.0, above=0)
    order: str = _choice("by_axis", "by_axis", "shuffled")
    left_out: int = _number(0, low=0)


@dataclass(frozen=True)
class TaskConfig:
    grid: int = _number(28, low=8, high=128)
    image: ImageConfig = ImageConfig()
    code: CodeConfig = CodeConfig()
    support: SupportConfig = SupportConfig()
    stripes: StripesConfig = StripesConfig()


@dataclass(frozen=True)
class DecoderConfig:
    """`width` is channels for 'conv' and 'lowrank', hidden units for 'mlp' and 'pixelwise';
    `depth` counts hidden layers; the law of the initial weights is PyTorch's or Flax's default
    (`decoders.initializers`).

    Of 'lowrank' alone: at most `rank` terms make an embedding matrix (0 means N), of vectors
    that are each of unit length (the authors' code) or orthonormal (the paper's text).
    """

    name: str = _choice("conv", "conv", "mlp", "lowrank", "pixelwise")
    depth: int = _number(4, low=1, high=10)
    width: int = _number(64, low=1)
    initial_weights: str = _choice("torch", "torch", "flax")
    rank: int = _number(0, low=0, high=128)
    vectors: str = _choice("unit", "unit", "orthonormal")


@dataclass(frozen=True)
class PenaltyConfig:
    """Regularisers of the low-rank decoder's embeddings, added to the loss (paper Eq 10, 11).

    `entropy` and `variance` are their coefficients; both are summed or averaged over tokens;
    the variance is that of the raw vectors (the authors' code) or, scale-free, that of the
    vectors as used, weighted by their share of the embedding's energy.
    """

    entropy: float = _number(0.0, low=0, high=1e6)
    variance: float = _number(0.0, low=0, high=1e6)
    tokens: str = _choice("sum", "sum", "mean")
    vectors: str = _choice("raw", "raw", "scale_free")


@dataclass(frozen=True)
class TrainingConfig:
    """AdamW on the mean squared error; a row of metrics and a checkpoint every
    `evaluate_every` epochs and at the end. `steps`, unless 0, is the run's length in optimiser
    steps instead of `epochs`, and then `evaluate_every` counts steps too.

    `precision` is that of the convolutions, forward and backward, of a training step; weights,
    biases, embeddings, loss, penalties, optimiser and evaluation are in float32 either way."""

    epochs: int = _number(50, low=1, high=10**7)
    steps: int = _number(0, low=0, high=10**9)
    batch_size: int = _number(32, low=1, high=2**16)
    learning_rate: float = _number(1e-3, above=0, high=1e6)
    weight_decay: float = _number(0.01, low=0, high=1e6)
    seeds: tuple = (0, 1, 2, 3, 4)
    evaluate_every: int = _number(5, low=1)
    precision: str = _choice("float32", "float32", "bfloat16")
    penalty: PenaltyConfig = PenaltyConfig()


@dataclass(frozen=True)
class SweepConfig:
    """Many trials instead of one run (`launch.sweep`): every combination of `grids`, `schemes`,
    `regions`, `shares`, learning rates and weight decays (empty: that of `training`) and
    `training.seeds`, each for several numbers of training images. The rest of the config says
    what the trials have in common; `training.steps` is their length.

    A scheme is 'bumps' alone or 'stripes': every stripe once and bumps beside them. A region is
    'none', 'donut' or 'corner'; a held-out square has the side `share` N, rounded.

    `data` says how many images. 'search' looks for the numbers that reach the accuracy `target`
    of each of `scores` (Figure 4c): first `images_per_cell` N^2 bumps alone or `images_per_value` N
    images of which 2 N are stripes (fewer are some of them), then in each of `refinements` rounds
    `refine_with` numbers more around each crossing. 'fixed' takes `task.support.samples`
    bumps everywhere, 'area' that times the share of the cells outside the held-out square.

    Scored are cells that were drawn (`seen`), cells that could have been (`unseen`), held-out ones
    (`ood`) and `real_points` points between the cells (`real`, none of them held out); searched
    is `ood` where a region is held out, `unseen` and `real` elsewhere. Scores: 'exact' (the
    brightest pixel is the requested one), 'position' (within `position_tolerance` pixels), 'image'
    (the error is at most `image_tolerance` of a blank image's). The default target lies where
    accuracy rises steeply: near 1 a threshold would tell how far a seed's training fluctuates.
    """

    grids: tuple = ()
    schemes: tuple = ("bumps", "stripes")
    regions: tuple = ("none",)
    shares: tuple = (16 / 28,)
    learning_rates: tuple = ()
    weight_decays: tuple = ()
    data: str = _choice("search", "search", "fixed", "area")
    images_per_cell: tuple = (1 / 8, 1 / 2, 2.0)
    images_per_value: tuple = (1.0, 2.0, 4.0, 10.0)
    refinements: int = _number(2, low=0, high=20)
    refine_with: int = _number(1, low=1, high=100)
    target: float = _number(0.75, above=0, high=1)
    scores: tuple = ("exact", "image")
    position_tolerance: float = _number(1.0, low=0)
    image_tolerance: float = _number(0.25, above=0)
    real_points: int = _number(256, low=1, high=10**6)


@dataclass(frozen=True)
class ExecutionConfig:
    """How a run is carried out: not part of its identity.

    `trials_per_device` bounds memory: so many trials are trained side by side, the others in
    turn (0 lets the backend decide); it changes results by rounding at most. `chunk_steps` are
    jitted between two moves of the progress bar and change no bit. `max_padding` bounds the work
    that a sweep's padding of small grids may waste where trials of several grids train side by
    side, as a share of all.
    """

    trials_per_device: int = _number(0, low=0)
    chunk_steps: int = _number(50, low=1, high=10**6)
    max_padding: float = _number(0.3, low=0, high=0.9)


@dataclass(frozen=True)
class Config:
    name: str = "unnamed"
    task: TaskConfig = TaskConfig()
    decoder: DecoderConfig = DecoderConfig()
    training: TrainingConfig = TrainingConfig()
    sweep: SweepConfig = SweepConfig()
    execution: ExecutionConfig = ExecutionConfig()

    def __post_init__(self):
        _check_fields(self, ROOT)
        _check_together(self)


def to_dict(config) -> dict:
    """Nested plain values; a float field given as an int becomes a float."""

    def plain(item):
        value = getattr(config, item.name)
        if is_dataclass(value):
            return to_dict(value)
        return float(value) if item.type is float else value

    return {item.name: plain(item) for item in fields(config)}


def from_dict(values: dict) -> Config:
    """The `Config` that `to_dict` (or its JSON) describes; a missing field has its default.

    Raises ConfigError for an unknown field and for every bad value.
    """
    return _build(Config, values, ROOT)


def changed(config: Config, values: dict) -> Config:
    """The config with new values for fields named as in 'task.support.low'.

    Raises ConfigError for an unknown field and for every bad value.
    """
    tree = to_dict(config)
    known = _flat(tree, ROOT)
    for path, value in values.items():
        if f"{ROOT}.{path}" not in known:
            raise unknown_field(f"{ROOT}.{path}", list(known))
        *groups, name = path.split(".")
        node = tree
        for group in groups:
            node = node[group]
        node[name] = value
    return from_dict(tree)


def identity(config: Config) -> dict:
    """Dotted name and value of every field that is not at its default, execution aside.

    A field added later, at its default, leaves the identity of every earlier run as it was; so
    a default, once released, does not change.
    """
    default = _flat(to_dict(Config()), ROOT)
    return {
        name: value
        for name, value in _flat(to_dict(config), ROOT).items()
        if value != default[name] and not name.startswith(f"{ROOT}.execution.")
    }


def fingerprint(config: Config) -> str:
    """Eight hex digits of the identity: configs that share them train alike."""
    text = json.dumps(identity(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _flat(node, path) -> dict:
    if not isinstance(node, dict):
        return {path: node}
    return {k: v for name in node for k, v in _flat(node[name], f"{path}.{name}").items()}


def field_names(config: Config) -> list[str]:
    """The dotted names that flags can set, such as 'config.task.grid'."""

    return list(_flat(to_dict(config), ROOT))


def unknown_field(name: str, allowed: list[str]) -> ConfigError:
    close = difflib.get_close_matches(name, allowed, n=3, cutoff=0.5)
    group = [other for other in allowed if other.startswith(name.rpartition(".")[0] + ".")]
    return ConfigError(f"{name}: no such field; allowed: {', '.join(close or group or allowed)}")


def _build(kind, values, path):
    names = [item.name for item in fields(kind)]
    if not isinstance(values, dict):
        raise ConfigError(f"{path}={values!r}: must be a group of fields: {', '.join(names)}")
    for name in values:
        if name not in names:
            raise unknown_field(f"{path}.{name}", [f"{path}.{other}" for other in names])
    arguments = {}
    for item in fields(kind):
        if item.name not in values:
            continue
        value = values[item.name]
        if is_dataclass(item.type):
            value = _build(item.type, value, f"{path}.{item.name}")
        elif item.type is tuple and isinstance(value, list):
            value = tuple(value)  # JSON has no tuples
        elif item.type is float and type(value) is int:
            value = float(value)
        arguments[item.name] = value
    return kind(**arguments)


def _check_fields(node, path):
    for item in fields(node):
        value, name = getattr(node, item.name), f"{path}.{item.name}"
        if is_dataclass(item.type):
            if not isinstance(value, item.type):
                raise ConfigError(f"{name}={value!r}: must be a {item.type.__name__}")
            _check_fields(value, name)
            continue
        if type(value) is not item.type and not (item.type is float and type(value) is int):
            raise ConfigError(f"{name}={value!r}: must be of type {item.type.__name__}")
        options = item.metadata.get("options")
        if options and value not in options:
            raise ConfigError(f"{name}={value!r}: must be one of {', '.join(options)}")
        if "low" in item.metadata:
            _check_range(name, value, **item.metadata)


def _check_range(name, value, low, high, above):
    if not (math.isfinite(value) and low <= value <= high and value > above):
        texts = {"at least": low, "at most": high, "greater than": above}
        bounds = [f"{text} {bound:g}" for text, bound in texts.items() if math.isfinite(bound)]
        raise ConfigError(f"{name}={value!r}: must be {' and '.join(bounds) or 'finite'}")


def _check_together(config: Config):
    """Conditions between fields. Those of the held-out region are `supports.check`'s."""
    task, decoder, seeds = config.task, config.decoder, config.training.seeds
    _check_grid("config.task.grid", task.grid)
    if decoder.name == "conv" and decoder.depth < 2:
        raise ConfigError(f"config.decoder.depth={decoder.depth}: must be at least 2 for conv")
    if decoder.name == "pixelwise" and decoder.width % 4:
        raise ConfigError(
            f"config.decoder.width={decoder.width}: must be divisible by 4 for pixelwise (its "
            "position code has a sine and a cosine for each axis)"
        )
    if config.training.precision != "float32" and decoder.name not in ("conv", "lowrank"):
        raise ConfigError(
            f"config.training.precision={config.training.precision!r}: is for convolutions, which "
            f"config.decoder.name={decoder.name!r} has not"
        )
    _check_low_rank(config)
    stripes = 2 * task.grid * task.stripes.copies
    if task.stripes.left_out and (task.stripes.order, task.stripes.left_out < stripes) != (
        "shuffled",
        True,
    ):
        raise ConfigError(
            f"config.task.stripes.left_out={task.stripes.left_out}: needs "
            f"config.task.stripes.order='shuffled' and must be less than the {stripes} stripes"
        )
    every_cell = task.support.sampling == "every_cell"
    if not (task.support.samples or task.stripes.copies or every_cell):
        raise ConfigError(
            "config.task.support.samples=0: leaves nothing to train on, as "
            "config.task.stripes.copies=0"
        )
    if task.stripes.copies and task.code.missing == "zero" and task.code.name == "ramp":
        raise ConfigError(
            "config.task.code.missing='zero': is the ramp's code of coordinate 0, so a stripe's "
            "missing factor needs config.task.code.missing='off_grid'"
        )
    if not seeds or any(type(seed) is not int or not 0 <= seed < 2**31 for seed in seeds):
        raise ConfigError(
            f"config.training.seeds={seeds!r}: must be one or more integers from 0 to 2**31-1"
        )
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"config.training.seeds={seeds!r}: must not repeat a seed")
    if config.sweep.grids:
        _check_sweep(config)


def _check_grid(name: str, grid: int, shown=None):
    if grid % 4:
        raise ConfigError(
            f"{name}={grid if shown is None else shown}: must be divisible by 4 (the decoder "
            "doubles the image's side twice)"
        )


# kind, lowest and highest value of the entries of a sweep's lists
SWEEP_LISTS = {
    "grids": (int, 8, 128),
    "schemes": ("bumps", "stripes"),
    "regions": ("none", "donut", "corner"),
    "shares": (float, 0.01, 0.99),
    "learning_rates": (float, 1e-12, 1e6),
    "weight_decays": (float, 0, 1e6),
    "scores": ("exact", "position", "image"),
    "images_per_cell": (float, 0, 1e4),
    "images_per_value": (float, 0, 1e4),
}
MAY_BE_EMPTY = ("learning_rates", "weight_decays")


def _check_sweep(config: Config):
    for name, allowed in SWEEP_LISTS.items():
        values, flag = getattr(config.sweep, name), f"config.sweep.{name}"
        if not values and name not in MAY_BE_EMPTY:
            raise ConfigError(f"{flag}=(): an empty sweep; give one value or more")
        if len(set(values)) < len(values):
            raise ConfigError(f"{flag}={values!r}: must not repeat a value")
        for value in values:
            _check_entry(flag, values, value, allowed)
    for grid in config.sweep.grids:
        _check_grid("config.sweep.grids", grid, config.sweep.grids)
    if config.task.support.sampling == "every_cell":
        raise ConfigError(
            "config.task.support.sampling='every_cell': a sweep chooses the number of images; say "
            "with_replacement, without_replacement or real"
        )
    if not config.training.steps:
        raise ConfigError(
            "config.training.steps=0: a sweep's trials are equally long, whatever their data: give "
            "their length in steps"
        )


def _check_entry(flag: str, values, value, allowed):
    if allowed[0] not in (int, float):
        if value not in allowed:
            raise ConfigError(f"{flag}={values!r}: must be some of {', '.join(allowed)}")
        return
    kind, low, high = allowed
    if type(value) not in (kind, int) or not low <= value <= high:
        noun = "integers" if kind is int else "numbers"
        raise ConfigError(f"{flag}={values!r}: must be {noun} from {low:g} to {high:g}")


def _check_low_rank(config: Config):
    """The conditions of embeddings: one-hot codes, at most N terms, penalties only on them."""
    task, decoder, penalty = config.task, config.decoder, config.training.penalty
    if decoder.name != "lowrank":
        for name, value in (("entropy", penalty.entropy), ("variance", penalty.variance)):
            if value:
                raise ConfigError(
                    f"config.training.penalty.{name}={value!r}: only config.decoder.name="
                    f"'lowrank' has embeddings, not {decoder.name!r}"
                )
        return
    if task.code.name != "onehot":
        raise ConfigError(
            f"config.task.code.name={task.code.name!r}: must be 'onehot' for lowrank, which has "
            "an embedding for each value of x and of y"
        )
    if decoder.rank > task.grid:
        raise ConfigError(
            f"config.decoder.rank={decoder.rank}: must be at most the grid's side, {task.grid}"
        )
