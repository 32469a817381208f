"""The command line of activations that someone brings, in this process."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import compgen_jax as cg
from compgen_jax.metrics import decodability
from compgen_jax.runs import directory
from launch import probe
from tests.command import blocks, call, drawn_by, page, refused, snippets


def arrays(**changes) -> dict:
    """Rows of 30 groups of two, 10 of them held out; a change of None leaves an array out."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 2)
    factors = np.column_stack([rng.normal(size=30), rng.random(30) < 0.5]).astype(float)[groups]
    layer = factors @ rng.normal(size=(2, 12))
    found = {
        "layers.early": (layer + 4 * rng.normal(size=layer.shape)).astype(np.float32),
        "layers.late": (layer + 0.1 * rng.normal(size=layer.shape)).reshape(60, 3, 4),
        "factors": factors,
        "held_out": groups < 10,
        "groups": groups,
        "success": rng.random(60),
        "names": np.array(["size", "red"]),
    }
    return {name: value for name, value in (found | changes).items() if value is not None}


@pytest.fixture
def run(tmp_path):
    """run(arrays, flag, ...): the command on a file of them."""
    path = tmp_path / "my_activations.npz"

    def probed(given, *flags):
        np.savez(path, **given)
        call(probe, f"--activations={path}", *flags)

    return probed


def test_a_table_and_a_report(run, tmp_path, capsys):
    given = arrays()
    run(given)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("early  ") and lines[3].startswith("late * ")

    found = json.loads((tmp_path / "probe.json").read_text())
    assert found["rows"] == {"id": 40, "ood": 20} and found["groups"] == {"id": 20, "ood": 10}
    assert list(found["layers"]) == ["early", "late"] and found["chosen"] == "late"
    layers = {name: given[f"layers.{name}"] for name in ("early", "late")}
    rows = given["factors"], given["held_out"], given["groups"]
    decoded = decodability.decode(layers, *rows)
    for index, layer in enumerate(found["layers"].values()):
        for f, (name, kind) in enumerate({"size": "r2", "red": "auc"}.items()):
            parts = {part: decodability.means(decoded, part, [f])[index] for part in ("id", "ood")}
            controls = {f"shuffled.{part}": {"value": decoded.scores[f"shuffled.{part}"][index, f],
                                             "ci95": [None, None]} for part in parts}  # fmt: skip
            assert layer["factors"][name] == {"measure": kind} | parts | controls
            assert layer["mean"][kind] == parts | controls  # of one factor
        quality = decoded.quality[index]
        success = decodability.success_correlation(quality, given["success"], *rows[1:])
        assert layer["success"] == success
        assert lines[2 + index].split()[-1] == f"{success['value']:.3g}"
    assert found["success"] == layer["success"]


def test_a_stack_of_layers_without_what_is_optional(run, capsys, tmp_path):
    """Rows are then their own groups; which factors are labels may be said."""
    given = arrays(groups=None, success=None, names=None)
    stack = np.stack([given.pop(name).reshape(60, 12) for name in ("layers.early", "layers.late")])
    given["factors"][:, 0] = np.arange(60) % 3
    run(given | {"layers": stack, "classes": [1, 1], "held_out": given["held_out"].astype(int)},
        f"--workdir={tmp_path / 'new' / 'place'}")  # fmt: skip
    found = json.loads((tmp_path / "new" / "place" / "probe.json").read_text())
    assert list(found["layers"]) == ["layer_00", "layer_01"] and "success" not in found
    factors = found["layers"]["layer_00"]["factors"]
    assert [factors[name]["measure"] for name in ("factor_0", "factor_1")] == ["auc", "auc"]
    assert found["groups"] == found["rows"] == {"id": 40, "ood": 20}
    assert "Spearman" not in capsys.readouterr().out


