"""What the suites time: programs of ours, and PyTorch's training in its users' arrangements."""

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from compgen_jax.config import Config, changed
from compgen_jax.tasks import sampling
from compgen_jax.training import loop, padding, trials

from .timing import PEER, Contender

# --- ours ------------------------------------------------------------------------------------


def program(
    name: str,
    singles: Sequence[Config],
    steps: int,
    flops: float,
    side_by_side: int = 1,
    devices: Sequence | None = None,
    lowering: str | None = None,
    precision: str = "float32",
) -> Contender:
    """Single runs as the trials of one program, `side_by_side` of them at once on each device (by
    default the first, which on a CPU has all cores). It is compiled, and has run once.

    Each turn goes on where the last one ended. A program that does not fit has a note instead.
    """
    grids = [getattr(single.task, "grid", 0) for single in singles]
    waste = padding.waste(grids) if len(set(grids)) > 1 else 0.0
    contender = Contender(name, len(singles), steps, flops, None, precision, None, waste)
    values = {"training.precision": precision, "execution.chunk_steps": steps}
    devices = list(devices or jax.local_devices()[:1])
    try:
        largest = singles[grids.index(max(grids))]
        tasks = {grid: single.task.make() for grid, single in zip(grids, singles, strict=True)}
        members = tuple(tasks[grid] for grid in sorted(tasks)) if len(tasks) > 1 else ()
        trainer = loop.make_trainer(
            changed(largest, values), lowering, side_by_side, members=members
        )
        slots = stacked(singles)
        state = jax.jit(jax.vmap(trainer.init))(slots.key, slots.task_index)
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

        run()  # the memory that it needs beyond its arguments, it needs here
    except jax.errors.JaxRuntimeError as error:
        return contender._replace(note=str(error).splitlines()[0][:120])
    return contender._replace(run=run, compile_s=seconds)


def stacked(singles: Sequence[Config]) -> loop.Trial:
    """Single runs as trials, leaves (T, ...): tables of points are padded to one capacity, tasks of
    several grids are numbered from the smallest."""
    grids = [getattr(single.task, "grid", 0) for single in singles]
    found = []
    for single, grid in zip(singles, grids, strict=True):
        key = jax.random.key(single.training.seeds[0])
        dataset = loop.dataset_of(single.task.make(), key)
        index = jnp.int32(sorted(set(grids)).index(grid))
        found.append(loop.Trial(key, loop.hyper_of(single), dataset, index))
    capacity = max(sampling.capacity(trial.dataset) for trial in found)
    found = [trial._replace(dataset=sampling.padded(trial.dataset, capacity)) for trial in found]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *found)


def in_turn(runs: Sequence[Callable]) -> Callable:
    def run():
        for each in runs:
            each()

    return run


# --- PyTorch's -------------------------------------------------------------------------------


def torch_arrangements(
    peer: Callable, singles: Sequence[Config], steps: int, flops: float, how: str
) -> list[Contender]:
    """PyTorch in this process and, on a CPU of several cores, in as many processes of one thread,
    each with its share of the trials. `peer(singles, steps)` returns a function that trains them
    and blocks; `how` describes it."""
    name, count = f"{PEER} eager, {how}", min(cores(), len(singles))
    found = [Contender(name, len(singles), steps, flops, peer(singles, steps))]
    if jax.default_backend() == "cpu" and count > 1:
        run = in_processes(peer, [singles[k::count] for k in range(count)], steps, one_thread)
        name = f"{name}, in {count} processes of a thread"
        found.append(Contender(name, len(singles), steps, flops, run))
    return found


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


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


def in_processes(make: Callable, shares: Sequence, steps: int, begin: Callable) -> Callable:
    """A function in which a process for every share runs `make(share, steps)`. The processes begin
    with `begin()`, and end with this one."""
    context, pipes = multiprocessing.get_context("spawn"), []
    for share in shares:
        ours, theirs = context.Pipe()
        arguments = theirs, make, share, steps, begin
        context.Process(target=_serve, args=arguments, daemon=True).start()
        theirs.close()  # else this process would wait for its own end
        pipes.append(ours)

    def run():
        for pipe in pipes:
            pipe.send("go")
        for pipe in pipes:
            pipe.recv()

    return run


def _serve(pipe, make: Callable, share, steps: int, begin: Callable):
    begin()
    run = make(share, steps)
    with contextlib.suppress(EOFError):  # the benchmark has ended
        while pipe.recv():
            run()
            pipe.send("done")


def one_thread():
    import torch

    torch.set_num_threads(1)
