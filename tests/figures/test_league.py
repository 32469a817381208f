"""The league from two commands: tiny matches, a model of the user's own, figures and the page."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from compgen_jax import claims
from compgen_jax.config import ConfigError, changed
from compgen_jax.papers.league import runs as networks
from compgen_jax.runs import experiment
from compgen_jax.tasks import task as tasks
from figures import make, results
from figures.league import page, registry, table
from figures.league.registry import FIGURES

ROOT = Path(__file__).parents[2]
PLAYED = ("MLP", "MLP, one-hot code", "additive", "multiplicative")
OWN = """
from dataclasses import dataclass

from flax import linen as nn

from compgen_jax.models.model import Model, name_layers


class Flat(nn.Module):
    shape: tuple
    width: int

    @nn.compact
    def __call__(self, code):
        hidden = nn.tanh(nn.Dense(self.width)(code))
        flat = nn.Dense(self.shape[0] * self.shape[1])(hidden)
        return flat.reshape(self.shape), name_layers([code, hidden])


@dataclass(frozen=True)
class Mine(Model):
    width: int = 7

    def make(self, shapes):
        return Flat(shapes.output.shape, self.width)
"""


@pytest.fixture
def own_model(tmp_path):
    path = tmp_path / "my_model.py"
    path.write_text(OWN)
    return f"{path}:Mine"


def tiny(scale, own=()):
    """Few players on bumps, or one and their own, for six steps of two seeds."""
    small = {"training.steps": 6, "training.evaluate_every": 3, "training.seeds": (0, 1)}
    players = ("MLP", "my_model:Mine") if own else PLAYED
    return [
        network._replace(config=changed(network.config, small | _narrow(network.config)))
        for network in networks.networks(scale, own)
        if network.role.player in players and network.role.task == "bumps"
    ]


def _narrow(config):
    hole = {"task.support.low": 3, "task.support.high": 4}
    return {"model.width": 8, "task.grid": 8} | hole


def draw(workdir, models=(), only=tuple(FIGURES)):
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["test"])
    with flagsaver.flagsaver(workdir=str(workdir), only=list(only), models=list(models)):
        make.main()


def test_figures_claim_and_a_model_of_ones_own(tmp_path, monkeypatch, own_model, capsys):
    monkeypatch.setattr(make, "PAPERS", (registry.PAPER._replace(networks=tiny, with_models=None),))
    draw(tmp_path / "work")
    drawn = {path.name for path in (tmp_path / "work" / "figures").iterdir()}
    assert drawn == {f"{name}.{kind}" for name in FIGURES for kind in ("png", "pdf")}
    rows = claims.entries(json.loads((tmp_path / "work" / "claims.json").read_text()))
    assert [row["claim"] for row in rows] == ["L1"]
    assert rows[0]["details"]["networks"]["value"] == 3 * 3
    assert rows[0]["details"]["dropped"]["value"] == 3  # one-hot codes have no volume
    results = (tmp_path / "work" / "RESULTS.md").read_text()
    assert "| league_bumps_block_mlp_quick | OOD |" in results

    own = lambda models: registry.PAPER._replace(
        networks=lambda scale: tiny(scale, models), with_models=None
    )
    paper = registry.PAPER._replace(networks=tiny, with_models=own)
    monkeypatch.setattr(make, "PAPERS", (paper,))
    trained = []
    actual = experiment.train_together
    monkeypatch.setattr(
        experiment, "train_together",
        lambda pairs: trained.extend(c.name for c, _ in pairs) or actual(pairs, progress=False),
    )  # fmt: skip
    draw(tmp_path / "work", [own_model], ["league"])
    assert len(trained) == 3 and all("my_model_mine" in name for name in trained)


def test_an_own_model_is_a_row_at_its_defaults(own_model):
    found = [n for n in networks.networks("quick", (own_model,)) if n.role.player not in
             networks.PLAYERS]  # fmt: skip
    assert len(found) == 8 and {n.role.family for n in found} == {"my_model:Mine"}
    for network in found:
        assert network.config.model.width == 7 and network.config.training.steps == 1200
        assert network.config.training.learning_rate == 1e-3


def test_two_models_of_one_name_are_refused(own_model):
    """As one would be trained in the other's directory."""
    with pytest.raises(ConfigError, match="--models: two are named my_model:Mine"):
        networks.networks("quick", (own_model, f"elsewhere/{Path(own_model).name}"))


