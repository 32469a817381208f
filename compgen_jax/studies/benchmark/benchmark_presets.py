"""The benchmark's runs: every model, on every task that it serves, with a block, a corner, a range
or single combinations at random held out."""

import functools
from typing import NamedTuple

from compgen_jax.config import Config, changed

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


class Model(NamedTuple):
    """A row: the model's name, fields of its config on every task, further ones by task, the tasks
    that it serves, and the code of x, y and size."""

    name: str
    fields: dict = {}
    of_task: dict = {}
    tasks: tuple = tuple(TASKS)
    code: str = "bump"


class Entry(NamedTuple):
    """A run: the title of its row, the task, and what is held out."""

    model: str
    task: str
    holdout: str


ONE_HOT = {"tasks": ("bumps",), "code": "onehot"}
EMBEDDED = {"tasks": ("bumps", "sizes", "sprites"), "code": "onehot"}
CONV = {"model.depth": 3, "training.batch_size": 16, "training.learning_rate": 3e-3}
MLP = {"model.depth": 3, "model.width": 256}
PIXELWISE = {"model.depth": 2, "training.learning_rate": 3e-3}
LOW_RANK = {"model.depth": 2, "model.width": 2, "training.steps": 9600}
PENALTIES = {"model.penalty.entropy": 1.0, "model.penalty.variance": 0.075}
# along which axes a factor's embedding should be constant: both for x and y of bumps, as published
AXES = {
    "sizes": {"model.penalty.axes": ((2, "none"),)},
    "sprites": {"model.penalty.axes": ((0, "none"), (1, "rows"), (2, "columns"))},
}
STRIPES = {
    "bumps": {"task.stripes.copies": 1},
    "sprites": {"task.marginals.kind": "mean", "task.code.missing": "mask"},
}
ATTENTION = PIXELWISE | {
    "model.heads": 2,
    "model.hidden": 64,
    "model.dropout": 0.0,
    "training.batch_size": 16,
}
LONGER = {"rotation": {"model.width": 64, "training.steps": 4800}}
# Steps and rates were chosen by ID accuracy on another seed.
MODELS = {
    "conv": Model("conv", CONV),
    "conv, one-hot code": Model("conv", CONV, **ONE_HOT),
    "conv, stripes shown": Model("conv", CONV, STRIPES, tasks=("bumps", "sprites")),
    "MLP": Model("mlp", MLP),
    "MLP, one-hot code": Model("mlp", MLP, **ONE_HOT),
    "low rank": Model("lowrank", LOW_RANK, **EMBEDDED),
    "low rank, penalties": Model("lowrank", LOW_RANK | PENALTIES, AXES, **EMBEDDED),
    "pixelwise": Model("pixelwise", PIXELWISE, LONGER),
    "pixelwise, one-hot code": Model("pixelwise", PIXELWISE, **ONE_HOT),
    # It learns a quarter of the digits in 1500 steps, which take as long as all other rows.
    "transformer": Model("transformer", ATTENTION, tasks=("bumps", "sizes")),
    "flow matching": Model("flow", CONV, tasks=("bumps", "sprites")),
    # the same networks, trained again
    "flow, one step": Model("flow", CONV | {"model.steps": 1}, tasks=("bumps", "sprites")),
    # small networks for each factor
    "additive": Model("additive", {"model.depth": 2}),
    "multiplicative": Model(
        "multiplicative", {"model.depth": 2, "model.terms": 8, "training.learning_rate": 2e-3}
    ),
}
ENTRIES = {
    f"league_{task}_{holdout}_{title.replace(',', '').replace(' ', '_').lower()}": Entry(
        title, task, holdout
    )
    for task in TASKS
    for title, model in MODELS.items()
    for holdout in OF_TASK[task]
    if task in model.tasks
}
# Side of bumps' and digits' images, held-out pixels of a block and of a corner, side of sprites,
# width, factor of the steps.
SIZES = {
    "quick": dict(grid=16, block=(3, 12), corner=6, side=24, width=32, longer=1, seeds=4),
    "paper": dict(grid=28, block=(6, 22), corner=11, side=32, width=64, longer=2, seeds=6),
}
DIGITS, TURNED = (2, 3, 4, 5, 7), (4, 7)  # the latter are held out at a third of the angles
LARGE = (3, 5)  # held-out sizes of a block or a corner, of six
RANGE = "shape == 'square' and posX > .5"
STEPS = 1200


@functools.cache
def runs(scale: str) -> dict[str, Config]:
    """All runs by name."""
    by_name, size = {}, SIZES[scale]
    for name, entry in ENTRIES.items():
        model = MODELS[entry.model]
        wide = size["width"] * (4 if model.name in ("additive", "multiplicative") else 1)
        fields = {"model.width": wide} | model.fields | model.of_task.get(entry.task, {})
        steps = fields.get("training.steps", STEPS) * size["longer"]
        training = {
            "training.steps": steps,
            "training.evaluate_every": steps // 4,
            "training.seeds": tuple(range(size["seeds"])),
        }
        names = {"name": f"{name}_quick" if scale == "quick" else name, "model.name": model.name}
        task = task_fields(entry.task, entry.holdout, model.code, size)
        by_name[name] = changed(Config(), names | task | fields | training)
    return by_name


def task_fields(task: str, holdout: str, code: str, size: dict) -> dict:
    """All hold-outs of a task leave out as many combinations."""
    if task == "sprites":
        return {
            "task.name": "sprites",
            "task.side": size["side"],
            "task.counts.scale": 1,
            "task.counts.orientation": 1,
            "task.counts.posX": 12,
            "task.counts.posY": 12,
            "task.code.name": code,
            "task.held_out": RANGE if holdout == "range" else f"random({RANGE})",
        }
    if task == "rotation":
        share = len(TURNED) / len(DIGITS) / 3
        return {
            "task.name": "rotation",
            "task.objects": DIGITS,
            "task.l1": 0.0,
            "task.side": size["grid"],
            "task.angles": 36,
            "task.samples": 36,
            "task.code.name": "bump",
            "task.code.units": 36,
            "task.code.width": 10.0,
            "task.gap.low": 120.0,
            "task.gap.high": 240.0,
        } | (
            {"task.gap.of": TURNED}
            if holdout == "block"
            else {"task.gap.region": "random", "task.gap.share": share}
        )
    low, high = size["block"]
    fields = {
        "task.grid": size["grid"],
        "task.image.sigma": 1.5,
        "task.image.polarity": "upright",
        "task.code.name": code,
        "task.support.region": "donut" if holdout == "block" else holdout,
        "task.support.low": size["corner"] if holdout == "corner" else low,
        "task.support.high": high,
        "task.support.sampling": "every_cell",
    }
    share = ((high - low + 1) / size["grid"]) ** 2
    if task == "sizes":
        third = {"values": 6, "smallest": 0.8, "largest": 2.5, "low": LARGE[0], "high": LARGE[1]}
        fields |= {f"task.size.{name}": value for name, value in third.items()}
        share /= 2
    return fields | ({"task.support.share": share} if holdout == "random" else {})
