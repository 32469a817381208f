"""The explorer without a browser: what its page holds, how large it is, how its command ends."""

import json
import re
from dataclasses import replace

import jax
import numpy as np
import pytest

from compgen_jax.config import changed
from compgen_jax.models.mlp import MLP
from compgen_jax.presets import PRESETS
from compgen_jax.runs import directory, results
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.sprites import CountsConfig, Sprites
from figures import draw
from figures.explorer import page, payload
from launch import explore
from tests.command import call, refused
from tests.figures.live_networks import decode
from tests.figures.stand_ins import train
from tests.trees import TWO_PROGRAMS


@pytest.fixture(scope="module")
def text(run, tmp_path_factory):
    """The page of one run."""
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    return page.write({"<b>tiny</b>": run}, path).read_text()


@pytest.fixture(scope="module")
def network(text):
    return network_of(text)


def network_of(text: str) -> dict:
    """What a page says of its network."""
    (network,) = json.loads(re.search(r'id="payload">(.*?)</script>', text, re.S)[1])["networks"]
    return network


def test_images_are_what_the_networks_say_within_half_a_level(run, network):
    halves = np.arange(0, 7.5, 0.5)
    points = np.stack(np.meshgrid(halves, halves), axis=-1).reshape(-1, 2)
    drawn = decode(network["drawn_fine"])  # (T, D, M), x varying fastest
    expected = run.predict(points.astype(np.float32)).reshape(2, 225, 64).swapaxes(1, 2)
    least, most = (network["drawn_fine"][end] for end in ("low", "high"))
    half = (most - least) / 255 / 2 + 1e-6
    np.testing.assert_allclose(drawn, np.clip(expected, least, most), atol=half)
    assert np.mean((expected < least) | (expected > most)) < 0.003
    true = decode(network["truths_fine"])
    x, y = np.meshgrid(np.arange(8), np.arange(8))
    at = points[37]
    bump = np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / 2)
    np.testing.assert_allclose(true[0, :, 37].reshape(8, 8), bump, atol=half)


def test_scores_held_out_cells_and_the_quantile_are_those_of_the_run(run, network):
    assert list(network["scores"]) == ["rendered", "exact_accuracy", "mse"]
    assert network["steps"] == run.kept_steps and network["seeds"] == [0, 7]
    for name, score in network["scores"].items():
        values = decode(score["values"])
        assert values.shape == (len(network["steps"]), 2, 64)
        first = run.at(run.kept_steps[0]).cells.scores[name]
        np.testing.assert_allclose(values[-1], run.cells.scores[name], **TWO_PROGRAMS)
        np.testing.assert_allclose(values[0], first, **TWO_PROGRAMS)
        assert score["hit"] == (name != "mse")
    np.testing.assert_array_equal(decode(network["held_out"]), run.cells.held_out)
    assert network["t"] == pytest.approx(12.706204736)  # of one degree of freedom, at 97.5%


def test_predictors_and_layers_are_those_of_the_library(run, network):
    held_out, least = run.cells.held_out, network["nearest"]["low"]
    step = (network["high"] - least) / 255
    nearest = run.cells.truths[tasks.nearest_seen(run.task, held_out)[0][held_out]][None]
    by_kernel = run.interpolator.predictions[:, held_out]
    for name, images in (("nearest", nearest), ("interpolator", by_kernel)):
        expected = images.reshape(*images.shape[:2], 64).swapaxes(1, 2)
        expected = np.clip(expected, least, network["high"])
        np.testing.assert_allclose(decode(network[name]), expected, atol=step)
    volume = np.log10(run.maps["volume"])
    assert tuple(layer["name"] for layer in network["layers"]) == tuple(run.layer_names)
    for place, layer in enumerate(network["layers"]):
        found = layer["numbers"]["probe R², held out"]
        np.testing.assert_allclose(found, run.layers("probe.ood_r2")[:, place])
        of_layer = decode(layer["volume"])
        close = (layer["volume"]["high"] - layer["volume"]["low"]) / 255
        np.testing.assert_allclose(of_layer, volume[:, place].reshape(2, 64), atol=close + 1e-3)
        assert 1 <= layer["units"]["shape"][1] <= payload.UNITS


def test_the_rules_explain_what_they_do_in_numpy(run, network):
    cells, held_out = run.cells, run.cells.held_out
    r2 = decode(network["rules"]["r2"])[-1]  # (T, R, Q)
    nearest = tasks.nearest_seen(run.task, held_out)[0]
    flat = lambda array: array.reshape(*array.shape[:-2], 64).astype(np.float64)
    drawn, truths = flat(cells.predictions), flat(cells.truths)
    said = flat(run.interpolator.predictions)
    for seed in range(2):
        for place, at in enumerate(np.flatnonzero(held_out)):
            shared = (cells.factors == cells.factors[at]).T
            parts = {
                "what is asked": [truths[at]],
                "superposition": [drawn[seed][same & ~held_out].sum(axis=0) for same in shared],
                "plus": [sum(truths[same].sum(axis=0) for same in shared)],
                "nearest seen": [truths[nearest[at]]],
                "local interpolator": [said[seed, at]],
            }
            assert network["rules"]["rules"] == list(parts)
            for columns, found in zip(parts.values(), r2[seed, :, place], strict=True):
                weights = np.linalg.lstsq(np.transpose(columns), drawn[seed, at])[0]
                rest = drawn[seed, at] - weights @ columns
                share = 1 - (rest @ rest) / (drawn[seed, at] @ drawn[seed, at])
                assert found == pytest.approx(share, abs=0.003)


