"""What the package refuses, each in one line that says what is wrong."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError, TrainingConfig
from compgen_jax.tasks import baselines, marginals, module_codes
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, SizeConfig, StripesConfig
from compgen_jax.tasks.encodings import CodeConfig, CodesConfig
from compgen_jax.tasks.marginals import MarginalsConfig
from compgen_jax.tasks.module_codes import LatentCodeConfig
from compgen_jax.tasks.module_supports import ModuleSupportConfig
from compgen_jax.tasks.modules import Modules
from compgen_jax.tasks.preference import Preference
from compgen_jax.tasks.rotation import GapConfig
from compgen_jax.tasks.sprites import CountsConfig, Sprites
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.tasks.table import ImageTable
from tests.tasks.examples import TASKS

RAMP = CodeConfig("ramp")
STRIPES = {"stripes": StripesConfig(1)}
CORNER = SupportConfig("corner", low=4, sampling="without_replacement", samples=5)
SPRITES = replace(TASKS["sprites"], marginals=MarginalsConfig())


def bump(support=CORNER, **fields):
    return Bump(grid=8, support=support, **fields)


def hole(**fields):
    return Bump(grid=16, support=SupportConfig(**fields))


def inverse(**fields):
    return replace(TASKS["inverse"], **fields)


def turned(**fields):
    return replace(TASKS["rotation"], **fields)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (bump(replace(CORNER, sampling="every_cell"), images=3), "images=3: .*takes each"),
        (bump(replace(CORNER, samples=0)), "samples=0: leaves nothing to train on"),
        (bump(code=RAMP, **STRIPES), "code.missing='zero': is the ramp's code of coordinate 0"),
        (bump(size=SizeConfig(3, 2.0, 1.0)), "3: .*size.smallest=2"),
        (bump(size=SizeConfig(3), **STRIPES), "size.values=3: only one of sizes, stripes, two"),
        (
            bump(replace(CORNER, samples=49)),
            "support.samples: 49 points, but only 48 cells are seen",
        ),
        (hole(region="random", share=1.0), "region='random': holds out all or none of the 256"),
        (hole(of=("x",), low=4, high=6), r"no training point has x in \[4, 5, 6\]"),
        (hole(of=("z",)), r"of=\('z',\): must name some of x, y"),
        (hole(region="random", in_proportion=True, sampling="real"), "the share of real .* is"),
        (inverse(answer="coordinates", **STRIPES), "answer='coordinates': a stripe has no"),
        (inverse(code=RAMP), "code.name='ramp': has no unit for each value to decode"),
        (inverse(bumps=2), "bumps=2: an image does not tell which of its bumps is the first"),
        (turned(mnist_path="mnist"), "side=16: images of .* need 28"),
        (turned(gap=GapConfig(low=200, high=160)), "gap.high=160: must be greater than"),
        (turned(gap=GapConfig(low=161, high=164)), "gap=.*holds out none of .*angles=24"),
        (turned(gap=GapConfig(low=350, high=550), samples=1), "samples=1 angles"),
        (turned(objects=(4, 7)), "no digit is shown at some angles"),
        (Sprites(turn="whole"), "counts.orientation=.*the square repeats within a whole turn"),
        (Sprites(shapes=("heart",), counts=CountsConfig(1, 1, 1, 1, 1)), "counts=.*no factor"),
        (replace(SPRITES, code=CodesConfig(of=(("posX", "ramp"),))), "code.of=.*and one of"),
        (replace(SPRITES, samples=999), "samples=999: only .* combinations are ID"),
        (replace(SPRITES, asks="factors"), "asks='factors': needs .*kind='none' and"),
        (ImageTable(), "path='': must name a file"),
        (
            Modules(support=ModuleSupportConfig("disconnected", held_out_share=0.1)),
            "627 of 696 .* at most 576 for",
        ),
        (Modules(tasks=2000), "tasks=2000: makes more than 24,000 examples"),
        (Bump(stripes=StripesConfig(copies=1, hole=(2, 1, 3))), r"hole=\(2, 1, 3\): must be the"),
        (Preference(features=8), "features=8: fewer than config.task.modules=16"),
        (Preference(code=LatentCodeConfig("fewshot")), "code.name='fewshot': "),
    ],
)
def test_settings_that_cannot_be(task, message):
    with pytest.raises(ConfigError, match=rf"config\.task\..*{message}") as error:
        Config(task=task, training=TrainingConfig(steps=10)).task.make()
    assert "\n" not in str(error.value)


HOLE, LINE = np.arange(16) == 5, np.zeros((4, 4), bool)
LINE[1], LINE[:, 2] = True, True
CODES = np.zeros((3, 2))
FACTORS = [tasks.Factor(name, np.arange(4.0)) for name in "xy"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: baselines.line_mean(np.ones((4, 4, 1)), ~LINE), "some cell differs from every"),
        (lambda: baselines.interpolate(np.nan * CODES, CODES, CODES), "NaN or infinite"),
        (lambda: marginals.images("mean", jnp.sum, FACTORS, HOLE & False), "a cell that is shown"),
        (
            lambda: module_codes.encode(np.ones(7), LatentCodeConfig("fewshot")),
            "no function of its lat",
        ),
        (lambda: tasks.point_of(FACTORS, ("1", "up")), "'up': must be a number"),
    ],
)
def test_calls_that_cannot_be(call, message):
    with pytest.raises(ValueError, match=message):
        call()
