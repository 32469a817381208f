"""The networks and codes that a page is given, without a browser."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.models.conv import Conv
from compgen_jax.models.mlp import Additive
from compgen_jax.runs.run import Run
from compgen_jax.tasks.bump import Bump, SizeConfig
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.modules import Modules
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.tasks.task import Example, Factor, Task, over_cells
from figures.explorer import live
from figures.explorer.arrays import encode
from tests.figures import live_networks
from tests.figures.live_networks import SUPPORT, decode

WRITTEN = {"int8": "int8", "uint16": "uint16", "bool": "uint8", "float64": "float32",
           ">f4": "float32"}  # fmt: skip


@pytest.mark.parametrize("dtype", WRITTEN)
def test_an_array_survives_the_page(dtype):
    array = (np.arange(24).reshape(2, 3, 4)[:, ::-1] * 5).astype(dtype)
    entry = json.loads(json.dumps(encode(array)))
    np.testing.assert_array_equal(decode(entry), array)
    assert entry["dtype"] == WRITTEN[dtype]


# --- networks --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", live_networks.CASES)
def test_a_live_network_has_the_sizes_and_layers_of_its_run(name):
    """That it draws what JAX draws is asked in a browser, of the script that a page runs."""
    run = live_networks.network(name)
    operations = live.live_network(run, seed=7)
    predictions, layers = live_networks.in_jax(run, 7, live_networks.codes(run))
    named = [operation["layer"] for operation in operations if "layer" in operation]
    assert ["layer_00", *named] == list(layers)
    shapes = [operation["shape"] for operation in operations if operation["op"] == "reshape"]
    assert tuple(shapes[-1]) == predictions.shape[1:]


def test_a_prediction_is_affine_or_the_network_has_no_live_form(monkeypatch):
    run = live_networks.network("mlp")

    def live_form(prediction=run.task.prediction, model=run.config.model):
        config = dataclasses.replace(run.config, model=model)
        task = run.task._replace(prediction=prediction)
        return live.live_network(
            Run.known(run.seeds, config=config, task=task, params=run.params), 0
        )

    last = live_form(lambda output: 3 - 2 * output)[-1]
    assert last == {"op": "affine", "scale": pytest.approx(-2), "shift": pytest.approx(3)}
    for prediction in (jax.nn.softmax, jnp.square, jnp.sum, lambda output: output.at[0].add(1)):
        assert live_form(prediction) is None
    for model in (Additive(), Conv(sines=True), Conv(activation="prelu")):
        assert live_form(model=model) is None
    parameters = sum(leaf.size for leaf in jax.tree.leaves(run.params)) // 2
    for most in (parameters, parameters - 1):
        monkeypatch.setattr(live, "MOST_PARAMETERS", most)
        assert (live_form() is None) == (most < parameters)


# --- codes -----------------------------------------------------------------------------------


SEPARABLE = {
    "size": Bump(grid=8, size=SizeConfig(values=4, low=1, high=2), support=SUPPORT),
    "off grid": Bump(grid=8, code=CodeConfig(name="ramp", missing="off_grid"), support=SUPPORT),
    "off canvas": Bump(grid=8, code=CodeConfig(missing="off_canvas"), support=SUPPORT),
    "one-hot": Bump(grid=8, code=CodeConfig(name="onehot"), support=SUPPORT),
    "objects": Rotation(side=12, angles=8, objects=(3, 4, 7), gap=GapConfig(of=(4,))),
}


def half_steps(task) -> list:
    """The values of every factor, and of a real one those half-way to the next."""
    return [
        np.sort([*f.values, *(f.values[1:] + f.values[:-1]) / 2]) if f.real else f.values
        for f in task.factors
    ]


def code_from(table, indices, absent=()):
    """As a page builds it: value number `indices[f]` of every factor, or none."""
    code = decode(table["code"]).copy()
    for number, (factor, index) in enumerate(zip(table["factors"], indices, strict=True)):
        rows, nothing = decode(factor["rows"]), decode(factor["absent"])
        code[factor["entries"]] = nothing if number in absent else rows[index]
    return code


@pytest.mark.parametrize("name", SEPARABLE)
def test_tables_make_the_code_of_any_point(name):
    task = SEPARABLE[name].make()
    values = half_steps(task)
    table = json.loads(json.dumps(live.code_table(task, values)))
    code_at = jax.jit(lambda point: task.example(jax.random.key(5), point).input)
    assert [factor["name"] for factor in table["factors"]] == [f.name for f in task.factors]
    for draw in np.random.default_rng(0).uniform(size=(20, len(values))):
        indices = [int(u * len(each)) for u, each in zip(draw, values, strict=True)]
        point = np.float32([each[index] for each, index in zip(values, indices, strict=True)])
        np.testing.assert_allclose(code_from(table, indices), code_at(point), atol=1e-6)
        if name != "objects":  # whose missing values have no code
            point[1] = np.nan
            np.testing.assert_allclose(code_from(table, indices, {1}), code_at(point), atol=1e-6)
    if name == "objects":
        assert not any(decode(factor["absent"]).any() for factor in table["factors"])


def own_task(example) -> Task:
    factors = (Factor("a", np.arange(3.0)), Factor("b", np.arange(4.0)))
    return over_cells(factors, lambda points: points[..., 0] > 5, example)


def test_entries_are_found_where_a_task_names_no_parts():
    """Also those that no factor moves."""

    def example(key, point):
        return Example(jnp.stack([point[1] ** 2, 7.0 + 0 * point[0], point[0], -point[1]]), point)

    task = own_task(example)
    table = live.code_table(task, half_steps(task))
    assert [factor["entries"] for factor in table["factors"]] == [[2], [0, 3]]
    np.testing.assert_allclose(code_from(table, [1, 5]), [6.25, 7, 0.5, -2.5], atol=1e-6)


@pytest.mark.parametrize(
    "task",
    [
        Modules(modules=6, most=2, inputs=5, hidden=7, outputs=3, samples=4, tests=40).make(),
        own_task(lambda key, point: Example(point[:1] * point, point)),
        own_task(lambda key, point: Example(point + jax.random.normal(key, (2,)), point)),
        own_task(lambda key, point: Example(point[:, None], point)),
    ],
    ids=["modules", "a product", "drawn", "a matrix"],
)
def test_codes_without_a_table(task):
    assert live.code_table(task, half_steps(task)) is None
