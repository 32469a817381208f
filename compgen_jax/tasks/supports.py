"""Which combinations of a grid's factors are seen: held-out regions and sampling (Figure 1a)."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.settings import choice, number
from compgen_jax.tasks import regions, sampling
from compgen_jax.tasks.task import Factor, nearest_values, refuse


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

    region: str = choice("donut", "donut", "corner", "random", "none")
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
    """A factor with `count` values, `step` apart, from `first` on. `low` and `high` are the numbers
    of the values that bound a held-out box; of a corner, `low`."""

    name: str
    count: int
    first: float
    step: float
    low: int
    high: int


class Support(regions.Cells):
    """The cells of evenly spaced factors, and what is drawn from those that are seen. `box` says
    {factor: (first, last)} of the values that bound a donut or a corner. Raises ConfigError for
    unknown factors."""

    def __init__(self, settings: SupportConfig, axes):
        self.settings, self.axes = settings, tuple(axes)
        counts, names = tuple(axis.count for axis in axes), [axis.name for axis in axes]
        unknown = not set(settings.of) <= set(names)
        refuse({f"support.of={settings.of}: must name some of {', '.join(names)}": unknown})
        values = [axis.first + axis.step * np.arange(axis.count) for axis in axes]
        factors = [Factor(n, v.astype(np.float32)) for n, v in zip(names, values, strict=True)]
        self.box = {}
        if settings.region in ("donut", "corner"):
            for axis in axes:
                last = axis.high if settings.region == "donut" else axis.count - 1
                if axis.name in (settings.of or names):
                    self.box[axis.name] = (axis.low, last)
        held_out = np.full(np.prod(counts), settings.region != "none")
        if settings.region == "random":
            held_out = regions.random_cells(held_out, settings.share, settings.seed)
        for name, index_B in zip(names, grids.indices(counts).T, strict=True):
            low, high = self.box.get(name, (0, np.inf))
            held_out &= (low <= index_B) & (index_B <= high)
        super().__init__(factors, held_out)

    def n_samples(self) -> int:
        if self.settings.sampling == "every_cell":
            return int((~self.held_out).sum())
        share = self.seen_share() if self.settings.in_proportion else 1
        return round(share * self.settings.samples)

    def seen_share(self) -> float:
        """Of the cells; of real points, of the volume."""
        region = self.settings.region
        if self.settings.sampling != "real" or region == "none":
            return 1 - self.held_out.mean()
        unknown = f"the share of real points in the region {region!r} is not known"
        refuse({f"support.in_proportion=True: {unknown}; say donut or corner": not self.box})
        held_out = 1.0
        for axis in self.axes:
            low, high = self.box.get(axis.name, (0, axis.count - 1))
            last = axis.count - 1  # half of an outermost cell lies beyond real points
            held_out *= (min(high + 0.5, last) - max(low - 0.5, 0)) / last
        return 1 - held_out

    def sample(self, key, n: int):
        """n training points of the seen region, (n, F) float32; see `SupportConfig`."""
        kind = self.settings.sampling
        if kind == "real":
            first = jnp.array([axis.first for axis in self.axes])
            extent = jnp.array([axis.step * (axis.count - 1.0) for axis in self.axes])
            region = {"first": first, "extent": extent, "rejected": self.is_held_out}
            draw = partial(sampling.by_rejection, **region)
            return jax.vmap(draw)(jax.random.split(key, n))
        seen = jnp.asarray(self.points[~self.held_out])
        if kind == "with_replacement":
            return seen[jax.random.randint(key, (n,), 0, len(seen))]
        return jax.random.permutation(key, seen)[:n] if kind == "without_replacement" else seen

    def check(self, points: int, shows_every_value: bool):
        """Raises ConfigError where the support cannot serve; with stripes, its `points` need not
        show every value."""
        region, seen = self.settings.region, int((~self.held_out).sum())
        grid = "x".join(map(str, self.sizes))
        refuse({
            f"support.region={region!r}: holds out every cell of the {grid} grid": not seen,
            f"support.region={region!r}: holds out no cell of the {grid} grid; say 'none'":
                region != "none" and not self.held_out.any(),
            f"support.samples: {points} points, but only {seen} cells are seen, and no more can be "
            "drawn without replacement":
                self.settings.sampling == "without_replacement" and points > seen,
        })  # fmt: skip
        if not shows_every_value:
            self.check_marginals(self.points[~self.held_out])

    def check_marginals(self, points):
        """Raises ConfigError if some value of a factor occurs in none of the points (n, F), NumPy,
        and must."""
        exists, indices = ~np.isnan(points), nearest_values(self.factors, points)
        for k, axis in enumerate(self.axes if self.settings.require_marginals else ()):
            missing = sorted({*range(axis.count)} - {*indices[exists[:, k], k].tolist()})
            refuse({
                f"support.require_marginals=True: no training point has {axis.name} in {missing}":
                    missing,
            })  # fmt: skip
