"""A decoder as a list of operations that network.js runs in the page.

`live_network` makes the list from a Flax module and its parameters:

    {"layer": "layer_00",         the name of the code in the run's layers
     "length": 32,                numbers in a code
     "shape": [16, 16],           of the output, which is the task's prediction
     "operations": [{"op": "dense", "kernel": ..., "bias": ...},
                    {"op": "reshape", "shape": [4, 4, 32]},
                    {"op": "relu", "layer": "layer_01"}, ...]}

An operation maps one array to the next. One with a "layer" has made the activations of that name.
Arrays are as `arrays.encode` writes them. The operations are:

    dense           x (..., I) @ kernel (I, O) + bias, whose O or fewer numbers repeat
    reshape         to a shape
    conv_transpose  x (H, W, I), kernel (k, k, I, O), bias (O,) -> (stride H, stride W, O); the
                    kernel's taps are `dilation` pixels apart, 1 if it is not given
    relu, sigmoid   of every entry
    prelu           x, or slope x where x < 0
    embed           a code, in parts for the factors -> (H, W, factors) (paper Eq 8, 9)
    add_position    x (C,), axis (N, C / 2) -> (N, N, C): x, plus [axis[x]; axis[y]] at pixel (y, x)
    affine          scale x + shift
"""

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.models import model as models
from compgen_jax.models.blocks import position_code
from compgen_jax.models.conv import ConvDecoder
from compgen_jax.models.lowrank import LowRankDecoder, embeddings
from compgen_jax.models.mlp import MLPDecoder
from compgen_jax.models.pixelwise import PixelwiseDecoder
from compgen_jax.models.upsampling import ConvBatchNormDecoder, UpsamplingDecoder
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

from .arrays import encode

MOST_PARAMETERS = 600_000  # 3.2 MB in a page; networks of the paper's size have 130,000 to 560,000
TRIED = 64  # random points that tell whether a code is made of one part for each factor


def live_network(run: Run, seed: int) -> dict | None:
    """The network of a seed, as network.js runs it; see above.

    None for a model without a live form, for one of more than `MOST_PARAMETERS` parameters, and for
    a task whose prediction is not `scale * output + shift`.
    """
    task = run.task
    module = run.config.model.make(loop.shapes_of(task))
    code, output = tasks.shapes(task)
    variables = jax.tree.map(lambda leaf: np.asarray(leaf)[run.seeds.index(seed)], run.params)
    parameters = sum(leaf.size for leaf in jax.tree.leaves(variables))
    has_form = type(module) in OPERATIONS and isinstance(output, jax.ShapeDtypeStruct)
    if not has_form or parameters > MOST_PARAMETERS:
        return None
    parts = OPERATIONS[type(module)](module, variables)

    # what turns the model's output into the task's prediction: nothing, or one affine map
    inputs = jnp.linspace(-1.0, 2.0, max(output.size, 2))[: output.size].reshape(output.shape)
    zeros, ones = jnp.zeros(output.shape), jnp.ones(output.shape)
    at_0, at_1, prediction = (np.asarray(task.prediction(x)) for x in (zeros, ones, inputs))
    shift, scale = float(at_0.flat[0]), float(at_1.flat[0] - at_0.flat[0])
    is_affine = prediction.shape == output.shape
    is_affine = is_affine and np.allclose(prediction, scale * inputs + shift, atol=1e-6)
    if parts is None or not is_affine:
        return None
    unchanged = (scale, shift) == (1.0, 0.0)
    affine = [] if unchanged else [{"op": "affine", "scale": scale, "shift": shift}]

    (layers, image), hidden = parts, []
    for index, (*first, last) in enumerate(layers, start=1):
        hidden += [*first, last | {"layer": f"layer_{index:02d}"}]
    return {
        "layer": "layer_00",
        "length": models.size(code),
        "shape": list(output.shape),
        "operations": [*hidden, *image, *affine],
    }


