"""Runs that stand for those of a figure: their answers are known, or they train in a second."""

import functools
import itertools

import jax
import numpy as np

from compgen_jax import grids
from compgen_jax.calibration import KnownRun
from compgen_jax.config import Config, SearchConfig, SweepConfig, TrainingConfig, changed
from compgen_jax.metrics import circle
from compgen_jax.models.mlp import MLP
from compgen_jax.models.pixelwise import Pixelwise
from compgen_jax.models.transformer import Transformer
from compgen_jax.papers.forced_rendering import known_maps
from compgen_jax.papers.forced_rendering import runs as papers
from compgen_jax.papers.forced_rendering.scaling import COPIES, GRID, IMAGES, REGION
from compgen_jax.papers.real_factors import calibrations
from compgen_jax.papers.real_factors.runs import MONTERO
from compgen_jax.papers.scale import neurons
from compgen_jax.papers.scale import runs as scale_runs
from compgen_jax.runs import directory, experiment, results
from compgen_jax.statistics import mean_with_interval
from compgen_jax.sweeps.sweep import FinishedSweep
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, SizeConfig, StripesConfig
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.inverse import Inverse
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.training import task_group
from figures.real_factors import figures as sprites
from tests.figures import committed
from tests.papers.test_scaling import GRIDS, SIDE, make_row, make_table

TINY = {"task.grid": 8, "model.depth": 2, "model.width": 4, "training.epochs": 1,
        "training.steps": 8, "training.evaluate_every": 4, "training.seeds": (0, 1)}  # fmt: skip
HOLES = {"donut": {"task.support.low": 3, "task.support.high": 5},
         "corner": {"task.support.low": 4}}  # fmt: skip
GAP = SupportConfig(region="donut", low=2, high=5)  # on a grid of 8
MEAN = {"id.mean_answer_mse": 4.0, "ood.mean_answer_mse": 2.0, "ood.nearest_seen_mse": 1.0,
        "ood.best_constant_mse": 3.0}  # fmt: skip


def summary_of(numbers: dict) -> dict:
    return {"mean": {name: {"value": v, "ci95": [v, v]} for name, v in numbers.items()}}


def scored(task, images):
    with jax.numpy_rank_promotion("allow"):
        return results.scorer(task)(images)


@functools.cache
def trained(name: str, root):
    """A tiny network of a run's kind."""
    config = papers.runs("quick")[name]
    tiny = changed(config, TINY | HOLES[config.task.support.region])
    if name.endswith("cnn"):  # convolutions take longer to compile
        tiny = changed(tiny, {"model.name": "mlp"})
    experiment.train(tiny, root / name, progress=False)
    return results.load(root / name)


def mapped(network: str, interpolator: str, code: str = "bump"):
    """A run whose images, and whose interpolator's, are those of known maps."""
    settings = Bump(grid=8, code=CodeConfig(name=code),
                    support=SupportConfig(region="donut", low=3, high=5))  # fmt: skip
    task = settings.make()
    empty = scored(task, np.zeros((1, 64, 8, 8), np.float32))
    world = known_maps.world_of(empty.truths, empty.held_out)
    drawn, by_kernel = (scored(task, known_maps.jittered(known_maps.images(name, world), 2))
                        for name in (network, interpolator))  # fmt: skip
    return KnownRun(
        (0, 1), drawn, config=Config(task=settings), task=task, interpolator=by_kernel,
        error_at=lambda points: np.full((2, len(points)), 0.01),
    )  # fmt: skip


def two_objects():
    """Of three seeds the first draws both bumps, the others the second alone at held-out cells."""
    config = Config(task=Bump(grid=12, bumps=2, support=SupportConfig(low=3, high=8)))
    task = config.task.make()
    points = tasks.points(task)
    truths, held_out = results.truths_at(task, points), np.asarray(task.held_out(points))
    y, x = np.mgrid[:12, :12]
    firsts = np.stack([np.exp(-((x - a) ** 2 + (y - b) ** 2) / 2) for a, b in points])
    seconds = np.where(held_out[:, None, None], truths - firsts, truths)
    cells = scored(task, np.stack([truths, seconds, 0.99 * seconds]))
    return {"two_objects": KnownRun((0, 1, 2), cells, config=config)}


