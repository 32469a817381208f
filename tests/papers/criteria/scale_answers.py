"""Known answers of the paper on scale, and those of which each claim must be reproduced.

Dimensions: B tasks, those of seen sets and of held-out ones; S seeds.
"""

import zlib
from dataclasses import replace
from functools import cache, partial
from math import comb
from types import SimpleNamespace

import jax
import numpy as np
from scipy.sparse.csgraph import connected_components

from compgen_jax.config import changed
from compgen_jax.papers.scale import constructions
from compgen_jax.papers.scale.scale_presets import STUDENT
from compgen_jax.runs.run import Run
from compgen_jax.tasks import module_supports
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.module_supports import ModuleSupportConfig
from tests.papers.criteria.matrix import Matrix, rows_of

QUICK = STUDENT.config("quick", "hyperteacher")
MOST, SEEDS = QUICK.task.most, (0, 1, 2, 3)
WIDTHS, SEEN = (16, 64, 256), (9, 22, 44, 69)  # of 92 sets of 8 modules, as in quick runs
LITTLE = 0.01  # standard deviation of a number over seeds


def known_run(scores: dict, layers=None, outputs=None, **fields) -> Run:
    """A quick student with these scores, (S,) by name. `fields`: of the config."""
    names = {"modules": "task.modules", "seen": "task.support.seen", "width": "model.width",
             "support": "task.support.name"}  # fmt: skip
    config = changed(QUICK, {names[name]: value for name, value in fields.items()})
    sets = module_supports.n_sets(config.task.modules, MOST)
    of_seed = {str(s): {name: values[s] for name, values in scores.items()} for s in SEEDS}
    summary = {"seeds": of_seed, "task": {"sets": sets, "code_r2": 1.0}}
    return Run.known(SEEDS, layers=layers, outputs=outputs, config=config, summary=summary)


def jittered(rng, *values):
    """(S,) of one value, or (S, L) of several."""
    rows = [value + LITTLE * rng.normal(size=len(SEEDS)) for value in values]
    return rows[0] if len(values) == 1 else np.stack(rows, axis=1)


# --- students that answer tasks ------------------------------------------------------------------


@cache
def lesson(support: str, modules: int, seen: int):
    """The query (`Query`), what trivial predictors answer, and (B,) whether a learner can know
    a task: its modules are in three seen sets or more, and seen sets link them."""
    chosen = ModuleSupportConfig(name=support, seen=seen)
    settings = replace(QUICK.task, modules=modules, tests=256, support=chosen)
    task = settings.make()
    query = jax.tree.map(np.asarray, tasks.query(task, jax.random.key(0)))
    answers = {name: np.asarray(predict(query)) for name, predict in task.baselines.items()}
    shown = module_supports.split(chosen, modules, MOST)
    sets = module_supports.all_sets(modules, MOST)[shown].astype(int)
    together, active = sets.T @ sets, query.points > 0
    group = connected_components(together)[1]
    linked = [len(set(group[row])) == 1 for row in active]
    frequent = ~(active & (np.diag(together) < 3)).any(axis=1)
    return query, answers, linked & frequent


