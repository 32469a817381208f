"""What a hold-out is worth: against loops over all pairs of combinations, and committed numbers."""

import json

import jax
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import compgen_jax as cg
from compgen_jax.config import Config, changed
from compgen_jax.tasks import task as tasks
from figures import committed
from launch import holdout
from tests.command import call, refused
from tests.metrics.test_coverage import seen_in_loops

SENTENCE = "shape == 'c' and x > 2 or random(.5, seed=3) or y == 2"
SEED = {"training.seeds": (0,)}


def rows(count: int) -> pd.DataFrame:
    """Combinations of three factors, of which some are missing and some repeated."""
    rng = np.random.default_rng(5)
    x, y = rng.integers(5, size=count), rng.integers(3, size=count)
    return pd.DataFrame({"shape": rng.choice(list("abc"), count), "x": x, "y": y})


def test_a_support_is_measured_as_loops_over_its_combinations_do():
    frame = rows(70)
    numbers, held_out_n = cg.free_score(frame, SENTENCE).numbers, cg.held_out(SENTENCE, frame)
    assert numbers["rows"] == {"seen": (~held_out_n).sum(), "held_out": held_out_n.sum()}
    points = frame.assign(shape=frame["shape"].map(ord)).to_numpy()
    seen, held_out = (np.unique(points[m], axis=0) for m in (~held_out_n, held_out_n))
    assert numbers["combinations"] == {"seen": len(seen), "held_out": len(held_out)}
    for order, sets in (("1", 3), ("2", 3), ("3", 1)):
        share = seen_in_loops(held_out, seen, int(order)) / sets
        expected = {"mean": share.mean(), "all": np.mean(share == 1)}
        assert numbers["coverage"][order] == pytest.approx(expected)
    shares = [np.isin(*columns).mean() for columns in zip(held_out.T, seen.T, strict=True)]
    assert list(numbers["values"].values()) == pytest.approx(shares) and shares[2] < 1
    apart = np.abs(held_out[:, None] - seen)
    apart[..., 0] = apart[..., 0] > 0  # labels
    distance = np.sqrt((apart**2).sum(axis=2)).min(axis=1)
    assert numbers["distance"] == pytest.approx({"mean": distance.mean(), "max": distance.max()})
    changes = (apart > 0).sum(axis=2).min(axis=1)
    counts = {f"{level}_factors": (changes == level).sum() for level in np.unique(changes)}
    expected = {"mean": changes.mean(), "max": changes.max()} | counts
    assert numbers["changes"] == pytest.approx(expected) and len(counts) > 1


@pytest.mark.parametrize(
    ("sentence", "components"), [("x != y", 4), ("x != y and x + y > 1", 3), ("x + y > 3", 1)]
)
def test_a_support_connects_where_steps_from_value_to_value_reach_all(sentence, components):
    x, y = np.indices((4, 4)).reshape(2, -1)
    support = cg.free_score({"x": x, "y": y}, sentence).numbers["support"]
    assert support == {"components": components, "connects": components == 1}


def test_additive_images_are_a_least_squares_fit_to_seen_ones_by_command_too(tmp_path, capsys):
    frame = rows(300).drop_duplicates()
    columns = frame.assign(shape=frame["shape"].map(ord)).to_numpy().T
    images = np.random.default_rng(1).random((len(frame), 8, 8)).astype(np.float32)
    arrays = {name: frame[name].to_numpy(str if name == "shape" else int) for name in frame}
    worth = cg.free_score(arrays | {"images": images}, SENTENCE, SEED, progress=False)
    held_out = cg.held_out(SENTENCE, frame)
    # y = 2, which is never seen, counts as the mean of y = 0 and y = 1
    values = [np.unique(column[~held_out]) for column in columns]
    design = np.concatenate([
        (column == of_factor[:, None]) + ~np.isin(column, of_factor) / len(of_factor)
        for column, of_factor in zip(columns, values, strict=True)
    ])  # fmt: skip
    flat = images.reshape(len(images), -1).astype(float)
    fit = np.linalg.lstsq(design.T[~held_out], flat[~held_out], rcond=None)[0]
    error = np.square(design.T[held_out] @ fit - flat[held_out]).mean()
    numbers = worth.numbers
    assert numbers["baselines"]["additive"]["mse"] == pytest.approx(error, rel=1e-4)
    assert numbers["scored"] == {"all": held_out.sum(), "kernels": held_out.sum()}
    assert worth.to_frame()["baselines.additive.mse"][0] == numbers["baselines"]["additive"]["mse"]
    path, out = tmp_path / "images.npz", tmp_path / "out" / "worth.json"
    np.savez(path, images=images, **arrays)
    flags = "--config.training.seeds=(0,)", f"--out={out.parent}"
    run = lambda *words: call(holdout, *words, positional=(holdout.CONFIG, holdout.SENTENCE))
    for words in ([str(path), SENTENCE], [f"--config={path}", SENTENCE]):
        run(*words, *flags)
        assert json.loads(out.read_text()) == numbers
        assert f"{worth}\nwrote {out}\n" == capsys.readouterr().out
    with refused(f"config.task.held_out='x > 9': holds out none of {len(frame)}"):
        run(str(path), "x > 9", *flags)
    assert json.loads(out.read_text()) == numbers
    with refused("data.npz': shape has shape"):
        cg.free_score(arrays | {"images": images[:9]}, SENTENCE)


