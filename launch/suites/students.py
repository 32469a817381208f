"""Training steps of the quick hyperteacher's students, as trials of one program, against PyTorch
eager in the arrangements of its users.

The contenders take the same step: 64 sets of modules from a table of a trial's own, their weights
and 8 inputs each, drawn afresh; the teacher's answers; an MLP's forward and backward pass; AdamW,
which decays matrices alone, at a cosine rate. Trials differ in seed and in number of seen sets.

An ideal is known for trials on cores: each as fast as a trial that has one core, and the machine,
to itself (`ALONE`). How much of it is reached is the 'share of cores x single rate'.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice, pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, changed
from compgen_jax.papers.presets import PRESETS
from compgen_jax.sweeps import plan
from compgen_jax.tasks import module_supports, modules, sampling
from compgen_jax.training import loop, trials
from launch.suites import contenders, timing

TRIALS = 4  # at least, on a CPU: as many to every core
COUNTS = (1, 8, 64)  # on an accelerator
STEPS = 100  # of every trial in one turn
WIDTHS = (256, 64)
SINGLE, ALONE = "a trial, all cores", "a trial, one core alone"


class Timed(NamedTuple):
    """What takes turns: `run` blocks until `trials` trials took their steps."""

    run: Callable
    trials: int
    compile_s: float | None = None  # of the whole program


def run(
    rounds: int,
    sweep: Config = PRESETS["hyperteacher_quick"],
    widths: tuple = WIDTHS,
    steps: int = STEPS,
    peers: Callable | None = None,
    alone: Callable | None = None,
    gemm_side: int = 0,
) -> list[dict]:
    """Rows of the benchmark. `peers(singles, steps)` are PyTorch's contenders by name, and
    `alone(single, steps)` is the function that `ALONE` times; in tests there are others."""
    peers, alone = peers or torch_peers, alone or on_a_core
    side = gemm_side or (2048 if jax.default_backend() == "cpu" else 8192)
    return [
        row for width in widths for row in _compare(sweep, width, steps, rounds, peers, alone, side)
    ]


def _compare(sweep: Config, width: int, steps: int, rounds: int, peers, alone, gemm_side: int):
    on_cpu, cores = jax.default_backend() == "cpu", contenders.cores()
    count = -(-TRIALS // cores) * cores if on_cpu else max(COUNTS)
    singles = trials_of(sweep, width, count)
    compiled = ours(singles, steps)  # before there are processes, which begin by much work
    timed = peers(singles, steps) | compiled
    if on_cpu and (function := alone(singles[0], steps)):
        timed[ALONE] = Timed(function, 1)
    product, product_flops = timing.gemm(gemm_side)
    turns = {"GEMM": product} | {name: each.run for name, each in timed.items()}
    seconds = timing.interleave(turns, rounds)
    peak = product_flops / seconds["GEMM"]
    own = {name: seconds[name] / steps / each.trials for name, each in timed.items()}
    peer = min(value for name, value in own.items() if name.startswith("PyTorch"))
    single = own[SINGLE if on_cpu else _vmapped(1)]
    rows = []
    for name, each in timed.items():
        of_ideal = None
        if ALONE in own and not name.startswith("PyTorch"):
            of_ideal = own[ALONE] / cores / own[name]
        rows.append({
            "student": f"width {width}, depth {singles[0].model.depth}",
            "contender": name,
            "trials": each.trials,
            "ms per step and trial": 1e3 * own[name],
            "over best PyTorch": own[name] / peer,
            "over single runs": own[name] / single,
            "share of cores x single rate": of_ideal,
            "share of GEMM peak": step_flops(singles[0]) / own[name] / peak,
            "GEMM peak GFLOP/s": peak / 1e9,
            "compile s": each.compile_s,
        })  # fmt: skip
    return rows


def trials_of(sweep: Config, width: int, count: int) -> list[Config]:
    """The first `count` single runs of the sweep with students of this width, all supports of a
    seed before the next seed; from the first again where these are not enough."""
    cases = sorted(plan.first_trials(sweep), key=lambda case: (case.seed, case.axes))
    singles = [plan.config_of(sweep, case) for case in cases]
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


def ours(singles: Sequence[Config], steps: int) -> dict[str, Timed]:
    """Programs of as many trials as there are singles, and of fewer, by name."""
    count = len(singles)
    devices = jax.local_devices()[:count]
    first = devices[:1]
    if jax.default_backend() != "cpu":
        counts = [n for n in COUNTS if n <= count]
        return {_vmapped(n): program(singles[:n], steps, n, first) for n in counts}
    found = {
        SINGLE: program(singles[:1], steps, 1, first),
        f"{count} trials in turn, all cores": program(singles, steps, 1, first),
    }
    if len(devices) > 1:
        name = f"{count} trials, one at a time on each of {len(devices)} devices"
        found[name] = program(singles, steps, 1, devices)
    return found | {_vmapped(TRIALS): program(singles[:TRIALS], steps, TRIALS, first)}


def _vmapped(count: int) -> str:
    return f"{count} vmapped"


def program(singles: Sequence[Config], steps: int, side_by_side: int, devices) -> Timed:
    """The trials in one program as sweeps train them, `side_by_side` of them at once on each
    device; compiled. Every turn goes on from where the last one ended."""
    trainer = loop.make_trainer(
        changed(singles[0], {"execution.chunk_steps": steps}), trials=side_by_side
    )
    slots = stacked(singles)
    state = jax.jit(jax.vmap(trainer.init))(slots.key)
    advance = lambda n_steps, pair: trainer.advance(pair[0], pair[1], n_steps)
    spread, n_steps = trials.OverSplitTrials(advance, side_by_side, devices), jnp.int32(steps)
    slots, state = trials.split((slots, state), devices)
    start = time.perf_counter()
    spread.lower(n_steps, (slots, state))()
    seconds = time.perf_counter() - start

    def run():
        nonlocal state
        state, losses = jax.block_until_ready(spread(n_steps, (slots, state)))
        return losses

    return Timed(run, len(singles), seconds)


def stacked(singles: Sequence[Config]) -> loop.Trial:
    """Runs of one program as its trials, leaves (T, ...); tables of sets are padded to one
    capacity."""
    found = []
    for single in singles:
        key = jax.random.key(single.training.seeds[0])
        dataset = loop.dataset_of(single.task.make(), key)
        found.append(loop.Trial(key, loop.hyper_of(single), dataset, jnp.int32(0)))
    capacity = max(sampling.capacity(trial.dataset) for trial in found)
    found = [trial._replace(dataset=sampling.padded(trial.dataset, capacity)) for trial in found]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *found)


def on_a_core(single: Config, steps: int) -> Callable | None:
    """A function in which the trial's program takes its steps in a process that has one core; None
    where the system binds no process to a core."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    return contenders.in_processes([[single]], steps, _on_first_device, _take_one_core)


