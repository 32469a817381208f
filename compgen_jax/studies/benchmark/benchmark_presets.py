"""The league's runs: every model, on every task that it serves, with a block, a corner, a range or
single combinations at random held out."""

import functools
from pathlib import Path
from typing import NamedTuple

from compgen_jax.config import Config, ConfigError, TrainingConfig, changed
from compgen_jax.settings import family
from compgen_jax.tasks.bump import Bump, ImageConfig, SizeConfig
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.rotation import AngleCodeConfig, GapConfig, Rotation
from compgen_jax.tasks.scene import CodesConfig
from compgen_jax.tasks.sprites import CountsConfig, Sprites
from compgen_jax.tasks.supports import SupportConfig

TASKS = {
    "bumps": "bumps: x, y",
    "sizes": "bumps: x, y, size",
    "rotation": "digits: angle, digit",
    "sprites": "sprites: shape, x, y",
}
HOLDOUTS = {"block": "block", "corner": "corner", "random": "at random", "range": "range"}
OF_TASK = {  # the hold-outs of each task
    "bumps": ("block", "corner", "random"),
    "sizes": ("block", "corner", "random"),
    "rotation": ("block", "random"),
    "sprites": ("random", "range"),
}


class LeagueModel(NamedTuple):
    """A row of the league.

    name: of the model.  fields: of the config on every task.  of_task: further ones, by task.
    tasks: those that it serves.  code: of x, y and size.
    """

    name: str
    fields: dict = {}
    of_task: dict = {}
    tasks: tuple = tuple(TASKS)
    code: str = "bump"


class Entry(NamedTuple):
    """What a run of the league is: the row's title, the task, and what is held out.

    architecture: the model's name. Runs of one architecture are no independent evidence.
    """

    model: str
    architecture: str
    task: str
    holdout: str

    def score(self, accuracy: str) -> str:
        """The score that says whether a combination is composed: of bumps whether the image is
        rendered, of digits the task's `accuracy`."""
        return accuracy if self.task == "rotation" else "rendered"

    @property
    def group(self) -> str:
        """The column of the league: runs of one task and hold-out are ranked together."""
        return f"{self.task}, {self.holdout}"


ONE_HOT = {"tasks": ("bumps",), "code": "onehot"}
EMBEDDED = {"tasks": ("bumps", "sizes", "sprites"), "code": "onehot"}
CONV = {"model.depth": 3, "training.batch_size": 16, "training.learning_rate": 3e-3}
MLP = {"model.depth": 3, "model.width": 256}
SHARED = {"model.depth": 2, "training.learning_rate": 3e-3}
LOW_RANK = {"model.depth": 2, "model.width": 2, "training.steps": 9600}
PENALTIES = {"model.penalty.entropy": 1.0, "model.penalty.variance": 0.075}
# along which axes a factor's embedding should be constant: both for x and y of bumps, as published
AXES = {
    "sizes": {"model.penalty.axes": ((2, "none"),)},
    "sprites": {"model.penalty.axes": ((0, "none"), (1, "rows"), (2, "columns"))},
}
SHOWN = {
    "bumps": {"task.stripes.copies": 1},
    "sprites": {"task.marginals.kind": "mean", "task.code.missing": "mask"},
}
SMALL_HEADS = {"model.heads": 2, "model.hidden": 64, "model.dropout": 0.0}
ATTENTION = SHARED | SMALL_HEADS | {"training.batch_size": 16}
PRODUCTS = {"model.terms": 8, "training.learning_rate": 2e-3}
LONGER = {"model.width": 64, "training.steps": 4800}
# Steps and rates were chosen by ID accuracy on another seed.
MODELS = {
    "conv": LeagueModel("conv", CONV),
    "conv, one-hot code": LeagueModel("conv", CONV, **ONE_HOT),
    "conv, stripes shown": LeagueModel("conv", CONV, SHOWN, tasks=("bumps", "sprites")),
    "MLP": LeagueModel("mlp", MLP),
    "MLP, one-hot code": LeagueModel("mlp", MLP, **ONE_HOT),
    "low rank": LeagueModel("lowrank", LOW_RANK, **EMBEDDED),
    "low rank, penalties": LeagueModel("lowrank", LOW_RANK | PENALTIES, AXES, **EMBEDDED),
    "pixelwise": LeagueModel("pixelwise", SHARED, {"rotation": LONGER}),
    "pixelwise, one-hot code": LeagueModel("pixelwise", SHARED, **ONE_HOT),
    # It learns a quarter of the digits in 1500 steps, which take as long as all other rows.
    "transformer": LeagueModel("transformer", ATTENTION, tasks=("bumps", "sizes")),
    "flow matching": LeagueModel("flow", CONV, tasks=("bumps", "sprites")),
    # the same networks, trained again
    "flow, one step": LeagueModel("flow", CONV | {"model.steps": 1}, tasks=("bumps", "sprites")),
    "additive": LeagueModel("additive"),
    "multiplicative": LeagueModel("multiplicative", PRODUCTS),
}
DIGITS, TURNED = (2, 3, 4, 5, 7), (4, 7)  # the latter are held out at a third of the angles
# Side of bumps' and digits' images, held-out pixels of a block and of a corner, side of sprites,
# width, factor of the steps.
SIZES = {
    "quick": dict(grid=16, block=(3, 12), corner=6, side=24, width=32, longer=1, seeds=4),
    "paper": dict(grid=28, block=(6, 22), corner=11, side=32, width=64, longer=2, seeds=6),
}
LARGE = (3, 5)  # held-out sizes of a block or a corner, of six
STEPS = 1200
BY_FACTOR = "additive", "multiplicative"  # small networks for each factor


