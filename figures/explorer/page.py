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
    urls = {}  # a module's text as an address, under which others in the page import it
    for script in sorted(HERE.glob("*.js")):
        text = base64.b64encode(script.read_bytes()).decode()
        urls[script.stem] = f"data:text/javascript;base64,{text}"
    environment = jinja2.Environment(autoescape=True)
    template = environment.from_string((HERE / "page.html.jinja").read_text())
    page = template.render(
        names=list(runs),
        css=Markup((HERE / "style.css").read_text()),
        payload=as_json(content),
        importmap=as_json({"imports": urls}),
        rows=as_json(verdicts),
        percent=round(100 * LEVEL),
    )
    directory.write_text(Path(path), page)
    return Path(path)


def with_verdicts(page: str, verdicts) -> str:
    """The text of a page whose verdicts are those of rows of claims.json, on its networks."""
    element = r'(?<=<script type="application/json" id="%s">).*?(?=</script>)'
    networks = json.loads(re.search(element % "payload", page)[0])["networks"]
    rows = as_json(on(verdicts, [network["name"] for network in networks]))
    return re.sub(element % "rows", lambda _: rows, page)


def on(verdicts, names) -> list[dict]:
    """The rows of claims.json, at the base, that judge one of these runs, with what a page
    shows."""
    rows = [row for row in verdicts if row["setting"] == BASE and {*row["runs"]} & {*names}]
    return [{name: row[name] for name in COLUMNS} for row in rows]


def as_json(value) -> Markup:
    """JSON for a script element; NaN is null."""
    return htmlsafe_json_dumps(directory.clean(value), separators=(",", ":"))
