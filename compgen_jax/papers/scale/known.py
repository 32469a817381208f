"""Known answers of the second paper: students, plans, readings of layers and constructions.

Dimensions: M modules, T sets of them, I inputs, O outputs, B tasks, those of seen sets first, then
those of held-out ones.
"""

import zlib
from collections.abc import Callable
from functools import cache, partial
from math import comb
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.claims import Matrix, letters
from compgen_jax.config import changed
from compgen_jax.papers.scale import codes, constructions
from compgen_jax.papers.scale.constructions import ReluMLP
from compgen_jax.papers.scale.scale_presets import STUDENT
from compgen_jax.runs.run import Run
from compgen_jax.tasks import module_supports
from compgen_jax.tasks.module_supports import ModuleSupportConfig, all_sets, n_sets
from compgen_jax.tasks.modules import Teacher

# --- the tasks that students are asked about -----------------------------------------------------

MOST, SIZE = 3, 8  # modules active at once; inputs, hidden units and outputs, as in quick runs
TASKS = 512  # asked of each region
FITTED = 2048  # seen tasks, to which a bilinear map is fitted
LEAST = 3  # seen sets of a module without which a learner does not know it


class School(NamedTuple):
    """The tasks that students are asked about, and what simple maps answer.

    sets (T, M) and seen (T,), both bool.  latents (B, M), truths (B, O) and known (B,) bool: tasks
    of seen sets.  bilinear, singles, nearest (B, O): the best bilinear map, the sum of what single
    modules answer, the answer of the nearest seen set."""

    sets: np.ndarray
    seen: np.ndarray
    latents: np.ndarray
    truths: np.ndarray
    known: np.ndarray
    bilinear: np.ndarray
    singles: np.ndarray
    nearest: np.ndarray


_respond = jax.jit(jax.vmap(constructions.respond, in_axes=(None, 0, 0)))


def _answers(teacher, latents_BxM, inputs_BxI):
    given = (np.asarray(part, np.float32) for part in (latents_BxM, inputs_BxI))
    return np.asarray(_respond(teacher, *given), np.float64)


@cache
def school(support: str, modules: int, seen: int) -> School:
    """Fresh tasks for one teacher, the same for all supports of so many modules."""
    sets_TxM = module_supports.all_sets(modules, MOST)
    settings = ModuleSupportConfig(name=support, seen=seen)
    seen_T = module_supports.split(settings, modules, MOST)
    sizes, rng = (modules, SIZE, SIZE, SIZE, MOST), np.random.default_rng(0)
    teacher = constructions.draw_teacher(jax.random.key(modules), *sizes)
    true = partial(_answers, teacher)

    def draw(region_T, count):
        active = sets_TxM[np.resize(rng.permutation(np.flatnonzero(region_T)), count)]
        weights = rng.choice(constructions.LAWS["discrete"], active.shape)
        return active * weights, rng.uniform(-1, 1, (count, SIZE))

    shown = draw(seen_T, FITTED)
    pairs = zip(draw(seen_T, TASKS), draw(~seen_T, TASKS), strict=True)
    latents, inputs = map(np.concatenate, pairs)
    products = _products(*shown)
    fitted = np.linalg.pinv(products.T @ products, 1e-10) @ (products.T @ true(*shown))
    alone = [true(latents * (np.arange(modules) == m), inputs) for m in range(modules)]
    return School(
        sets_TxM,
        seen_T,
        latents,
        true(latents, inputs),
        np.arange(2 * TASKS) < TASKS,
        _products(latents, inputs) @ fitted,
        np.sum(alone, axis=0),
        true(_moved(latents, sets_TxM[seen_T]), inputs),
    )


def _products(latents_BxM, inputs_BxI):
    """(B, (1 + M) (1 + I)) of (1, z) x (1, x)."""
    with_one = lambda values: np.concatenate([np.ones((len(values), 1)), values], axis=1)
    products = with_one(latents_BxM)[:, :, None] * with_one(inputs_BxI)[:, None, :]
    return products.reshape(len(products), -1)


def _moved(latents_BxM, seen_SxM):
    """Latents of the nearest seen sets, which differ in the fewest modules; a module that is new
    has the mean weight."""
    apart = ((latents_BxM > 0)[:, None, :] != seen_SxM[None]).sum(axis=-1)
    nearest = seen_SxM[apart.argmin(axis=1)]
    mean = np.mean(constructions.LAWS["discrete"])
    return nearest * np.where(latents_BxM > 0, latents_BxM, mean)


