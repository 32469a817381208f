import hashlib
import json
import shutil

import chex
import jax.numpy as jnp
import pytest

from compgen_jax.training import checkpoints
from compgen_jax.training.checkpoints import Checkpoint, RunError
from compgen_jax.training.loop import TrainState
from tests.command import refused


def state(offset=0.0):
    params = {"layer": {"kernel": jnp.arange(600.0).reshape(2, 300) + offset}}
    return TrainState(params, ({"count": jnp.array([3, 4])},), jnp.array([7, 7]))


def save(directory, step, offset=0.0, rows=(), **keep):
    checkpoints.save(directory, Checkpoint(step, state(offset), list(rows)), **keep)


def restore_latest(directory, template=None):
    return checkpoints.restore(directory, checkpoints.steps(directory)[-1], template or state())


def test_a_round_trip_keeps_every_bit_the_newest_and_the_steps_to_keep(tmp_path):
    assert checkpoints.steps(tmp_path / "none") == []
    for step in (5, 10, 15):
        save(tmp_path, step, step / 3, [{"step": step, "x": None}])
    found = restore_latest(tmp_path)
    assert found.step == 15 and found.rows == [{"step": 15, "x": None}]
    chex.assert_trees_all_equal(found.state, state(5.0))
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == [10, 15]
    for step in (20, 25):
        save(tmp_path, step, keep=(10, 25))
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == [10, 20, 25]
    chex.assert_trees_all_equal(checkpoints.restore(tmp_path, 10, state()).state, state(10 / 3))
    with pytest.raises(RunError, match="15 is missing; train again in another --workdir"):
        checkpoints.restore(tmp_path, 15, state())


@pytest.mark.parametrize(
    ("killed_in", "call"),
    [("_shapes", 1), ("_digest", 1), ("_write", 1), ("_write", 2)],
)
def test_a_save_that_was_killed_leaves_the_one_before(tmp_path, monkeypatch, killed_in, call):
    """And what it wrote is gone after the next save."""
    save(tmp_path, 5)
    function, calls = getattr(checkpoints, killed_in), []

    def killed(*args):
        calls.append(args)
        if len(calls) == call:
            raise KeyboardInterrupt
        return function(*args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoints, killed_in, killed)
        save(tmp_path, 10, 1.0)
    assert len(list(tmp_path.iterdir())) == 2 and checkpoints.steps(tmp_path) == [5]
    chex.assert_trees_all_equal(restore_latest(tmp_path).state, state())
    save(tmp_path, 10, 1.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["10", "5"]
    chex.assert_trees_all_equal(restore_latest(tmp_path).state, state(1.0))


def test_without_room_nothing_is_written_and_the_one_before_stays(tmp_path, monkeypatch):
    save(tmp_path, 5)
    needed = 600 * 4 + 2 * 4 + 2 * 4
    disk = lambda free: lambda path: shutil._ntuple_diskusage(10**9, 10**9 - free, free)
    monkeypatch.setattr(shutil, "disk_usage", disk(needed - 1))
    with pytest.raises(RunError, match="10 cannot be written: it takes 0.00242 MB, and"):
        save(tmp_path, 10, 1.0)
    chex.assert_trees_all_equal(restore_latest(tmp_path).state, state())
    monkeypatch.setattr(shutil, "disk_usage", disk(needed))
    save(tmp_path, 10, 1.0)
    assert checkpoints.steps(tmp_path)[-1] == 10


def test_a_checkpoint_of_another_shape_or_with_one_changed_digit_is_refused(tmp_path):
    save(tmp_path, 5, rows=[{"ood.mse": 0.125}, {"ood.mse": 0.25}])
    other = state()._replace(params={"layer": {"kernel": jnp.zeros((2, 4))}})
    with pytest.raises(RunError, match="5 has arrays of other shapes than this config's"):
        restore_latest(tmp_path, other)
    listed, path = tmp_path / "5" / "files.json", tmp_path / "5" / "record.json"
    content = listed.read_bytes()
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    digest = hashlib.sha256(b"").hexdigest()  # right, so that the name alone is wrong
    for name in ("../outside", str(outside), "state/../../outside", "/dev/null", "x" * 300, "\0"):
        listed.write_text(json.dumps(json.loads(content) | {name: digest}))
        with refused("5 is damaged", "is not what was written", kind=RunError):
            restore_latest(tmp_path)
    listed.write_bytes(content)
    path.write_text(path.read_text().replace("0.125", "0.123"))
    with pytest.raises(RunError, match="record.json is not what was written"):
        restore_latest(tmp_path)