def test_hold_outs_of_a_task_leave_out_as_many_combinations_and_share_a_program():
    for scale in ("quick", "paper"):
        counts, schedules = {}, {}
        for network in networks.networks(scale):
            task = network.config.task.make()
            held_out = np.asarray(task.held_out(tasks.points(task)))
            counts.setdefault(network.role.task, set()).add(int(held_out.sum()))
            key = network.role.player, network.role.task
            schedules.setdefault(key, set()).add(experiment.schedule(network.config, task))
        assert {task: len(found) for task, found in counts.items()} == dict.fromkeys(counts, 1)
        assert all(len(found) == 1 for found in schedules.values())


def study(player, task, holdout, ood, seen=1.0, half=0.1):
    network = next(n for n in networks.networks("quick")
                   if n.role[0] == player and n.role[2:] == (task, holdout))  # fmt: skip
    number = lambda value: {"value": value, "ci95": [value - half, value + half]}
    accuracy = network.config.task.make().accuracy
    mean = {f"ood.{accuracy}": number(ood), f"id.{accuracy}": number(seen)}
    return SimpleNamespace(role=network.role, config=network.config, summary={"mean": mean})


def test_the_table_has_who_learnt_and_who_composes():
    played = [
        study("conv", "bumps", "block", 0.9, seen=0.94),
        study("MLP", "rotation", "random", 0.9),
        study("MLP", "sizes", "block", 1.0, half=0),
    ]
    cells, columns = table.cells(played), table.columns(played)
    assert list(columns) == [("bumps", "block"), ("sizes", "block"), ("rotation", "random")]
    assert not cells["conv"]["bumps", "block"].learnt
    assert not cells["conv"]["bumps", "block"].composes
    digits = cells["MLP"]["rotation", "random"]
    # single missing angles: the images beside them, mixed, are right as often
    assert digits.learnt and digits.trivial == columns["rotation", "random"].trivial["edge_mixture"]
    assert digits.trivial > 0.8 and not digits.composes
    sizes = cells["MLP"]["sizes", "block"]
    assert sizes.composes and sizes.ood["ci95"] == [1 - 1.5 / 300, 1.0]
    assert columns["sizes", "block"].trivial["mean_size"] < 0.4
    width, pixels, code = 256, 256, 36 + 5
    expected = (code + 1) * width + 2 * (width + 1) * width + (width + 1) * pixels
    assert table.parameters(played[1:2]) == {"MLP": expected}


def said(*played):
    return "\n".join(page.lines([study(*one) for one in played], []))


def test_sentences_name_who_composes():
    of_block = [("conv", 0.1), ("conv, stripes shown", 0.97), ("low rank", 0.3),
                ("low rank, penalties", 0.2), ("MLP", 0.05), ("pixelwise", 0.55)]  # fmt: skip
    found = said(*[(player, "bumps", "block", ood) for player, ood in of_block],
                 ("additive", "bumps", "block", 0.3, 0.9499))  # fmt: skip
    # .55 is above .5, but not the whole interval
    right = "held out: surely right on more than half: "
    assert f"a block {right}`conv, stripes shown` 0.97; the best of the others" in found
    assert "learnt is `pixelwise` 0.55; not learnt by `additive` (0.94)." in found
    assert "`low rank` has 0.3 [0.2, 0.4], with penalties 0.2 [0.1, 0.3]." in found
    assert "shown are 61% of the combinations of two factors" in found
    assert "| *best trivial predictor* | | | 0.00 (" in found
    assert "L1" not in found and "function that all pixels share, one MLP for all pixels" in found


def test_sentences_of_little_say_little():
    assert page.lines([], []) == []
    found = said(("additive", "bumps", "corner", 0.0, 0.3))
    right = "held out: surely right on more than half: "
    assert f"a corner {right}nobody; not learnt by `additive` (0.3)." in found
    assert "remedies" not in found and "each pixel's own" not in found


def test_the_page_says_what_the_committed_runs_say():
    played = [run for run in results.runs("quick").values() if registry.is_match(run.role)]
    assert played
    text = page.PAGE.read_text()
    assert page.with_league(text, played, results.claims("quick")) == text