def covered(school: School):
    """(B,) bool: tasks whose modules all occur in `LEAST` seen sets and are linked by seen sets."""
    together = school.sets[school.seen].astype(int)
    linked = together.T @ together > 0
    for _ in range(len(linked)):
        linked = linked.astype(int) @ linked > 0
    rare = together.sum(axis=0) < LEAST
    active = school.latents > 0
    strange = np.einsum("bm,mn,bn->b", active.astype(int), (~linked).astype(int), active)
    return ~(active & rare).any(axis=1) & (strange == 0)


# --- students ------------------------------------------------------------------------------------

QUICK = STUDENT.config("quick", "hyperteacher")
SEEDS = (0, 1, 2, 3)
GAIN, NOISE, TRUST = 0.005, 0.03, 0.02  # a seed's jitter: of the gain, of answers, of the trust
LITTLE = 0.01  # a seed's jitter of numbers
NARROW = 16  # the width at which a learner has come half of its way
BY_KERNEL = 0.2  # the gain of kernel regression
PER_MODULE, SHARE = 8.0, 0.8  # seen sets for each module, and of all, to come 1 - 1/e of the way


def known_run(scores: dict, layers=None, outputs=None, *, model="task_mlp", **fields):
    """A known student in place of a quick run. scores: (T,) by name, as in a run's summary.
    layers, outputs: as of `Run`. fields: of the config."""
    names = {"modules": "task.modules", "seen": "task.support.seen", "width": "model.width",
             "support": "task.support.name"}  # fmt: skip
    values = {names[name]: value for name, value in fields.items()}
    config = changed(QUICK, {"model.name": model} | values)
    summary = {
        "seeds": {str(s): {name: each[s] for name, each in scores.items()} for s in SEEDS},
        "task": {"sets": module_supports.n_sets(config.task.modules, MOST), "code_r2": 1.0},
    }
    return Run.known(SEEDS, layers=layers, outputs=outputs, config=config, summary=summary)


# --- what students answer ----------------------------------------------------------------------

STUDENTS = {
    "composer": "the teacher itself, at every width and with any sets seen",
    "learner": "between the bilinear map and the teacher, nearer to it the wider it is and the "
    "more sets it has seen of each module, in sets whose modules it has seen often enough and "
    "linked",
    "quick learner": "a learner that needs half as many sets",
    "by share": "a learner by the share of all sets that it has seen, whichever these are",
    "reversed": "the worse the wider it is and the more sets it has seen",
    "bilinear": "the best map bilinear in (1, latent) and (1, input)",
    "sum of singles": "the sum of what each active module answers alone",
    "nearest": "what the nearest seen set answers, so right on seen ones",
    "memorizer": "right on seen sets, the bilinear map on held-out ones",
    "approacher": "right on seen sets; on held-out ones from the mean answer to the bilinear map, "
    "the further the wider it is and the more sets it has seen",
    "noise": "answers that do not depend on the task",
}


def answers(school: School, width: int, rng) -> dict:
    """(B, O) of every known student, by name; `rng`: of a seed."""
    truths, bilinear, mean = school.truths, school.bilinear, school.truths.mean(axis=0)
    wide, known_Bx1 = width / (width + NARROW), school.known[:, None]
    per_module = school.seen.sum() / school.sets.shape[1] / PER_MODULE
    of_modules, of_share = covered(school), 1 - np.exp(-school.seen.mean() / SHARE)

    def learner(learnt, reverse=False):
        """From the bilinear map towards the truth; a fifth of what is left less on seen sets."""
        trust = np.minimum(learnt * wide * (1 + TRUST * rng.normal()), 1)
        left = (trust if reverse else 1 - trust) * np.where(school.known, 0.8, 1.0)
        return truths + left[:, None] * (bilinear - truths)

    approached = mean + of_share * wide * (bilinear - mean)
    return {
        "composer": truths,
        "learner": learner((1 - np.exp(-per_module)) * of_modules),
        "quick learner": learner((1 - np.exp(-2 * per_module)) * of_modules),
        "by share": learner(of_share),
        "reversed": learner((1 - np.exp(-per_module)) * of_modules, reverse=True),
        "bilinear": bilinear,
        "sum of singles": school.singles,
        "nearest": school.nearest,
        "memorizer": np.where(known_Bx1, truths, bilinear),
        "approacher": np.where(known_Bx1, truths, approached),
        "noise": truths.std() * rng.normal(size=truths.shape),
    }


