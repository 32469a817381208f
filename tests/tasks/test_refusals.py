"""What the package refuses, each in one line that says what is wrong."""

import numpy as np
import pytest

from compgen_jax import cli
from compgen_jax.config import Config, ConfigError, changed
from compgen_jax.tasks import baselines, marginals, module_codes
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.module_codes import LatentCodeConfig
from tests.command import refused

# settings of a task as a command line has them
REFUSED = [
    ("name=bump support.samples=0", "samples=0: leaves nothing to train on"),
    (
        "name=bump code.name=ramp stripes.copies=1",
        "missing='zero': is the ramp's code of coordinate 0",
    ),
    (
        "name=bump size.values=3 size.smallest=2 size.largest=1",
        "size.values=3: needs two sizes or more, from config.task.size.smallest=2 up",
    ),
    ("name=bump size.values=3 stripes.copies=1", "size.values=3: only one of sizes, stripes, two"),
    (
        "name=bump support.sampling=without_replacement",
        "support.samples: 2000 points, but only 495 cells are seen",
    ),
    (
        "name=bump grid=16 support.region=random support.share=1",
        "region='random': holds out all or none of the 256",
    ),
    (
        "name=bump support.of=('x',) support.low=4 support.high=6",
        "no training point has x in [4, 5, 6]",
    ),
    ("name=bump support.of=('z',)", "of=('z',): must name some of x, y"),
    (
        "name=bump support.region=random support.in_proportion=True support.sampling=real",
        "in_proportion=True: the share of real points in the region 'random' is",
    ),
    ("name=bump stripes.copies=1 stripes.hole=(2,1,3)", "hole=(2, 1, 3): must be the"),
    ("name=inverse answer=coordinates stripes.copies=1", "answer='coordinates': a stripe has no"),
    ("name=inverse code.name=ramp", "code.name='ramp': has no unit for each value to decode"),
    ("name=inverse bumps=2", "bumps=2: an image does not tell which of its bumps is the first"),
    ("name=rotation side=16 mnist_path=mnist", "side=16: images of config.task.mnist_path need 28"),
    ("name=rotation gap.low=200 gap.high=160", "gap.high=160: must be greater than"),
    ("name=rotation angles=24 gap.low=161 gap.high=164", "holds out none of config.task.angles=24"),
    ("name=rotation gap.low=350 gap.high=550 samples=1", "samples=1 angles"),
    ("name=rotation objects=(4,7)", "no digit is shown at some angles"),
    ("name=sprites turn=whole", "counts.orientation=4: the square repeats within a whole turn"),
    (
        "name=sprites shapes=('heart',) counts.scale=1 counts.orientation=1 counts.posX=1 "
        "counts.posY=1",
        "lets no factor vary",
    ),
    (
        "name=sprites code.of=(('posX','ramp'),)",
        "code.of=(('posX', 'ramp'),): must be pairs of one of",
    ),
    ("name=sprites samples=9999", "samples=9999: only 3629 of 5184 combinations are ID"),
    ("name=sprites asks=factors loss=bernoulli", "asks='factors': needs "),
    ("name=table", "path='': must name a file"),
    (
        "name=modules support.name=disconnected support.held_out_share=0.1",
        "627 of 696 sets seen; must",
    ),
    ("name=modules tasks=2000", "tasks=2000: makes more than 24,000 examples"),
    ("name=preference features=8", "features=8: fewer than config.task.modules=16"),
    ("name=preference code.name=fewshot", "code.name='fewshot': "),
]


@pytest.mark.parametrize(("line", "message"), REFUSED)
def test_settings_that_cannot_be(line, message):
    values = dict(f"task.{word}".split("=") for word in line.split())
    with refused("config.task.", message, kind=ConfigError):
        changed(Config(), values, read=cli._read).task.make()


CODES, ONE = np.zeros((3, 2)), np.arange(16) == 5
FACTORS = [tasks.Factor(name, np.arange(4.0)) for name in "xy"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: baselines.line_mean(np.ones((4, 4, 1)), ONE.reshape(4, 4)), "differs from every"),
        (lambda: baselines.interpolate(np.nan * CODES, CODES, CODES), "NaN or infinite"),
        (lambda: marginals.images("mean", np.sum, FACTORS, ONE & False), "a cell that is shown"),
        (
            lambda: module_codes.encode(np.ones(7), LatentCodeConfig("fewshot")),
            "no function of its lat",
        ),
        (lambda: tasks.point_of(FACTORS, ("1", "up")), "'up': must be a number"),
    ],
)
def test_calls_that_cannot_be(call, message):
    with refused(message):
        call()
