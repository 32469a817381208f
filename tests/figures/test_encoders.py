"""Figures of encoders and of decoders that all pixels share, and the tables of runs, for networks
whose answers are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.config import Config
from compgen_jax.models.pixelwise import Pixelwise
from compgen_jax.models.transformer import Transformer
from compgen_jax.papers.forced_rendering.runs import runs as paper_runs
from compgen_jax.papers.presets import PRESETS
from compgen_jax.runs import directory, results
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.inverse import Inverse
from compgen_jax.tasks.supports import SupportConfig
from figures import plotting
from figures.forced_rendering import authors, encoders, pixels, tables
from tests.figures.panels import axis_of, images_of, lines_of, means, title_of

GRID = 8
SUPPORT = SupportConfig(region="donut", low=2, high=5)
MEAN = {"id.mean_answer_mse": 4.0, "ood.mean_answer_mse": 2.0, "ood.nearest_seen_mse": 1.0,
        "ood.best_constant_mse": 3.0}  # fmt: skip


def summary_of(numbers):
    return {"mean": {name: {"value": v, "ci95": [v, v]} for name, v in numbers.items()}}


def encoder(answer):
    """Both seeds err by 1 / 100 everywhere. The second one's answers are also two pixels too far to
    the right in held-out cells of y below 4."""
    task = Inverse(grid=GRID, support=SUPPORT, answer=answer).make()
    points = tasks.points(task)
    truths = results.truths_at(task, points)
    wrong = np.asarray(task.held_out(points)) & (points[:, 1] < 4)
    moved = truths.copy()
    moved[wrong] = results.truths_at(task, points[wrong] + [2, 0])
    cells = results.scorer(task)(np.stack([truths, moved]) + 0.01)
    return Run.known((0, 1), cells, summary=summary_of(MEAN))


def decoder(name, model, lacks, **others):
    """A seed for each of `lacks`, the share by which all its bumps are too faint."""
    config = Config(name=name, task=Bump(grid=GRID, support=SUPPORT), model=model)
    task = config.task.make()
    truths = results.truths_at(task, tasks.points(task))
    cells = results.scorer(task)(np.stack([truths * (1 - lack) for lack in lacks]))
    return Run.known((0, 1), cells, config=config, **others)


def test_encoders_are_exact_where_they_are(drawn):
    names = "encoder_code", "encoder_coordinates"
    runs = {name: encoder(name.removeprefix("encoder_")) for name in names[::-1]}
    figure = drawn(encoders.draw, runs)
    expected = np.ones((GRID, GRID))  # [y, x]
    expected[2:4, 2:6] = 0.5
    for letter, name in zip("ab", names, strict=True):
        axis = axis_of(figure, letter)
        np.testing.assert_array_equal(axis.images[0].get_array(), expected)
        assert title_of(axis).startswith(f"{encoders.TITLES[name]}: 75% exact")
        color = encoders.COLORS[name]
        accuracy = axis_of(figure, "c")
        assert [y for _, y in means(accuracy, "o", color)] == [0.75, 0.75]  # half of one seed
        assert [y for _, y in means(accuracy, "s", color)] == [1, 1]
    run = runs["encoder_coordinates"]
    errors = encoders.relative_errors(run)
    np.testing.assert_allclose(errors["id"], [1e-4 / 4] * 2, rtol=1e-3)
    # in half of the held-out cells two pixels more, in x alone; the mean answer's error is 2
    moved = ((2.01**2 + 0.01**2) / 2 + 1e-4) / 2
    np.testing.assert_allclose(errors["ood"], [1e-4 / 2, moved / 2], rtol=1e-3)
    assert encoders.trivial_errors(run) == {"nearest_seen": 0.5, "best_constant": 1.5}


def test_shared_decoders_stand_by_model_and_depth(drawn):
    runs = {
        "transformer": decoder("transformer_quick", Transformer(depth=2), (0.5, 0.5)),
        "pixelwise_depth4": decoder("pixelwise_depth4_quick", Pixelwise(depth=4), (0.1, 0.001)),
        "pixelwise": decoder("pixelwise_quick", Pixelwise(depth=2), (0.3, 0.3)),
    }
    figure = drawn(pixels.draw, runs)
    error = axis_of(figure, "a")
    assert [t.get_text() for t in error.get_xticklabels()] == ["2", "4", "2"]
    at = error.get_xticks()
    assert at[2] - at[1] > at[1] - at[0]
    # a lack of 1 / 10 is 1 / 100 of a blank image's error; 1e-4 lies between 1e-2 and 1e-6
    np.testing.assert_allclose([y for _, y in means(error)], [0.09, 1e-4, 0.25], rtol=1e-4)
    assert [y for _, y in means(axis_of(figure, "b"))] == [1, 1, 1]
    assert not lines_of(error, "D")  # the authors' numbers are not of this size
    images = images_of(figure)
    assert len(images) == 3 * len(pixels.POINTS)
    cells = runs["pixelwise"].cells
    cell = plotting.held_out_cells(cells, pixels.POINTS)[0]
    assert cells.held_out[cell]
    np.testing.assert_array_equal(images[0], cells.predictions[0, cell])


def test_the_authors_stand_beside_networks_of_their_size(drawn):
    runs = {"pixelwise": decoder("pixelwise", Pixelwise(depth=2), (0.1, 0.1)),
            "transformer": decoder("transformer", Transformer(depth=2), (0.1, 0.1))}  # fmt: skip
    error = axis_of(drawn(pixels.draw, runs), "a")
    diamonds = [line.get_ydata()[0] for line in lines_of(error, "D") if len(line.get_ydata())]
    # of a blank image's error, of bumps at integers on 28 pixels from 0 to 28
    pixel = np.linspace(0, 28, 28)
    along = np.exp(-np.square(pixel - np.arange(28)[:, None])).mean(axis=1)
    blank = along[:, None] * along
    corner = blank[14:, 14:]
    seen = (blank.sum() - corner.sum()) / (784 - 196)
    np.testing.assert_allclose(diamonds, [2.3e-7 / seen, 3.9e-5 / corner.mean()], rtol=2e-3)


def test_a_training_that_is_begun_stands_by_epoch_beside_the_authors_end(drawn, tmp_path):
    run = decoder("pixelwise_begun", Pixelwise(depth=2), (0.1, 0.2), path=tmp_path)
    errors = {25: (1e-2, 1e-4), 50: (1e-4, 1e-6)}  # by epoch, of each seed
    directory.write_metrics(tmp_path, [
        {"epoch": epoch, "seed": seed, "id.mse": 0.02 * error, "ood.mse": 0.5 * error,
         "id.blank_mse": 0.2, "ood.blank_mse": 0.5, "id.exact_accuracy": 1.0,
         "ood.exact_accuracy": 1.0 - seed / 2}
        for epoch, of_seeds in errors.items() for seed, error in enumerate(of_seeds)
    ])  # fmt: skip
    figure = drawn(pixels.draw_begun, {"pixelwise_begun": run})
    error, accuracy = (axis_of(figure, letter) for letter in "ab")
    lines = {line.get_label(): line.get_xydata() for line in error.lines}
    np.testing.assert_allclose(lines["held out (OOD)"], [[25, 1e-3], [50, 1e-5]])
    np.testing.assert_allclose(lines["seen (ID)"], [[25, 1e-4], [50, 1e-6]])
    levels = [line.get_ydata()[0] for line in error.lines
              if line.get_linestyle() == ":" and len(line.get_ydata())]  # fmt: skip
    assert sorted(levels) == sorted(authors.relative_errors("pixelwise").values())
    held_out = next(line for line in accuracy.lines if line.get_label() == "held out (OOD)")
    assert held_out.get_ydata().tolist() == [0.75, 0.75]


# --- tables ------------------------------------------------------------------------------------

NUMBERS = {"ood.mse": 1e-4, "id.mse": 2e-6, "ood.exact_accuracy": 1.0,
           "ood.position_accuracy": 0.5, "id.blank_mse": 0.01, "ood.blank_mse": 0.02}  # fmt: skip


def preset_run(preset, numbers=NUMBERS):
    return Run.known((), config=PRESETS[preset], summary=summary_of(numbers))


@pytest.mark.parametrize(
    ("name", "preset", "settings"),
    [("pixelwise", "pixelwise", "theirs"),
     ("pixelwise_begun", "pixelwise_begun", "`training.epochs` 500 (2000)"),
     ("pixelwise", "pixelwise_quick", "`task.grid` 16 (28), `task.support.low` 8 (14), ")],
)  # fmt: skip
def test_the_authors_numbers_stand_beside_ours(name, preset, settings):
    lines = authors.table({name: preset_run(preset)})
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line][2:]
    errors = [
        ["MSE ID", "2e-06 [2e-06, 2e-06]", "2.3e-07"],
        ["MSE OOD", "0.0001 [0.0001, 0.0001]", "3.9e-05"],
    ]
    if preset != name or name.endswith("begun"):  # each over the error of its own blank images
        errors = [
            ["MSE / blank ID", "0.0002 [0.0002, 0.0002]", "6.3e-05"],
            ["MSE / blank OOD", "0.005 [0.005, 0.005]", "0.0105"],
        ]
    assert rows[0][0] == preset and rows[0][4].startswith(settings)
    assert [row[1:4] for row in rows] == errors + [
        ["exact accuracy OOD", "1 [1, 1]", "0.96"],
        ["accuracy within 1 pixel OOD", "0.5 [0.5, 0.5]", "1"],
    ]


def test_the_authors_numbers_are_of_runs_that_there_are():
    assert set(authors.AUTHORS) <= set(paper_runs("paper"))
    assert authors.table({"transformer": preset_run("transformer")}) == []
    loss = authors.table({"rotation": preset_run("rotation", {"train_loss": 0.01})})[-1]
    assert loss.startswith("| rotation | training loss | 0.01 [0.01, 0.01] | 0.00958 | theirs |")


def test_every_run_has_a_row_of_its_kind():
    def run(name, numbers, predictors):
        scores = {f"{region}.{score}": value for region in ("id", "ood")
                  for score, value in numbers.items()}  # fmt: skip
        task = SimpleNamespace(accuracy="exact_accuracy", error="mse", baselines=predictors)
        make = SimpleNamespace(make=lambda: task)
        config = SimpleNamespace(name=name, task=make, is_sweep=False)
        return Run.known((), config=config, summary=summary_of(scores))

    image = {"mse": 0.1, "exact_accuracy": 0.5, "blank_mse": 0.4, "nearest_seen_mse": 0.0}
    answer = {"mse": 3.0, "exact_accuracy": 0.5, "position_accuracy": 0.75,
              "nearest_seen_mse": 6.0, "mean_answer_mse": 12.0}  # fmt: skip
    turned = image | {"edge_mixture_mse": 0.2}
    runs = {
        "bump": run("bump", image | {"position_accuracy": 1.0}, ("nearest_seen",)),
        "turned": run("turned", turned, ("nearest_seen", "edge_mixture")),
        "code": run("code", answer, ("nearest_seen", "mean_answer")),
    }
    lines = tables.table(runs)
    rows = {tuple(line.split(" | ")[:2]): line for line in lines if line.startswith("| ")}
    assert rows["| bump", "OOD"].endswith("| 0.5 [0.5, 0.5] | 1 [1, 1] |")
    other = lines[lines.index("### Other tasks") :]
    assert rows["| turned", "ID"] in other and rows["| code", "OOD"] in other
    assert rows["| turned", "ID"].endswith("| – | 0.1 [0.1, 0.1] | 0.5 (edge mixture) |")
    assert rows["| code", "OOD"].endswith("| 0.75 [0.75, 0.75] | 3 [3, 3] | 0.5 (nearest seen) |")
    assert tables.table({}) == []
    assert "### Other tasks" not in tables.table({"bump": runs["bump"]})
