"""Every family of models once more: in float64, from its definition, example by example.

`decode(settings, variables, inputs, shapes)` gives the output and the layers behind
the input. Those of batches also give statistics (`moments`) of the examples that count.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.models.conv import Conv
from compgen_jax.models.model import Shapes
from tests.models.test_convolution import directly

KEY = jax.random.key(0)


def struct(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def of_image(length: int, side: int, lowering: str = "lax") -> Shapes:
    """A vector of so many numbers to a square image."""
    return Shapes(struct(length), struct(side, side), lowering)


def variables(module, shapes, seed=0):
    """Parameters in general position, biases, slopes and running statistics too."""
    random = np.random.default_rng(seed)

    def draw(path, leaf):
        values = random.normal(size=leaf.shape) * 0.4
        values = values**2 + 0.2 if path[-1].key == "var" else values
        return np.float32(values + (path[-1].key == "scale"))

    return jax.tree_util.tree_map_with_path(draw, jax.eval_shape(module.init, KEY, shapes.input))


def draw_inputs(shapes, *lead, seed=2):
    random = np.random.default_rng(seed)
    draw = lambda s: (random.normal(size=(*lead, *s.shape))).astype(s.dtype)
    return jax.tree.map(draw, shapes.input)


def exact(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def check_slope(gradient, value, params, direction, step=1e-6):
    """A gradient along a direction is the slope of a function of parameters in float64."""
    moved = lambda by: jax.tree.map(lambda a, d: a + by * d, exact(params), exact(direction))
    slope = (value(moved(step)) - value(moved(-step))) / (2 * step)
    slopes = jax.tree.leaves(jax.tree.map(np.vdot, exact(gradient), direction))
    size = np.linalg.norm(slopes)
    assert sum(slopes) == pytest.approx(slope, rel=1e-3, abs=1e-3 * size) and size > 0.01


# --- layers ----------------------------------------------------------------------------------


def dense(layer, x):
    return x @ layer["kernel"] + layer["bias"]


def relu(x):
    return np.maximum(x, 0)


def prelu(layer, x):
    return np.where(x > 0, x, layer["negative_slope"] * x)


def transposed(layer, x, stride=1):
    return directly(x, layer["kernel"], stride) + layer["bias"]


def rendered(layer, code):
    """Pixel (i, j) reads the code through the kernel at (side - 1 - i, side - 1 - j)."""
    return np.einsum("e,ijeo->ijo", code, layer["kernel"][::-1, ::-1]) + layer["bias"]


def filtered(layer, x, stride=1, dilation=1):
    """Kernel[a, b] reads the pixel at stride (i, j) + dilation (a - 1, b - 1)."""
    sides = [-(-side // stride) for side in x.shape[:2]]
    y = np.zeros((*sides, len(layer["bias"]))) + layer["bias"]
    for i, j, a, b in np.ndindex(*sides, 3, 3):
        row, column = stride * i + dilation * (a - 1), stride * j + dilation * (b - 1)
        if 0 <= row < len(x) and 0 <= column < x.shape[1]:
            y[i, j] += x[row, column] @ layer["kernel"][a, b]
    return y


def normed(layer, x, epsilon):
    apart = x - x.mean(axis=-1, keepdims=True)
    scaled = apart / np.sqrt(np.mean(apart**2, axis=-1, keepdims=True) + epsilon)
    return scaled * layer["scale"] + layer.get("bias", 0.0)


def hidden_layers(weights, x, depth):
    layers = [x]
    for index in range(1, depth + 1):
        layers.append(relu(dense(weights[f"hidden_{index}"], layers[-1])))
    return layers[1:]


def attended(query, key, value, causal=False):
    """(S, H, C), token by token and head by head."""
    mixed = np.zeros_like(value)
    for now, head in np.ndindex(query.shape[:2]):
        last = now + 1 if causal else len(key)
        logits = key[:last, head] @ query[now, head] / query.shape[-1] ** 0.5
        shares = np.exp(logits - logits.max())
        mixed[now, head] = shares / shares.sum() @ value[:last, head]
    return mixed


# --- families --------------------------------------------------------------------------------


def located(x):
    """With the place of each column and row among them, from -1 to 1."""
    rows, columns = 2 * np.indices(x.shape[:2]) / (len(x) - 1) - 1
    return np.dstack([x, columns, rows])


def conv(settings, variables, code, shapes, beside=()):
    weights, read = variables["params"], located if settings.coordinates else np.asarray
    first = rendered(weights["render"], code)
    side = shapes.output.shape[0] // 2**settings.doublings

    def active(index, x):
        return relu(x) if settings.activation == "relu" else prelu(weights[f"prelu_{index}"], x)

    first = np.tile(first, (side // len(first), side // len(first), 1))
    first = active(0, first) if settings.mixes else first
    layers = [first + positions(side, settings.width) if settings.sines else first]
    for index in range(1, settings.depth + 1):
        x = np.concatenate([layers[-1], *beside[index - 1 : index]], axis=-1)
        stride = 2 if index <= settings.doublings else 1
        layers.append(active(index, transposed(weights[f"hidden_{index}"], read(x), stride)))
    return transposed(weights["image"], read(layers[-1]))[..., 0], layers


def mlp(settings, variables, inputs, shapes):
    x = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(inputs)])
    layers = hidden_layers(variables["params"], x, settings.depth)
    return dense(variables["params"]["image"], layers[-1]).reshape(shapes.output.shape), layers


def embedding(factor, code):
    """Of the token that a one-hot code picks."""
    left, right = (
        np.einsum("t,tkh,tk->kh", code, factor[side], np.square(factor[side]).sum(axis=2) ** -0.5)
        for side in ("left", "right")
    )
    return (left.T * (code @ factor["values"])) @ right


def lowrank(settings, variables, code, shapes):
    weights = variables["params"]
    names = "xy" if len(shapes.parts) == 2 else range(len(shapes.parts))
    codes = np.split(code, np.cumsum(shapes.parts)[:-1])
    embedded = map(embedding, (weights[f"embed_{name}"] for name in names), codes)
    layers = [np.stack(list(embedded), axis=-1)]
    x = prelu(weights["prelu_0"], layers[0])
    for index in range(1, settings.depth + 1):
        dilation = settings.dilations[index - 1] if settings.dilations else 1
        x = filtered(weights[f"hidden_{index}"], x, 1, dilation)
        x = prelu(weights[f"prelu_{index}"], x)
        layers.append(x)
    return filtered(weights["image"], x).reshape(shapes.output.shape), layers


def positions(grid, width):
    """Sine and cosine of x, then of y, at rates from 1 down to 10000^(-1 + 4 / width)."""
    rates = 10_000.0 ** (-np.arange(width // 4) * 4 / width)
    code = np.zeros((grid, grid, width))
    for y, x in np.ndindex(grid, grid):
        turns = np.outer((x, y), rates)
        code[y, x] = np.hstack([np.sin(turns), np.cos(turns)]).ravel()
    return code


def pixelwise(settings, variables, code, shapes):
    weights, grid = variables["params"], shapes.output.shape[0]
    side = 1 if settings.shared else grid
    token = dense(weights["token"], code)
    if settings.apart:
        (low, high), places = settings.apart, np.arange(grid)
        within = (low <= places) & (places <= high)
        token = token.reshape(2, -1)[np.outer(within, within).astype(int)]
    else:
        token = token.reshape(side, side, settings.width)
    layers = [token + positions(grid, settings.width)]
    for index in range(1, settings.depth + 1):
        read = dense if settings.kernel == 1 else transposed
        x = read(weights[f"hidden_{index}"], layers[-1])
        layers.append(prelu(weights[f"prelu_{index}"], x))
    return dense(weights["image"], layers[-1])[..., 0], layers


def transformer_block(weights, x, heads):
    parts = dense(weights["read"], x).reshape(len(x), 3, heads, -1)
    mixed = attended(*parts.swapaxes(0, 1)).reshape(x.shape)
    x = normed(weights["norm_attention"], x + dense(weights["mix"], mixed), 1e-5)
    out = dense(weights["out"], relu(dense(weights["hidden"], x)))
    return normed(weights["norm_hidden"], x + out, 1e-5)


def transformer(settings, variables, code, shapes):
    weights, (grid, _) = variables["params"], shapes.output.shape
    x = dense(weights["token"], code) + positions(grid, settings.width).reshape(grid**2, -1)
    layers = [x]
    for index in range(1, settings.depth + 1):
        layers.append(transformer_block(weights[f"block_{index}"], layers[-1], settings.heads))
    image = dense(weights["image"], layers[-1]).reshape(grid, grid)
    return image, [layer.reshape(grid, grid, -1) for layer in layers]


def conv_batchnorm(settings, variables, codes, shapes, counts=None, moments=None):
    """By the moments of the examples that count, which are kept, or by the running ones."""
    weights, side = variables["params"], shapes.output.shape[0] // 4
    layers = [dense(weights["dense"], codes).reshape(*codes.shape[:-1], side, side, settings.width)]
    for index in (1, 2):
        x, name = transposed(weights[f"hidden_{index}"], layers[-1], 2), f"norm_{index}"
        mean, var = (variables["batch_stats"][name][moment] for moment in ("mean", "var"))
        if counts is not None:
            pixels = x[counts].reshape(-1, x.shape[-1])
            mean, var = moments[name] = pixels.mean(axis=0), pixels.var(axis=0)
        x = (x - mean) / np.sqrt(var + 1e-5)
        layers.append(relu(x * weights[name]["scale"] + weights[name]["bias"]))
    return 1 / (1 + np.exp(-transposed(weights["image"], layers[-1])[..., 0])), layers


def flow(settings, variables, code, shapes):
    """Euler's steps from the noise of the initialisation; the layers of the first."""
    x, first = variables["noise"]["start"], None
    weights, decoder = variables["params"]["denoiser"], Conv(settings.depth, settings.width)
    for step in range(settings.steps):
        time, beside = step / settings.steps, [x[..., None]]
        for index in (1, 2):
            beside.insert(0, relu(filtered(weights[f"noisy_{index}"], beside[0], 2)))
        timed = np.concatenate([code, np.cos(np.pi * np.arange(8) * time)])
        image, layers = conv(decoder, {"params": weights}, timed, shapes, beside)
        x, first = x + (image - x) / ((1 - time) * settings.steps), first or layers
    return x, first


