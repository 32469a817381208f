"""PyTorch's decoder: the layers of `models.conv.ConvDecoder`, and its training."""

from collections.abc import Callable, Sequence

import jax
import numpy as np

from compgen_jax.config import Config
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

from .contenders import in_turn, torch_device, torch_training


def step_flops(config: Config) -> float:
    """Multiply-adds of a direct convolution counted as two, three times the forward pass."""
    grid, width, depth = config.task.grid, config.model.width, config.model.depth
    render = (grid // 4) ** 2 * sum(config.task.make().parts) * width
    doubling = sum((grid // 4 * 2**k) ** 2 * 16 * width**2 for k in (0, 1))
    keeping = (depth - 2) * grid**2 * 9 * width**2 + grid**2 * 9 * width
    return 3 * 2.0 * config.training.batch_size * (render + doubling + keeping)


def torch_decoders(singles: Sequence[Config], steps: int) -> Callable:
    """A function that trains them one after another by PyTorch."""
    return in_turn([_torch_steps(single, steps) for single in singles])


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
    """The network for codes (B, length, 1, 1)."""
    import torch

    grid, width, depth = config.task.grid, config.model.width, config.model.depth
    layers = [torch.nn.ConvTranspose2d(length, width, grid // 4), torch.nn.ReLU()]
    for index in range(depth):
        kernel, stride = (4, 2) if index < 2 else (3, 1)
        layers += [torch.nn.ConvTranspose2d(width, width, kernel, stride, padding=1)]
        layers += [torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.ConvTranspose2d(width, 1, 3, 1, padding=1))
