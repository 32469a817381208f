"""Layers of which it is known what a readout tells: numbers, as they are measured of every run.

Runs are of 3 widths and 4 numbers of seen sets; a run composes the better the wider it is and the
more sets it has seen, but where a reading says otherwise.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from compgen_jax.papers.scale.known_students import SEEDS, known_run
from compgen_jax.runs.run import Run

WIDTHS, SEEN = (16, 64, 256), (9, 22, 44, 69)
SUCCESS = np.outer((0.6, 0.9, 1.0), (0.1, 0.4, 0.7, 0.97))  # gains by width and sets seen
SETS = (0.0, 0.33, 0.67, 1.0)
NOISE = 0.01
LOST = 0.35  # by an untrained network's last layer


class Layers(NamedTuple):
    """R^2 of the latent from the first layer and from the last, also before training, and the
    share of latents that is recovered from the last; `modules`: of sets of modules, as many unless
    given."""

    first: float
    last: float
    untrained_first: float
    untrained_last: float
    recovery: float
    modules: float | None = None


def bound(right: float) -> float:
    """What the theorem says of the recovery."""
    return 1 - (1 - right) ** 0.5


def right_of(success: float) -> float:
    """The share of tasks on which a run is right."""
    return success**2


def _tells(success, sets, recovery=lambda right: min(bound(right) + 0.1, 1.0)):
    last = 0.3 + 0.65 * success
    return Layers(0.9, last, 0.85, 0.85 - LOST + 0.1 * sets, recovery(right_of(success)))


def _by_sets(success, sets):
    last = 0.4 + 0.4 * sets
    return Layers(0.85, last, 0.85, last, 0.3)


class KnownReading(NamedTuple):
    """layers: success, share of the sets seen -> `Layers`.  does: what, in words.  success: gains
    by width and sets seen."""

    layers: Callable
    does: str
    success: np.ndarray = SUCCESS


READINGS = {
    "tells": KnownReading(
        _tells, "the last layer tells more the better a run composes; recovery is above the bound"
    ),
    "at the bound": KnownReading(
        lambda success, sets: _tells(success, sets, bound), "the same, recovery at the bound"
    ),
    "below": KnownReading(
        lambda success, sets: _tells(success, sets, lambda right: max(bound(right) - 0.1, 0)),
        "the same, recovery .1 below the bound",
    ),
    "modules alone": KnownReading(
        lambda success, sets: _tells(success, sets, lambda right: 0.4 * right)._replace(
            modules=min(bound(right_of(success)) + 0.1, 1.0)),
        "the first again, of modules alone: recovery of latents is far below the bound",
    ),
    "constant": KnownReading(
        lambda success, sets: Layers(0.8, 0.8, 0.8, 0.8, 0.3), "every layer tells as much"
    ),
    "reversed": KnownReading(
        lambda success, sets: Layers(0.6, 0.95 - 0.65 * success, 0.85, 0.5, 1 - success),
        "the last layer tells the less the better a run composes",
    ),
    "by sets": KnownReading(
        _by_sets, "a readout fitted to more sets tells more, trained or not, and less with depth"
    ),
    "lost by all": KnownReading(
        lambda success, sets: Layers(0.9, 0.5, 0.85, 0.75, 0.3),
        "every run loses as much with depth, more than before training",
    ),
    "random": KnownReading(
        lambda success, sets: Layers(*np.random.default_rng(
            int(1e6 * success)).uniform(0.2, 0.8, 4), 0.3),
        "what a layer tells goes with nothing",
    ),
    "all compose": KnownReading(
        lambda success, sets: Layers(0.9, 0.9, 0.85, 0.5, 0.99),
        "every run composes, and tells the latent",
        np.full_like(SUCCESS, 0.98),
    ),
    "none composes": KnownReading(
        lambda success, sets: Layers(0.9, 0.3, 0.85, 0.5, 0.0),
        "no run composes, and every one loses the latent with depth",
        0.3 * SUCCESS,
    ),
}  # fmt: skip


def runs_of(name: str) -> list[Run]:
    """A run of every width and number of sets seen, with what is read off code, first layer and
    last."""
    reading, rng = READINGS[name], np.random.default_rng(0)
    noisy = lambda *values: np.stack(
        [value + NOISE * rng.normal(size=len(SEEDS)) for value in values], axis=1
    )
    found = []
    for width, gains in zip(WIDTHS, reading.success, strict=True):
        for seen, success, sets in zip(SEEN, gains, SETS, strict=True):
            one = reading.layers(success, sets)
            of_every_seed = lambda value: np.full(len(SEEDS), value)
            scores = {
                "ood.r2": 0.85 + 0.15 * success + 0.1 * NOISE * rng.normal(size=len(SEEDS)),
                "ood.gain": noisy(success)[:, 0],
                "ood.task_accuracy": of_every_seed(right_of(success)),
            }
            layers = {
                "decode.ood_r2": noisy(1.0, one.first, one.last),
                "decode.untrained.ood_r2": noisy(1.0, one.untrained_first, one.untrained_last),
                "decode.shuffled.ood_r2": noisy(0.0, 0.0, 0.0),
            }
            modules = one.recovery if one.modules is None else one.modules
            outputs = {
                "decode.recovery": of_every_seed(one.recovery),
                "decode.active_recovery": of_every_seed(modules),
            }
            found.append(known_run(scores, layers, outputs, width=width, seen=seen))
    return found