def upsampling(settings, variables, codes, shapes):
    weights, layers, channels = variables["params"], [codes], settings.channels
    for name in (*(f"dense_{index}" for index in range(1, len(settings.dense) + 1)), "map"):
        layers.append(relu(dense(weights[name], layers[-1])))
    sides = [side // 2 ** len(channels) for side in shapes.output.shape[:2]]
    layers[-1] = layers[-1].reshape(*codes.shape[:-1], *sides, channels[0])
    for index in range(1, len(channels)):
        layers.append(relu(transposed(weights[f"hidden_{index}"], layers[-1], 2)))
    image = transposed(weights["image"], layers[-1], 2)
    return image.reshape(*codes.shape[:-1], *shapes.output.shape), layers[1:]


def per_factor(settings, variables, code, shapes):
    weights, of_factors, maps = variables["params"], [], []
    last = "image" if settings.name == "additive" else "maps"
    for f, part in enumerate(np.split(code, np.cumsum(shapes.parts)[:-1]), start=1):
        own = weights[f"factor_{f}"]
        of_factors.append(hidden_layers(own, part, settings.depth))
        maps.append(dense(own[last], of_factors[-1][-1]).reshape(-1, *shapes.output.shape))
    layers = [np.concatenate(same) for same in zip(*of_factors, strict=True)]
    if last == "image":
        return sum(maps)[0], layers
    return weights["bias"] + np.prod(maps, axis=0).sum(axis=0), layers


def encoder(settings, variables, image, shapes):
    weights = variables["params"]
    layers = [image if image.ndim == 3 else image[..., None]]
    for index in range(1, settings.depth + 1):
        layers.append(relu(filtered(weights[f"conv_{index}"], layers[-1], 2)))
    layers.append(relu(dense(weights["hidden"], layers[-1].ravel())))
    return dense(weights["answer"], layers[-1]), layers[1:]


def beside(given):
    code, inputs = given
    return np.stack([np.concatenate([code, one]) for one in inputs])


def task_mlp(settings, variables, given, shapes):
    layers = hidden_layers(variables["params"], beside(given), settings.depth)
    return dense(variables["params"]["answer"], layers[-1]), layers


def turned(values, position):
    """Pairs of channels as complex numbers, turned by position x 10000 ** (-pair / pairs)."""
    half = values.shape[-1] // 2
    pairs = values[..., :half] + 1j * values[..., half:]
    pairs = pairs * np.exp(1j * position * 10_000.0 ** (-np.arange(half) / half))
    return np.concatenate([pairs.real, pairs.imag], axis=-1)


def task_transformer(settings, variables, given, shapes):
    weights, (code, inputs) = variables["params"], given
    stream = np.stack([dense(weights["embed_code"], code),
                       *(dense(weights["embed_inputs"], one) for one in inputs)])  # fmt: skip
    layers = [stream[1:]]
    for index in range(1, settings.depth + 1):
        own = weights[f"block_{index}"]
        read = normed(own["norm_attention"], stream, 1e-6)
        heads = {name: dense(own[name], read).reshape(len(stream), settings.heads, -1)
                 for name in ("query", "key", "value")}  # fmt: skip
        for name in ("query", "key"):
            scaled = normed(own[f"norm_{name}"], heads[name], 1e-6)
            heads[name] = np.stack([turned(each, now) for now, each in enumerate(scaled)])
        mixed = attended(*heads.values(), causal=True).reshape(stream.shape)
        stream = stream + dense(own["mix"], mixed)
        x = dense(own["mlp_in"], normed(own["norm_mlp"], stream, 1e-6))
        gelu = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        stream = stream + dense(own["mlp_out"], gelu)
        layers.append(stream[1:])
    return dense(weights["answer"], normed(weights["norm"], stream[1:], 1e-6)), layers


def hypernetwork(settings, variables, given, shapes):
    weights, (code, inputs) = variables["params"], given
    read, hidden = normed(weights["norm"], code, 1e-6), inputs
    for name, units in (("hidden", settings.width), ("answer", shapes.output.shape[1])):
        made = dense(weights[name], read).reshape(-1, units)
        values = hidden @ made[:-1] / np.sqrt(len(made) - 1) + made[-1]
        hidden, last = (relu(values), hidden) if name == "hidden" else (values, hidden)
    return hidden, [last]


FAMILIES = (conv, mlp, lowrank, pixelwise, transformer, conv_batchnorm, flow, upsampling, encoder,
            task_mlp, task_transformer, hypernetwork)  # fmt: skip
ORACLES = {oracle.__name__: oracle for oracle in FAMILIES}
ORACLES |= dict.fromkeys(("additive", "multiplicative"), per_factor)


def decode(settings, variables, inputs, shapes: Shapes, **training):
    """Output and layers behind the input, in float64."""
    return ORACLES[settings.name](settings, exact(variables), exact(inputs), shapes, **training)
