"""Training steps of decoders against PyTorch eager, on this machine.

The contenders take the same step: a batch gathered from the training set, forward, backward and
AdamW, with the same parameters count; ours inside the compiled loop that training uses.
"""

from collections.abc import Callable, Sequence
from itertools import cycle, islice

import jax
import numpy as np
import pandas

from compgen_jax.config import Config, changed
from compgen_jax.models.convolution import choose_lowering
from compgen_jax.presets import PRESETS
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

from .contenders import compare, in_turn, torch_device, torch_training

SEEDS = 4
STEPS = {"bump_cnn": 5, "bump_cnn_quick": 40}  # in one turn
GRIDS = (16,), (16, 20, 24)
ON_CPU, ON_ACCELERATOR = (8,), (8, 64, 256)  # trials of a program
ALL_STEPS = 320  # of all trials of a program together, in one turn


def train(rounds: int, steps=STEPS, side: int = 0) -> pandas.DataFrame:
    """The paper's and the quick decoder, a few seeds of each."""
    lowerings = choose_lowering(backend=jax.default_backend(), trials=1), "gemm"
    tables = []
    for name, count in steps.items():
        singles = [changed(PRESETS[name], {"training.seeds": (seed,)}) for seed in range(SEEDS)]
        tables.append(compare(name, singles, count, rounds, TORCH_DECODERS, lowerings, side))
    return pandas.concat(tables)


def sweep(rounds: int, config=PRESETS["data_scaling_quick"], groups=GRIDS, side=0):
    """Many trials in one program, as sweeps train them. A trial of a padded group of grids is
    compared with trials of these grids that are not padded, and only the work of its own grid
    counts as FLOPs."""
    tables, backend = [], jax.default_backend()
    for grids in groups:
        for count in ON_CPU if backend == "cpu" else ON_ACCELERATOR:
            count = -(-count // len(grids)) * len(grids)  # of every grid as many
            heading = f"{config.model.width} channels, grid {'/'.join(map(str, grids))}"
            singles, steps = singles_of(config, grids, count), max(2, ALL_STEPS // count)
            lowerings = [choose_lowering(backend=backend, trials=count)]
            tables.append(compare(heading, singles, steps, rounds, TORCH_DECODERS, lowerings, side))
    return pandas.concat(tables)


def singles_of(sweep: Config, grids: Sequence[int], count: int) -> list[Config]:
    """Single runs at the grids in turn, each of a seed of its own, with as many images as the
    largest grid is searched with."""
    values = {"sweep.axes": (), "sweep.search.field": "", "task.images": 0}
    values |= {"task.support.samples": 2 * max(grids) ** 2}
    return [
        changed(sweep, values | {"task.grid": grid, "training.seeds": (seed,)})
        for seed, grid in enumerate(islice(cycle(grids), count))
    ]


def torch_decoders(singles: Sequence[Config], steps: int) -> Callable:
    """A function that trains them one after another by PyTorch."""
    return in_turn([_torch_steps(single, steps) for single in singles])


TORCH_DECODERS = {"one after another": torch_decoders}


def _torch_steps(config: Config, steps: int) -> Callable:
    import torch

    device, training = torch_device(), config.training
    torch.manual_seed(0)
    task, key = config.task.make(), jax.random.key(0)
    examples = tasks.examples_at(task, key, loop.dataset_of(task, key).points)
    codes, targets = (torch.tensor(np.array(a)).to(device) for a in examples)
    model = torch_decoder(config, codes.shape[1]).to(device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
    )

    def loss():
        chosen = torch.randint(len(codes), (training.batch_size,), device=device)
        images = model(codes[chosen][:, :, None, None])[:, 0]
        return torch.nn.functional.mse_loss(images, targets[chosen])

    return torch_training(config, loss, optimizer, steps)


def torch_decoder(config: Config, length: int):
    """The layers of `models.conv.ConvDecoder`, for codes (B, length, 1, 1)."""
    import torch

    grid, width, depth = config.task.grid, config.model.width, config.model.depth
    layers = [torch.nn.ConvTranspose2d(length, width, grid // 4), torch.nn.ReLU()]
    for index in range(depth):
        kernel, stride = (4, 2) if index < 2 else (3, 1)
        layers += [torch.nn.ConvTranspose2d(width, width, kernel, stride, padding=1)]
        layers += [torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.ConvTranspose2d(width, 1, 3, 1, padding=1))