@cache
def student(name, width=256, seen=69, support="random", modules=8) -> Run:
    """A student that answers as its name says, with a gain and noise of each seed's own."""
    query, predicted, knowable = lesson(support, modules, seen)
    truth, bilinear = query.truths, predicted["bilinear"]
    mean, id_B = truth.mean(axis=(0, 1)), ~query.held_out[:, None, None]
    wide = width / (width + 16)
    by_module = (1 - np.exp(-seen / modules / 8)) * knowable
    by_share = 1 - np.exp(-seen / module_supports.n_sets(modules, MOST) / 0.8)
    scores = {}
    for seed in SEEDS:
        drawn = f"{name} {modules} {seen} {width} {support} {seed}"
        rng = np.random.default_rng(zlib.crc32(drawn.encode()))

        def towards_truth(learnt, reverse=False, rng=rng):
            trust = np.minimum(learnt * wide * (1 + 0.02 * rng.normal()), 1)
            left = (trust if reverse else 1 - trust) * np.where(query.held_out, 1.0, 0.8)
            return truth + left[:, None, None] * (bilinear - truth)

        answer = {
            "composer": truth,
            "learner": towards_truth(by_module),
            "by-share": towards_truth(by_share),
            "reversed": towards_truth(by_module, reverse=True),
            "bilinear": bilinear,
            "sum-of-singles": predicted["sum_of_singles"],
            "nearest": np.where(id_B, truth, query.nearest),
            "memorizer": np.where(id_B, truth, bilinear),
            "approacher": np.where(id_B, truth, mean + by_share * wide * (bilinear - mean)),
            "noise": truth.std() * rng.normal(size=truth.shape),
            "unlearnt": np.where(id_B, bilinear, towards_truth(by_module)),
        }[name] * (1 + 0.005 * rng.normal())
        noise = 0.03 * np.exp(0.2 * rng.normal()) * truth.std()
        answer = answer + noise * rng.normal(size=answer.shape)
        for region, mask in (("id", ~query.held_out), ("ood", query.held_out)):
            error, by_map, by_mean = (
                np.square(values - truth)[mask].mean() for values in (answer, bilinear, mean)
            )
            numbers = {"mse": error, "r2": 1 - error / by_mean, "gain": 1 - error / by_map}
            for key, value in (numbers | {"interpolator_gain": 0.2}).items():
                scores.setdefault(f"{region}.{key}", []).append(value)
    return known_run(scores, modules=modules, seen=seen, width=width, support=support)


def fewest_and_most(name):
    return {"few": student(name, seen=SEEN[0]), "many": student(name)}


def by_width(name):
    return {"students": [student(name, w, seen) for w in WIDTHS for seen in (SEEN[0], SEEN[-1])]}


def by_modules(name):
    students = [student(name, seen=seen) for seen in SEEN]
    for modules in (6, 12):
        total = module_supports.n_sets(modules, MOST)
        students += [
            student(name, seen=round(share * total), modules=modules)
            for share in (0.1, 0.25, 0.5, 0.75)
        ]
    return {"students": students}


def alone(name):
    return {"student": student(name)}


def beside_random(support, name):
    return {"random": student(name, seen=44), "student": student(name, seen=44, support=support)}


# --- plans in the gridworld ----------------------------------------------------------------------


def plans(name):
    """A student that has seen 9 sets, and one that has seen 69. The plan of the nearest seen set is
    right at .61 and .70 of held-out steps, the most frequent action at .19."""
    rng, students = np.random.default_rng(0), {}
    for argument, seen, nearest, learnt in (("few", 9, 0.61, 0.1), ("many", 69, 0.70, 0.85)):
        learner = nearest + learnt * (1 - nearest)
        id_steps, ood_steps = {
            "learner": (0.99, learner),
            "composer": (0.99, 0.99),
            "nearest": (1.0, nearest),
            "approacher": (1.0, 0.19 + (nearest - 0.19) * learnt),
            "reversed": (0.99, nearest + (1 - learnt) * (1 - nearest)),
            "majority": (0.19, 0.19),
            "untrained": (0.7, 0.5 * learner),
        }[name]
        scores = {"id.step_accuracy": id_steps, "ood.step_accuracy": ood_steps,
                  "ood.nearest_seen_miss": 1 - nearest}  # fmt: skip
        scores = {key: jittered(rng, value) for key, value in scores.items()}
        students[argument] = known_run(scores, seen=seen)
    return students


# --- constructions, and widths that are needed ---------------------------------------------------


@cache
def table(law, **options):
    return constructions.table(law, (8, 32), SEEDS, size=8, count=200, **options)


