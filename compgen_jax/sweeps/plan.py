"""Which trials a sweep is made of, and which single run each of them is."""

from compgen_jax.analysis import scaling
from compgen_jax.config import Config, SweepConfig, changed
from compgen_jax.sweeps import table
from compgen_jax.sweeps.table import Case, Table


def first_cases(config: Config) -> list[Case]:
    """Every combination of the sweep's lists, with its numbers of images, in order."""
    sweep, training = config.sweep, config.training
    return sorted(
        Case(grid, scheme, region, float(share), float(rate), float(decay), seed, n_data)
        for grid in sweep.grids
        for scheme in sweep.schemes
        for region in sweep.regions
        for share in (sweep.shares if region != "none" else (0.0,))
        for rate in sweep.learning_rates or (training.learning_rate,)
        for decay in sweep.weight_decays or (training.weight_decay,)
        for seed in training.seeds
        for n_data in _numbers_of_images(config, grid, scheme, region, share)
    )


def _numbers_of_images(config, grid: int, scheme: str, region: str, share: float) -> list[int]:
    sweep, stripes = config.sweep, 2 * grid * (scheme == "stripes")
    if sweep.data == "search":
        if stripes:
            return sorted({max(1, round(m * grid)) for m in sweep.images_per_value})
        return sorted({max(1, round(m * grid**2)) for m in sweep.images_per_cell})
    real = config.task.support.sampling == "real"
    seen = _seen_area(grid, region, share, real) if sweep.data == "area" else 1
    return [stripes + round(seen * config.task.support.samples)]


def _seen_area(grid: int, region: str, share: float, real: bool) -> float:
    """Share of the cells, or of the real points in [0, N-1]^2, outside the held-out square."""
    held_out = side(grid, share)
    if not real:
        return 1 - (held_out / grid) ** 2
    # half of the outermost cells lies beyond the square of real points
    extent = held_out - 0.5 if region == "corner" else held_out
    return 1 - (extent / (grid - 1)) ** 2


def side(grid: int, share: float) -> int:
    """Cells along the side of the held-out square."""
    return round(share * grid)


def refined_cases(config: Config, results: Table) -> list[Case]:
    """New cases around the crossings of every curve of a search, from results of the earlier ones,
    in order."""
    if config.sweep.data != "search":
        return []
    curves = {}
    for case in sorted(results):
        curves.setdefault(case._replace(n_data=0), []).append(case)
    found = set()
    for curve, cases in curves.items():
        numbers = [case.n_data for case in cases]
        for reading in searched(config, curve.region):
            column = table.MEASURES.index(f"{reading.where}.{reading.score}_accuracy")
            accuracies = [float(results[case][column]) for case in cases]
            chosen = scaling.refinement(
                numbers, accuracies, reading.target, config.sweep.refine_with
            )
            found |= {curve._replace(n_data=n_data) for n_data in chosen}
    return sorted(found)


def searched(config: Config, region: str) -> list[scaling.Reading]:
    """The readings whose crossings are searched with decoders trained around `region`."""
    places = ("unseen", "real") if region == "none" else ("ood",)
    return [
        scaling.Reading(region, where, score, config.sweep.target)
        for score in config.sweep.scores
        for where in places
    ]


def readings(config: Config, scores=scaling.SCORES) -> list[scaling.Reading]:
    """These scores' accuracies at the sweep's target, in each of the places that a region leaves
    to score. The table answers them all, most finely those that were searched."""
    places = {"none": ("unseen", "real")}
    return [
        scaling.Reading(region, where, score, config.sweep.target)
        for score in scores
        for region in config.sweep.regions
        for where in places.get(region, ("ood", "unseen", "real"))
    ]


def settings(cases, region: str) -> list[dict]:
    """The shares, learning rates and weight decays of a region's cases, in order."""
    fields = ("share", "learning_rate", "weight_decay")
    found = {tuple(getattr(case, f) for f in fields) for case in cases if case.region == region}
    return [dict(zip(fields, values, strict=True)) for values in sorted(found)]


def config_of(config: Config, case: Case) -> Config:
    """The single run that a case is: `launch.train` of it trains the same decoder."""
    grid, stripes = case.grid, 2 * case.grid * (case.scheme == "stripes")
    held_out = side(grid, case.share)
    low = (grid - held_out) // 2 if case.region == "donut" else grid - held_out
    values = {
        "name": f"{config.name}_{grid}_{case.scheme}_{case.region}_{case.n_data}",
        "task.grid": grid,
        "task.support.region": case.region,
        "task.support.low": low,
        "task.support.high": low + held_out - 1,
        "task.support.samples": max(0, case.n_data - stripes),
        "task.support.require_marginals": False,
        "task.stripes.copies": int(stripes > 0),
        "task.stripes.order": "shuffled" if stripes else "by_axis",
        "task.stripes.left_out": max(0, stripes - case.n_data),
        "training.learning_rate": case.learning_rate,
        "training.weight_decay": case.weight_decay,
        "training.seeds": (case.seed,),
    }
    return changed(config, values | {f"sweep.{k}": v for k, v in vars(SweepConfig()).items()})
