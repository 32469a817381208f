"""Predictions of any framework: scored as a run of ours is, and refused in one line."""

import json
from functools import partial
from pathlib import Path

import chex
import jax.numpy as jnp
import numpy as np
import pytest

import compgen_jax as cg
from compgen_jax.runs import directory, predictions
from compgen_jax.tasks.modules import Modules
from launch import score
from tests.command import call, drawn_by, refused, snippets
from tests.trees import TWO_PROGRAMS

TASK = ["--task=bump_cnn_quick", "--config.task.support.samples=300"]


run_score = partial(call, score, positional=(score.PREDICTIONS,))


def file(folder, **arrays):
    """The path of a .npz that holds them."""
    np.savez(folder / "mine.npz", **arrays)
    return folder / "mine.npz"


def test_predictions_of_a_run_have_its_scores_and_predictors(run, tmp_path):
    path = file(tmp_path, predictions=run.cells.predictions, seeds=np.array(run.seeds))
    scored = predictions.load(path, run.config, run.task)
    assert scored.seeds == run.seeds
    for name, values in run.cells.scores.items():
        np.testing.assert_allclose(scored.cells.scores[name], values, rtol=1e-5, atol=1e-7)
    chex.assert_trees_all_close(scored.trivial, run.trivial, **TWO_PROGRAMS)
    held_out = run.cells.held_out
    for numbers, drawn in zip(
        predictions.numbers(scored).values(), run.cells.predictions, strict=True
    ):
        error = np.square(drawn - run.cells.truths)[held_out]
        assert numbers["ood.mse"] == pytest.approx(error.mean(), rel=1e-5)


@pytest.mark.parametrize(("gain", "verdict"), [(1.0, "reproduced"), (0.0, "inconclusive")])
def test_the_command_judges_and_prints_and_the_page_draws(
    tmp_path, monkeypatch, capsys, gain, verdict
):
    """Right answers compose; a network that draws nothing anywhere has not learnt its task."""
    monkeypatch.chdir(tmp_path)
    run_score("--template=seed_0.npz", *TASK, "--seed=3")
    counts = "256 cells, of which 100 are held out; 300 training examples of seed 3"
    assert counts in capsys.readouterr().out
    with np.load("seed_0.npz") as given:
        targets = given["targets"]
    np.savez("predictions.npz", predictions=gain * np.stack([targets, 0.999 * targets]))
    run_score("predictions.npz", *TASK, "--out=out")
    output = capsys.readouterr().out
    assert f"the held-out cells are composed: {verdict}" in output
    assert "\nrendered " in output and "\ninterpolator " in output
    report = json.loads(Path("out", "predictions.json").read_text())
    assert report["mean"]["ood.rendered"]["value"] == gain
    # seeds that agree to the cell show no spread: the interval of a share reaches 1.5 cells
    for region, cells in (("ood", 100), ("id", 156)):
        ends = np.clip([gain - 1.5 / cells, gain + 1.5 / cells], 0, 1)
        assert report["mean"][f"{region}.rendered"]["ci95"] == pytest.approx(ends)
    assert {"nearest_seen", "interpolator"} < set(report["trivial"])
    errors = drawn_by(snippets("score")[-1])["errors"]
    expected = (1 - gain) * np.square(targets).mean(axis=(1, 2))
    np.testing.assert_allclose(errors, expected, atol=1e-6)
    assert Path("predictions.png").exists()


def test_python_scores_arrays_as_the_command_does_a_file(tmp_path, monkeypatch, capsys):
    """The command's text and JSON are those of the object, and a right answer's are known."""
    monkeypatch.chdir(tmp_path)
    overrides = {"task.support.samples": 300}
    run_score("--template=t.npz", *TASK, "--seed=3")
    examples = cg.examples("bump_cnn_quick", 3, overrides=overrides)
    with np.load("t.npz") as saved:
        assert saved.files == list(examples)
        assert all(np.array_equal(saved[name], examples[name]) for name in examples)
    predictions = np.stack([examples["targets"], 0.999 * examples["targets"]])
    np.savez("mine.npz", predictions=predictions, seeds=[4, 6])
    capsys.readouterr()
    run_score("mine.npz", *TASK)
    scores = cg.score(jnp.asarray(predictions), "bump_cnn_quick", [4, 6], overrides)
    assert capsys.readouterr().out == f"mine.npz: {scores}\nwrote mine.json\n"
    report = vars(scores) | {"verdict": [scores.verdict | {"case": "mine"}]}
    report.pop("decisive")
    assert Path("mine.json").read_text() == json.dumps(directory.clean(report), indent=1) + "\n"
    table = scores.to_frame().set_index(["predictor", "region", "score"])
    error = np.square(0.001 * examples["targets"][examples["held_out"]].astype(float)).mean()
    row = table.loc["network", "ood", "mse"]
    assert row.value == pytest.approx(error / 2, rel=1e-3) and set(table.seeds) == {2}
    constant = table.loc["best_constant", "id", "mse"]
    truths = examples["targets"][~examples["held_out"]].astype(float)
    assert constant.value == pytest.approx(truths.var(), rel=1e-4) and np.isnan(constant.low)


