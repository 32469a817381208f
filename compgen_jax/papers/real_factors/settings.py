"""The settings around the decoders of sprites, each changed alone (quick scale)."""

from compgen_jax.models.upsampling import LAYOUTS
from compgen_jax.papers.real_factors.runs import runs
from compgen_jax.papers.settings import Group, Setting, times, to, training_time

RATES = times("training.learning_rate", 1 / 3), times("training.learning_rate", 3)
# Ranges of other pairs of factors, of about as many combinations.
OTHER_RANGES = (
    to("heart and posY > .5", task__held_out="shape == 'heart' and posY > .5"),
    to("posX > .6 and posY > .6", task__held_out="posX > .6 and posY > .6"),
    to("square and scale > .75", task__held_out="shape == 'square' and scale > .75"),
)


def half_width(config) -> dict:
    """Half the units and channels of a layout."""
    layout = LAYOUTS[config.model.layout]
    halved = lambda widths: tuple(width // 2 for width in widths)
    return {
        "model.dense": halved(config.model.dense or layout.units),
        "model.channels": halved(config.model.channels or layout.channels),
    }


LEARNING = (*RATES, training_time(2.0))
AROUND = (
    *LEARNING,
    Setting("width x1/2", half_width),
    to("one-hot code", task__code__name="onehot"),
    to("codes are values", task__code__name="value"),
    to("hard edges", task__supersample=1),
)
DECODERS = Group(("sprites_range", "sprites_mean", "sprites_slice"), (*AROUND, *OTHER_RANGES))
ELEMENT = Group(("sprites_element",), AROUND)
OTHERS = Group(("sprites_lowrank_penalties", "sprites_encoder"), (*LEARNING, *OTHER_RANGES))
PAIRS = Group(tuple(name for name in runs("quick") if "_pair_" in name), AROUND)
GROUPS = DECODERS, ELEMENT, PAIRS, OTHERS
