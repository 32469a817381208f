"""The command line of activations that someone brings, in this process."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from compgen_jax.config import ConfigError
from compgen_jax.metrics import decodability
from launch import probe
from tests.launch.test_command_lines import call

ROOT = Path(__file__).parent.parent.parent
OUTPUTS = ("probe.json", "probe.png", "probe.pdf")


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


class Flag:
    """The holder of a flag, as absl gives it."""

    def __init__(self, name, value):
        self.name, self.value = name, value


@pytest.fixture
def command(monkeypatch, tmp_path):
    """command(given): runs it on a file, or on these arrays; its workdir."""

    def run(given, workdir=None):
        path = given
        if isinstance(given, dict):
            path = tmp_path / "my_activations.npz"
            np.savez(path, **given)
        monkeypatch.setattr(probe, "ACTIVATIONS", Flag("activations", path and str(path)))
        monkeypatch.setattr(probe, "WORKDIR", Flag("workdir", workdir and str(workdir)))
        probe.main()
        return workdir or tmp_path

    return run


def test_a_table_a_report_and_a_figure(command, capsys):
    given = arrays()
    workdir = command(given)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["mean", "of", "factors", "R2", "ID", "OOD", "shuffled", "AUC",
                                "ID", "OOD", "shuffled", "success"]  # fmt: skip
    assert lines[1].startswith("early  ") and lines[2].startswith("late * ")
    assert lines[4].startswith("size") and "R2" in lines[4] and lines[5].startswith("red")
    assert "Spearman" in lines[6] and lines[7].startswith("wrote ")

    found = json.loads((workdir / "probe.json").read_text())
    assert found["rows"] == {"id": 40, "ood": 20} and found["groups"] == {"id": 20, "ood": 10}
    assert list(found["layers"]) == ["early", "late"] and found["chosen"] == "late"
    layers = {name: given[f"layers.{name}"] for name in ("early", "late")}
    rows = given["factors"], given["held_out"], given["groups"]
    wanted = decodability.decode(layers, *rows)
    for index, layer in enumerate(found["layers"].values()):
        assert [f["measure"] for f in layer["factors"].values()] == ["r2", "auc"]
        for f, factor in enumerate(layer["factors"].values()):
            for part in ("id", "ood", "shuffled.id", "shuffled.ood"):
                assert factor[part]["value"] == pytest.approx(wanted.scores[part][index, f])
        assert layer["mean"]["r2"]["ood"] == layer["factors"]["size"]["ood"]
    for index, layer in enumerate(found["layers"].values()):
        success = decodability.success_correlation(wanted.quality[index], given["success"],
                                                   *rows[1:])  # fmt: skip
        assert layer["success"]["value"] == pytest.approx(success["value"])
        assert lines[1 + index].split()[-1] == f"{success['value']:.3f}"
    assert found["success"] == layer["success"]

    assert (workdir / "probe.png").read_bytes().startswith(b"\x89PNG")
    assert (workdir / "probe.pdf").read_bytes().startswith(b"%PDF")


def test_a_stack_of_layers_without_what_is_optional(command, capsys, tmp_path):
    """Rows are then their own groups; which factors are labels may be said."""
    given = arrays(groups=None, success=None, names=None)
    stack = np.stack([given.pop(name).reshape(60, 12) for name in ("layers.early", "layers.late")])
    given["factors"][:, 0] = np.arange(60) % 3
    given |= {"layers": stack, "classes": [1, 1], "held_out": given["held_out"].astype(int)}
    workdir = command(given, tmp_path / "new" / "place")
    found = json.loads((workdir / "probe.json").read_text())
    assert list(found["layers"]) == ["layer_00", "layer_01"] and "success" not in found
    factors = found["layers"]["layer_00"]["factors"]
    assert [factors[name]["measure"] for name in ("factor_0", "factor_1")] == ["auc", "auc"]
    assert found["groups"] == found["rows"] == {"id": 40, "ood": 20}
    assert "Spearman" not in capsys.readouterr().out
    assert all((workdir / name).exists() for name in OUTPUTS)


def test_what_is_not_known_is_a_dash(command, capsys):
    """One group is held out, in which nothing varies, and everything is a success."""
    given = arrays(groups=np.where(np.arange(60) < 20, 99, np.arange(60)), success=np.ones(60))
    given["factors"][:20] = 1
    given["names"] = np.array(["$x_{", "a name that is far too long for the side of a figure"])
    workdir = command(given)
    output = capsys.readouterr().out
    assert output.count("OOD –") == 2 and "Spearman –" in output
    found = json.loads((workdir / "probe.json").read_text())
    assert found["success"] == {"value": None, "ci95": [None, None]}
    assert all((workdir / name).exists() for name in OUTPUTS)


def bad(**changes):
    return lambda: arrays(**changes)


def with_value(name, index, value):
    def change():
        given = arrays()
        given[name] = given[name].astype(np.float64)
        given[name][index] = value
        return given

    return change


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (bad(factors=None, held_out=None), "lacks factors, held_out; it holds layers.early, "),
        (bad(**{"layers.early": None, "layers.late": None}), "lacks layers.NAME; it holds factors"),
        (bad(sucess=np.ones(60)), "sucess: no such array; allowed: layers.NAME, factors, held_out"),
        (bad(layers=np.ones((2, 60, 3))), "holds both layers and layers.NAME"),
        (bad(names=np.array(["size", None])), "holds an array of Python objects"),
        (bad(factors=np.ones(60)), "factors (60,): must be (B, F)"),
        (bad(**{"layers.late": np.ones((59, 3))}), "layers.late has 59 rows, factors has 60"),
        (bad(**{"layers.late": np.ones(60)}), "layers.late (60,): must be (B, ...)"),
        (bad(**{"layers.late": np.array(["a"] * 60)}), "layers.late: holds <U1, not real numbers"),
        (bad(held_out=np.arange(59) < 20), "held_out (59,): must be (60,), one for each of the 60"),
        (bad(held_out=np.arange(60)), "held_out: must be booleans, or 0 and 1"),
        (bad(held_out=np.zeros(60, bool)), "held_out: no row is held out"),
        (bad(held_out=np.arange(60) >= 18), "9 groups that are not held out (a row alone is one)"),
        (bad(held_out=np.arange(60) < 21), "group [10] has held-out rows and others"),
        (bad(groups=np.arange(61)), "groups (61,): must be (60,)"),
        (bad(success=np.ones(59)), "success (59,): must be (60,)"),
        (bad(success=np.full(60, 1.5)), "success: must be from 0 to 1"),
        (bad(names=np.array(["size"])), "names (1,): must be (2,), one for each of the 2 factors"),
        (bad(names=np.array(["a", "a"])), "names: two factors have the same name"),
        (bad(names=np.arange(2)), "names: must be text"),
        (bad(classes=np.array([1, 0, 1])), "classes (3,): must be (2,)"),
        (bad(factors=np.ones((60, 2))), "factors: every one is constant over the rows that are"),
        (with_value("layers.late", (7, 1, 2), np.nan), "layers.late: NaN or infinite in row 7"),
        (with_value("factors", (9, 1), np.inf), "factors: NaN or infinite in row 9"),
        (with_value("success", 3, np.nan), "success: NaN or infinite in row 3"),
    ],
)
def test_bad_arrays_are_one_line_and_leave_earlier_outputs_alone(command, tmp_path, given, message):
    for name in OUTPUTS:
        (tmp_path / name).write_text("earlier")
    with pytest.raises(ConfigError) as error:
        command(given())
    text = str(error.value)
    assert message in text and "\n" not in text and "my_activations.npz" in text
    assert all((tmp_path / name).read_text() == "earlier" for name in OUTPUTS)
    assert {path.name for path in tmp_path.iterdir()} == {*OUTPUTS, "my_activations.npz"}


def test_bad_files_and_places_are_one_line(command, tmp_path):
    np.save(tmp_path / "single.npy", np.ones(3))
    np.savez(tmp_path / "cut.npz", **arrays())
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "flipped.npz").write_bytes(whole.replace(whole[300:310], b"0123456789"))
    (tmp_path / "text.npz").write_text("activations")
    (tmp_path / "empty.npz").write_text("")
    for path, message in (
        (None, "--activations is missing"),
        ("nowhere.npz", "there is no such file"),
        (".", "there is no such file"),
        ("single.npy", "is a single array; save it with numpy.savez"),
        ("cut.npz", "is no .npz or is damaged"),
        ("flipped.npz", "is no .npz or is damaged"),
        ("text.npz", "is no .npz or is damaged"),
        ("empty.npz", "is no .npz or is damaged"),
    ):
        with pytest.raises(ConfigError) as error:
            command(path and tmp_path / path)
        assert message in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(ConfigError, match="text.npz: is a file, not a directory"):
        command(arrays(), tmp_path / "text.npz")


def test_the_example_of_the_page(command, monkeypatch, tmp_path, capsys):
    page = (ROOT / "docs" / "how_to" / "probe.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    found = json.loads((command(tmp_path / "my_activations.npz") / "probe.json").read_text())
    assert list(found["layers"]) == ["hidden", "output"] and found["success"]["value"] > 0.4
    for name in (*probe.NEEDED, *probe.OPTIONAL):
        assert f"| `{name}` |" in page


def test_its_flags_as_a_user_types_them(tmp_path):
    np.savez(tmp_path / "my_activations.npz", **arrays(held_out=None))
    with pytest.raises(ConfigError, match="^--activations=.*lacks held_out"):
        call(probe, f"--activations={tmp_path / 'my_activations.npz'}")
