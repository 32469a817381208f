"""The criteria on maps whose answer is known, as tables of docs/criteria.md.

    python -m figures.criteria

Writes the tables into docs/criteria.md; nothing is trained.
"""

from functools import cache
from pathlib import Path

import numpy as np

from compgen_jax.calibration import decided, wrongly_decided
from compgen_jax.metrics import function, scaling, text
from compgen_jax.old_claims import LEAST_CELLS
from compgen_jax.papers.forced_rendering import calibration, known_maps, known_networks, known_turns
from compgen_jax.papers.league import calibration as league_calibration
from compgen_jax.papers.league.claims import CLAIMS as LEAGUE_CLAIMS
from compgen_jax.papers.scale import calibration as scale_calibration
from compgen_jax.papers.scale.claims import CLAIMS as SCALE_CLAIMS
from compgen_jax.runs import directory, results
from compgen_jax.statistics import half_width, spread_of_median
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.tasks.supports import SupportConfig

PAGE = Path(__file__).parents[1] / "docs" / "criteria.md"
# the holes and corners of the quick and of the paper's presets
SUPPORTS = {
    (16, "donut"): SupportConfig(region="donut", low=3, high=12),
    (16, "corner"): SupportConfig(region="corner", low=7),
    (28, "donut"): SupportConfig(region="donut", low=6, high=22),
    (28, "corner"): SupportConfig(region="corner", low=12),
}
TABLES = "<!-- tables: python -m figures.criteria -->", "<!-- end of tables -->"
LAYER_TABLES = "<!-- layers: python -m figures.criteria -->", "<!-- end of layers -->"
METRIC_TABLES = "<!-- metrics: python -m figures.criteria -->", "<!-- end of metrics -->"
SCALE_TABLES = "<!-- scale: python -m figures.criteria -->", "<!-- end of scale -->"
TURN_TABLES = "<!-- turns: python -m figures.criteria -->", "<!-- end of turns -->"
LEAGUE_TABLES = "<!-- league: python -m figures.criteria -->", "<!-- end of league -->"
TURNED = (4, 7)  # of which the first has the gap, and is the one object of the other task
ANGLES = 144  # a share of fewer cells has too wide an interval for K6
METRICS = {
    "Schmidt rank of the Gram matrix": "schmidt.rank",
    "exp(entropy) of the Schmidt spectrum": "schmidt.exp_entropy",
    "interaction share of variance": "anova.interaction",
    "the same over the hole": "anova.interaction_ood",
    "agreement with the binary kernel, hole": "cosine.binary",
    "with the true images', hole": "cosine.true",
    "with the binary beyond the true, hole": "cosine.partial",
    "with the binary kernel, hole x seen": "cosine.cross_binary",
    "with the true images', hole x seen": "cosine.cross_true",
    "with the binary beyond the true, hole x seen": "cosine.cross_partial",
    "probe R², hole": "probe.ood_r2",
    "in-sample probe R²": "probe.in_sample_r2",
    "kernel in terms of one factor (Eq 33)": "explained.hoeffding",
    "kernel in its first product (Eq 35)": "explained.schmidt",
    "rank of 99% of variance": "spectrum.energy_rank",
    "numerical rank": "spectrum.numerical_rank",
    "participation ratio": "spectrum.participation_ratio",
    "units: product share": "tuning.product",
    "units tuned to bumps": "tuning.bump",
    "units tuned to stripes": "tuning.stripe",
}
COVERAGE = "<!-- coverage: python -m figures.criteria -->", "<!-- end of coverage -->"
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
}  # fmt: skip
MEDIANS = {"normal": 0.0, "log-normal, sd .5 of the log": 1.0, "exponential": np.log(2)}
CENSORED = {"all thresholds reached": np.inf, "a fifth of them not reached": 1.2e4}
GRIDS, CURVES = np.array([16, 24, 32, 48]), 2000
CELLS = {name: 81 for name in LAWS if name.startswith("share")}
SEEDS = (3, 4, 5, 6, 10)
LETTERS = {"reproduced": "**R**", "contradicted": "c", "inconclusive": "–"}