@functools.cache
def runs(scale: str, own: tuple = ()) -> dict[str, Config]:
    """All runs by name. `own` models, FILE.py:CLASS, are rows of their own, at their defaults."""
    models = [*MODELS.items(), *((_title(name), LeagueModel(name)) for name in own)]
    slugs = [_slug(title) for title, _ in models]
    for title, _ in models:
        if slugs.count(_slug(title)) > 1:
            raise ConfigError(f"--models: two are named {title}; rename a file, or its class")
    return {
        f"league_{task}_{holdout}_{_slug(title)}": _config(title, model, task, holdout, scale)
        for task in TASKS
        for title, model in models
        for holdout in OF_TASK[task]
        if task in model.tasks
    }


def entry_of(config: Config) -> Entry:
    """What the run of a config is, as its name says."""
    _, task, holdout, slug = config.name.removesuffix("_quick").split("_", 3)
    title = {_slug(title): title for title in MODELS}.get(slug)
    if title:
        return Entry(title, config.model.name, task, holdout)
    title = _title(config.model.name)
    return Entry(title, title, task, holdout)


def _title(name: str) -> str:
    """'my_model:Mine' of a user's own '.../my_model.py:Mine'."""
    path, _, attribute = name.rpartition(":")
    return f"{Path(path).stem}:{attribute}"


def _slug(title: str) -> str:
    return "_".join(title.replace(",", "").replace(":", " ").split()).lower()


def _config(title, model: LeagueModel, task, holdout, scale) -> Config:
    size, kind = SIZES[scale], family("model", model.name)
    fields = model.fields | model.of_task.get(task, {})
    if title in MODELS and hasattr(kind(), "width") and "model.width" not in fields:
        fields["model.width"] = size["width"] * (4 if model.name in BY_FACTOR else 1)
    steps = fields.get("training.steps", STEPS) * size["longer"]
    name = f"league_{task}_{holdout}_{_slug(title)}" + "_quick" * (scale == "quick")
    seeds = tuple(range(size["seeds"]))
    training = TrainingConfig(steps=steps, evaluate_every=steps // 4, seeds=seeds)
    config = Config(name=name, task=_task(task, model.code, size), model=kind(), training=training)
    return changed(config, fields | {"training.steps": steps} | _held_out(task, holdout, size))


def _task(task: str, code: str, size: dict):
    if task == "sprites":
        counts = CountsConfig(scale=1, orientation=1, posX=12, posY=12)
        return Sprites(side=size["side"], counts=counts, code=CodesConfig(name=code))
    if task == "rotation":
        of_angle = AngleCodeConfig(name="bump", units=36, width=10.0)
        gap = GapConfig(low=120.0, high=240.0, of=TURNED)
        counts = {"side": size["grid"], "angles": 36, "samples": 36}
        return Rotation(objects=DIGITS, l1=0.0, code=of_angle, gap=gap, **counts)
    low, high = size["block"]
    third = SizeConfig(values=6, smallest=0.8, largest=2.5, low=LARGE[0], high=LARGE[1])
    return Bump(
        grid=size["grid"],
        image=ImageConfig(sigma=1.5, polarity="upright"),
        size=third if task == "sizes" else SizeConfig(),
        code=CodeConfig(name=code),
        support=SupportConfig(region="donut", low=low, high=high, sampling="every_cell"),
    )


def _held_out(task: str, holdout: str, size: dict) -> dict:
    """Fields that hold out as many combinations as a block does, in another way."""
    if holdout == "block":
        return {}
    low, high = size["block"]
    if task == "sprites":
        of_range = "shape == 'square' and posX > .5"
        return {"task.held_out": of_range if holdout == "range" else f"random({of_range})"}
    if task == "rotation":
        share = len(TURNED) / len(DIGITS) / 3
        return {"task.gap.region": "random", "task.gap.share": share, "task.gap.of": ()}
    share = ((high - low + 1) / size["grid"]) ** 2 * (0.5 if task == "sizes" else 1)
    if holdout == "random":
        return {"task.support.region": "random", "task.support.share": share}
    return {"task.support.region": "corner", "task.support.low": size["corner"]}
