"""S4: where networks compose, the weights of modules can be read linearly off their last layer.

R² is that of a linear readout of the latent, fitted on seen sets and scored on held-out ones: by
width W, number of sets seen K, seed S and layer L, of which the code is the first.
"""

import numpy as np

from compgen_jax.claims import above, below, claim, note
from compgen_jax.papers.scale import picks
from compgen_jax.papers.scale.composing import STUDENTS
from compgen_jax.papers.scale.quantities import COMPOSED, correlation, mean_where, score

CORRELATED, SLACK = 0.5, 0.02
HALF = 0.5  # share of tasks on which a network must be right for the theorem to ask much of it
OF_LAYERS = {"figure": "scale4", "cases": STUDENTS, "runs": {"students": "{students}"}}


def layer_r2(run, kind: str = ""):
    """(S, L): R² of the latent; of the 'untrained.' network, or of 'shuffled.' latents."""
    return run.layers(f"decode.{kind}ood_r2")


def right(run):
    """(S,): the share of held-out tasks with an R² of .95 or more."""
    return score(run, "ood.task_accuracy")


def by_width(students, of_run, *arguments):
    """(W, K, S, ...) of all students; empty with fewer than three numbers of sets seen."""
    grid = picks.seen_by_width(students).values()
    return np.array([[of_run(run, *arguments) for run in runs] for runs in grid if len(runs) >= 3])


@claim("S4a", **OF_LAYERS)
def last_layer_tells_the_latent(students):
    """The better a network composes, the better its last layer tells the latent, and the more it
    tells beyond the same network before training."""
    r2 = by_width(students, score, "ood.r2")
    if not len(r2):
        return
    last, untrained, shuffled = (
        by_width(students, layer_r2, kind)[..., -1] for kind in ("", "untrained.", "shuffled.")
    )
    yield above(CORRELATED, correlation(r2, last), "Spearman's correlation", against=0)
    name = "that of the gain over the untrained network"
    yield above(CORRELATED, correlation(r2, last - untrained), name, against=0)
    yield note("of untrained networks", correlation(r2, untrained))
    yield note("R² of the latent from the last layer", last.mean(axis=(0, 1)))
    yield note("that of shuffled latents", shuffled.mean(axis=(0, 1)))


def losses(students, kind: str = ""):
    """(W, K, S) bool, whether networks fail; and how much more of the latent their last layer tells
    than their first."""
    r2 = by_width(students, layer_r2, kind)
    return by_width(students, score, "ood.gain") < COMPOSED, r2[..., -1] - r2[..., 1]


@claim("S4b", **OF_LAYERS)
def failing_networks_lose_the_latent(students):
    """Networks that fail lose the latent with depth."""
    if len(by_width(students, right)):
        fails, lost = losses(students)
        yield below(0.0, mean_where(lost, fails), "R² of the latent, last - first layer")
        yield note("networks that fail", fails.sum(axis=(0, 1)))


@claim("S4b.others", **OF_LAYERS)
def failing_networks_lose_more_than_others(students):
    """Networks that fail lose more of the latent with depth than before training, and than networks
    that compose."""
    yield from failing_networks_lose_the_latent.function(students)
    if len(by_width(students, right)):
        fails, lost = losses(students)
        more = mean_where(lost - losses(students, "untrained.")[1], fails)
        yield below(0.0, more, "that - the untrained networks'")
        apart = mean_where(lost, fails) - mean_where(lost, ~fails)
        yield below(0.0, apart, "that - of networks that compose")


def recovered(run, name: str):
    """(S,): the share of tasks whose latent ('recovery'), or whose set of modules
    ('active_recovery'), is the nearest to the readout."""
    return run.outputs(f"decode.{name}")


def counted_and_bound(students):
    """(W, K, S): whether networks are right on half of the tasks, and the theorem's 1 - √δ."""
    share = by_width(students, right)
    return share >= HALF, 1 - np.sqrt(1 - share)


@claim("S4c", **OF_LAYERS)
def modules_are_recovered(students):
    """A network that is right on a share 1 - δ of tasks tells the modules of at least 1 - √δ of
    them."""
    counted, bound = counted_and_bound(students)
    if len(counted):
        beyond = mean_where(by_width(students, recovered, "active_recovery") - bound, counted)
        yield above(-SLACK, beyond, "recovery of modules - (1 - √δ), mean over networks")
        yield note("networks right on half of the tasks", counted.sum(axis=(0, 1)))
        yield note("right of these", mean_where(by_width(students, right), counted))
        for name in ("recovery", "active_recovery"):
            share = mean_where(by_width(students, recovered, name), counted)
            yield note(f"{name.replace('_', ' ')} of these", share)


@claim("S4c.latents", **OF_LAYERS)
def latents_are_recovered(students):
    """A network that is right on a share 1 - δ of tasks tells the latents of at least 1 - √δ of
    them, to a tenth."""
    counted, bound = counted_and_bound(students)
    if len(counted):
        beyond = by_width(students, recovered, "recovery") - bound
        least = np.where(counted, beyond, np.inf).min(axis=(0, 1))
        least = np.where(np.isinf(least), np.nan, least)
        yield above(-SLACK, least, "recovery - (1 - √δ), least of any network")