def exact(name):
    """For k-hot tasks the construction, that for graded tasks, and a bank of neurons per set."""
    rows = table("discrete", knots=(32,)) if name == "graded" else table("khot")
    banks = name == "bank-per-task"
    rows = [row | {"neurons": comb(row["modules"], MOST)} if banks else row for row in rows]
    return {"built": SimpleNamespace(seeds=SEEDS, rows=lambda _: rows), "students": []}


def graded(name):
    """For graded tasks the construction, with more neurons or with an error that falls more slowly
    as the number of knots rises."""

    def changed_row(row):
        neurons = {"bank-per-module": row["modules"], "bank-per-task": comb(row["modules"], MOST)}
        error = {"constant-knots": (row["knots"] / 4) ** 1.8, "steps": (row["knots"] / 4) ** 0.8}
        factor = error.get(name, 1)
        scaled = {"rmse": row["rmse"] * factor, "r2": 1 - (1 - row["r2"]) * factor**2}
        return row | scaled | {"neurons": row["neurons"] * neurons.get(name, 1)}

    def rows(of):
        drawn = table("discrete", knots=(4, 8, 16, 32), common=of == "graded")
        return list(map(changed_row, drawn))

    return {"built": SimpleNamespace(seeds=SEEDS, rows=rows), "students": []}


GROWTH = {  # exponent of the needed width on the modules, its value at 8 modules, R² ID
    "root": (0.5, 80, 0.99),
    "linear": (1.0, 80, 0.99),
    "power-1.5": (1.5, 80, 0.99),
    "square": (2.0, 80, 0.99),
    "square-from-below": (2.0, 20, 0.99),
    "below-the-narrowest": (1.0, 4, 0.99),
    "above-the-widest": (1.0, 10**4, 0.99),
    "untrained": (1.0, 80, 0.8),
}


def widths(name):
    exponent, at_8, id_r2 = GROWTH[name]
    rng, students = np.random.default_rng(0), []
    for modules in (4, 8, 16):
        needed = at_8 * (modules / 8) ** exponent * np.exp(jittered(rng, 0.0))
        for width in (16, 32, 64, 128, 256, 512):
            scores = {"ood.r2": 1 - 0.05 * (needed / width) ** 1.5, "id.r2": np.full(4, id_r2)}
            students.append(known_run(scores, modules=modules, width=width, seen=0))
    return {"students": students}


# --- layers, and generators, of which it is known what a readout tells ---------------------------


def readings(name):
    """Students of every width and number of sets, right on a share of tasks, with R² of the latent
    from code, first and last layer, and the share of tasks whose latents (modules) are recovered;
    the theorem bounds it from below."""
    gains = np.outer((0.6, 0.9, 1.0), (0.1, 0.4, 0.7, 0.97))
    gains = {"all-compose": 0 * gains + 0.98, "none-composes": 0.3 * gains}.get(name, gains)
    rng, students = np.random.default_rng(0), []
    for width, of_width in zip(WIDTHS, gains, strict=True):
        for seen, gain, share in zip(SEEN, of_width, (0.0, 0.33, 0.67, 1.0), strict=True):
            bound, by_sets = 1 - (1 - gain**2) ** 0.5, 0.4 + 0.4 * share
            tells = 0.9, 0.3 + 0.65 * gain, 0.85, 0.5 + 0.1 * share
            above = min(bound + 0.1, 1.0)
            # R² of first and last layer, trained and untrained; recovery of latents, of modules
            first, last, first_before, last_before, latents, modules = {
                "tells": (*tells, above, above),
                "at-the-bound": (*tells, bound, bound),
                "below": (*tells, max(bound - 0.1, 0), max(bound - 0.1, 0)),
                "modules-alone": (*tells, 0.4 * gain**2, above),
                "constant": (0.8, 0.8, 0.8, 0.8, 0.3, 0.3),
                "reversed": (0.6, 0.95 - 0.65 * gain, 0.85, 0.5, 1 - gain, 1 - gain),
                "by-sets": (0.85, by_sets, 0.85, by_sets, 0.3, 0.3),
                "lost-by-all": (0.9, 0.5, 0.85, 0.75, 0.3, 0.3),
                "random": (*np.random.default_rng(int(1e6 * gain)).uniform(0.2, 0.8, 4), 0.3, 0.3),
                "all-compose": (0.9, 0.9, 0.85, 0.5, 0.99, 0.99),
                "none-composes": (0.9, 0.3, 0.85, 0.5, 0.0, 0.0),
            }[name]
            scores = {"ood.r2": 0.85 + 0.15 * gain + 0.1 * LITTLE * rng.normal(size=4),
                      "ood.gain": jittered(rng, gain),
                      "ood.task_accuracy": np.full(4, gain**2)}  # fmt: skip
            layers = {"decode.ood_r2": jittered(rng, 1.0, first, last),
                      "decode.untrained.ood_r2": jittered(rng, 1.0, first_before, last_before),
                      "decode.shuffled.ood_r2": jittered(rng, 0.0, 0.0, 0.0)}  # fmt: skip
            outputs = {"decode.recovery": np.full(4, latents),
                       "decode.active_recovery": np.full(4, modules)}  # fmt: skip
            students.append(known_run(scores, layers, outputs, width=width, seen=seen))
    return {"students": students}


