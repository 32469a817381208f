"""Training steps of a decoder of 64 x 64 images from a file, against PyTorch and its DataLoader.

The contenders take the same step: 64 images, drawn at random from a file of dSprites' layout;
forward and backward pass of Montero's kim decoder; AdamW. Ours looks the images up within the
compiled step. PyTorch's DataLoader, of 0 or 2 workers, gathers a whole batch with one index, and
pins it for a GPU. The images are noise: no time depends on them.

A small table is a constant of our program; a large one is asked by a callback (`tasks.table`).
"""

import importlib.util
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.models.upsampling import LAYOUTS, Upsampling
from compgen_jax.tasks import table_files
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.scene import CodesConfig
from compgen_jax.tasks.table import ImageTable
from compgen_jax.training import loop

from . import timing
from .contenders import program, torch_device, torch_training
from .timing import PEER, Contender

# how many of dSprites' values: 13 MB, and 151 MB, which is no constant on a GPU either
TABLES = {"small": (1, 3, 2, 2, 16, 16), "large": (1, 3, 6, 2, 32, 32)}
SINGLE, LOOKUP, FACTORS = "one seed", "one seed, lookup alone", 5
# workers of the DataLoader, and the order of the channels in memory
LOADERS = [(0, "contiguous_format"), (0, "channels_last"), (2, "contiguous_format")]


def run(rounds: int, sizes=TABLES, steps: int = 20, side: int = 0) -> list[dict]:
    """The rows of `timing.compare` for each table, with the share of our step that is lookup."""
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for name, counts in sizes.items():
            path = write(Path(directory) / f"{name}.npz", counts)
            config = Config(
                task=ImageTable(path=str(path), code=CodesConfig(name="value"), loss="bernoulli"),
                model=Upsampling(layout="kim"),
                training=TrainingConfig(batch_size=64, steps=10**6, weight_decay=0.0, seeds=(0,)),
            )
            flops = step_flops(config)
            lookup = Contender(LOOKUP, 1, steps, 0.0, lookups(config, steps))
            contenders = [program(SINGLE, [config], steps, flops), lookup]
            for workers, order in LOADERS if importlib.util.find_spec("torch") else ():
                peer = torch_steps(config, steps, workers, order)
                title = f"{PEER} eager, {workers} workers, {order}"
                contenders.append(Contender(title, 1, steps, flops, peer))
            heading = {"table": f"{name}, {path.stat().st_size / 1e6:.0f} MB"}
            found = timing.compare(heading, contenders, SINGLE, rounds, side or timing.gemm_side())
            step, lookup, *_ = (row["ms per step and trial"] for row in found)
            rows += [row | {"lookup, share of our step": lookup / step} for row in found]
    return rows


def write(path: Path, counts) -> Path:
    """A file of dSprites' layout with the first so many values of each of its factors."""
    pairs = zip(table_files.DSPRITES, counts, strict=True)
    each = [np.asarray(factor.values)[:count] for factor, count in pairs]
    values = np.stack(np.meshgrid(*each, indexing="ij"), axis=-1).reshape(-1, len(each))
    images = np.random.default_rng(0).integers(0, 2, (len(values), 64, 64), np.uint8)
    np.savez(path, imgs=images, latents_values=values)
    return path


def _widths(config: Config) -> tuple:
    """Sizes of the dense layers, the input first, and of the maps, the image last."""
    units, channels = LAYOUTS[config.model.layout]
    return (FACTORS, *units, 16 * channels[0]), (*channels, 1)


def step_flops(config: Config) -> float:
    """Multiply-adds counted as two, three times the forward pass: 16 for each pixel of a map and
    each pair of channels."""
    dense, channels = _widths(config)
    convolved = sum(16 * (4 * 2**k) ** 2 * a * b for k, (a, b) in enumerate(pairwise(channels)))
    return 6.0 * config.training.batch_size * (sum(a * b for a, b in pairwise(dense)) + convolved)


def lookups(config: Config, steps: int) -> Callable:
    """A function that draws so many batches and looks their images up, without a model."""
    task, key = config.task.make(), jax.random.key(0)

    @jax.jit
    def look(dataset):
        def one(step, total):
            points, _ = task.next_batch(key, step, dataset, config.training.batch_size)
            return total + jnp.sum(tasks.examples_at(task, key, points).target)

        return jax.lax.fori_loop(0, steps, one, 0.0)

    dataset = loop.dataset_of(task, key)
    return lambda: look(dataset).block_until_ready()


def torch_steps(config: Config, steps: int, workers: int, order: str) -> Callable:
    """A function that takes so many steps of PyTorch and blocks."""
    import torch
    from torch.utils import data

    device, training = torch_device(), config.training
    with np.load(config.task.path) as arrays:
        parts = arrays["imgs"], np.float32(arrays["latents_values"][:, 1:])
    table = data.TensorDataset(*map(torch.from_numpy, parts))
    drawn = data.RandomSampler(table, replacement=True, num_samples=10**9)
    batches = data.BatchSampler(drawn, training.batch_size, drop_last=True)
    how = {"pin_memory": device == "cuda", "num_workers": workers}
    how |= {"sampler": batches, "multiprocessing_context": "spawn" if workers else None}
    loaded = iter(data.DataLoader(table, None, **how))
    model = torch_decoder(config).to(device, memory_format=getattr(torch, order))
    rates = {"lr": training.learning_rate, "weight_decay": training.weight_decay}
    optimizer = torch.optim.AdamW(model.parameters(), **rates)
    entropy = torch.nn.BCEWithLogitsLoss(reduction="sum")

    def loss():
        images, values = (part.to(device, non_blocking=True) for part in next(loaded))
        return entropy(model(values)[:, 0], images.float()) / training.batch_size

    return torch_training(config, loss, optimizer, steps)


def torch_decoder(config: Config):
    """The layers of `models.upsampling.UpsamplingDecoder`, for values (B, 5)."""
    from torch import nn

    dense, channels = _widths(config)
    layers = [layer for a, b in pairwise(dense) for layer in (nn.Linear(a, b), nn.ReLU())]
    layers.append(nn.Unflatten(1, (channels[0], 4, 4)))
    for a, b in pairwise(channels):
        layers += [nn.ConvTranspose2d(a, b, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
