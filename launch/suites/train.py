"""Training steps of the paper's and of the quick decoder against PyTorch eager, on this machine.

The contenders take the same step: a batch of 32 gathered from the training set, forward, backward
and AdamW, with the same parameters count; ours inside the compiled loop that training uses.
"""

import jax

from compgen_jax.config import Config, changed
from compgen_jax.models.convolution import choose_lowering
from compgen_jax.papers.presets import PRESETS

from . import timing
from .contenders import cores, program, torch_arrangements
from .decoders import step_flops, torch_decoders

TRIALS = 4
SINGLE = "one seed"


def run(rounds: int) -> list[dict]:
    """The rows of `timing.compare` for both decoders."""
    rows = _compare(PRESETS["bump_cnn"], 5, rounds)
    return rows + _compare(PRESETS["bump_cnn_quick"], 40, rounds)


def _compare(config: Config, steps: int, rounds: int) -> list[dict]:
    fast = choose_lowering(backend=jax.default_backend(), trials=1)
    singles = [changed(config, {"training.seeds": (seed,)}) for seed in range(TRIALS)]
    flops, devices = step_flops(config), jax.local_devices()[:TRIALS]
    ours = lambda name, count, *how: program(name, singles[:count], steps, flops, *how)
    contenders = [
        *torch_arrangements(torch_decoders, singles[: cores()], steps, flops, "one after another"),
        ours(SINGLE, 1, 1, None, fast),
        ours(f"{SINGLE}, gemm", 1, 1, None, "gemm"),
        ours(f"{TRIALS} seeds in turn", TRIALS, 1, None, fast),
        ours(f"{TRIALS} seeds vmapped", TRIALS, TRIALS, None, fast),
    ]
    if len(devices) > 1:
        name = f"{TRIALS} seeds on {len(devices)} devices"
        contenders.append(ours(name, TRIALS, 1, devices, fast))
    return timing.compare({"preset": config.name}, contenders, SINGLE, rounds, timing.gemm_side())
