"""What a user's own task and model give is checked before anything is compiled, in one line."""

import jax
import pytest

from compgen_jax.config import Config, ConfigError, SweepConfig, TrainingConfig, changed
from compgen_jax.runs import experiment
from compgen_jax.sweeps import sweep
from compgen_jax.training import contracts, loop

OWN = """
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from compgen_jax.models.model import Model
from compgen_jax.settings import Family, number
from compgen_jax.tasks.task import Example, Factor, over_cells


@dataclass(frozen=True)
class Waves(Family):
    share: float = number(0.5, traced=True)

    def make(self):
        factors = [Factor(name, np.arange(4.0)) for name in ("frequency", "phase")]
        held_out = lambda points: (points[..., 0] > 2) & (points[..., 1] > 2)

        def example(key, point):
            target = jnp.sin(point[0] * jnp.arange(16) / 4 + point[1])
            return Example(point, target)

        scores = lambda said, true, point: {"mse": jnp.mean((said - true) ** 2)}
        return over_cells(factors, held_out, example, scores=scores)


class Net(nn.Module):
    outputs: int

    @nn.compact
    def __call__(self, code):
        hidden = nn.relu(nn.Dense(8)(code))
        return nn.Dense(self.outputs)(hidden), {"layer_00": code, "layer_01": hidden}


@dataclass(frozen=True)
class Mine(Model):
    width: int = number(8)

    def make(self, shapes):
        return Net(shapes.output.size)
"""
TRAINING = TrainingConfig(steps=2, evaluate_every=1, seeds=(0,))


@pytest.fixture
def write(tmp_path):
    """write(old, new): the config of the file with one change."""

    def change(old="", new="") -> Config:
        folder = tmp_path / f"files_{len(list(tmp_path.iterdir()))}"  # a module is imported once
        folder.mkdir()
        path = folder / "mine.py"
        assert old in OWN
        path.write_text(OWN.replace(old, new, 1).lstrip())
        names = {"task.name": f"{path}:Waves", "model.name": f"{path}:Mine"}
        return changed(Config("waves", training=TRAINING), names)

    return change


EXAMPLE, MASK, SCORES = "Example(point, target)", "(points[..., 1] > 2)\n", "scores=scores"
OUTPUT, LAYERS = "Net(shapes.output.size)", '{"layer_00": code, "layer_01": hidden}'
NO_EXAMPLE, NO_PAIR = "not an Example(input, target) of arrays", "not (output, activations): an arr"
CASES = {
    "a plain tuple": (EXAMPLE, "point, target", f"Waves: example returned a tuple, {NO_EXAMPLE}"),
    "a tuple of three": (EXAMPLE, "point, target, 1.0", NO_EXAMPLE),
    "no target": (EXAMPLE, "Example(point, ())", NO_EXAMPLE),
    "text": (EXAMPLE, "Example(point, 'sine')", "mine.py: TypeError: "),
    "no task": ("        return over_cells", "        over_cells", "make() returned a NoneType"),
    "one name": ('"frequency", "phase"', '"phase", "phase"', "two factors have one name: phase"),
    "descending": ("np.arange(4.0)", "np.arange(4.0)[::-1]", "'frequency': its values must be as"),
    "a branch": ("target = jnp", "target = 0 if point[0] > 2 else jnp", "line 22: TracerBoolC"),
    "a mask of numbers": (MASK, f"{MASK.strip()} + 0.0\n", "TypeError: "),
    "a mask of floats": (
        SCORES, f"{SCORES})._replace(held_out=lambda points: points[..., 0]",
        "held_out returned float32 (16,) for points (16, 2), not bool (16,)",
    ),
    "a size": (SCORES, f"{SCORES}, output=(16,)", "output=(16,): must hold arrays, or jax.Sha"),
    "a loss": (SCORES, f"{SCORES}, loss=lambda a, b: a - b", "loss returned (16,), not a scalar"),
    "a prediction": (
        SCORES, f"{SCORES}, prediction=lambda a: a[:2], truth=lambda a: a",
        "prediction returned (2,), and truth (16,): they must have one shape",
    ),
    "a score": ("jnp.mean((said - true) ** 2)", "said - true", "scores returned {'mse': (16,)}"),
    "no error": ('{"mse"', '{"mae"', "error='mse' is none of its scores: mae"),
    "no accuracy": (SCORES, f"{SCORES}, accuracy='right'", "accuracy='right' is none of its"),
    "another shape": (OUTPUT, "Net(12)", "Mine: its output is (12,), and the task asks for (16,)"),
    "no pair": (f", {LAYERS}", "", f"its module returned one array, {NO_PAIR}"),
    "no activations": (LAYERS, "{}", "and a dict of at least one array by layer name"),
    "a list": (LAYERS, "[code]", NO_PAIR),
    "a layer of two": ('_01": hidden', '_01": (hidden, code)', "its activations must be one array"),
    "no module": (f"return {OUTPUT}", OUTPUT, "returned a NoneType, not a Flax module"),
    "a bug": ("nn.relu(", "nn.rely(", "line 34: AttributeError: "),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_in_a_users_file_is_one_line(write, case):
    old, new, message = CASES[case]
    config = write(old, new)
    with pytest.raises(ConfigError) as error:
        loop.check(config)
    text = str(error.value)
    assert message in text and "mine.py" in text and "\n" not in text


def test_nothing_is_compiled_or_written_before_the_check(write, tmp_path):
    assert loop.check(write()).examples == 15
    config = write("Net(shapes.output.size)", "Net(12)")
    with contracts.compiled() as names, pytest.raises(ConfigError, match="its output is"):
        experiment.train(config, tmp_path / "run", progress=False)
    axes = SweepConfig({"model.width": (4, 8)})
    swept = changed(config, {"sweep.axes": axes.axes})
    with pytest.raises(ConfigError, match="config.sweep: model.width=4: .* its output is"):
        sweep.run(swept, tmp_path / "sweep", progress=False)
    assert not names and {path.name for path in tmp_path.iterdir()} == {"files_0", "files_1"}


def test_what_a_task_compiles_for_every_value_of_a_traced_field_is_said_once(write, capsys):
    axes = {"sweep.axes": (("task.share", (0.1, 0.2, 0.3)),)}
    for new, said in (("", 0), ("        held_out = jax.jit(held_out)\n", 1)):
        config = changed(write("\n        def example", f"{new}\n        def example"), axes)
        sweep.check(config, sweep.plan.first_trials(config))
        errors = capsys.readouterr().err
        assert errors.count("compiled anew for each value of a traced field") == said
        assert errors.count("\n") == said
    assert "mine.py:Waves: <lambda> compiled" in errors


def test_the_names_of_what_jax_compiles():
    def once(x):
        return x + 1

    with contracts.compiled() as names:
        jax.jit(once)(1.0)
    jax.jit(lambda x: x + 2)(1.0)
    assert names == ["once"]