@cache
def student(name, width=256, seen=69, support="random", modules=8) -> Run:
    """A known student after training."""
    lesson = school(support, modules, seen)
    by_seed = []
    for seed in SEEDS:
        drawn = f"{name} {lesson.sets.shape} {seen} {width} {support}  {seed}"
        rng = np.random.default_rng(zlib.crc32(drawn.encode()))
        own = answers(lesson, width, rng)[name] * (1 + GAIN * rng.normal())
        noise = NOISE * np.exp(0.2 * rng.normal()) * lesson.truths.std()
        by_seed.append(_scores(own + noise * rng.normal(size=own.shape), lesson))
    scores = {key: np.array([one[key] for one in by_seed]) for key in by_seed[0]}
    return known_run(scores, modules=modules, seen=seen, width=width, support=support)


def _scores(answers_BxO, school) -> dict:
    found, mean = {}, school.truths.mean(axis=0)
    for region, rows in (("id", school.known), ("ood", ~school.known)):
        true = school.truths[rows]
        mse = np.square(answers_BxO[rows] - true).mean()
        found[f"{region}.mse"] = mse
        found[f"{region}.r2"] = 1 - mse / np.square(true - mean).mean()
        found[f"{region}.gain"] = 1 - mse / np.square(school.bilinear[rows] - true).mean()
        found[f"{region}.interpolator_gain"] = np.float64(BY_KERNEL)
    return found


# --- plans in the gridworld ----------------------------------------------------------------------

# Share of right steps on held-out sets of the nearest seen set's plan, by sets seen, and of the
# most frequent action: trivial predictors of the quick gridworld, 512 episodes.
NEAREST, MAJORITY = {9: 0.61, 69: 0.70}, 0.19
LEARNT = {9: 0.1, 69: 0.85}  # share of the nearest plan's errors that a learner corrects


PLANS = {
    "learner": "corrects the more of the nearest plan's errors, the more sets it has seen",
    "composer": "the expert, with any sets seen",
    "nearest": "the nearest seen set's plan",
    "approacher": "from the most frequent action to the nearest plan, the further the more sets it "
    "has seen",
    "reversed": "the worse the more sets it has seen",
    "majority": "the most frequent action",
    "untrained": "a learner that learnt little of seen sets",
}


def right_steps(seen: int) -> dict[str, tuple]:
    """The shares of right steps on seen and on held-out sets, of every plan."""
    nearest, learnt = NEAREST[seen], LEARNT[seen]
    learner = nearest + learnt * (1 - nearest)
    return {
        "learner": (0.99, learner),
        "composer": (0.99, 0.99),
        "nearest": (1.0, nearest),
        "approacher": (1.0, MAJORITY + (nearest - MAJORITY) * learnt),
        "reversed": (0.99, nearest + (1 - learnt) * (1 - nearest)),
        "majority": (MAJORITY, MAJORITY),
        "untrained": (0.7, 0.5 * learner),
    }


def plans_of(name: str) -> dict[str, Run]:
    """A student that has seen the fewest sets, and one that has seen the most."""
    rng, found = np.random.default_rng(0), {}
    noisy = lambda value: value + LITTLE * rng.normal(size=len(SEEDS))
    for argument, seen in zip(("few", "many"), NEAREST, strict=True):
        seen_sets, held_out = right_steps(seen)[name]
        scores = {
            "id.step_accuracy": noisy(seen_sets),
            "ood.step_accuracy": noisy(held_out),
            "ood.nearest_seen_miss": noisy(1 - NEAREST[seen]),
        }
        found[argument] = known_run(scores, seen=seen)
    return found


# --- layers of which it is known what a readout tells --------------------------------------------

WIDTHS, SEEN = (16, 64, 256), (9, 22, 44, 69)  # of 92 sets of 8 modules, as in quick runs
SUCCESS = np.outer((0.6, 0.9, 1.0), (0.1, 0.4, 0.7, 0.97))  # gains by width and sets seen
SETS = (0.0, 0.33, 0.67, 1.0)
LOST = 0.35  # by an untrained network's last layer


