"""Which networks play in the league: every model, on every task that it serves, with a block, a
corner or single combinations at random held out."""

from pathlib import Path
from typing import NamedTuple

from compgen_jax.config import Config, ConfigError, TrainingConfig, changed
from compgen_jax.settings import family
from compgen_jax.tasks.bump import Bump, ImageConfig, SizeConfig
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.rotation import AngleCodeConfig, GapConfig, Rotation
from compgen_jax.tasks.supports import SupportConfig

TASKS = {"bumps": "bumps: x, y", "sizes": "bumps: x, y, size", "rotation": "digits: angle, digit"}
HOLDOUTS = {"block": "block", "corner": "corner", "random": "at random"}


class Player(NamedTuple):
    """A row of the league.

    family: networks of one are no independent evidence.  model: its name.  fields: of the
    config, whatever the task.  of_task: by task, its own.  tasks: those that it serves.  code: of
    x, y and size.
    """

    family: str
    model: str
    fields: dict = {}
    of_task: dict = {}
    tasks: tuple = tuple(TASKS)
    code: str = "bump"


class Match(NamedTuple):
    """What a network is for: a player's name and family, what it is asked for, what is held out."""

    player: str
    family: str
    task: str
    holdout: str

    @property
    def group(self) -> str:
        """The column of the league: matches of one are ranked against each other."""
        return f"{self.task}, {self.holdout}"


class Network(NamedTuple):
    name: str
    config: Config
    role: Match


ON_BUMPS = {"tasks": ("bumps",)}
ONE_HOT = ON_BUMPS | {"code": "onehot"}
CONV = {"model.depth": 3, "training.batch_size": 16, "training.learning_rate": 3e-3}
MLP = {"model.depth": 3, "model.width": 256}
SHARED = {"model.depth": 2, "training.learning_rate": 3e-3}
LOW_RANK = {"model.depth": 2, "model.width": 2, "training.steps": 9600}
PENALTIES = {"model.penalty.entropy": 1.0, "model.penalty.variance": 0.075}
ATTENTION = SHARED | {
    "model.heads": 2,
    "model.hidden": 64,
    "model.dropout": 0.0,
    "training.batch_size": 16,
}
PRODUCTS = {"model.terms": 8, "training.learning_rate": 2e-3}
LONGER = {"model.width": 64, "training.steps": 4800}
# steps and rates by ID accuracy on a seed apart
PLAYERS = {
    "conv": Player("conv", "conv", CONV),
    "conv, one-hot code": Player("conv", "conv", CONV, **ONE_HOT),
    "conv, stripes shown": Player("conv", "conv", CONV | {"task.stripes.copies": 1}, **ON_BUMPS),
    "MLP": Player("mlp", "mlp", MLP),
    "MLP, one-hot code": Player("mlp", "mlp", MLP, **ONE_HOT),
    "low rank": Player("lowrank", "lowrank", LOW_RANK, **ONE_HOT),
    "low rank, penalties": Player("lowrank", "lowrank", LOW_RANK | PENALTIES, **ONE_HOT),
    "pixelwise": Player("pixelwise", "pixelwise", SHARED, {"rotation": LONGER}),
    "pixelwise, one-hot code": Player("pixelwise", "pixelwise", SHARED, **ONE_HOT),
    # of digits it knows a quarter after 1500 steps, which take as long as all other rows
    "transformer": Player("transformer", "transformer", ATTENTION, tasks=("bumps", "sizes")),
    "additive": Player("additive", "additive"),
    "multiplicative": Player("multiplicative", "multiplicative", PRODUCTS),
}
DIGITS, TURNED = (2, 3, 4, 5, 7), (4, 7)  # the latter are not seen at a third of the angles
# the side of images; of the block and the corner, of pixels and of sizes; width; times the steps
SIZES = {
    "quick": {"grid": 16, "block": (3, 12), "corner": 6, "width": 32, "longer": 1, "seeds": 4},
    "paper": {"grid": 28, "block": (6, 22), "corner": 11, "width": 64, "longer": 2, "seeds": 6},
}
LARGE = (3, 5)  # of six sizes, those of a held-out block or corner
STEPS = 1200
BY_FACTOR = "additive", "multiplicative"  # small networks for each factor


def networks(scale: str, own: tuple = ()) -> list[Network]:
    """All of them; `own` models, FILE.py:CLASS, are rows of their own, at their defaults."""
    title = lambda name: f"{Path(name.rpartition(':')[0]).stem}:{name.rpartition(':')[2]}"
    titles = [*PLAYERS, *map(title, own)]
    if twice := [one for one in titles if titles.count(one) > 1]:
        raise ConfigError(f"--models: two are named {twice[0]}; name one file, or class, otherwise")
    players = PLAYERS | {title(name): Player(title(name), name) for name in own}
    return [
        _network(title, player, task, holdout, scale)
        for task in TASKS
        for title, player in players.items()
        for holdout in HOLDOUTS
        if task in player.tasks and (task, holdout) != ("rotation", "corner")
    ]


def having(**fields):
    """role -> whether it is a match in which these fields have these values."""
    return lambda role: (
        isinstance(role, Match)
        and all(getattr(role, name) == value for name, value in fields.items())
    )


def _network(title, player, task, holdout, scale) -> Network:
    size = SIZES[scale]
    own = family("model", player.model)
    fields = player.fields | player.of_task.get(task, {})
    if hasattr(own(), "width") and "model.width" not in fields and title in PLAYERS:
        fields["model.width"] = size["width"] * (4 if player.family in BY_FACTOR else 1)
    steps = fields.get("training.steps", STEPS) * size["longer"]
    name = "_".join(["league", task, holdout, *title.replace(",", "").replace(":", " ").split()])
    training = TrainingConfig(
        steps=steps, evaluate_every=steps // 4, seeds=tuple(range(size["seeds"]))
    )
    config = Config(
        name=name.lower() + "_quick" * (scale == "quick"),
        task=_task(task, player.code, size),
        model=own(),
        training=training,
    )
    fields |= {"training.steps": steps} | _held_out(task, holdout, size)
    return Network(config.name, changed(config, fields), Match(title, player.family, task, holdout))


def _task(task: str, code: str, size: dict):
    if task == "rotation":
        return Rotation(
            side=size["grid"],
            objects=DIGITS,
            angles=36,
            samples=36,
            l1=0.0,
            code=AngleCodeConfig(name="bump", units=36, width=10.0),
            gap=GapConfig(low=120.0, high=240.0, of=TURNED),
        )
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
    """Fields that hold as many combinations out in another way than as a block."""
    if holdout == "block":
        return {}
    low, high = size["block"]
    if task == "rotation":
        share = len(TURNED) / len(DIGITS) / 3
        return {"task.gap.region": "random", "task.gap.share": share, "task.gap.of": ()}
    share = ((high - low + 1) / size["grid"]) ** 2 * (0.5 if task == "sizes" else 1)
    if holdout == "random":
        return {"task.support.region": "random", "task.support.share": share}
    return {"task.support.region": "corner", "task.support.low": size["corner"]}
