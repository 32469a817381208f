"""The suites of `launch.benchmark`. Contenders take turns, so a noisy machine is unfair to none.

Programs of ours take the step that training takes, inside its compiled loop; PyTorch's do the same
work, eager, in the arrangements of its users (`torch_peers`).
"""

import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pandas

from compgen_jax.cli import cores
from compgen_jax.config import changed
from compgen_jax.metrics import geometry as tensors
from compgen_jax.models.convolution import choose_lowering
from compgen_jax.presets import PRESETS
from compgen_jax.runs import cost
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop, trials

from . import torch_peers

SINGLE, PEER = "single runs", "PyTorch eager"
SEEDS = 4
STEPS = {"bump_cnn": 5, "bump_cnn_quick": 40}  # of every trial in one turn
SWEEP_STEPS = 320  # of all trials of a program together, in one turn
MANY = (8,), (8, 64, 256)  # trials of a program on a CPU, and on an accelerator


class Contender(NamedTuple):
    """A way to train: `run` blocks until each of `trials` trials has taken its steps; without it,
    `note` says why it cannot run."""

    name: str
    trials: int
    run: Callable | None = None
    compile_s: float | None = None
    note: str = ""


# --- suites ------------------------------------------------------------------------------------


def train(rounds: int, steps=STEPS, side: int = 0) -> pandas.DataFrame:
    """Training steps of the paper's and the quick decoder, a few seeds of each."""
    lowerings = choose_lowering(backend=jax.default_backend(), trials=1), "gemm"
    tables = []
    for name, count in steps.items():
        singles = [changed(PRESETS[name], {"training.seeds": (seed,)}) for seed in range(SEEDS)]
        tables.append(compare(name, singles, count, rounds, lowerings, side))
    return pandas.concat(tables)


