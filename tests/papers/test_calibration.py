"""Criteria decide rightly on known answers, at the sizes where they are used."""

import jax
import numpy as np
import pytest

from compgen_jax.calibration import decided, wrongly_decided
from compgen_jax.claims import CONTRADICTED, REPRODUCED
from compgen_jax.papers.forced_rendering import calibrations as forced_rendering
from compgen_jax.papers.forced_rendering import (
    known_maps,
    known_networks,
    mechanism,
    remedies,
)
from compgen_jax.papers.forced_rendering.calibrations import CALIBRATIONS, OF_TURNS
from compgen_jax.papers.forced_rendering.claims import CLAIMS
from compgen_jax.runs import results
from compgen_jax.tasks import task as tasks
from tests.papers.decoders import verdicts

# tried on numbers alone, in the tests of the modules that hold them
ON_NUMBERS = {
    *(claim for claim in CLAIMS if claim.name in ("C8", "C11")),
    mechanism.CLEARER_FOR_BUMP,
}
# `make docs-check` tries images of bumps of more pixels and networks around a corner too, which
# takes minutes; turned digits have 28 pixels at either scale (Figure 9)
TRIED = {f"{one.make.func.__name__}, {one.title}": one for one in CALIBRATIONS
         if "28" not in one.title or one in OF_TURNS}  # fmt: skip
del TRIED["networks, N = 16, corner"]
MADE: dict = {}


def made(name):
    """The known answers of a calibration, made once."""
    if name not in MADE:
        with jax.numpy_rank_promotion("allow"):
            MADE[name] = TRIED[name].make()
    return MADE[name]


@pytest.fixture(scope="module", autouse=True)
def forget():
    yield
    MADE.clear()


@pytest.mark.parametrize("name", TRIED)
def test_the_mechanism_is_reproduced_and_no_alternative_is(name):
    one = TRIED[name]._replace(make=lambda: made(name))
    with jax.numpy_rank_promotion("allow"):
        table = decided(one, CLAIMS)
    assert table.keys() == {case.claim for case in one.cases}
    assert all(row.keys() == one.does.keys() for row in table.values())
    assert wrongly_decided(table, one.cases) == []


def test_every_claim_is_tried():
    cases = [case for one in CALIBRATIONS for case in one.cases]
    first = {claim.name: claim for claim in reversed(CLAIMS)}
    assert {id(case.row or first[case.claim]) for case in cases} == {
        id(claim) for claim in CLAIMS if claim not in ON_NUMBERS
    }


def test_the_clearer_structure_is_that_of_the_literal_sum():
    """C5 of two codes: a sum's is clearer than a superposer's, and neither than its own."""
    maps = made("maps, N = 16, donut")
    of = lambda bump, ramp: verdicts(mechanism.CLEARER_FOR_BUMP, bump=maps[bump], ramp=maps[ramp])
    assert of("sum", "superposer") == of("sum", "bump") == (REPRODUCED, REPRODUCED)
    assert of("superposer", "sum") == (CONTRADICTED, CONTRADICTED)
    assert REPRODUCED not in of("noise", "noise")


def test_known_networks_do_what_they_say():
    """Volumes over the hole in closed form, and what single units are tuned to."""
    networks = made("networks, N = 16, donut")
    depths = np.linspace(0, 1, known_networks.HIDDEN + 2)
    volume = {name: one.layers("volume.log10_ratio") for name, one in networks.items()}
    np.testing.assert_allclose(volume["composer"][:, 0], 0, atol=0.03)
    for name, sign in (("fading", 2), ("swelling", -2)):
        gain = np.log10(1 - known_networks.FAINT * depths)
        difference = volume[name] - volume["composer"]
        np.testing.assert_allclose(difference, np.tile(sign * gain, (3, 1)), atol=1e-3)
    moved = volume["to the seen"] - volume["composer"]
    # all but the image, where it is 0: one direction of two is left at 1 - t of its length
    np.testing.assert_allclose(moved[:, :-1].mean(axis=0), np.log10(1 - depths[:-1]), atol=0.1)
    stripes, products = (networks[name].layers for name in ("stripes", "products"))
    np.testing.assert_allclose(stripes("tuning.weighted_one_factor"), 1, atol=1e-6)
    np.testing.assert_allclose(stripes("tuning.weighted_product"), 0, atol=1e-6)
    assert (products("tuning.weighted_product")[:, 1:] > 0.5).all()


@pytest.mark.parametrize("region", ["donut", "corner"])
def test_known_maps_draw_what_they_say(region):
    task = forced_rendering.bumps(16, region).make()
    known = results.scorer(task)(np.zeros((1, 256, 16, 16), np.float32))
    true, held_out = known.truths, known.held_out
    world = known_maps.world_of(true, held_out)
    cells = tasks.cells(task.factors).astype(int)
    drawn = {name: known_maps.images(name, world) for name in known_maps.MAPS}
    for name, images in drawn.items():
        np.testing.assert_allclose(images[~held_out], true[~held_out], err_msg=name)
    at = {tuple(cell): image for cell, image in zip(cells.tolist(), true, strict=True)}
    profile = lambda c: np.exp(-((np.arange(16) - c) ** 2) / 2)
    low, high = world.low, world.high
    for (x, y), index in zip(cells[held_out].tolist(), np.flatnonzero(held_out), strict=True):
        plus = profile(x)[None, :] + profile(y)[:, None]
        ends = {(low - 1, y): x - low + 1, (x, low - 1): y - low + 1}
        if high < 15:
            ends |= {(high + 1, y): high + 1 - x, (x, high + 1): high + 1 - y}
        weights = {cell: 1 / distance for cell, distance in ends.items()}
        near = sum(weight * at[cell] for cell, weight in weights.items()) / sum(weights.values())
        row = [at[a, y] for a in range(16) if not low <= a <= high]
        column = [at[x, b] for b in range(16) if not low <= b <= high]
        expected = {
            "faint": 0.01 * at[x, y],
            "plus": plus,
            "plus - 0.4": plus - 0.4,
            "superposer": near,
            "sum": sum(row) + sum(column),
            "edge": at[x, y] if min(ends.values()) <= 1 else drawn["superposer"][index],
        }
        for name, image in expected.items():
            np.testing.assert_allclose(drawn[name][index], image, atol=1e-5, err_msg=name)
        nearest = [at[cell] for cell in ends if ends[cell] == min(ends.values())]
        assert min(np.abs(image - drawn["lookup"][index]).max() for image in nearest) < 1e-6
    assert not drawn["blank"][held_out].any()
    noise = drawn["noise"][held_out]
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.3
    assert noise.mean() == pytest.approx(0.5, abs=0.02)


def test_known_stripes_are_those_of_the_task():
    settings = forced_rendering.bumps(16, "corner")
    profiles = np.exp(-((np.arange(16)[:, None] - np.arange(16)) ** 2) / 2)
    stripes = remedies.true_stripes(settings)
    vertical = np.broadcast_to(profiles[:, None, :], (16, 16, 16))
    np.testing.assert_allclose(
        stripes, np.concatenate([vertical, vertical.swapaxes(1, 2)]), atol=1e-6
    )


def test_maps_need_a_square():
    true = np.zeros((64, 8, 8))
    for held_out in (np.zeros(64, bool), np.arange(64) % 3 == 0, np.arange(64) == 1):
        with pytest.raises(ValueError, match="square on the diagonal"):
            known_maps.world_of(true, held_out)
