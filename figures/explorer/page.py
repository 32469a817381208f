"""The explorer: one page, that opens from disk and asks nothing of a network, of finished runs."""

import base64
import json
import re
from pathlib import Path

import jinja2
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from compgen_jax.claims import BASE
from compgen_jax.runs import directory
from compgen_jax.statistics import LEVEL

from .payload import payload

HERE = Path(__file__).parent
# of claims.json that the page shows
COLUMNS = (
    "claim",
    "case",
    "statement",
    "figure",
    "verdict",
    "reason",
    "seeds",
    "conditions",
    "notes",
    "runs",
)


def write(runs: dict, path, verdicts=(), seeds=(), about=()) -> Path:
    """Writes the explorer of finished runs, by name, and returns its path.

    Args: verdicts: rows of claims.json; seeds: those to show, by default the first 8; about: by a
    run's name a sentence on it. Raises RunError for a seed that a run lacks.
    """
    content = payload(runs, seeds)
    for network in content["networks"]:
        network["about"] = dict(about).get(network["name"], "")
    page = render(
        HERE / "page.html.jinja",
        (HERE / "style.css").read_text(),
        HERE.glob("*.js"),
        names=list(runs),
        payload=as_json(content),
        rows=as_json(verdicts),
        percent=round(100 * LEVEL),
    )
    directory.write_text(Path(path), page)
    return Path(path)


def render(template, css: str, scripts, **fields) -> str:
    """The page of a template; a module of `scripts` can be imported in it by its file's stem."""
    urls = {script.stem: address(script.read_text()) for script in sorted(scripts)}
    environment = jinja2.Environment(autoescape=True)
    importmap = as_json({"imports": urls})
    page = environment.from_string(template.read_text())
    return page.render(css=Markup(css), importmap=importmap, **fields)


def bundled(text: str, scripts) -> str:
    """A module's text that imports from no import map, as in a worker."""
    sources = {script.stem: script.read_text() for script in scripts}
    return re.sub(r'(?<=from ")\w+', lambda name: address(bundled(sources[name[0]], scripts)), text)


def address(module: str) -> str:
    """A module's text as an address from which others import it."""
    return f"data:text/javascript;base64,{base64.b64encode(module.encode()).decode()}"


def with_verdicts(page: str, verdicts) -> str:
    """The text of a page whose verdicts are those of rows of claims.json, on its networks."""
    element = r'(?<=<script type="application/json" id="%s">).*?(?=</script>)'
    networks = json.loads(re.search(element % "payload", page)[0])["networks"]
    rows = as_json(on(verdicts, [network["name"] for network in networks]))
    return re.sub(element % "rows", lambda _: rows, page)


def on(verdicts, names) -> list[dict]:
    """The rows of claims.json, at the base, that judge one of these runs, with what a page
    shows."""
    return [
        {name: row[name] for name in COLUMNS}
        for row in verdicts
        if row["setting"] == BASE and {*row["runs"]} & {*names}
    ]


def as_json(value) -> Markup:
    """JSON for a script element; NaN is null."""
    return htmlsafe_json_dumps(directory.clean(value), separators=(",", ":"))
