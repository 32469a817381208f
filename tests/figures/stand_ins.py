"""Runs that stand for those of a figure: their answers are known, or they train in a second."""

import contextlib
import functools
import itertools

import numpy as np
import pandas as pd

from compgen_jax.config import Config, ConfigError, SweepConfig, TrainingConfig, changed
from compgen_jax.metrics import reference_images
from compgen_jax.papers.forced_rendering.scaling_claims import GRID, REGION
from compgen_jax.papers.scale import constructions
from compgen_jax.papers.scale import scale_presets as scale_runs
from compgen_jax.runs import study
from compgen_jax.runs.run import Run
from compgen_jax.runs.sweeps import FinishedSweep
from compgen_jax.statistics import mean_with_interval
from compgen_jax.studies.real_factors.real_factors_presets import MONTERO
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.supports import SupportConfig
from figures import committed
from figures.real_factors import real_factors_figures as sprites
from tests.papers.criteria import known_maps, real_factors_answers
from tests.papers.test_scaling import make_table, scored, sweep_of

TINY = {"task.grid": 8, "task.support.low": 3, "task.support.high": 5, "model.apart": (3, 4),
        "model.depth": 2, "model.width": 4, "training.epochs": 1, "training.steps": 8,
        "training.evaluate_every": 4, "training.seeds": (0, 1)}  # fmt: skip
SIDE = "task.support.side"


def train(config, path) -> Run:
    """The finished run."""
    study.train(config, path, progress=False)
    return Run.load(path)


@functools.cache
def trained(name: str, root):
    """A tiny network of a run's kind."""
    config, values = committed.configs("quick")[name], TINY
    if config.model.name == "conv":  # which takes longer to compile
        values = TINY | {"model.name": "mlp"}
    for path, value in values.items():
        with contextlib.suppress(ConfigError):  # of a kind that has no such field
            config = changed(config, {path: value})
    return train(config, root / name)


def mapped(network: str, interpolator: str, code: str = "bump"):
    """A run whose images, and those of its kernels, are those of known maps."""
    settings = Bump(grid=8, code=CodeConfig(name=code),
                    support=SupportConfig(region="donut", low=3, high=5))  # fmt: skip
    score, empty = known_maps.scorer_of(settings)
    world = reference_images.world_of(empty.truths, empty.held_out)
    drawn, by_kernel = (score(known_maps.jittered(known_maps.images(name, world), 2))
                        for name in (network, interpolator))  # fmt: skip
    return Run.known(
        (0, 1), drawn, config=Config(task=settings), task=settings.make(), interpolator=by_kernel,
        wide_network=by_kernel,
        answers=lambda points: (None, None, {"mse": np.full((2, len(points)), 0.01)}),
    )  # fmt: skip


def sweep(rows=None, regions=("none", "corner")):
    """Bumps that need N^3 images, and stripes that need N, also around a corner."""
    rows = rows or make_table() + make_table({"stripes": (1, 2)}, **{REGION: "corner"})
    return {"sweep": sweep_of(rows, regions)}


def holdout_map(change=lambda row: row):
    """The error outside is grid / 1000, that on held-out cells the share, times 1 + 2 seed."""
    rows = []
    for grid, share, seed in itertools.product((8, 12), (0.2, 0.5), (0, 1)):
        row = scored(1.0, grid, 10, seed=seed, **{REGION: "donut", SIDE: share})
        for where, error in (("ood", share), ("unseen", grid / 1000), ("seen", 1e-3)):
            row |= {f"{where}.blank_mse": 0.5, f"{where}.mse": 0.5 * error * (1 + 2 * seed)}
        rows.append(change(row))
    support = SupportConfig(region="donut", side=0.2, samples=700, sampling="real")
    config = Config(task=Bump(support=support), training=TrainingConfig(steps=10),
                    sweep=SweepConfig({GRID: (8, 12), SIDE: (0.2, 0.5)}))  # fmt: skip
    return {"sweep": FinishedSweep(config, rows)}


@functools.cache
def students() -> dict:
    """The second paper's runs; their scores, and metrics of four layers and of outputs, are
    made up."""
    scores = ("r2", "gain", "interpolator_gain", "variance", "bilinear_mse", "sum_of_singles_mse",
              "step_accuracy", "majority_miss", "nearest_seen_miss", "task_accuracy")  # fmt: skip
    names = [f"{region}.{score}" for region in ("id", "ood") for score in scores]
    rng, runs = np.random.default_rng(0), {}
    for name, config in scale_runs.runs("quick").items():
        seeds = config.training.seeds
        drawn = rng.uniform(0.3, 1, (len(seeds), len(names)))
        table = pd.DataFrame(drawn, columns=names)
        mean = {key: mean_with_interval(values) for key, values in table.items()}
        task = {"sets": 92, "code_r2": 0.5}
        summary = {"seeds": table.T.to_dict(), "mean": mean, "task": task}
        layers = {f"decode.{metric}": rng.random((len(seeds), 4))
                  for metric in ("ood_r2", "untrained.ood_r2")}  # fmt: skip
        outputs = {f"decode.{metric}": rng.random(len(seeds))
                   for metric in ("recovery", "active_recovery")}  # fmt: skip
        runs[name] = Run.known(seeds, None, layers, outputs, config=config, summary=summary)
    return runs


def written_down() -> list[dict]:
    """The table of the second paper's networks that are written down, by a law."""
    return [{"modules": modules, "knots": knots, "neurons": 10 * knots + modules, "seed": seed,
             "max_error": 1e-6, "rmse": knots**-2, "r2": 1 - knots**-4}
            for modules in (4, 8, 32) for knots in (4, 8, 16)
            for seed in constructions.Constructed.seeds]  # fmt: skip


def hold_outs(names=tuple(sprites.SHARES), other="sprites_range", draw=("truth", "nearest")):
    """Decoders that draw the target, and one that draws the nearest ID image."""
    decoder, odd = (real_factors_answers.decoder("range", name) for name in draw)
    return dict.fromkeys(names, decoder) | {other: odd}


def remedies():
    return hold_outs(sprites.REMEDIES, "sprites_slice", ("nearest", "truth"))


def pairs(name: str = "follows"):
    return {run.config.name: run for run in real_factors_answers.pairs(name)["pairs"]}


def montero():
    mean = {f"{region}.excess_nll": {"value": nll, "ci95": [nll, nll]}
            for region, nll in (("id", 50.0), ("ood", 140.0))}  # fmt: skip
    return {f"sprites_{name}": Run.known((), summary={"mean": mean}) for name in MONTERO}
