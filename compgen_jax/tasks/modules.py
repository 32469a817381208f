"""Modules: each task is a network whose weights are a weighted sum of a few of M modules.

This is the hyperteacher of "Scaling can lead to compositional generalization" (NeurIPS 2025). A
latent z has at most K weights that are not 0, and

    y = R relu(W x + b),    W = sum_m z_m W_m / sqrt(K),    b = sum_m z_m b_m / sqrt(K).

A student is given a code of the latent and inputs x, and asked for y.
"""

import functools
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import ConfigError, Family, choice, number, traced
from compgen_jax.tasks import baselines, module_codes, module_supports, sampling
from compgen_jax.tasks.module_codes import LatentCodeConfig
from compgen_jax.tasks.module_supports import ModuleSupportConfig
from compgen_jax.tasks.task import Example, Factor, Task

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of a discrete weight
BIAS = 0.5  # biases are uniform from 0 to this
RIGHT = 0.95  # the R^2 from which a task counts as answered
FITTED = 4096  # the number of tasks that bilinear maps and readers of codes are fitted to
RIDGE = 1e-6  # of the features' mean square, as some columns repeat others
# of kernel regression: of 36 choices those with the least error on examples left out (69 sets seen)
LATENT_SCALE, LENGTH, KERNEL_RIDGE = 2.0, 4.0, 1e-4
MOST_EXAMPLES = 24_000  # of kernel regression, which then takes 10 GB


@dataclass(frozen=True)
class LatentTask(Family):
    """A task whose points are latents: the weights of `modules` modules, of which at most `most`
    are active. Each step draws fresh ones of seen sets.

    The weights of active modules are drawn from .5, .6, ..., 1 ('discrete'), are 1 ('khot'), or are
    .5 + .5 e / (1 + sum e) for exponential variables e ('continuous'). The measured points are
    `tests` latents of seen sets and as many of held-out sets; all sets of a region occur equally
    often, to 1. What a task draws for itself, it draws by `seed`, not by the seed of training.
    """

    factor = "module"  # its name, in front of its number

    modules: int = number(16, low=2, high=64)
    most: int = number(3, low=1, high=64)
    weights: str = choice("discrete", "discrete", "continuous", "khot")
    tests: int = number(1024, low=1, high=10**6)
    seed: int = number(0, low=0)
    code: LatentCodeConfig = LatentCodeConfig()
    support: ModuleSupportConfig = traced(ModuleSupportConfig())

    # A subclass has `fields(constants)`: fields of the task from the settings with the default
    # support, so that what these give is computed once for all supports; and `code_r2()`: how well
    # an affine map reads the latent from its code.

    def check(self, config):
        module_supports.n_seen(self.support, self.modules, self.most)

    @functools.lru_cache(maxsize=256)  # noqa: B019  (one for each of many supports)
    @jax.ensure_compile_time_eval()  # what is drawn is kept: never a tracer
    def make(self) -> Task:
        sets = module_supports.all_sets(self.modules, self.most)
        seen = module_supports.split(self.support, self.modules, self.most)
        dataset = sampling.table(jnp.asarray(sets[seen], jnp.float32))
        values = np.array([0.0, 1.0] if self.weights == "khot" else [0.0, *LEVELS])
        # the measured latents: of each region, its sets in an order drawn by the task's seed
        rng = np.random.default_rng(self.seed)
        chosen = [
            np.resize(rng.permutation(np.flatnonzero(region)), self.tests)
            for region in (seen, ~seen)
        ]
        active = np.asarray(sets, np.float32)[np.concatenate(chosen)]
        keys = jax.random.split(stream(self.seed, "tests"), len(active))
        points = jax.jit(jax.vmap(partial(weigh, law=self.weights)))(keys, active)
        constants = replace(self, support=ModuleSupportConfig())

        def facts():
            n_seen = int(seen.sum())
            return {"sets": len(sets), "seen_sets": n_seen, "code_r2": constants.code_r2()}

        return Task(
            factors=tuple(Factor(f"{self.factor} {m}", values) for m in range(self.modules)),
            held_out=partial(is_among, sets=sets[~seen]),
            dataset=lambda key: dataset,
            examples=0,
            next_batch=sampling.stream(partial(draw_latent, law=self.weights)),
            interpolated=False,  # inputs or episodes are drawn with each example
            differentiable=self.code.name not in ("tokens", "interval_shuffle"),
            units={"set": float(len(sets))},
            points=np.asarray(points),
            facts=facts,
            **self.fields(constants),
        )


