"""ReLU networks written down by hand that compute the hyperteacher: how many neurons it takes.

The paper claims that neurons linear in the number of modules are enough. The constructions are our
own:

    k_hot    exact for weights of 0 and 1, with 2MH + H neurons
    graded   near the teacher for all weights in [0, 1], with 2HI knots + 2H neurons at any M

The mixed weight matrix is linear in the task's weights, so `graded` approximates only its H I
products with x, with an error proportional to the range of the mixed entries.

Dimensions: M modules, H hidden units, I inputs, O outputs, B examples.
"""

from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from compgen_jax.tasks.modules import LEVELS, Teacher, draw_arrays

SCALE = 3**0.5  # of the variance scaling: an entry's variance is SCALE / fan_in
LAWS = {"discrete": LEVELS, "khot": (1.0,)}  # weights of active modules
CUT, CUT_DEVIATION = 2.0, 0.87962566103423978  # where JAX's normal is truncated, and its std then
LARGEST = CUT / CUT_DEVIATION * SCALE**0.5  # entry of a drawn W_m, in size, times sqrt(I)
REACH = 2.0  # of u + x and u - x for u and x in [-1, 1]


def respond(teacher: Teacher, z_M, x_I):
    """(O,) readout relu(W x + b), with W and b the modules' sums weighted by z / sqrt(K)."""
    share_M = z_M / teacher.most**0.5
    weights_HxI = jnp.tensordot(share_M, teacher.weights, axes=1, precision="highest")
    biases_H = jnp.matmul(share_M, teacher.biases, precision="highest")
    hidden_H = jax.nn.relu(jnp.matmul(weights_HxI, x_I, precision="highest") + biases_H)
    return jnp.matmul(teacher.readout, hidden_H, precision="highest")


def apply(network, z_M, x_I):
    """(O,) the outputs of a ReLU MLP of [z; x] with a linear last layer: by layer, kernel (in, out)
    and bias (out,)."""
    layer = jnp.concatenate([z_M, x_I])
    *hidden, last = network
    for kernel, bias in hidden:
        layer = jax.nn.relu(jnp.matmul(layer, kernel, precision="highest") + bias)
    return jnp.matmul(layer, last[0], precision="highest") + last[1]


def draw_teacher(key, modules: int, inputs: int, hidden: int, outputs: int, most: int) -> Teacher:
    """By the law of the tasks' teachers; each array has a key of its own."""
    keys = dict(zip(("weights", "biases", "readout"), jax.random.split(key, 3), strict=True))
    return Teacher(*draw_arrays(keys.get, modules, inputs, hidden, outputs, SCALE), most)


def draw_tasks(key, teacher: Teacher, count: int, law: str):
    """Weights (B, M) of tasks, from LAWS[law] for a random set of min(K, M) modules, and one input
    (B, I) to each, uniform in [-1, 1]."""
    modules, _, inputs = teacher.weights.shape
    set_key, level_key, x_key = jax.random.split(key, 3)
    order_BxM = jnp.argsort(jax.random.uniform(set_key, (count, modules)), axis=1)
    active_BxM = order_BxM < min(teacher.most, modules)
    levels_BxM = jax.random.choice(level_key, jnp.array(LAWS[law]), (count, modules))
    x_BxI = jax.random.uniform(x_key, (count, inputs), minval=-1.0)
    return jnp.where(active_BxM, levels_BxM, 0.0), x_BxI


def k_hot(teacher: Teacher) -> tuple:
    """The network of 2MH + H neurons that is the teacher at weights of 0 and 1.

    With u = w_mj x + b_mj, z u = relu(u + B (z - 1)) - relu(-u + B' (z - 1)) for z in {0, 1},
    u <= B and -u <= B'. Each gate has the least such B over x in [-1, 1]^I.
    """
    weights_MxHxI, biases_MxH, readout_OxH = (np.asarray(a, np.float64) for a in teacher[:3])
    modules, hidden, inputs = weights_MxHxI.shape
    sign_2 = np.array([1.0, -1.0])
    biases_MxHx2 = biases_MxH[..., None] * sign_2
    bound_MxHx2 = np.abs(weights_MxHxI).sum(-1)[..., None] + biases_MxHx2
    of_z = np.eye(modules)[:, :, None, None] * bound_MxHx2
    of_x = np.moveaxis(weights_MxHxI, -1, 0)[..., None] * sign_2
    gates = np.concatenate([of_z, of_x]).reshape(modules + inputs, -1)
    mixed = np.eye(hidden)[:, None, :] * sign_2[:, None] / teacher.most**0.5  # H, 2, H
    layers = (
        (gates, (biases_MxHx2 - bound_MxHx2).ravel()),
        (np.tile(mixed.reshape(2 * hidden, hidden), (modules, 1)), np.zeros(hidden)),
        (readout_OxH.T, np.zeros(len(readout_OxH))),
    )
    return jax.tree.map(np.float32, layers)


