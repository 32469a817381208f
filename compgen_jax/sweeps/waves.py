"""Waves of a sweep: cases as traced trials, as many at once as the devices hold."""

import functools
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import models
from compgen_jax.analysis import evaluation
from compgen_jax.config import Config, TaskConfig
from compgen_jax.runs.directory import RunError
from compgen_jax.sweeps import plan, processes, table
from compgen_jax.sweeps.table import Case
from compgen_jax.tasks import bump, dataset, supports
from compgen_jax.training import loop, padding, trials

MOST_SIDE_BY_SIDE = 256  # beyond it a device is busy, and a kill would lose more
LOSS_STEPS = 50  # the last ones, over which a training loss is the mean
ALWAYS_FINITE = ("train_loss", "real.mse")  # of a decoder that did not diverge


class Slot(NamedTuple):
    """One trial as traced values: what it is trained on, and what it is scored on."""

    trial: loop.Trial
    held_out: jax.Array  # (M, M) bool, M the bucket's largest grid
    points: jax.Array  # (R, 2) real points of the seen region


class Bucket(NamedTuple):
    """Grids that share a program; its functions take slots and states that are split over the
    local devices, and `slots` of them make a wave."""

    grids: tuple
    capacity: int  # examples in the largest training set
    slots: int
    init: Any
    advance: Any
    measure: Any


def buckets(config: Config, cases: list[Case]) -> list[Bucket]:
    """The sweep's grids by program. Small grids are padded only where trials train side by side."""
    devices = jax.local_devices()
    wanted = config.execution.trials_per_device
    alone = trials.trials_side_by_side(2, wanted, devices[0].platform) == 1
    pads = config.decoder.name in models.PADDED and not alone
    by_program = padding.buckets(
        [case.grid for case in cases], config.execution.max_padding if pads else 0
    )
    return [_bucket(config, grids, cases, devices) for grids in by_program]