# --- the operations of each kind of decoder --------------------------------------------------


# Each gives the hidden layers, whose last operation is named after the layer, and what follows.


def _reshape(*shape: int) -> dict:
    return {"op": "reshape", "shape": list(shape)}


def _dense(parameters) -> dict:
    return {"op": "dense"} | {name: encode(parameters[name]) for name in ("kernel", "bias")}


def _conv_transpose(parameters, **others) -> dict:
    """Of `models.blocks.ConvTranspose`: kernel 3 with stride 1, or kernel 4 with stride 2."""
    stride = {3: 1, 4: 2}[len(parameters["kernel"])]
    return _dense(parameters) | {"op": "conv_transpose", "stride": stride} | others


def _prelu(parameters) -> dict:
    return {"op": "prelu", "slope": float(parameters["negative_slope"])}


def _conv(module: ConvDecoder, variables):
    params, relu, how = variables["params"], {"op": "relu"}, module.settings
    if how.coordinates or how.broadcast or how.sines or how.activation != "relu":
        return None
    # (side, side, E, C), whose rows and columns are flipped: see `RenderCode`
    kernel = params["render"]["kernel"][::-1, ::-1]
    side, _, length, width = kernel.shape
    kernel = kernel.transpose(2, 0, 1, 3).reshape(length, -1)
    render = _dense({"kernel": kernel, "bias": params["render"]["bias"]})
    hidden = (params[f"hidden_{k}"] for k in range(1, how.depth + 1))
    layers = [
        [render, _reshape(side, side, width), *([relu] if how.mixes else [])],
        *([_conv_transpose(parameters), relu] for parameters in hidden),
    ]
    return layers, [_conv_transpose(params["image"]), _reshape(module.grid, module.grid)]


def _mlp(module: MLPDecoder, variables):
    params, relu = variables["params"], {"op": "relu"}
    layers = [[_dense(params[f"hidden_{k}"]), relu] for k in range(1, module.depth + 1)]
    return layers, [_dense(params["image"]), _reshape(*module.shape)]


def _upsampling(module: UpsamplingDecoder, variables):
    params, sides = variables["params"], [side >> len(module.channels) for side in module.shape[:2]]
    layers = [[_dense(params[f"dense_{k}"])] for k in range(1, len(module.units) + 1)]
    layers.append([_dense(params["map"]), _reshape(*sides, module.channels[0])])
    layers += [[_conv_transpose(params[f"hidden_{k}"])] for k in range(1, len(module.channels))]
    layers = [[*layer, {"op": "relu"}] for layer in layers]
    return layers, [_conv_transpose(params["image"]), _reshape(*module.shape)]


def _low_rank(module: LowRankDecoder, variables):
    params = variables["params"]
    factors = [
        {name: encode(getattr(factor, name)) for name in ("values", "left", "right")}
        for factor in embeddings(variables)
    ]
    layers = [[{"op": "embed", "factors": factors}]]
    for k, dilation in enumerate(module.dilations, start=1):
        hidden = _conv_transpose(params[f"hidden_{k}"], dilation=dilation)
        layers.append([hidden, _prelu(params[f"prelu_{k}"])])
    layers[1].insert(0, _prelu(params["prelu_0"]))
    return layers, [_conv_transpose(params["image"]), _reshape(*module.shape)]


