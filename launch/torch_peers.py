"""What `launch.benchmark` compares with: decoders that PyTorch trains, eager."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import jax
import numpy as np

from compgen_jax.config import Config
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop


@cache
def decoders(singles: tuple[Config, ...], steps: int) -> Callable:
    """A function that trains single runs one after another, for so many steps each, and blocks
    until they are done. A step: a batch gathered from the training set, forward, backward and
    AdamW, with the layers of `models.conv.ConvDecoder`."""
    import torch

    on_gpu = jax.default_backend() == "gpu" and torch.cuda.is_available()
    device, trained = "cuda" if on_gpu else "cpu", []
    for config in singles:
        settings, width = config.training, config.model.width
        torch.manual_seed(0)
        task, key = config.task.make(), jax.random.key(0)
        examples = tasks.examples_at(task, key, loop.dataset_of(task, key).points)
        codes, targets = (torch.tensor(np.array(values)).to(device) for values in examples)
        layers = [torch.nn.ConvTranspose2d(codes.shape[1], width, config.task.grid // 4)]
        for index in range(config.model.depth):
            kernel, stride = (4, 2) if index < 2 else (3, 1)
            convolution = torch.nn.ConvTranspose2d(width, width, kernel, stride, padding=1)
            layers += [torch.nn.ReLU(), convolution]
        last = torch.nn.ConvTranspose2d(width, 1, 3, 1, padding=1)
        model = torch.nn.Sequential(*layers, torch.nn.ReLU(), last).to(device)
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        trained.append((codes, targets, settings.batch_size, model, optimizer))

    def run():
        for codes, targets, batch_size, model, optimizer in trained:
            for _ in range(steps):
                batch = torch.randint(len(codes), (batch_size,), device=device)
                images = model(codes[batch][:, :, None, None])[:, 0]
                loss = torch.nn.functional.mse_loss(images, targets[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()

    return run


def in_processes(shares: list[tuple], steps: int) -> Callable:
    """The same in a process of one thread for every share. The processes end with this one."""
    spawn = multiprocessing.get_context("spawn")
    pools = [ProcessPoolExecutor(1, spawn) for _ in shares]

    def run():
        pairs = zip(pools, shares, strict=True)
        for turn in [pool.submit(take_turn, share, steps) for pool, share in pairs]:
            turn.result()

    return run


def take_turn(share: tuple[Config, ...], steps: int):
    os.environ["OMP_NUM_THREADS"] = "1"  # PyTorch reads it when it is imported
    decoders(share, steps)()
