"""A decoder as a list of operations that network.js runs in the page.

`live_network` makes the list from a Flax module and its parameters:

    [{"op": "dense", "kernel": ..., "bias": ...},
     {"op": "reshape", "shape": [4, 4, 32]},
     {"op": "relu", "layer": "layer_01"}, ...]

An operation maps one array to the next, the first a code; the last gives the task's prediction. One
with a "layer" has made the activations of that name. Arrays are as `arrays.encode` writes them. The
operations are:

    dense           x (..., I) @ kernel (I, O) + bias, whose O or fewer numbers repeat
    reshape         to a shape
    conv_transpose  x (H, W, I), kernel (k, k, I, O), bias (O,) -> (s H, s W, O); the stride s is 1
                    for k = 3 and 2 for k = 4; the kernel's taps are `dilation` pixels apart, or 1
    relu, sigmoid   of every entry
    prelu           x, or negative_slope x where x < 0
    embed           a code, in parts for the factors -> (H, W, factors) (paper Eq 8, 9)
    add_position    x (C,) or (N, N, C), axis (N, C / 2) -> (N, N, C): x, plus [axis[x]; axis[y]] at
                    pixel (y, x)
    affine          scale x + shift
"""

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.models.blocks import position_code
from compgen_jax.models.conv import ConvDecoder
from compgen_jax.models.lowrank import LowRankDecoder, raw_embeddings
from compgen_jax.models.mlp import MLPDecoder
from compgen_jax.models.pixelwise import PixelwiseDecoder
from compgen_jax.models.upsampling import ConvBatchNormDecoder, UpsamplingDecoder
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

from .arrays import encode

MOST_PARAMETERS = 600_000  # 3.2 MB in a page; networks of the paper's size have 130,000 to 560,000
TRIED = 64  # random points that tell whether a code is made of one part for each factor


def live_network(run: Run, seed: int) -> list[dict] | None:
    """The network of a seed, as network.js runs it; see above.

    None for a model without a live form, for one of more than `MOST_PARAMETERS` parameters, and for
    a task whose prediction is not `scale * output + shift`.
    """
    task, (_, output) = run.task, tasks.shapes(run.task)
    module = run.config.model.make(loop.shapes_of(task))
    variables = jax.tree.map(lambda leaf: np.asarray(leaf)[run.seeds.index(seed)], run.params)
    parameters = sum(leaf.size for leaf in jax.tree.leaves(variables))
    has_form = type(module) in LAYERS and isinstance(output, jax.ShapeDtypeStruct)
    layers = LAYERS[type(module)](module, variables) if has_form else None
    if layers is None or parameters > MOST_PARAMETERS:
        return None

    # what turns the model's output into the task's prediction: nothing, or one affine map
    outputs = np.linspace(-1, 2, 3 * output.size, dtype=np.float32).reshape(3, *output.shape)
    prediction = np.asarray(jax.vmap(task.prediction)(jnp.asarray(outputs)))
    if prediction.shape != outputs.shape:
        return None
    scale, shift = np.polyfit(outputs.ravel(), prediction.ravel(), 1).tolist()
    if not np.allclose(prediction, scale * outputs + shift, atol=1e-6):
        return None

    operations = []
    for index, (*first, last) in enumerate(layers, start=1):
        operations += [*first, last | {"layer": f"layer_{index:02d}"}]
    operations.append(_linear(variables["params"]["image"]))
    if isinstance(module, ConvBatchNormDecoder):
        operations.append({"op": "sigmoid"})
    operations.append({"op": "reshape", "shape": list(output.shape)})
    if not np.allclose((scale, shift), (1, 0), atol=1e-6):
        operations.append({"op": "affine", "scale": scale, "shift": shift})
    for operation in operations:
        for name, value in operation.items():
            if isinstance(value, np.ndarray):
                operation[name] = encode(value)
    return operations


# --- the hidden layers of each kind of decoder -----------------------------------------------

# Each is a list of operations, the last of which is named after the layer.
RELU = {"op": "relu"}


def _linear(parameters) -> dict:
    """A dense layer, or `models.blocks.ConvTranspose`."""
    op = "dense" if parameters["kernel"].ndim == 2 else "conv_transpose"
    return {"op": op, "kernel": parameters["kernel"], "bias": parameters["bias"]}


def _prelu(parameters) -> dict:
    return {"op": "prelu", "negative_slope": np.asarray(parameters["negative_slope"])}


