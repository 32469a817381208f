"""The preference gridworld against an expert, observations and counts by loops."""

from dataclasses import replace
from functools import cache, partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.tasks import modules, preference
from compgen_jax.tasks.baselines import Query
from compgen_jax.tasks.preference import Preference
from tests.tasks.examples import KEY, TASKS, predicted, scores_at

SMALL = TASKS["preference"]
FREE = [divmod(index, 7) for index, cell in enumerate("".join(preference.MAP)) if cell == " "]
STEPS = [(0, 0), (-1, 0), (0, 1), (1, 0), (0, -1)]  # nothing, up, right, down, left


def drawn(settings):
    """(points, keys) of twelve episodes of any set of modules."""
    points = np.random.default_rng(0).permutation(settings.make().points)[:12]
    return points, jax.random.split(KEY, 12)


# --- an expert with dictionaries -------------------------------------------------------------


def plain_expert(latent, episode, settings, basis):
    """[(state, action, whether it counts)] in float64; a state is (cell, frozenset of objects)."""
    objects = [FREE[index] for index in episode.cells[:-1]]
    worth = np.float64(latent) @ np.float64(basis)[:, episode.features]

    def step(state, action):
        (cell, remaining), beside = state, tuple(np.add(state[0], STEPS[action]).tolist())
        cell = beside if beside in FREE else cell
        taken = {n for n in remaining if objects[n] == cell}
        return (cell, remaining - taken), sum(worth[n] for n in taken)

    @cache
    def returns(state, steps):
        """The most that can follow each action, in so many steps."""
        if not steps:
            return [0.0]
        moves = [step(state, action) for action in range(5)]
        return [won + settings.discount * max(returns(then, steps - 1)) for then, won in moves]

    state, path, over = (FREE[episode.cells[-1]], frozenset(range(len(objects)))), [], False
    for _ in range(settings.horizon):
        action = int(np.argmax(returns(state, settings.horizon)))
        path.append((state, action, not over))
        over = over or action == 0
        state, _ = step(state, action)
    return path


def plain_observation(state, episode, features):
    seen = np.zeros((7, 7, features + 2))
    for n in state[1]:
        seen[(*FREE[episode.cells[n]], episode.features[n])] = 1
    seen[(*state[0], features)] = 1
    seen[..., features + 1] = 1
    seen[(*np.transpose(FREE), features + 1)] = 0
    return (seen / np.sqrt(np.mean(seen**2) + 1e-6)).ravel()


@pytest.mark.parametrize(
    "settings",
    [replace(SMALL, weights="khot"), Preference(objects=1, weights="continuous", horizon=12)],
)
def test_actions_mask_and_observations_against_loops(settings):
    points, keys = drawn(settings)
    basis = preference.draw_basis(settings)
    found = jax.jit(jax.vmap(settings.make().example))(keys, points)
    episodes = jax.jit(jax.vmap(partial(preference.draw_episode, settings=settings)))(keys)
    episodes, found = jax.device_get((episodes, found))
    lengths = set()
    for b, point in enumerate(points):
        episode = jax.tree.map(lambda leaf, b=b: leaf[b], episodes)
        wanted = plain_expert(point, episode, settings, basis)
        actions, mask = (leaf[b] for leaf in found.target)
        assert_array_equal(actions, [action for _, action, _ in wanted])
        assert_array_equal(mask, [counts for _, _, counts in wanted])
        for t, (state, _, _) in enumerate(wanted):
            observation = plain_observation(state, episode, settings.features)
            assert_allclose(found.input[1][b, t], observation, rtol=1e-5)
        lengths.add(int(mask.sum()))
    assert len(lengths) > 2
    assert_array_equal(found.input[0], points)  # the code 'identity'


# --- the world -------------------------------------------------------------------------------


def test_objects_and_agent_are_on_different_cells_and_anywhere():
    draw = partial(preference.draw_episode, settings=Preference(objects=8))
    found = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), 400))
    assert (np.diff(np.sort(found.cells)) > 0).all()
    assert_array_equal(np.unique(found.cells[:, -1]), np.arange(19))
    assert_array_equal(np.unique(found.features), np.arange(32))


# --- the task --------------------------------------------------------------------------------


def test_the_basis_is_drawn_by_the_seed_of_the_task():
    first, other = (preference.draw_basis(Preference(seed=seed)) for seed in (0, 1))
    assert abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 0.2
    assert first.shape == (16, 32) and abs(first.mean()) < 0.15 and abs(first.std() - 1) < 0.1


def test_loss_and_scores_against_loops():
    rng, task = np.random.default_rng(0), SMALL.make()
    points, keys = drawn(SMALL)
    targets = jax.jit(jax.vmap(task.example))(keys, points).target
    actions, masks = jax.device_get(targets)
    logits = rng.normal(size=(12, 5, 5)).astype(np.float32)
    logits[::3] += 10 * np.eye(5)[actions[::3]]
    losses = jax.jit(jax.vmap(task.loss))(logits, targets)
    predictions, truths = jax.vmap(task.prediction)(logits), jax.vmap(task.truth)(targets)
    found = scores_at(task, predictions, truths, points)
    shares = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    chosen = np.take_along_axis(shares, actions[..., None], axis=2)[..., 0]
    mean = partial(np.average, axis=1, weights=masks)
    hits = mean(shares.argmax(axis=2) == actions)
    assert_allclose(losses, -mean(np.log(chosen)), rtol=1e-4, atol=1e-6)
    assert_allclose(found["miss"], 1 - mean(chosen), atol=1e-5)
    assert_allclose(found["step_accuracy"], hits, atol=1e-5)
    assert_array_equal(found["episode_accuracy"], hits == 1)
    assert (hits[::3] == 1).all()


def test_the_majority_is_the_most_frequent_action_of_seen_tasks(monkeypatch):
    monkeypatch.setattr(preference, "FITTED", 300)
    task = SMALL.make()
    asked = Query(None, None, np.zeros((4, 5, 5), np.float32), None, None)
    found = predicted(task, "majority", asked)

    @jax.jit
    @jax.vmap
    def walks(key):
        latent_key, episode_key = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
        latent = modules.draw_latent(latent_key, task.dataset(None), SMALL.weights)
        return task.example(episode_key, latent).target

    keys = jax.random.split(modules.stream(SMALL.seed, "majority"), 300)
    actions, masks = jax.device_get(walks(keys))
    counted = zip(actions.T, masks.T, strict=True)
    most = [np.argmax(np.bincount(of_step[mask])) for of_step, mask in counted]
    assert (found == np.eye(5)[most]).all()


def test_the_nearest_seen_task_does_nothing_after_its_end():
    shares = preference.as_shares((np.array([3, 1, 0, 0]), np.array([True, True, True, False])))
    found = preference.nearest_seen(Query(None, None, None, shares, None))
    assert_array_equal(found, np.eye(5)[[3, 1, 0, 0]])
