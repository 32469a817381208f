"""The surface that a notebook uses: each value beside the library's own, or a float64 loop."""

import ast
import errno
import json
import os
import re
import shutil
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import compgen_jax as cg
from compgen_jax import api, presets
from compgen_jax.config import changed
from compgen_jax.runs import measure
from tests.command import refused, snippets
from tests.runs.test_damage import output_of
from tests.trees import TWO_PROGRAMS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def swept(tiny, tmp_path_factory):
    """A sweep of four trials, which share a program."""
    axes = {"training.learning_rate": (1e-3, 1e-2)}
    overrides = {"model.name": "mlp", "training.epochs": 2, "sweep.axes": axes}
    return cg.sweep(tiny, tmp_path_factory.mktemp("sweep") / "run", overrides, progress=False)


def test_importing_the_package_imports_neither_jax_nor_numpy():
    lines = "import sys, compgen_jax; print({'jax', 'numpy', 'pandas'} & set(sys.modules))"
    assert output_of(lines) == "set()\n"


def test_an_editor_reads_the_names_that_are_imported_when_used():
    tree = ast.parse(Path(cg.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    (names,) = (node for node in block.body if isinstance(node, ast.ImportFrom))
    assert ast.unparse(block.test) == "TYPE_CHECKING" and names.module == "compgen_jax.api"
    assert sorted(alias.asname or alias.name for alias in names.names) == sorted(cg.__all__)
    assert len(set(cg.__all__)) == len(cg.__all__) and set(cg.__all__) <= set(dir(cg))
    assert all(getattr(cg, name) is getattr(api, name) for name in cg.__all__)


LIGHT = """
import os, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import numpy as np
from absl.testing import flagsaver
import compgen_jax as cg
from compgen_jax import cli
from launch import probe, score

def call(command, *arguments):
    with flagsaver.flagsaver():
        cli._parse(["command", *arguments])
        command.main()

os.chdir(sys.argv[1])
print(cg.held_out("x > 1", {"x": [0, 1, 2]}).tolist())
call(score, "--template=points.npz", "--task=bump_cnn_quick")
cells = dict(np.load("points.npz"))
np.savez("mine.npz", predictions=np.stack([cells["targets"]] * 2), seeds=np.arange(2))
call(score, "--predictions=mine.npz", "--task=bump_cnn_quick")
layers, factors, held_out = (cells[name] for name in ("codes", "points", "held_out"))
np.savez("layers.npz", **{"layers.code": layers}, factors=factors, held_out=held_out)
call(probe, "--activations=layers.npz")
print(cg.score(cells["targets"], "bump_cnn_quick"))
print(cg.probe({"code": layers}, factors, held_out))
print(cg.geometry({"code": np.tile(np.eye(2), (len(layers), 1, 1))}))
print(cg.free_score("bump_cnn_quick", progress=False))
print("all of it")
"""


def requirements_of(names: list[str]) -> set[str]:
    """Installed distributions that these are or require, without extras."""
    found, waiting = set(), list(names)
    while waiting:
        name = re.sub("[-_.]+", "-", waiting.pop()).lower()
        if name not in found:
            found.add(name)
            lines = (line.partition(";") for line in metadata.requires(name) or ())
            waiting += [re.match(r"[\w.-]+", line)[0] for line, _, where in lines if not where]
    return found


def test_scoring_and_probing_need_what_the_page_installs(tmp_path):
    page = (ROOT / "docs/how_to/score.md").read_text()
    packages, alone = re.findall(r"^pip install (?:--no-deps )?(.*)$", page, re.M)
    needed = requirements_of(packages.split()) | {alone.split()[0], "compgen-jax"}
    assert not needed & {"orbax-checkpoint", "tensorstore", "matplotlib", "jinja2"}
    refused_modules = {
        module
        for module, names in metadata.packages_distributions().items()
        if not needed & {re.sub("[-_.]+", "-", name).lower() for name in names}
    }
    assert {"orbax", "matplotlib", "jinja2", "tensorstore"} <= refused_modules
    printed = output_of(LIGHT.replace("REFUSED", repr(refused_modules)), str(tmp_path))
    assert printed.startswith("[False, False, True]\n256 cells")
    assert "the held-out cells are composed: reproduced" in printed
    assert "wrote probe.json" in printed and printed.endswith("all of it\n")


# --- train -----------------------------------------------------------------------------------


def test_a_config_is_a_presets_name_or_an_object_with_overrides(tiny, tmp_path, monkeypatch):
    train = Mock(return_value={"mean": {}})
    monkeypatch.setattr(api.study, "train", train)
    monkeypatch.setattr(cg.Run, "load", Mock())
    monkeypatch.setitem(presets.PRESETS, "bump_cnn_quick", tiny)
    overrides = {"training.seeds": [3], "training.learning_rate": 1, "model.name": "mlp"}
    for config in ("bump_cnn_quick", tiny):
        cg.train(config, tmp_path / "run", overrides)
    first, second = (call.args[0] for call in train.call_args_list)
    assert first == second == changed(tiny, overrides)
    assert type(first.training.learning_rate) is float


def test_a_directory_without_a_run_is_one_line(tmp_path, swept):
    for call in (cg.load, cg.analyze, cg.explore):
        with refused("holds no run (no config.json", kind=cg.RunError):
            call(tmp_path)
    with refused("holds a sweep, "):
        cg.analyze(swept.path)
    with refused("no finished run in it", kind=cg.RunError):
        cg.judge(tmp_path)


# --- what a run says -------------------------------------------------------------------------


def test_the_cells_are_what_is_predicted_there_scored_in_float64(run):
    at_cells = run.cells
    predictions = run.predict(at_cells.factors)
    np.testing.assert_allclose(predictions, at_cells.predictions, **TWO_PROGRAMS)
    with refused("must be (B, 2): x, y"):
        run.predict([1.0, 2.0])
    table = run.cell_table()
    assert list(table.columns[:5]) == ["seed", "x", "y", "held_out", "distance"]
    assert set(table.columns[5:]) == set(at_cells.scores)
    for (seed, x, y), row in table.set_index(["seed", "x", "y"]).iloc[::17].iterrows():
        index = int(y * 8 + x)  # the first factor varies fastest
        asked, said = at_cells.truths[index], predictions[(0, 7).index(seed), index]
        expected = np.square(said.astype(np.float64) - asked).mean()
        assert row["mse"] == pytest.approx(expected, rel=1e-5)
        assert row["held_out"] == (3 <= x <= 5 and 3 <= y <= 5)
        assert row["rendered"] == at_cells.scores["rendered"][(0, 7).index(seed), index]


def test_layers_of_every_seed_are_read_patched_and_ablated(run):
    points = np.float32([[2, 3], [4.5, 1], [6, 6]])
    outputs, kernels = run.predict(points), run.params["params"]
    hidden = run.activations("layer_03", points)
    image = kernels["image"]
    expected = 1 - np.einsum("sbh,shp->sbp", hidden, image["kernel"]) - image["bias"][:, None]
    np.testing.assert_allclose(outputs.reshape(2, 3, -1), expected, rtol=1e-4, atol=1e-5)
    assert hidden.shape == (2, 3, 8) and (hidden >= 0).all()
    unchanged = run.intervene({"layer_02": lambda activation: activation}, points)
    np.testing.assert_allclose(unchanged, outputs, **TWO_PROGRAMS)
    swapped = run.intervene({"layer_02": run.activations("layer_02", points[::-1])}, points)
    np.testing.assert_allclose(swapped, outputs[:, ::-1], **TWO_PROGRAMS)
    ablated = run.intervene({"layer_03": jnp.zeros_like}, points).reshape(2, 3, -1)
    bias = np.repeat(1 - image["bias"][:, None], 3, axis=1)
    np.testing.assert_allclose(ablated, bias, rtol=1e-6)
    late = run.late.intervene({"layer_03": jnp.zeros_like}, points)
    np.testing.assert_allclose(late[:, -1].reshape(2, 3, -1), bias, rtol=1e-6)
    with refused("layer 'layer_9': no such layer; nearest: layer_03, layer_02, layer_01"):
        run.activations("layer_9", points)
    with refused("layer 'layer_02': replaced by (3,), must be (8,)"):
        run.intervene({"layer_02": lambda activation: activation[:3]}, points)
    with refused("must be (B, 2): x, y"):
        run.intervene({}, points[0])


def test_the_snippet_of_the_page_patches_one_point_with_another(run):
    (snippet,) = (text for text in snippets("load") if "intervene" in text)
    names = {"run": run}
    exec(snippet, names)
    np.testing.assert_allclose(names["patched"], run.predict([[2, 3]]), **TWO_PROGRAMS)
    assert np.abs(names["ablated"] - run.predict([[8, 7.5]])).max() > 0.01


def test_an_intervention_has_gradients(run):
    """By the points, against differences; by a scale of the last hidden layer, in closed form."""
    points = jnp.float32([[2.2, 3.3], [4.6, 1.4]])

    def drawn(points, scale):
        outputs = run.intervene({"layer_03": lambda hidden: scale * hidden}, points)
        return jnp.sum(outputs[:, :, 2:5])

    of_points, of_scale = jax.jit(jax.grad(drawn, argnums=(0, 1)))(points, 1.5)
    value = jax.jit(drawn)
    for index in np.ndindex(2, 2):
        ends = [float(value(points.at[index].add(step), 1.5)) for step in (0.02, -0.02)]
        assert float(of_points[index]) == pytest.approx(
            (ends[0] - ends[1]) / 0.04, rel=0.05, abs=0.02
        )
    kernel = run.params["params"]["image"]["kernel"].reshape(2, 8, 8, 8)[:, :, 2:5]
    hidden = np.asarray(run.activations("layer_03", points))
    assert float(of_scale) == pytest.approx(-np.einsum("sbh,shyx->", hidden, kernel), rel=1e-4)
    donor = run.activations("layer_03", points)
    by_patch = jax.grad(lambda patch: run.intervene({"layer_03": patch}, points)[:, :, 0, 0].sum())
    first = run.params["params"]["image"]["kernel"][:, None, :, 0]
    np.testing.assert_allclose(by_patch(donor), -np.repeat(first, 2, axis=1), rtol=1e-5)


def test_the_table_of_metrics_and_the_summary_are_those_of_the_files(run, tiny, tiny_run):
    table = run.metrics()
    assert table["ood.mse"].tolist() == pd.read_csv(run.path / "metrics.csv")["ood.mse"].tolist()
    rows_of = [[epoch, seed] for epoch in (2, 4, 6) for seed in (0, 7)]
    assert table[["epoch", "seed"]].values.tolist() == rows_of
    assert run.summary == tiny_run[1] and run.config == tiny
    assert cg.train(tiny, run.path).summary == tiny_run[1]  # finished: nothing to train


def test_the_layers_are_measured_once_and_the_verdicts_are_those_of_claims_json(run, monkeypatch):
    table = cg.analyze(run.path, progress=False)
    r2 = run.layers("probe.ood_r2")
    of_metric = table[table.metric == "probe.ood_r2"].sort_values(["seed", "layer"])
    np.testing.assert_allclose(of_metric.value.to_numpy(), r2.ravel())
    monkeypatch.setattr(measure, "take", None)  # would fail
    assert run.layers().equals(table)
    table = cg.judge(run.path)
    rows = json.loads((run.path / "claims.json").read_text())
    for found, row in zip(table.to_dict("records"), rows, strict=True):
        first = next(iter(row["conditions"].values()))
        assert [found["value"], found["low"], found["high"]] == [first["value"], *first["ci95"]]
        assert all(found[name] == row[name] for name in ("claim", "case", "verdict", "reason"))
    of_papers = [row | {"claim": "C1"} for row in rows]
    monkeypatch.setattr(api.papers_judge, "judge_folders", lambda *_: (of_papers, {}))
    assert list(cg.judge(run.path).claim) == ["composition", "C1"]
    assert json.loads((run.path / "claims.json").read_text()) == rows + of_papers


def test_what_may_not_be_written_is_measured_and_judged(run, tmp_path, monkeypatch, capsys):
    written = shutil.ignore_patterns("analysis.*", "layers.csv", "claims.json")
    workdir = shutil.copytree(run.path, tmp_path / "run", ignore=written)
    layers, verdicts = run.layers(progress=False), cg.judge(run.path)

    def refuse(path, content):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(api.directory, "write_bytes", refuse)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    assert cg.load(workdir).layers(progress=False).equals(layers)
    assert cg.judge(workdir).equals(verdicts)
    warning = f"warning: {workdir}: Read-only file system; numbers are given, but not kept\n"
    assert capsys.readouterr().err == 2 * warning


# --- sweeps ----------------------------------------------------------------------------------


def test_a_sweep_is_loaded_with_a_row_for_each_trial(swept):
    loaded = cg.load(swept.path)
    assert type(loaded) is cg.Sweep and loaded.summary == swept.summary
    table = loaded.trials()
    rates = sorted(zip(table["training.learning_rate"], table["seed"], strict=True))
    assert rates == [(1e-3, 0), (1e-3, 7), (1e-2, 0), (1e-2, 7)]
    faster = table[table["training.learning_rate"] == 1e-2]["seen.mse"]
    mean = swept.summary["means"][1]
    assert mean["seen.mse"]["value"] == pytest.approx(faster.mean(), rel=1e-6)


def test_a_sweep_whose_table_is_damaged_later_is_refused(swept, tmp_path):
    loaded = cg.load(shutil.copytree(swept.path, tmp_path / "copy"))
    path = loaded.path / "trials.csv"
    text = path.read_text()
    for damaged in ("", text[: len(text) // 2], text.replace("seed", "sxed", 1)):
        path.write_text(damaged)
        with pytest.raises(cg.RunError, match="trials.csv"):
            loaded.trials()


# --- drawings and bars -----------------------------------------------------------------------


def shown(axis):
    return np.asarray(axis.images[0].get_array())


def test_a_point_is_drawn_as_asked_drawn_and_difference(run):
    figure = run.draw(2, 3.5)
    assert figure.get_suptitle() == "What each seed draws of x = 2, y = 3.5 (not held out)"
    asked, first, second, empty, *differences = figure.axes
    predictions = run.predict([[2, 3.5]])[:, 0]
    columns, rows = np.meshgrid(np.arange(8.0), np.arange(8.0))
    sigma = run.config.task.image.sigma
    bump = np.exp(-(np.square(columns - 2) + np.square(rows - 3.5)) / (2 * sigma**2))
    np.testing.assert_allclose(shown(asked) / shown(asked).max(), bump / bump.max(), atol=1e-5)
    for axis, difference, image in zip((first, second), differences, predictions, strict=True):
        np.testing.assert_allclose(shown(axis), image, **TWO_PROGRAMS)
        np.testing.assert_allclose(shown(difference), image - shown(asked), atol=1e-6)
    assert not empty.axison
