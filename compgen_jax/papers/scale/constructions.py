"""ReLU networks written down by hand that compute the hyperteacher: how many neurons it takes.

The paper claims that neurons linear in the number of modules are enough. The constructions are our
own:

    k_hot    exact for weights of 0 and 1, with 2MH + H neurons
    graded   near the teacher for all weights in [0, 1], with 2HI knots + 2H neurons at any M

The mixed weight matrix is linear in the task's weights. So `graded` approximates only its H I
products with x. The error is proportional to the range of the mixed entries. A teacher's own range
grows with M, up to the range that entries of at most `largest_entry` allow.

Dimensions: M modules, H hidden units, I inputs, O outputs, B examples.
"""

from functools import cached_property
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.tasks.modules import LEVELS, Teacher, draw_arrays

SCALE = 3**0.5  # of the variance scaling: an entry's variance is SCALE / fan_in
LAWS = {"discrete": LEVELS, "khot": (1.0,)}  # weights of active modules
CUT, CUT_DEVIATION = 2.0, 0.87962566103423978  # where JAX's normal is truncated, and its std then
REACH = 2.0  # of u + x and u - x for u and x in [-1, 1]


class ReluMLP(NamedTuple):
    """A ReLU MLP of [z; x] with a linear last layer.  kernels: (in, out) by layer.  biases: (out,)
    by layer."""

    kernels: tuple
    biases: tuple


def respond(teacher: Teacher, z_M, x_I):
    """(O,) readout relu(W x + b), with W and b the modules' sums weighted by z / sqrt(K)."""
    share_M = z_M / teacher.most**0.5
    weights_HxI = jnp.tensordot(share_M, teacher.weights, axes=1, precision="highest")
    biases_H = jnp.matmul(share_M, teacher.biases, precision="highest")
    hidden_H = jax.nn.relu(jnp.matmul(weights_HxI, x_I, precision="highest") + biases_H)
    return jnp.matmul(teacher.readout, hidden_H, precision="highest")


def apply(network: ReluMLP, z_M, x_I):
    """(O,) what a network gives."""
    layer = jnp.concatenate([z_M, x_I])
    *hidden, last = zip(network.kernels, network.biases, strict=True)
    for kernel, bias in hidden:
        layer = jax.nn.relu(jnp.matmul(layer, kernel, precision="highest") + bias)
    return jnp.matmul(layer, last[0], precision="highest") + last[1]


def neurons(network: ReluMLP) -> int:
    """ReLUs of all layers."""
    return sum(len(bias) for bias in network.biases[:-1])


def draw_teacher(key, modules: int, inputs: int, hidden: int, outputs: int, most: int) -> Teacher:
    """By the law of the tasks' teachers; each array has a key of its own."""
    keys = dict(zip(("weights", "biases", "readout"), jax.random.split(key, 3), strict=True))
    return Teacher(*draw_arrays(keys.get, modules, inputs, hidden, outputs, SCALE), most)


def largest_entry(inputs: int) -> float:
    """What no entry of a drawn W_m exceeds in size."""
    return CUT / CUT_DEVIATION * (SCALE / inputs) ** 0.5


def draw_tasks(key, teacher: Teacher, count: int, law: str):
    """Weights (B, M) of tasks and one input (B, I) to each, uniform in [-1, 1]. Of min(K, M) active
    modules, every set being as likely, each has a weight drawn from LAWS[law]."""
    modules, _, inputs = teacher.weights.shape
    of_sets, of_weights, of_x = jax.random.split(key, 3)
    order_BxM = jnp.argsort(jax.random.uniform(of_sets, (count, modules)), axis=1)
    active_BxM = order_BxM < min(teacher.most, modules)
    levels_BxM = jax.random.choice(of_weights, jnp.array(LAWS[law]), (count, modules))
    x_BxI = jax.random.uniform(of_x, (count, inputs), minval=-1.0)
    return jnp.where(active_BxM, levels_BxM, 0.0), x_BxI


def k_hot(teacher: Teacher, bound: float | None = None) -> ReluMLP:
    """The network of 2MH + H neurons that is the teacher at weights of 0 and 1.

    With u = w_mj x + b_mj, z u = relu(u + B (z - 1)) - relu(-u + B' (z - 1)) for z in {0, 1},
    u <= B and -u <= B'. Each gate has the least such B over x in [-1, 1]^I; `bound`, in place of
    all of them, must be at least as large as every one.
    """
    weights_MxHxI, biases_MxH, readout_OxH = _arrays(teacher)
    modules, hidden, inputs = weights_MxHxI.shape
    sign_2 = np.array([1.0, -1.0])
    own_MxHx2 = biases_MxH[..., None] * sign_2
    bound_MxHx2 = np.abs(weights_MxHxI).sum(-1)[..., None] + own_MxHx2
    if bound is not None:
        bound_MxHx2 = np.full_like(bound_MxHx2, bound)
    of_z = np.eye(modules)[:, :, None, None] * bound_MxHx2
    of_x = np.moveaxis(weights_MxHxI, -1, 0)[..., None] * sign_2
    gates = np.concatenate([of_z, of_x]).reshape(modules + inputs, -1)
    mixed = np.eye(hidden)[:, None, :] * sign_2[:, None] / teacher.most**0.5  # H, 2, H
    return network_of(
        (gates, (own_MxHx2 - bound_MxHx2).ravel()),
        (np.tile(mixed.reshape(2 * hidden, hidden), (modules, 1)), np.zeros(hidden)),
        (readout_OxH.T, np.zeros(len(readout_OxH))),
    )