def test_a_file_has_as_many_rows_as_its_mask_has(tmp_path):
    """Some combinations have no image, some several; of a part of the file, those of the part."""
    frame, path = rows(60), tmp_path / "images.npz"
    images = np.random.default_rng(2).random((len(frame), 4, 4)).astype(np.float32)
    np.savez(path, images=images, **{name: [*frame[name]] for name in frame})
    few, part_only = SEED | {"task.measured": 5}, {"task.subset": (("x", (0, 3, 4)),)}
    held_out = cg.held_out(SENTENCE, frame)
    expected = {"seen": (~held_out).sum(), "held_out": held_out.sum()}
    for data in (path, dict(frame) | {"images": images}, frame.assign(images=[*images])):
        worth = cg.free_score(data, SENTENCE, few, progress=False)
        assert worth.numbers["rows"] == expected
        assert sum(worth.numbers["combinations"].values()) == len(frame.drop_duplicates())
    assert f"rows: seen {expected['seen']}, held_out {expected['held_out']}\n" in str(worth)
    part = frame[frame["x"].isin([0, 3, 4])]
    held_out = cg.held_out("shape == 'b'", part)
    numbers = cg.free_score(path, "shape == 'b'", few | part_only, progress=False).numbers
    assert numbers["rows"] == {"seen": (~held_out).sum(), "held_out": held_out.sum()}


OVERLAP = {"held_out": "not (7 <= x <= 9 and 7 <= y <= 9)", "require_marginals": False}


@pytest.mark.parametrize("support", [{"low": 4, "high": 7}, OVERLAP])
def test_the_nearest_image_is_shifted_by_as_many_pixels_as_its_factors_differ(support):
    """Also where most seen images overlap, so that no pixel is background in half of them."""
    support = {f"task.support.{name}": value for name, value in support.items()}
    task = changed(Config(), {"task.grid": 12} | support).task.make()
    query = tasks.query(task, jax.random.key(0))
    images, points = np.asarray(query.truths), query.points.astype(int)
    nearest, _ = tasks.nearest_seen(task, query.held_out)
    shifted = tasks.with_additions(task).baselines["nearest_shifted"](query)
    for cell in (4 + 12 * 5, 6 + 12 * 6, 7 + 12 * 4, 3):
        dx, dy = points[cell] - points[nearest[cell]]
        x, y = ((np.arange(12) - step) % 12 for step in (dx, dy))
        assert_allclose(shifted[cell], images[nearest[cell]][np.ix_(y, x)], atol=1e-6)
        assert cell == 3 or abs(dx) + abs(dy) > 0
    dark = lambda images: 1 - images / 2  # on a bright background
    at = query.truths_at
    query = query._replace(truths=dark(query.truths), truths_at=lambda points: dark(at(points)))
    of_dark = tasks.with_additions(task).baselines["nearest_shifted"](query)
    assert_allclose(of_dark, dark(shifted), atol=1e-6)


@pytest.mark.parametrize("name", ["bump_cnn", "random_cells", "sprites_range", "sprites_element"])
def test_baselines_are_the_committed_ones(name):
    config = changed(committed.configs("quick")[name], SEED)
    path = committed.RESULTS / f"quick/runs/{config.name}.json"
    summary = json.loads(path.read_text())["seeds"]["0"]
    means = cg.free_score(config, progress=False).numbers["baselines"]
    found = {
        f"ood.{predictor}_{score}": value
        for predictor, scores in means.items()
        for score, value in scores.items()
    }
    shared = found.keys() & summary
    assert {"ood.interpolator_rendered", "ood.wide_network_mse", "ood.nearest_seen_mse"} <= shared
    assert {key: found[key] for key in shared} == pytest.approx(
        {key: summary[key] for key in shared}, abs=1e-6
    )


def test_what_has_no_worth_is_one_line():
    for data, sentence, line in (
        ("rotation_quick", "x > 3", "config.task.support.held_out: no such field"),
        ("data_scaling_quick", None, "is a sweep"),
        ("none.npz", "x > 3", "config.task.path='none.npz': No such file"),
        ({"x": np.arange(9)}, None, "sentence is missing"),
        ({"images": np.ones((9, 4, 4))}, "x > 3", "no column of a factor"),
        ({f"f{k}": np.arange(700) for k in range(3)}, "f0 > 3", "round them"),
        (7, "x > 3", "give a preset's name"),
    ):
        with refused(line, kind=cg.ConfigError):
            cg.free_score(data, sentence)
    none = {"task.support.region": "none", "task.support.require_marginals": False}
    with refused("0 of 256 combinations: say which are held out"):
        cg.free_score("bump_cnn_quick", overrides=none)
