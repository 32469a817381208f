"""Finished runs in the order in which a figure shows them, and the layers of one network."""

import jax
import numpy as np

from compgen_jax.models import model
from compgen_jax.tasks import task as tasks
from compgen_jax.training import task_group

BOTH = ("bump", "ramp")  # codes of the networks that the paper looks into


def by_code(runs: dict) -> dict:
    """The runs by code, that of the bump first."""
    codes = {run.config.task.code.name: run for run in runs.values()}
    return {code: codes[code] for code in (*BOTH, *codes) if code in codes}


def by_depth(runs: dict, name: str) -> list:
    """The run of this name and those of its other depths, by rising depth."""
    same = [run for each, run in runs.items() if each == name or each.startswith(f"{name}_depth")]
    return sorted(same, key=depth_of)


def depth_of(run) -> int:
    return run.config.model.depth


def by_bumps(runs: dict) -> list:
    """The runs that saw stripes, by how many bumps they saw beside them."""
    return sorted(runs.values(), key=bumps_of)


def bumps_of(run) -> int:
    return run.config.task.support.samples


def first_seed_layers(run, cells) -> dict:
    """The first seed's activations (B, ...) of every layer, by name, at some of the cells."""
    task, key = run.task, jax.random.key(0)  # nothing in these examples is random
    inputs = tasks.examples_at(task, key, tasks.cells(task.factors)[cells]).input
    return layers_of(run, jax.tree.map(lambda leaf: leaf[0], run.params), inputs)


def layers_of(run, params, inputs) -> dict:
    """One network's activations (B, ...) of every layer, by name, for inputs (B, ...)."""
    module = run.config.model.make(task_group.shapes_of(run.task))
    activations = model.apply(module, params, inputs)[1]
    return {name: activations[name] for name in sorted(activations)}


def in_order(names: dict, runs: dict) -> dict:
    """{name: run} of those that there are, in the order of the names."""
    return {name: runs[name] for name in names if name in runs}


def flat(images_BxHxW) -> np.ndarray:
    return images_BxHxW.reshape(len(images_BxHxW), -1)
