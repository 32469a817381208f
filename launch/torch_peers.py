"""What `launch.benchmark` compares with: PyTorch, eager. A peer takes single runs and a number of
steps, and returns a function that trains them for so many steps and blocks until they are done.

The students' step: sets of modules from a table of a trial's own, their weights and inputs, drawn
afresh; the teacher's answers; an MLP's forward and backward pass; AdamW, which decays matrices
alone, at a cosine rate.
"""

import math
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise

import jax
import numpy as np

from compgen_jax.config import Config
from compgen_jax.tasks import module_supports, modules
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop


def torch_device() -> str:
    """jax's kind of device, where PyTorch has one as well; else 'cpu'."""
    import torch

    return "cuda" if jax.default_backend() == "gpu" and torch.cuda.is_available() else "cpu"


def training(config: Config, loss: Callable, optimizer, steps: int, rate_of=None) -> Callable:
    """A function that goes `steps` steps down `loss()`. The share of the learning rate at a step is
    `rate_of(step)`; by default it is constant."""
    import torch

    step_count = 0

    def run():
        nonlocal step_count
        for _ in range(steps):
            for group in optimizer.param_groups if rate_of else ():
                group["lr"] = rate_of(step_count) * config.training.learning_rate
            value = loss()
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            step_count += 1
        if torch_device() == "cuda":
            torch.cuda.synchronize()

    return run


def in_turn(runs: Sequence[Callable]) -> Callable:
    def run():
        for run_one in runs:
            run_one()

    return run


def in_processes(peer: Callable, shares: Sequence, steps: int) -> Callable:
    """A function in which a process of one thread for every share runs `peer(share, steps)`. The
    processes end with this one."""
    spawn = multiprocessing.get_context("spawn")
    pools = [ProcessPoolExecutor(1, spawn, begin, (peer, share, steps)) for share in shares]

    def run():
        for turn in [pool.submit(take_turn) for pool in pools]:
            turn.result()

    return run


_training_here = []  # of a process: what it runs at each turn


def begin(peer: Callable, share, steps: int):
    os.environ["OMP_NUM_THREADS"] = "1"  # PyTorch reads it when `peer` imports it
    _training_here.append(peer(share, steps))


def take_turn():
    _training_here[0]()


# --- decoders ----------------------------------------------------------------------------------


def decoders(singles: Sequence[Config], steps: int) -> Callable:
    """One after another: a batch gathered from the training set, forward, backward and AdamW, with
    the layers of `models.conv.ConvDecoder`."""
    return in_turn([_decoder_steps(single, steps) for single in singles])