def three_factors():
    """Three seeds that are right, but that in the box the size is the largest."""
    size, box = SizeConfig(values=5, smallest=0.8, largest=2.0, low=1, high=3), {"low": 3}
    box |= {"region": "donut", "high": 6}
    regions = {"": box, "_xy": box | {"of": ("x", "y")},
               "_random": {"region": "random", "share": 0.09}}  # fmt: skip
    layers, rng = ("layer_00", "layer_01", "layer_02", "output"), np.random.default_rng(0)
    runs = {}
    for name, region in regions.items():
        task = Bump(grid=10, size=size, support=SupportConfig(**region)).make()
        points = tasks.points(task)
        truths, held_out = results.truths_at(task, points), np.asarray(task.held_out(points))
        drawn = truths.copy()
        if not name:
            x, y, _ = grids.indices(tasks.sizes(task))[held_out].T
            drawn[held_out] = truths[400 + 10 * y + x]
        by_seed = [np.where(held_out[:, None, None], k * drawn, drawn) for k in (0.98, 1.0, 1.02)]
        numbers = {f"angle.{pair}.{at}": rng.uniform(0, 0.5, (3, 4))
                   for pair in ("x-y", "x-size", "y-size") for at in ("id", "ood")}  # fmt: skip
        numbers["volume.log10_ratio"] = rng.normal(0, 0.3, (3, 4))
        cells = scored(task, np.stack(by_seed))
        runs[f"three_factors{name}"] = KnownRun((0, 1, 2), cells, numbers, layer_names=layers)
    return runs


def turned(objects, of, mixes: bool):
    """A gap of 8 of 72 angles, right or cross-faded; 1.02 and 0.98 times that, as two seeds."""
    model = MLP(depth=3, width=8)
    settings = Rotation(side=16, angles=72, objects=objects, gap=GapConfig(of=of))
    task = settings.make()
    points = tasks.points(task)
    truths = results.truths_at(task, points)
    images = truths.copy()
    if mixes:
        (gap,) = circle.gaps(points, np.asarray(task.held_out(points)))
        images[gap.cells] = circle.cross_fade(*truths[list(gap.edges)], gap.place)
    given = tasks.examples_at(task, jax.random.key(0), points[:1]).input[0]
    module = model.make(task_group.shapes_of(task))
    params = jax.vmap(lambda key: module.init(key, given))(jax.random.split(jax.random.key(0), 2))
    cells = scored(task, np.stack([1.02 * images, 0.98 * images]))
    return KnownRun(
        (0, 1), cells, config=Config(task=settings, model=model), task=task, params=params
    )


def rotations():
    """In an order that is not the figure's."""
    return {"rotation_objects": turned((3, 4, 7), (3,), mixes=False),
            "rotation": turned((3,), (), mixes=True)}  # fmt: skip


def encoder(answer: str):
    """Both seeds err by 1 / 100 everywhere. The second one's answers are also two pixels too far to
    the right in held-out cells of y below 4."""
    task = Inverse(grid=8, support=GAP, answer=answer).make()
    points = tasks.points(task)
    truths = results.truths_at(task, points)
    wrong = np.asarray(task.held_out(points)) & (points[:, 1] < 4)
    moved = truths.copy()
    moved[wrong] = results.truths_at(task, points[wrong] + [2, 0])
    cells = results.scorer(task)(np.stack([truths, moved]) + 0.01)
    return KnownRun((0, 1), cells, summary=summary_of(MEAN))


def encoders():
    return {f"encoder_{answer}": encoder(answer) for answer in ("coordinates", "code")}


def decoder(name, model, lacks, **others):
    """A seed for each of `lacks`, the share by which all its bumps are too faint."""
    config = Config(name=name, task=Bump(grid=8, support=GAP), model=model)
    task = config.task.make()
    truths = results.truths_at(task, tasks.points(task))
    cells = results.scorer(task)(np.stack([truths * (1 - lack) for lack in lacks]))
    return KnownRun((0, 1), cells, config=config, **others)


def pixels():
    return {
        "transformer": decoder("transformer_quick", Transformer(depth=2), (0.5, 0.5)),
        "pixelwise_depth4": decoder("pixelwise_depth4_quick", Pixelwise(depth=4), (0.1, 0.001)),
        "pixelwise": decoder("pixelwise", Pixelwise(depth=2), (0.3, 0.3)),
    }


def sweep(rows=None, regions=("none", "corner")):
    """Bumps that need N^3 images, and stripes that need N, also around a corner."""
    rows = rows or make_table() + make_table({"stripes": (1, 2)}, region="corner")
    search = SearchConfig(field=IMAGES, start=(10,), scores=("rendered",), target=0.9)
    support = SupportConfig(side=0.5, require_marginals=False)
    axes = {GRID: GRIDS, COPIES: (0, 1), REGION: regions}
    config = Config(task=Bump(support=support, stripes=StripesConfig(order="shuffled")),
                    training=TrainingConfig(steps=10), sweep=SweepConfig(axes, search))  # fmt: skip
    return {"sweep": FinishedSweep(config, rows)}


