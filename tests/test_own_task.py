"""Tasks from outside the package, each in a file: they train, resume, are
swept, analysed, judged and drawn, with no word about them inside."""

from pathlib import Path

import numpy as np
import pytest

from compgen_jax import claims, cli
from compgen_jax.config import Config, changed, to_dict
from compgen_jax.models.mlp import MLP
from compgen_jax.runs import directory, judge_run, study
from compgen_jax.runs.run import Run
from figures import draw_run as figure_of_run
from figures import plotting
from tests.interrupts import interrupted_after_a_save

ROOT = Path(__file__).parent.parent
SPRITES, ADDITION = ROOT / "docs" / "tutorials" / "own_task.py", ROOT / "tests" / "own_addition.py"
FEW = {"training.steps": 30, "training.evaluate_every": 15, "training.seeds": (0, 3)}
CELLS = {SPRITES: ((3, 12, 5), (12, 12, 3)), ADDITION: ((5, 5), (5,))}
pytestmark = pytest.mark.usefixtures("numpy_rules")


@pytest.mark.parametrize("path", CELLS, ids=lambda path: path.stem)
def test_a_task_in_a_file_trains_resumes_is_analysed_judged_and_drawn(path, tmp_path):
    config = changed(cli.load_config(f"{path}:quick"), FEW)
    whole = study.train(config, tmp_path / "whole", progress=False)

    with interrupted_after_a_save():
        study.train(config, tmp_path / "killed", progress=False)
    # from the directory alone: its config names the file
    remembered = directory.read_config(tmp_path / "killed")
    assert to_dict(remembered) == to_dict(config) and remembered.task.name.startswith(str(path))
    assert study.train(remembered, tmp_path / "killed", progress=False) == whole

    run = Run.load(tmp_path / "whole")
    cells = run.cells
    sizes, shape = CELLS[path]
    assert cells.predictions.shape == (2, np.prod(sizes), *shape)
    assert run.layers("probe.id_accuracy").shape[0] == 2
    assert run.maps["held_out"].shape == sizes[::-1]
    if path == ADDITION:  # the model's order, not the alphabet's
        assert run.layer_names[:2] == ("summed", "hidden")
    assert ("volume" in run.maps) == (path == SPRITES)  # labels have no derivative
    (row,) = judge_run.judge_directory(tmp_path / "whole")
    assert row["verdict"] in claims.HOLDS and row["claim"] == "composition"
    drawn = figure_of_run.draw(run)
    lines = {line.get_label(): line.get_ydata() for line in drawn.axes[1].get_lines()}
    assert all(np.isfinite(values).any() for values in lines.values())
    assert "probe accuracy OOD" in lines and ("probe R² OOD" in lines) == (path == SPRITES)
    plotting.plt.close(drawn)


OWN_CLAIMS = '''
    def claims(self):
        from compgen_jax.claims import above, claim

        @claim("mine", runs={"run": "run"})
        def can_be_read(run):
            """The object can be read off the input."""
            yield above(0.2, run.layers("probe.id_accuracy")[:, 0], "ID accuracy of the probe")

        return (can_be_read,)
'''


def test_a_task_in_a_file_may_ask_claims_of_its_own(own_task, tmp_path):
    path, name = own_task
    made = path.read_text().replace("held_out, example)", "held_out, example, baselines={})")
    path.write_text(made + OWN_CLAIMS)
    config = changed(Config("turned", model=MLP(depth=1, width=8)), FEW | {"task.name": name})
    study.train(config, tmp_path / "run", progress=False)
    composition, own = judge_run.judge_directory(tmp_path / "run")
    assert (composition["claim"], composition["case"]) == ("composition", "turned")
    assert composition["verdict"] == "inconclusive"
    assert (own["claim"], own["verdict"]) == ("mine", "reproduced")
    expected = Run.load(tmp_path / "run").layers("probe.id_accuracy")[:, 0].mean()
    assert own["conditions"]["ID accuracy of the probe"]["value"] == pytest.approx(expected)