@dataclass(frozen=True)
class Modules(LatentTask):
    """A hyperteacher of `modules` modules, of which a task has at most `most`. A student sees
    `samples` inputs of each task. The teacher's weights have the variance `scale` / fan in.

    Teacher, codes and measured latents are drawn by `seed`. Unless `tasks` is 0, so many training
    tasks are, too, with their inputs; every epoch shows these alone, and KRR on them is a baseline.
    """

    inputs: int = number(16, low=1)
    hidden: int = number(16, low=1)
    outputs: int = number(16, low=1)
    scale: float = number(3**0.5, above=0)
    samples: int = number(16, low=2)
    tasks: int = number(0, low=0)

    def check(self, config):
        super().check(config)
        if self.tasks * self.samples > MOST_EXAMPLES:
            limit = f"makes more than {MOST_EXAMPLES:,} examples"
            raise ConfigError(f"config.task.tasks={self.tasks}: {limit}")

    def make(self):
        task = super().make()
        if not self.tasks:
            return task
        with jax.ensure_compile_time_eval():
            draw = partial(draw_latent, dataset=task.dataset(None), law=self.weights)
            latents = jax.vmap(draw)(jax.random.split(stream(self.seed, "tasks"), self.tasks))
            # a column behind the latent numbers the tasks
            table = sampling.table(jnp.column_stack([latents, jnp.arange(self.tasks)]))

        def example(key, point):
            if len(point) > self.modules:
                number = point[self.modules].astype(int)
                key = jax.random.fold_in(stream(self.seed, "inputs"), number)
            return task.example(key, point[: self.modules])

        return task._replace(
            example=example,
            dataset=lambda key: table,
            examples=self.tasks,
            next_batch=sampling.epochs,
            baselines=task.baselines | {"interpolator": partial(interpolated, settings=self)},
        )

    def code_r2(self):
        return _means_and_code_r2(self)[1]

    def fields(self, constants):
        teacher, (mean_O, _) = draw_teacher(constants), _means_and_code_r2(constants)
        others = {
            "sum_of_singles": partial(sum_of_singles, teacher=teacher),
            "bilinear": partial(bilinear, settings=self),
        }
        return {
            "example": partial(example, settings=constants, teacher=teacher),
            "scores": partial(scores, mean_O=mean_O),
            "accuracy": "task_accuracy",
            "baselines": baselines.BASELINES | others,
            "derived": derived,
        }


class Teacher(NamedTuple):
    """weights (M, H, I), biases (M, H), readout (O, H); `most` modules are active at once."""

    weights: jax.Array
    biases: jax.Array
    readout: jax.Array
    most: int


def stream(seed: int, name: str):
    return jax.random.fold_in(jax.random.key(seed), sampling.tag(name))


def draw_arrays(key_of, modules: int, inputs: int, hidden: int, outputs: int, scale: float):
    """Weights, biases and readout, each drawn by the key `key_of(name)`."""
    law = jax.nn.initializers.variance_scaling(
        scale, "fan_in", "truncated_normal", in_axis=-1, out_axis=-2, batch_axis=(0,)
    )
    weights = law(key_of("weights"), (modules, hidden, inputs))
    biases = jax.random.uniform(key_of("biases"), (modules, hidden), maxval=BIAS)
    return weights, biases, law(key_of("readout"), (1, outputs, hidden))[0]


@functools.lru_cache(maxsize=64)
def draw_teacher(settings: Modules) -> Teacher:
    sizes = settings.modules, settings.inputs, settings.hidden, settings.outputs
    arrays = draw_arrays(partial(stream, settings.seed), *sizes, settings.scale)
    return Teacher(*map(np.asarray, arrays), settings.most)


def respond(teacher: Teacher, latent, inputs_SxI):
    """(S, O): the teacher's answers for a latent (M,) and inputs."""
    latent = latent / math.sqrt(teacher.most)
    weights_HxI = jnp.tensordot(latent, teacher.weights, axes=1)
    hidden = jax.nn.relu(inputs_SxI @ weights_HxI.T + (latent @ teacher.biases)[None])
    return hidden @ teacher.readout.T


def weigh(key, active_M, law: str):
    """The latent (M,) of a set of modules (M,), 1 for active ones, by a law of `LatentTask`."""
    if law == "khot":
        return active_M
    if law == "discrete":
        return active_M * jax.random.choice(key, jnp.array(LEVELS), active_M.shape)
    share = active_M * jax.random.exponential(key, active_M.shape)
    return active_M * (0.5 + 0.5 * share / (jnp.sum(share) + 1))