def _take_one_core():
    """Before jax's devices start, whose threads then share that core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _on_first_device(single: Config, steps: int) -> Callable:
    return program([single], steps, 1, jax.local_devices()[:1]).run


# --- PyTorch's -------------------------------------------------------------------------------


def torch_peers(singles: Sequence[Config], steps: int) -> dict[str, Timed]:
    """PyTorch's contenders: a trial; trials of a shape as products of stacked matrices; and, on a
    CPU, either in as many processes of one thread as there are cores."""
    name = "PyTorch eager"
    found = {name: Timed(torch_steps(singles[0], steps), 1)}
    count, cores = len(singles), contenders.cores()
    if jax.default_backend() != "cpu":
        for n in (n for n in COUNTS if 1 < n <= count):
            found[f"{name}, {n} batched"] = Timed(torch_batched_steps(singles[:n], steps), n)
        return found
    found[f"{name}, {count} batched"] = Timed(torch_batched_steps(singles, steps), count)
    if cores > 1:
        where = f"{cores} processes of a thread"
        apart = contenders.torch_processes(singles, steps, cores, torch_steps)
        found[f"{name}, {where}"] = Timed(apart, count)
        shares = [singles[k::cores] for k in range(cores)]
        batched = contenders.torch_processes(shares, steps, cores, torch_batched_steps)
        found[f"{name}, batched in {where}"] = Timed(batched, count)
    return found


def torch_steps(single: Config, steps: int) -> Callable:
    """A function that takes `steps` training steps of PyTorch's eager student and blocks until
    they are done."""
    import torch

    device, sizes = contenders.torch_device(), _sizes(single)
    torch.manual_seed(single.training.seeds[0])
    linear = [torch.nn.Linear(*pair, device=device) for pair in pairwise(sizes)]
    layers = [each for layer in linear for each in (layer, torch.nn.ReLU())]
    student, draw = torch.nn.Sequential(*layers[:-1]), torch_tasks([single], device)

    def loss():
        inputs, answers = draw()
        return torch.nn.functional.mse_loss(student(inputs), answers)

    matrices, biases = [each.weight for each in linear], [each.bias for each in linear]
    return _torch_training(single, loss, matrices, biases, steps)


def torch_batched_steps(singles: Sequence[Config], steps: int) -> Callable:
    """The same for several trials at once: products of their matrices, stacked."""
    import torch

    device, sizes, count = contenders.torch_device(), _sizes(singles[0]), len(singles)
    torch.manual_seed(singles[0].training.seeds[0])
    new = lambda *shape: torch.randn(count, *shape, device=device) / math.sqrt(shape[0])
    matrices = [new(*pair).requires_grad_() for pair in pairwise(sizes)]
    biases = [torch.zeros_like(each[:, :1]).requires_grad_() for each in matrices]
    draw = torch_tasks(singles, device)

    def loss():
        inputs, answers = draw()
        values = inputs.view(count, -1, sizes[0])
        for matrix, bias in zip(matrices[:-1], biases[:-1], strict=True):
            values = torch.baddbmm(bias, values, matrix).relu()
        values = torch.baddbmm(biases[-1], values, matrices[-1])
        # the sum of the trials' errors: none has a gradient in another's weights
        return count * torch.nn.functional.mse_loss(values, answers.view(values.shape))

    return _torch_training(singles[0], loss, matrices, biases, steps)


def _sizes(single: Config) -> list[int]:
    task, model = single.task, single.model
    return [task.modules + task.inputs, *[model.width] * model.depth, task.outputs]


def _torch_training(single: Config, loss: Callable, matrices, biases, steps: int) -> Callable:
    """Goes `steps` steps down `loss()`. AdamW is fused: PyTorch's fastest."""
    import torch

    if contenders.torch_device() == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, as jax multiplies there
    training, taken = single.training, 0
    total = loop.total_steps(single, single.task.make())
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": training.weight_decay},
            {"params": biases, "weight_decay": 0.0},
        ],
        lr=training.learning_rate,
        fused=True,
    )

    def run():
        nonlocal taken
        for _ in range(steps):
            share = 0.5 * (1 + math.cos(math.pi * taken / total))
            for group in optimizer.param_groups:
                group["lr"] = share * training.learning_rate
            value = loss()
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            taken += 1
        if contenders.torch_device() == "cuda":
            torch.cuda.synchronize()

    return run