def test_what_is_drawn_below_the_least_truth_is_kept(run):
    """A picture shows it like the least truth, but a difference does not."""
    atlas = payload.Atlas(run)
    last = run.kept_steps[-1]
    atlas.predictions[last] = atlas.predictions[last] - 1.0
    network = atlas.images(255, 255, False, 2)
    drawn = decode(network["drawn"][-1])
    assert network["low"] == pytest.approx(0, abs=1e-6)
    expected = np.quantile(run.cells.predictions, 0.0005) - 1
    assert drawn.min() == pytest.approx(expected, abs=1e-5) and expected < -0.1


def test_a_page_is_text_and_asks_for_nothing(text):
    """A name is no markup, and no address but the page's own data is asked."""
    assert "<b>tiny</b>" not in text and "&lt;b&gt;tiny&lt;/b&gt;" in text
    assert not re.search(r'(src|href)="(?!data:)', text)


def test_the_python_of_a_page_names_no_directory_above(run, tmp_path, monkeypatch):
    """And needs none for a preset; another run is loaded."""
    monkeypatch.chdir(tmp_path)
    preset = PRESETS["bump_cnn_quick"]
    fewer = changed(preset, {"training.seeds": (0, 1)})
    for config, path, python in (
        (preset, "first", "cg.train('bump_cnn_quick', 'first')"),
        (fewer, "/far/off", "cg.load('off')"),
        (fewer, tmp_path / "runs" / "first", "cg.load('runs/first')"),
    ):
        assert payload.in_python(Run(config, None, (), path=path)) == python


def test_less_room_gives_fewer_levels_and_checkpoints(run):
    atlas = payload.Atlas(run)
    whole = payload.size_of(payload.within(4e6, "tiny", atlas))
    less, network = (payload.within(room, "tiny", atlas) for room in (0.8 * whole, 1))
    assert 0.8 * whole >= payload.size_of(less) > payload.size_of(network)
    assert less["steps"][-1] == network["steps"][-1] == run.kept_steps[-1]
    assert network["drawn_fine"] is None and len(network["steps"]) == 2 and not network["live"]
    assert network["drawn"][0]["levels"] < 255


def test_points_without_a_grid_and_labels_have_a_place(own_task, tmp_path, tiny):
    config = replace(changed(tiny, {"task.name": own_task[1]}), model=MLP(depth=2, width=8))
    (network,) = payload.payload({"turned": train(config, tmp_path / "run")})["networks"]
    label, angle = network["axes"]
    assert (label["real"], angle["real"]) == (False, True)
    assert label["fine"] == [0, 1, 2, 3, 4] and len(angle["fine"]) == 15
    assert network["kind"] == "curve" and not network["positions"]


def test_a_code_without_a_derivative_has_layers_without_volume(run, tiny, tmp_path):
    """As low-rank networks have in the page that `make figures` writes."""
    config = changed(tiny, {"task.code.name": "onehot"})
    runs = {"onehot": train(config, tmp_path / "run"), "bump": run}
    onehot, bump = (network["layers"] for network in payload.payload(runs)["networks"])
    assert not any("volume" in layer or "cosines" in layer for layer in onehot)
    assert all("volume" in layer and "cosines" in layer for layer in bump)
    probe = runs["onehot"].layers("probe.ood_r2")
    shown = [layer["numbers"]["probe R², held out"] for layer in onehot]
    np.testing.assert_allclose(np.transpose(shown), probe[:, : len(onehot)], rtol=1e-6)


def test_a_page_without_held_out_cells_and_with_a_constant_layer(tiny, tmp_path):
    run = train(changed(tiny, {"task.support.region": "none"}), tmp_path / "run")
    jax.tree.map(lambda leaf: leaf.fill(0), run.params["params"]["hidden_1"])
    (network,) = payload.payload({"none": run})["networks"]
    assert network["rules"] is network["nearest"] is network["interpolator"] is None
    assert [layer["units"]["shape"][1] for layer in network["layers"]] == [8] * 5
    assert np.ptp(decode(network["layers"][1]["units"]), axis=2).max() == 0