def generator(name):
    """A generator that fails at hard combinations; its layer, trained and before, is blurred at
    hard ones or at others."""
    rng, held_out = np.random.default_rng(0), np.arange(120) < 40
    points = np.concatenate([rng.random((120, 2)), rng.integers(0, 3, (120, 1))], axis=1)
    hard, other = held_out * rng.random((2, 120))
    blur = {"told-before": (hard, hard), "told-before-alone": (other, hard),
            "apart": (other, other)}.get(name, (hard, other))  # fmt: skip
    missing = {"draws-all": 0 * hard, "reversed": held_out * (1 - hard)}.get(name, hard)
    missed = rng.random((len(SEEDS), 5, 120)) < missing + 0.5 * (name == "draws-little")

    def record(params, key, seed):
        noise = 0.3 * np.random.default_rng(seed).normal(size=(2, *points.shape))
        trained, before = points + (0.1 + np.array(blur)[..., None]) * noise
        return {"last": SimpleNamespace(features=trained, untrained=before)}

    task = SimpleNamespace(factors=[SimpleNamespace(real=real) for real in (True, True, False)])
    place = SimpleNamespace(task=task, points=points, held_out=held_out, record=record)
    cells = SimpleNamespace(held_out=held_out, scores={"rendered": ~missed})
    net = Run.known(SEEDS, cells)
    net.cached["points"] = place
    return {"net": net}


# --- what claims must say of them ----------------------------------------------------------------


def answered(runs_of, table: str) -> Matrix:
    """A table of claims on the same runs, which `runs_of` makes by the name of an answer."""
    rows = rows_of(table)
    return Matrix(dict, rows, dict.fromkeys(rows, lambda name, known: runs_of(name)))


