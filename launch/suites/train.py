"""Training steps of the paper's and of the quick decoder against PyTorch eager, on this machine.

The contenders take the same step: a batch of 32 gathered from the training set, forward, backward
and AdamW, with the same parameters count; ours inside the compiled loop that training uses.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config
from compgen_jax.decoders.convolution import choose_lowering
from compgen_jax.tasks.dataset import training_set
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials
from launch.config import PRESETS
from launch.suites import timing

TRIALS = 4


def run(rounds: int) -> list[dict]:
    """Rows of the benchmark: milliseconds per step and model, ratio to PyTorch, GEMM share."""
    return [
        row
        for preset, steps in (("bump_cnn", 5), ("bump_cnn_quick", 40))
        for row in _compare(PRESETS[preset], steps, rounds)
    ]


def _compare(config: Config, steps: int, rounds: int) -> list[dict]:
    config = replace(config, execution=replace(config.execution, chunk_steps=steps))
    fast = choose_lowering(backend=jax.default_backend(), trials=1)
    contenders = {
        "PyTorch eager": (_torch_steps(config, steps), 1),
        fast: (_our_steps(config, steps, fast, 1, 1), 1),
        f"{fast}, {TRIALS} seeds in turn": (_our_steps(config, steps, fast, TRIALS, 1), TRIALS),
        f"{fast}, {TRIALS} seeds vmapped": (_our_steps(config, steps, fast, TRIALS, 0), TRIALS),
        "gemm": (_our_steps(config, steps, "gemm", 1, 1), 1),
    }
    if (devices := jax.local_devices()[:TRIALS])[1:]:
        name = f"{fast}, {TRIALS} seeds on {len(devices)} devices"
        contenders[name] = (_our_steps(config, steps, fast, TRIALS, 1, devices), TRIALS)
    product, product_flops = timing.gemm()
    seconds = timing.interleave(
        {"GEMM": product} | {name: run for name, (run, _) in contenders.items()}, rounds
    )
    peak = product_flops / seconds["GEMM"]
    peer = seconds["PyTorch eager"] / steps
    rows = []
    for name, (_, models) in contenders.items():
        per_step = seconds[name] / steps / models
        rows.append({
            "preset": config.name,
            "contender": name,
            "ms per step and model": 1e3 * per_step,
            "over PyTorch": per_step / peer,
            "share of GEMM peak": step_flops(config) / per_step / peak,
            "GEMM peak GFLOP/s": peak / 1e9,
        })  # fmt: skip
    return rows


def step_flops(config: Config) -> float:
    """Multiply-adds of a direct convolution counted as two, three times the forward pass."""
    grid, width, depth = config.task.grid, config.decoder.width, config.decoder.depth
    code_length = loop.code_length(grid, config.task.code)
    render = (grid // 4) ** 2 * code_length * width
    doubling = sum((grid // 4 * 2**k) ** 2 * 16 * width**2 for k in (0, 1))
    keeping = (depth - 2) * grid**2 * 9 * width**2 + grid**2 * 9 * width
    return 3 * 2.0 * config.training.batch_size * (render + doubling + keeping)


def _our_steps(config, steps: int, lowering: str, trials: int, per_device: int, devices=None):
    """By default on one device, which on a CPU has all cores at its disposal."""
    devices = devices or jax.local_devices()[:1]
    trainer = loop.make_trainer(config, lowering)
    keys = jax.vmap(jax.random.key)(jnp.arange(trials))
    state = over_trials(lambda _, key: trainer.init(key), 1, devices)((), keys)
    advance = over_trials(
        lambda n_steps, trial: trainer.advance(
            loop.make_trial(config, trial[0]), trial[1], n_steps
        ),
        per_device or trials,
        devices,
    )
    return lambda: jax.block_until_ready(advance(steps, (keys, state)))


def _torch_steps(config: Config, steps: int):
    import torch

    torch.manual_seed(0)
    data = training_set(jax.random.key(0), config.task)
    codes, targets = (torch.tensor(np.asarray(a)) for a in (data.codes, data.targets))
    grid, width, depth = config.task.grid, config.decoder.width, config.decoder.depth
    layers = [torch.nn.ConvTranspose2d(codes.shape[1], width, grid // 4), torch.nn.ReLU()]
    for index in range(depth):
        kernel, stride = (4, 2) if index < 2 else (3, 1)
        layers += [
            torch.nn.ConvTranspose2d(width, width, kernel, stride, padding=1),
            torch.nn.ReLU(),
        ]
    model = torch.nn.Sequential(*layers, torch.nn.ConvTranspose2d(width, 1, 3, 1, padding=1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)

    def run():
        for _ in range(steps):
            chosen = torch.randint(len(codes), (config.training.batch_size,))
            images = model(codes[chosen][:, :, None, None])[:, 0]
            loss = torch.nn.functional.mse_loss(images, targets[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run
