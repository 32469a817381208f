"""The slow tables of docs/findings/criteria.md: the share that known maps render, metrics on known
maps, and the simulated coverage of intervals. Nothing is trained.

First all claims are tried on all known answers."""

import math

import numpy as np

from compgen_jax.catalog import PAPERS
from compgen_jax.claims import LEAST_CELLS, tried, wrongly_decided
from compgen_jax.config import ConfigError
from compgen_jax.metrics import function, scaling, text
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.papers.forced_rendering import known
from compgen_jax.statistics import half_width, share_with_interval, spread_of_median
from compgen_jax.tasks.bump import Bump, ImageConfig
from compgen_jax.tasks.supports import SupportConfig

from .tables import table

GRIDS_OF_MAPS = 16, 28  # of the quick and of the paper's presets
# (N, sigma, region, its bounds): of the presets, and of the settings that are varied around them
RENDERED_AT = (
    (12, 1.0, "donut", (2, 9)),
    (16, 1.0, "donut", (3, 12)),
    (16, 1.0, "corner", (7,)),
    (16, 1.5, "donut", (3, 12)),
    (20, 1.0, "donut", (4, 15)),
    (28, 1.0, "donut", (6, 22)),
    (28, 1.0, "donut", (10, 18)),
    (28, 1.0, "corner", (12,)),
    (32, 1.5, "donut", (7, 25)),
    (32, 1.5, "corner", (12,)),
)
SHOWN_MAPS = "bump", "plus", "plus - 1", "lookup", "superposer", "sum", "blank"
METRICS = {
    "Schmidt rank of the Gram matrix": "schmidt.rank",
    "exp(entropy) of the Schmidt spectrum": "schmidt.exp_entropy",
    "interaction share of variance": "anova.interaction",
    "the same over the hole": "anova.interaction_ood",
    "agreement with the binary kernel, hole x seen": "cosine.cross_binary",
    "with the true images', hole x seen": "cosine.cross_true",
    "with the binary beyond the true, hole x seen": "cosine.cross_partial",
    "probe R², hole": "probe.ood_r2",
    "kernel in terms of one factor (Eq 33)": "explained.hoeffding",
    "kernel in its first product (Eq 35)": "explained.schmidt",
    "rank of 99% of variance": "spectrum.energy_rank",
    "participation ratio": "spectrum.participation_ratio",
    "units: product share": "tuning.product",
    "units tuned to bumps": "tuning.bump",
    "units tuned to stripes": "tuning.stripe",
}
SAMPLES = 100_000
# values over seeds: how a sample is drawn, and its mean
LAWS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "log-normal, sd .5 of the log": (
        lambda rng, shape: np.exp(rng.normal(0, 0.5, shape)), np.exp(0.125)
    ),
    "log-normal, sd .3 of the log": (
        lambda rng, shape: np.exp(rng.normal(0, 0.3, shape)), np.exp(0.045)
    ),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "share of 81 cells, means .3 to .7": (
        lambda rng, shape: rng.binomial(81, rng.uniform(0.3, 0.7, shape)) / 81, 0.5
    ),
    "share of 81 cells, means .9 to 1": (
        lambda rng, shape: rng.binomial(81, rng.uniform(0.9, 1.0, shape)) / 81, 0.95
    ),
    "share of 81 cells, mostly 1": (
        lambda rng, shape: rng.binomial(81, np.where(rng.random(shape) < 0.7, 1, 0.95)) / 81, 0.985
    ),
    "all or none, all in .8 of seeds": (lambda rng, shape: 1.0 * (rng.random(shape) < 0.8), 0.8),
}  # fmt: skip
MEDIANS = {"normal": 0.0, "log-normal, sd .5 of the log": 1.0, "exponential": np.log(2)}
CENSORED = {"all thresholds reached": np.inf, "a fifth of them not reached": 1.2e4}
GRIDS, CURVES = np.array([16, 24, 32, 48]), 2000
CELLS = {name: 81 for name in LAWS if name.startswith("share")}
SEEDS = (3, 4, 6, 8, 12, 20)


def parts() -> dict[str, list[str]]:
    """Lines by the name of their place on the page; they take minutes to compute. Raises
    ConfigError, naming known answers that claims do not decide as their table says."""
    for paper in PAPERS:
        for matrix in paper.matrices:
            if wrong := wrongly_decided(tried(matrix, paper.claims), matrix):
                raise ConfigError("; ".join(wrong))
    return {
        "rendered": rendered_lines(),
        "metrics": metric_lines(),
        "coverage": coverage_lines(),
    }


