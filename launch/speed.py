"""The suites of `launch.benchmark`. Contenders take turns, so a noisy machine is unfair to none.
Programs of ours take the step that training takes, inside its compiled loop."""

import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import itemgetter
from statistics import median
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas

from compgen_jax.catalog import PAPERS
from compgen_jax.cli import cores
from compgen_jax.config import changed
from compgen_jax.metrics import registry
from compgen_jax.papers import verdicts
from compgen_jax.presets import PRESETS
from compgen_jax.runs import measure, study
from compgen_jax.runs.run import Run
from compgen_jax.training import loop, trials

from . import cost, metric_peers, torch_peers

SINGLE, PEER = "single runs", "PyTorch eager"
SEEDS = 4
STEPS = {"bump_cnn": 5, "bump_cnn_quick": 40}  # of every trial in one turn
JUDGED = 50  # steps of the network that is judged
SWEEP_STEPS = 320  # of all trials of a program together, in one turn
# on a CPU, and on an accelerator: trials of a program; side of the matrices of a product
MANY, SIDES = ((8,), (8, 64, 256)), (2048, 8192)


class Contender(NamedTuple):
    """A way to train: `run` blocks until each of its trials has taken its steps; `note` says why
    there is none."""

    name: str
    trials: int
    run: Callable | None = None
    compile_s: float | None = None
    note: str = ""


def train(rounds: int, steps=STEPS) -> pandas.DataFrame:
    """Training steps of the paper's and the quick decoder, a few seeds of each."""
    tables = []
    for name, count in steps.items():
        singles = [changed(PRESETS[name], {"training.seeds": (seed,)}) for seed in range(SEEDS)]
        tables.append(compare(name, singles, count, rounds, lowerings=("gemm",)))
    return pandas.concat(tables)


