"""What a training says: memory that runs out, curves for TensorBoard."""

import re
import struct

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from compgen_jax.config import changed, fingerprint
from compgen_jax.runs import logs, study
from compgen_jax.runs.directory import RunError

SIDE = 2**28  # float32 of this side take 2**58 bytes, more than a process can address
EXHAUSTED = "RESOURCE_EXHAUSTED: Out of memory"


def fail():
    raise jax.errors.JaxRuntimeError(f"{EXHAUSTED} allocating 28910428832 bytes.\nmore")


@pytest.mark.parametrize(
    ("fill", "size"),
    [
        (lambda: jax.block_until_ready(jnp.zeros((SIDE, SIDE))), r"( \(asked for \S+ GiB\))?"),
        (lambda: np.zeros((SIDE, SIDE), np.float32), ""),  # petabytes are not named
        (fail, r" \(asked for 26.9 GiB\)"),
    ],
)
def test_what_runs_out_is_one_line_with_the_size_where_the_error_names_it(fill, size):
    with pytest.raises(RunError) as caught, logs.memory_explained("try less"):
        fill()
    assert re.fullmatch(f"out of memory{size}: try less", str(caught.value))


def test_other_errors_are_left_alone():
    with pytest.raises(jax.errors.JaxRuntimeError, match="a bug"):
        with logs.memory_explained("try less"):
            raise jax.errors.JaxRuntimeError("INTERNAL: a bug")


def events(folder):
    """{(name, step): value} of the records of a folder: length, its checksum, content, checksum."""
    from tensorboardX.proto.event_pb2 import Event

    found = {}
    for path in folder.glob("events.out.tfevents.*"):
        content, place = path.read_bytes(), 0
        while place < len(content):
            (length,) = struct.unpack_from("<Q", content, place)
            event = Event.FromString(content[place + 12 : place + 12 + length])
            place += 16 + length
            for value in event.summary.value:
                found[value.tag, event.step] = value.simple_value
    return found


def test_curves_are_the_rows_of_metrics_and_change_no_run(tiny, tiny_run, tmp_path):
    config = changed(tiny, {"execution.tensorboard": True})
    assert fingerprint(config) == fingerprint(tiny)
    study.train(config, tmp_path / "run")
    for name in ("summary.json", "metrics.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (tiny_run[0] / name).read_bytes()
    rows = pd.read_csv(tmp_path / "run" / "metrics.csv")
    for seed in (0, 7):
        of_seed = rows[rows.seed == seed]
        found = events(tmp_path / "run" / "tensorboard" / f"seed_{seed}")
        assert {step for _, step in found} == set(of_seed.step)
        for name in ("train_loss", "ood.mse", "id.rendered"):
            for step, value in zip(of_seed.step, of_seed[name], strict=True):
                assert found[name.replace(".", "/"), step] == pytest.approx(value, rel=1e-6)
    assert not (tiny_run[0] / "tensorboard").exists()
