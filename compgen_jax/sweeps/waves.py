"""Waves of a sweep: cases as traced trials, as many at once as the devices hold."""

import collections
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config
from compgen_jax.metrics import evaluation
from compgen_jax.models import model as models
from compgen_jax.runs import out_of_memory
from compgen_jax.sweeps import plan, processes
from compgen_jax.sweeps.table import Case
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop, padding, trials

MOST_SIDE_BY_SIDE = 256  # beyond it a device is busy, and a kill would lose more
LOSS_STEPS = 50  # the last ones, over which a training loss is the mean


class Slot(NamedTuple):
    """One trial as traced values: what it is trained on, and what it is scored on."""

    trial: loop.Trial
    points: jax.Array  # (P, F) all cells, then real points of the seen region, then padding
    nearest: jax.Array | None  # (P, F) what `Task.nearest` gives for them, if the task has it
    masks: dict  # (P,) bool: which of them lie in each of `plan.PLACES`


class Single(NamedTuple):
    """A case's run, whatever its seed, and what its program is (see `loop.program`)."""

    config: Config
    task: tasks.Task
    program: tuple
    steps: int
    capacity: int  # rows of its source, if that is a table
    work: int  # of one step, in numbers of the model's output


class Bucket(NamedTuple):
    """Cases that share a program; its functions take slots and states that are split over the
    local devices, and `slots` of them make a wave."""

    programs: tuple  # of its tasks, the largest last
    capacity: int  # examples in the largest training set
    points: int
    chunk: int
    slots: int
    init: Any
    advance: Any
    measure: Any


@functools.lru_cache(maxsize=4096)
def single_of(config: Config, case: Case) -> Single:
    """The run of a case. Raises ConfigError where it cannot be."""
    single = plan.config_of(config, case)
    task = loop.check(single)
    dataset = jax.eval_shape(task.dataset, jax.eval_shape(jax.random.key, 0))
    return Single(
        single, task, loop.program(single, task), loop.total_steps(single, task),
        sampling.capacity(dataset), models.size(tasks.shapes(task)[1]),
    )  # fmt: skip


def _single(config: Config, case: Case) -> Single:
    return single_of(config, case._replace(seed=config.training.seeds[0]))


def capacities(config: Config, cases: list[Case]) -> dict:
    """Rows of the largest training set by the values of the axes."""
    found = {}
    for case in cases:
        found[case.axes] = max(found.get(case.axes, 0), _single(config, case).capacity)
    return found


def buckets(config: Config, cases: list[Case], room: dict | None = None) -> list[Bucket]:
    """Cases of a sweep by program. Grids are padded only where trials train side by side. `room`:
    the rows that training sets may come to have, as `capacities`; by default of these cases."""
    room = room or capacities(config, cases)
    devices = jax.local_devices()
    wanted = config.execution.trials_per_device
    alone = trials.trials_side_by_side(2, wanted, devices[0].platform) == 1
    own, kept = {}, {}
    for case in cases:
        single = _single(config, case)
        own.setdefault(single.program, []).append(case)
        kept[single.program] = single
    joined = {}
    for program, single in kept.items():
        pads = single.config.model.pads and not alone and hasattr(single.config.task, "grid")
        pads = pads and single.capacity > 0  # rows can be padded, a stream's own shape can't
        apart = () if pads else (program,)
        joined.setdefault((_without_grid(single), *apart), []).append(single)
    found = []
    for singles in joined.values():
        by_grid = {getattr(single.config.task, "grid", 0): single for single in singles}
        for grids in padding.buckets(by_grid, config.execution.max_padding):
            members = [by_grid[grid] for grid in grids]
            cases_of = [case for s in members for case in own[s.program]]
            found.append(_bucket(config, members, cases_of, devices, room))
    return found


def _without_grid(single: Single) -> tuple:
    """A program but for its grid."""
    return tuple(item for item in single.program[:-1] if item[0] != "config.task.grid")


