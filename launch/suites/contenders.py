"""What the suites time: programs of ours, and PyTorch's training in its users' arrangements."""

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from statistics import mean

import jax
import jax.numpy as jnp
import pandas

from compgen_jax.cli import cores
from compgen_jax.config import Config, changed
from compgen_jax.runs import cost
from compgen_jax.tasks import sampling
from compgen_jax.training import loop, padding, trials

from .timing import PEER, Contender
from .timing import compare as compare_times

SINGLE = "single runs"


def compare(heading, singles, steps, rounds, peers, lowerings=(None,), side=0) -> pandas.DataFrame:
    """The rows of `timing.compare` for single runs as trials: PyTorch's in each arrangement, ours
    one by one by every lowering and then, by the first lowering, all in one program.

    heading: what all rows are of.  peers: for each description a function (singles, steps) that
    returns a function, which trains them and blocks.  side: of the matrix product.
    """
    count, devices, first = len(singles), jax.local_devices()[: len(singles)], lowerings[0]
    one_of = {_grid(single): single for single in singles}.values()
    ours = []  # compiled before other processes share the cores
    for lowering in lowerings:
        name = SINGLE if lowering == first else f"{SINGLE}, {lowering}"
        alone = [program(name, [one], steps, lowering=lowering) for one in one_of]
        ours.append(one_after_another(alone))
    ours.append(program(f"{count} in turn", singles, steps, lowering=first))
    ours.append(program(f"{count} vmapped", singles, steps, count, lowering=first))
    if len(devices) > 1:
        name = f"{count}, one at a time on each of {len(devices)} devices"
        ours.append(program(name, singles, steps, devices=devices, lowering=first))
    # in this process and, on a CPU of several cores, in as many processes of one thread, each with
    # its share of the trials
    theirs, workers = [], min(cores(), count)
    for how, peer in peers.items():
        name = f"{PEER} eager, {how}"
        theirs.append(Contender(name, count, peer(singles, steps)))
        if jax.default_backend() == "cpu" and workers > 1:
            run = in_processes(peer, [singles[k::workers] for k in range(workers)], steps)
            name = f"{name}, in {workers} processes of a thread"
            theirs.append(Contender(name, count, run))
    # as direct convolutions, which "gemm" carries out one by one
    flops = mean(cost.flops_of_step(one, one.task.make(), "gemm") for one in one_of)
    side = side or (2048 if jax.default_backend() == "cpu" else 8192)  # large for this device
    table = compare_times([*theirs, *ours], SINGLE, rounds, steps, flops, side)
    table.insert(0, "of", heading)
    return table


# --- ours ------------------------------------------------------------------------------------


def one_after_another(built: list[Contender]) -> Contender:
    """Programs that run in turn; the first that does not fit, if there is one."""
    for each in built:
        if each.note:
            return each
    run, seconds = in_turn([each.run for each in built]), sum(each.compile_s for each in built)
    return built[0]._replace(trials=len(built), run=run, compile_s=seconds)


def program(name, singles, steps, side_by_side=1, devices=None, lowering=None) -> Contender:
    """Single runs as the trials of one program, `side_by_side` of them at once on each device (by
    default the first, which on a CPU has all cores). It is compiled, and has run once.

    Each turn goes on where the last one ended. A program that does not fit has a note instead.
    """
    one_of = {_grid(single): single for single in sorted(singles, key=_grid)}
    members = tuple(single.task.make() for single in one_of.values())
    waste = padding.waste([_grid(single) for single in singles]) if len(members) > 1 else 0.0
    contender = Contender(name, len(singles), waste=waste)
    devices = list(devices or jax.local_devices()[:1])
    try:
        largest = changed(max(singles, key=_grid), {"execution.chunk_steps": steps})
        trainer = loop.make_trainer(
            largest, lowering, side_by_side, network=padding.network_of(members)
        )
        slots = stacked(singles)
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
        return contender._replace(note=str(error).splitlines()[0][:120])
    return contender._replace(run=run, compile_s=seconds)


def _grid(single: Config) -> int:
    return getattr(single.task, "grid", 0)


def stacked(singles: Sequence[Config]) -> loop.Trial:
    """Single runs as trials, leaves (T, ...): tables of points are padded to one capacity, tasks of
    several grids are numbered from the smallest."""
    grids = sorted({_grid(single) for single in singles})
    slots = []
    for single in singles:
        key = jax.random.key(single.training.seeds[0])
        dataset = loop.dataset_of(single.task.make(), key)
        index = jnp.int32(grids.index(_grid(single)))
        slots.append(loop.Trial(key, loop.hyper_of(single), dataset, index))
    capacity = max(sampling.capacity(trial.dataset) for trial in slots)
    slots = [trial._replace(dataset=sampling.padded(trial.dataset, capacity)) for trial in slots]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *slots)


def in_turn(runs: Sequence[Callable]) -> Callable:
    def run():
        for each in runs:
            each()

    return run


# --- PyTorch's -------------------------------------------------------------------------------


def torch_device() -> str:
    """jax's kind of device, where PyTorch has one as well; else 'cpu'."""
    import torch

    return "cuda" if jax.default_backend() == "gpu" and torch.cuda.is_available() else "cpu"


def torch_training(config: Config, loss: Callable, optimizer, steps: int, rate_of=None) -> Callable:
    """A function that goes `steps` steps down `loss()` and blocks until they are done. The share of
    the learning rate at a step is `rate_of(step)`; by default it is constant."""
    import torch

    taken = 0

    def run():
        nonlocal taken
        for _ in range(steps):
            for group in optimizer.param_groups if rate_of else ():
                group["lr"] = rate_of(taken) * config.training.learning_rate
            value = loss()
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            taken += 1
        if torch_device() == "cuda":
            torch.cuda.synchronize()

    return run


def in_processes(make: Callable, shares: Sequence, steps: int) -> Callable:
    """A function in which a process of one thread for every share runs `make(share, steps)`. The
    processes end with this one."""
    spawn = multiprocessing.get_context("spawn")
    pools = [ProcessPoolExecutor(1, spawn, _begin, (make, share, steps)) for share in shares]

    def run():
        for turn in [pool.submit(_take_turn) for pool in pools]:
            turn.result()

    return run


_of_this_process = []


def _begin(make: Callable, share, steps: int):
    os.environ["OMP_NUM_THREADS"] = "1"  # PyTorch reads it when `make` imports it
    _of_this_process.append(make(share, steps))


def _take_turn():
    _of_this_process[0]()
