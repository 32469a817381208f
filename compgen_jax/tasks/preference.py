"""Preference: each task values objects in a gridworld in its own way, and asks for an expert's
actions.

From "Scaling can lead to compositional generalization" (NeurIPS 2025). A latent z of M modules
makes an object with feature f worth (basis^T z)_f.

Shape letters: C free cells, N objects, L = 2^N sets of objects that may be left (as bits, the first
object's the lowest), A actions, D steps of an episode.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from compgen_jax.settings import number
from compgen_jax.tasks import baselines, module_codes, modules
from compgen_jax.tasks.modules import LatentTask
from compgen_jax.tasks.task import Example, refuse

MAP = (
    "#######",
    "#  #  #",
    "#  #  #",
    "##   ##",
    "#  #  #",
    "#  #  #",
    "#######",
)
MOVES = {"nothing": (0, 0), "up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
NOTHING = 0  # the action that ends an episode
EPSILON = 1e-6  # added to an observation's mean square
FITTED = 4096  # the number of tasks that the majority is fitted to
WALLS = np.array([list(row) for row in MAP]) == "#"
FREE = np.flatnonzero(~WALLS)  # (C,) indices of the free cells in the map, row by row


# (C, A): the cell that each action leads to; against a wall, the same cell
_BESIDE = (np.argwhere(~WALLS)[:, None] + np.array([*MOVES.values()])) @ (len(MAP), 1)
NEXT = np.where(
    WALLS.ravel()[_BESIDE], np.arange(len(FREE))[:, None], np.searchsorted(FREE, _BESIDE)
)


@dataclass(frozen=True)
class Preference(LatentTask):
    """A gridworld of `objects` objects, each with one of `features` features. Their worth depends
    on `modules` preferences, of which a task has at most `most`.

    An expert plans `horizon` steps ahead, the length of an episode, and discounts a reward by
    `discount` per step. Basis, codes and measured latents are drawn by `seed`.
    """

    factor = "preference"

    features: int = number(32, low=2)
    objects: int = number(4, low=1, high=8)
    horizon: int = number(8, low=1, high=100)
    discount: float = number(0.9, low=0.1, high=0.99)

    def check(self, config):
        refuse({
            f"features={self.features}: fewer than config.task.modules={self.modules}; worths of "
            "so few cannot tell the preferences apart": self.features < self.modules,
            "code.name='fewshot': examples of a preference are whole episodes; must be a code of "
            "the latent": self.code.name == "fewshot",
        })  # fmt: skip
        super().check(config)

    def code_r2(self):
        latents = self.make().points
        codes = jax.vmap(partial(module_codes.encode, settings=self.code))(latents)
        return modules.affine_r2(np.asarray(codes), latents)

    def fields(self, constants):
        basis = draw_basis(constants)
        return {
            "example": partial(example, settings=constants, basis=basis),
            "loss": cross_entropy,
            "output": jax.ShapeDtypeStruct((self.horizon, len(MOVES)), jnp.float32),
            "prediction": partial(jax.nn.softmax, axis=-1),
            "truth": as_shares,
            "scores": scores,
            "error": "miss",
            "accuracy": "episode_accuracy",
            "baselines": {
                "nearest_seen": nearest_seen,
                "majority": partial(majority, settings=self, basis=basis),
            },
        }


# --- the world and its expert ----------------------------------------------------------------


class Episode(NamedTuple):
    """features (N,) of the objects.  cells (N + 1,): different free cells, of the objects and of
    the agent at the start."""

    features: jax.Array
    cells: jax.Array


class Walk(NamedTuple):
    """By step (D,): the agent's free cell and the objects left before its action, the action, and
    whether the episode goes on."""

    cells: jax.Array
    objects: jax.Array
    actions: jax.Array
    mask: jax.Array


def draw_basis(settings: Preference):
    """(M, F) NumPy."""
    shape = settings.modules, settings.features
    return np.asarray(jax.random.normal(modules.stream(settings.seed, "basis"), shape))


def draw_episode(key, settings: Preference) -> Episode:
    key_features, key_cells = jax.random.split(key)
    return Episode(
        jax.random.randint(key_features, (settings.objects,), 0, settings.features),
        jax.random.choice(key_cells, len(FREE), (settings.objects + 1,), replace=False),
    )


def walk(latent, episode: Episode, settings: Preference, basis) -> Walk:
    """The expert's episode: at every step the action with the greatest value after `horizon`
    backups, the first of equals."""
    # the reward for an object of each feature, in full precision on any device
    worths_N = jnp.sum(latent[:, None] * basis, axis=0)[episode.features]
    # (C, L): the reward for entering a cell, and the objects then left, given those left before
    bits_N = 2 ** jnp.arange(settings.objects)
    before_L = jnp.arange(2**settings.objects)
    is_here_CxN = jnp.arange(len(FREE))[:, None] == episode.cells[:-1][None]
    is_left_LxN = before_L[:, None] // bits_N[None] % 2 == 1
    taken_CxLxN = is_here_CxN[:, None] & is_left_LxN[None]
    earned_CxL = jnp.sum(jnp.where(taken_CxLxN, worths_N[None, None], 0.0), axis=-1)
    taken_CxL = jnp.sum(jnp.where(taken_CxLxN, bits_N[None, None], 0), axis=-1)
    after_CxL = before_L[None] - taken_CxL

    def backup(values_CxAxL, _):
        best_CxL = jnp.max(values_CxAxL, axis=1)
        then_CxL = jnp.take_along_axis(best_CxL, after_CxL, axis=1)
        return (earned_CxL + settings.discount * then_CxL)[NEXT], None

    values = jnp.zeros((*NEXT.shape, len(before_L)))
    values, _ = jax.lax.scan(backup, values, length=settings.horizon)
    policy_CxL = jnp.argmax(values, axis=1)

    def step(state, _):
        cell, objects = state
        action = policy_CxL[cell, objects]
        cell = jnp.asarray(NEXT)[cell, action]
        return (cell, after_CxL[cell, objects]), (*state, action)

    start = episode.cells[-1], jnp.asarray(len(before_L) - 1, after_CxL.dtype)
    _, (cells, objects, actions) = jax.lax.scan(step, start, length=settings.horizon)
    # an agent that does nothing once does nothing for ever
    mask = jnp.concatenate([jnp.ones(1, bool), actions[:-1] != NOTHING])
    return Walk(cells, objects, actions, mask)


# --- examples and scores ---------------------------------------------------------------------


def example(key, point, settings: Preference, basis) -> Example:
    """((code (E,), observations (D, 49 (F + 2))), (actions (D,), mask (D,))). An observation has
    each cell's object that is left, agent and wall, divided by the root mean square."""
    episode = draw_episode(key, settings)
    cells, objects, actions, mask = walk(point, episode, settings, basis)
    channels, free = settings.features + 2, jnp.asarray(FREE)
    walls = np.zeros((WALLS.size, channels), np.float32)
    walls[:, -1] = WALLS.ravel()
    objects_N = free[episode.cells[:-1]] * channels + episode.features

    @jax.vmap
    def observe(cell, objects):
        index = jnp.append(objects_N, free[cell] * channels + settings.features)
        exists = jnp.append(objects // 2 ** jnp.arange(len(objects_N)) % 2, 1)
        value = jax.lax.rsqrt((WALLS.sum() + jnp.sum(exists)) / walls.size + EPSILON)
        return (walls.ravel() * value).at[index].set(exists * value, unique_indices=True)

    code = module_codes.encode(point, settings.code)
    return Example((code, observe(cells, objects)), (actions, mask))


def cross_entropy(logits_DxA, target):
    actions, mask = target
    losses_D = optax.softmax_cross_entropy_with_integer_labels(logits_DxA, actions)
    return jnp.mean(losses_D, where=mask)


def as_shares(target):
    """(D, A): all 0 after the end of the episode."""
    actions, mask = target
    return jax.nn.one_hot(actions, len(MOVES)) * mask[:, None]


def scores(shares, truth, point) -> dict:
    """Over the steps of one episode until it ends.

    miss: the mean probability that is not given to the expert's action.
    step_accuracy: how often the expert's action has the greatest probability.
    episode_accuracy: whether it always has.
    """
    mask = jnp.any(truth > 0, axis=-1)
    right = jnp.argmax(shares, axis=-1) == jnp.argmax(truth, axis=-1)
    return {
        "miss": jnp.mean(1 - jnp.sum(shares * truth, axis=-1), where=mask),
        "step_accuracy": jnp.mean(right, where=mask),
        "episode_accuracy": jnp.all(right | ~mask),
    }


# --- trivial predictors ----------------------------------------------------------------------


def nearest_seen(query: baselines.Query):
    """After the episode's end, nothing."""
    ended = ~jnp.any(query.nearest > 0, axis=-1)
    return query.nearest.at[..., NOTHING].add(ended.astype(query.nearest.dtype))


def majority(query: baselines.Query, settings: Preference, basis):
    """The most frequent action at each step, in episodes of other tasks of seen sets."""
    dataset = settings.make().dataset(None)

    def shares(key):
        latent = modules.draw_latent(jax.random.fold_in(key, 0), dataset, settings.weights)
        episode = draw_episode(jax.random.fold_in(key, 1), settings)
        expert = walk(latent, episode, settings, basis)
        return as_shares((expert.actions, expert.mask))

    keys = jax.random.split(modules.stream(settings.seed, "majority"), FITTED)
    counts_DxA = jnp.sum(jax.lax.map(shares, keys, batch_size=256), axis=0)
    most = jax.nn.one_hot(jnp.argmax(counts_DxA, axis=-1), len(MOVES))
    return jnp.broadcast_to(most[None], query.truths.shape)