class Layers(NamedTuple):
    """R^2 of the latent from the first layer and from the last, also before training, and the
    share of latents that is recovered from the last; `modules`: of sets of modules, as many unless
    given."""

    first: float
    last: float
    untrained_first: float
    untrained_last: float
    recovery: float
    modules: float | None = None


def bound(right: float) -> float:
    """What the theorem says of the recovery."""
    return 1 - (1 - right) ** 0.5


def right_of(success: float) -> float:
    """The share of tasks on which a run is right."""
    return success**2


READINGS = {
    "tells": "the last layer tells more the better a run composes; recovery is above the bound",
    "at the bound": "the same, recovery at the bound",
    "below": "the same, recovery .1 below the bound",
    "modules alone": "the first again, of modules alone: few latents are recovered",
    "constant": "every layer tells as much",
    "reversed": "the last layer tells the less the better a run composes",
    "by sets": "a readout fitted to more sets tells more, trained or not, and less with depth",
    "lost by all": "every run loses as much with depth, more than before training",
    "random": "what a layer tells goes with nothing",
    "all compose": "every run composes, and tells the latent",
    "none composes": "no run composes, and every one loses the latent with depth",
}
# gains by width and sets seen, where others than `SUCCESS`
SUCCESSES = {"all compose": np.full_like(SUCCESS, 0.98), "none composes": 0.3 * SUCCESS}


def layers_of(success: float, sets: float) -> dict[str, Layers]:
    """{known reading: its `Layers`}, given the success and the share of the sets seen."""
    least, by_sets = bound(right_of(success)), 0.4 + 0.4 * sets
    tells = Layers(0.9, 0.3 + 0.65 * success, 0.85, 0.85 - LOST + 0.1 * sets, min(least + 0.1, 1.0))
    drawn = np.random.default_rng(int(1e6 * success)).uniform(0.2, 0.8, 4)
    return {
        "tells": tells,
        "at the bound": tells._replace(recovery=least),
        "below": tells._replace(recovery=max(least - 0.1, 0)),
        "modules alone": tells._replace(recovery=0.4 * right_of(success), modules=tells.recovery),
        "constant": Layers(0.8, 0.8, 0.8, 0.8, 0.3),
        "reversed": Layers(0.6, 0.95 - 0.65 * success, 0.85, 0.5, 1 - success),
        "by sets": Layers(0.85, by_sets, 0.85, by_sets, 0.3),
        "lost by all": Layers(0.9, 0.5, 0.85, 0.75, 0.3),
        "random": Layers(*drawn, 0.3),
        "all compose": Layers(0.9, 0.9, 0.85, 0.5, 0.99),
        "none composes": Layers(0.9, 0.3, 0.85, 0.5, 0.0),
    }


def readings_of(name: str) -> list[Run]:
    """A run of every width and number of sets seen, with what is read off code, first layer and
    last."""
    rng = np.random.default_rng(0)
    noisy = lambda *values: np.stack(
        [value + LITTLE * rng.normal(size=len(SEEDS)) for value in values], axis=1
    )
    found = []
    for width, gains in zip(WIDTHS, SUCCESSES.get(name, SUCCESS), strict=True):
        for seen, success, sets in zip(SEEN, gains, SETS, strict=True):
            one = layers_of(success, sets)[name]
            of_every_seed = lambda value: np.full(len(SEEDS), value)
            scores = {
                "ood.r2": 0.85 + 0.15 * success + 0.1 * LITTLE * rng.normal(size=len(SEEDS)),
                "ood.gain": noisy(success)[:, 0],
                "ood.task_accuracy": of_every_seed(right_of(success)),
            }
            layers = {
                "decode.ood_r2": noisy(1.0, one.first, one.last),
                "decode.untrained.ood_r2": noisy(1.0, one.untrained_first, one.untrained_last),
                "decode.shuffled.ood_r2": noisy(0.0, 0.0, 0.0),
            }
            modules = one.recovery if one.modules is None else one.modules
            outputs = {
                "decode.recovery": of_every_seed(one.recovery),
                "decode.active_recovery": of_every_seed(modules),
            }
            found.append(known_run(scores, layers, outputs, width=width, seen=seen))
    return found