def _bucket(config: Config, grids: tuple, cases: list[Case], devices) -> Bucket:
    own = [case for case in cases if case.grid in grids]
    # a search stays below the largest number that it begins with
    capacity = max(_examples(case) for case in own)
    wanted = config.execution.trials_per_device
    side_by_side = trials.trials_side_by_side(MOST_SIDE_BY_SIDE, wanted, devices[0].platform)
    at_once = -(-len(own) // (len(devices) * processes.count()))
    width = _balanced(min(side_by_side, at_once), at_once)
    trainer = loop.make_trainer(config, trials=width, grids=grids)
    init = lambda _, slot: trainer.init(slot.trial.key, slot.trial.which)
    advance = lambda n_steps, pair: trainer.advance(pair[0].trial, pair[1], n_steps)
    measure = _make_measure(config, trainer, grids)
    if width > 1 and not wanted:
        slot = _slot(config, grids, capacity, own[0])
        pair = slot, jax.eval_shape(init, (), slot)
        fits = [
            trials.trials_that_fit(function, jnp.int32(0), pair, devices[0])
            for function in (advance, measure)
        ]
        width = min(width, *(fit for fit in fits if fit))
        # every process cuts the same waves, whatever memory it has
        width = int(processes.gather(np.array([width], np.int32)).min())
        width = _balanced(width, at_once)
    spread = lambda function: trials.over_split_trials(function, width)
    return Bucket(grids, capacity, width * len(devices), *map(spread, (init, advance, measure)))


def _balanced(width: int, at_once: int) -> int:
    """The least width that needs no more waves: fewer trials are idle in the last one."""
    return -(-at_once // -(-at_once // width))


def _examples(case: Case) -> int:
    """Training images of a case, the stripes that it leaves out among them."""
    return max(case.n_data, 2 * case.grid if case.scheme == "stripes" else 0)


def cut(cases: list[Case], bucket: Bucket) -> list[list[Case]]:
    return [cases[i : i + bucket.slots] for i in range(0, len(cases), bucket.slots)]


def train(bucket: Bucket, wave: list[Case] | None, config: Config, on_steps):
    """(slots, M) float32 `table.MEASURES` of a wave's cases, trained to their end; NaN where a
    loss stopped being finite, and in the slots beyond the wave, or in all without a wave.

    `on_steps` is called with every number of steps taken. Raises RunError where the device's
    memory does not hold them.
    """
    try:
        return _train(bucket, wave, config, on_steps)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        per_device = bucket.slots // len(jax.local_devices())
        raise RunError(
            f"out of memory with {per_device} trials of grids {bucket.grids} on a device; say "
            f"--config.execution.trials_per_device={max(1, per_device // 2)}"
        ) from error


def _train(bucket, wave, config, on_steps):
    if wave is None:
        return np.full((bucket.slots, len(table.MEASURES)), np.nan, np.float32)
    idle = [wave[-1]] * (bucket.slots - len(wave))
    built = [_slot(config, bucket.grids, bucket.capacity, case) for case in wave + idle]
    slots = trials.split(jax.tree.map(lambda *leaves: jnp.stack(leaves), *built))
    state, losses = bucket.init((), slots), []
    for step in range(0, config.training.steps, config.execution.chunk_steps):
        n_steps = min(config.execution.chunk_steps, config.training.steps - step)
        state, chunk = bucket.advance(n_steps, (slots, state))
        losses.append(np.asarray(trials.join(chunk, bucket.slots), np.float64)[:, :n_steps])
        on_steps(n_steps)
    loss = np.concatenate(losses, axis=1)[:, -LOSS_STEPS:].mean(axis=1, keepdims=True)
    measured = trials.join(bucket.measure((), (slots, state)), bucket.slots)
    values = np.concatenate([loss, measured], axis=1).astype(np.float32)
    finite = np.isfinite(values[:, [table.MEASURES.index(m) for m in ALWAYS_FINITE]]).all(axis=1)
    values[~finite] = np.nan
    return values


def _slot(config: Config, grids: tuple, capacity: int, case: Case) -> Slot:
    single = plan.config_of(config, case)
    key = jax.random.key(case.seed)
    # as much as the largest training set: its beginning is the case's own
    whole = replace(single.task, stripes=replace(single.task.stripes, left_out=0))
    points = capacity - (dataset.size(whole) - supports.n_samples(whole))
    whole = replace(whole, support=replace(whole.support, samples=max(0, points)))
    assert dataset.size(single.task) == case.n_data
    factors, test_points = _drawn(whole, capacity, config.sweep.real_points)(key)
    hyper = loop.hyper_of(single)._replace(n_samples=jnp.int32(case.n_data))
    trial = loop.Trial(key, hyper, factors, jnp.int32(grids.index(case.grid)))
    held_out = np.zeros((max(grids), max(grids)), bool)
    held_out[: case.grid, : case.grid] = supports.held_out_mask(single.task)
    return Slot(trial, jnp.asarray(held_out), test_points)


@functools.cache
def _drawn(task: TaskConfig, capacity: int, n_points: int):
    """key -> (training factors (capacity, 2), real points (n_points, 2)), jitted."""
    real = replace(task, support=replace(task.support, sampling="real", samples=n_points))

    def draw(key):
        factors = dataset.training_factors(loop.stream(key, "data"), task)[:capacity]
        factors = jnp.pad(factors, [(0, capacity - len(factors)), (0, 0)])
        return factors, supports.sample(loop.stream(key, "test"), real)

    return jax.jit(draw)


def _make_measure(config: Config, trainer, grids: tuple):
    """measure(_, (slot, state)) -> the `table.MEASURES` of one trial but its training loss."""
    size, image = max(grids), config.task.image
    cells = jnp.asarray(supports.cells(size))
    tolerances = config.sweep.position_tolerance, config.sweep.image_tolerance

    def measure(_, trained):
        slot, state = trained
        grid = jnp.array(grids)[slot.trial.which]
        inside = (jnp.arange(size) < grid)[:, None] & (jnp.arange(size) < grid)[None, :]
        factors = jnp.concatenate([cells, slot.points])
        drawn = trainer.draw(state.params, factors, slot.trial.which)
        signals, targets = (bump.to_signal(images, image) for images in drawn)
        scores = evaluation.score_points(signals, targets, factors, inside)
        seen = _seen_cells(slot.trial, size)
        masks = {
            "seen": seen,
            "unseen": inside & ~seen & ~slot.held_out,
            "ood": inside & slot.held_out,
        }
        real = jnp.arange(len(factors)) >= len(cells)
        masks = {where: jnp.pad(mask.ravel(), (0, len(slot.points))) for where, mask in
                 masks.items()} | {"real": real}  # fmt: skip
        found = {
            f"{where}.{score}": value
            for where, mask in masks.items()
            for score, value in evaluation.accuracies(scores, mask, *tolerances).items()
        }
        return jnp.stack([found[name] for name in table.MEASURES if name != "train_loss"])

    return measure


def _seen_cells(trial: loop.Trial, size: int):
    """(size, size) bool, indexed [y, x]: the cells of the bumps that the trial is trained on."""
    factors = trial.factors
    used = jnp.arange(len(factors)) < trial.hyper.n_samples
    used &= ~jnp.isnan(factors).any(axis=1)
    x, y = jnp.where(used[:, None], jnp.round(factors), size).astype(int).T
    return jnp.zeros((size, size), bool).at[y, x].set(True, mode="drop")
