"""The figures of encoders and of decoders that all pixels share, and the authors' numbers, on
networks whose answers are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.config import Config
from compgen_jax.papers.forced_rendering.runs import Role, networks
from compgen_jax.papers.presets import PRESETS
from compgen_jax.runs import directory, results
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.inverse import Inverse
from compgen_jax.tasks.supports import SupportConfig
from figures import plotting
from figures.forced_rendering import authors, encoders, pixels, verdicts

GRID = 8
SUPPORT = SupportConfig(region="donut", low=2, high=5)
MEAN = {"id.mean_answer_mse": 4.0, "ood.mean_answer_mse": 2.0, "ood.nearest_seen_mse": 1.0,
        "ood.best_constant_mse": 3.0}  # fmt: skip


def summary_of(numbers):
    return {"mean": {name: {"value": v, "ci95": [v, v]} for name, v in numbers.items()}}


def encoder(answer):
    """Of two seeds the first is right everywhere but for 1 / 100; the second besides two pixels too
    far to the right in held-out cells of y below 4."""
    task = Inverse(grid=GRID, support=SUPPORT, answer=answer).make()
    points = tasks.points(task)
    truths = results.truths_at(task, points)
    wrong = np.asarray(task.held_out(points)) & (points[:, 1] < 4)
    moved = truths.copy()
    moved[wrong] = results.truths_at(task, points[wrong] + [2, 0])
    cells = results.scorer(task)(np.stack([truths, moved]) + 0.01)
    return SimpleNamespace(
        results=cells,
        summary=summary_of(MEAN),
        role=Role("encoder", "bump", "encoder", 3, control=answer),
    )


def decoder(name, decoder, depth, lacks):
    """A seed for each of `lacks`, the share by which all its bumps are too faint."""
    task = Bump(grid=GRID, support=SUPPORT).make()
    truths = results.truths_at(task, tasks.points(task))
    signals = np.stack([truths * (1 - lack) for lack in lacks])
    role = Role("pixels", "bump", decoder, depth)
    config = Config(name=name, task=Bump(grid=GRID, support=SUPPORT))
    return SimpleNamespace(results=results.scorer(task)(signals), role=role, config=config)


@pytest.fixture
def drawn():
    """draw(studies) -> figure that is closed in the end."""
    figures = []

    def draw(function, studies):
        figures.append(function(studies))
        figures[-1].canvas.draw()
        return figures[-1]

    yield draw
    for figure in figures:
        plotting.close(figure)


def axis_of(figure, letter):
    (found,) = [axis for axis in figure.axes
                if any(text.get_text() == letter and text.get_fontweight() == "bold"
                       for text in axis.texts)]  # fmt: skip
    return found


def means(axis, marker, color=None):
    """(x, y) of the middles of intervals, in order of x."""
    found = [bar[0].get_xydata()[0] for bar in axis.containers
             if bar[0].get_marker() == marker and color in (None, bar[0].get_color())]  # fmt: skip
    return sorted(map(tuple, found))


def test_encoders_are_exact_where_they_are(drawn):
    figure = drawn(encoders.draw, [encoder("coordinates"), encoder("code")])
    expected = np.ones((GRID, GRID))  # [y, x]
    expected[2:4, 2:6] = 0.5
    for letter, title in zip("ab", encoders.TITLES.values(), strict=True):
        axis = axis_of(figure, letter)
        np.testing.assert_array_equal(axis.images[0].get_array(), expected)
        assert axis.get_title() == title
    for color in encoders.COLORS.values():
        accuracy = axis_of(figure, "c")
        assert [y for _, y in means(accuracy, "o", color)] == [0.75, 0.75]  # half of one seed
        assert [y for _, y in means(accuracy, "s", color)] == [1, 1]


def test_errors_of_encoders_are_told_by_the_mean_answers():
    study = encoder("coordinates")
    found = encoders.relative_errors(study)
    np.testing.assert_allclose(found["id"], [1e-4 / 4] * 2, rtol=1e-3)
    # in half of the held-out cells two pixels more, in x alone; the mean answer's error is 2
    moved = ((2.01**2 + 0.01**2) / 2 + 1e-4) / 2
    np.testing.assert_allclose(found["ood"], [1e-4 / 2, moved / 2], rtol=1e-3)
    assert encoders.trivial_errors(study) == {"nearest_seen": 0.5, "best_constant": 1.5}


def test_shared_decoders_stand_by_model_and_depth(drawn):
    studies = [
        decoder("transformer_quick", "transformer", 2, (0.5, 0.5)),
        decoder("pixelwise_depth4_quick", "pixelwise", 4, (0.1, 0.001)),
        decoder("pixelwise_quick", "pixelwise", 2, (0.3, 0.3)),
    ]
    figure = drawn(pixels.draw, studies)
    error = axis_of(figure, "a")
    assert [t.get_text() for t in error.get_xticklabels()] == ["2", "4", "2"]
    at = error.get_xticks()
    assert at[2] - at[1] > at[1] - at[0]
    # a lack of 1 / 10 is 1 / 100 of a blank image's error; 1e-4 lies between 1e-2 and 1e-6
    held_out = [y for _, y in means(error, "o")]
    np.testing.assert_allclose(held_out, [0.09, 1e-4, 0.25], rtol=1e-4)
    assert [y for _, y in means(axis_of(figure, "b"), "o")] == [1, 1, 1]
    assert not [line for line in error.lines if line.get_marker() == "D"]  # quick
    images = [axis.images[0].get_array() for axis in figure.axes if axis.images]
    assert len(images) == 3 * len(pixels.POINTS)
    first = studies[2].results
    cell = plotting.held_out_cells(first, pixels.POINTS)[0]
    assert first.held_out[cell]
    np.testing.assert_array_equal(images[0], first.predictions[0, cell])


def test_the_authors_stand_beside_networks_of_their_size(drawn):
    studies = [decoder("pixelwise", "pixelwise", 2, (0.1, 0.1)),
               decoder("transformer", "transformer", 2, (0.1, 0.1))]  # fmt: skip
    error = axis_of(drawn(pixels.draw, studies), "a")
    diamonds = [line.get_ydata()[0] for line in error.lines
                if line.get_marker() == "D" and len(line.get_ydata())]  # fmt: skip
    # of a blank image's error, of bumps at integers on 28 pixels from 0 to 28
    pixel = np.linspace(0, 28, 28)
    along = np.exp(-np.square(pixel - np.arange(28)[:, None])).mean(axis=1)
    blank = along[:, None] * along
    corner = blank[14:, 14:]
    seen = (blank.sum() - corner.sum()) / (784 - 196)
    np.testing.assert_allclose(diamonds, [2.3e-7 / seen, 3.9e-5 / corner.mean()], rtol=2e-3)


def test_a_training_that_is_begun_stands_by_epoch_beside_the_authors_end(drawn, tmp_path):
    study = decoder("pixelwise_begun", "pixelwise", 2, (0.1, 0.2))
    study.path = tmp_path
    errors = {25: (1e-2, 1e-4), 50: (1e-4, 1e-6)}  # by epoch, of each seed
    directory.write_metrics(tmp_path, [
        {"epoch": epoch, "seed": seed, "id.mse": 0.02 * error, "ood.mse": 0.5 * error,
         "id.blank_mse": 0.2, "ood.blank_mse": 0.5, "id.exact_accuracy": 1.0,
         "ood.exact_accuracy": 1.0 - seed / 2}
        for epoch, of_seeds in errors.items() for seed, error in enumerate(of_seeds)
    ])  # fmt: skip
    figure = drawn(pixels.draw_begun, [study])
    error, accuracy = (axis_of(figure, letter) for letter in "ab")
    lines = {line.get_label(): line.get_xydata() for line in error.lines}
    np.testing.assert_allclose(lines["held out"], [[25, 1e-3], [50, 1e-5]])
    np.testing.assert_allclose(lines["seen"], [[25, 1e-4], [50, 1e-6]])
    levels = [line.get_ydata()[0] for line in error.lines if line.get_linestyle() == ":"]
    assert sorted(levels) == sorted(authors.relative_errors("pixelwise").values())
    held_out = next(line for line in accuracy.lines if line.get_label() == "held out")
    assert held_out.get_ydata().tolist() == [0.75, 0.75]
    assert len([axis for axis in figure.axes if axis.images]) == len(pixels.POINTS)


def test_the_authors_numbers_are_of_networks_that_there_are():
    paper = {network.name for network in networks("paper")}
    assert set(authors.AUTHORS) <= paper
    numbers = {"ood.mse": 1e-4, "id.mse": 2e-6, "ood.exact_accuracy": 1.0,
               "ood.position_accuracy": 0.5, "id.blank_mse": 0.01,
               "ood.blank_mse": 0.02}  # fmt: skip
    run = lambda name, numbers: SimpleNamespace(config=PRESETS[name], summary=summary_of(numbers))
    names = "transformer", "pixelwise_begun", "pixelwise_quick", "pixelwise"
    lines = authors.table([run(name, numbers) for name in names])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line][2:]
    begun, quick, whole = rows[:4], rows[4:8], rows[8:]
    assert [row[:5] for row in whole] == [
        ["pixelwise", "MSE ID", "2e-06 [2e-06, 2e-06]", "2.3e-07", "theirs"],
        ["", "MSE OOD", "0.0001 [0.0001, 0.0001]", "3.9e-05", ""],
        ["", "exact accuracy OOD", "1 [1, 1]", "0.96", ""],
        ["", "accuracy within 1 pixel OOD", "0.5 [0.5, 0.5]", "1", ""],
    ]
    # on other settings, errors of blank images of their own
    assert [row[1:4] for row in begun[:2]] == [
        ["MSE / blank ID", "0.0002 [0.0002, 0.0002]", "6.3e-05"],
        ["MSE / blank OOD", "0.005 [0.005, 0.005]", "0.0105"],
    ]
    assert begun[0][4] == "`training.epochs` 500 (2000)"
    assert begun[2][1:] == [*whole[2][1:4], "", ""]
    assert [row[1:4] for row in quick] == [row[1:4] for row in begun]
    assert quick[0][4].startswith("`task.grid` 16 (28), `task.support.low` 8 (14), ")
    assert authors.table([run("transformer", numbers)]) == []
    loss = authors.table([run("rotation", {"train_loss": 0.01})])[-1]
    assert loss.startswith("| rotation | training loss | 0.01 [0.01, 0.01] | 0.00958 | theirs |")


def test_every_run_has_a_row_of_its_kind():
    def study(name, numbers, predictors):
        own = {f"{region}.{score}": value for region in ("id", "ood")
               for score, value in numbers.items()}  # fmt: skip
        task = SimpleNamespace(accuracy="exact_accuracy", error="mse", baselines=predictors)
        config = SimpleNamespace(name=name, task=SimpleNamespace(make=lambda: task))
        return SimpleNamespace(config=config, summary=summary_of(own))

    image = {"mse": 0.1, "exact_accuracy": 0.5, "blank_mse": 0.4, "nearest_seen_mse": 0.0}
    turned = study("turned", image | {"edge_mixture_mse": 0.2}, ("nearest_seen", "edge_mixture"))
    bump = study("bump", image | {"position_accuracy": 1.0}, ("nearest_seen",))
    asked = {"mse": 3.0, "exact_accuracy": 0.5, "position_accuracy": 0.75, "nearest_seen_mse": 6.0,
             "mean_answer_mse": 12.0}  # fmt: skip
    code = study("code", asked, ("nearest_seen", "mean_answer"))
    lines = verdicts.runs_table([bump, turned, code])
    rows = {tuple(line.split(" | ")[:2]): line for line in lines if line.startswith("| ")}
    assert rows["| bump", "OOD"].endswith("| 0.5 [0.5, 0.5] | 1 [1, 1] |")
    other = lines[lines.index("### Other tasks") :]
    assert rows["| turned", "ID"] in other and rows["| code", "OOD"] in other
    assert rows["| turned", "ID"].endswith("| – | 0.1 [0.1, 0.1] | 0.5 (edge mixture) |")
    assert rows["| code", "OOD"].endswith("| 0.75 [0.75, 0.75] | 3 [3, 3] | 0.5 (nearest seen) |")
    assert verdicts.runs_table([]) == []
    assert "### Other tasks" not in verdicts.runs_table([bump])