# --- generators whose layers tell what they draw -------------------------------------------------

COMBINATIONS, HELD_OUT, BLUR = 120, 40, 0.3
GENERATORS = {
    "tells": "combinations that are read worse are drawn less often; not so before training",
    "told before": "the same, and of the layer before training, too",
    "told before alone": "the layer before training tells, the trained one does not",
    "apart": "what is drawn goes with nothing that is read",
    "reversed": "combinations that are read worse are drawn more often",
    "draws all": "every combination is drawn",
    "draws little": "the first again, of a generator that draws half of the ID combinations",
}


class ReadPlace(NamedTuple):
    """Layers at points, in place of a run's recording. difficulty: (2, B) of points, by which what
    is read off the trained layer and off the untrained one is blurred."""

    task: SimpleNamespace
    points: np.ndarray
    held_out: np.ndarray
    difficulty: np.ndarray

    def record(self, params, key, seed: int):
        rng = np.random.default_rng(seed)
        noise = BLUR * rng.normal(size=(2, *self.points.shape))
        both = self.points[None] + (0.1 + self.difficulty[..., None]) * noise
        return {"last": SimpleNamespace(features=both[0], untrained=both[1])}


def generator(name: str) -> Run:
    rng, held_out = np.random.default_rng(0), np.arange(COMBINATIONS) < HELD_OUT
    points = np.concatenate(
        [rng.random((COMBINATIONS, 2)), rng.integers(0, 3, (COMBINATIONS, 1))], 1
    )
    hard, other = held_out * rng.random((2, COMBINATIONS))
    read = {
        "told before": (hard, hard),
        "told before alone": (other, hard),
        "apart": (other, other),
    }
    drawn = {"draws all": np.zeros_like(hard), "reversed": held_out * (1 - hard)}.get(name, hard)
    missed = rng.random((len(SEEDS), 5, COMBINATIONS)) < drawn + 0.5 * (name == "draws little")
    task = SimpleNamespace(factors=[SimpleNamespace(real=real) for real in (True, True, False)])
    place = ReadPlace(task, points, held_out, np.array(read.get(name, (hard, other))))
    cells = SimpleNamespace(held_out=held_out, scores={"rendered": ~missed})
    return Run.known(SEEDS, cells, shown=None, recorders={"points": place})


# --- constructions, and widths that are needed ---------------------------------------------------

FEW_TASKS = 200
MODULES = (4, 8, 32)
LOW, HIGH, KNOTS = 8, 32, (4, 8, 16, 32)


def small_bound(teacher: Teacher) -> ReluMLP:
    """The k-hot network with gates that close at half of what they may have to hold back."""
    largest = jnp.abs(teacher.weights).sum(axis=-1) + teacher.biases
    return constructions.k_hot(teacher, float(largest.max()) / 2)


def bank_per_task(teacher: Teacher) -> ReluMLP:
    """One bank of H neurons for each set of K modules, open where just these are active."""
    modules, hidden, inputs = teacher.weights.shape
    sets = all_sets(modules, teacher.most).astype(float)
    sets = sets[sets.sum(axis=1) == teacher.most]
    weights, biases, readout = (np.asarray(part, np.float64) for part in teacher[:3])
    mixed = np.einsum("tm,mhi->ith", sets, weights).reshape(inputs, -1) / teacher.most**0.5
    own = (sets @ biases).ravel() / teacher.most**0.5
    closed = np.abs(mixed).sum(axis=0) + np.abs(own)
    of_z = np.repeat(2 * sets.T - 1, hidden, axis=1) * closed
    return constructions.network_of(
        (np.concatenate([of_z, mixed]), own - teacher.most * closed),
        (np.tile(readout.T, (len(sets), 1)), np.zeros(len(readout))),
    )


EXACT = {
    "k-hot gates": constructions.k_hot,
    "small bound": small_bound,
    "graded": lambda teacher: constructions.graded(teacher, max(KNOTS)),
    "bank per task": bank_per_task,
}
EXACT_DO = {
    "k-hot gates": "the construction",
    "small bound": "its gates close at half of what they have to hold back",
    "graded": f"the construction for graded tasks, with {max(KNOTS)} knots",
    "bank per task": "a bank of neurons for each set of modules",
}


