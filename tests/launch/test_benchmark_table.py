"""The suite of tables at sizes of a second; nothing is timed."""

import jax
import numpy as np
import pytest

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.models.upsampling import Upsampling
from compgen_jax.tasks import table_files
from compgen_jax.tasks.table import ImageTable
from compgen_jax.training import loop
from launch.suites import table

COUNTS = 1, 2, 2, 2, 3, 3


@pytest.fixture
def config(tmp_path):
    path = table.write(tmp_path / "x.npz", COUNTS)
    task = ImageTable(path=str(path), code=table.CodesConfig(name="value"))
    return Config(task=task, model=Upsampling(layout="kim"), training=TrainingConfig(steps=4))


def test_rows_name_our_step_and_the_share_of_its_lookup(monkeypatch):
    monkeypatch.setattr(table, "LOADERS", [])
    rows = table.run(1, {"tiny": COUNTS}, steps=2, side=8)
    assert [row["contender"] for row in rows] == [table.SINGLE, table.LOOKUP]
    ours, lookup = (row["ms per step and trial"] for row in rows)
    assert [row["lookup, share of our step"] for row in rows] == [lookup / ours] * 2
    assert rows[0]["table"] == "tiny, 0 MB" and ours > 0 < lookup


def test_the_file_is_dsprites_in_small(config):
    found = table_files.read(config.task.path)
    assert [len(factor.values) for factor in found.factors] == list(COUNTS[1:])
    assert found.images.shape == (72, 64, 64) and found.exists_B.all() and found.white == 1
    last = [factor.values[-1] for factor in found.factors]
    np.testing.assert_allclose(np.load(config.task.path)["latents_values"][-1], [1, *last])
    assert len(found.factors) == table.FACTORS


def test_operations_are_counted_as_multiplied():
    """kim: 5 x 256 + 256 x 1024, then 16 taps at 4^2, 8^2, 16^2 and 32^2 pixels."""
    pairs = (16, 64, 64), (64, 64, 32), (256, 32, 32), (1024, 32, 1)
    products = 5 * 256 + 256 * 1024 + sum(16 * n * a * b for n, a, b in pairs)
    config = Config(model=Upsampling(layout="kim"), training=TrainingConfig(batch_size=64))
    assert table.step_flops(config) == 3 * 2 * 64 * products


def test_pytorchs_decoder_has_as_many_parameters_and_learns(config):
    torch = pytest.importorskip("torch")
    ours = jax.eval_shape(loop.make_trainer(config).init, jax.random.key(0)).params
    count = sum(leaf.size for leaf in jax.tree.leaves(ours))
    model = table.torch_decoder(config)
    assert sum(torch.numel(parameter) for parameter in model.parameters()) == count == 380_033
    assert model(torch.zeros(2, 5)).shape == (2, 1, 64, 64)
    table.torch_steps(config, 2, 0, "channels_last")()