def test_python_probes_arrays_as_the_command_does_a_file(run, capsys, tmp_path):
    given = arrays()
    run(given)
    layers = {name: given.pop(f"layers.{name}") for name in ("early", "late")}
    report = cg.probe(layers, **given)
    assert capsys.readouterr().out == f"{report}\nwrote {tmp_path / 'probe.json'}\n"
    written = json.loads((tmp_path / "probe.json").read_text())
    assert written == directory.clean(vars(report))
    table = report.to_frame().set_index(["layer", "factor", "region"])
    assert len(table) == 2 * 2 * 4 and set(table.loc["late", "red", :].measure) == {"auc"}
    number = written["layers"]["late"]["factors"]["size"]["ood"]
    row = table.loc["late", "size", "ood"]
    assert [row.value, row.low, row.high] == [number["value"], *number["ci95"]]


def test_python_takes_a_data_frame_whose_text_is_labels():
    """As their numbers with `classes`; one layer needs no name."""
    given = arrays()
    late, rows = given["layers.late"], (given["held_out"], pd.Series(given["groups"]).astype(str))
    shape = np.array(["square", "heart", "disc"])[given["groups"] % 3]
    frame = pd.DataFrame(given["factors"], columns=["size", "red"]).assign(shape=shape)
    report = cg.probe(late, frame, *rows)
    numbers = np.column_stack([given["factors"], np.unique(shape, return_inverse=True)[1]])
    named = {"names": [*frame], "classes": [False, True, True]}
    expected = cg.probe({"layer": late}, numbers, *rows, **named)
    assert repr(report) == repr(expected) == repr(cg.probe(late, dict(frame), *rows))
    bad = {
        "factors: shape has missing values": (late, frame.replace("heart", None)),
        "factors: must have at least one column": (late, {}),
        "activations: must have at least one layer": ({}, frame),
    }
    for message, arguments in bad.items():
        with refused(message, kind=cg.ConfigError):
            cg.probe(*arguments, rows[0])


BAD = [
    ({"factors": None, "held_out": None}, "lacks factors, held_out; it holds layers.early, "),
    ({"sucess": np.ones(60)}, "sucess: no such array; allowed: layers.NAME, factors, held_out"),
    ({"factors": np.ones(60)}, "factors (60,): must be (B, F)"),
    ({"layers.late": np.ones((59, 3))}, "layer late (59, 3) for 60 rows"),
    ({"layers.late": np.full((60, 2), np.nan)}, "layer late: NaN or infinite values at points [0"),
    ({"layers.late": np.full((60, 2), 1e308)}, "late: values reach 1e+308: their squares would"),
    ({"held_out": np.arange(60)}, "held_out: must be booleans, or 0 and 1"),
    ({"held_out": np.arange(60) >= 18}, "9 ID groups: 5 folds need at least 10"),
    ({"held_out": np.arange(60) < 21}, "a group is ID at row 21 and held out at row 20"),
    ({"success": np.full(60, 1.5)}, "success: must be from 0 to 1"),
    ({"names": np.array(["size"])}, "names (1,): must be (2,), another one for each factor"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_bad_arrays_are_one_line_and_leave_an_earlier_report_alone(run, tmp_path, changes, message):
    (tmp_path / "probe.json").write_text("earlier")
    with refused("--activations=", "my_activations.npz: ", message):
        run(arrays(**changes))
    assert (tmp_path / "probe.json").read_text() == "earlier"
    assert {path.name for path in tmp_path.iterdir()} == {"probe.json", "my_activations.npz"}


def test_a_missing_or_damaged_file_is_one_line(tmp_path):
    path = tmp_path / "my_activations.npz"
    for message in ("there is no such file", "is no .npz of numbers or text, or is damaged"):
        with refused(message):
            call(probe, f"--activations={path}")
        path.write_text("activations")


def test_the_example_of_the_page(monkeypatch, tmp_path, capsys):
    example, picture, _ = snippets("probe")
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    call(probe, "--activations=my_activations.npz")
    (printed,) = blocks(page("probe"), "text")
    assert printed in capsys.readouterr().out
    found = json.loads((tmp_path / "probe.json").read_text())
    assert list(found["layers"]) == ["hidden", "output"] and found["success"]["value"] > 0.4
    drawn_by(picture)
    assert Path("probe.png").exists()