def _conv(module: ConvDecoder, variables):
    params, how = variables["params"], module.settings
    if how.coordinates or how.broadcast or how.sines or how.activation != "relu":
        return None
    # (side, side, E, C), whose rows and columns are flipped: see `RenderCode`
    kernel = params["render"]["kernel"][::-1, ::-1]
    side, _, length, width = kernel.shape
    kernel = kernel.transpose(2, 0, 1, 3).reshape(length, -1)
    render = _linear({"kernel": kernel, "bias": params["render"]["bias"]})
    first = [render, {"op": "reshape", "shape": [side, side, width]}]
    hidden = [[_linear(params[f"hidden_{k}"]), RELU] for k in range(1, how.depth + 1)]
    return [first + [RELU] if how.mixes else first, *hidden]


def _mlp(module: MLPDecoder, variables):
    return [[_linear(variables["params"][f"hidden_{k}"]), RELU] for k in range(1, module.depth + 1)]


def _upsampling(module: UpsamplingDecoder, variables):
    dense = [f"dense_{k}" for k in range(1, len(module.units) + 1)]
    hidden = [f"hidden_{k}" for k in range(1, len(module.channels))]
    layers = [[_linear(variables["params"][name]), RELU] for name in (*dense, "map", *hidden)]
    sides = [side >> len(module.channels) for side in module.shape[:2]]
    layers[len(dense)].insert(1, {"op": "reshape", "shape": [*sides, module.channels[0]]})
    return layers


def _low_rank(module: LowRankDecoder, variables):
    params = variables["params"]
    factors = [
        {name: encode(raw[name]) for name in ("values", "left", "right")}
        for raw in raw_embeddings(variables)
    ]
    layers = [[{"op": "embed", "factors": factors}]]
    for k, dilation in enumerate(module.dilations, start=1):
        hidden = _linear(params[f"hidden_{k}"]) | {"dilation": dilation}
        layers.append([hidden, _prelu(params[f"prelu_{k}"])])
    layers[1].insert(0, _prelu(params["prelu_0"]))
    return layers


def _pixelwise(module: PixelwiseDecoder, variables):
    params, how = variables["params"], module.settings
    if how.kernel > 1 or how.apart:
        return None
    axis = position_code(module.grid, how.width)[0, :, : how.width // 2]
    maps = [] if how.shared else [{"op": "reshape", "shape": [module.grid, module.grid, how.width]}]
    layers = [[_linear(params["token"]), *maps, {"op": "add_position", "axis": np.asarray(axis)}]]
    for k in range(1, how.depth + 1):
        layers.append([_linear(params[f"hidden_{k}"]), _prelu(params[f"prelu_{k}"])])
    return layers


def _conv_batchnorm(module: ConvBatchNormDecoder, variables):
    params, statistics, side = variables["params"], variables["batch_stats"], module.grid // 4
    shape = {"op": "reshape", "shape": [side, side, module.width]}
    layers = [[_linear(params["dense"]), shape]]
    for k in (1, 2):  # in evaluation BatchNorm is an affine map of channels
        hidden, norm, running = params[f"hidden_{k}"], params[f"norm_{k}"], statistics[f"norm_{k}"]
        scale = norm["scale"] / np.sqrt(running["var"] + 1e-5)
        bias = (hidden["bias"] - running["mean"]) * scale + norm["bias"]
        layers.append([_linear({"kernel": hidden["kernel"] * scale, "bias": bias}), RELU])
    return layers


LAYERS = {  # of exactly these modules: a subclass may compute something else
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
    keys = [loop.stream(jax.random.key(seed), "test") for seed in (0, 1)]

    values = [np.asarray(of_factor, np.float32) for of_factor in values]
    centre = np.array([of_factor[len(of_factor) // 2] for of_factor in values])
    start = np.asarray(code_at(keys[0], centre[None]))[0]
    # what the tables say at random points must be the code there, for either key
    random = np.random.default_rng(0)
    chosen = [random.integers(len(of_factor), size=TRIED) for of_factor in values]
    points = np.stack([v[c] for v, c in zip(values, chosen, strict=True)], axis=1)
    expected, factors, parts = np.tile(start, (TRIED, 1)), [], None
    if len(task.parts) == len(task.factors):  # with numbers that no value moves
        parts = np.split(np.arange(code.size), np.cumsum(task.parts)[:-1])
    for index, factor in enumerate(task.factors):
        line = np.tile(centre, (len(values[index]) + 1, 1))  # one factor's value replaced
        line[:, index] = [*values[index], np.nan]
        codes = np.asarray(code_at(keys[0], line))
        entries = parts[index] if parts else np.flatnonzero((codes[:-1] != start).any(axis=0))
        *rows, absent = codes[:, entries]
        expected[:, entries] = np.array(rows)[chosen[index]]
        rows, absent = encode(rows), encode(np.nan_to_num(absent))
        factors.append(
            {"name": factor.name, "entries": entries.tolist(), "rows": rows, "absent": absent}
        )
    is_table = np.allclose(expected, [code_at(key, points) for key in keys], atol=1e-5)
    return {"code": encode(start), "factors": factors} if is_table else None