# beside a student of random sets, one of sets that cover the space of tasks or leave some of it out
COVERING = """
answer         S2b.covering S2b.covering_gain
composer       R            R
learner        R            R
by-share       R            R
bilinear       -            -
sum-of-singles -            -
nearest        -            -
memorizer      -            -
approacher     -            -
noise          -            -
unlearnt       -            -
"""
LEAVING_OUT = """
answer         S2b S2b.gain
composer       -   -
learner        R   R
by-share       -   -
bilinear       -   -
sum-of-singles -   -
nearest        -   -
memorizer      -   -
approacher     -   -
noise          -   -
unlearnt       -   -
"""
# the bilinear part of `by-share` errs more on sets with an unseen module
LEAVING_OUT_COMBINATIONS = """
answer         S2b S2b.gain
composer       -   -
learner        R   R
by-share       R   -
bilinear       -   -
sum-of-singles -   -
nearest        -   -
memorizer      -   -
approacher     -   -
noise          -   -
unlearnt       -   -
"""
SUPPORTS = {
    "popular": COVERING,
    "equal": COVERING,
    "disconnected": LEAVING_OUT,
    "unpopular": LEAVING_OUT,
    "non_compositional": LEAVING_OUT_COMBINATIONS,
}
MATRICES = {
    # of R² (S1a, S1d) more is reproduced: better at held-out sets by what is no composing
    "students of few sets and of many": answered(
        fewest_and_most,
        """
        answer         S1a S1a.gain S1d S1d.gain
        composer       -   -        -   -
        learner        R   R        R   R
        by-share       .   R        .   R
        reversed       -   -        -   -
        bilinear       -   -        -   -
        sum-of-singles -   -        -   -
        nearest        R   -        R   -
        memorizer      -   -        -   -
        approacher     R   -        R   -
        noise          -   -        -   -
        unlearnt       -   -        -   -
        """,
    ),
    "students alone": answered(
        alone,
        """
        answer         S1a.interpolation S2a S2a.as_seen
        composer       R                 R   R
        learner        R                 R   R
        by-share       R                 R   R
        bilinear       -                 -   -
        sum-of-singles -                 -   -
        nearest        -                 -   -
        memorizer      -                 -   -
        approacher     -                 -   -
        noise          -                 -   -
        unlearnt       -                 -   -
        """,
    ),
    "students by width": answered(
        by_width,
        """
        answer         S1b S1b.gain
        composer       -   -
        learner        R   R
        by-share       R   R
        reversed       -   -
        bilinear       -   -
        sum-of-singles -   -
        nearest        -   -
        memorizer      -   -
        approacher     -   -
        noise          -   -
        unlearnt       -   -
        """,
    ),
    "students by modules": answered(
        by_modules,
        """
        answer         S1c
        composer       -
        learner        R
        by-share       -
        reversed       -
        bilinear       -
        sum-of-singles -
        nearest        -
        memorizer      -
        approacher     -
        noise          -
        unlearnt       -
        """,
    ),
    **{
        f"students of {support} sets": answered(partial(beside_random, support), table)
        for support, table in SUPPORTS.items()
    },
    "plans": answered(
        plans,
        """
        answer     S1d.preferences S1d.plans
        composer   -               -
        learner    R               R
        nearest    -               -
        approacher R               -
        reversed   -               -
        majority   -               -
        untrained  -               -
        """,
    ),
    "exact constructions": answered(
        exact,
        """
        answer        S3a
        k-hot         R
        graded        -
        bank-per-task -
        """,
    ),
    "graded constructions": answered(
        graded,
        """
        answer          S3b S3b.own_interval
        graded          R   R
        bank-per-module -   -
        bank-per-task   -   -
        constant-knots  -   -
        steps           -   -
        """,
    ),
    "needed widths": answered(
        widths,
        """
        answer              S3c
        root                R
        linear              R
        power-1.5           -
        square              -
        square-from-below   -
        below-the-narrowest -
        above-the-widest    -
        untrained           -
        """,
    ),
    "readings of layers": answered(
        readings,
        """
        answer        S4a S4b S4b.others S4c S4c.latents
        tells         R   R   R          R   R
        at-the-bound  R   R   R          R   R
        below         R   R   R          -   -
        modules-alone R   R   R          R   -
        by-sets       -   R   -          -   -
        lost-by-all   -   R   -          -   -
        none-composes -   R   -          -   -
        constant      -   -   -          -   -
        reversed      -   -   -          -   -
        random        -   -   -          -   -
        all-compose   -   -   -          R   R
        """,
    ),
    "generators": answered(
        generator,
        """
        answer            S5 S5.untrained
        tells             R  R
        told-before       R  -
        told-before-alone -  -
        apart             -  -
        reversed          -  -
        draws-all         -  -
        draws-little      -  -
        """,
    ),
}
