"""The league from two commands: tiny matches, a model of the user's own, figures and the page."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from compgen_jax.config import changed
from compgen_jax.runs import experiment
from compgen_jax.tasks import task as tasks
from figures import make
from figures.league import networks, page, registry, table
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
    """Few players, without the third factor, for six steps of two seeds."""
    small = {"training.steps": 6, "training.evaluate_every": 3, "training.seeds": (0, 1)}
    return [
        network._replace(config=changed(network.config, small | _narrow(network.config)))
        for network in networks.networks(scale, own)
        if network.role.task != "sizes" and (network.role.player in PLAYED or own)
        and (not own or network.role.player in ("MLP", "my_model:Mine"))
    ]  # fmt: skip


def _narrow(config):
    fields = {"decoder.width": 8}
    if config.task.name == "rotation":
        return fields | {"task.side": 8}
    hole = {"task.support.low": 3, "task.support.high": 4}
    return fields | {"task.grid": 8} | hole


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
    rows = json.loads((tmp_path / "work" / "claims.json").read_text())
    assert [row["claim"] for row in rows] == ["L1"]
    assert rows[0]["details"]["networks"]["value"] == 4 * 3 + 3 * 2  # with bumps, and with digits
    results = (tmp_path / "work" / "RESULTS.md").read_text()
    assert "| league_rotation_block_mlp_quick | OOD |" in results

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
    assert len(trained) == 5 and all("my_model_mine" in name for name in trained)


def test_an_own_model_is_a_row_at_its_defaults(own_model):
    found = [n for n in networks.networks("quick", (own_model,)) if n.role.player not in
             networks.PLAYERS]  # fmt: skip
    assert len(found) == 8 and {n.role.family for n in found} == {"my_model:Mine"}
    for network in found:
        assert network.config.decoder.width == 7 and network.config.training.steps == 1200
        assert network.config.training.learning_rate == 1e-3


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


def study(player, task, holdout, ood, seen=1.0, error=0.1):
    network = next(n for n in networks.networks("quick")
                   if n.role[0] == player and n.role[2:] == (task, holdout))  # fmt: skip
    number = lambda value: {"value": value, "ci95": [value - 0.1, value + 0.1]}
    mean = {"ood.exact_accuracy": ood, "id.exact_accuracy": seen, "ood.mse": error}
    mean |= {f"ood.{name}_mse": 0.2 for name in network.config.task.make().baselines}
    summary = {"mean": {name: number(value) for name, value in mean.items()}}
    return SimpleNamespace(role=network.role, config=network.config, summary=summary)


def test_the_table_has_who_learnt_and_who_is_trivial():
    played = [study("conv", "bumps", "block", 0.2, seen=0.94, error=0.3),
              study("MLP", "rotation", "random", 0.9)]  # fmt: skip
    cells = table.cells(played)
    assert table.columns(played) == [("bumps", "block"), ("rotation", "random")]
    assert not cells["conv"]["bumps", "block"].learnt
    assert cells["conv"]["bumps", "block"].over_trivial == pytest.approx(1.5)
    assert cells["MLP"]["rotation", "random"].learnt
    width, pixels, code = 256, 256, 36 + 5
    expected = (code + 1) * width + 2 * (width + 1) * width + (width + 1) * pixels
    assert table.parameters(played[1:]) == {"MLP": expected}


def test_sentences_name_who_composes():
    players = ("conv", "conv, stripes shown", "low rank", "low rank, penalties", "MLP",
               "pixelwise", "additive")  # fmt: skip
    accuracy = (0.1, 0.97, 0.0, 0.8, 0.05, 0.6, 0.3)
    seen = (1.0,) * 6 + (0.4,)
    played = [study(p, "bumps", "block", a, s) for p, a, s in zip(players, accuracy, seen,
                                                                 strict=True)]  # fmt: skip
    found = "\n".join(page.lines(played, []))
    assert "of 6 players that learnt what they were shown, 3 draw most of the rest right: " in found
    assert "conv, stripes shown 0.97, low rank, penalties 0.8, pixelwise 0.6;" in found
    assert "none is above 0.1." in found and "61% of the combinations of two factors" in found
    assert page.lines([], []) == []


def test_the_page_says_what_the_committed_runs_say():
    results = ROOT / "docs" / "results" / "quick"
    claims = json.loads((results / "claims.json").read_text())
    played = page.committed(results / "runs", "quick")
    text = page.PAGE.read_text()
    assert page.with_league(text, played, claims) == text
