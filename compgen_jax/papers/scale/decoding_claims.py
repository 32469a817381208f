"""S4: where networks compose, the weights of modules can be read linearly off their last layer.

R² is that of a linear readout of the latent, fitted on seen sets and scored on held-out ones: by
width W, number of sets seen K, seed S and layer L, of which the code is the first.
"""

import numpy as np

from compgen_jax.claims import above, below, claim, note
from compgen_jax.papers.scale import picks
from compgen_jax.papers.scale.composing import STUDENTS
from compgen_jax.papers.scale.quantities import COMPOSED, correlation, mean_where, score
from compgen_jax.runs.run import Run

CORRELATED, SLACK = 0.5, 0.02
HALF = 0.5  # share of tasks on which a network must be right for the theorem to ask much of it
OF_LAYERS = {"figure": "scale4", "cases": STUDENTS, "runs": {"students": "{students}"}}


def by_width(students, of_run, name: str):
    """(W, K, S, ...) `of_run(run, name)`; empty with fewer than three numbers of sets seen."""
    grid = picks.seen_by_width(students).values()
    return np.array([[of_run(run, name) for run in runs] for runs in grid if len(runs) >= 3])


@claim("S4a", **OF_LAYERS, after=True)
def last_layer_tells_the_latent(students):
    """The better a network composes, the better its last layer tells the latent, and the more it
    tells beyond the same network before training."""
    r2 = by_width(students, score, "ood.r2")
    if not len(r2):
        return
    last, untrained, shuffled = (
        by_width(students, Run.layers, f"decode.{kind}ood_r2")[..., -1]
        for kind in ("", "untrained.", "shuffled.")
    )
    yield above(CORRELATED, correlation(r2, last), "Spearman's correlation", against=0)
    name = "that of the gain over the untrained network"
    yield above(CORRELATED, correlation(r2, last - untrained), name, against=0)
    yield note("of untrained networks", correlation(r2, untrained))
    yield note("R² of the latent from the last layer", last.mean(axis=(0, 1)))
    yield note("that of shuffled latents", shuffled.mean(axis=(0, 1)))


@claim("S4b", **OF_LAYERS)
def failing_networks_lose_the_latent(students, beside_others=False):
    """Networks that fail lose the latent with depth."""
    gain = by_width(students, score, "ood.gain")
    if not len(gain):
        return
    fails = gain < COMPOSED
    trained, untrained = (
        by_width(students, Run.layers, f"decode.{kind}ood_r2") for kind in ("", "untrained.")
    )
    lost = trained[..., -1] - trained[..., 1]
    yield below(0.0, mean_where(lost, fails), "R² of the latent, last - first layer")
    yield note("networks that fail", fails.sum(axis=(0, 1)))
    if beside_others:
        more = mean_where(lost - (untrained[..., -1] - untrained[..., 1]), fails)
        yield below(0.0, more, "that - the untrained networks'")
        apart = mean_where(lost, fails) - mean_where(lost, ~fails)
        yield below(0.0, apart, "that - of networks that compose")


failing_networks_lose_more_than_others = failing_networks_lose_the_latent.variant(
    "S4b.others",
    "Networks that fail lose more of the latent with depth than before training, and than networks "
    "that compose.",
    after=True,
    beside_others=True,
)


@claim("S4c", **OF_LAYERS, after=True)
def modules_are_recovered(students, latents=False):
    """A network that is right on a share 1 - δ of tasks tells the modules of at least 1 - √δ of
    them."""
    right = by_width(students, score, "ood.task_accuracy")
    if not len(right):
        return
    counted, bound = right >= HALF, 1 - np.sqrt(1 - right)
    recovered = {
        name: by_width(students, Run.outputs, f"decode.{name}")
        for name in ("recovery", "active_recovery")
    }
    if latents:
        least = np.where(counted, recovered["recovery"] - bound, np.inf).min(axis=(0, 1))
        least = np.where(np.isinf(least), np.nan, least)
        yield above(-SLACK, least, "recovery - (1 - √δ), least of any network")
        return
    beyond = mean_where(recovered["active_recovery"] - bound, counted)
    yield above(-SLACK, beyond, "recovery of modules - (1 - √δ), mean over networks")
    yield note("networks right on half of the tasks", counted.sum(axis=(0, 1)))
    yield note("right of these", mean_where(right, counted))
    for name, share in recovered.items():
        yield note(f"{name.replace('_', ' ')} of these", mean_where(share, counted))


latents_are_recovered = modules_are_recovered.variant(
    "S4c.latents",
    "A network that is right on a share 1 - δ of tasks tells the latents of at least 1 - √δ of "
    "them, to a tenth.",
    latents=True,
)