def exact(name: str) -> Run:
    rows = constructions.table_k_hot(MODULES, SEEDS, SIZE, MOST, FEW_TASKS, EXACT[name])
    return Run.known(SEEDS, exact=rows)


@cache
def _graded(common: bool):
    return constructions.table_graded((LOW, HIGH), KNOTS, SEEDS, SIZE, MOST, FEW_TASKS, common)


def _scaled(row, neurons=1.0, error=1.0):
    """The row with so many times the neurons and the error."""
    scaled = {"neurons": row["neurons"] * neurons, "rmse": row["rmse"] * error}
    return row | scaled | {"r2": 1 - (1 - row["r2"]) * error**2}


GRADED = {
    "graded": lambda row: row,
    "bank per module": lambda row: _scaled(row, neurons=row["modules"]),
    "bank per task": lambda row: _scaled(row, neurons=comb(row["modules"], MOST)),
    "constant knots": lambda row: _scaled(row, error=(row["knots"] / min(KNOTS)) ** 1.8),
    "steps": lambda row: _scaled(row, error=(row["knots"] / min(KNOTS)) ** 0.8),
}
GRADED_DO = {
    "graded": "the construction",
    "bank per module": "as many neurons for each module",
    "bank per task": "as many for each set of modules",
    "constant knots": "an error that more neurons do not lessen",
    "steps": "an error that falls as the number of knots, not as its square",
}


def graded(name: str) -> Run:
    rows = lambda common: list(map(GRADED[name], _graded(common)))
    return Run.known(SEEDS, graded=rows(True), graded_own=rows(False))


SWEPT, SWEPT_WIDTHS = (4, 8, 16), (16, 32, 64, 128, 256, 512)
JITTER = 0.05  # standard deviation of the logarithm of a needed width
# exponent of the needed width on the modules, its value at 8 modules, R^2 ID, and what it is
GROWTH = {
    "root": (0.5, 80, 0.99, "grows as the root of the modules"),
    "linear": (1.0, 80, 0.99, "in proportion to the modules"),
    "power 1.5": (1.5, 80, 0.99, "as their power 1.5"),
    "square": (2.0, 80, 0.99, "as their square"),
    "square, narrow": (2.0, 20, 0.99, "the same, and 4 modules need less than the narrowest has"),
    "narrow": (1.0, 4, 0.99, "is less than the narrowest has"),
    "never": (1.0, 10**4, 0.99, "is more than the widest has"),
    "untrained": (1.0, 80, 0.8, "in proportion, of students that did not learn the seen sets"),
}


def trained(name: str) -> list[Run]:
    """Students of every number of modules and width, which see three quarters of the sets."""
    exponent, at_8, id_r2, _ = GROWTH[name]
    jitter = np.exp(JITTER * np.random.default_rng(0).normal(size=(len(SWEPT), len(SEEDS))))
    found = []
    for modules, of_seed in zip(SWEPT, jitter, strict=True):
        needed = at_8 * (modules / 8) ** exponent * of_seed
        for width in SWEPT_WIDTHS:
            scores = {
                "ood.r2": 1 - 0.05 * (needed / width) ** 1.5,
                "id.r2": np.full(len(SEEDS), id_r2),
            }
            found.append(known_run(scores, modules=modules, width=width, seen=0))
    return found


# --- what claims must say of them --------------------------------------------------------------

OF_SUPPORTS = 44  # sets seen
GROWN, SHARES = (6, 12), (0.1, 0.25, 0.5, 0.75)  # further numbers of modules; of their sets seen


def _by_sets(name, modules=8, seen=SEEN) -> list[Run]:
    return [student(name, seen=each, modules=modules) for each in seen]


def _fewest_and_most(name, known) -> dict:
    few, many = _by_sets(name, seen=(SEEN[0], SEEN[-1]))
    return {"few": few, "many": many}


def _by_width(name, known) -> dict:
    return {"students": [run for width in WIDTHS for run in
                         (student(name, width, seen) for seen in (SEEN[0], SEEN[-1]))]}  # fmt: skip


def _by_modules(name, known) -> dict:
    found = _by_sets(name)
    for modules in GROWN:
        total = n_sets(modules, MOST)
        found += _by_sets(name, modules, [round(share * total) for share in SHARES])
    return {"students": found}


