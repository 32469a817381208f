"""A model of the user's own, whose layers have names of their own and whose file may change."""

import pytest

from compgen_jax.config import changed
from compgen_jax.runs import experiment
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from tests.runs.test_user_code import rewrite

OWN = """
import math
from dataclasses import dataclass

from flax import linen as nn

from compgen_jax.models.model import Model


class Towers(nn.Module):
    shape: tuple

    @nn.compact
    def __call__(self, code):
        trunk = nn.relu(nn.Dense(8)(code))
        head = nn.relu(nn.Dense(6)(trunk))
        image = nn.Dense(math.prod(self.shape))(head).reshape(self.shape)
        return image, {"trunk": trunk, "head": head}


@dataclass(frozen=True)
class Mine(Model):
    def make(self, shapes):
        return Towers(shapes.output.shape)
"""


@pytest.fixture(scope="module")
def trained(tiny, tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "towers.py"
    path.write_text(OWN)
    config = changed(tiny, {"model.name": f"{path}:Mine"})
    workdir = tmp_path_factory.mktemp("towers") / "run"
    experiment.train(config, workdir, progress=False)
    return path, workdir


def test_layers_are_in_the_models_order(trained):
    """Which is not that of the alphabet."""
    run = Run.load(trained[1])
    assert run.layer_names == ("trunk", "head", "output")
    assert run.layers("decode.id_r2").shape == (2, 2)


def test_a_file_that_makes_another_model_is_one_line(trained):
    path, workdir = trained
    assert Run.load(workdir).summary
    rewrite(path, "head = nn.relu", "head = nn.tanh")
    message = r"^[^\n]*towers.py:Mine no longer makes the model that[^\n]*$"
    with pytest.raises(RunError, match=message):
        Run.load(workdir)
    rewrite(path, "head = nn.tanh", "head = nn.relu")
    assert Run.load(workdir).summary
    rewrite(path, "# x", "# of the user's own: x")
    assert Run.load(workdir).summary  # a comment is no change