@cache
def task_of(grid: int, region: str):
    return Bump(grid=grid, support=SUPPORTS[grid, region]).make()


@cache
def known(grid: int, region: str) -> calibration.Shown:
    return calibration.shown(results.scorer(task_of(grid, region)), grid, region)


def tables(grids=(16, 28)) -> dict:
    """{(N, region): {claim: {map: (as stated, stricter)}}}"""
    return {
        (grid, region): calibration.verdicts(known(grid, region), region)
        for grid, region in SUPPORTS
        if grid in grids
    }


def layer_tables() -> dict:
    """{N: {claim: {network: (as stated, stricter)}}}, around the hole."""
    return {
        grid: calibration.layer_verdicts(
            calibration.inspected(results.scorer(task_of(grid, region)), grid)
        )
        for grid, region in SUPPORTS
        if region == "donut"
    }


def scale_tables() -> dict:
    """{kind of known answers: {claim: {name: (as stated, stricter)}}} of the second paper's."""
    return {each.title: decided(each, SCALE_CLAIMS) for each in scale_calibration.CALIBRATIONS}


def turn_tables(sides=(16, 28)) -> dict:
    """{side: {claim: {map: (as stated, stricter)}}} of a gap of angles."""

    def turned(objects, side, **gap):
        task = Rotation(side=side, objects=objects, angles=ANGLES, gap=GapConfig(**gap)).make()
        return known_turns.shown(results.scorer(task), ANGLES * len(objects), side)

    return {
        side: known_turns.verdicts(turned(TURNED[:1], side), turned(TURNED, side, of=TURNED[:1]))
        for side in sides
    }


def metric_tables(grids=(16, 28)) -> dict:
    """{N: {metric: {map: number}}} of what each known map draws around the hole."""
    found, region = {}, "donut"
    for grid in grids:
        empty = results.scorer(task_of(grid, region))(np.zeros((1, grid**2, grid, grid)))
        world = known_maps.world_of(empty.truths, empty.held_out)
        axis, at = np.arange(grid, dtype=np.float32), lambda _, held_out=empty.held_out: held_out
        of_maps = {
            name: function.measure(
                known_maps.render(name, world), [axis, axis], at, empty.truths, False
            )[""]
            for name in known_maps.MAPS
        }
        found[grid] = {
            title: {name: numbers[metric] for name, numbers in of_maps.items()}
            for title, metric in METRICS.items()
        }
    return found


def coverage() -> dict:
    """{values: shares of samples whose 95% interval holds what is true of the law, by `SEEDS`}: of
    means its mean, of medians its median, of exponents that of the thresholds."""
    found = {}
    for name, (draw, mean) in LAWS.items():
        rng = np.random.default_rng(0)
        least = LEAST_CELLS / CELLS[name] if name in CELLS else 0.0
        found[name] = [_covered(draw(rng, (SAMPLES, count)), mean, least) for count in SEEDS]
    for name, median in MEDIANS.items():
        rng, draw = np.random.default_rng(0), LAWS[name][0]
        samples = [draw(rng, (SAMPLES, count)) for count in SEEDS]
        found[f"median: {name}"] = [_median_covered(values, median) for values in samples]
    for name, most in CENSORED.items():
        rng = np.random.default_rng(0)
        found[f"exponent: {name}"] = [_exponents_covered(rng, count, most) for count in SEEDS]
    return found


def _covered(values_RxT, mean, least) -> float:
    apart = np.abs(values_RxT.mean(axis=1) - mean)
    return float(np.mean(apart <= np.maximum(half_width(values_RxT), least) + 1e-12))


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


def with_coverage(page: str, found: dict) -> str:
    """The page with this table between its two marks."""
    lines = [f"| values | {' | '.join(f'{count} seeds' for count in SEEDS)} |",
             "|---" * (1 + len(SEEDS)) + "|"]  # fmt: skip
    for name, shares in found.items():
        lines.append(f"| {name} | {' | '.join(f'{share:.1%}' for share in shares)} |")
    return text.between(page, COVERAGE, lines)


def with_tables(page: str, found: dict) -> str:
    """The page with these tables between its two marks."""
    lines = [line for (grid, region), table in found.items()
             for line in _table(f"N = {grid}, {region}:", table, known_maps.MAPS)]  # fmt: skip
    return text.between(page, TABLES, lines[1:])