def holdout_map(change=lambda row: row):
    """The error outside is grid / 1000, that on held-out cells the share, times 1 + 2 seed."""
    rows = []
    for grid, share, seed in itertools.product((8, 12), (0.2, 0.5), (0, 1)):
        row = make_row(grid=grid, region="donut", side=share, seed=seed)
        for where, error in (("ood", share), ("unseen", grid / 1000), ("seen", 1e-3)):
            row |= {f"{where}.blank_mse": 0.5, f"{where}.mse": 0.5 * error * (1 + 2 * seed)}
        rows.append(change(row))
    support = SupportConfig(region="donut", side=0.2, samples=700, sampling="real")
    config = Config(task=Bump(support=support), training=TrainingConfig(steps=10),
                    sweep=SweepConfig({GRID: (8, 12), SIDE: (0.2, 0.5)}))  # fmt: skip
    return {"sweep": FinishedSweep(config, rows)}


@functools.cache
def students() -> dict:
    """The second paper's runs: committed summaries, and made-up numbers where there is none."""
    scores = ("r2", "gain", "mse", "variance", "bilinear_mse", "sum_of_singles_mse",
              "nearest_seen_mse", "step_accuracy", "majority_miss", "nearest_seen_miss",
              "task_accuracy", "episode_accuracy")  # fmt: skip
    metrics = [f"decode.{name}" for name in ("ood_r2", "untrained.ood_r2", "shuffled.ood_r2")]
    outputs = ("decode.recovery", "decode.active_recovery")
    configs, rng = scale_runs.runs("quick"), np.random.default_rng(0)
    runs = committed.finished(configs, metrics, outputs)
    for name, config in configs.items():
        seeds = {str(seed): {f"{region}.{score}": rng.uniform(0.5, 1)
                             for region in ("id", "ood") for score in scores}
                 for seed in config.training.seeds}  # fmt: skip
        columns = next(iter(seeds.values()))
        mean = {key: mean_with_interval([one[key] for one in seeds.values()]) for key in columns}
        summary = {"seeds": seeds, "mean": mean, "task": {"sets": 92, "code_r2": 1.0}}
        layers = {metric: rng.random((len(seeds), 4)) for metric in metrics}
        found = {metric: rng.random(len(seeds)) for metric in outputs}
        runs.setdefault(name, KnownRun(config.training.seeds, None, layers, found, config=config,
                                       summary=summary))  # fmt: skip
    return runs


def written_down() -> list[dict]:
    """The table of the second paper's networks that are written down, by a law."""
    return [{"modules": modules, "knots": knots, "neurons": 10 * knots + modules, "seed": seed,
             "max_error": 1e-6, "rmse": knots**-2, "r2": 1 - knots**-4}
            for modules in (4, 8, 32) for knots in (4, 8, 16)
            for seed in neurons.Constructed.seeds]  # fmt: skip


@functools.cache
def of_sprites() -> dict:
    """A decoder that draws what is asked, and one that draws the nearest ID image."""
    return calibrations.known_runs(calibrations.sprites("range"), ("truth", "nearest"))


def hold_outs():
    runs = dict.fromkeys(sprites.HELD_OUT, of_sprites()["truth"])
    encoder = calibrations.encoders()["no posX"]
    return runs | {"sprites_range": of_sprites()["nearest"], "sprites_encoder": encoder}


def remedies():
    runs = dict.fromkeys(sprites.REMEDIES, of_sprites()["nearest"])
    return runs | {"sprites_slice": of_sprites()["truth"]}


def pairs(name: str = "follows"):
    return {run.config.name: run for run in calibrations.known_pairs()[name]}


def montero():
    seeds = {seed: {"id.excess_nll": 50.0 + seed, "ood.excess_nll": 140.0} for seed in range(4)}
    summary = summary_of({"id.excess_nll": 50.0, "ood.excess_nll": 140.0}) | {"seeds": seeds}
    return {f"sprites_{name}": KnownRun((), summary=summary) for name in MONTERO}


def begun(root):
    """A network whose error is 1e-2 and 1e-4 (two seeds) at epoch 25, and a hundredth at 50."""
    directory.write_metrics(root, [
        {"epoch": epoch, "seed": seed, "id.mse": 0.02 * error, "ood.mse": 0.5 * error,
         "id.blank_mse": 0.2, "ood.blank_mse": 0.5, "id.exact_accuracy": 1.0,
         "ood.exact_accuracy": 1.0 - seed / 2}
        for epoch, errors in {25: (1e-2, 1e-4), 50: (1e-4, 1e-6)}.items()
        for seed, error in enumerate(errors)
    ])  # fmt: skip
    run = decoder("pixelwise_begun", Pixelwise(depth=2), (0.1, 0.2), path=root)
    return {"pixelwise_begun": run}
