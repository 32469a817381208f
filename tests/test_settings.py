"""Families by name and in users' own files: loaded once, found again, and errors of one line."""

import json
from dataclasses import dataclass, field

import pytest

from compgen_jax import config as configs
from compgen_jax import settings
from compgen_jax.config import Config
from compgen_jax.models.conv import Conv
from compgen_jax.models.mlp import MLP
from compgen_jax.tasks.bump import Bump
from tests.command import refused


@pytest.mark.parametrize("group", settings.FAMILIES)
def test_families_have_their_names(group):
    for name in settings.FAMILIES[group]:
        kind = settings.family(group, name)
        assert settings.family_name(kind) == kind().name == name
        assert settings.to_dict(kind())["name"] == name
    assert settings.family("task", "bump") is Bump and settings.family("model", "conv") is Conv


def test_a_users_file_is_loaded_once_and_survives_json(own_task):
    path, name = own_task
    kind = settings.family("task", name)
    assert kind is settings.family("task", name)  # so that settings of two readings are equal
    assert kind().name == name and kind(objects=4) == settings.family("task", name)(objects=4)
    config = configs.changed(Config(model=MLP()), {"task.name": name, "task.objects": 4})
    assert config.task == kind(objects=4)
    again = configs.from_dict(json.loads(json.dumps(configs.to_dict(config))))
    assert again == config and type(again.task) is kind
    assert settings.load_file(path) is settings.load_file(str(path))


def test_a_file_that_moved_is_found_in_the_current_directory(own_task, tmp_path, monkeypatch):
    path, name = own_task
    values = configs.to_dict(configs.changed(Config(model=MLP()), {"task.name": name}))
    moved = tmp_path / "new home"
    moved.mkdir()
    path.rename(moved / path.name)
    with refused(f"there is no file {path}"):
        configs.from_dict(values)
    monkeypatch.chdir(moved)
    config = configs.from_dict(values)
    assert config.task.name == f"{moved / path.name}:Turned"


def test_a_file_imports_what_lies_beside_it(own_task):
    path, name = own_task
    (path.parent / "beside_turned.py").write_text("OBJECTS = 7\n")
    path.write_text(
        path.read_text()
        .replace("number(5,", "number(OBJECTS,")
        .replace("import numpy as np\n", "import numpy as np\nfrom beside_turned import OBJECTS\n")
    )
    assert settings.family("task", name)().objects == 7


BAD = {
    "syntax": ("import numpy\nclass Turned(\n", ", line 2: SyntaxError: '(' was never closed"),
    "import": ("import numpy\nimport nowhere\n", r", line 2: ModuleNotFoundError: No module named"),
    "exception": ("def f():\n    return 1 / 0\n\n\nf()\n", ", line 2: ZeroDivisionError: division"),
    "lines": ("raise ValueError('one\\ntwo')\n", ", line 1: ValueError: one"),
    "missing": ("x = 1\n", "has no dataclass Turned with a method make"),
    "plain class": ("class Turned:\n    def make(self): pass\n", "has no dataclass Turned"),
    "no make": (
        "from dataclasses import dataclass\n\n@dataclass\nclass Turned:\n    x: int = 1",
        "has no dataclass Turned with a method make",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_file_at_fault_is_one_line_with_its_place(tmp_path, text, message):
    path = tmp_path / "turned.py"
    path.write_text(text)
    with refused(str(path), message):
        configs.changed(Config(model=MLP()), {"task.name": f"{path}:Turned"})


def test_a_file_that_was_mended_loads(tmp_path):
    path = tmp_path / "turned.py"
    path.write_text("1 / 0\n")
    for _ in range(2):
        with refused("ZeroDivisionError"):
            settings.load_file(path)
    path.write_text("value = 1\n# longer than before\n")
    assert settings.load_file(path).value == 1


@pytest.mark.parametrize("name", ["bmp", "my_task:Task", "task.txt:Task", "", ":Task", 3, None])
def test_what_names_no_family(name):
    with refused("must be one of bump, ", "or FILE.py:CLASS of your own"):
        settings.family("task", name)


@dataclass(frozen=True)
class Inner:
    rate: float = settings.number(1.0, above=0, traced=True)
    label: str = settings.choice("a", "a", "b")


@dataclass(frozen=True)
class Outer:
    size: int = settings.number(3, low=1, high=9)
    values: tuple = ()
    shown: bool = False
    inner: Inner = Inner()
    data: Inner = settings.traced(Inner())
    free: float = field(default=0.5)


def test_values_as_plain_dicts_and_back():
    node = Outer(size=4, values=((1, "a"), (2, "b")), inner=Inner(rate=2))
    values = json.loads(json.dumps(settings.to_dict(node)))
    assert values["inner"] == {"rate": 2.0, "label": "a"}
    built = settings.build(Outer, values, "it")
    assert built == node and type(built.inner.rate) is float and built.values[0] == (1, "a")
    assert settings.build(Outer, {}, "it") == Outer()


def test_traced_fields_are_those_that_say_so_and_all_of_a_traced_group():
    found = settings.traced_names(Outer(), "it")
    assert found == ["it.inner.rate", "it.data.rate", "it.data.label"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 0}, "it.size=0: must be at least 1 and at most 9"),
        ({"size": 10}, "it.size=10: must be at least 1 and at most 9"),
        ({"inner": {"rate": 0.0}}, "it.inner.rate=0.0: must be greater than 0"),
        ({"size": 2.0}, "it.size=2.0: must be of type int"),
        ({"shown": 1}, "it.shown=1: must be of type bool"),
        ({"inner": {"label": "c"}}, "it.inner.label='c': must be one of a, b"),
        ({"inner": {"rat": 1.0}}, "it.inner.rat: no such field; allowed: it.inner.rate"),
        ({"inner": 3}, "it.inner=3: must be a group of fields: rate, label"),
    ],
)
def test_bad_values_are_one_line(values, message):
    with refused(message):
        settings.build(Outer, values, "it")
