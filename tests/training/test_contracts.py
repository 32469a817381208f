"""What a user's own task and model give is checked before anything is compiled, in one line."""

import jax
import pytest

from compgen_jax.config import Config, ConfigError, TrainingConfig, changed
from compgen_jax.runs import study, sweeps, user_code
from compgen_jax.training import contracts
from tests.command import refused
from tests.conftest import OWN_TASK

TASK = OWN_TASK.replace("above=0)", "above=0, traced=True)")
OWN = f"""
import jax
{TASK.lstrip()}

from flax import linen as nn

from compgen_jax.models.model import Model


class Net(nn.Module):
    outputs: int

    @nn.compact
    def __call__(self, code):
        hidden = nn.relu(nn.Dense(8)(code))
        return nn.Dense(self.outputs)(hidden), {{"layer_00": code, "layer_01": hidden}}


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
        path = tmp_path / f"mine_{len(list(tmp_path.iterdir()))}.py"  # a module is imported once
        assert old in OWN
        path.write_text(OWN.replace(old, new, 1).lstrip())
        names = {"task.name": f"{path}:Turned", "model.name": f"{path}:Mine"}
        return changed(Config("turned", training=TRAINING), names)

    return change


EXAMPLE, MADE = "Example(jnp.concatenate([label, wave]), target)", "held_out, example)"
NET = "nn.relu(nn.Dense(8)(code))\n        return nn.Dense(self.outputs)(hidden)"
OUTPUT, LAYERS = "Net(shapes.output.size)", '{"layer_00": code, "layer_01": hidden}'
NO_EXAMPLE, NO_PAIR = "not an Example(input, target) of arrays", "not (output, activations): an arr"
CASES = {
    "a plain tuple": (EXAMPLE, "label, target", f"Turned: example returned a tuple, {NO_EXAMPLE}"),
    "no task": ("return over_cells", "over_cells", "make() returned a NoneType"),
    "a branch": ("turn = point[1]", "turn = 0 if point[1] > 2 else 1", "line 27: TracerBoolC"),
    "an exit": ("turn = point[1]", "exit()", "line 27: SystemExit: "),
    "a mask of floats": (
        MADE, f"{MADE}._replace(held_out=lambda points: points[..., 0])",
        "held_out returned float32 (40,) for points (40, 2), not bool (40,)",
    ),
    "a size": (MADE, f"{MADE}._replace(output=(12,))", "output=(12,): must hold arrays, or jax.S"),
    "a loss": (MADE, f"{MADE}._replace(loss=lambda a, b: a - b)", "loss returned (12,), not a sca"),
    "a prediction": (
        MADE, f"{MADE}._replace(prediction=lambda a: a[:2], truth=lambda a: a)",
        "prediction returned (2,), and truth (12,): they must have one shape",
    ),
    "a score": (
        MADE, f"{MADE}._replace(scores=lambda a, b, point: {{'mse': a}})",
        "scores returned {'mse': (12,)}",
    ),
    "no error": (MADE, f"{MADE}._replace(error='mae')", "error='mae' is none of its scores: "),
    "another shape": (OUTPUT, "Net(13)", "Mine: its output is (13,), and the task asks for (12,)"),
    "no pair": (f", {LAYERS}", "", f"its module returned one array, {NO_PAIR}"),
    "a layer of two": ('_01": hidden', '_01": (hidden, code)', "its activations must be one array"),
    "chance": (EXAMPLE, EXAMPLE[:-1] + " + np.random.normal())", "its targets.0 differ each time"),
    "an error of the truth": (
        MADE, f"{MADE}._replace(scores=lambda a, b, point: {{'mse': jnp.mean((2 * a - b) ** 2)}})",
        "Turned: the truth itself has mse 0.1",
    ),
    "no parameters": (NET, "code\n        return jnp.zeros(12)", "its module has no parameters"),
    "a field of the family": (
        "outputs: int", "outputs: int\n    batched: bool = True", "Mine: batched of its module: say"
    ),
    "a bug": ("nn.relu(", "nn.rely(", "line 45: AttributeError: "),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_in_a_users_file_is_one_line(write, tmp_path, case):
    old, new, message = CASES[case]
    config = write(old, new)
    with refused(message, "mine_0.py", kind=ConfigError):
        user_code.check(tmp_path / "run", config, contracts.check(config))


def test_nothing_is_compiled_or_written_before_the_check(write, tmp_path, monkeypatch):
    assert contracts.check(write()).examples == 38
    config = write("Net(shapes.output.size)", "Net(13)")
    compiled = []
    monkeypatch.setattr(jax.stages.Lowered, "compile", compiled.append)
    swept = changed(config, {"sweep.axes": (("model.width", (4, 8)),)})
    with pytest.raises(ConfigError, match="its output is"):
        study.train(config, tmp_path / "run")
    with pytest.raises(ConfigError, match="config.sweep: model.width=4, seed=0: .* its output is"):
        sweeps.run(swept, tmp_path / "sweep")
    assert not compiled and not {"run", "sweep"} & {path.name for path in tmp_path.iterdir()}