def torch_tasks(singles: Sequence[Config], device: str) -> Callable:
    """A function that draws a batch of tasks for every trial: what its student is given,
    (trials x tasks x samples, codes beside inputs), and is asked for (as many, outputs). Sets are
    of the trial's own support, weights discrete, and the code is the latent itself."""
    import torch

    settings, n_tasks = singles[0].task, singles[0].training.batch_size
    tables = [_seen_sets(single) for single in singles]
    lengths = np.array([len(table) for table in tables])
    sets = torch.tensor(np.concatenate(tables), device=device)
    starts = torch.tensor(np.cumsum(lengths) - lengths, device=device).repeat_interleave(n_tasks)
    counts = torch.tensor(lengths, device=device).repeat_interleave(n_tasks)
    levels = torch.tensor(modules.LEVELS, device=device)
    answer, n = torch_teacher(settings, device), len(counts)

    def rows():
        if len(singles) == 1:
            return torch.randint(int(lengths[0]), (n,), device=device)
        return starts + (torch.rand(n, device=device) * counts).long()

    def draw():
        active = sets[rows()]
        latents = active * levels[torch.randint(len(levels), active.shape, device=device)]
        inputs = 2 * torch.rand(n, settings.samples, settings.inputs, device=device) - 1
        codes = latents[:, None].expand(-1, settings.samples, -1)
        given, asked = torch.cat([codes, inputs], dim=2), answer(latents, inputs)
        return given.flatten(0, 1), asked.flatten(0, 1)

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


def _seen_sets(single: Config):
    """(sets, M) float32"""
    task = single.task
    seen = module_supports.split(task.support, task.modules, task.most)
    return module_supports.all_sets(task.modules, task.most)[seen].astype(np.float32)
