"""What a training says: memory that runs out, curves for TensorBoard."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from compgen_jax.config import changed, fingerprint
from compgen_jax.runs import logs, study
from compgen_jax.runs.directory import RunError

SIDE = 2**28  # float32 of this side take 2**58 bytes, more than a process can address


def fail():
    raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nmore")


@pytest.mark.parametrize(
    "fill",
    [
        lambda: jax.block_until_ready(jnp.zeros((SIDE, SIDE))),
        lambda: np.zeros((SIDE, SIDE), np.float32),
        fail,
    ],
)
def test_memory_that_runs_out_is_one_line(fill):
    with pytest.raises(RunError, match="^out of memory: try less$"):
        with logs.memory_explained("try less"):
            fill()


def test_other_errors_are_left_alone():
    with pytest.raises(jax.errors.JaxRuntimeError, match="a bug"):
        with logs.memory_explained("try less"):
            raise jax.errors.JaxRuntimeError("INTERNAL: a bug")


def test_curves_are_the_rows_of_metrics_and_change_no_run(tiny, tiny_run, tmp_path, monkeypatch):
    config, curves = changed(tiny, {"execution.tensorboard": True}), {}

    class Writer(contextlib.nullcontext):
        def __init__(self, folder, filename_suffix):
            self.seed = int(folder.rpartition("_")[2])
            super().__init__(self)

        def add_scalar(self, name, value, step):
            curves[self.seed, step, name.replace("/", ".")] = value

    monkeypatch.setattr("tensorboardX.SummaryWriter", Writer)
    assert fingerprint(config) == fingerprint(tiny)
    study.train(config, tmp_path / "run")
    for name in ("summary.json", "metrics.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (tiny_run[0] / name).read_bytes()
    rows = pd.read_csv(tmp_path / "run" / "metrics.csv").drop(columns="epoch")
    rows = rows.melt(["seed", "step"]).dropna()
    assert curves == rows.set_index(["seed", "step", "variable"]).value.to_dict()
