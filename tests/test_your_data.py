"""The tutorial on a data set from a file: its file, commands and snippets as they are written, on a
tiny network; each flag that it lists; each error that it names. And the page on hold-outs.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from compgen_jax import cli
from compgen_jax.config import ConfigError, changed
from compgen_jax.papers import presets
from compgen_jax.tasks import holdouts
from compgen_jax.tasks.sprites import Sprites
from compgen_jax.tasks.task import cells
from compgen_jax.training import loop
from tests.command import run

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "tutorials" / "your_data.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.S | re.M)
FILE, SNIPPET = [text for language, text in BLOCKS if language == "python"]
PRINTED = [line for _, text in BLOCKS for line in text.splitlines() if line.startswith("table: ")]
COMMANDS = [
    line
    for _, text in BLOCKS
    for line in text.replace("\\\n", " ").splitlines()
    if line.startswith(("compgen-jax ", "python -m "))
]
FLAGS = re.findall(r"`(--config[^`]*)`", PAGE)
TINY = {
    "model.name": "mlp",
    "model.depth": 1,
    "model.width": 8,
    "training.batch_size": 4,
    "training.evaluate_every": 500,
    "training.seeds": (0, 3),
}
ERRORS = {  # what a line says: the settings that it is said of
    "a label is quoted: shape == 'square'": {"held_out": "shape == square"},
    "no factor 'size'; there is shape, x, y": {"held_out": "size > 3"},
    "x is never 4.5; the nearest value is 4": {"held_out": "x == 4.5"},
    "holds out none of 192 combinations": {"held_out": "x > 30"},
    "is neither an npz nor an HDF5 file": {"path": "text.npz"},
    "both sides of the image must be divisible by 8": {"side": 12},
    "combinations have more than one image": {"path": "twice.npz"},
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """An empty directory with the file that the page writes."""
    path = tmp_path_factory.mktemp("desk")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        exec(FILE, {})
        yield path


def checked(flags: str):
    """The task of a command line with these flags, and its config; both are checked as a whole."""
    config = run(f"compgen-jax train {flags}", lambda: cli.read_config(cli.define_config()))
    return loop.check(config), config


def test_the_commands_and_the_snippet(desk, capsys, monkeypatch):
    monkeypatch.setitem(presets.PRESETS, "table", changed(presets.get_config("table"), TINY))
    train, *others, _ = COMMANDS
    run(train)
    assert [line for line in capsys.readouterr().out.splitlines() if ": " in line] == PRINTED
    for line in others:
        run(line)
    assert "table: The network composes what was held out: " in capsys.readouterr().out
    assert (desk / "runs/mine/figures/point_square_10_8.png").exists()
    assert (desk / "runs/mine/figures/run.png").exists()
    assert (desk / "runs/mine/explorer.html").exists()
    trained = (desk / "runs/mine/summary.json").stat().st_mtime_ns
    names = {}
    exec(SNIPPET, names)
    assert (desk / "runs/mine/summary.json").stat().st_mtime_ns == trained
    assert names["run"].cells.groupby(["held_out", "shape"]).ngroups == 4


@pytest.mark.parametrize("flags", FLAGS, ids=lambda flags: flags.removeprefix("--config."))
def test_each_flag(desk, flags):
    plain = "--config=table --config.task.path=mine.npz"
    assert checked(f"{plain} {flags}")[1] != checked(plain)[1]


def test_a_public_data_set_by_its_name(desk):
    """In dSprites' layout, with fewer images."""
    (line,) = (line for line in COMMANDS if "dsprites" in line)
    places = np.arange(32) / 31
    values = np.meshgrid(1, [1, 2, 3], 1.0, [0, np.pi / 19.5], places, places[:4])
    latents = np.stack([each.ravel() for each in values], axis=1)
    images = np.random.default_rng(0).integers(0, 2, (len(latents), 64, 64)).astype(np.uint8)
    path = re.search(r"task.path=(\S+)", line)[1]
    np.savez(desk / path, imgs=images, latents_values=latents)
    task, _ = checked(line.partition(" train ")[2])
    assert [(factor.name, len(factor.values)) for factor in task.factors] == [
        ("shape", 3), ("posX", 16), ("posY", 2)
    ]  # fmt: skip


def test_each_sentence_and_function_of_the_page_on_hold_outs():
    """On sprites; the parts of a row's first cell, up to its end."""
    page = (ROOT / "docs" / "how_to" / "hold_out.md").read_text().partition("## Published")[0]
    sentences = re.findall(r"^\| `(.+?)` \|", page, re.M) + re.findall(r'held_out="(.*?)"', page)
    factors = Sprites().scene().factors
    points = cells(factors)
    masks = [holdouts.held_out(sentence, factors, points) for sentence in sentences]
    assert len(masks) == 17 and all(mask.any() and not mask.all() for mask in masks)
    assert {*holdouts.TAKES} == {text.partition("(")[0] for text in sentences} & {*holdouts.TAKES}


def test_each_error_is_said(desk):
    rows = re.findall(r"^\| `([^`]+)` \|", PAGE, re.M)
    assert set(ERRORS) == set(rows) & set(ERRORS) and len(rows) >= len(ERRORS)
    (desk / "text.npz").write_text("no arrays")
    arrays = dict(np.load("mine.npz"))
    del arrays["y"]
    np.savez("twice.npz", **arrays)
    for message, fields in ERRORS.items():
        values = {f"task.{name}": value for name, value in fields.items()}
        config = changed(presets.get_config("table"), {"task.path": "mine.npz"} | values)
        with pytest.raises(ConfigError, match=re.escape(message)) as error:
            loop.check(config)
        assert "\n" not in str(error.value)