def graded(teacher: Teacher, knots: int, largest: float | None = None) -> ReluMLP:
    """The network of 2HI knots + 2H neurons that is near the teacher at weights in [0, 1] of which
    at most K are not 0.

    An entry p of the mixed weights is linear in z and has known ends: the teacher's own or, for an
    error that does not depend on M, those that entries of at most `largest` in size allow. So
    p = middle + half u with u in [-1, 1], and p x = middle x + half ((u + x)^2 - (u - x)^2) / 4. On
    [-2, 2] a square is interpolated between equidistant points, `knots` of them inside, and is then
    linear but for one ReLU at each of these. The linear parts and the bias pass through one neuron
    per hidden unit, shifted so that it is always active.
    """
    weights_MxHxI, biases_MxH, readout_OxH = _arrays(teacher)
    modules, hidden, inputs = weights_MxHxI.shape
    middle_HxI, half_HxI = _range(weights_MxHxI, teacher.most, largest)
    unit_HxI = np.where(half_HxI > 0, half_HxI, 1.0)
    spacing = 2 * REACH / (knots + 1)
    places_K = spacing * np.arange(1, knots + 1) - REACH
    sign_2, units = np.array([1.0, -1.0]), (hidden, inputs, 2, knots)
    root = teacher.most**0.5

    of_z = np.broadcast_to((weights_MxHxI / root / unit_HxI)[..., None, None], (modules, *units))
    of_x = np.eye(inputs)[:, None, :, None, None] * sign_2[:, None]
    of_x = np.broadcast_to(of_x, (inputs, *units))
    squares = np.concatenate([of_z, of_x]).reshape(modules + inputs, -1)
    square_biases = -(middle_HxI / unit_HxI)[..., None, None] - places_K
    square_biases = np.broadcast_to(square_biases, units).ravel()

    first_slope = spacing - 2 * REACH  # of the interpolated square, at its lower end
    linear_HxI = middle_HxI + half_HxI * first_slope / 2
    passed = np.concatenate([biases_MxH / root, linear_HxI.T])
    shift_H = np.abs(linear_HxI).sum(-1) - _ends(biases_MxH, teacher.most)[0]

    gain = half_HxI[..., None, None] * sign_2[:, None] * 2 * spacing / 4
    gain = np.broadcast_to(gain, units).reshape(hidden, -1)
    mixed = (np.eye(hidden)[:, None, :] * gain[..., None]).reshape(-1, hidden)
    return network_of(
        (np.concatenate([squares, passed], axis=1), np.concatenate([square_biases, shift_H])),
        (np.concatenate([mixed, np.eye(hidden)]), -shift_H),
        (readout_OxH.T, np.zeros(len(readout_OxH))),
    )


def _arrays(teacher):
    return tuple(np.asarray(part, np.float64) for part in teacher[:3])


def _range(weights_MxHxI, most, largest):
    """(H, I) the middle and half the width of the mixed weights' range."""
    if largest is not None:
        zeros_HxI = np.zeros(weights_MxHxI.shape[1:])
        return zeros_HxI, zeros_HxI + largest * most**0.5
    low_HxI, high_HxI = _ends(weights_MxHxI, most)
    return (high_HxI + low_HxI) / 2, (high_HxI - low_HxI) / 2


def _ends(entries_Mx, most):
    """The least and the greatest sum of z entries / sqrt(K), at most K of z not 0, z in [0, 1]."""
    ordered = np.sort(entries_Mx, axis=0)
    low, high = np.minimum(ordered[:most], 0).sum(0), np.maximum(ordered[-most:], 0).sum(0)
    return low / most**0.5, high / most**0.5


def network_of(*layers) -> ReluMLP:
    """Of pairs of kernel and bias."""
    kernels, biases = zip(*layers, strict=True)
    return ReluMLP(*(tuple(map(np.float32, parts)) for parts in (kernels, biases)))


@jax.jit
def _both(network, teacher, z_BxM, x_BxI):
    over = (None, 0, 0)
    found_BxO = jax.vmap(apply, over)(network, z_BxM, x_BxI)
    return found_BxO, jax.vmap(respond, over)(teacher, z_BxM, x_BxI)


