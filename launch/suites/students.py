"""Training steps of the quick hyperteacher's students, as trials of one program, against PyTorch
eager in the arrangements of its users.

The contenders take the same step: 64 sets of modules from a table of a trial's own, their weights
and 8 inputs each, drawn afresh; the teacher's answers; an MLP's forward and backward pass; AdamW,
which decays matrices alone, at a cosine rate. Trials differ in seed and in number of seen sets.
"""

import math
from collections.abc import Callable, Sequence
from itertools import cycle, islice, pairwise

import jax
import numpy as np
import pandas

from compgen_jax.cli import cores
from compgen_jax.config import Config
from compgen_jax.presets import PRESETS
from compgen_jax.sweeps import plan
from compgen_jax.tasks import module_supports, modules
from compgen_jax.training import loop

from .contenders import compare, in_turn, torch_device, torch_training

TRIALS = 4  # at least, on a CPU: as many to every core
ON_ACCELERATOR = 64
STEPS = 100  # of every trial in one turn
WIDTHS = (256, 64)


def run(rounds: int, sweep=PRESETS["hyperteacher_quick"], widths=WIDTHS, steps=STEPS, side=0):
    """The rows of `timing.compare` for students of every width."""
    peers, count = {"one after another": torch_in_turn, "batched": torch_batched}, ON_ACCELERATOR
    if jax.default_backend() == "cpu":
        count = -(-TRIALS // cores()) * cores()
    tables = []
    for width in widths:
        singles = trials_of(sweep, width, count)
        heading = f"students of width {width}"
        tables.append(compare(heading, singles, steps, rounds, peers, side=side))
    return pandas.concat(tables)


def trials_of(sweep: Config, width: int, count: int) -> list[Config]:
    """The first `count` single runs of the sweep with students of this width, all supports of a
    seed before the next seed; from the first again where these are not enough."""
    trials = sorted(plan.first_trials(sweep), key=lambda trial: (trial.seed, trial.axes))
    singles = [plan.config_of(sweep, trial) for trial in trials]
    return list(islice(cycle(s for s in singles if s.model.width == width), count))


def torch_in_turn(singles: Sequence[Config], steps: int) -> Callable:
    return in_turn([torch_batched([single], steps) for single in singles])


def torch_batched(singles: Sequence[Config], steps: int) -> Callable:
    """A function that takes `steps` training steps of all trials at once, as products of their
    stacked matrices, and blocks until they are done. AdamW is fused: PyTorch's fastest."""
    import torch

    device, single, count = torch_device(), singles[0], len(singles)
    task, model, training = single.task, single.model, single.training
    sizes = [task.modules + task.inputs, *[model.width] * model.depth, task.outputs]
    if device == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, as jax multiplies there
    torch.manual_seed(training.seeds[0])
    new = lambda *shape: torch.randn(count, *shape, device=device) / math.sqrt(shape[0])
    matrices = [new(*pair).requires_grad_() for pair in pairwise(sizes)]
    biases = [torch.zeros_like(each[:, :1]).requires_grad_() for each in matrices]
    draw = torch_tasks(singles, device)

    def layer(values, k):
        if count == 1:  # without the cost of a batch
            return torch.addmm(biases[k][0], values[0], matrices[k][0])[None]
        return torch.baddbmm(biases[k], values, matrices[k])

    def loss():
        inputs, answers = draw()
        values = inputs.view(count, -1, sizes[0])
        for k in range(len(matrices) - 1):
            values = layer(values, k).relu()
        values = layer(values, -1)
        # the sum of the trials' errors: none has a gradient in another's weights
        return count * torch.nn.functional.mse_loss(values, answers.view(values.shape))

    decayed = {"params": matrices, "weight_decay": training.weight_decay}
    kept = {"params": biases, "weight_decay": 0.0}
    optimizer = torch.optim.AdamW([decayed, kept], lr=training.learning_rate, fused=True)
    total = loop.total_steps(single, task.make())
    cosine = lambda step: 0.5 * (1 + math.cos(math.pi * step / total))
    return torch_training(single, loss, optimizer, steps, cosine)


def torch_tasks(singles: Sequence[Config], device: str) -> Callable:
    """A function that draws a batch of tasks for every trial. It returns what its student is given
    (trials x tasks x samples, codes beside inputs) and the targets (as many, outputs).

    Sets are of the trial's own support, weights discrete, and the code is the latent itself.
    """
    import torch

    settings, n_tasks = singles[0].task, singles[0].training.batch_size
    supports = []
    for task in (single.task for single in singles):
        seen = module_supports.split(task.support, task.modules, task.most)
        supports.append(module_supports.all_sets(task.modules, task.most)[seen].astype(np.float32))
    lengths = np.array([len(support) for support in supports])
    sets = torch.tensor(np.concatenate(supports), device=device)
    starts = torch.tensor(np.cumsum(lengths) - lengths, device=device).repeat_interleave(n_tasks)
    counts = torch.tensor(lengths, device=device).repeat_interleave(n_tasks)
    levels = torch.tensor(modules.LEVELS, device=device)
    answer, n = torch_teacher(settings, device), len(counts)

    def draw():
        active = sets[starts + (torch.rand(n, device=device) * counts).long()]
        latents = active * levels[torch.randint(len(levels), active.shape, device=device)]
        inputs = 2 * torch.rand(n, settings.samples, settings.inputs, device=device) - 1
        codes = latents[:, None].expand(-1, settings.samples, -1)
        given, targets = torch.cat([codes, inputs], dim=2), answer(latents, inputs)
        return given.flatten(0, 1), targets.flatten(0, 1)

    return draw


def torch_teacher(settings: modules.Modules, device: str) -> Callable:
    """The answers (N, S, O) of `modules.respond` to latents (N, M) and inputs (N, S, I)."""
    import torch

    teacher, share = modules.draw_teacher(settings), 1 / math.sqrt(settings.most)
    new = lambda array: torch.tensor(np.ascontiguousarray(array), device=device)
    weights_MxIH = new(teacher.weights.swapaxes(1, 2).reshape(settings.modules, -1) * share)
    biases_MxH, readout_HxO = new(teacher.biases * share), new(teacher.readout.T)

    def answer(latents, inputs):
        weights = (latents @ weights_MxIH).view(-1, settings.inputs, settings.hidden)
        biases = (latents @ biases_MxH)[:, None]
        return torch.baddbmm(biases, inputs, weights).relu() @ readout_HxO

    return answer