def draw_latent(key, dataset: sampling.Table, law: str):
    return weigh(jax.random.fold_in(key, 1), sampling.from_table(key, dataset), law)


def example(key, point, settings: Modules, teacher: Teacher) -> Example:
    """((code (E,), inputs (S, I)), outputs (S, O)); the key draws the inputs."""
    draw = partial(jax.random.uniform, minval=-1.0)
    inputs = draw(key, (settings.samples, settings.inputs))
    if settings.code.name == "fewshot":
        key = jax.random.fold_in(key, sampling.tag("fewshot"))
        paired = draw(key, (settings.code.pairs, settings.inputs))
        code = jnp.concatenate([paired, respond(teacher, point, paired)], axis=1).ravel()
    else:
        code = module_codes.encode(point, settings.code)
    return Example((code, inputs), respond(teacher, point, inputs))


def scores(output, truth, point, mean_O) -> dict:
    """variance: the mean square of the truth about `mean_O`, the outputs' means over all tasks.
    task_r2: 1 - error / variance, about the outputs' means in this task.
    ratios_r2: the authors' variant, the mean over outputs of such an R^2 of each.
    task_accuracy: whether `task_r2` is at least `RIGHT`.
    """
    error_O = jnp.mean(jnp.square(output - truth), axis=0)
    variance_O = jnp.mean(jnp.square(truth - truth.mean(axis=0, keepdims=True)), axis=0)
    task_r2 = 1 - jnp.sum(error_O) / jnp.sum(variance_O)
    return {
        "mse": jnp.mean(error_O),
        "variance": jnp.mean(jnp.square(truth - mean_O[None])),
        "task_r2": task_r2,
        "ratios_r2": jnp.mean(1 - error_O / variance_O),
        "task_accuracy": task_r2 >= RIGHT,
    }


def derived(means: dict) -> dict:
    """`gain`: 1 - error / the bilinear map's. `interpolator_gain`: that of kernel regression."""
    numbers = {"r2": 1 - means["mse"] / means["variance"]}
    if "bilinear_mse" in means:
        numbers["gain"] = 1 - means["mse"] / means["bilinear_mse"]
    if "interpolator_mse" in means:
        numbers["interpolator_gain"] = 1 - means["interpolator_mse"] / means["bilinear_mse"]
    return numbers


# --- trivial predictors ----------------------------------------------------------------------


def sum_of_singles(query: baselines.Query, teacher: Teacher):
    """The sum of the teacher's answers for each active module alone, with its weight."""

    alone = jax.vmap(jax.vmap(respond, (None, 0, None)), (None, 0, 0))
    singles = jax.vmap(jnp.diag)(jnp.asarray(query.points))
    return jnp.sum(alone(teacher, singles, query.inputs[1]), axis=1)


def bilinear(query: baselines.Query, settings: Modules):
    """The best map that is bilinear in (1, z) and (1, x), fitted to other tasks of the seen
    sets."""
    with jax.ensure_compile_time_eval():
        weights_MxIxO = _bilinear_map(settings)
    latents = jnp.insert(jnp.asarray(query.points), 0, 1, axis=-1)
    inputs = jnp.insert(query.inputs[1], 0, 1, axis=-1)
    return jnp.einsum("bm,bsi,mio->bso", latents, inputs, weights_MxIxO)


@functools.lru_cache(maxsize=256)
def _bilinear_map(settings: Modules):
    """(1 + M, 1 + I, O) float32 NumPy, from the normal equations in float64."""
    constants = replace(settings, support=ModuleSupportConfig())
    # padded, so that all supports share one program
    capacity = module_supports.n_sets(settings.modules, settings.most)
    dataset = sampling.padded(LatentTask.make(settings).dataset(None), capacity)
    fitted = _fitted_tasks(constants, dataset, draw_teacher(constants)[:3])
    latents_BxM, inputs_BxSxI, answers_BxSxO = (np.asarray(a, np.float64) for a in fitted)
    latents_BxM, inputs_BxSxI = (np.insert(a, 0, 1, axis=-1) for a in (latents_BxM, inputs_BxSxI))
    answers = answers_BxSxO.reshape(-1, settings.outputs)
    features = np.einsum("bm,bsi->bsmi", latents_BxM, inputs_BxSxI).reshape(len(answers), -1)
    gram = features.T @ features
    gram += RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram, features.T @ answers)
    shape = latents_BxM.shape[-1], inputs_BxSxI.shape[-1], settings.outputs
    return weights.reshape(shape).astype(np.float32)


