"""Settings around base networks: their configs."""

import fnmatch

import pytest

from compgen_jax.config import changed
from compgen_jax.papers import settings
from compgen_jax.papers.forced_rendering import runs as first_paper
from compgen_jax.papers.forced_rendering.settings import GROUPS
from compgen_jax.papers.settings import Group, times, to, training_time


def test_settings_change_one_thing_and_keep_the_names_of_runs_that_exist(tiny):
    wide = changed(tiny, {"name": "broad", "model.width": 16})
    group = Group(("net",), (times("model.width", 2), times("training.learning_rate", 1 / 3),
                             training_time(2.0), to("depth 3", model__depth=3)))  # fmt: skip
    found = settings.configs((group,), {"net": tiny, "wide": wide})
    assert found["net", "width x2"] == wide
    slow = found["net", "learning rate x1/3"]
    assert slow.training.learning_rate == pytest.approx(tiny.training.learning_rate / 3)
    assert slow.name == "tiny_learning_rate_x1_3"
    assert changed(slow, {"name": "tiny", "training.learning_rate":
                          tiny.training.learning_rate}) == tiny  # fmt: skip
    long = found["net", "training time x2"].training
    assert (long.epochs, long.evaluate_every) == (12, 4)
    assert found["net", "depth 3"].model.depth == 3
    assert settings.configs((group,), {"other": tiny}) == {}


def test_a_setting_has_one_meaning_in_all_groups_of_the_first_paper():
    """Claims that compare networks of two groups are judged where both have a setting."""
    base = {name: one for name, one in first_paper.runs("quick").items() if not one.is_sweep}
    found = settings.configs(GROUPS, base)
    assert len(found) == sum(len(group.bases) * len(group.settings) for group in GROUPS)
    assert all(name.endswith("_quick") for name in [config.name for config in found.values()])
    assert found["bump_cnn", "corner"] == base["corner_bumps"]
    assert found["stripes_0_bumps", "upright"].task.image.polarity == "upright"
    # what C12 and C13 compare as stated is changed together
    (stripes,) = (set(group.bases) for group in GROUPS if "stripes_0_bumps" in group.bases)
    compared = {name for name in base if fnmatch.fnmatchcase(name, "stripes_*_bumps")}
    assert stripes == compared | {"corner_bumps"} and len(compared) == 3