def rendered_lines() -> list[str]:
    """The share of held-out cells that each known map renders without jitter, at every place in
    use."""
    rows = {}
    for grid, sigma, region, bounds in RENDERED_AT:
        support = SupportConfig(region=region, **dict(zip(("low", "high"), bounds, strict=False)))
        config = Bump(grid=grid, image=ImageConfig(sigma=sigma), support=support)
        score, empty = known.scorer_of(config)
        world = known.world_of(empty.truths, empty.held_out)
        title = f"N = {grid}, sigma {sigma:g}, {region} {' to '.join(map(str, bounds))}"
        row = rows[title] = {}
        for name in known.MAPS:
            cells = score(known.images(name, world)[None])
            share = float(mean_score(cells, "rendered", cells.held_out)[0])
            row[name] = text.number(round(share, 3))
    return _table(rows, tuple(known.MAPS), "share rendered")


def metric_lines() -> list[str]:
    """Each metric of what each known map draws around the hole, at N = 16 and 28."""
    rows = {title: dict.fromkeys(SHOWN_MAPS, "") for title in METRICS}
    for grid in GRIDS_OF_MAPS:
        _, empty = known.scorer_of(known.bumps(grid, "donut"))
        world, axis = known.world_of(empty.truths, empty.held_out), np.arange(grid, dtype="float32")
        for name in SHOWN_MAPS:
            held_out, drawn = lambda _, empty=empty: empty.held_out, known.render(name, world)
            numbers = function.measure(drawn, [axis, axis], held_out, empty.truths, False)[""]
            for title, metric in METRICS.items():
                number = text.number(round(float(numbers[metric]), 2) + 0.0)  # no minus zero
                rows[title][name] += f"{' / ' if rows[title][name] else ''}{number}"
    return _table(rows, SHOWN_MAPS, "metric")


def _table(rows: dict, columns: tuple, corner: str) -> list[str]:
    body = [(name, *(row[one] for one in columns)) for name, row in rows.items()]
    return table((corner, *columns), body)


def coverage_lines() -> list[str]:
    """The share of samples whose 95% interval holds what is true of the law, by number of seeds: of
    means its mean, of medians its median, of exponents that of the thresholds."""
    found = {}
    for name, (draw, mean) in LAWS.items():
        rng = np.random.default_rng(0)
        least = LEAST_CELLS / CELLS[name] if name in CELLS else 0.0
        found[name] = [_covered(draw(rng, (SAMPLES, count)), mean, least) for count in SEEDS]
    counted = "number of seeds, exact binomial interval"
    found[counted] = [_count_covered(count, 0.8) for count in SEEDS]
    for name, median in MEDIANS.items():
        rng, draw = np.random.default_rng(0), LAWS[name][0]
        samples = [draw(rng, (SAMPLES, count)) for count in SEEDS]
        found[f"median: {name}"] = [_median_covered(values, median) for values in samples]
    for name, most in CENSORED.items():
        rng = np.random.default_rng(0)
        found[f"exponent: {name}"] = [_exponents_covered(rng, count, most) for count in SEEDS]
    head = ("values", *(f"{count} seeds" for count in SEEDS))
    return table(head, [(name, *map("{:.1%}".format, shares)) for name, shares in found.items()])


def _covered(values_RxT, mean, least) -> float:
    apart = np.abs(values_RxT.mean(axis=1) - mean)
    return float(np.mean(apart <= np.maximum(half_width(values_RxT), least) + 1e-12))


def _count_covered(count: int, rate: float) -> float:
    """Without simulation: the binomial chance of every number of seeds whose interval holds it."""
    held = 0.0
    for number in range(count + 1):
        low, high = share_with_interval(np.arange(count) < number)["ci95"]
        chance = math.comb(count, number) * rate**number * (1 - rate) ** (count - number)
        held += chance * (low <= rate <= high)
    return held


def _median_covered(values_RxT, median) -> float:
    half_R = spread_of_median(values_RxT.shape[1]) * half_width(values_RxT)
    return float(np.mean(np.abs(np.median(values_RxT, axis=1) - median) <= half_R))


def _exponents_covered(rng, count: int, most: float) -> float:
    """Of thresholds N^2 times a seed's and a cell's own factor, sd .3 of the log each, of which
    those above `most` are not reached."""
    held = 0
    for _ in range(CURVES):
        own = 0.3 * rng.normal(size=(count, 1)) + 0.3 * rng.normal(size=(count, len(GRIDS)))
        values = 5 * GRIDS**2 * np.exp(own)
        status = np.where(values > most, scaling.ABOVE, scaling.REACHED)
        curve = scaling.Curve("", 0.0, "", {}, GRIDS, np.arange(count), np.minimum(values, most),
                              status, np.ones_like(values))  # fmt: skip
        low, high = scaling.exponent(curve)["ci95"]
        held += low <= 2 <= high
    return held / CURVES
