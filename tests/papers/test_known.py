"""Known maps and networks do what they say."""

import numpy as np
import pytest

from compgen_jax.papers.forced_rendering import known, known_networks
from compgen_jax.papers.forced_rendering.images import rendered
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, ImageConfig
from compgen_jax.tasks.supports import SupportConfig


@pytest.mark.parametrize(
    ("grid", "sigma", "region", "low", "high"),
    [(16, 1.0, "donut", 3, 12), (16, 1.0, "corner", 7, 15), (20, 1.5, "corner", 8, 19)],
)
def test_only_the_bump_is_rendered(grid, sigma, region, low, high):
    """The edge map draws true bumps on the outermost held-out cells, and nowhere else."""
    support = SupportConfig(region=region, low=low, high=high)
    config = Bump(grid=grid, image=ImageConfig(sigma=sigma), support=support)
    score, empty = known.scorer_of(config)
    world = known.world_of(empty.truths, empty.held_out)
    side = high - low + 1
    expected = {
        "bump": 1,
        "edge": (4 * (side - 1) if region == "donut" else 2 * side - 1) / side**2,
    }
    # a wide bump next to the asked one passes where another seen cell is as near
    ties = {"lookup": 4 / side**2} if sigma > 1 else {}
    for name in known.MAPS:
        (share,) = rendered(score(known.images(name, world)[None]))
        assert share >= expected.get(name, 0) - 1e-9, name
        assert share <= expected.get(name, 0) + ties.get(name, 0) + 1e-9, name


@pytest.mark.parametrize("region", ["donut", "corner"])
def test_known_maps_draw_what_they_say(region):
    task = known.bumps(16, region).make()
    _, empty = known.scorer_of(known.bumps(16, region))
    true, held_out = empty.truths, empty.held_out
    world = known.world_of(true, held_out)
    cells = tasks.cells(task.factors).astype(int)
    drawn = {name: known.images(name, world) for name in known.MAPS}
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
            "bump": at[x, y],
            "faint": 0.01 * at[x, y],
            "plus": plus,
            "plus - 0.4": plus - 0.4,
            "plus - 1": plus - 1,
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


def test_maps_need_a_square():
    true = np.zeros((64, 8, 8))
    for held_out in (np.zeros(64, bool), np.arange(64) % 3 == 0, np.arange(64) == 1):
        with pytest.raises(ValueError, match="square on the diagonal"):
            known.world_of(true, held_out)


def test_known_networks_do_what_they_say():
    """Volumes over the hole in closed form, and what single units are tuned to."""
    networks = known_networks.networks(16, "donut")
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
