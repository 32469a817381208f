"""S4: where networks compose, the weights of modules can be read linearly off their last layer.

What is read of a layer is the R² of a linear readout of the latent, fitted on seen sets and scored
on held-out ones: (S, L), the code first.
"""

import numpy as np

from compgen_jax.claims import NOWHERE, Undecided, above, below, claim, note
from compgen_jax.papers.scale import picks
from compgen_jax.papers.scale.composing import STUDENTS
from compgen_jax.papers.scale.quantities import COMPOSED, correlation, mean_where, score

CORRELATED, SLACK = 0.5, 0.02
HALF = 0.5  # share of tasks on which a network must be right for the theorem to ask much of it
OF_LAYERS = {"figure": "scale4", "cases": STUDENTS, "runs": {"students": "{students}"}}


def read(run):
    """(S, L): R² of the latent on held-out sets, by a linear readout fitted on seen sets."""
    return run.layers("decode.ood_r2")


def read_untrained(run):
    return run.layers("decode.untrained.ood_r2")


def groups(students) -> list[list]:
    """The students of each width, by rising number of sets seen; [] with fewer than three."""
    grid = picks.seen_by_width(students)
    return list(grid.values()) if min(map(len, grid.values()), default=0) >= 3 else []


def of_all(students, of_run):
    """(R, S) or (R, S, L) of all students."""
    return np.stack([of_run(run) for of_width in groups(students) for run in of_width])


def _correlated(students, of_run, name: str):
    """Success correlates with what `of_run` gives; the mean over widths."""
    return above(CORRELATED, correlation(groups(students), of_run), name, against=0)


@claim("S4a", own=NOWHERE, **OF_LAYERS)
def last_layer_tells_the_latent(students):
    """The better a network composes, the better its last layer tells the latent, and the more it
    tells beyond the same network before training."""
    if not groups(students):
        return
    last = lambda run: read(run)[:, -1]
    untrained = lambda run: read_untrained(run)[:, -1]
    yield _correlated(students, last, "Spearman's correlation")
    beyond = lambda run: last(run) - untrained(run)
    yield _correlated(students, beyond, "that of the gain over the untrained network")
    yield note("of untrained networks", correlation(groups(students), untrained))
    for name, metric in (
        ("R² of the latent from the last layer", "decode.ood_r2"),
        ("that of shuffled latents", "decode.shuffled.ood_r2"),
    ):
        of_last = of_all(students, lambda run, metric=metric: run.layers(metric)[:, -1])
        yield note(name, of_last.mean(axis=0))


def _fails(students):
    """(R, S) bool"""
    return of_all(students, lambda run: score(run, "ood.gain")) < COMPOSED


def _lost(students, of_run=read):
    """(R, S): what the last layer tells of the latent, less what the first does."""
    return of_all(students, lambda run: of_run(run)[:, -1] - of_run(run)[:, 1])


def _unless_some(counted_RxS, what: str) -> Undecided:
    """Nothing is concluded if no network of some seed counts."""
    lacks = not counted_RxS.any(axis=0).all()
    return Undecided(f"no network of some seed {what}" if lacks else "")


@claim("S4b", own=NOWHERE, **OF_LAYERS)
def failing_networks_lose_the_latent(students):
    """Networks that fail lose the latent with depth."""
    if groups(students):
        fails = _fails(students)
        yield _unless_some(fails, "fails")
        name = "R² of the latent, last - first layer"
        yield below(0.0, mean_where(_lost(students), fails), name)
        yield note("networks that fail", fails.sum(axis=0))


@claim("S4b.others", **OF_LAYERS)
def failing_networks_lose_more_than_others(students):
    """Networks that fail lose more of the latent with depth than before training, and than networks
    that compose."""
    yield from failing_networks_lose_the_latent.function(students)
    if groups(students):
        fails, lost = _fails(students), _lost(students)
        more = mean_where(lost - _lost(students, read_untrained), fails)
        yield below(0.0, more, "that - the untrained networks'")
        apart = mean_where(lost, fails) - mean_where(lost, ~fails)
        yield below(0.0, apart, "that - of networks that compose")


def right(run):
    """(S,): the share of held-out tasks with an R² of .95 or more."""
    return score(run, "ood.task_accuracy")


def _counted(students):
    """(R, S) bool: networks that are right on half of the tasks."""
    return of_all(students, right) >= HALF


def _recovered(students, name: str):
    return of_all(students, lambda run: run.outputs(f"decode.{name}"))


def _beyond_theorem(students, name: str):
    """(R, S): the share that is recovered ('recovery' of latents, 'active_recovery' of sets of
    modules), less the theorem's 1 - √δ."""
    return _recovered(students, name) - (1 - np.sqrt(1 - of_all(students, right)))


@claim("S4c", own=NOWHERE, **OF_LAYERS)
def modules_are_recovered(students):
    """A network that is right on a share 1 - δ of tasks tells the modules of at least 1 - √δ of
    them."""
    if groups(students):
        counted = _counted(students)
        yield _unless_some(counted, "is right on half of the tasks")
        beyond = mean_where(_beyond_theorem(students, "active_recovery"), counted)
        yield above(-SLACK, beyond, "recovery of modules - (1 - √δ), mean over networks")
        yield note("networks right on half of the tasks", counted.sum(axis=0))
        yield note("right of these", mean_where(of_all(students, right), counted))
        for name in ("recovery", "active_recovery"):
            of_these = mean_where(_recovered(students, name), counted)
            yield note(f"{name.replace('_', ' ')} of these", of_these)


@claim("S4c.latents", **OF_LAYERS)
def latents_are_recovered(students):
    """A network that is right on a share 1 - δ of tasks tells the latents of at least 1 - √δ of
    them, to a tenth."""
    if groups(students):
        counted = _counted(students)
        yield _unless_some(counted, "is right on half of the tasks")
        least = np.where(counted, _beyond_theorem(students, "recovery"), np.inf).min(axis=0)
        least = np.where(np.isinf(least), np.nan, least)
        yield above(-SLACK, least, "recovery - (1 - √δ), least of any network")


CLAIMS = (
    last_layer_tells_the_latent,
    failing_networks_lose_the_latent,
    failing_networks_lose_more_than_others,
    modules_are_recovered,
    latents_are_recovered,
)
