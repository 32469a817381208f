"""The league's table, of runs whose shares are known."""

from types import SimpleNamespace

from compgen_jax.studies.benchmark import benchmark_presets as runs
from figures.benchmark import benchmark_tables as tables

QUICK = {tuple(runs.entry_of(config)): config for config in runs.runs("quick").values()}


def run(model, task, holdout, ood, seen=1.0, half=0.1, interpolated=0.0, **wide):
    """A finished run with these shares and intervals of half this width."""
    config = next(c for (m, _, *place), c in QUICK.items() if (m, *place) == (model, task, holdout))
    number = lambda value: {"value": value, "ci95": [value - half, value + half]}
    accuracy = config.task.make().accuracy
    score = accuracy if task == "rotation" else "rendered"
    mean = {f"ood.{score}": number(ood), f"id.{accuracy}": number(seen),
            f"ood.interpolator_{score}": number(interpolated)}  # fmt: skip
    mean |= {f"ood.{name}_{score}": number(value) for name, value in wide.items()}
    return SimpleNamespace(config=config, summary={"mean": mean})


def test_the_table_has_who_learnt_and_who_composes():
    some = [run("conv", "bumps", "block", 0.9, seen=0.94), run("MLP", "rotation", "random", 0.9),
            run("MLP", "sizes", "block", 1.0, half=0)]  # fmt: skip
    cells, columns = tables.cells(some), tables.columns(some)
    assert list(columns) == [("bumps", "block"), ("sizes", "block"), ("rotation", "random")]
    bumps = cells["conv"]["bumps", "block"]
    assert not bumps.learnt and not bumps.composes
    digits = cells["MLP"]["rotation", "random"]
    # A mixture of the images beside a single missing angle is right as often.
    assert digits.learnt and digits.trivial == columns["rotation", "random"].trivial["edge_mixture"]
    assert digits.trivial > 0.8 and not digits.composes
    sizes = cells["MLP"]["sizes", "block"]
    assert sizes.composes and sizes.ood["ci95"] == [1 - 1.5 / 300, 1.0]
    assert columns["sizes", "block"].trivial["mean_size"] < 0.4
    for others in ({"interpolated": 0.999}, {"interpolated": 0.5, "wide_network": 0.999}):
        alike = run("MLP", "sizes", "block", 1.0, half=0, **others)
        cell = tables.cells([alike])["MLP"]["sizes", "block"]
        assert cell.trivial == 0.999 and not cell.composes
        assert {name: getattr(cell, name) for name in others} == others
    width, pixels, code = 256, 256, 36 + 5
    expected = (code + 1) * width + 2 * (width + 1) * width + (width + 1) * pixels
    assert tables.parameters(some[1:2]) == {"MLP": expected}
