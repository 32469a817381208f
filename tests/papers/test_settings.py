"""The papers' tables of runs, and the settings around base networks."""

import pytest

from compgen_jax import presets
from compgen_jax.catalog import FORCED_RENDERING, PAPERS
from compgen_jax.claims import BASE
from compgen_jax.config import changed, identity
from compgen_jax.papers import variations, verdicts
from compgen_jax.papers.variations import SCALES, Group, Preset, times, training_time
from compgen_jax.training import contracts
from figures import make


def test_a_preset_is_its_base_changed_at_every_scale_and_at_one(tiny):
    wide = Preset(tiny, {"model.width": 16}, quick={"model.depth": 3}, paper={"name": "large"})
    deeper = Preset(wide, lambda config: {"model.depth": config.model.depth + 1})
    table = {"wide": wide, "deeper": deeper, "slow": Preset(wide, scales=("paper",))}
    quick, paper = (variations.at_scale(table, scale) for scale in SCALES)
    assert [config.name for config in quick.values()] == ["wide_quick", "deeper_quick"]
    assert [config.name for config in paper.values()] == ["large", "deeper", "slow"]
    depth = tiny.model.depth
    assert (quick["wide"].model.depth, quick["deeper"].model.depth) == (3, 4)
    assert (paper["wide"].model.depth, paper["deeper"].model.depth) == (depth, depth + 1)
    assert {config.model.width for config in (*quick.values(), *paper.values())} == {16}
    listed = presets.public({"timed": wide._replace(takes=("1 s", "2 s"))})
    assert [(name, one.takes) for name, one in listed.items()] == [
        ("timed_quick", "1 s"),
        ("large", "2 s"),
    ]
    assert presets.public(table) == {}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.title)
def test_runs_and_settings_of_a_paper_can_train_and_have_names_of_their_own(paper, scale):
    runs = paper.runs(scale)
    quick = {
        f"{name}_quick" for name in runs if scale == "quick" and not name.startswith("middle_")
    }
    assert quick == {one.name for one in runs.values() if one.name.endswith("_quick")}
    assert len({one.name for one in runs.values()}) == len(runs)
    cases = [case for claim in paper.claims for case in claim.cases]
    assert all(case.get("setting", BASE) for case in cases)
    groups = paper.settings if scale == "quick" else ()
    varied = make.configs_at_settings(groups, runs)
    assert len(varied) == sum(len(group.bases) * len(group.settings) for group in groups)
    alike = {base for (base, _), one in varied.items() if identity(one) == identity(runs[base])}
    assert alike <= {"lowrank_none", "lowrank_entropy", "lowrank_variance"}  # a penalty of 0 x3
    kinds = {(one.task.name, one.model.name): one for one in (*varied.values(), *runs.values())}
    for config in kinds.values():
        if not config.is_sweep:
            contracts.check(config)


def test_settings_change_one_thing_and_keep_the_names_of_runs_that_exist(tiny):
    wide = changed(tiny, {"name": "broad", "model.width": 16})
    settings = {
        "width x2": times("model.width", 2),
        "learning rate x1/3": times("training.learning_rate", 1 / 3),
        "training time x2": training_time(2.0),
        "depth 3": {"model.depth": 3},
        "batch size x1/3": times("training.batch_size", 1 / 3),
    }
    group = Group(("net",), settings)
    varied = make.configs_at_settings((group,), {"net": tiny, "wide": wide})
    assert varied["net", "width x2"] == wide
    slow = varied["net", "learning rate x1/3"]
    assert slow.training.learning_rate == pytest.approx(tiny.training.learning_rate / 3)
    assert slow.name == "tiny_learning_rate_x1_3"
    assert changed(slow, {"name": "tiny", "training.learning_rate":
                          tiny.training.learning_rate}) == tiny  # fmt: skip
    long = varied["net", "training time x2"].training
    assert (long.epochs, long.evaluate_every) == (12, 4)
    assert varied["net", "depth 3"].model.depth == 3
    assert varied["net", "batch size x1/3"].training.batch_size == 11  # of 32
    assert make.configs_at_settings((group,), {"other": tiny}) == {}
    assert times("model.depth", 0.1)(tiny) == {"model.depth": 1}  # not 0


def test_claims_on_some_of_the_runs_say_what_they_lack():
    _, lacking = verdicts.judge((FORCED_RENDERING,), {"corner_bumps": None}, "quick")
    assert lacking["C13.bumps_alone", "bump"] == ["stripes_50_bumps"]
    assert verdicts.judge((FORCED_RENDERING,), {"another": None}, "quick") == ([], {})
