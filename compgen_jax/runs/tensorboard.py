"""Metrics of a run for TensorBoard: DIR/tensorboard/seed_SEED (`config.execution.tensorboard`).

`tensorboard --logdir=DIR` shows them. A run that was killed may lack an evaluation there;
metrics.csv has all.
"""

import contextlib
import importlib.util
import math
from pathlib import Path

from compgen_jax.config import Config
from compgen_jax.settings import require

NO_METRICS = "step", "epoch", "seed"  # columns of a row


def check(config: Config):
    """Raises ConfigError where a config asks for curves and tensorboardX is not installed."""
    possible = not config.execution.tensorboard or importlib.util.find_spec("tensorboardX")
    hint = "needs tensorboardX; pip install 'compgen_jax[tensorboard]'"
    require(possible, "execution.tensorboard", True, hint)


@contextlib.contextmanager
def curves(workdirs):
    """Gives write(workdir, rows): the rows of metrics of an evaluation, one for each seed, go to
    the directory's curves. It does nothing for a directory that is not among `workdirs`."""
    writers = {}

    def write(workdir: Path, rows: list[dict]):
        for row in rows if workdir in workdirs else ():
            place = workdir / "tensorboard" / f"seed_{row['seed']}"
            if place not in writers:
                from tensorboardX import SummaryWriter  # an extra

                writers[place] = stack.enter_context(SummaryWriter(str(place)))
            for name, value in row.items():
                if name not in NO_METRICS and value is not None and math.isfinite(value):
                    writers[place].add_scalar(name.replace(".", "/"), value, row["step"])
            writers[place].flush()

    with contextlib.ExitStack() as stack:
        yield write
