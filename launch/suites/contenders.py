"""What the suites time: training steps of ours and of PyTorch, and the work that is in them."""

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Sequence

import jax
import numpy as np

from compgen_jax.config import Config
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop


def step_flops(config: Config) -> float:
    """Multiply-adds of a direct convolution counted as two, three times the forward pass."""
    grid, width, depth = config.task.grid, config.model.width, config.model.depth
    render = (grid // 4) ** 2 * sum(config.task.make().parts) * width
    doubling = sum((grid // 4 * 2**k) ** 2 * 16 * width**2 for k in (0, 1))
    keeping = (depth - 2) * grid**2 * 9 * width**2 + grid**2 * 9 * width
    return 3 * 2.0 * config.training.batch_size * (render + doubling + keeping)


def torch_device() -> str:
    """jax's kind of device, where PyTorch has one as well; else 'cpu'."""
    import torch

    return "cuda" if jax.default_backend() == "gpu" and torch.cuda.is_available() else "cpu"


def torch_steps(config: Config, steps: int):
    """A function that takes `steps` training steps of PyTorch's eager decoder and blocks until
    they are done."""
    import torch

    device = torch_device()
    torch.manual_seed(0)
    task, key = config.task.make(), jax.random.key(0)
    examples = tasks.examples_at(task, key, loop.dataset_of(task, key).points)
    codes, targets = (torch.tensor(np.array(a)).to(device) for a in examples)
    model = _torch_decoder(config, codes.shape[1]).to(device)
    training = config.training
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
    )

    def run():
        for _ in range(steps):
            chosen = torch.randint(len(codes), (training.batch_size,), device=device)
            images = model(codes[chosen][:, :, None, None])[:, 0]
            loss = torch.nn.functional.mse_loss(images, targets[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return run


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def torch_processes(
    configs: Sequence, steps: int, count: int, of: Callable = torch_steps
) -> Callable:
    """A function in which `count` processes of one thread each take `steps` training steps of
    PyTorch's, by the functions `of(config, steps)`, every process of its share of the configs, one
    after another: what a user with several trials and as many cores would run."""
    return in_processes([configs[k::count] for k in range(count)], steps, of, _of_one_thread)


def in_processes(shares: Sequence, steps: int, of: Callable, first: Callable) -> Callable:
    """A function in which a process for every share takes `steps` steps, by the functions
    `of(each, steps)`, of each in its share, one after another. The processes begin by `first()`,
    and end with this one."""
    context, pipes = multiprocessing.get_context("spawn"), []
    for share in shares:
        ours, theirs = context.Pipe()
        arguments = theirs, list(share), steps, of, first
        context.Process(target=_serve, args=arguments, daemon=True).start()
        theirs.close()  # or its end would be waited for in vain
        pipes.append(ours)

    def run():
        for pipe in pipes:
            pipe.send("go")
        for pipe in pipes:
            pipe.recv()

    return run


def _serve(pipe, share, steps: int, of: Callable, first: Callable):
    first()
    runs = [of(each, steps) for each in share]
    with contextlib.suppress(EOFError):  # the other end is gone: so is the benchmark
        while pipe.recv():
            for run in runs:
                run()
            pipe.send("done")


def _of_one_thread():
    import torch

    torch.set_num_threads(1)


def _torch_decoder(config: Config, length: int):
    """The layers of `models.conv.ConvDecoder`, for codes (B, length, 1, 1)."""
    import torch

    grid, width, depth = config.task.grid, config.model.width, config.model.depth
    layers = [torch.nn.ConvTranspose2d(length, width, grid // 4), torch.nn.ReLU()]
    for index in range(depth):
        kernel, stride = (4, 2) if index < 2 else (3, 1)
        layers += [
            torch.nn.ConvTranspose2d(width, width, kernel, stride, padding=1),
            torch.nn.ReLU(),
        ]
    return torch.nn.Sequential(*layers, torch.nn.ConvTranspose2d(width, 1, 3, 1, padding=1))
