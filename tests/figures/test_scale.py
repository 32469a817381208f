"""The second paper's figures on tiny students: which networks there are, what is drawn."""

import json

import pytest
from absl import flags
from absl.testing import flagsaver

from compgen_jax.config import changed
from compgen_jax.old_claims import entries
from compgen_jax.papers.scale import constructions
from compgen_jax.papers.scale import runs as networks
from compgen_jax.papers.scale.runs import Block, having
from compgen_jax.runs import experiment
from compgen_jax.tasks import task as tasks
from figures import make
from figures.scale import registry, verdicts

FIGURES = ("scale1", "scale2", "scale3", "scale4", "bridge")
WIDTHS = {64: 4, 256: 6}


def test_quick_networks_are_those_of_the_presets():
    found = networks.networks("quick")
    assert len({n.name for n in found}) == len(found)
    sizes = {group: sum(having(group)(n.role) for n in found)
             for group in ("seen", "code", "support", "modules", "bridge")}  # fmt: skip
    assert sizes == {"seen": 12, "code": 4, "support": 6, "modules": 12, "bridge": 12}
    of_supports = [n.config.task for n in found if having("support")(n.role)]
    for task in of_supports:  # equal sizes: no support is easier for having more
        facts = task.make().facts()
        assert (facts["seen_sets"], facts["sets"]) == (44, 92)
    steps = {n.role.code: n.config.training.steps for n in found if having("code")(n.role)}
    assert steps["orthogonal"] == 6000 and set(steps.values()) == {6000, 24_000}
    assert all(len(n.config.training.seeds) == 4 for n in found)


def test_students_of_a_shape_share_a_program():
    found = [n for n in networks.networks("quick") if having("seen")(n.role)]
    groups = make._by_program([n.config for n in found])
    assert sorted(map(len, groups)) == [4, 4, 4]


def test_decoders_of_bumps_hold_out_as_many_cells_in_either_way():
    blocks = [n for n in networks.networks("quick") if isinstance(n.role, Block)]
    by_share = {}
    for network in blocks:
        task = network.config.task.make()
        count = int(task.held_out(tasks.points(task)).sum())
        by_share.setdefault(network.role.seen, set()).add(count)
        assert count == round((1 - network.role.seen) * 256)
    assert all(len(counts) == 1 for counts in by_share.values()) and len(by_share) == 2


def shrunk(network):
    """The network with a few steps, 2 seeds and a narrow student; its name stays."""
    small = {"training.seeds": (0, 1)}
    if isinstance(network.role, Block):
        width = 2 if network.role.width == 8 else 3
        small |= {"training.epochs": 1, "training.evaluate_every": 1, "model.width": width,
                  "model.depth": 2}  # fmt: skip
    else:
        width = WIDTHS[network.role.width]
        small |= {"training.steps": 6, "training.evaluate_every": 3, "model.width": width,
                  "task.tests": 24, "training.batch_size": 4}  # fmt: skip
    role = network.role._replace(width=width)
    return network._replace(config=changed(network.config, small), role=role)


def tiny_networks(scale):
    """Of two widths, one code and two numbers of modules, and of bumps the wide decoders: every
    program takes seconds to compile."""
    return [shrunk(n) for n in networks.networks(scale) if _is_kept(n.role)]


def _is_kept(role) -> bool:
    if isinstance(role, Block):
        return role.width == 32
    return role.width in WIDTHS and role.code in ("identity", "orthogonal") and role.modules < 16


@pytest.fixture
def few_constructions(monkeypatch):
    """Small tables of what is written down; the whole are in the tests of claims."""
    exact = constructions.table_k_hot((4, 32), (0, 1), size=4, count=50)
    graded = constructions.table_graded((8, 32), (4, 8, 16), (0, 1), size=4, count=100)
    monkeypatch.setattr(verdicts, "tables_of_neurons", lambda: (exact, graded, graded))
    monkeypatch.setattr("figures.scale.figures.tables_of_neurons", lambda: (exact, graded, graded))


def test_figures_and_claims(tmp_path, monkeypatch, few_constructions):
    monkeypatch.setattr(make, "PAPERS", (registry.PAPER._replace(networks=tiny_networks),))
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["test"])
    with flagsaver.flagsaver(workdir=str(tmp_path), only=list(FIGURES)):
        make.main()
        drawn = {path.name for path in (tmp_path / "figures").iterdir()}
        assert drawn == {f"{name}.{kind}" for name in FIGURES for kind in ("png", "pdf")}
        rows = entries(json.loads((tmp_path / "claims.json").read_text()))
        names = [row["claim"] for row in rows]
        parts = {"1": "abc", "2": "ab", "3": "abc", "4": "abc"}
        assert set(names) == {f"S{number}{part}" for number in parts for part in parts[number]}
        assert names.count("S2a") == 1 and names.count("S2b") == 5
        for row in rows:  # six steps teach nothing
            if row["claim"] in ("S1a", "S1b", "S1c", "S2a", "S2b", "S3c"):
                assert row["as_stated"]["verdict"] == "inconclusive"
                assert row["as_stated"]["reason"].startswith(("not trained: R² ID", "not reached"))
        page = (tmp_path / "RESULTS.md").read_text()
        assert "## Scale: errors and baselines" in page and "bilinear" in page
        monkeypatch.setattr(experiment, "train_together", None)  # nothing is trained twice
        make.main()
