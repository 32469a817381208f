"""The notebooks run from top to bottom: with tiny settings, and nothing else changed."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
TINY = {
    "first_look": {
        "task.grid": 8,
        "task.support.high": 4,
        "task.support.samples": 96,
        "model.name": "mlp",
        "model.depth": 2,
        "training.epochs": 20,
        "training.seeds": (0, 3),
    },
    "own_task": {"training.steps": 60, "training.evaluate_every": 30, "training.seeds": (0, 3)},
}


@pytest.mark.parametrize("name", TINY)
def test_a_notebook_runs_and_is_committed_without_outputs(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # the kernel starts in another directory
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # it compiles more than it computes
    notebook = nbformat.read(ROOT / "docs" / "tutorials" / f"{name}.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code)
    (parameters,) = [cell for cell in code if "parameters" in cell.metadata.get("tags", ())]
    assert parameters.source.startswith("overrides = ")
    parameters.source = f"overrides = {TINY[name]}"
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=place).execute()
    results = {
        cell.source: output["data"]
        for cell in code
        for output in cell.outputs
        if output.output_type == "execute_result"
    }
    drawings = [data for source, data in results.items() if "run.draw(" in source]
    assert drawings and all("image/png" in data for data in drawings)
    verdicts = [data["text/plain"] for source, data in results.items() if "cg.judge(" in source]
    assert re.search("reproduced|contradicted|inconclusive", verdicts[0])
