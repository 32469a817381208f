"""Figures and tables of real factors, drawn from known answers."""

from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.papers.real_factors import calibrations
from compgen_jax.papers.real_factors.runs import MONTERO, runs
from figures.figure import FIGURES
from figures.real_factors import figures, tables


@pytest.fixture(scope="module")
def decoders():
    """A decoder that draws what is asked, and one that draws the nearest ID image."""
    return calibrations.known_runs(calibrations.sprites("range"), ("truth", "nearest"))


def number(value):
    return {"value": value, "ci95": [value, value]}


def test_hold_outs_and_the_encoder(drawn, decoders):
    found = {name: decoders["truth"] for name in figures.HELD_OUT}
    found |= {"sprites_range": decoders["nearest"]}
    found |= {"sprites_encoder": calibrations.encoders()["no posX"]}
    drawing = drawn(FIGURES["sprites"].draw, found)
    titles = {axis.get_title("left") for axis in drawing.axes}
    assert "A range is rendered in 0%" in titles
    pictures = [axis for axis in drawing.axes if axis.images]
    assert len(pictures) == 2 * 4 * figures.EXAMPLES
    assert all(axis.images[0].origin == "upper" for axis in pictures)
    drawn(FIGURES["sprites"].draw, dict(list(found.items())[:2]))  # as at the paper's scale


def test_remedies(drawn, decoders):
    found = {name: decoders["nearest"] for name in figures.REMEDIES}
    found |= {"sprites_slice": decoders["truth"]}
    drawing = drawn(FIGURES["sprites_remedies"].draw, found)
    assert drawing.axes[0].get_title("left") == "Most is gained by slices: +1.00"


def test_pairs(drawn):
    known = calibrations.known_pairs()
    for name, said in (("follows", "1 [1, 1]"), ("all alike", "rendered alike")):
        found = {run.config.name: run for run in known[name]}
        drawing = drawn(FIGURES["sprites_pairs"].draw, found)
        assert said in drawing.axes[0].get_title("left")


def of_montero():
    seeds = {seed: {"id.excess_nll": 50.0 + seed, "ood.excess_nll": 140.0} for seed in range(4)}
    mean = {"id.excess_nll": number(50.0), "ood.excess_nll": number(140.0)}
    run = SimpleNamespace(summary={"seeds": seeds, "mean": mean})
    return {f"sprites_{name}": run for name in MONTERO}


def test_montero_has_ours_beside_theirs(drawn):
    drawing = drawn(FIGURES["sprites_montero"].draw, of_montero())
    (axis,) = drawing.axes
    assert [tick.get_text() for tick in axis.get_yticklabels()] == [s for s, _ in MONTERO.values()]
    lines = tables.montero(of_montero())
    assert [line for line in lines if "shape2tx" in line] == [
        "| shape2tx | 50 [50, 50] | 140 [140, 140] | 46.8 | 139 |"
    ]
    assert tables.montero({}) == []


def test_the_table_has_the_accuracies_of_an_encoder():
    config = runs("quick")["sprites_encoder"]
    names = [factor.name for factor in config.task.scene().factors]
    scores = [*(f"{name}_accuracy" for name in names), "exact_accuracy"]
    mean = {f"{region}.{score}": number(at) for region, at in (("id", 1.0), ("ood", 0.25))
            for score in scores}  # fmt: skip
    lines = tables.table(
        {"sprites_encoder": SimpleNamespace(config=config, summary={"mean": mean})}
    )
    assert lines[-1] == "| sprites_encoder_quick | all | 1 [1, 1] | 0.25 [0.25, 0.25] |"
    assert len(lines) == 3 + len(names) + 1
    assert np.all([name in line for name, line in zip(names, lines[3:], strict=False)])