def graded(teacher: Teacher, knots: int, largest: float | None = None) -> tuple:
    """The network of 2HI knots + 2H neurons that is near the teacher at weights in [0, 1] of which
    at most K are not 0.

    An entry p of the mixed weights has known ends: the teacher's own or those that entries of at
    most `largest` in size allow. So p = middle + half u with u in [-1, 1], and
    p x = middle x + half ((u + x)^2 - (u - x)^2) / 4. On [-2, 2] a square is interpolated between
    `knots` inner points, with one ReLU at each. The linear parts and the bias pass through one
    neuron per hidden unit, shifted so that it is always active.
    """
    weights_MxHxI, biases_MxH, readout_OxH = (np.asarray(a, np.float64) for a in teacher[:3])
    modules, hidden, inputs = weights_MxHxI.shape
    root = teacher.most**0.5
    # the least and the greatest sum of z entries / sqrt(K), at most K of z not 0, z in [0, 1]
    ordered_MxHxI = np.sort(weights_MxHxI, axis=0)
    low_HxI = np.minimum(ordered_MxHxI[: teacher.most], 0).sum(0) / root
    high_HxI = np.maximum(ordered_MxHxI[-teacher.most :], 0).sum(0) / root
    least_H = np.minimum(np.sort(biases_MxH, axis=0)[: teacher.most], 0).sum(0) / root
    if largest is not None:
        high_HxI = np.full_like(high_HxI, largest * root)
        low_HxI = -high_HxI
    middle_HxI, half_HxI = (high_HxI + low_HxI) / 2, (high_HxI - low_HxI) / 2
    unit_HxI = np.where(half_HxI > 0, half_HxI, 1.0)
    spacing = 2 * REACH / (knots + 1)
    knots_K = spacing * np.arange(1, knots + 1) - REACH
    sign_2, ones = np.array([1.0, -1.0]), np.ones((hidden, inputs, 2, knots))

    of_z = (weights_MxHxI / root / unit_HxI)[..., None, None] * ones
    of_x = np.eye(inputs)[:, None, :, None, None] * sign_2[:, None] * ones
    squares = np.concatenate([of_z, of_x]).reshape(modules + inputs, -1)
    square_biases = (-(middle_HxI / unit_HxI)[..., None, None] - knots_K) * ones

    first_slope = spacing - 2 * REACH  # of the interpolated square, at its lower end
    linear_HxI = middle_HxI + half_HxI * first_slope / 2
    passed = np.concatenate([biases_MxH / root, linear_HxI.T])
    shift_H = np.abs(linear_HxI).sum(-1) - least_H

    gain = half_HxI[..., None, None] * sign_2[:, None] * 2 * spacing / 4 * ones
    mixed = np.eye(hidden)[:, None, :] * gain.reshape(hidden, -1, 1)
    layers = (
        (np.hstack([squares, passed]), np.hstack([square_biases.ravel(), shift_H])),
        (np.concatenate([mixed.reshape(-1, hidden), np.eye(hidden)]), -shift_H),
        (readout_OxH.T, np.zeros(len(readout_OxH))),
    )
    return jax.tree.map(np.float32, layers)


applied, responded = (jax.jit(jax.vmap(function, (None, 0, 0))) for function in (apply, respond))


def table(law: str, modules, seeds, knots=(None,), size=16, most=3, count=1000, common=False):
    """A row per number of modules, seed and knots, with H = I = O = `size`; r2 is pooled. Its
    network is `k_hot` where knots are None, else `graded`; common: on the interval that the law of
    the entries allows, in place of the teacher's own."""
    rows, largest = [], LARGEST / size**0.5 if common else None
    for number, seed in product(modules, seeds):
        teacher_key, task_key = jax.random.split(jax.random.key(seed))
        teacher = draw_teacher(teacher_key, number, size, size, size, most)
        tasks = draw_tasks(task_key, teacher, count, law)
        for k in knots:
            network = graded(teacher, k, largest) if k else k_hot(teacher)
            outputs_BxO = np.asarray(applied(network, *tasks), np.float64)
            true_BxO = np.asarray(responded(teacher, *tasks), np.float64)
            mse = np.mean((outputs_BxO - true_BxO) ** 2)
            rows.append(
                {
                    "modules": number,
                    "knots": k,
                    "neurons": sum(len(bias) for _, bias in network[:-1]),
                    "seed": seed,
                    "max_error": float(np.abs(outputs_BxO - true_BxO).max()),
                    "rmse": float(mse) ** 0.5,
                    "r2": float(1 - mse / true_BxO.var(axis=0).mean()),
                }
            )
    return rows


def scaling(rows, error: float) -> tuple[dict, dict]:
    """By (modules, seed): the slope of log RMSE on log knots; and the neurons with which RMSE /
    standard deviation is `error`, log-log between the rows, else NaN."""
    slopes, needed = {}, {}
    for case, of_teacher in pd.DataFrame(rows).sort_values("knots").groupby(["modules", "seed"]):
        log_knots, log_rmse = np.log(of_teacher.knots), np.log(of_teacher.rmse)
        slopes[case] = float(np.polyfit(log_knots, log_rmse, 1)[0])
        falling, log_neurons = -np.log((1 - of_teacher.r2) ** 0.5), np.log(of_teacher.neurons)
        log_needed = np.interp(-np.log(error), falling, log_neurons, np.nan, np.nan)
        needed[case] = float(np.exp(log_needed))
    return slopes, needed


class Constructed:
    """Rows of `table` for several teachers; it takes a run's place."""

    seeds = (0, 1, 2, 3)  # of the teachers

    @cache  # noqa: B019  (there is one)
    def rows(self, name: str) -> list[dict]:
        """Of the networks that are 'exact'; 'graded', on the interval that no teacher's entries
        leave; or 'graded_own', on the interval that each teacher's entries keep."""
        if name == "exact":
            return table("khot", (4, 8, 16, 32), self.seeds)
        return table("discrete", (8, 16, 32), self.seeds, (4, 8, 16, 32), common=name == "graded")


CONSTRUCTED = Constructed()