def sprites_run(tiny, workdir, **fields):
    """A tiny run on sprites of five factors in colour, measured at a sample of its cells."""
    counts = CountsConfig(scale=2, orientation=1, hue=3, posX=3, posY=3)
    small = Sprites(side=40, supersample=1, counts=counts, shapes=("square", "heart"), measured=5)
    task = replace(small, held_out="shape == 'heart' and posX > .9 and hue > .6", **fields)
    training = replace(tiny.training, steps=8, seeds=(0,))
    return train(replace(tiny, task=task, model=MLP(1, 8), training=training), workdir)


def test_a_sample_of_cells_is_shown_as_the_grid_it_is_of(tiny, tmp_path, monkeypatch):
    run = sprites_run(tiny, tmp_path / "run")
    atlas = payload.Atlas(run)
    network = atlas.description("sprites") | atlas.images(255, 255, False, 2)
    assert [len(axis["values"]) for axis in network["axes"]] == [2, 2, 3, 3, 3]
    assert network["points"] is None and network["given"] is None
    assert (network["kind"], network["shape"], network["origin"]) == ("rgb", (20, 20, 3), "upper")
    assert network["thinned"] == "A pixel here is the mean of 2 × 2."
    cells = tasks.cells(run.task.factors)
    np.testing.assert_array_equal(decode(network["held_out"]), run.task.held_out(cells))
    images = results.truths_at(run.task, cells[:1])[0]
    means = images.reshape(20, 2, 20, 2, 3).mean(axis=(1, 3))
    shown = decode(network["truths"])[0, :, 0].reshape(20, 20, 3)
    np.testing.assert_allclose(shown, means, atol=0.01)
    (error,) = decode(network["scores"]["mse"]["values"])[
        -1, 0, (cells == run.cells.factors[-1]).all(axis=1)
    ]
    assert error == pytest.approx(run.cells.scores["mse"][0, -1], rel=1e-5)
    monkeypatch.setattr(payload, "MOST_ENTRIES", 72 * 1200)
    atlas = payload.Atlas(run)
    assert atlas.sizes == (2, 2, 2, 3, 3) and atlas.held_out.any()
    assert "shows 72 of 108 combinations" in atlas.description("sprites")["thinned"]


def test_factors_are_read_off_a_picture_that_is_shown(tiny, tmp_path):
    run = sprites_run(tiny, tmp_path / "run", asks="factors")
    network = payload.Atlas(run).description("sprites")
    assert network["kind"] == "curve" and network["given"]["shape"] == (20, 20, 3)
    figure = draw.draw(run, ("heart", 0.5, 0.0, 1.0, 0.0))
    place = "shape = heart, scale = 0.5, hue = 0, posX = 1, posY = 0"
    words = f"What each seed draws of {place} (not held out)"
    point = tasks.point_of(run.task.factors, ("heart", 0.5, 0, 1, 0))
    given = figure.axes[2].images[0]
    assert figure.get_suptitle() == words and given.origin == "upper"
    expected = run.task.example(None, point).input
    np.testing.assert_allclose(given.get_array(), expected, **TWO_PROGRAMS)


def test_a_label_does_not_lead_out_of_the_folder_of_figures(monkeypatch, tmp_path):
    monkeypatch.setattr(draw.Run, "load", lambda workdir: None)
    monkeypatch.setattr(draw, "draw", lambda run, point: draw.plotting.new_figure(1, 1))
    call(draw, f"--workdir={tmp_path}", "--point=/../../escaped,a b,-1")
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"point__.._.._escaped_a_b_-1.{suffix}" for suffix in ("png", "pdf")}
    assert len(list(tmp_path.parent.rglob("*escaped*"))) == 2


# --- the command -----------------------------------------------------------------------------


def test_the_command_writes_the_page_of_some_seeds(run, copy, capsys):
    call(explore, f"--workdir={copy}", "--seeds=7,7")
    assert capsys.readouterr().out == f"wrote {copy / 'explorer.html'}\n"
    text = (copy / "explorer.html").read_text()
    assert '"seeds":[7]' in text and '"t":null' in text and '[{"claim":"composition"' in text
    network = network_of(text)
    shown = [layer["numbers"]["probe R², held out"] for layer in network["layers"]]
    of_seed = run.layers("probe.ood_r2")[run.seeds.index(7)]
    np.testing.assert_allclose(shown, of_seed[:, None])
    directory.write_json(copy / "claims.json", [{"claim": "one that judge left"}])
    call(explore, f"--workdir={copy}", "--seeds=7")
    assert '[{"claim":"one that judge left"}]' in (copy / "explorer.html").read_text()
    for seeds, message in {"3": "tiny has no such seed; it has (0, 7)", "x": "must be numbers",
                           "-1": "must be numbers"}.items():  # fmt: skip
        with refused(f"--seeds={seeds}: {message}"):
            call(explore, f"--workdir={copy}", f"--seeds={seeds}")
    with refused("there is no such directory"):
        call(explore, f"--workdir={copy / 'none'}")
