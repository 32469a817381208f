"""The settings that the paper leaves open, each changed alone around a base network (quick scale).

A verdict that holds at one setting may fail at another. So each base network is trained again at
every setting of its list, and its claims are judged there once more (`papers.settings`).
"""

from compgen_jax.papers.settings import Group, Setting, times, to, training_time

THIRD, THRICE = 1 / 3, 3.0  # of the learning rate


def on_grid(grid: int) -> Setting:
    """Another N, with as large a share of it held out."""

    def values(config):
        ratio = grid / config.task.grid
        support = config.task.support
        bounds = {
            f"task.support.{name}": round(getattr(support, name) * ratio)
            for name in ("low", "high")
        }
        return {"task.grid": grid} | bounds

    return Setting(f"N = {grid}", values)


RATES = times("training.learning_rate", THIRD), times("training.learning_rate", THRICE)
TIMES = training_time(0.5), training_time(2.0)
UPRIGHT = to("upright", task__image__polarity="upright")
CORNER = to("corner", task__support__region="corner", task__support__low=7)
BUMPS_ALONE = Group(
    ("bump_cnn",),
    (
        *RATES,
        *TIMES,
        times("model.width", 0.5),
        times("model.width", 2),
        to("depth 2", model__depth=2),
        to("depth 6", model__depth=6),
        times("task.image.sigma", 1.5),
        UPRIGHT,
        times("training.batch_size", 0.5),
        times("training.weight_decay", 0.1),
        CORNER,
        on_grid(12),
        on_grid(20),
        times("task.code.width", 3, "code width"),
    ),
)
RAMP = Group(("ramp_cnn",), (*RATES, *TIMES, UPRIGHT, CORNER))
LOW_RANK = Group(
    tuple(f"lowrank_{name}" for name in ("none", "entropy", "variance", "both")),
    (
        *RATES,
        *TIMES,
        times("model.penalty.entropy", THIRD, "entropy penalty"),
        times("model.penalty.entropy", THRICE, "entropy penalty"),
        times("model.penalty.variance", THIRD, "variance penalty"),
        times("model.penalty.variance", THRICE, "variance penalty"),
    ),
)
OFF_GRID, OFF_CANVAS = ({"task__code__missing": name} for name in ("off_grid", "off_canvas"))
STRIPES = Group(
    ("stripes_0_bumps", "stripes_10_bumps", "stripes_30_bumps", "corner_bumps"),
    (
        UPRIGHT,
        to("missing factor off the grid", **OFF_GRID),
        to("upright, missing factor off the grid", task__image__polarity="upright", **OFF_GRID),
        to("label off the canvas", **OFF_CANVAS),
        to("upright, label off the canvas", task__image__polarity="upright", **OFF_CANVAS),
        *TIMES,
        *RATES,
        times("model.width", 0.5),
    ),
)
GROUPS = BUMPS_ALONE, RAMP, LOW_RANK, STRIPES