def _pixelwise(module: PixelwiseDecoder, variables):
    how = module.settings
    if how.kernel > 1 or not how.shared or how.apart:
        return None
    params = variables["params"]
    axis = position_code(module.grid, how.width)[0, :, : how.width // 2]
    layers = [[_dense(params["token"]), {"op": "add_position", "axis": encode(axis)}]]
    for k in range(1, how.depth + 1):
        layers.append([_dense(params[f"hidden_{k}"]), _prelu(params[f"prelu_{k}"])])
    return layers, [_dense(params["image"]), _reshape(module.grid, module.grid)]


def _conv_batchnorm(module: ConvBatchNormDecoder, variables):
    params, statistics, side = variables["params"], variables["batch_stats"], module.grid // 4
    layers = [[_dense(params["dense"]), _reshape(side, side, module.width)]]
    for k in (1, 2):  # in evaluation BatchNorm is an affine map of channels
        kernel, bias = (params[f"hidden_{k}"][name] for name in ("kernel", "bias"))
        norm, running = params[f"norm_{k}"], statistics[f"norm_{k}"]
        scale = norm["scale"] / np.sqrt(running["var"] + 1e-5)
        bias = (bias - running["mean"]) * scale + norm["bias"]
        layers.append([_conv_transpose({"kernel": kernel * scale, "bias": bias}), {"op": "relu"}])
    image = [_conv_transpose(params["image"]), {"op": "sigmoid"}]
    return layers, [*image, _reshape(module.grid, module.grid)]


OPERATIONS = {  # of exactly these modules: a subclass may compute something else
    ConvDecoder: _conv,
    ConvBatchNormDecoder: _conv_batchnorm,
    LowRankDecoder: _low_rank,
    MLPDecoder: _mlp,
    PixelwiseDecoder: _pixelwise,
    UpsamplingDecoder: _upsampling,
}


# --- the code of any point -------------------------------------------------------------------


def code_table(task: tasks.Task, values) -> dict | None:
    """Tables from which a page builds the code of points with these values, an array per factor:

        {"code": ...,               (E,) numbers that no factor moves
         "factors": [{"name": "x",
                      "entries": [0, 1, ..., 15],      the numbers of the code that are its own
                      "rows": ...,                     (values, entries)
                      "absent": ...}, ...]}            (entries,) where the factor is missing

    None for a task whose input is not a vector, is drawn at random, or has numbers that depend on
    several factors.
    """
    code = tasks.shapes(task)[0]
    if not isinstance(code, jax.ShapeDtypeStruct) or code.ndim != 1:
        return None
    code_at = jax.jit(jax.vmap(lambda key, point: task.example(key, point).input, (None, 0)))
    key, other_key = (loop.stream(jax.random.key(seed), "test") for seed in (0, 1))

    values = [np.asarray(of_factor, np.float32) for of_factor in values]
    centre = np.array([of_factor[len(of_factor) // 2] for of_factor in values], np.float32)
    start, first = np.asarray(code_at(key, jnp.asarray(centre[None])))[0], 0

    # what the tables say at random points must be the code there, for either key
    random = np.random.default_rng(0)
    chosen = [random.integers(len(of_factor), size=TRIED) for of_factor in values]
    points = np.stack([v[c] for v, c in zip(values, chosen, strict=True)], axis=1)
    expected, tables = np.tile(start, (TRIED, 1)), []
    for index, factor in enumerate(task.factors):
        line = np.tile(centre, (len(values[index]) + 1, 1))  # one factor's value replaced
        line[:, index] = [*values[index], np.nan]
        *rows, absent = np.asarray(code_at(key, jnp.asarray(line)), np.float32)
        rows = np.array(rows)
        entries = np.flatnonzero((rows != start).any(axis=0))
        if len(task.parts) == len(task.factors):  # also has numbers that no cell moves
            entries, first = np.arange(first, first + task.parts[index]), first + task.parts[index]
        rows, absent = rows[:, entries], np.nan_to_num(absent)[entries]
        expected[:, entries] = rows[chosen[index]]
        tables.append(
            {
                "name": factor.name,
                "entries": entries.tolist(),
                "rows": encode(rows),
                "absent": encode(absent),
            }
        )
    codes = [code_at(of_key, jnp.asarray(points)) for of_key in (key, other_key)]
    is_table = np.allclose(expected, np.stack(codes), atol=1e-5)
    return {"code": encode(start), "factors": tables} if is_table else None
