"""The criteria on maps whose answer is known, as tables of docs/criteria.md.

    python -m figures.criteria

Writes the tables into docs/criteria.md; nothing is trained.
"""

from pathlib import Path

import numpy as np

from compgen_jax.calibration import Calibration, decided, wrongly_decided
from compgen_jax.metrics import function, scaling, text
from compgen_jax.old_claims import LEAST_CELLS
from compgen_jax.papers.forced_rendering import calibration, known_maps
from compgen_jax.papers.forced_rendering.claims import CLAIMS
from compgen_jax.papers.league import claims as league
from compgen_jax.papers.league import runs as networks
from compgen_jax.papers.scale import calibration as scale_calibration
from compgen_jax.papers.scale.known_students import MOST
from compgen_jax.runs import directory, results
from compgen_jax.statistics import half_width, spread_of_median
from compgen_jax.tasks import module_supports
from compgen_jax.tasks.module_supports import ModuleSupportConfig

PAGE = Path(__file__).parents[1] / "docs" / "criteria.md"
TABLES = "<!-- tables: python -m figures.criteria -->", "<!-- end of tables -->"
LAYER_TABLES = "<!-- layers: python -m figures.criteria -->", "<!-- end of layers -->"
METRIC_TABLES = "<!-- metrics: python -m figures.criteria -->", "<!-- end of metrics -->"
SCALE_TABLES = "<!-- scale: python -m figures.criteria -->", "<!-- end of scale -->"
TURN_TABLES = "<!-- turns: python -m figures.criteria -->", "<!-- end of turns -->"
LEAGUE_TABLES = "<!-- league: python -m figures.criteria -->", "<!-- end of league -->"
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


def split(support: str, modules: int, seen: int):
    """All sets of modules (T, M) and which of them a support shows (T,), both bool."""
    settings = ModuleSupportConfig(name=support, seen=seen)
    sets = module_supports.all_sets(modules, MOST)
    return sets, module_supports.split(settings, modules, MOST)


def scale_tables() -> dict:
    """{claim: {name: (as stated, stricter)}} of the second paper's."""
    return scale_calibration.decided(split)


def tables(calibrations: tuple[Calibration, ...]) -> list[dict]:
    """{claim: {known answer: (as stated, stricter)}} of each, of the first paper's."""
    return [decided(one, CLAIMS) for one in calibrations]


def metric_tables(grids=(16, 28)) -> dict:
    """{N: {metric: {map: number}}} of what each known map draws around the hole."""
    found, region = {}, "donut"
    for grid in grids:
        task = calibration.bumps(grid, region).make()
        empty = results.scorer(task)(np.zeros((1, grid**2, grid, grid)))
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


def with_tables(page: str, marks, calibrations, found: list[dict], described: bool = True) -> str:
    """The page with what each known answer is, unless its text says so, and these tables, between
    two marks."""
    does = calibrations[0].does if described else {}
    lines = [f"- **{name}**: {what}." for name, what in does.items()]
    for one, table in zip(calibrations, found, strict=True):
        lines += _table(f"{one.title}:", table, one.does)
    return text.between(page, marks, lines if described else lines[1:])


def with_scale_tables(page: str, found: dict) -> str:
    """The page with what is known, what each of it does and these tables, between two marks."""
    lines = []
    for kind, (names, cases, does) in scale_calibration.KNOWN.items():
        table = {case.claim: found[case.claim] for case in cases}
        lines += ["", f"{kind}:", "", *(f"- **{name}**: {does[name]}." for name in names)]
        lines += _table("", table, names)[2:]
    return text.between(page, SCALE_TABLES, lines[1:])


def with_league_tables(page: str, found: dict) -> str:
    """The page with what holds in each league, and this table, between their two marks."""
    return _with_described(page, LEAGUE_TABLES, league.KNOWN, found)


def _with_described(page: str, marks, does: dict, tables: dict) -> str:
    """The page with what everything known does, by name, and tables of it, by title."""
    lines = [line for title, table in tables.items() for line in _table(f"{title}:", table, does)]
    return text.between(page, marks, [*(f"- **{name}**: {what}." for name, what in does.items()),
                                      *lines])  # fmt: skip


def league_tables() -> dict:
    """{of which families and tasks: {claim: {known league: (as stated, stricter)}}}"""
    played = [network.role for network in networks.networks("quick")
              if network.config.task.make().differentiable]  # fmt: skip
    families, groups = [match.family for match in played], [match.group for match in played]
    return {
        "Eight families on eight tasks": league.known_verdicts(),
        "The league's own families and tasks": league.known_verdicts(families, groups),
    }


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
    page, wrong = PAGE.read_text(), []
    for marks, calibrations in (
        (TABLES, calibration.OF_MAPS),
        (LAYER_TABLES, calibration.OF_NETWORKS),
        (TURN_TABLES, calibration.OF_TURNS),
    ):
        found = tables(calibrations)
        page = with_tables(page, marks, calibrations, found, described=marks != TABLES)
        for one, table in zip(calibrations, found, strict=True):
            wrong += [f"{one.title}: {line}" for line in wrongly_decided(table, one.cases)]
    of_scale, of_leagues = scale_tables(), league_tables()
    wrong += scale_calibration.wrongly_decided(of_scale)
    wrong += [line for table in of_leagues.values() for line in league.wrongly_decided(table)]
    page = with_league_tables(with_scale_tables(page, of_scale), of_leagues)
    directory.write_text(PAGE, with_coverage(with_metrics(page, metric_tables()), coverage()))
    print("\n".join(wrong) or f"every criterion decides rightly; wrote {PAGE.name}")


if __name__ == "__main__":
    main()