def _of_support(support: str) -> Callable:
    of = partial(student, seen=OF_SUPPORTS)
    return lambda name, known: {"random": of(name), "student": of(name, support=support)}


LEARNERS = ("learner", "quick learner", "by share")
COMPOSE, BY_MODULE = ("composer", *LEARNERS), ("learner", "quick learner")
SIMPLE = ("nearest", "approacher")  # better at held-out sets by what is no composing
RISE = letters(STUDENTS, R=LEARNERS)
MORE = letters(STUDENTS, R=LEARNERS, r=SIMPLE)
CODES = letters(STUDENTS, ("reversed",), R=COMPOSE)
ON_STUDENTS = {  # claim: the letters, and runs beside a student
    "S1a": (MORE, _fewest_and_most),
    "S1a.gain": (RISE, _fewest_and_most),
    "S1d": (MORE, _fewest_and_most),
    "S1d.gain": (RISE, _fewest_and_most),
    "S1b": (RISE, _by_width),
    "S1b.gain": (RISE, _by_width),
    "S1c": (letters(STUDENTS, ("quick learner",), R=("learner",)), _by_modules),
} | dict.fromkeys(
    ("S1a.interpolation", "S2a", "S2a.as_seen"),
    (CODES, lambda name, known: {"student": student(name)}),
)
for support in codes.COVERED:
    for claim in ("S2b.covering", "S2b.covering_gain"):
        ON_STUDENTS[f"{claim}, {support}"] = CODES, _of_support(support)
for support in codes.UNCOVERED:
    for claim in ("S2b", "S2b.gain"):
        # the bilinear part of `by share` errs more on sets with an unseen module
        apart = (claim, support) == ("S2b", "non_compositional")
        row = letters(STUDENTS, ("reversed",), R=BY_MODULE, r=("by share",) * apart)
        ON_STUDENTS[f"{claim}, {support}"] = row, _of_support(support)

TOLD = ("tells", "at the bound", "below", "modules alone")
RECOVERED = letters(READINGS, R=("tells", "at the bound", "all compose"))
ON_READINGS = {
    "S4a": letters(READINGS, R=TOLD),
    "S4b": letters(READINGS, R=TOLD, r=("by sets", "lost by all", "none composes")),
    "S4b.others": letters(READINGS, R=TOLD),
    "S4c": RECOVERED | {"modules alone": "r"},
    "S4c.latents": RECOVERED,
}


def _matrix(title: str, does: dict, of: Callable, rows: dict, runs: Callable) -> Matrix:
    """`of`: name -> the known answer.  runs: of it -> runs by argument."""
    beside = lambda name, known: runs(known[name])
    make = lambda: {name: of(name) for name in does}
    return Matrix(title, does, make, rows, dict.fromkeys(rows, beside))


_as_students = lambda known: {"students": known}
_as_built = lambda known: {"built": known, "students": []}
TOLD_BEFORE = letters(GENERATORS, R=("tells",))
LEARNER, OF_GRADED = letters(PLANS, R=("learner",)), letters(GRADED, R=("graded",))
MATRICES = (
    Matrix("students", STUDENTS, dict, *({c: pair[k] for c, pair in ON_STUDENTS.items()}
                                         for k in (0, 1))),
    _matrix(
        "plans in the gridworld",
        PLANS,
        plans_of,
        {"S1d.preferences": LEARNER | {"approacher": "r"}, "S1d.plans": LEARNER},
        dict,
    ),
    _matrix("constructions for k-hot tasks", EXACT_DO, exact,
            {"S3a": letters(EXACT, R=("k-hot gates",))}, _as_built),
    _matrix("constructions for graded tasks", GRADED_DO, graded,
            {"S3b": OF_GRADED, "S3b.own_interval": OF_GRADED}, _as_built),
    _matrix(
        "widths needed",
        {name: one[-1] for name, one in GROWTH.items()},
        trained,
        {"S3c": letters(GROWTH, R=("root", "linear"))},
        _as_students,
    ),
    _matrix("layers", READINGS, readings_of, ON_READINGS, _as_students),
    _matrix("generators", GENERATORS, generator,
            {"S5": TOLD_BEFORE | {"told before": "r"}, "S5.untrained": TOLD_BEFORE},
            lambda known: {"net": known}),
)  # fmt: skip
