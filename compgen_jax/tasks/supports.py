"""Which combinations of a grid's factors are seen: held-out regions and sampling (Figure 1a)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.settings import choice, demand, number, require
from compgen_jax.tasks import regions, sampling
from compgen_jax.tasks.task import Factor, numpy_of

# the settings that say where a region lies
REGIONS = {
    "donut": ("low", "high", "side", "of"),
    "corner": ("low", "side", "of"),
    "random": ("share", "seed"),
    "none": (),
}


@dataclass(frozen=True)
class SupportConfig:
    """Which factor combinations are held out, and how the others are sampled for training.

    donut  holds out the cells low <= x <= high and low <= y <= high;
    corner holds out the square from `low` to the grid's edge in the top right corner;
    random holds out `share` of the cells, drawn with `seed`.

    A `side` above 0 replaces `low` and `high`: it is the side of the held-out square as a share of
    N, rounded to pixels; a donut's square is then centred. A third factor has bounds of its own
    (`SizeConfig`), so that a donut is a box. `of` names the factors that bound the region (none:
    all); it takes any value of the others.

    `samples` points are drawn once for each seed. With `in_proportion`, their number is `samples`
    times the share that is not held out.
    """

    region: str = choice("donut", *REGIONS)
    low: int = number(6, low=0)
    high: int = number(22, low=0)
    side: float = number(0.0, low=0, high=0.99)
    of: tuple = ()
    share: float = number(0.37, low=0, high=1)
    seed: int = number(0, low=0)
    sampling: str = choice(
        "with_replacement", "with_replacement", "without_replacement", "every_cell", "real"
    )
    samples: int = number(2000, low=0, high=10**7)
    in_proportion: bool = False
    require_marginals: bool = True


class Axis(NamedTuple):
    """One factor of a grid: `count` values, `step` apart, from `first` on. Those of a held-out box
    are number `low` to `high`, both included; those of a corner, number `low` and all after it."""

    name: str
    count: int
    first: float
    step: float
    low: int
    high: int


def bounds(settings: SupportConfig, grid: int) -> tuple[int, int]:
    """The first and the last pixel of the held-out square along x and along y."""
    if not settings.side:
        return settings.low, settings.high
    held_out = round(settings.side * grid)
    low = grid - held_out if settings.region == "corner" else (grid - held_out) // 2
    return low, low + held_out - 1


class Support(regions.Cells):
    """The cells of evenly spaced factors, and what is drawn from those that are seen. Raises
    ConfigError for a region of unknown factors."""

    def __init__(self, settings: SupportConfig, axes):
        self.settings, self.axes = settings, tuple(axes)
        counts, names = tuple(axis.count for axis in axes), [axis.name for axis in axes]
        hint = f"must name some of {', '.join(names)}"
        require(set(settings.of) <= set(names), "task.support.of", settings.of, hint)
        values = [axis.first + axis.step * np.arange(axis.count) for axis in axes]
        factors = [Factor(n, v.astype(np.float32)) for n, v in zip(names, values, strict=True)]
        held_out = np.full(np.prod(counts), settings.region != "none")
        if settings.region == "random":
            held_out = regions.random_cells(held_out, settings.share, settings.seed)
        for name, place_B in zip(names, grids.indices(counts).T, strict=True):
            low, high = self.box.get(name, (0, np.inf))
            held_out &= (low <= place_B) & (place_B <= high)
        super().__init__(factors, held_out)

    @property
    def box(self) -> dict:
        """{factor: (first, last)} of the values that bound a donut or a corner."""
        settings = self.settings
        if settings.region not in ("donut", "corner"):
            return {}
        last = lambda axis: axis.high if settings.region == "donut" else axis.count - 1
        names = settings.of or [axis.name for axis in self.axes]
        return {axis.name: (axis.low, last(axis)) for axis in self.axes if axis.name in names}

    def places(self, points):
        numpy, places = numpy_of(points), []
        for k, axis in enumerate(self.axes):
            place = numpy.nan_to_num(numpy.round((points[..., k] - axis.first) / axis.step))
            places.append(place.clip(0, axis.count - 1).astype(int))
        return numpy.stack(places, axis=-1)

    def n_samples(self) -> int:
        """The number of points that are drawn. 'every_cell' takes each seen cell once."""
        if self.settings.sampling == "every_cell":
            return int((~self.held_out).sum())
        share = self.seen_share() if self.settings.in_proportion else 1
        return round(share * self.settings.samples)

    def seen_share(self) -> float:
        """The share of the cells that is not held out; of real points, the share of the volume."""
        region, held_out = self.settings.region, 1.0
        if self.settings.sampling != "real" or region == "none":
            return 1 - self.held_out.mean()
        unknown = f"the share of real points in the region {region!r} is not known"
        hint = f"{unknown}; say donut, corner or none"
        require(self.box, "task.support.in_proportion", True, hint)
        for axis in self.axes:
            low, high = self.box.get(axis.name, (0, axis.count - 1))
            last = axis.count - 1  # half of an outermost cell lies beyond real points
            held_out *= (min(high + 0.5, last) - max(low - 0.5, 0)) / last
        return 1 - held_out

    def sample(self, key, n: int):
        """n training points of the seen region, (n, F) float32: cells with or without replacement,
        every seen cell once, or real points, uniform between the outermost cells."""
        kind = self.settings.sampling
        if kind == "real":
            first = jnp.array([axis.first for axis in self.axes])
            extent = jnp.array([axis.step * (axis.count - 1.0) for axis in self.axes])
            draw = lambda key: sampling.by_rejection(key, first, extent, self.is_held_out)
            return jax.vmap(draw)(jax.random.split(key, n))
        seen = jnp.asarray(self.points[~self.held_out])
        if kind == "with_replacement":
            return seen[jax.random.randint(key, (n,), 0, len(seen))]
        if kind == "without_replacement":
            return jax.random.permutation(key, seen)[:n]
        return seen

    # --- checks ------------------------------------------------------------------------------

    def check(self, points: int, source: str, shows_every_value: bool):
        """Raises ConfigError where the support cannot serve, before anything compiles.

        Args:
          points: how many are drawn.  source: the field and value that say so, for the message.
          shows_every_value: whether training has stripes, so that points need not show all values.
        """
        settings, whole = self.settings, "x".join(map(str, self.sizes))
        shown = [
            n for n in REGIONS[settings.region] if n not in ("side", "of") or vars(settings)[n]
        ]
        pairs = [f"{name}={getattr(settings, name)!r}" for name in ("region", *shown)]
        region = f"config.task.support: {', '.join(pairs)}"
        demand(not self.held_out.all(), f"{region}: holds out every cell of the {whole} grid")
        some = settings.region == "none" or self.held_out.any()
        hint = "(for full coverage say config.task.support.region='none')"
        demand(some, f"{region}: holds out no cell of the {whole} grid {hint}")
        seen = (~self.held_out).sum()
        enough = settings.sampling != "without_replacement" or points <= seen
        hint = "so at most that many can be drawn without replacement"
        demand(enough, f"{source}: only {seen} cells are seen, {hint}")
        if not shows_every_value:
            self.check_marginals(self.points[~self.held_out], f"{region}: ")

    def check_marginals(self, points, where: str = ""):
        """Raises ConfigError if the task demands marginals and some value of a factor occurs in
        none of the points (n, F), NumPy: the seen cells, or one seed's training set."""
        if not self.settings.require_marginals:
            return
        there, places = ~np.isnan(points), self.places(points)
        for k, axis in enumerate(self.axes):
            missing = sorted({*range(axis.count)} - {*places[there[:, k], k].tolist()})
            hint = "and config.task.support.require_marginals=True demands every value"
            demand(not missing, f"{where}no training point has {axis.name} in {missing}, {hint}")
