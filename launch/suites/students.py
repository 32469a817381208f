"""Training steps of the quick hyperteacher's students, as trials of one program, against PyTorch
eager in the arrangements of its users.

The contenders take the same step: 64 sets of modules from a table of a trial's own, their weights
and 8 inputs each, drawn afresh; the teacher's answers; an MLP's forward and backward pass; AdamW,
which decays matrices alone, at a cosine rate. Trials differ in seed and in number of seen sets.

A trial that has one core, and the machine, to itself (`ALONE`) shows the ideal: as many times that
rate as there are cores.
"""

import math
import os
from collections.abc import Callable, Sequence
from itertools import cycle, islice, pairwise

import jax
import numpy as np

from compgen_jax.config import Config
from compgen_jax.papers.presets import PRESETS
from compgen_jax.sweeps import plan
from compgen_jax.tasks import module_supports, modules
from compgen_jax.training import loop

from . import contenders, timing
from .contenders import cores, in_turn, program, torch_arrangements, torch_device, torch_training
from .timing import Contender

TRIALS = 4  # at least, on a CPU: as many to every core
COUNTS = (1, 8, 64)  # on an accelerator
STEPS = 100  # of every trial in one turn
WIDTHS = (256, 64)
ALONE = "a trial, one core alone"


def run(
    rounds: int, sweep: Config = PRESETS["hyperteacher_quick"], widths=WIDTHS, steps=STEPS, side=0
) -> list[dict]:
    """The rows of `timing.compare` for students of every width."""
    rows = []
    for width in widths:
        on_cpu = jax.default_backend() == "cpu"
        count = -(-TRIALS // cores()) * cores() if on_cpu else max(COUNTS)
        singles = trials_of(sweep, width, count)
        ours = programs(singles, steps)  # compiled before other processes share the cores
        heading = {"student": f"width {width}, depth {singles[0].model.depth}"}
        both = [*torch_students(singles, steps), *ours]
        rows += timing.compare(heading, both, ours[0].name, rounds, side or timing.gemm_side())
    return rows


def trials_of(sweep: Config, width: int, count: int) -> list[Config]:
    """The first `count` single runs of the sweep with students of this width, all supports of a
    seed before the next seed; from the first again where these are not enough."""
    trials = sorted(plan.first_trials(sweep), key=lambda trial: (trial.seed, trial.axes))
    singles = [plan.config_of(sweep, trial) for trial in trials]
    return list(islice(cycle(s for s in singles if s.model.width == width), count))


def step_flops(config: Config) -> float:
    """Those of the matrix products in a training step, multiply-adds counted as two."""
    return student_flops(config) + teacher_flops(config)


def student_flops(config: Config) -> float:
    """Three products for every layer (answers, gradients of weights and of inputs), two for the
    first, whose inputs need no gradient. The code is multiplied once per task, as all of a task's
    inputs share it; PyTorch's students multiply it beside each input."""
    task, width, depth = config.task, config.model.width, config.model.depth
    n_tasks = config.training.batch_size
    n_inputs = n_tasks * task.samples
    first = (n_tasks * task.modules + n_inputs * task.inputs) * width
    others = n_inputs * ((depth - 1) * width**2 + width * task.outputs)
    return 2.0 * (2 * first + 3 * others)


def teacher_flops(config: Config) -> float:
    """For every task its weights and biases, sums over the modules, and its answers; no gradient
    is taken of them."""
    task = config.task
    generated = task.modules * task.hidden * (task.inputs + 1)
    answered = task.samples * task.hidden * (task.inputs + task.outputs)
    return 2.0 * config.training.batch_size * (generated + answered)


# --- ours ------------------------------------------------------------------------------------


def programs(singles: Sequence[Config], steps: int) -> list[Contender]:
    """Programs of as many trials as there are singles, and of fewer; the first has one trial."""
    count, devices, flops = len(singles), jax.local_devices(), step_flops(singles[0])
    if jax.default_backend() != "cpu":
        return [program(f"{n} vmapped", singles[:n], steps, flops, n) for n in COUNTS if n <= count]
    found = [
        program("a trial, all cores", singles[:1], steps, flops),
        program(f"{count} trials in turn, all cores", singles, steps, flops),
        program(f"{TRIALS} vmapped", singles[:TRIALS], steps, flops, TRIALS),
    ]
    if len(devices := devices[:count]) > 1:
        name = f"{count} trials, one at a time on each of {len(devices)} devices"
        found.append(program(name, singles, steps, flops, devices=devices))
    if hasattr(os, "sched_setaffinity"):  # else no process can be bound to a core
        run = contenders.in_processes(_first_alone, [singles[:1]], steps, _take_one_core)
        found.append(Contender(ALONE, 1, steps, flops, run))
    return found


def _take_one_core():
    """Before jax's devices start, whose threads then share that core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _first_alone(singles: Sequence[Config], steps: int) -> Callable:
    return program(ALONE, singles, steps, 0.0).run


# --- PyTorch's -------------------------------------------------------------------------------


def torch_students(singles: Sequence[Config], steps: int) -> list[Contender]:
    """PyTorch's contenders: trials in turn, and trials as products of stacked matrices."""
    flops, arranged = step_flops(singles[0]), []
    if jax.default_backend() != "cpu":
        for n in (n for n in COUNTS if n <= len(singles)):
            arranged += torch_arrangements(torch_batched, singles[:n], steps, flops, f"{n} batched")
        return arranged
    arranged += torch_arrangements(torch_in_turn, singles, steps, flops, "one after another")
    return arranged + torch_arrangements(torch_batched, singles, steps, flops, "batched")


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

    def layer(values, matrix, bias):
        if count == 1:  # without the cost of a batch
            return torch.addmm(bias[0], values[0], matrix[0])[None]
        return torch.baddbmm(bias, values, matrix)

    def loss():
        inputs, answers = draw()
        values = inputs.view(count, -1, sizes[0])
        for matrix, bias in zip(matrices[:-1], biases[:-1], strict=True):
            values = layer(values, matrix, bias).relu()
        values = layer(values, matrices[-1], biases[-1])
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
    tables = [seen_sets(single) for single in singles]
    lengths = np.array([len(table) for table in tables])
    sets = torch.tensor(np.concatenate(tables), device=device)
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

    teacher = modules.draw_teacher(settings)
    weights_MxIH, biases_MxH, readout_HxO = (
        torch.tensor(np.ascontiguousarray(array), device=device)
        for array in (
            teacher.weights.swapaxes(1, 2).reshape(settings.modules, -1) / math.sqrt(teacher.most),
            teacher.biases / math.sqrt(teacher.most),
            teacher.readout.T,
        )
    )

    def answer(latents, inputs):
        weights = (latents @ weights_MxIH).view(-1, settings.inputs, settings.hidden)
        biases = (latents @ biases_MxH)[:, None]
        return torch.baddbmm(biases, inputs, weights).relu() @ readout_HxO

    return answer


def seen_sets(single: Config):
    """(sets, M) float32"""
    task = single.task
    seen = module_supports.split(task.support, task.modules, task.most)
    return module_supports.all_sets(task.modules, task.most)[seen].astype(np.float32)
