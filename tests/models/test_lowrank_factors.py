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


@pytest.mark.parametrize(("dilations", "reach"), [((), 7), ((1, 2, 4, 4), 25)])
def test_an_output_pixel_reads_so_many_pixels(dilations, reach):
    """One factor's embedding is a single pixel; the image with it, minus the image without."""
    decoder = build((36, 36), (1, 1), dilations=dilations, depth=len(dilations) or 2, rank=1)
    params = jax.tree.map(np.abs, variables(decoder))
    point = np.eye(36, dtype=np.float32)[18][None, None]
    params["params"]["embed_x"] |= {"left": point, "right": point}
    apply = jax.jit(decoder.apply)
    with_it, without = (np.asarray(apply(params, np.float32([on, 1]))[0]) for on in (1, 0))
    rows, columns = np.nonzero(np.abs(with_it - without) > 1e-7)
    assert rows.max() - rows.min() + 1 == columns.max() - columns.min() + 1 == reach
    assert rows.min() == columns.min() == 18 - reach // 2


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
    """A penalty along rows leaves alone an embedding that varies along columns only: a position x.
    Descent on it makes the embedding constant along rows, and leaves its profile in x."""
    settings = LowRank(rank=1, penalty=PenaltyConfig(axes=((0, "rows"), (1, "none"))))
    decoder = build((6, 8), (3, 2), rank=1)
    params = variables(decoder)
    penalty = lambda params: settings.extra_loss(
        params, {"penalty.entropy": 0.0, "penalty.variance": 1.0}
    )
    gradient = jax.grad(penalty)
    step = jax.jit(lambda params: jax.tree.map(jnp.subtract, params, gradient(params)))
    before = params["params"]["embed_x"]["right"]
    for _ in range(200):
        params = step(params)
    _, activations = jax.jit(decoder.apply)(params, np.float32([0, 0, 1, 0, 1]))
    x, y = np.moveaxis(np.asarray(activations["layer_01"]), -1, 0)
    assert np.abs(x).max() > 0.01 and np.ptp(x, axis=0).max() < 1e-5 * np.abs(x).max()
    assert np.ptp(x, axis=1).min() > 0.1 * np.abs(x).max() and np.ptp(y, axis=0).max() > 0.01
    np.testing.assert_array_equal(params["params"]["embed_x"]["right"], before)


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
