"""Training steps of the paper's and of the quick decoder against PyTorch eager, on this machine.

The contenders take the same step: a batch of 32 gathered from the training set, forward, backward
and AdamW, with the same parameters count; ours inside the compiled loop that training uses.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp

from compgen_jax.config import Config
from compgen_jax.models.convolution import choose_lowering
from compgen_jax.papers.presets import PRESETS
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials

from . import contenders, timing

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
    runs = {"PyTorch eager": (contenders.torch_steps(config, steps), 1)}
    if jax.default_backend() == "cpu" and (cores := contenders.cores()) > 1:
        run = contenders.torch_processes([config] * cores, steps, cores)
        runs[f"PyTorch eager, {cores} processes of a thread"] = run, cores
    runs |= {
        fast: (_our_steps(config, steps, fast, 1, 1), 1),
        f"{fast}, {TRIALS} seeds in turn": (_our_steps(config, steps, fast, TRIALS, 1), TRIALS),
        f"{fast}, {TRIALS} seeds vmapped": (_our_steps(config, steps, fast, TRIALS, 0), TRIALS),
        "gemm": (_our_steps(config, steps, "gemm", 1, 1), 1),
    }
    if (devices := jax.local_devices()[:TRIALS])[1:]:
        name = f"{fast}, {TRIALS} seeds on {len(devices)} devices"
        runs[name] = (_our_steps(config, steps, fast, TRIALS, 1, devices), TRIALS)
    product, product_flops = timing.gemm()
    seconds = timing.interleave(
        {"GEMM": product} | {name: run for name, (run, _) in runs.items()}, rounds
    )
    peak = product_flops / seconds["GEMM"]
    # the best that its users can arrange
    peer = min(seconds[name] / steps / models for name, (_, models) in runs.items()
               if name.startswith("PyTorch"))  # fmt: skip
    rows = []
    for name, (_, models) in runs.items():
        per_step = seconds[name] / steps / models
        rows.append({
            "preset": config.name,
            "contender": name,
            "ms per step and model": 1e3 * per_step,
            "over best PyTorch": per_step / peer,
            "share of GEMM peak": contenders.step_flops(config) / per_step / peak,
            "GEMM peak GFLOP/s": peak / 1e9,
        })  # fmt: skip
    return rows


def _our_steps(config, steps: int, lowering: str, trials: int, per_device: int, devices=None):
    """By default on one device, which on a CPU has all cores at its disposal."""
    devices = devices or jax.local_devices()[:1]
    trainer, task = loop.make_trainer(config, lowering), config.task.make()
    keys = jax.vmap(jax.random.key)(jnp.arange(trials))
    hyper = loop.hyper_of(config)
    state = over_trials(lambda _, key: trainer.init(key), 1, devices)((), keys)
    advance = over_trials(
        lambda n_steps, seed: trainer.advance(
            loop.Trial(seed[0], hyper, loop.dataset_of(task, seed[0]), jnp.int32(0)),
            seed[1],
            n_steps,
        ),
        per_device or trials,
        devices,
    )
    return lambda: jax.block_until_ready(advance(steps, (keys, state)))
