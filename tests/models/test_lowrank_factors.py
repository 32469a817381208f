"""The low-rank decoder of any factors and images, against float64 loops; its penalty by axes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError, TrainingConfig, changed
from compgen_jax.models import lowrank
from compgen_jax.models.lowrank import LowRank, PenaltyConfig
from compgen_jax.models.model import Shapes
from compgen_jax.tasks.scene import CodesConfig
from compgen_jax.tasks.sprites import Sprites
from tests.models.test_lowrank import KEY, embedding_penalty, factor

PARTS, SHAPE = (2, 5, 3), (6, 8, 3)


def build(shape=SHAPE, parts=PARTS, lowering="lax", **settings):
    struct = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
    settings = {"depth": 2, "width": 3} | settings
    shapes = Shapes(struct(sum(parts)), struct(*shape), lowering, parts)
    return LowRank(**settings).make(shapes)


def variables(decoder, seed=0):
    like = jax.eval_shape(decoder.init, KEY, np.zeros(sum(decoder.parts), np.float32))
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: np.float32(random.normal(size=leaf.shape) * 0.4), like)


def test_more_than_ten_factors_keep_their_order():
    parts = (1,) * 10 + (2, 3)
    decoder = build(parts=parts, rank=1)
    sorted_by_name = dict(sorted(variables(decoder)["params"].items()))
    factors = lowrank.embeddings({"params": sorted_by_name}, "unit")
    assert [len(f.values) for f in factors] == list(parts)


# --- the penalty by axes ---------------------------------------------------------------------

AXES = ((0, "rows"), (2, "none"), (3, "columns"))  # of factors 0 to 4: 1 and 4 have both


@pytest.mark.parametrize("vectors", ["raw", "scale_free"])
def test_variance_is_penalised_along_the_axes_of_each_factor(vectors):
    factors = [factor(seed, tokens=3 + seed, terms=4, side=5) for seed in range(5)]
    penalised = [("left",), ("left", "right"), (), ("right",), ("left", "right")]
    expected = 0.0
    for one, sides in zip(factors, penalised, strict=True):
        shares = one.values**2 / (one.values**2).sum(axis=1, keepdims=True)
        for side in sides:
            raw = vectors == "raw"
            entries = getattr(one, f"raw_{side}" if raw else side)
            weights = np.ones_like(shares) if raw else shares
            expected += 0.02 * (weights * entries.var(axis=2, ddof=1)).sum()
    for tokens in ("sum", "mean"):
        config = PenaltyConfig(vectors=vectors, axes=AXES, tokens=tokens)
        found = float(embedding_penalty(factors, 0.0, 0.02, config))
        assert (found == pytest.approx(expected, rel=1e-5)) == (tokens == "sum")
    alone = [(k, "none") for k in range(5)]
    nothing = embedding_penalty(factors, 0.0, 1.0, PenaltyConfig(axes=tuple(alone)))
    assert float(nothing) == 0


def test_rows_and_columns_are_those_of_the_image():
    """An embedding that is constant along the rows y, a stripe of x, costs nothing along them."""
    own = factor(0, tokens=3, terms=1, side=5)
    stripe = own._replace(raw_left=np.ones_like(own.raw_left))
    image = np.einsum("tkh,tkw->thw", stripe.raw_left, stripe.raw_right)  # [token, y, x]
    assert not np.ptp(image, axis=1).any() and np.ptp(image, axis=2).all()
    for axes, costs in (("rows", False), ("columns", True), ("both", True), ("none", False)):
        penalty = embedding_penalty([stripe], 0.0, 1.0, PenaltyConfig(axes=((0, axes),)))
        assert (float(penalty) > 0) == costs


def test_what_does_not_fit_is_refused_in_one_line(tiny):
    onehot_task = changed(tiny, {"task.code.name": "onehot"}).task
    pairs = "must be pairs of a factor's index, from 0, and one of both, rows, columns, none"
    for settings, message in [
        (LowRank(penalty=PenaltyConfig(axes=(("posX", "rows"),))), pairs),
        (LowRank(penalty=PenaltyConfig(axes=((0, "x"),))), pairs),
        (LowRank(penalty=PenaltyConfig(axes=(0, "rows"))), pairs),
        (LowRank(penalty=PenaltyConfig(axes=((0, "rows"), (0, "none")))), "names a factor twice"),
        (LowRank(depth=2, dilations=(1, 2, 4)), "positive integer for each of the 2 hidden layers"),
        (LowRank(depth=2, dilations=(1, 0)), "positive integer for each of the 2 hidden layers"),
    ]:
        with pytest.raises(ConfigError, match=message) as error:
            Config(task=onehot_task, model=settings)
        assert "\n" not in str(error.value)
    for of in ((("posX", "value"),), (("posX",),), ("posX",)):
        sprites = Sprites(code=CodesConfig(name="onehot", of=of))
        with pytest.raises(ConfigError, match=r"config\.task\.code\.of=.*: must be 'onehot' for"):
            Config(task=sprites, model=LowRank(), training=TrainingConfig(steps=1))
    for settings, message in [
        ({"penalty": PenaltyConfig(axes=((3, "rows"),))}, r"factors have the indices 0 to 2"),
        ({"rank": 7}, r"config\.model\.rank=7: must be at most the grid's side, 6"),
        ({"dilations": (1, 4)}, r"both sides of the image, 6 x 8, must be multiples of each"),
        ({"parts": (10,)}, "needs a code with a part for each of two or more factors"),
        ({"shape": (6,)}, "draws one image, not ShapeDtype"),
    ]:
        with pytest.raises(ConfigError, match=message) as error:
            build(**settings)
        assert "\n" not in str(error.value)