def _bucket(config: Config, members: list[Single], cases: list[Case], devices, room) -> Bucket:
    singles = [_single(config, case) for case in cases]
    capacity = max(room[case.axes] for case in cases)
    points = max(len(tasks.points(single.task)) for single in singles)
    wanted = config.execution.trials_per_device
    side_by_side = trials.trials_side_by_side(MOST_SIDE_BY_SIDE, wanted, devices[0].platform)
    # those of a wave take as many steps, see `cut`
    of_equal_steps = max(collections.Counter(single.steps for single in singles).values())
    at_once = -(-of_equal_steps // (len(devices) * processes.count()))
    width = _balanced(min(side_by_side, at_once), at_once)
    first = members[0].config
    trainer = loop.make_trainer(first, trials=width, of=tuple(single.task for single in members))
    init = lambda _, slot: trainer.init(slot.trial.key, slot.trial.which)
    advance = lambda n_steps, pair: trainer.advance(pair[0].trial, pair[1], n_steps)

    def measure(_, trained):
        slot, state = trained
        trial = slot.trial
        scores = trainer.score(trial.key, state.params, slot.points, trial.which, slot.nearest)
        found = evaluation.region_means(scores, slot.masks, members[0].task.derived)
        return jnp.stack([found[name] for name in plan.layout(config).measures[1:]])

    bucket = Bucket(
        tuple(single.program for single in members), capacity, points + config.sweep.real_points,
        config.execution.chunk_steps, width * len(devices), *[None] * 3,
    )  # fmt: skip
    if width > 1 and not wanted:
        slot = _slot(config, bucket, cases[0])
        pair = slot, jax.eval_shape(init, (), slot)
        fits = [
            trials.trials_that_fit(function, jnp.int32(0), pair, devices[0])
            for function in (advance, measure)
        ]
        width = min(width, *(fit for fit in fits if fit))
        # every process cuts the same waves, whatever memory it has
        width = int(processes.gather(np.array([width], np.int32)).min())
        width = _balanced(width, at_once)
    spread = [trials.OverSplitTrials(function, width) for function in (init, advance, measure)]
    return bucket._replace(
        slots=width * len(devices), init=spread[0], advance=spread[1], measure=spread[2]
    )


def _balanced(width: int, at_once: int) -> int:
    """The least width that needs no more waves: fewer trials are idle in the last one."""
    return -(-at_once // -(-at_once // width))


def cases_of(config: Config, bucket: Bucket, cases: list[Case]) -> list[Case]:
    """Those that the bucket's program trains."""
    return [case for case in cases if _single(config, case).program in bucket.programs]


def work_of(config: Config, case: Case) -> int:
    """What a trial costs, in numbers that its model gives in training."""
    single = _single(config, case)
    return single.steps * single.work


def cut(config: Config, cases: list[Case], bucket: Bucket) -> list[list[Case]]:
    """Waves of cases in order, those of as many steps together."""
    by_steps = {}
    for case in cases:
        by_steps.setdefault(_single(config, case).steps, []).append(case)
    return [
        alike[i : i + bucket.slots]
        for alike in by_steps.values()
        for i in range(0, len(alike), bucket.slots)
    ]


def train(bucket: Bucket, wave: list[Case] | None, config: Config, on_steps):
    """(slots, M) float32 measures of a wave's cases, trained to their end; NaN where a loss
    stopped being finite, and in the slots beyond the wave, or in all without a wave.

    `on_steps` is called with every share of the trials' work that is done. Raises RunError where
    the device's memory does not hold them.
    """
    per_device = bucket.slots // len(jax.local_devices())
    advice = f"say --config.execution.trials_per_device={per_device // 2}, not {per_device}"
    if per_device == 1:
        advice = "lower config.training.batch_size or config.model.width"
    with out_of_memory.explained(advice):
        return _train(bucket, wave, config, on_steps)


def _train(bucket, wave, config, on_steps):
    layout = plan.layout(config)
    if wave is None:
        return np.full((bucket.slots, len(layout.measures)), np.nan, np.float32)
    idle = [wave[-1]] * (bucket.slots - len(wave))
    built = [_slot(config, bucket, case) for case in wave + idle]
    slots = trials.split(jax.tree.map(lambda *leaves: jnp.stack(leaves), *built))
    state, losses = bucket.init((), slots), []
    steps = _single(config, wave[0]).steps
    for step in range(0, steps, bucket.chunk):
        n_steps = min(bucket.chunk, steps - step)
        state, chunk = bucket.advance(np.int32(n_steps), (slots, state))
        losses.append(np.asarray(trials.join(chunk, bucket.slots), np.float64)[:, :n_steps])
        on_steps(n_steps / steps)
    loss = np.concatenate(losses, axis=1)[:, -LOSS_STEPS:].mean(axis=1, keepdims=True)
    measured = trials.join(bucket.measure((), (slots, state)), bucket.slots)
    values = np.concatenate([loss, measured], axis=1).astype(np.float32)
    # a model that diverged at its last step has a finite loss, and no finite error anywhere
    error = _single(config, wave[0]).task.error
    errors = [layout.measures.index(f"{where}.{error}") for where in plan.PLACES]
    values[~np.isfinite(values[:, 0]) | ~np.isfinite(values[:, errors]).any(axis=1)] = np.nan
    return values


def _slot(config: Config, bucket: Bucket, case: Case) -> Slot:
    single = _single(config, case)
    key = jax.random.key(case.seed)
    dataset, real = _drawn(single.config, config.sweep.real_points)(key)
    loop.check_dataset(single.task, dataset, case.seed)
    cells = tasks.points(single.task)
    held_out = np.asarray(single.task.held_out(cells))
    seen = _seen(single.task, dataset, held_out)
    masks = {"seen": seen, "unseen": ~seen & ~held_out, "ood": held_out}
    masks = {where: np.pad(mask, (0, bucket.points - len(cells))) for where, mask in masks.items()}
    masks["real"] = np.arange(bucket.points) >= bucket.points - len(real)
    between = bucket.points - len(cells) - len(real)  # of a smaller grid
    points = np.concatenate([cells, np.repeat(cells[:1], between, axis=0), real])
    trial = loop.Trial(
        key,
        loop.hyper_of(single.config),
        sampling.padded(dataset, bucket.capacity),
        jnp.int32(bucket.programs.index(single.program)),
    )
    nearest = jnp.asarray(single.task.nearest(points)) if single.task.nearest else None
    masks = {name: jnp.asarray(mask) for name, mask in masks.items()}
    return Slot(trial, jnp.asarray(points), nearest, masks)


@functools.lru_cache(maxsize=4096)
def _drawn(single: Config, n_points: int):
    """key -> (source, real points (R, F) of the seen region), jitted; R is 0 where none is real."""
    task = single.task.make()

    def draw(key):
        real = tasks.real_points(task, loop.stream(key, "test"), n_points)
        return loop.dataset_of(task, key), real

    return jax.jit(draw)


def _seen(task: tasks.Task, dataset, held_out):
    """(B,) bool: the cells of the points that a trial is trained on; of a stream, all that are not
    held out."""
    if not isinstance(dataset, sampling.Table) or not task.examples:
        return ~held_out
    points = np.asarray(dataset.points)[: int(dataset.count)]
    points = points[~np.isnan(points).any(axis=1)]
    if not tasks.has_grid(task):
        return (tasks.points(task)[:, None] == points[None]).all(axis=2).any(axis=1)
    index = tasks.nearest_values(task, points)
    strides = np.cumprod([1, *tasks.sizes(task)[:-1]])
    seen = np.zeros(len(held_out), bool)
    seen[index @ strides] = True
    return seen