def sweep(rounds: int, config=PRESETS["data_scaling_quick"], grid=16) -> pandas.DataFrame:
    """Many trials in one program, as sweeps train them, with as many images as are searched."""
    tables = []
    values = {"sweep.axes": (), "sweep.search.field": "", "task.images": 0, "task.grid": grid}
    values["task.support.samples"] = 2 * grid**2
    for count in MANY[jax.default_backend() != "cpu"]:
        singles = [changed(config, values | {"training.seeds": (seed,)}) for seed in range(count)]
        heading = f"{config.model.width} channels, grid {grid}"
        tables.append(compare(heading, singles, max(2, SWEEP_STEPS // count), rounds))
    return pandas.concat(tables)


def geometry(rounds: int, presets=("bump_cnn", "bump_cnn_quick")) -> pandas.DataFrame:
    """Exact metric tensors of every layer of a decoder over all cells, against a forward pass."""
    tables = []
    for preset in presets:
        config = PRESETS[preset]
        recorder = measure.Grid(Run(config, config.task.make(), (0,)))
        params, points = recorder.init(jax.random.key(0)), jnp.asarray(recorder.points)
        turns = {
            "forward": partial(recorder.features, params, recorder.inputs),
            "exact metric": partial(recorder.tensors, params, points),
        }
        tables.append(against_forward(preset, turns, rounds))
    return pandas.concat(tables)


def metrics(rounds: int, preset="bump_cnn_quick") -> pandas.DataFrame:
    """All metrics of one network on its grid, against a forward pass; some of its last hidden layer
    against a peer's, which must give the same numbers."""
    config, key = PRESETS[preset], jax.random.key(0)
    run = Run(config, config.task.make(), (0,))
    recorder = measure.recorder(run, "grid")
    params = recorder.init(key)
    run.params = jax.tree.map(lambda leaf: leaf[None], params)
    *_, layer, _ = recorder.record(params, key, 0).values()
    everything = registry.metrics_of("grid")
    turns = {
        "forward": partial(recorder.features, params, recorder.inputs),
        "all metrics": partial(measure.take, run, everything, progress=False),
    }
    peers = {}
    for name, (ours, theirs) in metric_peers.pairs_of(layer).items():
        expected = theirs()
        np.testing.assert_allclose(ours(), expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        peers[name] = f"{name}, peer"
        turns |= {name: ours, peers[name]: theirs}
    return against_forward(preset, turns, rounds, peers)


def judge(rounds: int, preset="bump_cnn_quick", steps=JUDGED) -> pandas.DataFrame:
    """What claims ask for of a network at its late checkpoints, against their forward passes."""
    config = changed(PRESETS[preset], {"training.steps": steps, "training.seeds": (0,)})
    with tempfile.TemporaryDirectory() as folder:
        study.train(config, folder, progress=False)
        run = Run.load(folder)
        recorder = measure.recorder(run, "grid")

        def forward():
            for step in run.late.steps:
                params = jax.tree.map(itemgetter(0), run.at(step).params)
                jax.block_until_ready(recorder.features(params, recorder.inputs))

        def verdicts_anew():
            for name in measure.FILES:
                (run.path / name).unlink(missing_ok=True)
            unmeasured = Run.load(folder)
            unmeasured.cached = run.cached  # compiled programs
            verdicts.judge(PAPERS, {"bump_cnn": unmeasured}, "quick")

        turns = {"forward": forward, "claims": verdicts_anew}
        return against_forward(preset, turns, rounds)


def against_forward(heading, turns, rounds, peers=()) -> pandas.DataFrame:
    """A row for each turn: its time beside that of `forward`, and of its peer by name."""
    seconds = pandas.Series(interleave(turns, rounds))
    ratios = {name: seconds[name] / seconds[peer] for name, peer in dict(peers).items()}
    numbers = {
        "seconds": seconds,
        "over forward": seconds / seconds["forward"],
        "over its peer": pandas.Series(ratios, seconds.index, float),
        "of": heading,
        "peak GiB of all": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    return pandas.DataFrame(numbers).rename_axis("contender").reset_index()


def compare(heading, singles, steps, rounds, lowerings=()) -> pandas.DataFrame:
    """A row for each way to train single runs as trials, so many steps in a turn: its time beside
    that of PyTorch's best, of our single runs (also with other lowerings), and of a matrix
    product."""
    count, devices = len(singles), jax.local_devices()[: len(singles)]
    ours = [program(SINGLE, singles[:1], steps)]  # compiled before other processes share the cores
    for lowering in lowerings:
        ours.append(program(f"{SINGLE}, {lowering}", singles[:1], steps, lowering=lowering))
    ours.append(program(f"{count} in turn", singles, steps))
    ours.append(program(f"{count} vmapped", singles, steps, count))
    if len(devices) > 1:
        name = f"{count}, one at a time on each of {len(devices)} devices"
        ours.append(program(name, singles, steps, devices=devices))
    # one after another in this process and, on a CPU of several cores, in as many of one thread
    theirs, workers = [Contender(PEER, count, torch_peers.decoders(tuple(singles), steps))], cores()
    if jax.default_backend() == "cpu" and min(workers, count) > 1:
        shares = [tuple(singles[k::workers]) for k in range(min(workers, count))]
        name = f"{PEER}, in {len(shares)} processes of a thread"
        theirs.append(Contender(name, count, torch_peers.in_processes(shares, steps)))
    # as direct convolutions, which "gemm" carries out one by one
    flops = cost.flops_of_step(singles[0], singles[0].task.make(), "gemm")
    side = SIDES[jax.default_backend() != "cpu"]
    a, product = jnp.ones((side, side), "float32"), jax.jit(jnp.matmul)  # TF32 on a GPU
    contenders = {contender.name: contender for contender in (*theirs, *ours)}
    turns = {name: contender.run for name, contender in contenders.items() if contender.run}
    seconds = pandas.Series(interleave({"gemm": partial(product, a, a)} | turns, rounds))
    table = pandas.DataFrame(contenders.values(), index=pandas.Index(contenders, name="contender"))
    per_step = seconds.reindex(table.index) / steps / table["trials"]
    peak = 2.0 * side**3 / seconds["gemm"]
    numbers = {
        "of": heading,
        "trials": table["trials"],
        "ms per step and trial": 1e3 * per_step,
        "over best PyTorch": per_step / per_step[per_step.index.str.startswith(PEER)].min(),
        "over single runs": per_step / per_step[SINGLE],
        "share of GEMM peak": flops / per_step / peak,
        "GEMM peak GFLOP/s": peak / 1e9,
        "compile s": table["compile_s"],
        "note": table["note"],
    }
    return pandas.DataFrame(numbers).reset_index()


def program(name, singles, steps, side_by_side=1, devices=None, lowering=None) -> Contender:
    """Single runs as the trials of one compiled program, `side_by_side` of them at once on each
    device, by default the first. Each turn goes on where the last one ended."""
    devices = devices or jax.local_devices()[:1]
    task, hyper = singles[0].task.make(), loop.hyper_of(singles[0])
    keys = jnp.stack([jax.random.key(*single.training.seeds) for single in singles])
    trial = lambda key: loop.Trial(key, hyper, loop.dataset_of(task, key), jnp.int32(0))
    slots = jax.vmap(trial)(keys)
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
    """Median seconds of each function, which is called once to warm up, then once per round."""
    for run in contenders.values():
        jax.block_until_ready(run())
    seconds = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}