def sweep(rounds: int, config=PRESETS["data_scaling_quick"], grid=16, side=0) -> pandas.DataFrame:
    """Many trials in one program, as sweeps train them, with as many images as are searched."""
    tables, backend = [], jax.default_backend()
    values = {"sweep.axes": (), "sweep.search.field": "", "task.images": 0, "task.grid": grid}
    values["task.support.samples"] = 2 * grid**2
    for count in MANY[backend != "cpu"]:
        singles = [changed(config, values | {"training.seeds": (seed,)}) for seed in range(count)]
        heading = f"{config.model.width} channels, grid {grid}"
        lowerings = (choose_lowering(backend=backend, trials=count),)
        steps = max(2, SWEEP_STEPS // count)
        tables.append(compare(heading, singles, steps, rounds, lowerings, side))
    return pandas.concat(tables)


def geometry(rounds: int, presets=("bump_cnn", "bump_cnn_quick")) -> pandas.DataFrame:
    """Exact metric tensors of every layer of the paper's decoder over all cells, against one
    forward pass and against finite differences."""
    tables = []
    for preset in presets:
        config = PRESETS[preset]
        task, key, side = config.task.make(), jax.random.key(0), config.task.grid
        points = jnp.asarray(tasks.cells(task.factors))
        model = config.model.make(loop.shapes_of(task, "gemm"))  # it has a forward mode
        params = model.init(key, task.example(key, points[0]).input)

        def layers(point, model=model, params=params, task=task, key=key):
            image, activations = model.apply(params, task.example(key, point).input)
            return activations | {"output": image}

        def forward(points, layers=layers):
            return jax.lax.map(layers, points, batch_size=tensors.POINTS_AT_ONCE)

        def differences(points, forward=forward, side=side):
            grids = jax.tree.map(lambda layer: layer.reshape(side, side, -1), forward(points))
            return jax.tree.map(tensors.grid_metric, grids)

        functions = {
            "forward": forward,
            "exact metric": partial(tensors.metric_tensors, layers),
            "finite differences": differences,
        }
        turns = {name: partial(jax.jit(function), points) for name, function in functions.items()}
        seconds = pandas.Series(interleave(turns, rounds), name="seconds")
        table = seconds.rename_axis("contender").reset_index()
        table["over forward"] = table["seconds"] / seconds["forward"]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        tables.append(table.assign(of=preset, **{"peak GiB of all": memory}))
    return pandas.concat(tables)


# --- contenders --------------------------------------------------------------------------------


def compare(heading, singles, steps, rounds, lowerings, side=0) -> pandas.DataFrame:
    """A row for each way to train single runs of one program as trials: its time beside that of
    PyTorch's best, of our single runs, and of a matrix product.

    heading: what all rows are of.  steps: of every trial in a turn.  lowerings: of convolutions;
    all trials in one program have the first.  side: of the matrix product, by default large for the
    device.
    """
    count, devices, first = len(singles), jax.local_devices()[: len(singles)], lowerings[0]
    ours = []  # compiled before other processes share the cores
    for lowering in lowerings:
        name = SINGLE if lowering == first else f"{SINGLE}, {lowering}"
        ours.append(program(name, singles[:1], steps, lowering=lowering))
    ours.append(program(f"{count} in turn", singles, steps, lowering=first))
    ours.append(program(f"{count} vmapped", singles, steps, count, lowering=first))
    if len(devices) > 1:
        name = f"{count}, one at a time on each of {len(devices)} devices"
        ours.append(program(name, singles, steps, devices=devices, lowering=first))
    # one after another in this process and, on a CPU of several cores, in as many of one thread
    theirs, workers = [Contender(PEER, count, torch_peers.decoders(singles, steps))], cores()
    if jax.default_backend() == "cpu" and min(workers, count) > 1:
        shares = [singles[k::workers] for k in range(min(workers, count))]
        name = f"{PEER}, in {len(shares)} processes of a thread"
        theirs.append(Contender(name, count, torch_peers.in_processes(shares, steps)))
    side = side or (2048 if jax.default_backend() == "cpu" else 8192)
    a, product = jnp.ones((side, side), "float32"), jax.jit(jnp.matmul)  # TF32 on a GPU
    contenders = [*theirs, *ours]
    turns = {contender.name: contender.run for contender in contenders if contender.run}
    seconds = interleave({"gemm": partial(product, a, a)} | turns, rounds)
    table = pandas.DataFrame(contenders).rename(columns={"compile_s": "compile s"})
    table = table.drop(columns="run").set_index("name")
    per_step = table.index.to_series().map(seconds) / steps / table["trials"]
    # as direct convolutions, which "gemm" carries out one by one
    flops = cost.flops_of_step(singles[0], singles[0].task.make(), "gemm")
    peak = 2.0 * side**3 / seconds["gemm"]
    table.insert(0, "of", heading)
    table.insert(2, "ms per step and trial", 1e3 * per_step)
    best_peer = per_step[per_step.index.str.startswith(PEER)].min()
    table.insert(3, "over best PyTorch", per_step / best_peer)
    table.insert(4, "over single runs", per_step / per_step[SINGLE])
    table.insert(5, "share of GEMM peak", flops / per_step / peak)
    table.insert(6, "GEMM peak GFLOP/s", peak / 1e9)
    return table.rename_axis("contender").reset_index()


def program(name, singles, steps, side_by_side=1, devices=None, lowering=None) -> Contender:
    """Single runs as the trials of one program, `side_by_side` of them at once on each device (by
    default the first, which on a CPU has all cores). It is compiled, and has run once.

    Each turn goes on where the last one ended. A program that does not fit has a note instead.
    """
    devices = list(devices or jax.local_devices()[:1])
    slots = []
    for single in singles:
        key = jax.random.key(single.training.seeds[0])
        dataset = loop.dataset_of(single.task.make(), key)
        slots.append(loop.Trial(key, loop.hyper_of(single), dataset, jnp.int32(0)))
    slots = jax.tree.map(lambda *leaves: jnp.stack(leaves), *slots)
    try:
        config = changed(singles[0], {"execution.chunk_steps": steps})
        trainer = loop.make_trainer(config, lowering, side_by_side)
        state = jax.jit(jax.vmap(trainer.init))(slots.key, slots.task_index)
        advance = lambda n_steps, pair: trainer.advance(pair[0], pair[1], n_steps)
        spread, n_steps = trials.MappedTrials(advance, side_by_side, devices), jnp.int32(steps)
        slots, state = trials.split((slots, state), devices)
        start = time.perf_counter()
        spread.compile(ThreadPoolExecutor(1), n_steps, (slots, state)).result()
        seconds = time.perf_counter() - start

        def run():
            nonlocal state
            state, losses = jax.block_until_ready(spread(n_steps, (slots, state)))
            return losses

        run()  # the memory that it needs beyond its arguments, it needs here
    except jax.errors.JaxRuntimeError as error:
        return Contender(name, len(singles), note=str(error).splitlines()[0][:120])
    return Contender(name, len(singles), run, seconds)


def interleave(contenders: dict[str, Callable], rounds: int) -> dict[str, float]:
    """Median seconds of each contender, a function, until its work and what it returns are done.

    Each is called once to warm up (and compile), then once per round, in turn.
    """
    for run in contenders.values():
        jax.block_until_ready(run())
    seconds = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}