def _decoder_steps(config: Config, steps: int) -> Callable:
    import torch

    device, settings = torch_device(), config.training
    torch.manual_seed(0)
    task, key = config.task.make(), jax.random.key(0)
    examples = tasks.examples_at(task, key, loop.dataset_of(task, key).points)
    codes, targets = (torch.tensor(np.array(values)).to(device) for values in examples)
    width, depth = config.model.width, config.model.depth
    layers = [torch.nn.ConvTranspose2d(codes.shape[1], width, config.task.grid // 4)]
    for index in range(depth):
        kernel, stride = (4, 2) if index < 2 else (3, 1)
        convolution = torch.nn.ConvTranspose2d(width, width, kernel, stride, padding=1)
        layers += [torch.nn.ReLU(), convolution]
    last = torch.nn.ConvTranspose2d(width, 1, 3, 1, padding=1)
    model = torch.nn.Sequential(*layers, torch.nn.ReLU(), last).to(device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )

    def loss():
        batch = torch.randint(len(codes), (settings.batch_size,), device=device)
        images = model(codes[batch][:, :, None, None])[:, 0]
        return torch.nn.functional.mse_loss(images, targets[batch])

    return training(config, loss, optimizer, steps)


# --- students ----------------------------------------------------------------------------------


def students_in_turn(singles: Sequence[Config], steps: int) -> Callable:
    return in_turn([students([single], steps) for single in singles])


def students(singles: Sequence[Config], steps: int) -> Callable:
    """All at once, as products of their stacked matrices. AdamW is fused: PyTorch's fastest."""
    import torch

    device, single, count = torch_device(), singles[0], len(singles)
    task, model, settings = single.task, single.model, single.training
    sizes = [task.modules + task.inputs, *[model.width] * model.depth, task.outputs]
    if device == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, as jax multiplies there
    torch.manual_seed(settings.seeds[0])
    matrices = [
        (torch.randn(count, *pair, device=device) / math.sqrt(pair[0])).requires_grad_()
        for pair in pairwise(sizes)
    ]
    biases = [torch.zeros_like(matrix[:, :1]).requires_grad_() for matrix in matrices]
    draw = _students_batches(singles, device)

    def loss():
        inputs, answers = draw()
        values = inputs.view(count, -1, sizes[0])
        for layer, (matrix, bias) in enumerate(zip(matrices, biases, strict=True)):
            values = values.relu() if layer else values
            if count == 1:  # without the cost of a batch
                values = torch.addmm(bias[0], values[0], matrix[0])[None]
            else:
                values = torch.baddbmm(bias, values, matrix)
        # the sum of the trials' errors: none has a gradient in another's weights
        return count * torch.nn.functional.mse_loss(values, answers.view(values.shape))

    decayed = {"params": matrices, "weight_decay": settings.weight_decay}
    undecayed = {"params": biases, "weight_decay": 0.0}
    optimizer = torch.optim.AdamW([decayed, undecayed], lr=settings.learning_rate, fused=True)
    total = loop.total_steps(single, task.make())

    def cosine(step):
        return 0.5 * (1 + math.cos(math.pi * step / total))

    return training(single, loss, optimizer, steps, cosine)


def _students_batches(singles: Sequence[Config], device: str) -> Callable:
    """A function that draws a batch of tasks for every trial: what its student is given (trials x
    tasks x samples, codes beside inputs) and the targets (as many, outputs).

    Sets are of the trial's own support, weights discrete, and the code is the latent itself.
    """
    import torch

    task, n_tasks = singles[0].task, singles[0].training.batch_size
    supports = []
    for single in singles:
        in_support = module_supports.split(single.task.support, task.modules, task.most)
        every_set = module_supports.all_sets(task.modules, task.most)
        supports.append(every_set[in_support].astype(np.float32))
    lengths = np.array([len(support) for support in supports])
    sets = torch.tensor(np.concatenate(supports), device=device)
    starts = torch.tensor(np.cumsum(lengths) - lengths, device=device).repeat_interleave(n_tasks)
    counts = torch.tensor(lengths, device=device).repeat_interleave(n_tasks)
    levels = torch.tensor(modules.LEVELS, device=device)

    # the teacher, as `modules.respond` has it
    teacher, share = modules.draw_teacher(task), 1 / math.sqrt(task.most)
    weights_MxIH = teacher.weights.swapaxes(1, 2).reshape(task.modules, -1) * share
    arrays = weights_MxIH, teacher.biases * share, teacher.readout.T
    weights_MxIH, biases_MxH, readout_HxO = (
        torch.tensor(np.ascontiguousarray(array), device=device) for array in arrays
    )

    def draw():
        active = sets[starts + (torch.rand(len(counts), device=device) * counts).long()]
        latents = active * levels[torch.randint(len(levels), active.shape, device=device)]
        inputs = 2 * torch.rand(len(counts), task.samples, task.inputs, device=device) - 1
        codes = latents[:, None].expand(-1, task.samples, -1)
        weights = (latents @ weights_MxIH).view(-1, task.inputs, task.hidden)
        hidden = torch.baddbmm((latents @ biases_MxH)[:, None], inputs, weights).relu()
        return torch.cat([codes, inputs], dim=2).flatten(0, 1), (hidden @ readout_HxO).flatten(0, 1)

    return draw
