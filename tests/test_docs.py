"""The documentation: its links and commands lead somewhere.

`make docs-check` compares the generated pages with what their sources print."""

import ast
import importlib
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from absl import flags
from absl.testing import flagsaver
from markdown_it import MarkdownIt

from compgen_jax import cli
from launch import compgen, example
from tests.command import blocks, call, refused

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SITE = sorted(DOCS.rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *SITE]
CONFIG = cli.define_config()


def prose(page) -> str:
    """A page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.S)


def anchors(page) -> set[str]:
    """Those of a page's headings, as GitHub and mkdocs name them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.M)
    plain = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"\s", "-", heading) for heading in plain}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            there = page.parent / path if path else page
            assert there.exists(), f"{page}: {target}"
            assert not anchor or anchor in anchors(there), f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES)
def test_every_asterisk_is_markup(page):
    """CommonMark leaves one that cannot open or close emphasis as it is."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text())
    words = [part for token in tokens for part in token.children or () if part.type == "text"]
    assert not [part.content for part in words if "*" in part.content]


def test_the_site_has_every_page_in_its_navigation():
    named = re.findall(r"[\w/]+\.md", (ROOT / "mkdocs.yml").read_text())
    assert {page.relative_to(DOCS).as_posix() for page in SITE} <= set(named)


def commands(page) -> list[list[str]]:
    """The words of every command of this package in a page's blocks, after `python -m`."""
    text = "\n".join(blocks(page.read_text())).replace("\\\n", " ")
    words = [shlex.split(line, comments=True) for line in text.splitlines()]
    found = [line[line.index("-m") + 1 :] for line in words if "-m" in line]
    found += [[compgen.COMMANDS[line[1]][0], *line[2:]]
              for line in words if line[:1] == ["compgen-jax"]]  # fmt: skip
    return [line for line in found if line[0].split(".")[0] in ("launch", "figures")]


@pytest.mark.parametrize("name", ["own_network", "own_task"])
def test_a_page_shows_its_file(name):
    page, source = ((DOCS / "tutorials" / f"{name}.{kind}").read_text() for kind in ("md", "py"))
    assert f"```python\n{source}```" in page


def test_an_example_is_a_file_of_the_tutorials_and_replaces_none(tmp_path, monkeypatch):
    write = lambda *names: call(example, *names, positional=(example.NAME,))
    monkeypatch.chdir(tmp_path)
    write("own_task.py")
    assert Path("own_task.py").read_text() == (DOCS / "tutorials" / "own_task.py").read_text()
    with refused("own_task.py is already here"):
        write("own_task.py")
    with refused("no example 'own_data.py'; there are first_look.ipynb, own_network.py, own_task"):
        write("own_data.py")


@pytest.mark.parametrize("page", [page for page in SITE if commands(page)])
def test_commands_parse(page, monkeypatch):
    """Each flag is one of its command's, and built-in names exist."""
    monkeypatch.chdir(DOCS / "tutorials")  # what `compgen-jax example` writes is here
    for module, *arguments in commands(page):
        module = importlib.import_module(module)
        known = {holder.name for holder in vars(module).values()
                 if isinstance(holder, flags.FlagHolder)}  # fmt: skip
        asked = [word for word in arguments if re.match("-(?!-flagfile)", word)]
        assert known.issuperset(re.split(r"[.=]", word[2:])[0] for word in asked), arguments
        with flagsaver.flagsaver():
            cli._parse(["command", *asked])
            if CONFIG.value and not any("=my_" in word for word in asked):
                cli.read_config(CONFIG)


PASSED_ON = "jax._src.xla_bridge", "absl.flags._exceptions"
MESSAGES = r"^\| the line says \|.*\n\|[-|]*\n((?:\|.*\n)+)"


def strings():
    """Every string of the source, with … for what it is filled with; also of two libraries whose
    messages are passed on."""
    folders = [ROOT / name for name in ("compgen_jax", "launch", "figures")]
    libraries = [Path(find_spec(name).origin) for name in PASSED_ON]
    for path in (*libraries, *(path for folder in folders for path in folder.rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                values = [part.value for part in node.values]  # text, or what is filled in
                yield "".join(one if isinstance(one, str) else "…" for one in values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_quoted_messages_stand_in_the_source():
    """Each is a whole string, filled in; it has more than a quarter of the message itself."""
    tables = re.findall(MESSAGES, "".join(page.read_text() for page in SITE), re.M)
    quoted = re.findall(r"^\| `(.+?)` \|", "".join(tables), re.M)
    assert len(quoted) > 25
    source = [text.removeprefix("error: ").split("…") for text in strings()]
    for message in quoted:
        assert any(
            max(pieces, key=len) in message
            and len("".join(pieces)) > len(message) / 4
            and re.fullmatch(".*".join(map(re.escape, pieces)), message)
            for pieces in source
        ), message