def errors(network: ReluMLP, teacher: Teacher, z_BxM, x_BxI) -> dict:
    """max_error, r2 (pooled: 1 - SSE / SST, with SST around each output's mean; NaN
    for targets that do not vary) and mse."""
    both = _both(network, teacher, z_BxM, x_BxI)
    found_BxO, true_BxO = (np.asarray(part, np.float64) for part in both)
    error_BxO, variance = found_BxO - true_BxO, true_BxO.var(axis=0).mean()
    mse = (error_BxO**2).mean()
    return {
        "max_error": float(np.abs(error_BxO).max()),
        "r2": float(1 - mse / variance) if variance else float("nan"),
        "mse": float(mse),
    }


def table_k_hot(
    modules=(4, 8, 16, 32), seeds=(0, 1, 2), size: int = 16, most=3, count=1000, build=k_hot
):
    """A row per number of modules and seed of teacher and tasks, H = I = O = size: modules, knots
    (None), neurons, seed, max_error, r2 and rmse. build: teacher -> the network."""
    rows = []
    for one, seed in product(modules, seeds):
        teacher, tasks = _draw_case(seed, one, size, most, count, "khot")
        rows.append(_row(seed, None, build(teacher), teacher, tasks))
    return rows


def table_graded(
    modules=(8, 16, 32),
    knots=(4, 8, 16, 32),
    seeds=(0, 1, 2),
    size: int = 16,
    most=3,
    count=1000,
    common: bool = False,
):
    """A row, as of `table_k_hot`, per number of modules, seed, and knots; common: whether the range
    of the mixed weights is the one that the law of the entries allows, in place of the teacher's
    own."""
    rows, largest = [], largest_entry(size) if common else None
    for one, seed in product(modules, seeds):
        teacher, tasks = _draw_case(seed, one, size, most, count, "discrete")
        for number in knots:
            rows.append(_row(seed, number, graded(teacher, number, largest), teacher, tasks))
    return rows


def _draw_case(seed, modules, size, most, count, law):
    """A teacher, and weights and inputs of tasks; see `draw_teacher` and `draw_tasks`."""
    of_teacher, of_tasks = jax.random.split(jax.random.key(seed))
    teacher = draw_teacher(of_teacher, modules, size, size, size, most)
    return teacher, draw_tasks(of_tasks, teacher, count, law)


def _row(seed, knots, network: ReluMLP, teacher: Teacher, tasks) -> dict:
    """What a table has of one network."""
    found = errors(network, teacher, *tasks)
    found["rmse"] = found.pop("mse") ** 0.5
    modules = len(teacher.weights)
    return {"modules": modules, "knots": knots, "neurons": neurons(network), "seed": seed, **found}


def _by_teacher(rows) -> dict:
    """{(modules, seed): its rows by rising number of knots}"""
    found = {}
    for one in sorted(rows, key=lambda one: one["knots"]):
        found.setdefault((one["modules"], one["seed"]), []).append(one)
    return found


def error_slopes(rows) -> dict:
    """{(modules, seed): slope of log RMSE on log knots} of `table_graded`."""
    column = lambda own, name: np.log([one[name] for one in own])
    return {
        case: float(np.polyfit(column(own, "knots"), column(own, "rmse"), 1)[0])
        for case, own in _by_teacher(rows).items()
    }


def neurons_for(rows, error: float) -> dict:
    """{(modules, seed): neurons with which RMSE / standard deviation is `error`}, log-log between
    the rows of `table_graded`, NaN outside of them."""
    found = {}
    for case, own in _by_teacher(rows).items():
        falling = [-np.log((1 - one["r2"]) ** 0.5) for one in own]
        counts = np.log([one["neurons"] for one in own])
        found[case] = float(np.exp(np.interp(-np.log(error), falling, counts, np.nan, np.nan)))
    return found


def neuron_ratios(rows, error: float, low=8, high=32) -> dict:
    """{seed: neurons for that error with `high` modules over those with `low`}."""
    found = neurons_for(rows, error)
    seeds = sorted({seed for _, seed in found})
    return {seed: found[high, seed] / found[low, seed] for seed in seeds}


class Constructed:
    """Rows of networks that are written down, of several teachers; they take a run's place."""

    seeds = (0, 1, 2, 3)  # of the teachers

    @cached_property
    def exact(self) -> list[dict]:
        """As of `table_k_hot`."""
        return table_k_hot(seeds=self.seeds)

    @cached_property
    def graded(self) -> list[dict]:
        """As of `table_graded`, on the interval that no teacher's entries leave."""
        return table_graded(seeds=self.seeds, common=True)

    @cached_property
    def graded_own(self) -> list[dict]:
        """The same on the interval that each teacher's entries keep."""
        return table_graded(seeds=self.seeds)


CONSTRUCTED = Constructed()