def with_layer_tables(page: str, found: dict) -> str:
    """The page with what each network does, and these tables, between their two marks."""
    does = {name: one.does for name, one in known_networks.NETWORKS.items()}
    of_grid = {f"N = {grid}, donut": table for grid, table in found.items()}
    return _with_described(page, LAYER_TABLES, does, of_grid)


def with_scale_tables(page: str, tables: dict) -> str:
    """The page with the known answers of each kind, and their tables, between two marks."""
    lines = []
    for each in scale_calibration.CALIBRATIONS:
        described = [f"- **{name}**: {does}." for name, does in each.does.items()]
        lines += ["", f"{each.title}:", "", *described]
        lines += _table("", tables[each.title], each.does)[2:]
    return text.between(page, SCALE_TABLES, lines[1:])


def with_turn_tables(page: str, found: dict) -> str:
    """The page with what each map draws in the gap, and these tables, between their two marks."""
    draws = {name: one.draws for name, one in known_turns.MAPS.items()}
    of_side = {f"N = {side}": table for side, table in found.items()}
    return _with_described(page, TURN_TABLES, draws, of_side)


def with_league_tables(page: str, found: dict) -> str:
    """The page with what holds in each league, and this table, between their two marks."""
    return _with_described(page, LEAGUE_TABLES, league_calibration.KNOWN, found)


def _with_described(page: str, marks, does: dict, tables: dict) -> str:
    """The page with what everything known does, by name, and tables of it, by title."""
    lines = [line for title, table in tables.items() for line in _table(f"{title}:", table, does)]
    return text.between(page, marks, [*(f"- **{name}**: {what}." for name, what in does.items()),
                                      *lines])  # fmt: skip


def league_tables() -> dict:
    """{of which families and tasks: {claim: {known league: (as stated, stricter)}}}"""
    return {each.title: decided(each, LEAGUE_CLAIMS) for each in league_calibration.CALIBRATIONS}


def with_metrics(page: str, found: dict) -> str:
    """The page with these tables, of N = 16 first, between its two marks."""
    show = lambda value: text.number(round(float(value), 2) + 0.0)  # no minus zero
    shown = known_maps.MAPS, "metric", show
    lines = [line for grid, table in found.items()
             for line in _table(f"N = {grid}, donut:", table, *shown)]  # fmt: skip
    return text.between(page, METRIC_TABLES, lines[1:])


def _both(verdicts) -> str:
    return " / ".join(LETTERS[verdict] for verdict in verdicts)


def _table(title: str, table: dict, names, what: str = "claim", show=_both) -> list[str]:
    lines = ["", title, "", f"| {what} | {' | '.join(names)} |", "|---" * (1 + len(names)) + "|"]
    for row_title, row in table.items():
        lines.append(f"| {row_title} | {' | '.join(show(row[name]) for name in names)} |")
    return lines


def main():
    found, of_layers, of_scale = tables(), layer_tables(), scale_tables()
    every = [*found.values(), *of_layers.values()]
    wrong = [line for table in every for line in calibration.wrongly_decided(table)]
    of_turns, of_leagues = turn_tables(), league_tables()
    for tables_of, calibrations in (
        (of_scale, scale_calibration.CALIBRATIONS),
        (of_leagues, league_calibration.CALIBRATIONS),
    ):
        wrong += [line for each in calibrations
                  for line in wrongly_decided(tables_of[each.title], each.cases)]  # fmt: skip
    wrong += [
        line
        for table in of_turns.values()
        for line in calibration.wrongly_decided(table, known_turns.CASES)
    ]
    page = with_layer_tables(with_tables(PAGE.read_text(), found), of_layers)
    page = with_scale_tables(with_turn_tables(page, of_turns), of_scale)
    page = with_league_tables(page, of_leagues)
    directory.write_text(PAGE, with_coverage(with_metrics(page, metric_tables()), coverage()))
    print("\n".join(wrong) or f"every criterion decides rightly; wrote {PAGE.name}")


if __name__ == "__main__":
    main()