@partial(jax.jit, static_argnums=0)
def _fitted_tasks(settings: Modules, dataset, arrays):
    teacher = Teacher(*arrays, settings.most)

    def draw(key):
        latent = draw_latent(jax.random.fold_in(key, 0), dataset, settings.weights)
        (_, inputs), outputs = example(jax.random.fold_in(key, 1), latent, settings, teacher)
        return latent, inputs, outputs

    return jax.vmap(draw)(jax.random.split(stream(settings.seed, "bilinear"), FITTED))


# --- the same tasks again and again -----------------------------------------------------------


def interpolated(query: baselines.Query, settings: Modules):
    """Regression with a Gaussian kernel on latents and inputs."""
    with jax.ensure_compile_time_eval():
        rows_SxE, weights_SxO, mean_O = _kernel_regression(settings)

    def predict(task):
        apart = jnp.square(_rows(*task)[:, None] - rows_SxE[None]).sum(axis=-1)
        return jnp.exp(-apart / (2 * LENGTH**2)) @ weights_SxO + mean_O[None]

    return jax.lax.map(predict, (jnp.asarray(query.points), query.inputs[1]))


def _rows(latent_M, inputs_SxI):
    repeated = jnp.broadcast_to(LATENT_SCALE * latent_M, (len(inputs_SxI), len(latent_M)))
    return jnp.concatenate([repeated, inputs_SxI], axis=1)


@functools.lru_cache(maxsize=16)
def _kernel_regression(settings: Modules):
    """float32 NumPy: rows (S, M + I), their weights (S, O) and the mean answer (O,)."""
    from scipy.linalg import solve  # takes a fifth of a second to import
    from scipy.spatial.distance import cdist

    task = settings.make()
    points = task.dataset(None).points
    (_, inputs), answers = jax.vmap(task.example, (None, 0))(jax.random.key(0), points)
    rows = np.concatenate(jax.vmap(_rows)(points[:, : settings.modules], inputs), dtype=np.float64)
    answers = np.concatenate(answers, dtype=np.float64)
    mean = answers.mean(axis=0)
    kernel = cdist(rows, rows, "sqeuclidean")
    np.exp(np.divide(kernel, -2 * LENGTH**2, out=kernel), out=kernel)  # it may have gigabytes
    kernel[np.diag_indices(len(kernel))] += KERNEL_RIDGE
    weights = solve(kernel, answers - mean, assume_a="pos", overwrite_a=True)
    return rows.astype(np.float32), weights.astype(np.float32), mean.astype(np.float32)


# --- the task --------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _means_and_code_r2(settings: Modules):
    """The mean outputs (O,) over all sets, and how well an affine map reads the latent from its
    code."""
    make_example = partial(example, settings=settings, teacher=draw_teacher(settings))
    sets = module_supports.all_sets(settings.modules, settings.most)
    table = sampling.table(jnp.asarray(sets, jnp.float32))

    def draw(key):
        latent = draw_latent(jax.random.fold_in(key, 0), table, settings.weights)
        (code, _), outputs = make_example(jax.random.fold_in(key, 1), latent)
        return latent, code, outputs

    @jax.jit
    def draw_all(keys):
        latents, codes, outputs = jax.vmap(draw)(keys)
        return latents, codes, outputs.mean(axis=(0, 1))

    keys = jax.random.split(stream(settings.seed, "means"), FITTED)
    latents, codes, mean_O = jax.device_get(draw_all(keys))
    return mean_O, affine_r2(codes, latents)


def affine_r2(codes_BxE, latents_BxM) -> float:
    """R^2 of an affine map from codes to latents, fitted to the first half, of the second."""
    half = len(codes_BxE) // 2
    codes = np.insert(codes_BxE.astype(np.float64), 0, 1, axis=-1)
    fitted, *_ = np.linalg.lstsq(codes[:half], latents_BxM[:half], rcond=1e-9)
    others = latents_BxM[half:]
    total = np.square(others - others.mean(axis=0)).sum()
    return float(1 - np.square(others - codes[half:] @ fitted).sum() / total)


def is_among(points, sets):
    """(...,) bool NumPy: whether points (..., M) have the modules of one of the sets (S, M)."""
    powers = np.uint64(2) ** np.arange(sets.shape[-1], dtype=np.uint64)
    return np.isin((np.asarray(points) > 0) @ powers, sets @ powers)
