from pathlib import Path

import chex
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.training import checkpoints
from compgen_jax.training.checkpoints import Checkpoint, CheckpointError
from compgen_jax.training.loop import TrainState


def state(offset=0.0):
    params = {"layer": {"kernel": jnp.arange(600.0).reshape(2, 300) + offset}}
    return TrainState(params, ({"count": jnp.array([3, 4])},), jnp.array([7, 7]))


def test_round_trip_keeps_every_bit_and_the_newest(tmp_path):
    assert checkpoints.restore_latest(tmp_path / "none", state()) is None
    for step in (5, 10, 15):
        checkpoints.save(tmp_path, Checkpoint(step, state(step / 3), [{"step": step, "x": None}]))
    found = checkpoints.restore_latest(tmp_path, state())
    assert found.step == 15 and found.rows == [{"step": 15, "x": None}]
    chex.assert_trees_all_equal(found.state, state(5.0))
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.isdigit()) == ["10", "15"]


def test_half_written_checkpoint_is_not_taken_for_finished(tmp_path):
    checkpoints.save(tmp_path, Checkpoint(5, state(), []))
    (tmp_path / "10.orbax-checkpoint-tmp-1").mkdir()
    assert checkpoints.restore_latest(tmp_path, state()).step == 5


def damage(path: Path, how: str):
    content = bytearray(path.read_bytes())
    if how == "flip":
        content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content[: len(content) // 2] if how == "cut" else content))


# orbax's reader threads outlive a failed restore and complain to a closed event loop
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("how", ["flip", "cut"])
def test_damage_is_named_or_harmless_whichever_file_it_hits(tmp_path, how):
    """Every file of a checkpoint in turn: either an error, or all numbers are intact."""
    rows = [{"step": step, "loss": step / 7} for step in range(60)]
    checkpoints.save(tmp_path, Checkpoint(5, state(), rows))
    errors = 0
    for path in sorted(path for path in (tmp_path / "5").rglob("*") if path.is_file()):
        content = path.read_bytes()
        damage(path, how)
        try:
            found = checkpoints.restore_latest(tmp_path, state())
            assert found.rows == rows
            chex.assert_trees_all_equal(found.state, state())
        except CheckpointError as error:
            errors += 1
            assert str(tmp_path / "5") in str(error) and "\n" not in str(error)
        path.write_bytes(content)
    assert errors >= 2
    assert checkpoints.restore_latest(tmp_path, state()).step == 5


def test_one_changed_digit_of_the_rows_is_found(tmp_path):
    checkpoints.save(tmp_path, Checkpoint(5, state(), [{"ood.mse": 0.125}, {"ood.mse": 0.25}]))
    path = tmp_path / "5" / "record" / "metadata"
    path.write_text(path.read_text().replace("0.125", "0.123"))
    with pytest.raises(CheckpointError, match="its digest does not match its numbers"):
        checkpoints.restore_latest(tmp_path, state())


def test_checkpoint_of_another_shape_is_refused(tmp_path):
    checkpoints.save(tmp_path, Checkpoint(5, state(), []))
    other = state()._replace(params={"layer": {"kernel": jnp.zeros((2, 4))}})
    with pytest.raises(CheckpointError, match="5 is damaged"):
        checkpoints.restore_latest(tmp_path, other)
    assert np.isfinite(checkpoints.restore_latest(tmp_path, state()).state.step).all()
