"""Finished runs in the order in which a figure shows them, and the layers of one network."""

from operator import itemgetter

import jax
import numpy as np

from compgen_jax.claims import median_over_checkpoints
from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering.layer_claims import depth_of
from compgen_jax.runs import measure, results
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop

from .. import plotting

CODES = ("bump", "ramp")  # of the networks that the paper looks into
# by scale; at the paper's size the ramp's trains as long as the paper's
OF_FIGURE_1 = {"quick": ("bump_cnn", "ramp_cnn"), "paper": ("bump_cnn", "ramp_cnn_50_epochs")}
OF_FIGURE_8 = OF_FIGURE_1 | {"paper": ("bump_cnn", "ramp_cnn_15_epochs")}


def by_code(runs: dict) -> dict:
    """The runs by code, that of the bump first."""
    codes = {run.config.task.code.name: run for run in runs.values()}
    return {code: codes[code] for code in (*CODES, *codes) if code in codes}


def by_depth(runs: dict) -> dict:
    """The runs of each of `CODES`, by rising depth."""
    rising = sorted(runs.values(), key=depth_of)
    return {code: [run for run in rising if run.config.task.code.name == code] for code in CODES}


def median_seed(run) -> int:
    """The index of the network whose OOD error is the median; it is the one that figures show."""
    return plotting.median_seed(run.cells, run.cells.error)


def median_images(run) -> np.ndarray:
    """(B, H, W): what the median seed draws at all cells."""
    return run.cells.predictions[median_seed(run)]


def median_maps(run) -> dict:
    """`run.maps` of the median seed."""
    index = median_seed(run)
    if not index:
        return run.maps
    grid = measure.recorder(run, "grid")
    network = jax.tree.map(itemgetter(index), run.params)
    key, seed = results.seed_keys(run.seeds)[index], run.seeds[index]
    return grid.maps(grid.record(network, key, seed))


def median_layers(run, cells) -> dict:
    """The median seed's activations (B, ...) of every layer, by name, at some of the cells."""
    key = jax.random.key(0)  # nothing in these examples is random
    inputs = tasks.examples_at(run.task, key, tasks.cells(run.task.factors)[cells]).input
    network = jax.tree.map(itemgetter(median_seed(run)), run.params)
    module = run.config.model.make(loop.shapes_of(run.task))
    activations = run.config.model.apply(module, network, inputs)[1]
    return {name: activations[name] for name in sorted(activations)}


def flat(images_BxHxW) -> np.ndarray:
    return images_BxHxW.reshape(len(images_BxHxW), -1)


def shares_by_distance(cells):
    """(K,) distances to the nearest ID cell in pixels, and the share rendered there, (S, K); of
    late checkpoints the median."""
    levels, shares_xK = evaluation.profile_by_distance(cells.scores["rendered"], cells)
    medians = [median_over_checkpoints(shares_x) for shares_x in np.moveaxis(shares_xK, -1, 0)]
    return levels, np.stack(medians, axis=-1)