def test_the_snippets_of_the_page(tmp_path, monkeypatch, capsys):
    """The one of PyTorch in three steps."""
    monkeypatch.chdir(tmp_path)
    first, second, _ = snippets("score")
    names = {}
    exec(first, names)
    assert names["scores"].mean["id.rendered"]["value"] == 1  # of 90% of the signal
    pytest.importorskip("torch")
    for seed in range(4):
        run_score(f"--template=seed_{seed}.npz", "--task=bump_cnn_quick", f"--seed={seed}")
    exec(second.replace("range(3000)", "range(3)"), {})
    capsys.readouterr()
    run_score("predictions.npz", "--task=bump_cnn_quick")
    assert "predictions.npz: seeds 0, 1, 2, 3 on bump_cnn_quick\n" in capsys.readouterr().out


REFUSED = {
    "predictions float64 (3, 4): must be (S, 256, 16, 16)": (np.zeros((3, 4)), "bump_mlp_quick"),
    "predictions: setting an array element with a sequence.": ([[1], [2, 3]], "bump_mlp_quick"),
    "seeds (1,) float64: must be 1 int": (np.zeros((256, 16, 16)), "bump_mlp_quick", [1.5]),
    "task=data_scaling: is a sweep, whose trials have their own tasks": (0, "data_scaling"),
    "task=3: give a preset's name, 'FILE.py:NAME' of your own, or a Config": (0, 3),
}


@pytest.mark.parametrize("message", REFUSED)
def test_arguments_that_do_not_fit_are_one_line(message):
    with refused(message, kind=cg.ConfigError):
        cg.score(*REFUSED[message])


def test_a_seed_and_a_number_of_examples_are_counts(tiny):
    for argument, value in {"seed": -1, "drawn": 0.5}.items():
        with refused(f"{argument}={value}: must be an integer", kind=cg.ConfigError):
            cg.examples(tiny, **{argument: value})


def test_a_template_has_the_examples_that_training_shows(run):
    arrays = predictions.examples(run.config, run.task, seed=7, drawn=10)
    shown = run.shown[run.seeds.index(7)]
    index = {tuple(point): cell for cell, point in enumerate(run.cells.factors)}
    cells = [index[tuple(point)] for point in arrays["train_points"]]
    assert {*cells} == {*np.flatnonzero(shown)} and not (shown & arrays["held_out"]).any()
    for name in ("codes", "targets"):
        found = arrays[f"train_{name}"]
        np.testing.assert_allclose(found, arrays[name][cells], **TWO_PROGRAMS)


def test_a_task_that_draws_its_examples_afresh(tmp_path, tiny):
    """Its template has so many of them, with other inputs than those at the points that networks
    are scored at; each network is scored on the examples of its own seed."""
    task = Modules(inputs=4, hidden=4, outputs=4, samples=4, modules=5, most=2, tests=12).make()
    templates = [predictions.examples(tiny, task, seed, 24) for seed in (0, 1)]
    assert len(templates[0]["train_points"]) == len(templates[0]["points"]) == 24
    # a row of numbers ends with the inputs, 4 samples of 4
    inputs, train_inputs = (templates[0][name][:, -16:] for name in ("codes", "train_codes"))
    assert not np.isclose(inputs, train_inputs).all(axis=1).any()
    targets = np.stack([template["targets"] for template in templates])
    assert not np.allclose(*targets)
    run = predictions.load(file(tmp_path, predictions=targets), tiny, task)
    assert np.abs(run.cells.scores[task.error]).max() < 1e-6


UNKNOWN = np.where(np.arange(128).reshape(2, 64, 1, 1) == 73, np.nan, np.zeros((2, 64, 8, 8)))
BAD = [
    (
        {"signals": np.zeros((64, 8, 8))},
        "or holds others than predictions, seeds: signals",
    ),
    ({"predictions": np.zeros((64, 8))}, "(64, 8): must be (S, 64, 8, 8) or (64, 8, 8)"),
    ({"predictions": UNKNOWN}, "NaN or infinite in network 1 at x = 1, y = 1"),  # x varies fastest
    (
        {"predictions": np.zeros((2, 64, 8, 8)), "seeds": [1, 1]},
        "int64: must be 2 integers",
    ),
]


@pytest.mark.parametrize(("arrays", "message"), BAD)
def test_a_file_that_does_not_fit_is_one_line(tmp_path, run, arrays, message):
    with refused(message):
        predictions.load(file(tmp_path, **arrays), run.config, run.task)


def test_a_users_task_by_its_class(own_task, tmp_path, capsys):
    run_score(f"--template={tmp_path / 't.npz'}", f"--task={own_task[1]}", "--config.task.gain=2")
    assert "40 cells, of which 2 are held out" in capsys.readouterr().out
    with np.load(tmp_path / "t.npz") as given:
        assert np.abs(given["targets"]).max() == pytest.approx(2)
        said = np.stack([(1 + gain) * given["targets"] for gain in (2e-6, 3e-6, 4e-6)])
        mine = file(tmp_path, predictions=said)
    run_score(f"{mine}", f"--task={own_task[1]}", "--config.task.gain=2")
    assert "the held-out cells are composed: reproduced" in capsys.readouterr().out
